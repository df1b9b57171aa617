"""Structures from rows with missing values: structural EM (Friedman 1998), for all tasks at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.cases import lay_out
from kinfolk.networks.completion import completions
from kinfolk.networks.fitting import Outcome, Plan, learn_structures
from kinfolk.networks.network import Network
from kinfolk.networks.parameters import network_of_task

MOST_ROUNDS = 25


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

    The first networks have no arcs and tables from the values that are there. A structure that came up before ends the
    rounds too: where completions are drawn rather than listed, the last few may take turns.
    """
    n = len(cards)
    structures = np.zeros((len(codes), n, n), dtype=bool)
    networks = [
        network_of_task(structures[t], codes[t], cards, here, plan.criterion, plan.ess)
        for t, here in enumerate(present)
    ]
    seen: set[bytes] = set()
    outcome = Outcome(structures, -np.inf, 0.0)
    filled, weights, n_rounds = list(codes), [np.ones(len(table)) for table in codes], 0
    while n_rounds < MOST_ROUNDS:
        n_rounds += 1
        # The same draws in every round, so that only what was learnt makes a difference.
        rng = np.random.default_rng(seed)
        for t, table in enumerate(codes):
            filled[t], weights[t] = _complete(networks[t], table, present[t], rng)
        cases = lay_out(filled, cards, present, weights)
        outcome = learn_structures(plan._replace(starts=_restart(plan, structures)), cases, seed)
        structures = outcome.structures
        networks = [
            network_of_task(structures[t], filled[t], cards, here, plan.criterion, plan.ess, weights[t])
            for t, here in enumerate(present)
        ]
        advance(1)
        key = structures.tobytes()
        if key in seen:
            break
        seen.add(key)
    return Filled(outcome, filled, weights, n_rounds)


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
