"""What stands in a made-up person's calendar without anybody having asked for it: weekly meetings and trips."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from kinfolk.datasets.meetings import MEETING_FEATURES
from kinfolk_assistant.demo.circle import Circle
from kinfolk_assistant.demo.text import calendar_object, utc_text
from kinfolk_assistant.meeting import CalendarObject, Meeting

_WEEK, _DAY = timedelta(days=7), timedelta(days=1)
_STARTS = (time(9, 30), time(11), time(13), time(14, 30), time(16))


def any_level(rng: np.random.Generator) -> str:
    """Draw how important a topic is."""
    levels = MEETING_FEATURES["topic_importance"]
    return levels[rng.integers(len(levels))]


def standing(
    circle: Circle, begin: datetime, now: datetime, n_weekly: int, n_trips: int, rng: np.random.Generator
) -> Iterator[CalendarObject]:
    """Make up the weekly meetings of some months, each with weeks left out and one moved by a day, and some trips."""
    zone = ZoneInfo(circle.institution.zone)
    first = begin.astimezone(zone).date() - 3 * _WEEK
    n_weeks = max((now - begin) // _WEEK, 3)
    for number in rng.permutation(5 * len(_STARTS))[:n_weekly].tolist():
        weekday, part = divmod(number, len(_STARTS))
        start = datetime.combine(first + timedelta(days=(weekday - first.weekday()) % 7), _STARTS[part], zone)
        length = timedelta(minutes=int(rng.choice((30, 60, 90))))
        made = begin - 20 * _DAY
        series = Meeting(
            f"weekly-{number}-{circle.owner}",
            start,
            start + length,
            stamp=made,
            created=made,
            summary=f"Weekly, {circle.summary(any_level(rng), rng).lower()}",
            location=circle.place(False, rng),
            repeats="FREQ=WEEKLY",
        )
        off, off_too, moved = (start + (4 + week) * _WEEK for week in rng.permutation(n_weeks)[:3].tolist())
        another_day = replace(
            series,
            start=moved + _DAY,
            end=moved + _DAY + length,
            recurrence_id=utc_text(moved),
            sequence=1,
            stamp=(min(now, moved) - 3 * _DAY).astimezone(UTC),
            repeats="",
        )
        yield calendar_object([series, another_day], left_out=[off, off_too])
    for number in range(n_trips):
        day = (begin + (now - begin) * float(rng.random())).astimezone(zone).date()
        made = begin - 10 * _DAY
        trip = Meeting(
            f"trip-{number}-{circle.owner}",
            day,
            day + timedelta(days=int(rng.integers(1, 4))),
            stamp=made,
            created=made,
            summary=circle.summary(any_level(rng), rng),
            location=circle.place(True, rng),
            # Programs differ in whether they enter whole days as time that is taken.
            transparent=bool(rng.random() < 0.5),
        )
        yield calendar_object([trip])
