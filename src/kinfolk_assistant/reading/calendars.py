"""iCalendar (RFC 5545) and iTIP (RFC 5546) read into values: one object for each UID, or a sentence why not."""

from __future__ import annotations

from collections.abc import Iterable
from zoneinfo import ZoneInfo

from icalendar import Calendar, Component

from kinfolk_assistant.meeting import CalendarObject, Meeting, in_utc
from kinfolk_assistant.reading.bounds import INVITATION, MAX_ATTENDEES, MAX_BYTES, WHOLE_CALENDAR, Bounds, Refused
from kinfolk_assistant.reading.events import MAX_UID, age_of, read_event, recurrence_text, token, words, zones_of
from kinfolk_assistant.reading.parsing import as_text, parse, written
from kinfolk_assistant.reading.series import Series, try_out

__all__ = [
    "INVITATION",
    "MAX_ATTENDEES",
    "MAX_BYTES",
    "METHODS",
    "WHOLE_CALENDAR",
    "Bounds",
    "Refused",
    "read_calendar",
    "recurrence_text",
]

METHODS = ("PUBLISH", "REQUEST", "REPLY", "ADD", "CANCEL", "REFRESH", "COUNTER", "DECLINECOUNTER")


def read_calendar(
    data: bytes, what: str = "the calendar", *, bounds: Bounds = INVITATION, skipped: list[str] | None = None
) -> list[CalendarObject]:
    r"""Read iCalendar into objects, one for each UID, in the order of the file.

    Parameters
    ----------
    data
        The bytes of a file, of a mail's part, or of a server's answer.
    what
        What the bytes are, for the sentence when they are refused.
    bounds
        How much is read: ``INVITATION`` for what others send, ``WHOLE_CALENDAR`` for what the owner hands over.
    skipped
        Where a list is given, an object that cannot be used is left out and the sentence that says why is added
        to it; else one such object refuses them all.

    Returns
    -------
    list of CalendarObject
        Each with its meetings: the series first, then the changed occurrences in order.

    Raises
    ------
    Refused
        With one sentence.

    Examples
    --------
    >>> lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//x//x//EN", "METHOD:REQUEST", "BEGIN:VEVENT", "UID:1",
    ...          "DTSTAMP:20260701T080000Z", "DTSTART:20260702T080000Z", "DURATION:PT1H",
    ...          "ORGANIZER:mailto:Ann@example.org", "END:VEVENT", "END:VCALENDAR"]
    >>> [one] = read_calendar("\r\n".join(lines).encode())
    >>> one.method, one.meetings[0].organiser, str(one.meetings[0].end)
    ('REQUEST', 'ann@example.org', '2026-07-02 09:00:00+00:00')
    >>> read_calendar(b"Dear all")
    Traceback (most recent call last):
    ...
    kinfolk_assistant.reading.bounds.Refused: the calendar is not iCalendar: it has no BEGIN:VCALENDAR.
    """
    text = as_text(data, what, bounds)
    calendars = parse(text, what, bounds)
    groups: dict[tuple[str, str], list[tuple[Component, Component]]] = {}
    for calendar in calendars:
        method = token(calendar, "METHOD")
        if method and method not in METHODS:
            raise Refused(f"{what} has the METHOD {method!r}, which RFC 5546 does not know.")
        for event in calendar.subcomponents:
            if event.name == "VEVENT":
                groups.setdefault((method, words(event, "UID", MAX_UID + 1)), []).append((calendar, event))
    if not groups:
        raise Refused(f"{what} holds no event.")
    if len(groups) > bounds.objects:
        raise Refused(f"{what} holds events of {len(groups)} UIDs; at most {bounds.objects} are read.")
    objects, alone = [], len(groups) == 1 and len(calendars) == 1
    for (method, uid), members in groups.items():
        try:
            meetings = _meetings([event for _, event in members], method, uid, what)
            own = text if alone else _own_text(members, f"the event {uid[:80]!r} of {what}")
        except Refused as refusal:
            if skipped is None:
                raise
            skipped.append(str(refusal))
            continue
        objects.append(CalendarObject(method, meetings, own))
    return objects


def _meetings(events: list[Component], method: str, uid: str, what: str) -> tuple[Meeting, ...]:
    """Read the events of one UID; of several versions of one the newest counts."""
    if not 1 <= len(uid) <= MAX_UID:
        raise Refused(f"{what} has an event whose UID is {'missing' if not uid else f'longer than {MAX_UID}'}.")
    name = f"the event {uid[:80]!r} of {what}"
    newest: dict[str, tuple[Component, Meeting]] = {}
    for event in sorted(events, key=age_of):
        meeting = read_event(event, method, uid, name)
        newest[meeting.recurrence_id] = event, meeting
    meetings = tuple(newest[key][1] for key in sorted(newest))
    if len(meetings) > 1 or meetings[0].repeats:
        try:
            try_out(Series(event for event, _ in newest.values()), in_utc(meetings[0].start, ZoneInfo("UTC")))
        except Exception as error:  # a stranger's rules and exceptions may not fit together in many ways
            raise Refused(f"{name} repeats in a way that cannot be followed.") from error
    return meetings


def _own_text(members: Iterable[tuple[Component, Component]], what: str) -> str:
    """The text of one UID alone: the calendar's properties, the time zones that its events use, the events."""
    calendars, events = zip(*members, strict=True)
    own = Calendar(calendars[0])
    used = {zone for event in events for zone in zones_of(event)}
    zones = {
        str(one.get("TZID")): one for calendar in calendars for one in calendar.subcomponents if one.name == "VTIMEZONE"
    }
    own.subcomponents = [*(zone for name, zone in zones.items() if name in used), *events]
    return written([own], what)
