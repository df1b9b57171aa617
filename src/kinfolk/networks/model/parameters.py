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
from kinfolk.networks.model.network import Network, Structures
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
    tables = []
    for v, its in enumerate(parents):
        shape = table_shape(v, its, cards, variables)
        counts = family_counts(codes, v, its, cards, weights)
        prior = criterion.cell_prior(ess, prod(shape))
        tables.append(((counts + prior) / (counts.sum(axis=1, keepdims=True) + prior * shape[-1])).reshape(shape))
    return tuple(tables)


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
        parents = tuple(tuple(np.flatnonzero(structures[t, own, v]).tolist()) for v in own)
        names = tuple(data.variables[v] for v in own)
        if shared is None:
            weights = None if data.weights is None else data.weights[t]
            tables = learn_tables(data.codes[t][:, own], parents, data.cards[own], criterion, ess, weights, names)
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


def family_counts(
    codes: NDArray[np.integer[Any]],
    v: int,
    parents: Sequence[int],
    cards: NDArray[np.integer[Any]],
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Rows (or their weights) for each configuration of the parents (rows) and each state (columns)."""
    family = np.array([*parents, v])
    counts = np.zeros(prod(int(cards[u]) for u in family))
    rows = np.asarray(codes, dtype=np.int32, order="F")
    _tally(rows, family, cards[family].astype(np.int64), np.zeros(0) if weights is None else weights, counts)
    return counts.reshape(-1, int(cards[v]))


@compiled
def _tally(
    codes: NDArray[np.int32],
    family: NDArray[np.int64],
    cards: NDArray[np.int64],
    weights: NDArray[np.float64],
    counts: NDArray[np.float64],
) -> None:
    for row in range(len(codes)):
        place = 0
        for u in range(len(family)):
            code = codes[row, family[u]]
            if code < 0:
                place = -1
                break
            place = place * cards[u] + code
        if place >= 0:
            counts[place] += weights[row] if len(weights) else 1.0
