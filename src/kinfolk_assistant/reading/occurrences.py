"""The occurrences of meetings in a span of time, with what is cancelled left out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from icalendar import Component

from kinfolk_assistant.meeting import CalendarObject, Meeting, in_utc
from kinfolk_assistant.reading.bounds import WHOLE_CALENDAR
from kinfolk_assistant.reading.events import age_of, events_of, recurrence_of
from kinfolk_assistant.reading.parsing import parse
from kinfolk_assistant.reading.series import Series

_LONG_TEXT = 100_000
# Messages about an event that are not the event itself (RFC 5546 3.2).
_NOT_KEPT = ("REPLY", "ADD", "REFRESH", "COUNTER", "DECLINECOUNTER")


class Occurrence(NamedTuple):
    """One time at which a meeting takes place.

    Attributes
    ----------
    meeting
        With the start and end of this occurrence.
    start, end
        The same in UTC.
    recurring
        Whether it is one of a series.
    """

    meeting: Meeting
    start: datetime
    end: datetime
    recurring: bool


def occurrences(objects: Iterable[CalendarObject], start: datetime, end: datetime, zone: ZoneInfo) -> list[Occurrence]:
    r"""Find what takes place between two instants, in the order of its start.

    Parameters
    ----------
    objects
        As ``read_calendar`` gives them. Objects of one UID belong together: of each occurrence the version with the
        highest SEQUENCE counts, and of equal ones the last.
    start, end
        The span, aware; a meeting that only touches it does not count.
    zone
        Where all-day meetings and floating times take place.

    Examples
    --------
    >>> from datetime import UTC
    >>> from kinfolk_assistant.reading.calendars import read_calendar
    >>> lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//x//x//EN", "BEGIN:VEVENT", "UID:1",
    ...          "DTSTART;TZID=Europe/Berlin:20260323T090000", "DURATION:PT1H", "RRULE:FREQ=WEEKLY", "END:VEVENT",
    ...          "END:VCALENDAR"]
    >>> found = occurrences(read_calendar("\r\n".join(lines).encode()), datetime(2026, 3, 23, tzinfo=UTC),
    ...                     datetime(2026, 4, 1, tzinfo=UTC), ZoneInfo("UTC"))
    >>> [f"{one.start:%d %H:%M}" for one in found]
    ['23 08:00', '30 07:00']
    """
    together: dict[str, list[CalendarObject]] = {}
    for one in objects:
        if one.method not in _NOT_KEPT:
            together.setdefault(one.meetings[0].uid, []).append(one)
    found: list[Occurrence] = []
    for members in together.values():
        newest = _newest(members)
        if any(is_recurring(one) for one in members):
            found.extend(_of_series(newest, start, end, zone))
        else:
            found.extend(_of_meetings(newest, start, end, zone))
    return sorted(found, key=lambda each: (each.start, each.end, each.meeting.uid))


def is_recurring(one: CalendarObject) -> bool:
    """Whether an object is about a series: by a rule, by further dates, or as a changed occurrence of one."""
    return any(meeting.repeats or meeting.recurrence_id for meeting in one.meetings)


def times_of(one: CalendarObject, zone: ZoneInfo) -> tuple[datetime, datetime, bool]:
    """Give the first start and the last end of an object's events, and whether it is a series, which may go on."""
    spans = [meeting.span(zone) for meeting in one.meetings]
    return min(start for start, _ in spans), max(end for _, end in spans), is_recurring(one)


class _Version(NamedTuple):
    meeting: Meeting
    text: str


def _newest(members: Iterable[CalendarObject]) -> dict[str, _Version]:
    """The version that counts of a series and of each changed occurrence, by RECURRENCE-ID."""
    newest: dict[str, _Version] = {}
    for one in members:
        for meeting in one.meetings:
            known = newest.get(meeting.recurrence_id)
            if known is None or known.meeting.sequence <= meeting.sequence:
                newest[meeting.recurrence_id] = _Version(meeting, one.text)
    whole = newest.get("")
    if whole is not None and whole.meeting.cancelled:
        return {key: one for key, one in newest.items() if one.meeting.sequence > whole.meeting.sequence}
    return newest


def _of_meetings(newest: dict[str, _Version], start: datetime, end: datetime, zone: ZoneInfo) -> Iterator[Occurrence]:
    for meeting, _ in newest.values():
        begins, ends = meeting.span(zone)
        if not meeting.cancelled and _overlap(begins, ends, start, end):
            yield Occurrence(meeting, begins, ends, False)


def _of_series(newest: dict[str, _Version], start: datetime, end: datetime, zone: ZoneInfo) -> Iterator[Occurrence]:
    if not newest:
        return
    uid = next(iter(newest.values())).meeting.uid
    versions = tuple((key, text) for key, (_, text) in newest.items())
    make = _cached if sum(len(text) for text in {text for _, text in versions}) <= _LONG_TEXT else _series
    for recurrence_id, first, last in make(uid, versions).between(start, end, zone):
        version = newest.get(recurrence_id) or newest.get("")
        if version is None or version.meeting.cancelled:
            continue
        begins, ends = in_utc(first, zone), in_utc(last, zone)
        if _overlap(begins, ends, start, end):
            yield Occurrence(replace(version.meeting, start=first, end=last), begins, ends, True)


def _series(uid: str, versions: tuple[tuple[str, str], ...]) -> Series:
    """The series of these versions, each a RECURRENCE-ID and the text that its event is in."""
    events: dict[tuple[str, str], Component] = {}
    for text in dict.fromkeys(text for _, text in versions):
        for calendar in parse(text, "the calendar", WHOLE_CALENDAR):
            for event in sorted(events_of(calendar, uid), key=age_of):
                events[recurrence_of(event), text] = event
    return Series(events[version] for version in versions)


_cached = lru_cache(maxsize=128)(_series)


def _overlap(begins: datetime, ends: datetime, start: datetime, end: datetime) -> bool:
    return begins < end and (start < ends or start <= begins)
