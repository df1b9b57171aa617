"""Answers to invitations: the iTIP REPLY (RFC 5546 3.2.3), the COUNTER that proposes another time (3.2.7), and the
user's own copy with the answer in it.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from icalendar import Calendar, Component, Event, Timezone
from icalendar.prop import vCalAddress, vDDDTypes

from kinfolk_assistant.meeting import Moment
from kinfolk_assistant.reading.bounds import WHOLE_CALENDAR, Refused
from kinfolk_assistant.reading.events import address_of, age_of, events_of, first, recurrence_of, words
from kinfolk_assistant.reading.parsing import parse

ANSWERS = ("ACCEPTED", "DECLINED", "TENTATIVE", "NEEDS-ACTION")
PRODID = "-//kinfolk//meeting assistant//EN"
_TIMES = ("DTSTART", "DTEND", "RECURRENCE-ID")
_SERIES_ONLY = ("RRULE", "RDATE", "EXDATE", "EXRULE")
# Between a client and its server only (RFC 6638 7), or asking for what is given here.
_NOT_SENT = ("SCHEDULE-AGENT", "SCHEDULE-STATUS", "SCHEDULE-FORCE-SEND", "RSVP")


def make_reply(
    text: str, uid: str, recurrence_id: str, attendee: str, answer: str, stamp: datetime, comment: str = ""
) -> str:
    r"""Write the REPLY by which an attendee answers a request.

    Parameters
    ----------
    text
        The request, as in ``CalendarObject.text``.
    uid, recurrence_id
        Which of its meetings is answered.
    attendee
        The address of the one who answers.
    answer
        ACCEPTED, DECLINED or TENTATIVE.
    stamp
        The moment of the answer.
    comment
        Words to the organiser.

    Returns
    -------
    str
        An iCalendar object with METHOD:REPLY and this one attendee.

    Raises
    ------
    Refused
        Where the request has no such meeting or no organiser.

    Examples
    --------
    >>> request = "\r\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:x", "METHOD:REQUEST", "BEGIN:VEVENT", "UID:1",
    ...     "DTSTART:20260702T080000Z", "ORGANIZER:mailto:bob@example.org", "ATTENDEE:mailto:ann@example.org",
    ...     "ATTENDEE:mailto:cy@example.org", "END:VEVENT", "END:VCALENDAR"])
    >>> reply = make_reply(request, "1", "", "ann@example.org", "ACCEPTED", datetime(2026, 7, 1, tzinfo=UTC))
    >>> [line for line in reply.splitlines() if line.startswith(("METHOD", "ATTENDEE"))]
    ['METHOD:REPLY', 'ATTENDEE;PARTSTAT=ACCEPTED:mailto:ann@example.org']
    """
    return _written(_said("REPLY", text, uid, recurrence_id, attendee, answer, stamp, comment))


def make_counter(
    text: str,
    uid: str,
    recurrence_id: str,
    attendee: str,
    start: datetime,
    end: datetime,
    stamp: datetime,
    comment: str = "",
) -> str:
    r"""Write the COUNTER by which an attendee proposes another time, which says "perhaps" to the one asked for.

    Raises
    ------
    Refused
        Where the request has no such meeting or no organiser, takes whole days, or is a series: of a series one
        occurrence at a time can be moved.

    Examples
    --------
    >>> request = "\r\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:x", "METHOD:REQUEST", "BEGIN:VEVENT", "UID:1",
    ...     "DTSTART:20260702T080000Z", "DURATION:PT1H", "ORGANIZER:mailto:bob@example.org",
    ...     "ATTENDEE:mailto:ann@example.org", "END:VEVENT", "END:VCALENDAR"])
    >>> hours = datetime(2026, 7, 3, 9, tzinfo=UTC), datetime(2026, 7, 3, 10, tzinfo=UTC)
    >>> counter = make_counter(request, "1", "", "ann@example.org", *hours, stamp=datetime(2026, 7, 1, tzinfo=UTC))
    >>> [line for line in counter.splitlines() if line.startswith(("METHOD", "DT")) and "STAMP" not in line]
    ['METHOD:COUNTER', 'DTSTART:20260703T090000Z', 'DTEND:20260703T100000Z']
    """
    counter = _said("COUNTER", text, uid, recurrence_id, attendee, "TENTATIVE", stamp, comment)
    event = counter.walk("VEVENT")[0]
    asked = first(event, "DTSTART")
    if asked is None or not isinstance(asked.dt, datetime):
        raise Refused("another time can only be proposed for a meeting that has hours.")
    if not recurrence_id and any(name in _find(text, uid, "")[1] for name in _SERIES_ONLY):
        raise Refused("another time can only be proposed for one occurrence of a series.")
    for name, moment in (("DTSTART", start), ("DTEND", end)):
        event[name] = _like(asked, moment.astimezone(asked.dt.tzinfo or UTC))
    counter.subcomponents = [*_zones(event), event]
    return _written(counter)


def _said(
    method: str, text: str, uid: str, recurrence_id: str, attendee: str, answer: str, stamp: datetime, comment: str
) -> Calendar:
    _, event = _find(text, uid, recurrence_id)
    organiser = first(event, "ORGANIZER")
    if organiser is None:
        raise Refused(f"the event {uid[:80]!r} has no ORGANIZER to whom an answer could go.")
    said = Event()
    said.add("UID", uid)
    said.add("DTSTAMP", stamp.astimezone(UTC))
    said.add("SEQUENCE", max(age_of(event)[0], 0))
    for name in _TIMES:
        if name in event:
            said[name] = first(event, name)
    if recurrence_id and "RECURRENCE-ID" not in said:
        _single_out(said, recurrence_id)
    said["ORGANIZER"] = _without(organiser, _NOT_SENT)
    said["ATTENDEE"] = _without(_answering(event, attendee, answer), _NOT_SENT)
    for name in ("SUMMARY", "LOCATION"):
        if name in event:
            said.add(name, words(event, name, 1000))
    if comment:
        said.add("COMMENT", comment)
    reply = Calendar()
    reply.add("PRODID", PRODID)
    reply.add("VERSION", "2.0")
    reply.add("METHOD", method)
    reply.subcomponents = [*_zones(said), said]
    return reply


def with_answer(text: str, uid: str, recurrence_id: str, attendee: str, answer: str) -> str:
    r"""Write the user's own calendar object with their answer in it, and all else as it was.

    Where one occurrence is answered that has no event of its own yet, it gets one; METHOD is left out (RFC 4791 4.1).

    Parameters
    ----------
    text
        The request or the stored object, as in ``CalendarObject.text``.
    uid, recurrence_id
        Which of its meetings is answered.
    attendee
        The address of the one who answers.
    answer
        ACCEPTED, DECLINED, TENTATIVE or NEEDS-ACTION.

    Raises
    ------
    Refused
        Where the object has no such meeting.

    Examples
    --------
    >>> stored = "\r\n".join(["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:x", "BEGIN:VEVENT", "UID:1",
    ...     "DTSTART:20260702T080000Z", "ATTENDEE:mailto:ann@example.org", "ATTENDEE:mailto:cy@example.org",
    ...     "END:VEVENT", "END:VCALENDAR"])
    >>> own = with_answer(stored, "1", "", "ann@example.org", "DECLINED")
    >>> [line for line in own.splitlines() if line.startswith("ATTENDEE")]
    ['ATTENDEE;PARTSTAT=DECLINED:mailto:ann@example.org', 'ATTENDEE:mailto:cy@example.org']
    """
    calendar, event = _find(text, uid, recurrence_id)
    calendar.pop("METHOD", None)
    if recurrence_id and "RECURRENCE-ID" not in event:
        series, event = event, Event(event)
        event.subcomponents = list(series.subcomponents)
        for name in _SERIES_ONLY:
            event.pop(name, None)
        _single_out(event, recurrence_id)
        calendar.add_component(event)
    everyone = _attendees(event)
    same = [place for place, one in enumerate(everyone) if address_of(one) == attendee.lower()] or [len(everyone)]
    people = [one for place, one in enumerate(everyone) if place not in same]
    people.insert(same[0], _answering(event, attendee, answer))
    event["ATTENDEE"] = people
    return _written(calendar)


def _find(text: str, uid: str, recurrence_id: str) -> tuple[Component, Component]:
    """The calendar and the event that is meant: its own one, or else the series it belongs to."""
    found: dict[str, tuple[Component, Component]] = {}
    for calendar in parse(text, "the calendar", WHOLE_CALENDAR):
        for event in events_of(calendar, uid):
            key = recurrence_of(event)
            if key not in found or age_of(found[key][1]) <= age_of(event):
                found[key] = calendar, event
    for wanted in (recurrence_id, ""):
        if wanted in found:
            return found[wanted]
    raise Refused(f"the calendar has no event {uid[:80]!r}" + (f" at {recurrence_id}." if recurrence_id else "."))


def _attendees(event: Component) -> list[Any]:
    people = event.get("ATTENDEE", [])
    return people if isinstance(people, list) else [people]


def _answering(event: Component, attendee: str, answer: str) -> vCalAddress:
    """The ATTENDEE of the one who answers, with the answer; made anew for someone not on the list."""
    if answer not in ANSWERS:
        raise ValueError(f"the answer is {answer!r}; it must be one of {', '.join(ANSWERS)}.")
    if not attendee.isprintable() or " " in attendee or "@" not in attendee:
        raise ValueError(f"the attendee is {attendee!r}; it must be a mail address.")
    same = (one for one in _attendees(event) if address_of(one) == attendee.lower())
    one = next(same, vCalAddress(f"mailto:{attendee}"))
    told = vCalAddress(str(one), params=dict(one.params))
    told.params["PARTSTAT"] = answer
    return told


def _without(value: Any, names: tuple[str, ...]) -> vCalAddress:
    return vCalAddress(str(value), params={key: one for key, one in value.params.items() if key.upper() not in names})


def _zones(event: Component) -> list[Timezone]:
    """The time zones of an event's times, written anew for the years around it: nobody's description is passed on."""
    values = [first(event, name) for name in _TIMES if name in event]
    years = [one.dt.year for one in values]
    span = date(min(years) - 1, 1, 1), date(max(years) + 1, 12, 31)
    named = {str(one.params["TZID"]): one.dt.tzinfo for one in values if "TZID" in one.params}
    return [Timezone.from_tzinfo(zone, name, *span) for name, zone in named.items() if zone is not None]


def _written(calendar: Component) -> str:
    return bytes(calendar.to_ical()).decode()


def _single_out(event: Component, recurrence_id: str) -> None:
    """Turn a copy of a series into the occurrence of this RECURRENCE-ID, its times written as the series' are."""
    start, end = first(event, "DTSTART"), first(event, "DTEND")
    try:
        when = _occurrence(start.dt, recurrence_id)
    except (ValueError, AttributeError, TypeError):
        raise Refused(f"the series has no occurrence {recurrence_id[:40]!r}.") from None
    if end is not None:
        moved = when + (end.dt - start.dt)
        if isinstance(moved, datetime) and end.dt.tzinfo is not None:
            moved = moved.astimezone(end.dt.tzinfo)
        event["DTEND"] = _like(end, moved)
    event["RECURRENCE-ID"] = _like(start, when)
    event["DTSTART"] = _like(start, when)


def _occurrence(start: Moment, recurrence_id: str) -> Moment:
    if not isinstance(start, datetime):
        return datetime.strptime(recurrence_id, "%Y%m%d").date()
    if start.tzinfo is None:
        return datetime.strptime(recurrence_id, "%Y%m%dT%H%M%S")
    return datetime.strptime(recurrence_id, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).astimezone(start.tzinfo)


def _like(value: Any, moment: Moment) -> vDDDTypes:
    """A time with another's parameters: a zone's TZID is the file's own name for it."""
    written = vDDDTypes(moment)
    written.params = value.params
    return written
