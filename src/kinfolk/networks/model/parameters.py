"""Tables of a known structure by Bayesian updating (Cooper and Herskovits, 1992, corollary 8).

With a Dirichlet prior of α for each cell, the posterior mean of value k of a variable under configuration u of its
parents is

    θ_uk = (n_uk + α) / (N_u + α·r),        α = ess / (q·r) for BDeu,  1 for K2,

r counting the variable's states and q its parents' configurations.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.networks.model.data import Data
from kinfolk.networks.model.network import Network, Structures, parents_of
from kinfolk.networks.model.scores.bdeu import CRITERION as BDEU
from kinfolk.networks.model.scores.criterion import Criterion

# Most cells of one table: 128 MB.
LARGEST_TABLE = 1 << 24


def learn_tables(
    codes: NDArray[np.integer[Any]],
    parents: Sequence[Sequence[int]],
    cards: NDArray[np.integer[Any]],
    criterion: Criterion = BDEU,
    ess: float = 1.0,
    weights: NDArray[np.float64] | None = None,
    variables: Sequence[str] | None = None,
) -> tuple[NDArray[np.float64], ...]:
    """Posterior mean of every table.

    Parameters
    ----------
    codes : int array of shape (n_rows, n_variables)
        A row counts for a family if none of the family's cells is missing (below zero).
    parents : sequence of sequences of int
        Places of each variable's parents.
    cards : int array of shape (n_variables,)
        Number of states of each variable.
    criterion : Criterion
        The score whose prior is updated.
    ess : float
        Equivalent sample size of BDeu's prior (and of the one used for BIC).
    weights : ndarray of shape (n_rows,), optional
        How many rows each row stands for.
    variables : sequence of str, optional
        Names for error messages.

    Returns
    -------
    tables : tuple of ndarray
        One axis for each parent, in the order given, then the variable's own.

    Examples
    --------
    >>> codes = np.array([[0, 0], [0, 0], [1, 1]])
    >>> from kinfolk.networks.model.scores import CRITERIA
    >>> a, b = learn_tables(codes, [[], [0]], np.array([2, 2]), CRITERIA["k2"])
    >>> a.tolist(), b[0].tolist()
    ([0.6, 0.4], [0.75, 0.25])
    """
    shapes = [table_shape(v, its, cards, variables) for v, its in enumerate(parents)]
    families = [(*its, v) for v, its in enumerate(parents)]
    cells = np.cumsum([0, *map(prod, shapes)])
    means = np.zeros(cells[-1])
    _posterior_means(
        np.asarray(codes, dtype=np.int32, order="F"),
        np.array([u for family in families for u in family], dtype=np.int64),
        np.cumsum([0, *map(len, families)]),
        np.asarray(cards, dtype=np.int64),
        np.zeros(0) if weights is None else weights,
        np.array([criterion.cell_prior(ess, prod(shape)) for shape in shapes]),
        cells,
        np.empty(len(codes), dtype=np.int32),
        np.empty(max(map(prod, shapes), default=0)),
        means,
    )
    starts = cells.tolist()
    return tuple(means[starts[v] : starts[v + 1]].reshape(shape) for v, shape in enumerate(shapes))


def learn_networks(
    structures: Structures,
    data: Data,
    criterion: Criterion,
    ess: float,
    shared: Sequence[Sequence[NDArray[np.float64]]] | None = None,
) -> tuple[Network, ...]:
    """Give every task's structure its tables, over the variables that the task has.

    Parameters
    ----------
    structures : bool array of shape (n_tasks, n_variables, n_variables)
    data : Data
    criterion, ess
        As for :func:`learn_tables`.
    shared : sequence of sequences of ndarray, optional
        Tables of every task and variable, where they are known already.
    """
    networks = []
    for t, here in enumerate(data.present):
        own = np.flatnonzero(here).tolist()
        parents = parents_of(structures[t][np.ix_(own, own)])
        names = tuple(data.variables[v] for v in own)
        if shared is None:
            weights = None if data.weights is None else data.weights[t]
            codes = data.codes[t] if here.all() else data.codes[t][:, own]
            tables = learn_tables(codes, parents, data.cards[own], criterion, ess, weights, names)
        else:
            tables = tuple(shared[t][v] for v in own)
        networks.append(Network(names, tuple(data.states[v] for v in own), parents, tables))
    return tuple(networks)


def table_shape(
    v: int, parents: Sequence[int], cards: NDArray[np.integer[Any]], variables: Sequence[str] | None = None
) -> tuple[int, ...]:
    """Shape of a variable's table; one that does not fit in memory is refused."""
    shape = tuple(int(cards[u]) for u in (*parents, v))
    if prod(shape) > LARGEST_TABLE:
        name = f"variable {v}" if variables is None else f"variable {variables[v]!r}"
        raise ValueError(
            f"{name}: with its {len(parents)} parents its table would have more than {LARGEST_TABLE} cells; "
            "set max_parents lower or merge states"
        )
    return shape


def family_cells(
    codes: NDArray[np.integer[Any]], v: int, parents: Sequence[int], cards: NDArray[np.integer[Any]]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Place of each row in a variable's table, laid flat, and which rows miss nothing of the family."""
    place = np.zeros(len(codes), dtype=np.int64)
    known = np.ones(len(codes), dtype=bool)
    for u in (*parents, v):
        column = codes[:, u]
        known &= column >= 0
        place *= cards[u]
        place += column
    return place, known


@compiled
def _tally(
    place: NDArray[np.int32], weights: NDArray[np.float64], out: NDArray[np.float64], spare: NDArray[np.float64]
) -> None:
    """Add up rows, or their weights, by their place.

    Most rows may have the same place, and each addition there waits for the one before: without weights, whose sums
    hang on their order, each half of the rows has a table of its own.
    """
    half = 0 if len(weights) else len(place) // 2
    for cell in range(len(out)):
        spare[cell] = 0.0
    for row in range(half):
        if place[row] >= 0:
            out[place[row]] += 1.0
        if place[half + row] >= 0:
            spare[place[half + row]] += 1.0
    for row in range(2 * half, len(place)):
        if place[row] >= 0:
            out[place[row]] += weights[row] if len(weights) else 1.0
    for cell in range(len(out)):
        out[cell] += spare[cell]


@compiled
def _posterior_means(
    codes: NDArray[np.int32],
    members: NDArray[np.int64],
    first: NDArray[np.int64],
    cards: NDArray[np.int64],
    weights: NDArray[np.float64],
    priors: NDArray[np.float64],
    first_cell: NDArray[np.int64],
    place: NDArray[np.int32],
    spare: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    """Count the rows of every family, parents and then the variable itself, and turn counts into posterior means.

    Family f is ``members[first[f] : first[f + 1]]``, its cells, zeros, ``out[first_cell[f] : first_cell[f + 1]]``.
    ``place`` is room for the place of each row in a family's table, −1 where it misses something of the family, and
    ``spare`` for a second table.
    """
    for f in range(len(priors)):
        for row in range(len(codes)):
            place[row] = 0
        for a in range(first[f], first[f + 1]):
            u = members[a]
            card = np.int32(cards[u])
            for row in range(len(codes)):
                code = codes[row, u]
                place[row] = place[row] * card + code if code >= 0 and place[row] >= 0 else np.int32(-1)
        start = first_cell[f]
        _tally(place, weights, out[start : first_cell[f + 1]], spare)
        n_values = cards[members[first[f + 1] - 1]]
        for cell in range(start, first_cell[f + 1], n_values):
            total = 0.0
            for x in range(n_values):
                total += out[cell + x]
            for x in range(n_values):
                out[cell + x] = (out[cell + x] + priors[f]) / (total + priors[f] * n_values)
