"""One person under several addresses: within the assistant by the main one, outside by the one that was used."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from icalendar import Component
from icalendar.prop import vCalAddress

from kinfolk_assistant.meeting import CalendarObject
from kinfolk_assistant.reading.bounds import WHOLE_CALENDAR
from kinfolk_assistant.reading.events import address_of
from kinfolk_assistant.reading.parsing import parse, written


def under_main_address(one: CalendarObject, main: str, others: Collection[str]) -> tuple[CalendarObject, str]:
    """Give an object in which a user goes by their main address, and the address that stood there ("": the main one).

    Where the main address is invited too, that one is meant, and the others stay as they are.
    """
    invited = {guest.address for meeting in one.meetings for guest in meeting.attendees}
    organisers = {meeting.organiser for meeting in one.meetings}
    used = sorted((invited | organisers) & set(others))
    if not used or main in invited:
        return one, ""
    sent_to = next((address for address in used if address in invited), used[0])
    meetings = tuple(
        replace(
            meeting,
            organiser=main if meeting.organiser == sent_to else meeting.organiser,
            attendees=tuple(
                replace(guest, address=main) if guest.address == sent_to else guest for guest in meeting.attendees
            ),
        )
        for meeting in one.meetings
    )
    return CalendarObject(one.method, meetings, renamed(one.text, sent_to, main)), sent_to


def renamed(text: str, old: str, new: str) -> str:
    r"""Write an object in which one address stands for another among those who invite and are invited.

    Examples
    --------
    >>> lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:x", "BEGIN:VEVENT", "UID:1", "DTSTART:20260702T080000Z",
    ...          "ATTENDEE;CN=Ann:mailto:a.old@example.org", "END:VEVENT", "END:VCALENDAR", ""]
    >>> told = renamed("\r\n".join(lines), "a.old@example.org", "ann@example.org")
    >>> [line for line in told.splitlines() if line.startswith("ATTENDEE")]
    ['ATTENDEE;CN=Ann:mailto:ann@example.org']
    """
    calendars = parse(text, "the calendar", WHOLE_CALENDAR)
    for calendar in calendars:
        for event in calendar.walk("VEVENT"):
            for name in ("ORGANIZER", "ATTENDEE"):
                _rename(event, name, old, new)
    return written(calendars, "the calendar")


def _rename(event: Component, name: str, old: str, new: str) -> None:
    told = event.get(name)
    if told is None:
        return
    values = told if isinstance(told, list) else [told]
    changed = [
        vCalAddress(f"mailto:{new}", params={key: value for key, value in one.params.items() if key.upper() != "EMAIL"})
        if address_of(one) == old
        else one
        for one in values
    ]
    event[name] = changed if isinstance(told, list) else changed[0]
