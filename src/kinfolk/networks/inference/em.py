"""Structures from rows with missing values: structural EM (Friedman 1998), for all tasks at once.

In the papers: Niculescu-Mizil and Caruana (2012), section 5.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from kinfolk.networks.inference.completions import completions
from kinfolk.networks.inference.structures import Outcome, Plan, learn_structures
from kinfolk.networks.model.cases import lay_out
from kinfolk.networks.model.network import Network
from kinfolk.networks.model.parameters import network_of_task

MOST_ROUNDS = 50
_STILL = 1e-4
# Fewer complete rows say too little about structure to start from.
_FEWEST_COMPLETE = 10


class Filled(NamedTuple):
    """What was learnt, and each task's rows filled in with the weights of their completions."""

    outcome: Outcome
    codes: list[NDArray[np.int32]]
    weights: list[NDArray[np.float64]]
    n_rounds: int


def learn_from_incomplete(
    plan: Plan,
    codes: list[NDArray[np.int32]],
    cards: NDArray[np.int64],
    present: NDArray[np.bool_],
    seed: int,
    advance: Callable[[int], None] = lambda steps: None,
) -> Filled:
    """Fill rows in by the networks so far, learn structures from the weighted rows, and again until they stay.

    The first structures are those of the complete rows, where every task has some, else empty; tables come from the
    values that are there. A structure that came up before ends the search too: where completions are drawn rather than
    listed, the last few may take turns. Tables are then improved alone until they stay.
    """
    structures = _first_structures(plan, codes, cards, present, seed)
    networks = _networks(plan, structures, codes, cards, present, None)
    seen: set[bytes] = set()
    outcome = Outcome(structures, -np.inf, 0.0)
    n_rounds, settled = 0, False
    while n_rounds < MOST_ROUNDS:
        n_rounds += 1
        # The same draws in every round, so that only what was learnt makes a difference.
        rng = np.random.default_rng(seed)
        completed = [_complete(*part, rng) for part in zip(networks, codes, present, strict=True)]
        filled, weights = [rows for rows, _ in completed], [weight for _, weight in completed]
        if not settled:
            cases = lay_out(filled, cards, present, weights)
            outcome = learn_structures(plan._replace(starts=_restart(plan, structures)), cases, seed)
            structures = outcome.structures
            settled = structures.tobytes() in seen
            seen.add(structures.tobytes())
        before, networks = networks, _networks(plan, structures, filled, cards, present, weights)
        advance(1)
        if settled and _change(before, networks) < _STILL:
            break
    else:
        warnings.warn(
            f"Structural EM was still changing the networks after {MOST_ROUNDS} rounds: the last ones are kept. "
            "Fewer missing values, or a smaller max_parents, make it settle.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return Filled(outcome, filled, weights, n_rounds)


def _networks(
    plan: Plan,
    structures: NDArray[np.bool_],
    codes: list[NDArray[np.int32]],
    cards: NDArray[np.int64],
    present: NDArray[np.bool_],
    weights: list[NDArray[np.float64]] | None,
) -> list[Network]:
    return [
        network_of_task(
            structures[t], codes[t], cards, here, plan.criterion, plan.ess, None if weights is None else weights[t]
        )
        for t, here in enumerate(present)
    ]


def _change(before: list[Network], after: list[Network]) -> float:
    """Largest change of a probability; any at all where structures differ."""
    if [network.parents for network in before] != [network.parents for network in after]:
        return np.inf
    return max(
        float(np.abs(old - new).max())
        for one, other in zip(before, after, strict=True)
        for old, new in zip(one.tables, other.tables, strict=True)
    )


def _first_structures(
    plan: Plan, codes: list[NDArray[np.int32]], cards: NDArray[np.int64], present: NDArray[np.bool_], seed: int
) -> NDArray[np.bool_]:
    complete = [table[(table[:, here] >= 0).all(axis=1)] for table, here in zip(codes, present, strict=True)]
    if min(map(len, complete)) < _FEWEST_COMPLETE:
        return np.zeros((len(codes), len(cards), len(cards)), dtype=bool)
    return learn_structures(plan, lay_out(complete, cards, present), seed).structures


def _restart(plan: Plan, structures: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Go on from the last structures unless they are still empty; required arcs are in the plan's own start."""
    return structures if structures.any() else plan.starts


def _complete(
    network: Network, codes: NDArray[np.int32], here: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    own = np.flatnonzero(here)
    found = completions(network, codes[:, own], rng)
    whole = np.full((len(found.codes), len(here)), -1, dtype=np.int32, order="F")
    whole[:, own] = found.codes
    return whole, found.weights
