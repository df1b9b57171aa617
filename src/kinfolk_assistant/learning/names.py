"""How people answer what certain organisers, domains and words stand on: rates, shrunk towards those of others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from kinfolk_assistant.features.office import NAMES

Counts = dict[str, dict[str, list[int]]]
"""For each name, and each user who was asked in it, how often they accepted and declined."""

# Pseudo-answers: what others answer counts as so many of one's own, and one's general habit as so many of others'.
_OTHERS_COUNT, _HABIT_COUNTS = 2.0, 2.0
_LEAST, _MOST = 0.02, 0.98


class NameRates(NamedTuple):
    """How often users accept at all, and what organisers, domains and words of titles stand on."""

    habits: dict[str, float]
    """Each user's share of yeses, shrunk towards the team's, which stands under ""."""
    counts: dict[str, Counts]

    @classmethod
    def of(cls, rows: Iterable[tuple[str, Mapping[str, str | None], bool]]) -> NameRates:
        """Count the answers of users: who was asked, what the request names, and whether it was accepted."""
        counts: dict[str, Counts] = {kind: {} for kind in NAMES}
        totals: dict[str, list[int]] = {}
        for user, values, accepted in rows:
            totals.setdefault(user, [0, 0])[not accepted] += 1
            for kind in NAMES:
                for name in _names_in(kind, values):
                    counts[kind].setdefault(name, {}).setdefault(user, [0, 0])[not accepted] += 1
        yes, no = (sum(both[side] for both in totals.values()) for side in (0, 1))
        team = (yes + 1.0) / (yes + no + 2.0)
        habits = {user: (both[0] + 4.0 * team) / (sum(both) + 4.0) for user, both in totals.items()}
        return cls({"": team} | habits, counts)

    def columns(self, user: str, values: Mapping[str, str | None], *, without: bool | None = None) -> tuple[float, ...]:
        """Give what the names of a request add to the log odds of a user's habit, one number for each of `NAMES`.

        Parameters
        ----------
        user : str
            The person asked.
        values : mapping
            What the request names.
        without : bool, optional
            The answer to this very request, where it is among those counted: it is left out.
        """
        habit = self.habits.get(user, self.habits[""])
        return tuple(
            _together([self._log_odds(kind, name, user, habit, without) for name in _names_in(kind, values)])
            for kind in NAMES
        )

    def _log_odds(self, kind: str, name: str, user: str, habit: float, without: bool | None) -> float:
        seen = self.counts[kind].get(name, {})
        yes, no = seen.get(user, (0, 0))
        if without is not None:
            yes, no = yes - without, no - (not without)
        others_yes = sum(both[0] for other, both in seen.items() if other != user)
        others = sum(sum(both) for other, both in seen.items() if other != user)
        by_others = (others_yes + _HABIT_COUNTS * habit) / (others + _HABIT_COUNTS)
        rate = (yes + _OTHERS_COUNT * by_others) / (yes + no + _OTHERS_COUNT)
        rate = min(max(rate, _LEAST), _MOST)
        return math.log(rate / (1.0 - rate)) - math.log(habit / (1.0 - habit))


def _names_in(kind: str, values: Mapping[str, str | None]) -> Sequence[str]:
    told = values.get(kind)
    return () if told is None else told.split() if kind == "title" else (told,)


def _together(added: Sequence[float]) -> float:
    # Words of one title say the same thing in part: several count for more than one, but not for all of them.
    return sum(added) / math.sqrt(len(added)) if added else 0.0
