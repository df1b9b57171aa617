"""Branch and bound over the states of one pair of variables in all tasks (section 3.3, eq. 9 and 10).

Tasks take their states in order. A partial configuration of order l has given states to the first l; no configuration
that begins with it can be worth more than

    Σ_{p≤l} gains[p, s_p] − penalty of the first l states + Σ_{q>l} max_s gains[q, s],

the logarithm of eq. 9 under the Edit prior and of eq. 10 under the Paired prior. Where this does not exceed the best
value known, all that begins so is left out. The search is depth first, the most promising child first; it counts the
partial configurations whose bound it evaluates (figure 1 of the paper).

The Edit prior has a faster exact way (``configurations.best_edit``), and so has the Paired prior with one penalty. With
a different penalty for each pair of tasks this search is the one to use.

States, gains, infinite penalties and ties are those of ``kinfolk.networks.model.configurations``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.networks.model.configurations import TOLERANCE, preferred, weighted


def n_partial_configurations(k: int) -> int:
    """Partial configurations of k tasks, of order 1 to k: what a search that leaves nothing out evaluates.

    Parameters
    ----------
    k : int
        Number of tasks.

    Returns
    -------
    int
        Σ_l 3^l.

    Examples
    --------
    >>> n_partial_configurations(5)
    363
    """
    return sum(3**order for order in range(1, k + 1))


@compiled
def bound_edit(
    gains: NDArray[np.float64],
    current: NDArray[np.integer[Any]],
    penalty: float,
    costs: NDArray[np.float64],
    must_change: bool,
    states_out: NDArray[np.integer[Any]],
    floor: float = -np.inf,
) -> tuple[float, int]:
    """Maximise Σ_t gains[t, s_t] − penalty · edits(s) by branch and bound (Niculescu-Mizil and Caruana 2012, eq. 9).

    Parameters
    ----------
    gains, current, penalty, costs, must_change, states_out
        As in ``configurations.best_edit``.
    floor : float, default=-inf
        A value reached elsewhere, with another pair of variables say: only what exceeds it is looked for.

    Returns
    -------
    value : float
        The maximum, −inf if no configuration is allowed or none exceeds the floor.
    n_evaluated : int
        Partial configurations of order 1 or more whose bound was evaluated.

    Examples
    --------
    >>> from kinfolk.networks.model.priors import edit_costs
    >>> gains = np.array([[0.0, 4.0, 3.0], [0.0, 2.0, 3.0], [0.0, -0.5, -1.0]])
    >>> states = np.zeros(3, dtype=np.int64)
    >>> bound_edit(gains, np.zeros(3, dtype=np.int64), 2.0, edit_costs(), False, states), states
    ((5.5, 15), array([1, 1, 1]))
    """
    k = len(gains)
    rest = _best_of_the_rest(gains)
    own = np.zeros(k + 1)
    # edited[l, c]: what the first l states cost if c is the consensus.
    edited = np.zeros((k + 1, 3))
    if not must_change:
        for t in range(k):
            own[t + 1] = own[t] + gains[t, current[t]]
            for c in range(3):
                edited[t + 1, c] = edited[t, c] + weighted(penalty, costs[c, current[t]])
    best = -np.inf if must_change else own[k] - min(edited[k, 0], edited[k, 1], edited[k, 2])
    if not best > floor + TOLERANCE:
        best = -np.inf
    to_beat = max(best, floor)
    for t in range(k):
        states_out[t] = current[t]
    if k == 0 or not rest[0] > to_beat + TOLERANCE:
        return best, 0

    states = np.empty(k, dtype=np.int64)
    owed = np.full(k + 1, must_change)
    bounds = np.empty((k, 3))
    n_evaluated = 0
    depth = 0
    opened = False
    while depth >= 0:
        if not opened:
            for s in range(3):
                bounds[depth, s] = -np.inf
                if gains[depth, s] == -np.inf or (depth == k - 1 and owed[depth] and s == current[depth]):
                    continue
                least = np.inf
                for c in range(3):
                    least = min(least, edited[depth, c] + weighted(penalty, costs[c, s]))
                bounds[depth, s] = own[depth] + gains[depth, s] + rest[depth + 1] - least
                n_evaluated += 1
            opened = True
        s, bound = preferred(bounds[depth, 0], bounds[depth, 1], bounds[depth, 2], current[depth])
        if not bound > to_beat + TOLERANCE:
            depth -= 1
            continue
        bounds[depth, s] = -np.inf
        states[depth] = s
        if depth == k - 1:
            best = to_beat = bound
            for t in range(k):
                states_out[t] = states[t]
            continue
        own[depth + 1] = own[depth] + gains[depth, s]
        for c in range(3):
            edited[depth + 1, c] = edited[depth, c] + weighted(penalty, costs[c, s])
        owed[depth + 1] = owed[depth] and s == current[depth]
        depth += 1
        opened = False
    return best, n_evaluated


# Searches that make no arrays call this, which does.
@compiled(_nrt=True)
def bound_paired(
    gains: NDArray[np.float64],
    current: NDArray[np.integer[Any]],
    penalties: NDArray[np.float64],
    costs: NDArray[np.float64],
    must_change: bool,
    states_out: NDArray[np.integer[Any]],
    floor: float = -np.inf,
    look_ahead: bool = True,
) -> tuple[float, int]:
    """Maximise Σ_t gains[t, s_t] − Σ_{s<t} penalties[s, t] · d(s_s, s_t) by branch and bound (eq. 10).

    Parameters
    ----------
    gains, current, must_change, states_out
        As in ``configurations.best_edit``.
    penalties : ndarray of shape (k, k), symmetric
        Penalty of each unit of difference between two tasks, each 0 or more, perhaps infinite.
    costs : ndarray of shape (3, 3)
        As ``configurations.pair_costs`` makes them.
    floor : float, default=-inf
        As in ``bound_edit``.
    look_ahead : bool, default=True
        Whether each of the tasks without a state counts with its best gain less what it disagrees with the tasks that
        have one, a bound at least as tight as eq. 10; if not, with its best gain alone, as in eq. 10.

    Returns
    -------
    value : float
        The maximum, −inf if no configuration is allowed or none exceeds the floor.
    n_evaluated : int
        Partial configurations of order 1 or more whose bound was evaluated.

    Examples
    --------
    The third task is kin to the second only, and follows it:

    >>> from kinfolk.networks.model.priors import pair_costs
    >>> gains = np.array([[0.0, 4.0, -2.0], [0.0, -2.0, 3.0], [0.0, 0.5, 0.0]])
    >>> penalties = np.array([[0.0, 0.1, 0.0], [0.1, 0.0, 0.6], [0.0, 0.6, 0.0]])
    >>> states = np.zeros(3, dtype=np.int64)
    >>> value, _ = bound_paired(gains, np.zeros(3, dtype=np.int64), penalties, pair_costs(), False, states)
    >>> round(value, 6), states
    (6.8, array([1, 2, 2]))
    """
    k = len(gains)
    best = -np.inf
    if not must_change:
        best = 0.0
        for t in range(k):
            best += gains[t, current[t]]
            for p in range(t):
                best -= weighted(penalties[p, t], costs[current[p], current[t]])
    if not best > floor + TOLERANCE:
        best = -np.inf
    to_beat = max(best, floor)
    for t in range(k):
        states_out[t] = current[t]
    rest = _best_of_the_rest(gains)
    if k == 0 or not rest[0] > to_beat + TOLERANCE:
        return best, 0

    states = np.empty(k, dtype=np.int64)
    worth = np.zeros(k + 1)
    # net[l, q, s]: gain of task q in state s, less what that disagrees with the first l states.
    net = np.empty((k, k, 3))
    for q in range(k):
        for r in range(3):
            net[0, q, r] = gains[q, r]
    owed = np.full(k + 1, must_change)
    bounds = np.empty((k, 3))
    n_evaluated = 0
    depth = 0
    opened = False
    while depth >= 0:
        if not opened:
            for s in range(3):
                bounds[depth, s] = -np.inf
                if gains[depth, s] == -np.inf or (depth == k - 1 and owed[depth] and s == current[depth]):
                    continue
                ahead = rest[depth + 1]
                if look_ahead:
                    ahead = 0.0
                    for q in range(depth + 1, k):
                        highest = -np.inf
                        for r in range(3):
                            highest = max(highest, net[depth, q, r] - weighted(penalties[depth, q], costs[s, r]))
                        ahead += highest
                bounds[depth, s] = worth[depth] + net[depth, depth, s] + ahead
                n_evaluated += 1
            opened = True
        s, bound = preferred(bounds[depth, 0], bounds[depth, 1], bounds[depth, 2], current[depth])
        if not bound > to_beat + TOLERANCE:
            depth -= 1
            continue
        bounds[depth, s] = -np.inf
        states[depth] = s
        if depth == k - 1:
            best = to_beat = bound
            for t in range(k):
                states_out[t] = states[t]
            continue
        worth[depth + 1] = worth[depth] + net[depth, depth, s]
        for q in range(depth + 1, k):
            for r in range(3):
                net[depth + 1, q, r] = net[depth, q, r] - weighted(penalties[depth, q], costs[s, r])
        owed[depth + 1] = owed[depth] and s == current[depth]
        depth += 1
        opened = False
    return best, n_evaluated


@compiled
def _best_of_the_rest(gains: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum over tasks l, l + 1, … of the highest gain of each, for every l."""
    k = len(gains)
    rest = np.zeros(k + 1)
    for t in range(k - 1, -1, -1):
        rest[t] = rest[t + 1] + max(gains[t, 0], gains[t, 1], gains[t, 2])
    return rest
