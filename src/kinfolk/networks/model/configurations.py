"""The best states of one pair of variables in all tasks, exactly, under the Edit and Paired priors (eq. 7, 8).

For variables i < j, task t is in state 0 (no arc), 1 (i → j) or 2 (j → i). ``gains[t, s]`` is what the task's own score
gains by moving to s: 0 for its current state, −inf where the move is forbidden. The prior takes away λ for each edit,
and what remains is to choose a state for every task, all at once, out of 3^k configurations:

- Edit: edits(s) = min_c Σ_t cost(c, s_t), the price of turning one consensus state c into every task's own. The two
  maxima change places, so max_s [Σ_t g − λ edits(s)] = max_c Σ_t max_s [g[t, s] − λ cost(c, s)]: nine terms a task.
- Paired: Σ_{s<t} d(s_s, s_t) depends only on how many tasks are in each state, d₀₁n₀n₁ + d₀₂n₀n₂ + d₁₂n₁n₂, so a
  dynamic programme over the counts (n₁, n₂) is exact.

An infinite penalty (δ = 1) leaves only configurations that cost nothing; an edit of cost 0 is free even then.

Ties are broken by one rule: candidates come in a fixed order, and a later one wins only if it is better by more than
``TOLERANCE``, so that the order in which rounding errors add up cannot change the choice. A task's states come with the
current one first, then 0, 1, 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.networks.model.kernels import inner, int64, spliced

TOLERANCE = 1e-9


@compiled
def weighted(penalty: float, cost: float) -> float:
    """Product of the two, where what costs nothing stays free under an infinite penalty."""
    return 0.0 if cost == 0.0 else penalty * cost


@compiled
def preferred(value0: float, value1: float, value2: float, current: int) -> tuple[int, float]:
    """Best of three states and its value: the current one, then 0, 1, 2, each only if better by more than TOLERANCE."""
    state = current
    value = value0 if current == 0 else (value1 if current == 1 else value2)
    if value0 > value + TOLERANCE:
        state, value = 0, value0
    if value1 > value + TOLERANCE:
        state, value = 1, value1
    if value2 > value + TOLERANCE:
        state, value = 2, value2
    return state, value


@compiled
def edits(states: NDArray[np.integer[Any]], costs: NDArray[np.float64]) -> float:
    """Cost of the edits that make all tasks' states the same: min over c of Σ_t costs[c, states[t]] (eq. 7).

    Parameters
    ----------
    states : ndarray of int, shape (k,)
        State of each task.
    costs : ndarray of shape (3, 3)
        As ``priors.edit_costs`` makes them.

    Returns
    -------
    float

    Examples
    --------
    >>> from kinfolk.networks.model.priors import edit_costs
    >>> float(edits(np.array([1, 1, 0, 2]), edit_costs()))
    2.0
    """
    least = np.inf
    for c in range(3):
        total = 0.0
        for t in range(len(states)):
            total += costs[c, states[t]]
        least = min(least, total)
    return least


@compiled
def best_edit(
    gains: NDArray[np.float64],
    current: NDArray[np.integer[Any]],
    penalty: float,
    costs: NDArray[np.float64],
    must_change: bool,
    states_out: NDArray[np.integer[Any]],
) -> float:
    """Maximise Σ_t gains[t, s_t] − penalty · edits(s) over all configurations, exactly, in O(9k).

    Consensus states are tried in the order 0, 1, 2. Where something must change and a consensus would leave all as it
    is, the change that loses least is made, that of the earliest task and lowest state among equals.

    Parameters
    ----------
    gains : ndarray of shape (k, 3)
        Gain of each task in each state, −inf where it may not go.
    current : ndarray of int, shape (k,)
        State of each task now.
    penalty : float
        λ = −ln(1 − δ); may be infinite.
    costs : ndarray of shape (3, 3)
        As ``priors.edit_costs`` makes them.
    must_change : bool
        Whether at least one task has to leave its current state.
    states_out : ndarray of int, shape (k,)
        Filled with the best states, or with the current ones if no configuration is allowed.

    Returns
    -------
    float
        The maximum, −inf if no configuration is allowed.

    Examples
    --------
    Two tasks gain by the arc; the third would rather not have it, but less than a disagreement costs:

    >>> from kinfolk.networks.model.priors import edit_costs
    >>> gains = np.array([[0.0, 4.0, 3.0], [0.0, 2.0, 3.0], [0.0, -0.5, -1.0]])
    >>> states = np.zeros(3, dtype=np.int64)
    >>> best_edit(gains, np.zeros(3, dtype=np.int64), 2.0, edit_costs(), False, states), states
    (5.5, array([1, 1, 1]))
    """
    best = -np.inf
    best_consensus = best_deviant = int64(-1)
    for c in range(3):
        total = 0.0
        owed = must_change
        least_loss = np.inf
        deviant = int64(-1)
        for t in range(len(gains)):
            value0, value1, value2 = _under(c, gains, t, penalty, costs)
            state, value = preferred(value0, value1, value2, current[t])
            total += value
            if total == -np.inf:
                break
            if state != current[t]:
                owed = False
            elif owed:
                loss = value - _second(value0, value1, value2, current[t])[1]
                if loss < least_loss - TOLERANCE:
                    least_loss, deviant = loss, t
        if owed:
            total -= least_loss
        if total > best + TOLERANCE:
            best, best_consensus, best_deviant = total, c, deviant if owed else int64(-1)
    for t in range(len(gains)):
        states_out[t] = current[t]
        if best_consensus >= 0:
            value0, value1, value2 = _under(best_consensus, gains, t, penalty, costs)
            if t == best_deviant:
                states_out[t] = _second(value0, value1, value2, current[t])[0]
            elif best_deviant < 0:
                states_out[t] = preferred(value0, value1, value2, current[t])[0]
    return best


@spliced
def _under(
    consensus: int, gains: NDArray[np.float64], t: int, penalty: float, costs: NDArray[np.float64]
) -> tuple[float, float, float]:
    """Gains of task t's three states, less what each costs under a consensus."""
    return (
        gains[t, 0] - weighted(penalty, costs[consensus, 0]),
        gains[t, 1] - weighted(penalty, costs[consensus, 1]),
        gains[t, 2] - weighted(penalty, costs[consensus, 2]),
    )


@inner
def _second(value0: float, value1: float, value2: float, current: int) -> tuple[int, float]:
    """Best of the two states that are not the current one, and its value; −inf if neither is allowed."""
    if current == 0:
        return preferred(-np.inf, value1, value2, current)
    if current == 1:
        return preferred(value0, -np.inf, value2, current)
    return preferred(value0, value1, -np.inf, current)


@compiled
def paired_penalty(states: NDArray[np.integer[Any]], costs: NDArray[np.float64]) -> float:
    """Differences between all pairs of tasks, Σ_{s<t} costs[states[s], states[t]] (eq. 8), from counts of states.

    Parameters
    ----------
    states : ndarray of int, shape (k,)
        State of each task.
    costs : ndarray of shape (3, 3)
        As ``priors.pair_costs`` makes them.

    Returns
    -------
    float

    Examples
    --------
    >>> from kinfolk.networks.model.priors import pair_costs
    >>> paired_penalty(np.array([1, 1, 0, 2]), pair_costs())
    7.0
    """
    n1 = n2 = 0
    for t in range(len(states)):
        n1 += states[t] == 1
        n2 += states[t] == 2
    n0 = len(states) - n1 - n2
    return float(costs[0, 1] * (n0 * n1) + costs[0, 2] * (n0 * n2) + costs[1, 2] * (n1 * n2))


# Searches that make no arrays call this, which does.
@compiled(_nrt=True)
def best_paired(
    gains: NDArray[np.float64],
    current: NDArray[np.integer[Any]],
    penalty: float,
    costs: NDArray[np.float64],
    must_change: bool,
    states_out: NDArray[np.integer[Any]],
) -> float:
    """Maximise Σ_t gains[t, s_t] − penalty · Σ_{s<t} d(s_s, s_t) over all configurations, exactly, in O(k³).

    Counts are tried in the order of n₂, then of n₁, so that of two equal arcs the first wins. With a penalty of 0, or
    one that forces all tasks into one state, the consensus of ``best_edit`` says the same in O(9k), and its order of
    ties holds.

    Parameters
    ----------
    gains, current, must_change, states_out
        As in ``best_edit``.
    penalty : float
        Of each unit of difference between two tasks: −ln(1 − δ) / (k − 1); may be infinite.
    costs : ndarray of shape (3, 3)
        As ``priors.pair_costs`` makes them.

    Returns
    -------
    float
        The maximum, −inf if no configuration is allowed.

    Examples
    --------
    >>> from kinfolk.networks.model.priors import pair_costs
    >>> gains = np.array([[0.0, 4.0, 3.0], [0.0, 2.0, 2.25], [0.0, -1.0, -1.0]])
    >>> states = np.zeros(3, dtype=np.int64)
    >>> best_paired(gains, np.zeros(3, dtype=np.int64), 0.25, pair_costs(), False, states), states
    (5.5, array([1, 1, 0]))
    """
    all_cost = costs[0, 1] > 0.0 and costs[0, 2] > 0.0 and costs[1, 2] > 0.0
    if penalty == 0.0 or (penalty == np.inf and all_cost):
        return best_edit(gains, current, penalty, costs, must_change, states_out)
    k = len(gains)
    # best[n1, n2]: highest gain of the tasks so far with those counts, among configurations that have changed something
    # where something must change. The one that has not is held apart, as its gain `stay` and its counts (m1, m2).
    best = np.full((k + 1, k + 1), -np.inf)
    if not must_change:
        best[0, 0] = 0.0
    # The last task's state on the way to each cell; 3 more if that task is the first to change.
    came_by = np.empty((k, k + 1, k + 1), dtype=np.int8)
    stay, m1, m2 = 0.0, 0, 0
    for t in range(k):
        here = current[t]
        gain0, gain1, gain2 = gains[t, 0], gains[t, 1], gains[t, 2]
        # Downwards, so that a cell's predecessors still belong to the tasks before t.
        for n1 in range(t + 1, -1, -1):
            for n2 in range(t + 1 - n1, -1, -1):
                value0 = best[n1, n2] + gain0
                value1 = best[n1 - 1, n2] + gain1 if n1 > 0 else -np.inf
                value2 = best[n1, n2 - 1] + gain2 if n2 > 0 else -np.inf
                came_by[t, n1, n2], best[n1, n2] = preferred(value0, value1, value2, here)
        if must_change:
            for s in range(3):
                n1, n2 = m1 + (s == 1), m2 + (s == 2)
                if s != here and stay + gains[t, s] > best[n1, n2] + TOLERANCE:
                    best[n1, n2] = stay + gains[t, s]
                    came_by[t, n1, n2] = 3 + s
            stay += gains[t, here]
            m1 += here == 1
            m2 += here == 2
    price01, price02, price12 = (
        weighted(penalty, costs[0, 1]),
        weighted(penalty, costs[0, 2]),
        weighted(penalty, costs[1, 2]),
    )
    highest = -np.inf
    c1 = c2 = int64(-1)
    for n2 in range(k + 1):
        for n1 in range(k + 1 - n2):
            n0 = k - n1 - n2
            value = (
                best[n1, n2]
                - weighted(price01, float(n0 * n1))
                - weighted(price02, float(n0 * n2))
                - weighted(price12, float(n1 * n2))
            )
            if value > highest + TOLERANCE:
                highest, c1, c2 = value, n1, n2
    for t in range(k):
        states_out[t] = current[t]
    if c1 >= 0:
        for t in range(k - 1, -1, -1):
            state = came_by[t, c1, c2]
            states_out[t] = state % 3
            if state >= 3:
                break
            c1 -= state == 1
            c2 -= state == 2
    return highest
