"""Greedy search over equivalence classes of one task's structures (Chickering 2002), if a class has but one score.

A move takes some member of the class, changes one arc of it, and goes on with the class of what comes out. All members
are considered at once: Y's parents in a member are the class's own and a clique C of Y's neighbours, and

- Insert(X, Y, T) has C = NA(Y, X) ∪ T: X is not adjacent to Y, and C blocks every path from Y to X that follows no arc
  backwards, among them those through NA(Y, X), the neighbours of Y that are adjacent to X (theorem 15);
- Delete(X, Y, H) has C = NA(Y, X) − H, with X itself if that is a neighbour (theorem 17);
- Turn(Y, X, C) makes X → Y of Y → X, where a member has that (Hauser and Bühlmann 2012). If X is a child of Y in the
  class, then C must block every other path from Y to X. If it is a neighbour, then some of C must not be adjacent to X,
  and what else is in C, with Y, must part that from X.

The first two are worth what one column of gains says, that of Y with its parents and C, for all X together; turning
asks for X's column as well.

In the papers: Niculescu-Mizil and Caruana (2012), section 5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.interrupts import asked
from kinfolk.maths.compiled import compiled
from kinfolk.networks.model.bits import Bits, among, include
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
from kinfolk.networks.model.kernels import int64, spliced
from kinfolk.networks.model.pdag import Pdag, cliques_around, complete, extend, no_pdag, reach

# Cliques among one variable's neighbours that are looked at, small ones first; ten neighbours never have more.
MOST_CLIQUES = 1 << 10
# Steps of a climb that take about as long as one here.
_STEPS_OF_A_CLIMB = 10

_INSERT, _DELETE, _TURN, _N_PHASES = 0, 1, 2, 3


class Around(NamedTuple):
    """The moves of one kind, ``phase``, of a task at one variable Y: cliques C of Y's neighbours.

    ``gains`` is what Y's family with C gains by each variable; ``log_odds`` is what an arc between two variables adds
    to log P(G), whichever way it points: members of a class have arcs between the same ones.
    """

    task: NDArray[np.int64]
    log_odds: NDArray[np.float64]
    phase: NDArray[np.int64]
    y: NDArray[np.int64]
    n_cliques: NDArray[np.int64]
    cliques: Bits
    gains: NDArray[np.float64]


class Reached(NamedTuple):
    """Where a search is: its score; numbers of steps, of phases that ended, and of those that ended without a step.

    Of every variable and phase, what a move there could gain at most, paths aside, and whether that is to be found
    anew.
    """

    score: NDArray[np.float64]
    numbers: NDArray[np.int64]
    ceiling: NDArray[np.float64]
    stale: NDArray[np.bool_]


def room_around(task: int, questions: Questions, log_odds: float | NDArray[np.float64] = 0.0) -> Around:
    """Make room for the moves of one task at one variable at a time."""
    one, zero = np.full(1, task, dtype=np.int64), np.zeros(1, dtype=np.int64)
    n, words = questions.gains.shape[1], questions.parents.shape[1]
    odds = np.full((n, n), log_odds, dtype=np.float64)
    cliques = np.zeros((MOST_CLIQUES, words), dtype=np.uint64)
    return Around(one, odds, zero, zero.copy(), zero.copy(), cliques, np.zeros(n))


def search_class(
    problem: Problem,
    task: int,
    start: NDArray[np.bool_] | None = None,
    log_odds: float | NDArray[np.float64] = 0.0,
) -> Found:
    """Search one task's classes: insert arcs until nothing gains, then delete, then turn, and again until nothing does.

    The score must be the same for all members of a class, as BDeu and BIC are, and no arc required or forbidden. No
    change of one arc betters any member of the class found, so that a climb from it ends at once. The limit on parents
    is kept to: if one member of a class is within it, then all are, since they differ by reversals that exchange the
    numbers of parents of two variables. Where more than ``MOST_CLIQUES`` cliques are among a variable's neighbours,
    large ones are left out. Ctrl-C ends the search early, if it is part of work that leaves what there is.

    Parameters
    ----------
    problem : Problem
        Cases, score and limit on parents.
    task : int
        Which task.
    start : bool ndarray, optional
        A structure, not above the limit on parents, whose class is the start; without arcs by default.
    log_odds : float or symmetric ndarray of shape (n_variables, n_variables), default=0.0
        What every arc, or one between two variables, adds to the log prior of a structure.

    Returns
    -------
    Found
        A member of the class found, earliest variables first, its score, and the number of moves.

    References
    ----------
    .. [1] D. M. Chickering, "Optimal structure identification with greedy search", JMLR 3, 2002.
    .. [2] A. Hauser and P. Bühlmann, "Characterization and greedy learning of interventional Markov equivalence classes
       of directed acyclic graphs", JMLR 13, 2012.

    Examples
    --------
    >>> from kinfolk.networks.model.data import lay_out
    >>> from kinfolk.networks.model.family_scores import make_problem
    >>> from kinfolk.networks.model.network import Constraints
    >>> from kinfolk.networks.model.scores import CRITERIA
    >>> rows = np.repeat([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]], 25, axis=0)
    >>> rows[:20, 2] = 1
    >>> free = Constraints(~np.eye(3, dtype=bool), np.zeros((3, 3), dtype=bool), 3)
    >>> found = search_class(make_problem(lay_out([rows], np.array([2, 2, 2])), CRITERIA["bdeu"], 1.0, free), 0)
    >>> found.adjacency.astype(int).tolist()
    [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
    """
    n = len(problem.cases.cards)
    adjacency = np.zeros((n, n), dtype=bool) if start is None else np.array(start, dtype=bool)
    questions = no_questions(MOST_CLIQUES + n, problem.cases)
    reached = Reached(
        score=np.zeros(1),
        numbers=np.zeros(3, dtype=np.int64),
        ceiling=np.full((_N_PHASES, n), -np.inf),
        stale=np.ones((_N_PHASES, n), dtype=np.bool_),
    )
    given = problem, questions, room_around(task, questions, log_odds), adjacency, reached
    at_once = max(pieces_at_once(problem, np.array([task])) // _STEPS_OF_A_CLIMB, 1)
    more = _take_steps(*given, True, 0 if asked() else at_once)
    while more and not asked():
        more = _take_steps(*given, False, at_once)
    return Found(adjacency, float(reached.score[0]), int(reached.numbers[0]))


@compiled
def _take_steps(
    problem: Problem,
    questions: Questions,
    around: Around,
    adjacency: NDArray[np.bool_],
    reached: Reached,
    begins: bool,
    at_once: int,
) -> bool:
    """Move from the class of one structure, which is overwritten, towards a class that no move betters.

    Begins, or goes on, with so many steps at most; tells whether there are more to take.
    """
    n, words, task, present = len(adjacency), questions.parents.shape[1], around.task[0], problem.cases.present
    pdag, after = no_pdag(n), no_pdag(n)
    complete(adjacency, pdag)
    total = reached.score[0]
    if begins:
        clear(questions)
        for v in range(n):
            if present[task, v]:
                _ask_about_parents(problem.scores, questions, task, adjacency, v)
        if questions.n_open[0]:
            answer(problem, questions)
        for row in range(questions.n[0]):
            total += questions.score[row]
        for v in range(n):
            for p in range(n):
                total += around.log_odds[p, v] * adjacency[p, v]
    chosen = np.zeros((1, words), dtype=np.uint64)
    ceiling, stale = reached.ceiling, reached.stale
    n_steps, n_ended, resting = reached.numbers[0], reached.numbers[1], reached.numbers[2]
    last = n_steps + at_once
    while resting < _N_PHASES and n_steps < last:
        phase = n_ended % _N_PHASES
        best, best_x, best_y = 0.0, int64(-1), int64(-1)
        around.phase[0] = phase
        for y in range(n):
            if not present[task, y]:
                continue
            around.y[0] = y
            while stale[phase, y] or ceiling[phase, y] > best + TIE:
                # Whether paths allow a move is looked at only if something without them could be best.
                paths = not stale[phase, y]
                floor = best if paths else 0.0
                found, x, place = _best_at(problem, questions, pdag, around, floor, paths)
                if not paths:
                    ceiling[phase, y] = found
                    stale[phase, y] = False
                    continue
                if x >= 0:
                    best, best_x, best_y = found, x, y
                    for w in range(words):
                        chosen[0, w] = around.cliques[place, w]
                break
        if best_x < 0:
            resting += 1
            n_ended += 1
            continue
        resting = 0
        n_steps += 1
        total += best
        extend(pdag, _in_order(chosen, best_y, best_x if phase == _TURN else int64(-1)), adjacency)
        adjacency[best_y, best_x] = False
        adjacency[best_x, best_y] = phase != _DELETE
        complete(adjacency, after)
        _mark(pdag, after, best_x, best_y, stale)
        pdag, after = after, pdag
    extend(pdag, np.empty(0, dtype=np.int64), adjacency)
    reached.score[0] = total
    reached.numbers[0], reached.numbers[1], reached.numbers[2] = n_steps, n_ended, resting
    return bool(resting < _N_PHASES)


@spliced
def _best_at(
    problem: Problem, questions: Questions, pdag: Pdag, around: Around, floor: float, paths: bool
) -> tuple[float, int, int]:
    """Find the best move at Y that gains more than ``floor``: its gain, X (−1 if there is none), and place of C."""
    best, best_x, best_place = floor, int64(-1), int64(-1)
    y, turning = around.y[0], around.phase[0] == _TURN
    _ask_about_cliques(problem.scores, questions, pdag, problem.constraints.most_parents, around)
    if questions.n_open[0]:
        answer(problem, questions)
    for place in range(around.n_cliques[0]):
        for x in range(len(around.gains)):
            around.gains[x] = questions.gains[place, x]
        if turning:
            _ask_about_other_ends(problem.scores, questions, pdag, around, place)
            if questions.n_open[0]:
                answer(problem, questions)
            for row in range(around.n_cliques[0], questions.n[0]):
                around.gains[questions.child[row]] += questions.gains[row, y]
        gain, better_x = _best_with(pdag, around, place, best, paths)
        if better_x >= 0:
            best, best_x, best_place = gain, better_x, place
    return best, best_x, best_place


@spliced
def _ask_about_parents(
    scores: FamilyScores, questions: Questions, task: int, adjacency: NDArray[np.bool_], v: int
) -> None:
    """Ask for the score of a variable with its parents."""
    row = questions.n[0]
    for w in range(questions.parents.shape[1]):
        questions.parents[row, w] = np.uint64(0)
    for p in range(len(adjacency)):
        if adjacency[p, v]:
            include(questions.parents, row, p)
    ask(scores, questions, task, v)


@spliced
def _ask_about_cliques(
    scores: FamilyScores, questions: Questions, pdag: Pdag, most_parents: int, around: Around
) -> None:
    """Ask, for each clique C of Y's neighbours, what Y's family with its own parents and C gains."""
    n_parents, y = 0, around.y[0]
    for p in range(len(around.gains)):
        n_parents += among(pdag.parents, y, p)
    around.n_cliques[0] = cliques_around(pdag, y, most_parents - n_parents, around.cliques)
    clear(questions)
    for place in range(around.n_cliques[0]):
        for w in range(questions.parents.shape[1]):
            questions.parents[place, w] = pdag.parents[y, w] | around.cliques[place, w]
        ask(scores, questions, around.task[0], y)


@spliced
def _ask_about_other_ends(scores: FamilyScores, questions: Questions, pdag: Pdag, around: Around, place: int) -> None:
    """Ask what each X that Y has an arc or edge to gains without Y; to others no gain is left."""
    y, cliques, gains = around.y[0], around.cliques, around.gains
    # Questions about Y itself stay.
    questions.n[0] = around.n_cliques[0]
    for x in range(len(gains)):
        if gains[x] == -np.inf:
            continue
        row, loose = questions.n[0], False
        near = among(pdag.neighbours, y, x)
        for w in range(cliques.shape[1]):
            questions.parents[row, w] = pdag.parents[x, w]
            if near:
                questions.parents[row, w] |= cliques[place, w] & pdag.adjacent[x, w]
            if cliques[place, w] & ~pdag.adjacent[x, w]:
                loose = True
        if near:
            include(questions.parents, row, y)
        # With all of C adjacent to a neighbour X, the arc turned leaves the class as it is.
        if (among(cliques, place, x) or not loose) if near else not among(pdag.onward, y, x):
            gains[x] = -np.inf
        else:
            ask(scores, questions, around.task[0], x)


@spliced
def _mark(before: Pdag, pdag: Pdag, x: int, y: int, stale: NDArray[np.bool_]) -> None:
    """Mark the variables for which a move between X and Y changed what moves there are, paths aside.

    That hangs on what a variable is adjacent to and how, and on which of its neighbours are adjacent; for turning, on
    the same of the variables that it has arcs or edges to.
    """
    n, n_words = pdag.parents.shape
    changed = np.zeros(n, dtype=np.bool_)
    for v in range(n):
        changed[v] = v in (x, y) or (among(pdag.neighbours, v, x) and among(pdag.neighbours, v, y))
        for w in range(n_words):
            if pdag.parents[v, w] != before.parents[v, w] or pdag.neighbours[v, w] != before.neighbours[v, w]:
                changed[v] = True
    for v in range(n):
        if changed[v]:
            for u in range(n):
                if u == v or among(pdag.onward, u, v):
                    stale[_TURN, u] = True
            stale[_INSERT, v] = stale[_DELETE, v] = True


@spliced
def _in_order(clique: Bits, y: int, x: int) -> NDArray[np.int64]:
    """List a set's variables, then Y, then X if there is one."""
    out = np.empty(64 * clique.shape[1] + 2, dtype=np.int64)
    size = 0
    for v in range(64 * clique.shape[1]):
        if among(clique, int64(0), v):
            out[size] = v
            size += 1
    out[size], out[size + 1] = y, x
    return out[: size + 1 + (x >= 0)]


@spliced
def _best_with(pdag: Pdag, around: Around, place: int, floor: float, paths: bool) -> tuple[float, int]:
    """Find the best move at Y with one clique that gains more than ``floor``: its gain, and X (−1 if there is none).

    Whether paths allow a move is looked at only if ``paths`` says so: all else changes only near a move.
    """
    y, phase, cliques, gains = around.y[0], around.phase[0], around.cliques, around.gains
    n = len(gains)
    reached = np.empty(n, dtype=np.bool_)
    best, best_x, knows_paths = floor, int64(-1), False
    sign = 1.0 if phase == _INSERT else -1.0 if phase == _DELETE else 0.0
    for x in range(n):
        gain = gains[x] + sign * around.log_odds[x, y]
        if gain <= best + TIE or x == y:
            continue
        if phase == _DELETE:
            if not (among(cliques, place, x) or among(pdag.parents, y, x)):
                continue
        elif phase == _INSERT and among(pdag.adjacent, y, x):
            continue
        if paths and phase != _DELETE:
            if among(pdag.neighbours, y, x):
                if not _parts(pdag, y, x, cliques, place):
                    continue
            else:
                if not knows_paths:
                    reach(pdag, y, cliques, place, reached)
                    knows_paths = True
                if _other_way(pdag, y, x, reached) if phase == _TURN else reached[x]:
                    continue
        best, best_x = gain, x
    return best, best_x


@spliced
def _other_way(pdag: Pdag, y: int, x: int, reached: NDArray[np.bool_]) -> bool:
    """Tell whether Y's paths lead to X by another parent of it."""
    found = False
    for p in range(len(reached)):
        found |= p != y and reached[p] and among(pdag.parents, x, p)
    return found


@spliced
def _parts(pdag: Pdag, y: int, x: int, cliques: Bits, place: int) -> bool:
    """Tell whether Y and what C has adjacent to its neighbour X part X from the rest of C."""
    blocked = np.empty((1, cliques.shape[1]), dtype=np.uint64)
    for w in range(cliques.shape[1]):
        blocked[0, w] = cliques[place, w] & pdag.adjacent[x, w]
    here = int64(0)
    include(blocked, here, y)
    reached = np.empty(len(pdag.adjacent), dtype=np.bool_)
    reach(pdag, x, blocked, here, reached)
    parted = True
    for c in range(len(reached)):
        parted &= not (reached[c] and among(cliques, place, c))
    return parted
