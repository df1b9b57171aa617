"""Greedy and tabu search over the structures of one task, or of several tasks jointly (sections 2 and 3.2).

A move changes the arc between one pair of variables, in any subset of the tasks. What each task's own score would gain
is kept in a dense matrix, of which a move refreshes only the columns of the variables whose parents changed; cycles are
checked against sets of ancestors. A step costs O(n_variables² · n_tasks) plus the columns that it touches.

In the papers: Niculescu-Mizil and Caruana (2012), section 3.2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.networks.inference.branch_and_bound import bound_paired
from kinfolk.networks.model.cases import Cases
from kinfolk.networks.model.configurations import best_edit, best_paired, edits, paired_penalty
from kinfolk.networks.model.families import Rule
from kinfolk.networks.model.kernels import inner, spliced
from kinfolk.networks.model.priors import EDIT, PAIRED, Prior
from kinfolk.networks.model.score_cache import Columns, column, put

# Gains closer than this are ties. Structures that encode the same independences have the same score but for rounding,
# and rounding must not choose between them: the table's first pair of variables wins, then the first state.
TIE = 1e-8


class Climb(NamedTuple):
    """Where a search ended: the best structures seen, and their score."""

    adjacency: NDArray[np.bool_]
    score: float
    n_steps: int


@inner
def _ancestors(adjacency: NDArray[np.bool_], out: NDArray[np.uint64]) -> None:
    """Find every variable's ancestors, parents before children."""
    n = len(adjacency)
    waiting = np.zeros(n, dtype=np.int64)
    order = np.empty(n, dtype=np.int64)
    n_ready = 0
    for v in range(n):
        for p in range(n):
            waiting[v] += adjacency[p, v]
        if waiting[v] == 0:
            order[n_ready] = v
            n_ready += 1
    out[:] = np.uint64(0)
    place = 0
    while place < n_ready:
        v = order[place]
        place += 1
        for child in range(n):
            if adjacency[v, child]:
                for w in range(out.shape[1]):
                    out[child, w] |= out[v, w]
                put(out[child], v)
                waiting[child] -= 1
                if waiting[child] == 0:
                    order[n_ready] = child
                    n_ready += 1


# Kernels below take whole arrays and the place of a task in them: slices in inner loops cost more than the work done.
@inner
def _descends(ancestors: NDArray[np.uint64], m: int, v: int, ancestor: int) -> bool:
    """Tell whether a variable descends from another in one task."""
    return bool((ancestors[m, v, ancestor >> 6] >> np.uint64(ancestor & 63)) & np.uint64(1))


@inner
def _other_path(adjacency: NDArray[np.bool_], ancestors: NDArray[np.uint64], m: int, i: int, j: int) -> bool:
    """Tell whether a path leads from i to j beside the arc i → j, so that reversing it would close a cycle."""
    for p in range(adjacency.shape[1]):  # noqa: SIM110 - numba has no any()
        if adjacency[m, p, j] and p != i and _descends(ancestors, m, p, i):
            return True
    return False


@spliced
def _refresh(
    cases: Cases,
    rule: Rule,
    columns: Columns,
    prior: Prior,
    task: int,
    child: int,
    adjacency: NDArray[np.bool_],
    gains: NDArray[np.float64],
) -> float:
    """Renew the gains of changing one variable's parents; return its family's score, structure prior included."""
    n = len(adjacency)
    parents = np.zeros(columns.parents.shape[2], dtype=np.uint64)
    odds = 0.0
    for p in range(n):
        if adjacency[p, child]:
            put(parents, p)
            odds += prior.exponent[task] * prior.log_odds[p, child]
    slot = column(cases, rule, columns, task, child, parents)
    for p in range(n):
        weight = prior.exponent[task] * prior.log_odds[p, child]
        gains[p, child] = columns.gains[task, slot, p] + (-weight if adjacency[p, child] else weight)
    return float(columns.score[task, slot] + odds)


@inner
def joint_penalty(
    prior: Prior, members: NDArray[np.int64], states: NDArray[np.int64], who: NDArray[np.int64], i: int, j: int
) -> float:
    """What the joint prior takes off for one pair's states in the tasks that have it (``who``, among the members)."""
    if prior.kind == EDIT:
        cost = edits(states, prior.costs)
    elif prior.kind == PAIRED:
        cost = paired_penalty(states, prior.costs)
    else:
        total = 0.0
        for a in range(len(who)):
            for b in range(a):
                apart = prior.costs[states[a], states[b]]
                if apart > 0.0:
                    total += prior.task_penalty[members[who[a]], members[who[b]]] * apart
        cost = total
    return prior.penalty[i, j] * cost if cost > 0.0 else 0.0


@inner
def _best_states(
    prior: Prior,
    members: NDArray[np.int64],
    who: NDArray[np.int64],
    gains: NDArray[np.float64],
    current: NDArray[np.int64],
    i: int,
    j: int,
    out: NDArray[np.int64],
) -> float:
    """Best new states of one pair in all tasks that have it, and their gains less the joint prior's penalty."""
    penalty = prior.penalty[i, j]
    if len(who) == 1:
        best = -np.inf
        for s in range(3):
            if s != current[0] and gains[0, s] > best + TIE:
                best, out[0] = gains[0, s], s
        return best
    if prior.kind == EDIT:
        return float(best_edit(gains, current, penalty, prior.costs, True, out))
    if prior.kind == PAIRED:
        return float(best_paired(gains, current, penalty, prior.costs, True, out))
    between = np.zeros((len(who), len(who)))
    for a in range(len(who)):
        for b in range(len(who)):
            weight = prior.task_penalty[members[who[a]], members[who[b]]]
            between[a, b] = penalty * weight if weight > 0.0 else 0.0
    value, _ = bound_paired(gains, current, between, prior.costs, True, out)
    return float(value)


@compiled
def climb(
    cases: Cases,
    rule: Rule,
    columns: Columns,
    prior: Prior,
    required: NDArray[np.bool_],
    members: NDArray[np.int64],
    start: NDArray[np.bool_],
    tabu: int,
) -> tuple[NDArray[np.bool_], float, int]:
    """Search from given structures of some tasks, ``members``; see :class:`Climb` for what comes back.

    With ``tabu`` = 0 the search ends when no move gains. Otherwise it takes the best move there is, gain or loss, until
    ``tabu`` steps have passed without a new best; it goes back to a state of a pair that a task left in the last
    ``tabu`` steps only where that gives a new best, so that it never ends below the plain climb.
    """
    k, n = len(members), len(cases.cards)
    allowed, present = columns.allowed, cases.present
    adjacency = start.copy()
    gains = np.empty((k, n, n))
    ancestors = np.zeros((k, n, columns.parents.shape[2]), dtype=np.uint64)
    score = 0.0
    for m in range(k):
        _ancestors(adjacency[m], ancestors[m])
        for v in range(n):
            if present[members[m], v]:
                score += _refresh(cases, rule, columns, prior, members[m], v, adjacency[m], gains[m])
    who, current, states = np.empty(k, np.int64), np.empty(k, np.int64), np.empty(k, np.int64)
    chosen, chosen_who = np.empty(k, np.int64), np.empty(k, np.int64)
    state_gains = np.empty((k, 3))
    penalties = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1, n):
            n_who = 0
            for m in range(k):
                if present[members[m], i] and present[members[m], j]:
                    who[n_who] = m
                    current[n_who] = 1 if adjacency[m, i, j] else 2 if adjacency[m, j, i] else 0
                    n_who += 1
            if n_who > 1:
                penalties[i, j] = joint_penalty(prior, members, current[:n_who], who[:n_who], i, j)
                score -= penalties[i, j]
    best_adjacency, best_score, since_best, n_steps = adjacency.copy(), score, 0, 0
    closed_until = np.zeros((k, 3, n, n) if tabu else (0, 3, n, n), dtype=np.int64)
    while True:
        best_gain, best_i, best_j, n_chosen = -np.inf, -1, -1, 0
        for i in range(n):
            for j in range(i + 1, n):
                if not (allowed[i, j] or allowed[j, i]):
                    continue
                n_who, ceiling, change, closed = 0, penalties[i, j], -np.inf, False
                for m in range(k):
                    if not (present[members[m], i] and present[members[m], j]):
                        continue
                    none, along, against, state = 0.0, gains[m, i, j], gains[m, j, i], 0
                    if adjacency[m, i, j]:
                        none, along, against, state = along, 0.0, along + against, 1
                        if required[i, j]:
                            none, against = -np.inf, -np.inf
                        elif against > -np.inf and _other_path(adjacency, ancestors, m, i, j):
                            against = -np.inf
                    elif adjacency[m, j, i]:
                        none, along, against, state = against, along + against, 0.0, 2
                        if required[j, i]:
                            none, along = -np.inf, -np.inf
                        elif along > -np.inf and _other_path(adjacency, ancestors, m, j, i):
                            along = -np.inf
                    else:
                        if _descends(ancestors, m, i, j):
                            along = -np.inf
                        if _descends(ancestors, m, j, i):
                            against = -np.inf
                    state_gains[n_who, 0], state_gains[n_who, 1], state_gains[n_who, 2] = none, along, against
                    who[n_who], current[n_who] = m, state
                    for s in range(3):
                        if s != state:
                            change = max(change, state_gains[n_who, s])
                            closed = closed or (tabu > 0 and closed_until[m, s, i, j] > n_steps)
                    ceiling += max(none, along, against)
                    n_who += 1
                # No joint prior can make more of a pair than every task's best state without any penalty.
                if change == -np.inf or ceiling <= best_gain + TIE or (ceiling <= TIE and not tabu):
                    continue
                gain = penalties[i, j] + _best_states(
                    prior, members, who[:n_who], state_gains[:n_who], current[:n_who], i, j, states[:n_who]
                )
                if closed and score + gain <= best_score + TIE:
                    # What was left lately is closed, unless it leads to a new best.
                    for a in range(n_who):
                        for s in range(3):
                            if s != current[a] and closed_until[who[a], s, i, j] > n_steps:
                                state_gains[a, s] = -np.inf
                    gain = penalties[i, j] + _best_states(
                        prior, members, who[:n_who], state_gains[:n_who], current[:n_who], i, j, states[:n_who]
                    )
                if gain > best_gain + TIE:
                    best_gain, best_i, best_j, n_chosen = gain, i, j, n_who
                    chosen[:n_who], chosen_who[:n_who] = states[:n_who], who[:n_who]
        if best_i < 0 or (best_gain <= TIE and (tabu == 0 or since_best >= tabu)):
            break
        i, j = best_i, best_j
        n_steps += 1
        for a in range(n_chosen):
            m, task, new = chosen_who[a], members[chosen_who[a]], chosen[a]
            old = 1 if adjacency[m, i, j] else 2 if adjacency[m, j, i] else 0
            if new == old:
                continue
            adjacency[m, i, j], adjacency[m, j, i] = new == 1, new == 2
            if old == 1 or new == 1:
                _refresh(cases, rule, columns, prior, task, j, adjacency[m], gains[m])
            if old == 2 or new == 2:
                _refresh(cases, rule, columns, prior, task, i, adjacency[m], gains[m])
            _ancestors(adjacency[m], ancestors[m])
            if tabu:
                closed_until[m, old, i, j] = n_steps + tabu
        if n_chosen > 1:
            penalties[i, j] = joint_penalty(prior, members, chosen[:n_chosen], chosen_who[:n_chosen], i, j)
        score += best_gain
        since_best += 1
        if score > best_score + TIE:
            best_score, since_best = score, 0
            best_adjacency[:] = adjacency
    return best_adjacency, best_score, n_steps
