"""Search over orders of one task's variables (Teyssier and Koller 2005), one variable at a time to its best place.

Given an order, every variable takes parents from those before it, one by one, each time the change that gains most, as
long as any does: greedy, but no cycle can close, so that no variable waits for another. Moving one variable through the
whole order asks for each other variable's parents with it and without it, and the sums over the order say where it is
best (Andrews et al. 2023, who call it the best order score search). The best order is then disturbed, and searched from
again. Columns of gains are remembered (``family_scores``), so that most questions cost a look.

References
----------
M. Teyssier and D. Koller, "Ordering-based search: a simple and effective algorithm for learning Bayesian networks", UAI
2005.

B. Andrews, J. Ramsey, R. Sanchez-Romero, J. Camchong and E. Kummerfeld, "Fast scalable and accurate discovery of DAGs
using the best order score search and grow-shrink trees", NeurIPS 2023.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.networks.model.bits import among, include
from kinfolk.networks.model.family_scores import TIE, Found, Problem, Questions, answer, ask, clear, no_questions
from kinfolk.networks.model.kernels import int64, spliced
from kinfolk.networks.model.network import Adjacency, topological_order

Whole = NDArray[np.int64]

# Whose parents are chosen: those of the variable that is moved, or of another with it before that, and without it.
_ITSELF, _WITH, _WITHOUT = 0, 1, 2


class Space(NamedTuple):
    """What a search of one task writes into.

    ``odds[p, v]`` is what the arc p → v adds to the log prior. Of the variable that is moved: the ``others`` in their
    order; and ``scores`` at every place, of the variable itself, of the other there with it before that, and without.
    ``before`` and ``tried`` tell which variables may be parents, and which were taken up on the way.
    """

    task: Whole
    odds: NDArray[np.float64]
    others: Whole
    scores: NDArray[np.float64]
    before: NDArray[np.bool_]
    tried: NDArray[np.bool_]


def search_orders(
    problem: Problem,
    task: int,
    start: Adjacency,
    log_odds: NDArray[np.float64],
    n_disturbed: int,
) -> Found:
    """Search from the order of one structure, then as often as asked from the best order disturbed.

    Parameters
    ----------
    problem : Problem
        Cases, score and constraints.
    task : int
        Which task.
    start : bool ndarray
        A structure with all required arcs; the variables' order in it is the first.
    log_odds : ndarray of shape (n_variables, n_variables)
        What every arc adds to the log prior of a structure.
    n_disturbed : int
        How often a fifth of the variables are moved to random places, and all of them searched again. The places are
        the same in every search: what is found hangs on the rows alone.

    Returns
    -------
    Found
        The structure of the best order, its score, and how often a variable was looked at.
    """
    n = len(start)
    present, required = problem.cases.present[task], problem.constraints.required
    best_order = np.array([v for v in topological_order(start) if present[v]], dtype=np.int64)
    questions = no_questions(1, problem.cases)
    no, nothing = np.zeros((2, n), dtype=np.bool_), np.zeros((3, n))
    space = Space(np.full(1, task), log_odds, np.zeros(n, dtype=np.int64), nothing, no[0], no[1])
    rng = np.random.default_rng(n)
    best, best_score, n_turns = np.zeros((n, n), dtype=bool), -np.inf, 0
    for turn in range(1 + n_disturbed if len(best_order) > 1 else 1):
        order, found = best_order.copy(), np.zeros((n, n), dtype=bool)
        if turn:
            order = _disturbed(order, required, rng)
        score, taken = _settle(problem, questions, space, order, found)
        n_turns += taken
        if score > best_score + TIE:
            best, best_score, best_order = found, score, order
    return Found(best, float(best_score), n_turns)


def _disturbed(order: Whole, required: Adjacency, rng: np.random.Generator) -> Whole:
    """Move a fifth of the variables, three at least, to random places; then put required parents before children."""
    n = len(order)
    places = rng.integers(n, size=(max(3, n // 5), 2)).tolist()
    moved = order.tolist()
    for old, new in places:
        moved.insert(new, moved.pop(old))
    if required.any():
        waiting, moved = moved, []
        while waiting:
            moved.append(next(v for v in waiting if not required[waiting, v].any()))
            waiting.remove(moved[-1])
    return np.array(moved, dtype=np.int64)


@compiled
def _settle(
    problem: Problem, questions: Questions, space: Space, order: Whole, adjacency: NDArray[np.bool_]
) -> tuple[float, int]:
    """Move every variable to its best place, in turn, until all have stayed; write the structure of the order found."""
    n, before, others = len(adjacency), space.before, space.others
    present, required = problem.cases.present[space.task[0]], problem.constraints.required
    n_turns, n_stayed, total = 0, 0, 0.0
    while n_stayed <= n:
        # The last turn moves nothing, and writes.
        writing, v = n_stayed == n, n_turns % n
        n_turns += 1
        n_stayed += 1
        if not (writing or present[v]):
            continue
        now, n_others = 0, 0
        for place in range(len(order)):
            before[order[place]] = False
            if order[place] == v and not writing:
                now = place
            else:
                others[n_others] = order[place]
                n_others += 1
        for place in range(len(order)):
            for who in range(_WITHOUT if writing else 0, 1 + (_WITHOUT if place < n_others else _ITSELF)):
                child = v if who == _ITSELF else others[place]
                # What was never taken up is not missed.
                if who == _WITHOUT and not (writing or space.tried[v] or required[v, child]):
                    space.scores[_WITHOUT, place] = space.scores[_WITH, place]
                    continue
                if not writing:
                    before[v] = who == _WITH
                space.scores[who, place] = _best_parents(problem, questions, space, child)
                if writing:
                    for p in range(n):
                        adjacency[p, child] = among(questions.parents, int64(0), p)
            if place < n_others:
                before[others[place]] = True
        total = 0.0
        for place in range(n_others):
            total += space.scores[_WITHOUT if writing else _WITH, place]
        if not writing:
            place = _best_place(space.scores, total, now, len(order))
            if place != now:
                n_stayed = 0
                for a in range(len(order)):
                    order[a] = others[a] if a < place else v if a == place else others[a - 1]
    return total, n_turns


@spliced
def _best_place(scores: NDArray[np.float64], total: float, now: int, n: int) -> int:
    """Find a variable's best place, where it is if no other gains; ``total`` is of all others with it before them."""
    best, best_place, here = -np.inf, int64(0), -np.inf
    for place in range(n):
        value = total + scores[_ITSELF, place]
        if place == now:
            here = value
        if value > best + TIE:
            best, best_place = value, place
        # One place further on, one more does without it.
        total += scores[_WITHOUT, place] - scores[_WITH, place]
    return best_place if best > here + TIE else now


@spliced
def _best_parents(problem: Problem, questions: Questions, space: Space, v: int) -> float:
    """Choose a variable's parents from those before it, greedily; they stand in the first question. Return the score.

    Where a required parent is not before it, the score is −inf.
    """
    task, n, before, required = space.task[0], len(space.before), space.before, problem.constraints.required
    parents, odds = questions.parents, space.odds
    prior, ended, first = 0.0, False, int64(0)
    for w in range(parents.shape[1]):
        parents[0, w] = np.uint64(0)
    for p in range(n):
        space.tried[p] = False
        if required[p, v] and problem.cases.present[task, p]:
            include(parents, first, p)
            prior += odds[p, v] if before[p] else -np.inf
    while not ended:
        clear(questions)
        ask(problem.scores, questions, task, v)
        if questions.n_open[0]:
            answer(problem, questions)
        best, best_p, sign = TIE, int64(-1), 0.0
        for p in range(n):
            if before[p]:
                inside = among(parents, first, p)
                change = -1.0 if inside else 1.0
                gain = questions.gains[0, p] + change * odds[p, v]
                if gain > best and not (inside and required[p, v]):
                    best, best_p, sign = gain, p, change
        ended = best_p < 0
        if not ended:
            space.tried[best_p] = True
            prior += sign * odds[best_p, v]
            parents[0, best_p >> 6] ^= np.uint64(1) << np.uint64(best_p & 63)
    return float(questions.score[0] + prior)
