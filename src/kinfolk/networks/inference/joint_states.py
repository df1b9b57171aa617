"""The best states of one pair of variables in several tasks, for each way in which structures are held together.

A way is two kernels: what the pair's states cost, and the best new states with their gains less that cost. Searches are
compiled for the way that is asked for alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.networks.inference.branch_and_bound import bound_paired
from kinfolk.networks.model.configurations import best_edit, best_paired, edits, paired_penalty, weighted
from kinfolk.networks.model.family_scores import TIE
from kinfolk.networks.model.kernels import spliced
from kinfolk.networks.model.priors import EditPrior, PairedByTasksPrior, PairedPrior, Prior

Whole = NDArray[np.int64]


@spliced
def _best_alone(gains: NDArray[np.float64], current: Whole, out: Whole) -> float:
    """Find the best new state of a single task, which costs nothing."""
    best = -np.inf
    for s in range(3):
        if s != current[0] and gains[0, s] > best + TIE:
            best, out[0] = gains[0, s], s
    return best


@compiled
def edit_cost(prior: Prior, tasks: Whole, states: Whole, i: int, j: int) -> float:
    """What the Edit prior takes off for a pair's states (eq. 7)."""
    return weighted(prior.penalty[i, j], edits(states, prior.costs))


@compiled
def best_by_edits(
    prior: Prior, tasks: Whole, gains: NDArray[np.float64], current: Whole, i: int, j: int, out: Whole
) -> float:
    """Find the best new states of a pair under the Edit prior."""
    if len(tasks) == 1:
        return float(_best_alone(gains, current, out))
    return best_edit(gains, current, prior.penalty[i, j], prior.costs, True, out)


@compiled
def paired_cost(prior: Prior, tasks: Whole, states: Whole, i: int, j: int) -> float:
    """What the Paired prior takes off for a pair's states (eq. 8)."""
    return weighted(prior.penalty[i, j], paired_penalty(states, prior.costs))


@compiled
def best_by_pairs(
    prior: Prior, tasks: Whole, gains: NDArray[np.float64], current: Whole, i: int, j: int, out: Whole
) -> float:
    """Find the best new states of a pair under the Paired prior."""
    if len(tasks) == 1:
        return float(_best_alone(gains, current, out))
    return best_paired(gains, current, prior.penalty[i, j], prior.costs, True, out)


@compiled
def by_tasks_cost(prior: Prior, tasks: Whole, states: Whole, i: int, j: int) -> float:
    """What the Paired prior takes off with a penalty for each pair of tasks."""
    total = 0.0
    for a in range(len(tasks)):
        for b in range(a):
            total += weighted(prior.between[tasks[a], tasks[b]], prior.costs[states[a], states[b]])
    return weighted(prior.penalty[i, j], total)


# Searches that make no arrays call this, which does.
@compiled(_nrt=True)
def best_by_tasks(
    prior: Prior, tasks: Whole, gains: NDArray[np.float64], current: Whole, i: int, j: int, out: Whole
) -> float:
    """Find the best new states of a pair under the Paired prior with a penalty for each pair of tasks."""
    k = len(tasks)
    if k == 1:
        return float(_best_alone(gains, current, out))
    between = np.zeros((k, k))
    for a in range(k):
        for b in range(k):
            between[a, b] = weighted(prior.penalty[i, j], prior.between[tasks[a], tasks[b]])
    value, _ = bound_paired(gains, current, between, prior.costs, True, out)
    return value


class Way(NamedTuple):
    """One way to hold structures together: the type of its prior, and its two kernels."""

    prior: type
    cost: Any
    best: Any


WAYS = (
    Way(EditPrior, edit_cost, best_by_edits),
    Way(PairedPrior, paired_cost, best_by_pairs),
    Way(PairedByTasksPrior, by_tasks_cost, best_by_tasks),
)


def cost_of(prior: Prior, tasks: Whole, states: Whole, i: int, j: int) -> float:
    """What a prior takes off for one pair's states in the tasks that have it."""
    way = next(way for way in WAYS if isinstance(prior, way.prior))
    return float(way.cost(prior, tasks, states, i, j))


def best_states(
    prior: Prior, tasks: Whole, gains: NDArray[np.float64], current: Whole, i: int, j: int, out: Whole
) -> float:
    """Find the best new states of one pair in the tasks that have it; return their gains less what they cost."""
    way = next(way for way in WAYS if isinstance(prior, way.prior))
    return float(way.best(prior, tasks, gains, current, i, j, out))


# A kernel takes the way from the type of its prior. Handed over as arguments, kernels would be looked for anew at every
# call of one that was loaded from the cache.
@overload(cost_of)
def _cost_of(prior: Any, tasks: Any, states: Any, i: Any, j: Any) -> Any:
    cost = next(way.cost for way in WAYS if prior.instance_class is way.prior)

    def by_way(prior: Any, tasks: Any, states: Any, i: Any, j: Any) -> Any:
        return cost(prior, tasks, states, i, j)

    return by_way


@overload(best_states)
def _best_states(prior: Any, tasks: Any, gains: Any, current: Any, i: Any, j: Any, out: Any) -> Any:
    best = next(way.best for way in WAYS if prior.instance_class is way.prior)

    def by_way(prior: Any, tasks: Any, gains: Any, current: Any, i: Any, j: Any, out: Any) -> Any:
        return best(prior, tasks, gains, current, i, j, out)

    return by_way
