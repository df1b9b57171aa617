"""A joint search that counts what branch and bound evaluates (Niculescu-Mizil and Caruana, section 3.3, eq. 9 and 10).

The estimator finds the best states of a pair of variables in a faster way, so figure 1 of the paper needs a search of
its own: one plain climb, where the best gain found so far in a step is what bounds have to exceed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.networks.inference.branch_and_bound import bound_edit, bound_paired
from kinfolk.networks.model.configurations import edits, paired_penalty
from kinfolk.networks.model.data import Cases
from kinfolk.networks.model.families import family_gains, room_to_count
from kinfolk.networks.model.family_scores import TIE
from kinfolk.networks.model.priors import edit_costs, pair_costs
from kinfolk.networks.model.scores import CRITERIA

EDIT, PAIRED, PAIRED_AHEAD = "Edit, eq. 9", "Paired, eq. 10", "Paired, looking ahead"
BOUNDS = (EDIT, PAIRED, PAIRED_AHEAD)


class Counted(NamedTuple):
    """Where a search ended, how many steps it took, and how many partial configurations there were in all of them."""

    structures: NDArray[np.bool_]
    n_steps: int
    n_evaluated: int
    n_naive: int


def count_evaluated(
    cases: Cases, start: NDArray[np.bool_], bound: str, strength: float, *, best_first: bool = False, ess: float = 1.0
) -> Counted:
    """Climb with BDeu from given structures of tasks that all have the same variables, and count bounds.

    Parameters
    ----------
    cases : Cases
    start : bool array of shape (n_tasks, n_variables, n_variables)
    bound : str
        One of `BOUNDS`: the prior, and for the Paired prior whether tasks without a state are bounded as in the paper
        or tighter.
    strength : float
        λ = −ln(1 − δ), finite.
    best_first : bool, default=False
        Whether a step takes pairs of variables in the order of their bounds of order 0, the most promising first, or
        in the order of the table. The paper does not say.
    ess : float, default=1.0
        Equivalent sample size.

    Returns
    -------
    Counted
        ``n_naive`` counts the partial configurations that have no cycle, of order 1 or more, over all steps, the last
        included, which finds nothing better.
    """
    k, n = start.shape[:2]
    score = CRITERIA["bdeu"].make(ess, cases.total_weight, cases.n_parts)
    structures = start.copy()
    gains = np.full((k, n, n), -np.inf)
    for task in range(k):
        for child in range(n):
            _refresh(cases, score, task, child, structures[task], gains[task])
    i, j = np.triu_indices(n, 1)
    costs = edit_costs() if bound == EDIT else pair_costs()
    penalty = strength if bound == EDIT else strength / max(k - 1, 1)
    n_steps = n_evaluated = n_naive = 0
    while True:
        current = (structures[:, i, j] + 2 * structures[:, j, i]).astype(np.int64).T.copy()
        of_states = np.stack([_state_gains(structures[t], gains[t], i, j) for t in range(k)], axis=1)
        n_naive += int(np.isfinite(of_states).sum(axis=2).cumprod(axis=1).sum())
        paid = penalty * _count(current, costs, bound == EDIT)
        order = (
            np.argsort(-(of_states.max(axis=2).sum(axis=1) + paid), kind="stable") if best_first else np.arange(len(i))
        )
        place, states, evaluated = _scan(of_states, current, order, paid, penalty, costs, BOUNDS.index(bound))
        n_evaluated += evaluated
        if place < 0:
            return Counted(structures, n_steps, n_evaluated, n_naive)
        n_steps += 1
        a, b = int(i[place]), int(j[place])
        for t in np.flatnonzero(states != current[place]).tolist():
            structures[t, a, b], structures[t, b, a] = states[t] == 1, states[t] == 2
            _refresh(cases, score, t, a, structures[t], gains[t])
            _refresh(cases, score, t, b, structures[t], gains[t])


def _refresh(
    cases: Cases, score: Any, task: int, child: int, structure: NDArray[np.bool_], gains: NDArray[np.float64]
) -> None:
    """Renew what each other variable would gain as a parent of one, or lose as one no more."""
    parents = np.flatnonzero(structure[:, child])
    candidates = ~structure[:, child]
    candidates[child] = False
    column = np.empty(len(structure))
    family_gains(cases, score, task, child, parents, candidates, room_to_count(cases), column)
    gains[:, child] = column


def _state_gains(
    structure: NDArray[np.bool_], gains: NDArray[np.float64], i: NDArray[np.int64], j: NDArray[np.int64]
) -> NDArray[np.float64]:
    """What one task gains by each state of every pair: no arc, i → j, j → i; −inf where that closes a cycle."""
    reaches = _paths(structure)
    detour = reaches.astype(np.float32) @ structure > 0  # a path of two arcs or more
    along, against = structure[i, j], structure[j, i]
    of_along, of_against = gains[i, j], gains[j, i]
    out = np.empty((len(i), 3))
    out[:, 0] = np.where(along, of_along, np.where(against, of_against, 0.0))
    out[:, 1] = np.where(along, 0.0, of_along + np.where(against, of_against, 0.0))
    out[:, 2] = np.where(against, 0.0, of_against + np.where(along, of_along, 0.0))
    out[np.where(against, detour[j, i], reaches[j, i]), 1] = -np.inf
    out[np.where(along, detour[i, j], reaches[i, j]), 2] = -np.inf
    return out


def _paths(structure: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which variable (row) has a path of one arc or more to which (column)."""
    reaches = structure
    while True:
        further = reaches | (reaches.astype(np.float32) @ reaches > 0)
        if np.array_equal(further, reaches):
            return reaches
        reaches = further


@compiled
def _count(current, costs, edit):  # type: ignore[no-untyped-def]
    """What the present states of every pair cost, in edits or in differences between tasks."""
    out = np.zeros(len(current))
    for pair in range(len(current)):
        out[pair] = edits(current[pair], costs) if edit else paired_penalty(current[pair], costs)
    return out


@compiled
def _scan(gains, current, order, paid, penalty, costs, bound):  # type: ignore[no-untyped-def]
    """Find the pair and the states with the highest gain above zero; also count the bounds that were evaluated.

    The place of the pair is −1 where nothing gains.
    """
    k = current.shape[1]
    best, place, n_evaluated = 0.0, -1, 0
    chosen, states = np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64)
    penalties = np.full((k, k), penalty)
    for t in range(k):
        penalties[t, t] = 0.0
    for pair in order:
        # A move's gain is what its states are worth, and the penalty that the present ones pay.
        floor = best + TIE - paid[pair]
        if bound == 0:
            value, n = bound_edit(gains[pair], current[pair], penalty, costs, True, states, floor)
        else:
            value, n = bound_paired(gains[pair], current[pair], penalties, costs, True, states, floor, bound == 2)
        n_evaluated += n
        if value + paid[pair] > best + TIE:
            best, place = value + paid[pair], pair
            chosen[:] = states
    return place, chosen, n_evaluated
