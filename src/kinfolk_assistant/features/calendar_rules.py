"""The features that the calendar decides, as it stood: eight of the fifteen of Roy (2006), appendix B.

Of some engagements it is not known whether they stood when the request came. A feature is told if it comes out the
same without any of them and with all of them: as engagements are added, each of these features moves one way only
(days fill, gaps shrink, conflicts appear), so what is the same at both ends is the same for any of them in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, time, timedelta
from functools import partial

from kinfolk.datasets.meetings import MEETING_FEATURES
from kinfolk_assistant.features.case import BORDER, DAY_BEGINS, DAY_ENDS, NOON, Case, Finding, reach
from kinfolk_assistant.features.past import Engagement, Found
from kinfolk_assistant.features.places import place_of
from kinfolk_assistant.features.request_rules import at_most, in_days, topic_words

Engagements = Sequence[Engagement]

_LEVELS = MEETING_FEATURES["conflict_importance"]
_FREQUENCIES = MEETING_FEATURES["conflict_frequency"]
_INSTANT = timedelta(microseconds=1)
_MINUTE = timedelta(minutes=1)
_HOUR = timedelta(hours=1)
# Back from a conflicting engagement, to see whether one like it was there before.
_LATELY = timedelta(weeks=4)


def invitee_recent(case: Case) -> Finding:
    """Tell how many of the owner's days ago the last engagement with the organiser ended."""
    other = case.meeting.organiser
    if not other:
        return Finding(None, "the request names no organiser")
    today = case.day_of(case.when)
    names = MEETING_FEATURES["invitee_recent"]

    def tell(engagements: Engagements) -> str:
        ends = [one.end for one in engagements if met(one, other, case.when)]
        # One that ends at midnight was a meeting of the day before.
        return in_days(names, (today - case.day_of(max(ends) - _INSTANT)).days) if ends else names[-1]

    return settle(case.standing.between(case.clock(today - timedelta(days=7), time()), case.when, case.meeting), tell)


def busy_fday(case: Case) -> Finding:
    """Tell how full the working day is on which the meeting starts."""
    day = case.day_of(case.start)
    return _busyness(case, case.clock(day, DAY_BEGINS), case.clock(day, DAY_ENDS))


def busy_hday(case: Case) -> Finding:
    """Tell how full that half of the working day is in which the meeting starts."""
    day = case.day_of(case.start)
    noon = case.clock(day, NOON)
    if case.start < noon:
        return _busyness(case, case.clock(day, DAY_BEGINS), noon)
    return _busyness(case, noon, case.clock(day, DAY_ENDS))


def free_slot_time(case: Case) -> Finding:
    """Tell the free time right before and right after the requested time, added up."""
    begin, close = reach(case)

    def tell(engagements: Engagements) -> str:
        before = max((min(one.end, case.start) for one in engagements if one.start < case.start), default=begin)
        after = min((max(one.start, case.end) for one in engagements if one.end > case.end), default=close)
        free = (case.start - max(before, begin)) + (min(after, close) - case.end)
        return at_most((0, 15, 30, 60, 90, 135), MEETING_FEATURES["free_slot_time"], free / _MINUTE)

    return settle(case.near, tell)


def conflict(case: Case) -> Finding:
    """Tell whether an engagement overlaps the requested time."""
    return settle(case.near, lambda engagements: "yes" if _overlapping(case, engagements) else "no")


def conflict_importance(case: Case) -> Finding:
    """Tell the importance of the topics of the engagements that overlap the requested time; the highest counts."""

    def tell(engagements: Engagements) -> str:
        overlapping = _overlapping(case, engagements)
        levels = (case.people.importance_of(topic_words(one.meeting)) for one in overlapping)
        return max(levels, key=_LEVELS.index, default="other")

    return settle(case.near, tell)


def conflict_frequency(case: Case) -> Finding:
    """Tell how often the engagements that overlap the requested time recur; the most frequent counts."""
    overlapping = _overlapping(case, case.near.all())
    if not overlapping:
        return Finding("other")

    def tell(engagements: Engagements) -> str:
        often = (_frequency(one, engagements) for one in _overlapping(case, engagements))
        return max(often, key=_FREQUENCIES.index, default="other")

    earliest = max(min(one.start for one in overlapping), case.start - _LATELY) - _LATELY
    return settle(case.standing.between(earliest, case.end, case.meeting), tell)


def location(case: Case) -> Finding:
    """Tell the place of the meeting, then that of the engagements it overlaps or borders: away if one of them is."""
    here = place_of(case.meeting.location, case.owner.places)
    if here is None:
        return Finding(None, "the owner has named no places" if case.meeting.location else "the request names no place")

    def tell(engagements: Engagements, unnamed: str) -> str:
        beside = {
            place_of(one.meeting.location, case.owner.places) or unnamed
            for one in engagements
            if one.start <= case.end + BORDER and one.end >= case.start - BORDER
        }
        return f"{here}-{'away' if 'away' in beside else 'local' if beside else 'none'}"

    # An engagement at an unnamed place is near or away; only if it does not matter which, the feature is told.
    near, away = (settle(case.near, partial(tell, unnamed=unnamed)) for unnamed in ("local", "away"))
    if near.value is None or near == away:
        return near
    return Finding(None, away.why_not or "the place of an engagement beside it is not known")


def settle(found: Found, tell: Callable[[Engagements], str]) -> Finding:
    """Tell a value if those of which it is not known whether they stood do not change it, else what is not known."""
    value = tell(found.known)
    if not found.unknown or tell(found.all()) == value:
        return Finding(value)
    alone = {why for one, why in found.unknown if tell([*found.known, one]) != value}
    return Finding(None, "; ".join(sorted(alone or {why for _, why in found.unknown})))


def _overlapping(case: Case, engagements: Engagements) -> list[Engagement]:
    return [one for one in engagements if one.start < case.end and one.end > case.start]


def met(one: Engagement, other: str, when: datetime) -> bool:
    """Whether an engagement that was over by then had brought the owner and someone together."""
    # What the owner declined or the organiser cancelled, be it after the request came, did not.
    if one.end > when or one.given_up:
        return False
    return one.meeting.organiser == other or one.meeting.answer_of(other) not in ("", "DECLINED")


def _busyness(case: Case, begin: datetime, close: datetime) -> Finding:
    whole = close - begin

    def tell(engagements: Engagements) -> str:
        spans = [(one.start, one.end) for one in engagements]
        taken = whole - sum(_gaps(spans, begin, close), timedelta())
        level = "light" if 3 * taken <= whole else "busy" if 3 * taken <= 2 * whole else "booked"
        left = _gaps([*spans, (case.start, case.end)], begin, close)
        return f"{level}-{'free' if max(left, default=timedelta()) >= _HOUR else 'busy'}"

    return settle(case.near, tell)


def _gaps(spans: Sequence[tuple[datetime, datetime]], begin: datetime, close: datetime) -> list[timedelta]:
    """Give the stretches that spans leave free of a time; where they overlap each other they take it once."""
    free = []
    reached = begin
    for start, end in sorted(spans):
        free.append(min(start, close) - reached)
        reached = max(reached, min(end, close))
    return [gap for gap in (*free, close - reached) if gap > timedelta()]


def _frequency(one: Engagement, engagements: Engagements) -> str:
    if one.recurring:
        return "regularly"
    like = (
        other
        for other in engagements
        if one.start - _LATELY <= other.start < one.start
        and one.meeting.summary
        and other.meeting.summary.casefold() == one.meeting.summary.casefold()
        and other.meeting.organiser == one.meeting.organiser
    )
    return "occasionally" if any(like) else "one time"
