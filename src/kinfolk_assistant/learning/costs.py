"""What a wrong answer, and a question, cost a user (Roy 2006, table 3.1 and equation 3.1)."""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

from kinfolk.decisions.losses import Loss

ANSWERS = ("accept", "decline")
"""What a user can answer: the classes that are learnt, in the order in which the archive of a model has them."""

# The first of several equally good actions is taken: a tie is put before the user, and equation 3.1 accepts only
# where the probability exceeds its threshold.
_ACTIONS = ("ask", "decline", "accept")


class Costs(NamedTuple):
    """What one user loses by a meeting accepted or declined wrongly, and by being asked.

    Examples
    --------
    >>> from kinfolk.decisions import decide
    >>> loss = Costs(false_accept=3.0, false_decline=1.0, ask=1.0).loss()
    >>> decide([[0.5, 0.5], [0.7, 0.3], [0.8, 0.2]], loss, classes=ANSWERS).tolist()
    ['decline', 'decline', 'accept']
    """

    false_accept: float = 1.0
    false_decline: float = 1.0
    ask: float = 0.1

    def loss(self) -> Loss:
        """Give them as a table of every action under every answer that the user would have given.

        Raises
        ------
        ValueError
            If a cost is negative, infinite or no number.
        """
        for name, cost in self._asdict().items():
            if not isfinite(cost) or cost < 0:
                raise ValueError(f"The cost {name} is {cost}; it needs to be a finite number, zero or more.")
        accepted = [self.ask, self.false_decline, 0.0]
        declined = [self.ask, 0.0, self.false_accept]
        return Loss([accepted, declined], classes=ANSWERS, actions=_ACTIONS)
