"""The probabilities beyond which costs decide without asking: equation 3.1 of Roy (2006), with asking as an action."""

from __future__ import annotations

from typing import NamedTuple

from kinfolk_assistant.learning.costs import Costs


class Limits(NamedTuple):
    """Declined below the one, accepted above the other, asked between."""

    decline_below: float
    accept_above: float


def limits(costs: Costs) -> Limits:
    """Turn costs into the probabilities of "accept" where the action changes.

    Accepting costs (1 − p)·a, declining p·d, asking c: accepting is best where p is above both a / (a + d), where it
    costs what declining does, and 1 − c / a, where it costs what asking does; declining likewise.

    Examples
    --------
    >>> limits(Costs(false_accept=1.0, false_decline=1.0, ask=0.25))
    Limits(decline_below=0.25, accept_above=0.75)
    >>> limits(Costs(false_accept=3.0, false_decline=1.0, ask=1.0))
    Limits(decline_below=0.75, accept_above=0.75)
    """
    accept, decline, ask = costs
    even = accept / (accept + decline) if accept + decline else 0.0
    return Limits(
        min(even, ask / decline) if decline else even,
        max(even, 1.0 - ask / accept) if accept else even,
    )
