"""Searching well: climbs from several starts, restarts from disturbed structures, the best of all kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.networks.inference.climb import climb
from kinfolk.networks.inference.problem import TIE, Found, Problem
from kinfolk.networks.model.constraints import Constraints, Structures
from kinfolk.networks.model.family_scores import MOST_CELLS
from kinfolk.networks.model.kernels import inner
from kinfolk.networks.model.priors import Prior


class Effort(NamedTuple):
    """How hard to search: length of the tabu list, number of restarts, and arcs changed before each."""

    tabu: int
    restarts: int
    changes: int


def search(
    problem: Problem,
    prior: Prior,
    members: NDArray[np.int64],
    start: Structures,
    effort: Effort,
    rng: np.random.Generator,
    advance: Callable[[int], None] = lambda steps: None,
) -> Found:
    """Climb from given structures; then, as often as asked, disturb the best ones seen and climb again."""
    best = climb(problem, prior, members, start, effort.tabu)
    advance(1)
    for _ in range(effort.restarts):
        disturbed = best.adjacency.copy()
        uniforms = rng.random((effort.changes, 3))
        _disturb(disturbed, problem.constraints, problem.cases.cards, problem.cases.present[members], uniforms)
        found = climb(problem, prior, members, disturbed, effort.tabu)
        if found.score > best.score + TIE:
            best = found
        advance(1)
    return best


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


@inner
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
