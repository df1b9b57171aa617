"""A calendar as it stood at a moment in the past, rebuilt from what its objects say of their own history."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from kinfolk_assistant.meeting import CalendarObject, Meeting, Moment
from kinfolk_assistant.reading.events import recurrence_text
from kinfolk_assistant.reading.occurrences import is_recurring, occurrences

ENTERED = "it is not known when an engagement that matters here was entered"
CHANGED = "an engagement that matters here was changed after the request came, and where it stood before is not known"
GIVEN_UP = "it is not known when an engagement that matters here was declined or cancelled"

STANDS, ABSENT = "stands", "absent"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Series are expanded a block at a time and kept: long enough that an import does not read a series for every
# request, short enough that one request does not expand years.
_BLOCK = timedelta(days=28)
_DAY = timedelta(days=1)


class SeenObject(NamedTuple):
    """An object of the user's calendar and what is known of its life from outside of it.

    Attributes
    ----------
    object : CalendarObject
        As last seen.
    seen_at : datetime or None
        When it was seen to be as it is; None for a calendar that was handed over as a file.
    gone_at : datetime or None
        When it was found to be gone, or replaced by a later version.
    answered_at : datetime or None
        When the user gave the answer that stands in it.
    """

    object: CalendarObject
    seen_at: datetime | None = None
    gone_at: datetime | None = None
    answered_at: datetime | None = None


class Engagement(NamedTuple):
    """Something that takes the user's time once: a single event or one occurrence of a series. Times are UTC.

    ``changed_to`` is there for an occurrence that was changed, moved or cancelled since: this is how the series had it.
    """

    start: datetime
    end: datetime
    meeting: Meeting
    recurring: bool
    declined: bool
    seen: SeenObject
    changed_to: Meeting | None = None

    @property
    def given_up(self) -> bool:
        """Whether it was declined by the user or cancelled, be it later than the moment that is looked at."""
        return self.declined or self.meeting.cancelled


class Found(NamedTuple):
    """Engagements of some time: those known to have stood, and those of which that is not known, each with why."""

    known: list[Engagement]
    unknown: list[tuple[Engagement, str]]

    def all(self) -> list[Engagement]:
        """Give all that may have stood."""
        return [*self.known, *(one for one, _ in self.unknown)]


class _Shelf:
    """Engagements in order of their start, so that those of a few days are found among many."""

    def __init__(self, engagements: Iterable[Engagement]) -> None:
        ordered = sorted(engagements, key=lambda one: (one.start, one.end, one.meeting.uid, one.meeting.recurrence_id))
        self._long = [one for one in ordered if one.end - one.start > _DAY]
        self._short = [one for one in ordered if one.end - one.start <= _DAY]
        self._starts = [one.start for one in self._short]

    def between(self, start: datetime, end: datetime) -> list[Engagement]:
        first, last = bisect_left(self._starts, start - _DAY), bisect_left(self._starts, end)
        short = [one for one in self._short[first:last] if one.end > start]
        return short + [one for one in self._long if one.start < end and one.end > start]


class Past:
    """A user's calendar, to be asked how it stood.

    Parameters
    ----------
    objects : sequence of SeenObject
        The calendar's objects, in any order; an earlier version of one may be among them with its ``gone_at``.
    owner : str
        The user's address: tells which invitations the user declined.
    zone : ZoneInfo
        Where the user's whole days and floating times are.

    Notes
    -----
    An engagement takes time unless it is transparent (RFC 5545 3.8.2.7) or has no length. It stood at a moment if
    it had been seen by then as it is; else if it was CREATED by then, or, where it does not say when it was, last
    revised (DTSTAMP) by then. It is not known whether it stood there

    - if it does not say when it was created and was revised after the moment, or does not say when;
    - if its SEQUENCE is above 0 and it was revised after the moment: it stood, but perhaps elsewhere;
    - if it was declined by the user or cancelled, and revised after the moment: it was given up at some time
      between its creation and that revision, unless ``answered_at`` says when.

    Examples
    --------
    >>> from datetime import date
    >>> berlin = ZoneInfo("Europe/Berlin")
    >>> entered = datetime(2026, 3, 1, 9, tzinfo=UTC)
    >>> fair = Meeting("1", date(2026, 3, 5), date(2026, 3, 6), created=entered)
    >>> past = Past([SeenObject(CalendarObject("", (fair,), ""))], "ada@example.org", berlin)
    >>> day = datetime(2026, 3, 5, 8, tzinfo=UTC), datetime(2026, 3, 5, 18, tzinfo=UTC)
    >>> [len(past.at(entered + timedelta(hours=h)).between(*day).known) for h in (-1, 1)]
    [0, 1]
    """

    def __init__(self, objects: Sequence[SeenObject], owner: str, zone: ZoneInfo) -> None:
        self._owner = owner.lower()
        self._zone = zone
        series = [is_recurring(seen.object) for seen in objects]
        self._series = [_Series(seen, zone) for seen, recurs in zip(objects, series, strict=True) if recurs]
        single = [seen for seen, recurs in zip(objects, series, strict=True) if not recurs]
        self._single = _Shelf(
            one for seen in single for meeting in seen.object.meetings for one in self._engaged(seen, meeting)
        )
        self._blocks: dict[int, _Shelf] = {}

    def at(self, when: datetime) -> Standing:
        """Give the calendar as it stood at a moment."""
        return Standing(self, when)

    def between(self, start: datetime, end: datetime) -> list[Engagement]:
        """Give all engagements that overlap some time, whenever they stood."""
        found = self._single.between(start, end)
        if self._series:
            first, last = (start - _EPOCH) // _BLOCK, (end - _EPOCH) // _BLOCK
            for block in range(first, last + 1):
                begin = _EPOCH + block * _BLOCK
                # What reaches over from the block before is in both, and counts in the first that is looked at.
                found += [one for one in self._block(block).between(start, end) if block == first or one.start >= begin]
        return found

    def _block(self, block: int) -> _Shelf:
        if block not in self._blocks:
            start = _EPOCH + block * _BLOCK
            self._blocks[block] = _Shelf(
                one
                for series in self._series
                for meeting, changed_to in series.between(start, start + _BLOCK, self._zone)
                for one in self._engaged(series.seen, meeting, recurring=True, changed_to=changed_to)
            )
        return self._blocks[block]

    def _engaged(
        self, seen: SeenObject, meeting: Meeting, recurring: bool = False, changed_to: Meeting | None = None
    ) -> Iterator[Engagement]:
        """Give the engagement that a meeting is; none where it takes no time."""
        start, end = meeting.span(self._zone)
        if end > start and not meeting.transparent:
            declined = meeting.answer_of(self._owner) == "DECLINED"
            yield Engagement(start, end, meeting, recurring, declined, seen, changed_to)


class Standing:
    """A calendar as it stood at one moment."""

    def __init__(self, past: Past, when: datetime) -> None:
        self._past = past
        self._when = when

    def between(self, start: datetime, end: datetime, without: Meeting | None = None) -> Found:
        """Give the engagements that overlap some time, less a meeting with all its versions."""
        found = Found([], [])
        for one in self._past.between(start, end):
            if without is None or not _same(one, without):
                state = _state(one, self._when)
                if state == STANDS:
                    found.known.append(one)
                elif state != ABSENT:
                    found.unknown.append((one, state))
        return found


def _state(one: Engagement, when: datetime) -> str:
    """Say whether an engagement stood at a moment: "stands", "absent", or why it is not known."""
    state = _own_state(one, when)
    if one.changed_to is None or state == ABSENT:
        return state
    if _before(one.seen.seen_at, when) or _before(one.changed_to.stamp, when):
        return ABSENT
    return state if _after(one.changed_to.created, when) else CHANGED


def _own_state(one: Engagement, when: datetime) -> str:
    """Say the same of an engagement as if its series had never been changed at this place."""
    seen, meeting = one.seen, one.meeting
    if _before(seen.gone_at, when):
        return ABSENT
    was_seen = _before(seen.seen_at, when)
    if not was_seen and _after(meeting.created, when):
        return ABSENT
    as_it_is = was_seen or _before(meeting.stamp, when)
    if one.declined and not meeting.cancelled and seen.answered_at is not None:
        if seen.answered_at <= when:
            return ABSENT
    elif one.given_up:
        return ABSENT if as_it_is else GIVEN_UP
    if as_it_is:
        return STANDS
    if meeting.created is None:
        return ENTERED
    return CHANGED if meeting.sequence > 0 or _moved(meeting) else STANDS


def _before(moment: datetime | None, when: datetime) -> bool:
    return moment is not None and moment <= when


def _after(moment: datetime | None, when: datetime) -> bool:
    return moment is not None and moment > when


class _Series:
    """A series with its changed occurrences, those that were cancelled too: they stood until then."""

    def __init__(self, seen: SeenObject, zone: ZoneInfo) -> None:
        self.seen = seen
        meetings = seen.object.meetings
        self._begins = min(one.span(zone)[0] for one in meetings)
        self._shown = replace(seen.object, meetings=tuple(replace(one, cancelled=False) for one in meetings))
        self._cancelled = {one.recurrence_id for one in meetings if one.cancelled}
        master = next((one for one in meetings if not one.recurrence_id), None)
        self._before = [(_unchanged(master, one), one) for one in meetings if master is not None and one.recurrence_id]

    def between(self, start: datetime, end: datetime, zone: ZoneInfo) -> Iterator[tuple[Meeting, Meeting | None]]:
        """Give the occurrences of some time, those that were changed both as they are and as they were before."""
        if self._begins < end:
            for one in occurrences([self._shown], start, end, zone):
                yield replace(one.meeting, cancelled=one.meeting.recurrence_id in self._cancelled), None
        for before, after in self._before:
            begins, ends = before.span(zone)
            if begins < end and ends > start:
                yield before, after


def _unchanged(master: Meeting, changed: Meeting) -> Meeting:
    """Give an occurrence as the series had it before it was changed."""
    start = _moment(changed.recurrence_id)
    length = master.end - master.start  # type: ignore[operator]  # both are dates, or both are times
    return replace(master, start=start, end=start + length, recurrence_id=changed.recurrence_id)


def _moved(meeting: Meeting) -> bool:
    return bool(meeting.recurrence_id) and meeting.recurrence_id != recurrence_text(meeting.start)


def _moment(recurrence_id: str) -> Moment:
    """Turn the text by which an occurrence is known back into a time; see `recurrence_text`."""
    if "T" not in recurrence_id:
        return datetime.strptime(recurrence_id, "%Y%m%d").date()
    moment = datetime.strptime(recurrence_id.removesuffix("Z"), "%Y%m%dT%H%M%S")
    return moment.replace(tzinfo=UTC) if recurrence_id.endswith("Z") else moment


def _same(one: Engagement, request: Meeting) -> bool:
    """Whether an engagement is what the request is about: the meeting, or the one occurrence that it changes.

    A rescheduled meeting frees its old time, so no version of a UID stands in the way of another.
    """
    if one.meeting.uid != request.uid:
        return False
    return request.recurrence_id in ("", one.meeting.recurrence_id or recurrence_text(one.meeting.start))
