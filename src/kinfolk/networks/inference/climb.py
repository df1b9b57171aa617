"""Greedy and tabu search over the structures of one task, or of several tasks jointly (sections 2 and 3.2), restarted.

A move changes the arc between one pair of variables, in any subset of the tasks. What each task's own score would gain
is kept in a dense matrix, of which a move refreshes only the columns of the variables whose parents changed, and with
them the most that any change of their pairs could gain. A step looks through what pairs could gain at most,
O(n_variables²), and at the tasks, and at sets of ancestors that tell of cycles, only where that could be the best
move. Restarts disturb the best structures seen and climb again.

In the papers: Niculescu-Mizil and Caruana (2012), section 3.2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.checkpoints import NOWHERE, Nowhere, Place
from kinfolk.interrupts import asked
from kinfolk.maths.compiled import compiled
from kinfolk.networks.inference.joint_states import best_states, cost_of
from kinfolk.networks.model.bits import among, include
from kinfolk.networks.model.families import MOST_CELLS
from kinfolk.networks.model.family_scores import (
    TIE,
    FamilyScores,
    Found,
    Problem,
    Questions,
    answer,
    ask,
    clear,
    no_questions,
    pieces_at_once,
)
from kinfolk.networks.model.kernels import inner, int64, spliced
from kinfolk.networks.model.network import Constraints, Structures
from kinfolk.networks.model.priors import Prior


class Effort(NamedTuple):
    """How hard to search: length of the tabu list, number of restarts, arcs changed before each; orders disturbed."""

    tabu: int
    restarts: int
    changes: int
    orders: int = 0


class Workspace(NamedTuple):
    """What a climb keeps of each of its tasks: structure, gains of changing each arc, ancestors, tabu states.

    Tasks are the last axis: a step looks at pairs of variables in all tasks, which so lie side by side. Then what the
    states of each pair cost, the ``ceilings`` of what changing it could gain, cycles aside, and arrays that a step
    writes into, since kernels that make none compile sooner: of the tasks that have a pair, their places among the
    members, themselves, their states now and the best ones; what is chosen; the columns of gains to be renewed, by
    place of the task and variable, and which variables are among them.
    """

    adjacency: NDArray[np.bool_]
    gains: NDArray[np.float64]
    ancestors: NDArray[np.uint64]
    closed_until: NDArray[np.int64]
    penalties: NDArray[np.float64]
    ceilings: NDArray[np.float64]
    who: NDArray[np.int64]
    tasks: NDArray[np.int64]
    current: NDArray[np.int64]
    states: NDArray[np.int64]
    state_gains: NDArray[np.float64]
    chosen_who: NDArray[np.int64]
    chosen: NDArray[np.int64]
    renewed_who: NDArray[np.int64]
    renewed: NDArray[np.int64]
    touched: NDArray[np.bool_]
    waiting: NDArray[np.int64]
    order: NDArray[np.int64]


class Best(NamedTuple):
    """The best structures so far and their score; how many steps there were, and how many since the best ones.

    ``total`` is the score of the last structures.
    """

    adjacency: Structures
    score: NDArray[np.float64]
    n_steps: NDArray[np.int64]
    since_best: NDArray[np.int64]
    total: NDArray[np.float64]


def climb(problem: Problem, prior: Prior, members: NDArray[np.int64], start: Structures, tabu: int) -> Found:
    """Search from given structures of some tasks, ``members``, over their structures jointly.

    With ``tabu`` = 0 the search ends when no move gains. Otherwise it takes the best move there is, gain or loss, until
    ``tabu`` steps have passed without a new best; it goes back to a state of a pair that a task left in the last
    ``tabu`` steps only where that gives a new best, so that it never ends below the plain climb. Ctrl-C ends it early,
    with the best structures so far, if it is part of work that leaves what there is.
    """
    k, n = start.shape[:2]
    questions = no_questions(max(n * k, 2 * k), problem.cases)
    space = Workspace(
        adjacency=np.array(start.transpose(1, 2, 0), order="C"),
        gains=np.empty((n, n, k)),
        ancestors=np.zeros((n, questions.parents.shape[1], k), dtype=np.uint64),
        closed_until=np.zeros((n, n, 3, k if tabu else 0), dtype=np.int64),
        penalties=np.zeros((n, n)),
        ceilings=np.full((n, n), -np.inf),
        who=np.empty(k, dtype=np.int64),
        tasks=np.empty(k, dtype=np.int64),
        current=np.empty(k, dtype=np.int64),
        states=np.empty(k, dtype=np.int64),
        state_gains=np.empty((k, 3)),
        chosen_who=np.empty(k, dtype=np.int64),
        chosen=np.empty(k, dtype=np.int64),
        renewed_who=np.empty(max(n * k, 2 * k), dtype=np.int64),
        renewed=np.empty(max(n * k, 2 * k), dtype=np.int64),
        touched=np.zeros(n, dtype=np.bool_),
        waiting=np.empty(n, dtype=np.int64),
        order=np.empty(n, dtype=np.int64),
    )
    nothing = np.zeros(1, dtype=np.int64)
    best = Best(start.copy(), np.zeros(1), nothing, nothing.copy(), np.zeros(1))
    given = problem, questions, prior, problem.cases.present[members], members, space, best, tabu
    at_once = pieces_at_once(problem, members)
    more = _take_steps(*given, True, 0 if asked() else at_once)
    while more and not asked():
        more = _take_steps(*given, False, at_once)
    return Found(best.adjacency, float(best.score[0]), int(best.n_steps[0]))


def search(
    problem: Problem,
    prior: Prior,
    members: NDArray[np.int64],
    start: Structures,
    effort: Effort,
    rng: np.random.Generator,
    place: Place | Nowhere = NOWHERE,
) -> Found:
    """Climb from given structures; then, as often as asked, disturb the best ones seen and climb again."""
    n_done, best = 0, Found(start, -np.inf, 0)
    if (kept := place.load()) is None:
        best = climb(problem, prior, members, start, effort.tabu)
    else:
        n_done, parts, rng.bit_generator.state = kept
        best = Found(*parts)
        if n_done == effort.restarts:
            return best
    for n in range(n_done, effort.restarts):
        if asked():
            break
        if place.due():
            place.save((n, best, rng.bit_generator.state))
        disturbed = best.adjacency.copy()
        uniforms = rng.random((effort.changes, 3))
        _disturb(disturbed, problem.constraints, problem.cases.cards, problem.cases.present[members], uniforms)
        found = climb(problem, prior, members, disturbed, effort.tabu)
        if found.score > best.score + TIE:
            best = found
    if not asked():
        place.end((effort.restarts, best, rng.bit_generator.state))
    return best


# Kernels take whole arrays and the place of a task in them: slices in inner loops cost more than the work done.
@spliced
def _find_ancestors(
    adjacency: NDArray[np.bool_],
    out: NDArray[np.uint64],
    m: int,
    waiting: NDArray[np.int64],
    order: NDArray[np.int64],
) -> None:
    """Find every variable's ancestors in one task, parents before children."""
    n, words = adjacency.shape[1], out.shape[1]
    n_ready = 0
    for v in range(n):
        waiting[v] = 0
        for w in range(words):
            out[v, w, m] = np.uint64(0)
        for p in range(n):
            waiting[v] += adjacency[p, v, m]
        if waiting[v] == 0:
            order[n_ready] = v
            n_ready += 1
    place = 0
    while place < n_ready:
        v = order[place]
        place += 1
        for child in range(n):
            if adjacency[v, child, m]:
                for w in range(words):
                    out[child, w, m] |= out[v, w, m]
                out[child, v >> 6, m] |= np.uint64(1) << np.uint64(v & 63)
                waiting[child] -= 1
                if waiting[child] == 0:
                    order[n_ready] = child
                    n_ready += 1


@inner
def _inherit(ancestors: NDArray[np.uint64], m: int, i: int, j: int) -> None:
    """Give j and all that descend from it the ancestors that a new arc i → j brings in one task."""
    n, words = ancestors.shape[0], ancestors.shape[1]
    for v in range(n):
        if v == j or _descends(ancestors, m, v, j):
            for w in range(words):
                ancestors[v, w, m] |= ancestors[i, w, m]
            ancestors[v, i >> 6, m] |= np.uint64(1) << np.uint64(i & 63)


@inner
def _descends(ancestors: NDArray[np.uint64], m: int, v: int, ancestor: int) -> bool:
    """Tell whether a variable descends from another in one task."""
    return bool((ancestors[v, ancestor >> 6, m] >> np.uint64(ancestor & 63)) & np.uint64(1))


@inner
def _other_path(adjacency: NDArray[np.bool_], ancestors: NDArray[np.uint64], m: int, i: int, j: int) -> bool:
    """Tell whether a path leads from i to j beside the arc i → j, so that reversing it would close a cycle."""
    for p in range(adjacency.shape[1]):  # noqa: SIM110 - numba has no any()
        if adjacency[p, j, m] and p != i and _descends(ancestors, m, p, i):
            return True
    return False


@spliced
def _ask_about(
    scores: FamilyScores, questions: Questions, task: int, child: int, adjacency: NDArray[np.bool_], m: int
) -> None:
    """Ask for the gains of changing one variable's parents."""
    row = questions.n[0]
    for w in range(questions.parents.shape[1]):
        questions.parents[row, w] = np.uint64(0)
    for p in range(adjacency.shape[1]):
        if adjacency[p, child, m]:
            include(questions.parents, row, p)
    ask(scores, questions, task, child)


@spliced
def _take_in(questions: Questions, row: int, prior: Prior, m: int, gains: NDArray[np.float64]) -> float:
    """Renew the gains of changing one variable's parents; return its family's score, structure prior included."""
    task, child = questions.task[row], questions.child[row]
    odds = 0.0
    for p in range(gains.shape[1]):
        weight = prior.exponent[task] * prior.log_odds[p, child]
        if among(questions.parents, row, p):
            odds += weight
            weight = -weight
        gains[p, child, m] = questions.gains[row, p] + weight
    return float(questions.score[row] + odds)


@inner
def _remember(adjacency: NDArray[np.bool_], best: Best) -> None:
    """Write down the structures of all tasks as the best so far."""
    for m in range(adjacency.shape[2]):
        for p in range(adjacency.shape[0]):
            for v in range(adjacency.shape[1]):
                best.adjacency[m, p, v] = adjacency[p, v, m]


@inner
def _most_gained(space: Workspace, present: NDArray[np.bool_], i: int, j: int) -> float:
    """What changing the arc between i and j could gain at most, if no cycle and no joint prior stood in the way."""
    adjacency, gains = space.adjacency, space.gains
    most, change = 0.0, -np.inf
    for m in range(present.shape[0]):
        if present[m, i] and present[m, j]:
            along, against = gains[i, j, m], gains[j, i, m]
            if adjacency[i, j, m]:
                other = max(along, along + against)
            elif adjacency[j, i, m]:
                other = max(against, along + against)
            else:
                other = max(along, against)
            change = max(change, other)
            most += max(other, 0.0)
    return float(space.penalties[i, j] + (change if change < 0.0 else most))


@compiled
def _take_steps(
    problem: Problem,
    questions: Questions,
    prior: Prior,
    present: NDArray[np.bool_],
    members: NDArray[np.int64],
    space: Workspace,
    best: Best,
    tabu: int,
    begins: bool,
    at_once: int,
) -> bool:
    """Begin, or go on, and take so many steps at most; ``best`` is filled in. Tells whether there are more to take."""
    k, n = present.shape
    scores, allowed, required = problem.scores, problem.constraints.allowed, problem.constraints.required
    adjacency, ancestors, gains, closed_until = space.adjacency, space.ancestors, space.gains, space.closed_until
    who, tasks, current, states, state_gains = space.who, space.tasks, space.current, space.states, space.state_gains
    chosen_who, chosen, renewed_who, renewed = space.chosen_who, space.chosen, space.renewed_who, space.renewed
    penalties, ceilings, touched = space.penalties, space.ceilings, space.touched
    total, since_best, n_steps, n_renewed = best.total[0], best.since_best[0], best.n_steps[0], 0
    last, more = n_steps + at_once, False
    for i in range(n if begins else 0):
        for j in range(i + 1, n):
            n_who = 0
            for m in range(k):
                if present[m, i] and present[m, j]:
                    tasks[n_who] = members[m]
                    current[n_who] = 1 if adjacency[i, j, m] else 2 if adjacency[j, i, m] else 0
                    n_who += 1
            if n_who > 1:
                penalties[i, j] = cost_of(prior, tasks[:n_who], current[:n_who], i, j)
                total -= penalties[i, j]
    for m in range(k if begins else 0):
        _find_ancestors(adjacency, ancestors, m, space.waiting, space.order)
        for v in range(n):
            if present[m, v]:
                renewed_who[n_renewed], renewed[n_renewed] = m, v
                n_renewed += 1
    while True:
        clear(questions)
        for a in range(n_renewed):
            m = renewed_who[a]
            _ask_about(scores, questions, members[m], renewed[a], adjacency, m)
        if questions.n_open[0]:
            answer(problem, questions)
        for row in range(n_renewed):
            score = _take_in(questions, row, prior, renewed_who[row], gains)
            touched[renewed[row]] = True
            if n_steps == 0:
                total += score
        if n_steps == 0:
            best.score[0] = total
        for v in range(n):
            if touched[v]:
                touched[v] = False
                for u in range(n):
                    if allowed[u, v] or allowed[v, u]:
                        i, j = min(u, v), max(u, v)
                        ceilings[i, j] = _most_gained(space, present, i, j)
        if n_steps == last:
            more = True
            break
        best_gain, best_i, best_j, n_chosen = -np.inf if tabu else 0.0, int64(-1), int64(-1), 0
        for i in range(n):
            for j in range(i + 1, n):
                if not ceilings[i, j] > best_gain + TIE:
                    continue
                n_who, most, change, closed = 0, 0.0, -np.inf, False
                for m in range(k):
                    if not (present[m, i] and present[m, j]):
                        continue
                    none, along, against, state = 0.0, gains[i, j, m], gains[j, i, m], 0
                    if adjacency[i, j, m]:
                        none, along, against, state = along, 0.0, along + against, 1
                        if required[i, j]:
                            none, against = -np.inf, -np.inf
                        elif against > -np.inf and _other_path(adjacency, ancestors, m, i, j):
                            against = -np.inf
                        other = max(none, against)
                    elif adjacency[j, i, m]:
                        none, along, against, state = against, along + against, 0.0, 2
                        if required[j, i]:
                            none, along = -np.inf, -np.inf
                        elif along > -np.inf and _other_path(adjacency, ancestors, m, j, i):
                            along = -np.inf
                        other = max(none, along)
                    else:
                        if _descends(ancestors, m, i, j):
                            along = -np.inf
                        if _descends(ancestors, m, j, i):
                            against = -np.inf
                        other = max(along, against)
                    state_gains[n_who, 0], state_gains[n_who, 1], state_gains[n_who, 2] = none, along, against
                    who[n_who], tasks[n_who], current[n_who] = m, members[m], state
                    change = max(change, other)
                    most += max(other, 0.0)
                    if tabu:
                        for s in range(3):
                            closed = closed or (s != state and closed_until[i, j, s, m] > n_steps)
                    n_who += 1
                # No joint prior can make more of a pair than every task's best state without any penalty.
                if not penalties[i, j] + (change if change < 0.0 else most) > best_gain + TIE:
                    continue
                while True:
                    gain = penalties[i, j] + best_states(
                        prior, tasks[:n_who], state_gains[:n_who], current[:n_who], i, j, states[:n_who]
                    )
                    if not closed or total + gain > best.score[0] + TIE:
                        break
                    # What was left lately is closed, unless it leads to a new best.
                    for a in range(n_who):
                        for s in range(3):
                            if s != current[a] and closed_until[i, j, s, who[a]] > n_steps:
                                state_gains[a, s] = -np.inf
                    closed = False
                if gain > best_gain + TIE:
                    best_gain, best_i, best_j, n_chosen = gain, i, j, n_who
                    for a in range(n_who):
                        chosen[a], chosen_who[a] = states[a], who[a]
        if best_i < 0 or (best_gain <= TIE and since_best >= tabu):
            break
        if since_best == 0 and total + best_gain <= best.score[0] + TIE:
            _remember(adjacency, best)
        i, j = best_i, best_j
        n_steps += 1
        n_renewed = 0
        for a in range(n_chosen):
            m, new = chosen_who[a], chosen[a]
            tasks[a] = members[m]
            old = 1 if adjacency[i, j, m] else 2 if adjacency[j, i, m] else 0
            if new == old:
                continue
            adjacency[i, j, m], adjacency[j, i, m] = new == 1, new == 2
            if old == 0:
                _inherit(ancestors, m, i if new == 1 else j, j if new == 1 else i)
            else:
                _find_ancestors(adjacency, ancestors, m, space.waiting, space.order)
            if old == 1 or new == 1:
                renewed_who[n_renewed], renewed[n_renewed] = m, j
                n_renewed += 1
            if old == 2 or new == 2:
                renewed_who[n_renewed], renewed[n_renewed] = m, i
                n_renewed += 1
            if tabu:
                closed_until[i, j, old, m] = n_steps + tabu
        if n_chosen > 1:
            penalties[i, j] = cost_of(prior, tasks[:n_chosen], chosen[:n_chosen], i, j)
        total += best_gain
        since_best += 1
        if total > best.score[0] + TIE:
            best.score[0], since_best = total, 0
    if since_best == 0:
        _remember(adjacency, best)
    best.total[0], best.since_best[0], best.n_steps[0] = total, since_best, n_steps
    return more


@compiled
def _disturb(
    adjacency: NDArray[np.bool_],
    constraints: Constraints,
    cards: NDArray[np.int64],
    present: NDArray[np.bool_],
    uniforms: NDArray[np.float64],
) -> None:
    """Change random pairs, each to one random state in every task that may have it, so that likeness survives."""
    k, n = adjacency.shape[0], adjacency.shape[1]
    for u in range(len(uniforms)):
        i = int(uniforms[u, 0] * n)
        j = int(uniforms[u, 1] * (n - 1))
        if j >= i:
            j += 1
        remove = uniforms[u, 2] < 0.5
        for t in range(k):
            if not (present[t, i] and present[t, j]):
                continue
            if adjacency[t, i, j]:
                if constraints.required[i, j]:
                    continue
                adjacency[t, i, j] = False
                if not remove:
                    _add(adjacency[t], constraints, cards, j, i)
            elif not adjacency[t, j, i]:
                _add(adjacency[t], constraints, cards, i, j)


@compiled
def _add(
    adjacency: NDArray[np.bool_], constraints: Constraints, cards: NDArray[np.int64], parent: int, child: int
) -> None:
    """Add an arc if the constraints, the size of its family's table and acyclicity let it be."""
    n = len(adjacency)
    n_parents, n_cells = 0, float(cards[child] * cards[parent])
    for p in range(n):
        if adjacency[p, child]:
            n_parents += 1
            n_cells *= cards[p]
    if not constraints.allowed[parent, child] or n_parents >= constraints.most_parents or n_cells > MOST_CELLS:
        return
    reached = np.zeros(n, dtype=np.bool_)
    stack = np.empty(n, dtype=np.int64)
    stack[0], n_stack = child, 1
    reached[child] = True
    while n_stack:
        n_stack -= 1
        v = stack[n_stack]
        for w in range(n):
            if adjacency[v, w] and not reached[w]:
                reached[w] = True
                stack[n_stack] = w
                n_stack += 1
    if not reached[parent]:
        adjacency[parent, child] = True
