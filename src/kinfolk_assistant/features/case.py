"""What a rule looks at: one request, the user it came to, and the calendar as it stood when it came."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from kinfolk_assistant.features.past import Found, Standing
from kinfolk_assistant.features.people import People
from kinfolk_assistant.meeting import Meeting, in_utc

# The working day. The thesis does not say what its "full day" is; night hours are free in every calendar, so that
# over 24 hours no day would be more than lightly taken. Weekends have the same hours: whether they are kept free
# shows in the answers, and is for the model to learn.
DAY_BEGINS, NOON, DAY_ENDS = time(9), time(12), time(18)

# Engagements with no more than this between them border each other: it is the shortest stretch that the features
# tell from none, and many calendars end meetings a few minutes early so that people can change rooms.
BORDER = timedelta(minutes=15)


class Owner(NamedTuple):
    """The user who is asked: address, time zone, and words that name places near to them."""

    address: str
    zone: ZoneInfo
    places: tuple[str, ...] = ()


class Finding(NamedTuple):
    """What a rule found: the feature's value, or None and why it is not known."""

    value: str | None
    why_not: str = ""


class Case(NamedTuple):
    """A request (``start`` and ``end`` in UTC) and all that its features depend on."""

    meeting: Meeting
    start: datetime
    end: datetime
    when: datetime
    owner: Owner
    people: People
    standing: Standing
    near: Found

    def clock(self, day: date, hour: time) -> datetime:
        """Give an hour of the owner's day in UTC."""
        return in_utc(datetime.combine(day, hour), self.owner.zone)

    def day_of(self, moment: datetime) -> date:
        """Give the owner's day that a moment lies in."""
        return moment.astimezone(self.owner.zone).date()


def make_case(
    meeting: Meeting, start: datetime, end: datetime, owner: Owner, people: People, standing: Standing, when: datetime
) -> Case:
    """Put together what the rules look at, with the engagements of the requested day or days and of their borders."""
    bare = Case(meeting, start, end, when, owner, people, standing, Found([], []))
    begin, close = reach(bare)
    return bare._replace(near=standing.between(begin - 2 * BORDER, close + 2 * BORDER, without=meeting))


def reach(case: Case) -> tuple[datetime, datetime]:
    """Give the working day of the request, from its first to its last day, widened to hold the requested time."""
    last = case.day_of(case.end - timedelta(microseconds=1))
    return (
        min(case.start, case.clock(case.day_of(case.start), DAY_BEGINS)),
        max(case.end, case.clock(last, DAY_ENDS)),
    )
