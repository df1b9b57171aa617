"""Bayesian hierarchical clustering of tasks (Heller and Ghahramani 2005; paper 000, section 3).

Sums are kept unnormalised and in logs. With m(S) the log marginal of a set of tasks, t for a sub-tree's sum over its
partitions and a the concentration,

    t_leaf = log a + m(leaf),    t_k = log( aΓ(n_k) e^{m(k)} + e^{t_i + t_j} ),

so that the log odds of a merge are log a + logΓ(n_k) + m(i ∪ j) − t_i − t_j: they depend on the two parts alone and,
unlike the probability r itself, never saturate. The tree's sum is t_root + logΓ(a) − logΓ(U + a).
"""

from __future__ import annotations

from math import lgamma
from typing import TYPE_CHECKING

import numba
import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.dirichlet import DirichletProduct, log_marginal_of_sum, log_marginals
from kinfolk.partition.crp import log_normaliser
from kinfolk.partition.tree import TaskTree

if TYPE_CHECKING:
    from collections.abc import Callable


def cluster_hierarchically(
    counts: NDArray[np.generic],
    product: DirichletProduct,
    concentration: float,
    progress: Callable[[int], None] | None = None,
) -> TaskTree:
    """Build the greedy tree: join the pair with the highest log odds until one cluster is left.

    O(U² · cells) time and O(U²) memory for U tasks: the odds of all pairs are kept, each row remembers its best
    partner, and a merge refreshes the one row that it makes. Of equal odds the pair that comes first wins.

    Examples
    --------
    >>> from kinfolk.maths.dirichlet import dirichlet_product
    >>> counts = np.array([[9, 1], [1, 9], [8, 2]], dtype=np.int32)
    >>> tree = cluster_hierarchically(counts, dirichlet_product(np.ones(2), np.array([0, 2]), 30), 1.0)
    >>> tree.partition().tolist()
    [0, 1, 0]
    """
    n = len(counts)
    if n == 1:
        alone = float(log_marginals(counts, product)[0])
        return TaskTree(np.empty((0, 2), dtype=np.int64), np.empty(0), alone)
    merged = counts.astype(counts.dtype, copy=True)
    log_concentration = np.log(concentration)
    alive, node, size, log_sums, odds, best = _start(merged, product, log_concentration)
    children = np.empty((n - 1, 2), dtype=np.int64)
    log_odds = np.empty(n - 1)
    # Merging in stretches lets a caller see progress and interrupt.
    stretch = max(1, n // 50)
    for done in range(0, n - 1, stretch):
        until = min(done + stretch, n - 1)
        _merge(
            merged, product, log_concentration, alive, node, size, log_sums, odds, best, children, log_odds, done, until
        )
        if progress is not None:
            progress(until - done)
    root = int(np.flatnonzero(alive)[0])
    return TaskTree(children, log_odds, float(log_sums[root]) + log_normaliser(n, concentration))


@numba.njit(cache=True, nogil=True)
def _start(counts, product, log_concentration):  # type: ignore[no-untyped-def]
    """Every task alone, the odds of all pairs, and the best partner after each row's own."""
    n = len(counts)
    alive = np.ones(n, dtype=np.bool_)
    node = np.arange(n)
    size = np.ones(n, dtype=np.int64)
    log_sums = log_marginals(counts, product) + log_concentration
    odds = np.full((n, n), -np.inf)
    best = np.full(n, -1)
    for i in range(n):
        for j in range(i + 1, n):
            joined = log_concentration + log_marginal_of_sum(counts[i], counts[j], product)
            odds[i, j] = joined - log_sums[i] - log_sums[j]
            if best[i] < 0 or odds[i, j] > odds[i, best[i]]:
                best[i] = j
    return alive, node, size, log_sums, odds, best


@numba.njit(cache=True, nogil=True)
def _merge(  # type: ignore[no-untyped-def]
    counts,
    product,
    log_concentration,
    alive,
    node,
    size,
    log_sums,
    odds,
    best,
    children,
    log_odds,
    done,
    until,
):
    """Perform merges number ``done`` to ``until`` in place; a joined cluster lives on in its first part's row."""
    n = len(counts)
    for step in range(done, until):
        i = -1
        for row in range(n):
            if alive[row] and best[row] >= 0 and (i < 0 or odds[row, best[row]] > odds[i, best[i]]):
                i = row
        j = best[i]
        children[step, 0], children[step, 1] = node[i], node[j]
        log_odds[step] = odds[i, j]
        split = log_sums[i] + log_sums[j]
        one = split + odds[i, j]
        high = max(one, split)
        log_sums[i] = high + np.log1p(np.exp(min(one, split) - high))
        for c in range(counts.shape[1]):
            counts[i, c] += counts[j, c]
        size[i] += size[j]
        node[i] = n + step
        alive[j] = False
        best[j] = -1
        for k in range(n):
            if k == i or not alive[k]:
                continue
            joined = log_concentration + lgamma(float(size[i] + size[k]))
            joined += log_marginal_of_sum(counts[i], counts[k], product)
            odds[min(i, k), max(i, k)] = joined - log_sums[i] - log_sums[k]
        for row in range(n):
            if not alive[row]:
                continue
            if row == i or best[row] == i or best[row] == j:
                best[row] = -1
                for k in range(row + 1, n):
                    if alive[k] and (best[row] < 0 or odds[row, k] > odds[row, best[row]]):
                        best[row] = k
            elif row < i and (
                odds[row, i] > odds[row, best[row]] or (odds[row, i] == odds[row, best[row]] and i < best[row])
            ):
                best[row] = i
