"""The features that the request and the table of people decide: seven of the fifteen of Roy (2006), appendix B."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import time, timedelta

from kinfolk.datasets.meetings import MEETING_FEATURES
from kinfolk_assistant.features.case import Case, Finding
from kinfolk_assistant.meeting import Meeting

_MINUTE = timedelta(minutes=1)
_PARTS = ((time(9), "early"), (time(11, 30), "morning"), (time(13, 30), "mid"), (time(16, 30), "afternoon"))

# RFC 5545 3.8.1.9: 1 is the highest priority, 1 to 4 are high, 5 is medium, 6 to 9 are low, 0 says nothing.
_BY_PRIORITY = {
    1: "critical",
    **dict.fromkeys((2, 3, 4), "very important"),
    5: "important",
    **dict.fromkeys((6, 7, 8), "possibly important"),
    9: "unimportant",
}


def start_time(case: Case) -> Finding:
    """Tell the part of the day by the clock in the owner's zone."""
    if case.meeting.all_day:
        return Finding(None, "the meeting takes whole days and starts at no hour")
    clock = case.start.astimezone(case.owner.zone).time()
    return Finding(next((part for limit, part in _PARTS if clock < limit), "late"))


def duration(case: Case) -> Finding:
    """Tell the length from start to end."""
    return Finding(at_most((15, 30, 60), MEETING_FEATURES["duration"], (case.end - case.start) / _MINUTE))


def message_importance(case: Case) -> Finding:
    """Tell the importance by the request's PRIORITY."""
    return Finding(_BY_PRIORITY.get(case.meeting.priority, "other"))


def topic_importance(case: Case) -> Finding:
    """Tell the importance of the most important topic of the table that the request names."""
    return Finding(case.people.importance_of(topic_words(case.meeting)))


def invitee_job(case: Case) -> Finding:
    """Tell the organiser's job by the table."""
    return Finding(case.people.job_of(case.meeting.organiser))


def invitee_relation(case: Case) -> Finding:
    """Tell what the organiser is to the owner by the table."""
    return Finding(case.people.relation_of(case.meeting.organiser))


def invitee_soon(case: Case) -> Finding:
    """Tell in how many of the owner's days the meeting starts, counted from the day the request came."""
    return Finding(in_days(MEETING_FEATURES["invitee_soon"], (case.day_of(case.start) - case.day_of(case.when)).days))


def at_most(cuts: Sequence[int], names: Sequence[str], amount: float) -> str:
    """Name the first cut that an amount does not pass, or what is beyond the last."""
    return names[bisect_left(cuts, amount)]


def in_days(names: Sequence[str], days: int) -> str:
    """Name a number of days by the cuts that invitee_recent and invitee_soon share."""
    return at_most((0, 1, 3, 7), names, days)


def topic_words(meeting: Meeting) -> str:
    """Give the texts in which topics are sought."""
    return "\n".join((meeting.summary, *meeting.categories))
