"""Meetings written as iCalendar text (RFC 5545): plain, escaped and folded, as a calendar server would keep them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from functools import cache
from zoneinfo import ZoneInfo

from icalendar import Timezone

from kinfolk_assistant.meeting import CalendarObject, Meeting, Moment

PRODUCT = "-//kinfolk//made-up team//EN"


def calendar_object(meetings: Sequence[Meeting], method: str = "", left_out: Sequence[datetime] = ()) -> CalendarObject:
    r"""Write the meetings of one UID as an iCalendar object.

    Parameters
    ----------
    meetings : sequence of Meeting
        The series first, then its changed occurrences.
    method : str, default=""
        REQUEST, REPLY or CANCEL; "" for an object of a store.
    left_out : sequence of datetime, default=()
        Starts of the occurrences that do not take place (EXDATE).

    Examples
    --------
    >>> start = datetime(2026, 7, 1, 9, tzinfo=UTC)
    >>> one = Meeting("1", start, start.replace(hour=10), stamp=start, summary="Range safety; part 2")
    >>> print(calendar_object([one]).text.replace("\r", ""))
    BEGIN:VCALENDAR
    VERSION:2.0
    PRODID:-//kinfolk//made-up team//EN
    BEGIN:VEVENT
    UID:1
    DTSTART:20260701T090000Z
    DTEND:20260701T100000Z
    SEQUENCE:0
    DTSTAMP:20260701T090000Z
    SUMMARY:Range safety\; part 2
    END:VEVENT
    END:VCALENDAR
    <BLANKLINE>
    """
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", f"PRODID:{PRODUCT}"]
    lines += [f"METHOD:{method}"] if method else []
    starts = [one.start for one in meetings if isinstance(one.start, datetime)]
    zones = {one.tzinfo.key: one.year for one in reversed(starts) if isinstance(one.tzinfo, ZoneInfo)}
    lines += [line for key, year in sorted(zones.items()) for line in _zone_lines(key, year)]
    for meeting in meetings:
        lines += _event_lines(meeting, left_out if not meeting.recurrence_id else ())
    text = "\r\n".join(_folded(line) for line in [*lines, "END:VCALENDAR"]) + "\r\n"
    return CalendarObject(method, tuple(meetings), text)


def utc_text(moment: datetime) -> str:
    """Write an instant as RFC 5545 writes it in UTC, which is also how a recurrence id is told.

    Examples
    --------
    >>> utc_text(datetime(2026, 7, 1, 9, tzinfo=ZoneInfo("Europe/Berlin")))
    '20260701T070000Z'
    """
    return moment.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def _event_lines(meeting: Meeting, left_out: Sequence[datetime]) -> list[str]:
    lines = ["BEGIN:VEVENT", f"UID:{meeting.uid}"]
    lines += [f"RECURRENCE-ID:{meeting.recurrence_id}"] if meeting.recurrence_id else []
    lines += [_timed("DTSTART", meeting.start), _timed("DTEND", meeting.end)]
    lines += [f"RRULE:{meeting.repeats}"] if meeting.repeats else []
    lines += [_timed("EXDATE", moment) for moment in left_out]
    lines.append(f"SEQUENCE:{meeting.sequence}")
    lines += [f"DTSTAMP:{utc_text(meeting.stamp)}"] if meeting.stamp else []
    lines += [f"CREATED:{utc_text(meeting.created)}"] if meeting.created else []
    texts = {"SUMMARY": meeting.summary, "DESCRIPTION": meeting.description, "LOCATION": meeting.location}
    lines += [f"{name}:{_escaped(text)}" for name, text in texts.items() if text]
    lines += [f"CATEGORIES:{','.join(map(_escaped, meeting.categories))}"] if meeting.categories else []
    lines += [f"PRIORITY:{meeting.priority}"] if meeting.priority else []
    lines += ["STATUS:CANCELLED"] if meeting.cancelled else []
    lines += ["TRANSP:TRANSPARENT"] if meeting.transparent else []
    if meeting.organiser:
        lines.append(f'ORGANIZER;CN="{meeting.organiser_name}":mailto:{meeting.organiser}')
    lines += [
        f'ATTENDEE;CN="{one.name}";PARTSTAT={one.answer};RSVP=TRUE:mailto:{one.address}' for one in meeting.attendees
    ]
    return [*lines, "END:VEVENT"]


def _timed(name: str, moment: Moment) -> str:
    if not isinstance(moment, datetime):
        return f"{name};VALUE=DATE:{moment:%Y%m%d}"
    if isinstance(moment.tzinfo, ZoneInfo):
        return f"{name};TZID={moment.tzinfo.key}:{moment:%Y%m%dT%H%M%S}"
    return f"{name}:{utc_text(moment)}"


def _escaped(text: str) -> str:
    for plain, written in (("\\", "\\\\"), (";", "\\;"), (",", "\\,"), ("\n", "\\n")):
        text = text.replace(plain, written)
    return text


def _folded(line: str) -> str:
    """Break after 75 octets (RFC 5545 3.1), which for the ASCII of the made-up texts are 75 characters."""
    return line if len(line) <= 75 else "\r\n ".join([line[:75], *(line[i : i + 74] for i in range(75, len(line), 74))])


@cache
def _zone_lines(key: str, year: int) -> tuple[str, ...]:
    zone = Timezone.from_tzid(key, first_date=date(year - 1, 1, 1), last_date=date(year + 5, 1, 1))
    # Unfolded first, because all lines are folded together at the end.
    return tuple(zone.to_ical().decode().replace("\r\n ", "").split("\r\n")[:-1])
