"""The best states of one pair of variables in several tasks, for each way in which structures are held together.

A way is two kernels: what the pair's states cost, and the best new states with their gains less that cost. Searches are
compiled for the way that is asked for alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.networks.inference.branch_and_bound import bound_paired
from kinfolk.networks.inference.problem import TIE
from kinfolk.networks.model.configurations import best_edit, best_paired, edits, paired_penalty, weighted
from kinfolk.networks.model.kernels import spliced
from kinfolk.networks.model.priors import Terms

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
def edit_cost(terms: Terms, tasks: Whole, states: Whole, i: int, j: int) -> float:
    """What the Edit prior takes off for a pair's states (eq. 7)."""
    return weighted(terms.penalty[i, j], edits(states, terms.costs))


@compiled
def best_by_edits(
    terms: Terms, tasks: Whole, gains: NDArray[np.float64], current: Whole, i: int, j: int, out: Whole
) -> float:
    """Find the best new states of a pair under the Edit prior."""
    if len(tasks) == 1:
        return float(_best_alone(gains, current, out))
    return best_edit(gains, current, terms.penalty[i, j], terms.costs, True, out)


@compiled
def paired_cost(terms: Terms, tasks: Whole, states: Whole, i: int, j: int) -> float:
    """What the Paired prior takes off for a pair's states (eq. 8)."""
    return weighted(terms.penalty[i, j], paired_penalty(states, terms.costs))


@compiled
def best_by_pairs(
    terms: Terms, tasks: Whole, gains: NDArray[np.float64], current: Whole, i: int, j: int, out: Whole
) -> float:
    """Find the best new states of a pair under the Paired prior."""
    if len(tasks) == 1:
        return float(_best_alone(gains, current, out))
    return best_paired(gains, current, terms.penalty[i, j], terms.costs, True, out)


@compiled
def by_tasks_cost(terms: Terms, tasks: Whole, states: Whole, i: int, j: int) -> float:
    """What the Paired prior takes off with a penalty for each pair of tasks."""
    total = 0.0
    for a in range(len(tasks)):
        for b in range(a):
            total += weighted(terms.between[tasks[a], tasks[b]], terms.costs[states[a], states[b]])
    return weighted(terms.penalty[i, j], total)


@compiled
def best_by_tasks(
    terms: Terms, tasks: Whole, gains: NDArray[np.float64], current: Whole, i: int, j: int, out: Whole
) -> float:
    """Find the best new states of a pair under the Paired prior with a penalty for each pair of tasks."""
    k = len(tasks)
    if k == 1:
        return float(_best_alone(gains, current, out))
    between = np.zeros((k, k))
    for a in range(k):
        for b in range(k):
            between[a, b] = weighted(terms.penalty[i, j], terms.between[tasks[a], tasks[b]])
    value, _ = bound_paired(gains, current, between, terms.costs, True, out)
    return value


JOINT_STATES: dict[str, tuple[Any, Any]] = {
    "edit": (edit_cost, best_by_edits),
    "paired": (paired_cost, best_by_pairs),
    "by_tasks": (by_tasks_cost, best_by_tasks),
}
