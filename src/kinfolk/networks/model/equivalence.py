"""Markov equivalence classes of directed acyclic graphs, as completed partially directed graphs.

A class is kept as one matrix: an arc that all its members share is marked in its direction alone, an edge whose
direction differs between members in both.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kinfolk.networks.model.network import Adjacency, topological_order
from kinfolk.networks.model.pdag import complete, no_pdag


def completed(adjacency: Adjacency, variables: Sequence[str] | None = None) -> Adjacency:
    """Completed graph of the equivalence class of a directed acyclic graph.

    Found by the algorithm of Chickering [1]_, as the search over classes finds it.

    Parameters
    ----------
    adjacency : bool ndarray
        Matrix of arcs, from row to column.
    variables : sequence of str, optional
        Names with which an error describes a cycle.

    Returns
    -------
    bool ndarray
        Compelled arcs marked in one direction, reversible ones in both.

    Raises
    ------
    ValueError
        Where the arcs form a cycle.

    References
    ----------
    .. [1] D. M. Chickering, "A Transformational Characterization of Equivalent Bayesian Network Structures", UAI 1995.

    Examples
    --------
    >>> chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=bool)
    >>> completed(chain).astype(int).tolist()
    [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    >>> collider = np.array([[0, 1, 0], [0, 0, 0], [0, 1, 0]], dtype=bool)
    >>> bool((completed(collider) == collider).all())
    True
    """
    arcs = np.asarray(adjacency, dtype=bool)
    topological_order(arcs, variables)  # an error names the variables of a cycle
    pdag = no_pdag(len(arcs))
    complete(arcs, pdag)
    bits = np.ascontiguousarray(pdag.parents | pdag.neighbours).view(np.uint8)
    return np.unpackbits(bits, axis=1, count=len(arcs), bitorder="little").astype(bool).T


def extension(pdag: Adjacency) -> Adjacency | None:
    """A directed acyclic graph with the edges, the arcs and no further v-structures of a partially directed one.

    Takes away, one after the other, a variable that can be last: without arcs out of it, and such that turning its
    edges towards it makes no new v-structure [1]_. Of several, the first is taken.

    Parameters
    ----------
    pdag : bool ndarray
        Arcs marked in one direction, edges without direction in both.

    Returns
    -------
    bool ndarray or None
        None where there is no such graph.

    References
    ----------
    .. [1] D. Dor and M. Tarsi, "A simple algorithm to construct a consistent extension of a partially oriented graph",
       Technical Report R-185, Cognitive Systems Laboratory, UCLA, 1992.

    Examples
    --------
    >>> square = np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]], dtype=bool)
    >>> extension(square) is None
    True
    >>> path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=bool)
    >>> extension(path).astype(int).tolist()
    [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    """
    left = np.array(pdag, dtype=bool)
    directed: Adjacency = left & ~left.T
    linked = left | left.T
    waiting = np.ones(len(left), dtype=bool)
    while waiting.any():
        for last in np.flatnonzero(waiting & ~(left & ~left.T).any(axis=1)):
            undirected = np.flatnonzero(left[last] & left[:, last])
            around = np.flatnonzero(linked[last])
            ties = linked[np.ix_(undirected, around)] | (undirected[:, None] == around)
            if ties.all():
                directed[undirected, last] = True
                left[last] = left[:, last] = linked[last] = linked[:, last] = waiting[last] = False
                break
        else:
            return None
    return directed


def same_class(a: Adjacency, b: Adjacency) -> bool:
    """Whether two directed acyclic graphs imply the same independences.

    Examples
    --------
    >>> forwards = np.array([[0, 1], [0, 0]], dtype=bool)
    >>> same_class(forwards, forwards.T)
    True
    """
    return np.array_equal(completed(a), completed(b))
