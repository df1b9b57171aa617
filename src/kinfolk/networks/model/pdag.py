"""Equivalence classes of structures inside compiled searches: completed graphs as sets of bits, and their members.

An arc that all members of a class share leads from parent to child; other edges join neighbours. The edges between
neighbours fall into chordal parts, and all variables of a part have the same parents [1]_. So a member is found by
ordering each part such that a variable's neighbours before it are always a clique, and any such order will do.

References
----------
.. [1] S. A. Andersson, D. Madigan and M. D. Perlman, "A characterization of Markov equivalence classes for acyclic
   digraphs", Annals of Statistics 25(2), 1997.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.networks.model.bits import Bits, among, include
from kinfolk.networks.model.kernels import int64, spliced


class Pdag(NamedTuple):
    """A class's completed graph: sets of bits, a row for each variable."""

    parents: Bits
    neighbours: Bits
    onward: Bits
    """Children and neighbours: where a path may go on that follows no arc backwards."""
    adjacent: Bits


@compiled
def no_pdag(n: int) -> Pdag:
    """Make the class of the structure without arcs."""
    shape = (n, (n + 63) // 64)
    return Pdag(
        np.zeros(shape, np.uint64), np.zeros(shape, np.uint64), np.zeros(shape, np.uint64), np.zeros(shape, np.uint64)
    )


@compiled
def complete(adjacency: NDArray[np.bool_], out: Pdag) -> None:
    """Find the class of a directed acyclic graph.

    Arcs are taken by head, parents before children; the arc from the head's latest parent settles all others
    (Chickering, "A Transformational Characterization of Equivalent Bayesian Network Structures", UAI 1995).
    """
    n = len(adjacency)
    waiting = np.zeros(n, dtype=np.int64)
    order = np.empty(n, dtype=np.int64)
    rank = np.empty(n, dtype=np.int64)
    compelled = np.zeros((n, n), dtype=np.bool_)
    n_ready = 0
    for tail in range(n):
        for head in range(n):
            waiting[head] += adjacency[tail, head]
    for v in range(n):
        if waiting[v] == 0:
            order[n_ready] = v
            n_ready += 1
    for v in range(n):
        for w in range(out.parents.shape[1]):
            out.parents[v, w] = out.neighbours[v, w] = out.onward[v, w] = out.adjacent[v, w] = np.uint64(0)
    tails = np.empty(n, dtype=np.int64)
    for place in range(n):
        head = order[place]
        rank[head] = place
        n_tails, latest = 0, int64(-1)
        for v in range(n):
            if adjacency[head, v]:
                waiting[v] -= 1
                if waiting[v] == 0:
                    order[n_ready] = v
                    n_ready += 1
            if adjacency[v, head]:
                tails[n_tails] = v
                n_tails += 1
                if latest < 0 or rank[v] > rank[latest]:
                    latest = v
        if n_tails == 0:
            continue
        all_compelled = False
        for v in range(n):
            if compelled[v, latest] and not adjacency[v, head]:
                all_compelled = True
            if adjacency[v, head] and v != latest and not adjacency[v, latest]:
                all_compelled = True
        for a in range(n_tails):
            tail = tails[a]
            compelled[tail, head] = all_compelled or compelled[tail, latest]
            include(out.adjacent, tail, head)
            include(out.adjacent, head, tail)
            include(out.onward, tail, head)
            if compelled[tail, head]:
                include(out.parents, head, tail)
            else:
                include(out.onward, head, tail)
                include(out.neighbours, head, tail)
                include(out.neighbours, tail, head)


@compiled
def extend(pdag: Pdag, first: NDArray[np.int64], out: NDArray[np.bool_]) -> None:
    """Write the member of a class in which given variables, a clique without directions, come first in their part.

    Each next variable is the one with most neighbours already there, the earliest of several. That order makes no
    v-structure (R. E. Tarjan and M. Yannakakis, "Simple linear-time algorithms to test chordality of graphs", 1984).
    """
    n = len(out)
    joined = np.zeros(n, dtype=np.int64)
    placed = np.zeros(n, dtype=np.bool_)
    for place in range(n):
        v = int64(-1)
        if place < len(first):
            v = first[place]
        else:
            for u in range(n):
                if not placed[u] and (v < 0 or joined[u] > joined[v]):
                    v = u
        placed[v] = True
        for u in range(n):
            out[u, v] = among(pdag.parents, v, u)
            if among(pdag.neighbours, v, u):
                if placed[u]:
                    out[u, v] = True
                else:
                    joined[u] += 1


@compiled
def reach(pdag: Pdag, start: int, blocked: Bits, place: int, out: NDArray[np.bool_]) -> None:
    """Find all that a path from one variable leads to, past no variable of one set and following no arc backwards."""
    n, n_words = len(out), pdag.onward.shape[1]
    for v in range(n):
        out[v] = False
    out[start] = True
    stack = np.empty(n, dtype=np.int64)
    stack[0], n_stack = start, 1
    while n_stack:
        n_stack -= 1
        v = stack[n_stack]
        for w in range(n_words):
            word = pdag.onward[v, w] & ~blocked[place, w]
            u = w << 6
            while word:
                if word & np.uint64(1) and not out[u]:
                    out[u] = True
                    stack[n_stack] = u
                    n_stack += 1
                word >>= np.uint64(1)
                u += 1


@spliced
def cliques_around(pdag: Pdag, centre: int, largest: int, out: Bits) -> int:
    """List cliques among a variable's neighbours, small ones first, as far as there is room; return how many."""
    n, n_words, room = len(pdag.adjacent), out.shape[1], len(out)
    around = np.empty(n, dtype=np.int64)
    n_around = 0
    for v in range(n):
        if among(pdag.neighbours, centre, v):
            around[n_around] = v
            n_around += 1
    follows = np.zeros(room, dtype=np.int64)
    size = np.zeros(room, dtype=np.int64)
    for w in range(n_words):
        out[0, w] = np.uint64(0)
    found, place = 1, 0
    while place < found:
        if size[place] < largest:
            for a in range(follows[place], n_around):
                inside = True
                for w in range(n_words):
                    if out[place, w] & ~pdag.adjacent[around[a], w]:
                        inside = False
                if inside:
                    if found == room:
                        return found
                    for w in range(n_words):
                        out[found, w] = out[place, w]
                    include(out, found, around[a])
                    follows[found], size[found] = a + 1, size[place] + 1
                    found += 1
        place += 1
    return found
