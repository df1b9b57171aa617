"""A made-up person's calendar as it grows: what is in it now, and where its days still have room."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from kinfolk_assistant.features.past import Engagement, Past, SeenObject
from kinfolk_assistant.meeting import CalendarObject, in_utc

_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
_MINUTES_A_DAY = 24 * 60


class Taken(NamedTuple):
    """A stretch of one day, in minutes after midnight, that something takes."""

    start: int
    end: int
    recurring: bool


class Diary(Past):
    """The calendar as it stands at the moment that the telling of a life has reached.

    For `feature_row` it is a `Past` of which everything is known; unlike one it changes.

    Examples
    --------
    >>> from kinfolk_assistant.meeting import Meeting
    >>> diary = Diary("una@sri.example", ZoneInfo("America/Los_Angeles"))
    >>> diary.put(CalendarObject("", (Meeting("1", date(2026, 3, 5), date(2026, 3, 6)),), ""))
    >>> diary.on(date(2026, 3, 5))
    [Taken(start=0, end=1440, recurring=False)]
    >>> diary.remove("1")
    >>> diary.on(date(2026, 3, 5))
    []
    """

    def __init__(self, owner: str, zone: ZoneInfo) -> None:
        super().__init__([], owner, zone)
        self.owner = owner
        self.zone = zone
        self._once: dict[str, list[Engagement]] = {}
        self._often: dict[str, Past] = {}

    def put(self, one: CalendarObject) -> None:
        """Enter an object, in the place of the version of it that there was."""
        uid = one.meetings[0].uid
        self.remove(uid)
        past = Past([SeenObject(one, seen_at=_FIRST)], self.owner, self.zone)
        if any(meeting.repeats for meeting in one.meetings):
            self._often[uid] = past
        else:
            self._once[uid] = past.between(_FIRST, _LAST)

    def remove(self, uid: str) -> None:
        """Strike an object out, if it is there."""
        self._once.pop(uid, None)
        self._often.pop(uid, None)

    def between(self, start: datetime, end: datetime) -> list[Engagement]:
        """Give the engagements that overlap some time."""
        once = [one for held in self._once.values() for one in held if one.start < end and one.end > start]
        return once + [one for past in self._often.values() for one in past.between(start, end)]

    def on(self, day: date) -> list[Taken]:
        """Give what takes time of a day."""
        midnight = self.moment(day, 0)
        found = self.at(midnight).between(midnight, midnight + timedelta(days=1)).known
        return sorted(
            Taken(max(0, self._minute(one.start, day)), min(_MINUTES_A_DAY, self._minute(one.end, day)), one.recurring)
            for one in found
        )

    def moment(self, day: date, minute: int) -> datetime:
        """Give a minute of the owner's day in UTC."""
        return in_utc(datetime.combine(day, time()) + timedelta(minutes=minute), self.zone)

    def _minute(self, moment: datetime, day: date) -> int:
        clock = moment.astimezone(self.zone).replace(tzinfo=None) - datetime.combine(day, time())
        return int(clock / timedelta(minutes=1))
