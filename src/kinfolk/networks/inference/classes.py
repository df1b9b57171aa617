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

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.networks.inference.climb import TIE, Climb
from kinfolk.networks.inference.restarts import Problem
from kinfolk.networks.model.cases import Cases
from kinfolk.networks.model.families import Rule
from kinfolk.networks.model.pdag import Bits, Pdag, among, cliques_around, complete, extend, include, no_pdag, reach
from kinfolk.networks.model.score_cache import Columns, column, put

# Cliques among one variable's neighbours that are looked at, small ones first; ten neighbours never have more.
MOST_CLIQUES = 1 << 10

PH = 3
_INSERT, _DELETE, _TURN, _N_PHASES = 0, 1, 2, 3


def search_class(problem: Problem, task: int, start: NDArray[np.bool_] | None = None) -> Climb:
    """Search one task's classes: insert arcs until nothing gains, then delete, then turn, and again until nothing does.

    The score must be the same for all members of a class, as BDeu and BIC are, and no arc required or forbidden. No
    change of one arc betters any member of the class found, so that a climb from it ends at once. The limit on parents
    is kept to: if one member of a class is within it, then all are, since they differ by reversals that exchange the
    numbers of parents of two variables. Where more than ``MOST_CLIQUES`` cliques are among a variable's neighbours,
    large ones are left out.

    Parameters
    ----------
    problem : Problem
        Cases, score and limit on parents.
    task : int
        Which task.
    start : bool ndarray, optional
        A structure, not above the limit on parents, whose class is the start; without arcs by default.

    Returns
    -------
    Climb
        A member of the class found, earliest variables first, its score, and the number of moves.

    References
    ----------
    .. [1] D. M. Chickering, "Optimal structure identification with greedy search", JMLR 3, 2002.
    .. [2] A. Hauser and P. Bühlmann, "Characterization and greedy learning of interventional Markov equivalence classes
       of directed acyclic graphs", JMLR 13, 2012.

    Examples
    --------
    >>> from kinfolk.networks.model.cases import lay_out
    >>> from kinfolk.networks.inference.restarts import make_problem
    >>> from kinfolk.networks.model.constraints import Constraints
    >>> rows = np.repeat([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]], 25, axis=0)
    >>> rows[:20, 2] = 1
    >>> free = Constraints(~np.eye(3, dtype=bool), np.zeros((3, 3), dtype=bool), 3)
    >>> found = search_class(make_problem(lay_out([rows], np.array([2, 2, 2])), "bdeu", 1.0, free), 0)
    >>> found.adjacency.astype(int).tolist()
    [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
    """
    cases, rule, _, columns = problem
    n = cases.n_variables
    first = np.zeros((n, n), dtype=bool) if start is None else np.array(start, dtype=bool)
    return Climb(*_search(cases, rule, columns, task, first))


@compiled
def _search(
    cases: Cases, rule: Rule, columns: Columns, task: int, adjacency: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], float, int]:
    """Move from the class of one structure, which is overwritten, to a class that no move betters."""
    n, n_words = len(adjacency), columns.parents.shape[2]
    pdag, after = no_pdag(n), no_pdag(n)
    complete(adjacency, pdag)
    score = _score(cases, rule, columns, task, adjacency)
    cliques = np.zeros((MOST_CLIQUES, n_words), dtype=np.uint64)
    chosen = np.zeros((1, n_words), dtype=np.uint64)
    ceiling = np.full((_N_PHASES, n), -np.inf)
    stale = np.ones((_N_PHASES, n), dtype=np.bool_)
    n_steps, n_ended, resting = 0, 0, 0
    while resting < _N_PHASES:
        phase = n_ended % _N_PHASES
        best, best_x, best_y = 0.0, -1, -1
        for y in range(n):
            if not cases.present[task, y]:
                continue
            # A variable, not True and False: numba compiles a function anew for each constant that it is given.
            paths = not stale[phase, y]
            if not paths:
                ceiling[phase, y] = _best_at(cases, rule, columns, task, pdag, y, phase, 0.0, paths, cliques)[0]
                stale[phase, y] = False
                paths = True
            if ceiling[phase, y] <= best + TIE:
                continue
            gain, x, place = _best_at(cases, rule, columns, task, pdag, y, phase, best, paths, cliques)
            if x >= 0:
                best, best_x, best_y = gain, x, y
                for w in range(n_words):
                    chosen[0, w] = cliques[place, w]
        if best_x < 0:
            resting += 1
            n_ended += 1
            continue
        resting = 0
        n_steps += 1
        score += best
        extend(pdag, _in_order(chosen, best_y, best_x if phase == _TURN else -1), adjacency)
        adjacency[best_y, best_x] = False
        adjacency[best_x, best_y] = phase != _DELETE
        complete(adjacency, after)
        _mark(pdag, after, best_x, best_y, stale)
        pdag, after = after, pdag
    extend(pdag, np.empty(0, dtype=np.int64), adjacency)
    return adjacency, score, n_steps


@compiled
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


@compiled
def _score(cases: Cases, rule: Rule, columns: Columns, task: int, adjacency: NDArray[np.bool_]) -> float:
    """Score a structure."""
    family = np.zeros(columns.parents.shape[2], dtype=np.uint64)
    score = 0.0
    for v in range(len(adjacency)):
        if cases.present[task, v]:
            family[:] = np.uint64(0)
            for p in range(len(adjacency)):
                if adjacency[p, v]:
                    put(family, p)
            score += columns.score[task, column(cases, rule, columns, task, v, family)]
    return score


@compiled
def _in_order(clique: Bits, y: int, x: int) -> NDArray[np.int64]:
    """List a set's variables, then Y, then X if there is one."""
    out = np.empty(64 * clique.shape[1] + 2, dtype=np.int64)
    size = 0
    for v in range(64 * clique.shape[1]):
        if among(clique, 0, v):
            out[size] = v
            size += 1
    out[size], out[size + 1] = y, x
    return out[: size + 1 + (x >= 0)]


@compiled
def _best_at(
    cases: Cases,
    rule: Rule,
    columns: Columns,
    task: int,
    pdag: Pdag,
    y: int,
    phase: int,
    floor: float,
    paths: bool,
    cliques: Bits,
) -> tuple[float, int, int]:
    """Find the best move at Y that gains more than ``floor``: its gain, X (−1 if there is none), and place of C.

    Whether paths allow a move is looked at only if ``paths`` says so: all else changes only near a move.
    """
    n, n_words = len(cases.cards), cliques.shape[1]
    n_parents = 0
    for p in range(n):
        n_parents += among(pdag.parents, y, p)
    n_cliques = cliques_around(pdag, y, columns.most_parents - n_parents, cliques)
    family = np.empty(n_words, dtype=np.uint64)
    reached = np.empty(n, dtype=np.bool_)
    gains = np.empty(n)
    best, best_x, best_place = floor, -1, -1
    for place in range(n_cliques):
        for w in range(n_words):
            family[w] = pdag.parents[y, w] | cliques[place, w]
        slot = column(cases, rule, columns, task, y, family)
        for x in range(n):
            gains[x] = columns.gains[task, slot, x]
        if phase == _TURN:
            _add_other_ends(cases, rule, columns, task, pdag, y, cliques, place, gains)
        knows_paths = False
        for x in range(n):
            if gains[x] <= best + TIE or x == y:
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
            best, best_x, best_place = gains[x], x, place
    return best, best_x, best_place


@compiled
def _other_way(pdag: Pdag, y: int, x: int, reached: NDArray[np.bool_]) -> bool:
    """Tell whether Y's paths lead to X by another parent of it."""
    found = False
    for p in range(len(reached)):
        found |= p != y and reached[p] and among(pdag.parents, x, p)
    return found


@compiled
def _parts(pdag: Pdag, y: int, x: int, cliques: Bits, place: int) -> bool:
    """Tell whether Y and what C has adjacent to its neighbour X part X from the rest of C."""
    blocked = np.empty((1, cliques.shape[1]), dtype=np.uint64)
    for w in range(cliques.shape[1]):
        blocked[0, w] = cliques[place, w] & pdag.adjacent[x, w]
    include(blocked, 0, y)
    reached = np.empty(len(pdag.adjacent), dtype=np.bool_)
    reach(pdag, x, blocked, 0, reached)
    parted = True
    for c in range(len(reached)):
        parted &= not (reached[c] and among(cliques, place, c))
    return parted


@compiled
def _add_other_ends(
    cases: Cases,
    rule: Rule,
    columns: Columns,
    task: int,
    pdag: Pdag,
    y: int,
    cliques: Bits,
    place: int,
    gains: NDArray[np.float64],
) -> None:
    """Add to what Y gains by each X as a parent what that X gains without Y; −inf where Y has no arc or edge to X."""
    n_words = cliques.shape[1]
    family = np.empty(n_words, dtype=np.uint64)
    for x in range(len(gains)):
        if gains[x] == -np.inf:
            continue
        loose = False
        for w in range(n_words):
            family[w] = pdag.parents[x, w]
            if cliques[place, w] & ~pdag.adjacent[x, w]:
                loose = True
        if among(pdag.neighbours, y, x):
            for w in range(n_words):
                family[w] |= cliques[place, w] & pdag.adjacent[x, w]
            put(family, y)
            # With all of C adjacent to X, the arc turned leaves the class as it is.
            if among(cliques, place, x) or not loose:
                gains[x] = -np.inf
                continue
        elif not among(pdag.onward, y, x):
            gains[x] = -np.inf
            continue
        gains[x] += columns.gains[task, column(cases, rule, columns, task, x, family), y]
