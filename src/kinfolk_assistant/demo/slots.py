"""Where in a calendar an invitation falls, and what the day around it must hold for its features to be as intended.

`make_meetings` draws rows of features; a calendar cannot be drawn so. Here a row is an intention: the slot is sought
that fits it best, and engagements of the person's own are put beside it. What comes out is near the intention, and it
is what `feature_row` makes of the calendar that counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import NamedTuple

import numpy as np

from kinfolk_assistant.demo.diary import Diary, Taken

Intended = Mapping[str, str]

# Minutes after midnight; the parts of the day as the rule for "start_time" cuts them, less what is too early or late.
_PARTS = {"early": (420, 540), "morning": (540, 690), "mid": (690, 810), "afternoon": (810, 990), "late": (990, 1110)}
_LENGTHS = {"15": (15,), "30": (30, 30, 25), "60": (45, 60, 60), "longer": (90, 120)}
_DAYS_AHEAD = {"0": (0,), "1": (1,), "3": (2, 3), "7": (4, 5, 6, 7), "later": tuple(range(8, 14))}
_MORNING, _AFTERNOON = (540, 720), (720, 1080)
_LEVELS = ("light", "busy", "booked")
_FREE = {"0": 0, "15": 15, "30": 30, "60": 60, "90": 90, "135": 135, "longer": 240}
_BORDER = 15
_STEP = 15


class Slot(NamedTuple):
    """A stretch of a day, in minutes after midnight."""

    day: date
    start: int
    end: int


class Plan(NamedTuple):
    """An engagement to put beside an invitation; `clashes` says that it stands in the invitation's way."""

    start: int
    end: int
    away: bool
    clashes: bool


def choose_slot(intended: Intended, today: date, minute: int, diary: Diary, rng: np.random.Generator) -> Slot:
    """Choose when the meeting shall be that is asked for on a day, at a minute of it."""
    first, last = _PARTS[intended["start_time"]]
    lengths = _LENGTHS[intended["duration"]]
    length = int(lengths[rng.integers(len(lengths))])
    starts = list(range(first, last, _STEP))
    days = [today + timedelta(days=ahead) for ahead in _DAYS_AHEAD[intended["invitee_soon"]]]
    days = [day for day in days if day.weekday() < 5] or days
    best, choice = np.inf, Slot(days[0], first, first + length)
    for day in rng.permutation(np.array(days, dtype=object))[:5]:
        taken = diary.on(day)
        standing = [one.start for one in taken if one.recurring and first <= one.start < last]
        for start in (*standing, *rng.permutation(starts)[:6].tolist()):
            if day == today and start <= minute + 5:
                continue
            misfit = _misfit(intended, start, start + length, taken) + rng.random()
            if misfit < best:
                best, choice = misfit, Slot(day, start, start + length)
    if choice.day == today and choice.start <= minute + 5:
        # Too late for the part of the day that was meant: as soon as may be.
        start = minute + _STEP - minute % _STEP + _STEP
        choice = Slot(today, start, start + length)
    return choice


def _misfit(intended: Intended, start: int, end: int, taken: Sequence[Taken]) -> float:
    clashing = [one for one in taken if one.start < end and one.end > start]
    misfit = 0.0
    if bool(clashing) != (intended["conflict"] == "yes"):
        # A clash can be added, but none can be taken away.
        misfit += 8 if clashing else 2
    if intended["conflict_frequency"] == "regularly":
        misfit += 0 if any(one.recurring for one in clashing) else 4
    elif any(one.recurring for one in clashing):
        misfit += 4
    for span, feature in ((_half_of(start), "busy_hday"), ((540, 1080), "busy_fday")):
        excess = _level(_sum(taken, span), span) - _LEVELS.index(intended[feature].split("-")[0])
        # Engagements can be added where a day is too empty, but the fewer the better.
        misfit += 3 * excess if excess > 0 else -1.5 * excess
    if not clashing:
        beside = any(one.start <= end + _BORDER and one.end >= start - _BORDER for one in taken)
        misfit += 2 * (beside and intended["location"].endswith("none"))
    return misfit


def furnish(intended: Intended, slot: Slot, taken: Sequence[Taken], rng: np.random.Generator) -> list[Plan]:
    """Plan engagements that bring a day nearer to what is intended; of the slot itself only a clash takes any."""
    plans: list[Plan] = []
    beside = intended["location"].split("-")[1]
    away = beside == "away"
    clashing = any(one.start < slot.end and one.end > slot.start for one in taken)
    if intended["conflict"] == "yes" and not clashing:
        early = int(rng.choice((0, 15, 30)))
        plans.append(Plan(slot.start - early, slot.start + max(15, (slot.end - slot.start) // 2), away, True))
        clashing = True
    free = _FREE[intended["free_slot_time"]]
    before = int(rng.integers(0, free // _STEP + 1)) * _STEP
    quiet = slot.start - before, slot.end + free - before
    if not clashing and free <= 135 and beside != "none":
        length = int(rng.choice((45, 60, 90)))
        for start, end in ((quiet[0] - length, quiet[0]), (quiet[1], quiet[1] + length)):
            if start >= 480 and end <= 1140 and not _meets(start, end, taken, plans):
                plans.append(Plan(start, end, away, False))
    touched = clashing or _meets(slot.start - _BORDER, slot.end + _BORDER, taken, plans)
    if beside != "none" and not touched:
        plans.append(Plan(slot.end, slot.end + 30, away, False))
    half = _half_of(slot.start)
    other = _AFTERNOON if half == _MORNING else _MORNING
    _fill(plans, taken, half, half, intended["busy_hday"], quiet, rng)
    _fill(plans, taken, (540, 1080), other, intended["busy_fday"], quiet, rng)
    return plans


def _fill(
    plans: list[Plan],
    taken: Sequence[Taken],
    span: tuple[int, int],
    within: tuple[int, int],
    busyness: str,
    quiet: tuple[int, int],
    rng: np.random.Generator,
) -> None:
    """Plan engagements within a stretch until a span is as full as meant, or nothing more fits."""
    wanted = _LEVELS.index(busyness.split("-")[0])
    upper = (wanted + 1) * (span[1] - span[0]) // 3
    for _ in range(8):
        held: list[Taken | Plan] = [*taken, *plans]
        filled = _sum(held, span)
        if _level(filled, span) >= wanted:
            return
        gaps = [gap for gap in _gaps([*held, Taken(*quiet, False)], within) if gap[1] - gap[0] >= _STEP]
        if not gaps:
            return
        start, end = max(gaps, key=lambda gap: gap[1] - gap[0])
        needed = wanted * (span[1] - span[0]) // 3 - filled
        length = min(end - start, upper - filled, needed + _STEP * int(rng.integers(1, 4)))
        plans.append(Plan(start, start + length, False, False))


def _half_of(start: int) -> tuple[int, int]:
    return _MORNING if start < _MORNING[1] else _AFTERNOON


def _meets(start: int, end: int, taken: Sequence[Taken], plans: Sequence[Plan]) -> bool:
    return any(one.start < end and one.end > start for held in (taken, plans) for one in held)


def _gaps(held: Sequence[Taken | Plan], span: tuple[int, int]) -> list[tuple[int, int]]:
    gaps, reached = [], span[0]
    by_start: list[Taken | Plan] = sorted(held, key=lambda one: (one.start, one.end))
    for one in by_start:
        gaps.append((reached, min(one.start, span[1])))
        reached = max(reached, min(one.end, span[1]))
    return [gap for gap in (*gaps, (reached, span[1])) if gap[1] > gap[0]]


def _sum(held: Sequence[Taken | Plan], span: tuple[int, int]) -> int:
    """Minutes of a span that are taken, overlapping ones once."""
    return span[1] - span[0] - sum(end - start for start, end in _gaps(held, span))


def _level(filled: int, span: tuple[int, int]) -> int:
    """0 for light, 1 for busy, 2 for booked, as the rules for busy_fday and busy_hday have it."""
    whole = span[1] - span[0]
    return 0 if 3 * filled <= whole else 1 if 3 * filled <= 2 * whole else 2
