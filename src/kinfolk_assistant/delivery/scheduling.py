"""Who tells the organiser: the parameters SCHEDULE-AGENT and SCHEDULE-STATUS of RFC 6638, sections 7.1 and 7.3."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icalendar import Component, Parameters
from icalendar.prop import vText

from kinfolk_assistant.reading.bounds import WHOLE_CALENDAR
from kinfolk_assistant.reading.parsing import parse, written

_NOT_THE_SERVER = ("CLIENT", "NONE")
_FAILED = ("3", "4", "5")
_MARK = "X-KINFOLK-REPLY"


def left_to_client(text: str) -> str:
    """Write a calendar object so that a server which stores it tells the organiser nothing."""
    calendars = parse(text, "the meeting", WHOLE_CALENDAR)
    for told in _of_organisers(calendars):
        told["SCHEDULE-AGENT"] = "CLIENT"
    return written(calendars, "the meeting")


def server_tells(text: str) -> bool:
    r"""Whether a server that schedules tells, or has told, the organiser what this calendar object answers.

    Examples
    --------
    >>> event = "\r\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:x", "BEGIN:VEVENT", "UID:1",
    ...     "DTSTAMP:20260701T080000Z", "DTSTART:20260702T080000Z", "ORGANIZER:mailto:ann@example.org",
    ...     "END:VEVENT", "END:VCALENDAR"])
    >>> server_tells(event), server_tells(left_to_client(event))
    (True, False)
    >>> server_tells(event.replace("ORGANIZER", 'ORGANIZER;SCHEDULE-STATUS="5.1"'))
    False
    """
    organisers = list(_of_organisers(parse(text, "the meeting", WHOLE_CALENDAR)))
    agents = {str(told.get("SCHEDULE-AGENT", "")).upper() for told in organisers}
    statuses = [str(told.get("SCHEDULE-STATUS", "")) for told in organisers]
    return bool(organisers) and agents.isdisjoint(_NOT_THE_SERVER) and not any(map(_has_failed, statuses))


def marked(text: str, reply: str) -> str:
    """Write a calendar object with the name of the reply that has set its answer."""
    calendars = parse(text, "the meeting", WHOLE_CALENDAR)
    for calendar in calendars:
        for event in calendar.walk("VEVENT"):
            event[_MARK] = vText(reply)
    return written(calendars, "the meeting")


def is_marked(text: str, reply: str) -> bool:
    """Whether it was this reply that has set the answer of a calendar object."""
    calendars = parse(text, "the meeting", WHOLE_CALENDAR)
    return any(str(event.get(_MARK)) == reply for calendar in calendars for event in calendar.walk("VEVENT"))


def _has_failed(status: str) -> bool:
    return status.startswith(_FAILED)


def _of_organisers(calendars: Iterable[Component]) -> Iterator[Parameters]:
    """Parameters of the ORGANIZER of each event."""
    for calendar in calendars:
        for event in calendar.walk("VEVENT"):
            organisers = event.get("ORGANIZER", [])
            for organiser in organisers if isinstance(organisers, list) else [organisers]:
                yield organiser.params
