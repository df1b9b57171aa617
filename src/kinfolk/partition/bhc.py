"""Bayesian hierarchical clustering of tasks (Heller and Ghahramani 2005; Roy and Kaelbling 2007, section 3).

Sums are kept unnormalised and in logs. With m(S) the log marginal of a set of tasks, t for a sub-tree's sum over its
partitions and a the concentration,

    t_leaf = log a + m(leaf),    t_k = log( aΓ(n_k) e^{m(k)} + e^{t_i + t_j} ),

so that the log odds of a merge are log a + logΓ(n_k) + m(i ∪ j) − t_i − t_j: they depend on the two parts alone and,
unlike the probability r itself, never saturate. The tree's sum is t_root + logΓ(a) − logΓ(U + a).

A pair's odds never change while both of its clusters live. So each cluster remembers only its few best partners among
the clusters after it, and a limit that the odds of its other pairs keep to; it is compared with all of them again only
when its last remembered partner is gone and its limit is above the odds of every other pair.

In the papers: Roy and Kaelbling (2007), eq. (2), (3).
"""

from __future__ import annotations

from math import lgamma
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from kinfolk.maths.compiled import compiled
from kinfolk.maths.conjugate import N_CELLS, NumberGroups, log_marginal_of_number, prior_of
from kinfolk.maths.dirichlet import DirichletProduct, log_marginals
from kinfolk.partition.tree import TaskTree

if TYPE_CHECKING:
    from collections.abc import Callable

# Partners that a cluster remembers. More of them save few comparisons: with 4, tasks without any structure need a
# quarter more than the n² that are needed at least, with 8 a fifth; clustered tasks need next to none with either.
_N_REMEMBERED = 4
# Columns taken at a time, so that the sums under way stay in the processor's first cache.
_N_TOGETHER = 1024
# Share of the places that clusters fill at least; a gap is compared with like a cluster, for nothing.
_FULL_ENOUGH = 0.9


class Merges(NamedTuple):
    """What joining n clusters to one leaves: merge k makes node n + k out of ``children[k]``.

    ``log_odds`` and ``log_sums`` are those of the nodes made, in the order of the merges.
    """

    children: NDArray[np.int64]
    log_odds: NDArray[np.float64]
    log_sums: NDArray[np.float64]


def cluster_hierarchically(
    counts: NDArray[np.generic],
    product: DirichletProduct,
    concentration: float,
    progress: Callable[[int], None] | None = None,
) -> TaskTree:
    """Build the greedy tree: join the pair with the highest log odds until one cluster is left.

    O(U² · cells) time in practice and O(U · cells) memory for U tasks. Of equal odds the pair that comes first wins.

    Examples
    --------
    >>> from kinfolk.maths.dirichlet import dirichlet_product
    >>> counts = np.array([[9, 1], [1, 9], [8, 2]], dtype=np.int32)
    >>> tree = cluster_hierarchically(counts, dirichlet_product(np.ones(2), np.array([0, 2]), 30), 1.0)
    >>> tree.partition().tolist()
    [0, 1, 0]
    """
    n = len(counts)
    log_sums = log_marginals(counts, product) + np.log(concentration)
    merges = join_greedily(counts, np.ones(n, dtype=np.int64), log_sums, product, concentration, progress)
    root = merges.log_sums[-1] if n > 1 else log_sums[0]
    return TaskTree(
        merges.children, merges.log_odds, float(root) + float(gammaln(concentration) - gammaln(concentration + n))
    )


def join_greedily(
    counts: NDArray[Any],
    sizes: NDArray[np.int64],
    log_sums: NDArray[np.float64],
    product: DirichletProduct,
    concentration: float,
    progress: Callable[[int], None] | None = None,
) -> Merges:
    """Join clusters of tasks, each with its counts, its number of tasks and its t, two by two until one is left."""
    n = len(counts)
    columns = as_columns(counts, product)
    clusters = _Clusters(
        columns,
        columns.max(axis=1, initial=0),
        columns.sum(axis=1, dtype=columns.dtype),
        np.arange(n),
        sizes.astype(np.int64),
        log_sums.astype(np.float64),
        np.log(concentration) + gammaln(np.arange(sizes.sum() + 1).clip(min=1)),
    )
    partners = _Partners(
        np.empty((n, _N_REMEMBERED), dtype=np.int64),
        np.empty((n, _N_REMEMBERED)),
        np.empty(n, dtype=np.int64),
        np.empty(n),
        np.empty(n, dtype=np.int64),
        np.empty(n),
    )
    terms = terms_of(product)
    merges = Merges(np.empty((n - 1, 2), dtype=np.int64), np.empty(n - 1), np.empty(n - 1))
    # In stretches, so that a caller sees progress and can interrupt; short ones would cost more than the merges.
    stretch = max(256, n // 50)
    for first in range(0, n, stretch):
        _compare(clusters, partners, terms, first, min(first + stretch, n), n)
    width = n
    for done in range(0, n - 1, stretch):
        until = min(done + stretch, n - 1)
        width = _merge(clusters, partners, terms, merges, width, done, until)
        if progress is not None:
            progress(until - done)
    return merges


class Terms(NamedTuple):
    """The terms of a log marginal in the order in which they are added: each group's cells, then its total.

    ``table`` names the row of ``tables`` that holds a term's values, ``sign`` is −1 for totals. The terms of
    ``numbers``, three rows each, come last.
    """

    prior: NDArray[np.float64]
    table: NDArray[np.int64]
    sign: NDArray[np.float64]
    tables: NDArray[np.float64]
    numbers: NumberGroups


def terms_of(product: DirichletProduct) -> Terms:
    """The terms of a product's log marginal."""
    after = product.group_start[1:]
    return Terms(
        np.insert(product.prior, after, product.group_prior),
        np.insert(product.cell_table, after, product.group_table),
        np.insert(np.ones(len(product.prior)), after, -1.0),
        product.tables,
        product.numbers._replace(first=len(product.prior) + len(product.group_prior)),
    )


def as_columns(counts: NDArray[Any], product: DirichletProduct) -> NDArray[Any]:
    """Statistics with a column for each cluster and a row for each term of ``Terms``, or three for one of numbers."""
    dtype: type[np.generic] = np.float64
    if counts.dtype.kind in "iu":
        # Unsigned, because a signed index is first checked for being negative, which takes a third of the speed.
        dtype = np.uint32 if int(counts.sum(dtype=np.int64)) < 1 << 32 else np.uint64
    n_terms, n_counts = len(product.prior) + len(product.group_prior), len(product.prior)
    columns = np.empty((n_terms + counts.shape[1] - n_counts, len(counts)), dtype=dtype)
    _fill_columns(counts, product.group_start, columns)
    columns[n_terms:] = counts[:, n_counts:].T
    return columns


@compiled
def _fill_columns(counts, group_start, columns):  # type: ignore[no-untyped-def]
    """Copy each cell to its row, the total of a group to the row after the group's cells."""
    for u in range(len(counts)):
        for g in range(len(group_start) - 1):
            total = counts[u, 0] * 0
            for c in range(group_start[g], group_start[g + 1]):
                columns[c + g, u] = counts[u, c]
                total += counts[u, c]
            columns[group_start[g + 1] + g, u] = total


@compiled
def log_marginals_with(one, columns, highest, first, last, terms, out):  # type: ignore[no-untyped-def]
    """Log marginal of the statistics ``one`` added to each of the columns from ``first`` to ``last``, into ``out``.

    No count in row r is above ``highest[r]``. One term is added to many sums at a time: its table is found once and the
    sums do not wait for each other, yet each is added up in the order of the terms.
    """
    reach = terms.tables.shape[1]
    numbers = terms.numbers
    first_number, family = numbers.first, numbers.family
    for start in range(first, last, _N_TOGETHER):
        sums = out[start : min(start + _N_TOGETHER, last)]
        sums[:] = 0.0
        for r in range(len(terms.prior)):
            counts = columns[r, start : start + len(sums)]
            sign, prior = terms.sign[r], terms.prior[r]
            table = terms.tables[terms.table[r]]
            if highest[r] < reach:
                beyond = table[np.uint64(one[r]) :]
                for k in range(len(sums)):
                    sums[k] += sign * beyond[np.uint64(counts[k])]
                continue
            for k in range(len(sums)):
                count = one[r] + counts[k]
                if count < reach:
                    sums[k] += sign * table[np.uint64(count)]
                elif count > 0:
                    sums[k] += sign * (lgamma(prior + count) - lgamma(prior))
        for g in range(len(family)):
            r, own = first_number + N_CELLS * g, prior_of(numbers, g)
            n, total, third = one[r], one[r + 1], one[r + 2]
            ns, totals, thirds = columns[r, start:], columns[r + 1, start:], columns[r + 2, start:]
            for k in range(len(sums)):
                sums[k] += log_marginal_of_number(n + ns[k], total + totals[k], third + thirds[k], family[g], own)


class _Clusters(NamedTuple):
    """The clusters left to join, in order; one that was joined to another has size 0 until the gaps are closed.

    In row r of ``columns`` no count is above ``highest[r]``, and ``total[r]`` is that of all clusters together;
    ``log_weight[n]`` is log aΓ(n).
    """

    columns: NDArray[Any]
    highest: NDArray[Any]
    total: NDArray[Any]
    node: NDArray[np.int64]
    size: NDArray[np.int64]
    log_sum: NDArray[np.float64]
    log_weight: NDArray[np.float64]


class _Partners(NamedTuple):
    """For every cluster the best of its pairs with clusters after it, best first, ``n_listed`` of them.

    A pair that is not listed is no better than one of ``limit_odds`` with ``limit_partner`` would be. ``best`` is the
    odds of the first pair listed, or the limit where none is.
    """

    listed: NDArray[np.int64]
    odds: NDArray[np.float64]
    n_listed: NDArray[np.int64]
    limit_odds: NDArray[np.float64]
    limit_partner: NDArray[np.int64]
    best: NDArray[np.float64]


@compiled
def _odds_with(i, clusters, first, last, terms, out):  # type: ignore[no-untyped-def]
    """Log odds of joining cluster i with each one from ``first`` to ``last``, into ``out``."""
    one = clusters.columns[:, i].copy()
    highest = np.empty(len(one))
    for r in range(len(one)):
        highest[r] = min(clusters.total[r], one[r] + clusters.highest[r])
    log_marginals_with(one, clusters.columns, highest, first, last, terms, out)
    for k in range(first, last):
        out[k] += clusters.log_weight[clusters.size[i] + clusters.size[k]]
        # The sum comes first because it is the same from both sides: equal pairs stay equal to the last bit.
        out[k] -= clusters.log_sum[i] + clusters.log_sum[k]


@compiled
def _compare(clusters, partners, terms, first, last, width):  # type: ignore[no-untyped-def]
    """List the best partners of clusters ``first`` to ``last`` anew."""
    size, limit_odds = clusters.size, partners.limit_odds
    odds = np.empty(width)
    for i in range(first, last):
        _odds_with(i, clusters, i + 1, width, terms, odds)
        _forget_all(partners, i)
        for k in range(i + 1, width):
            if size[k] > 0 and odds[k] >= limit_odds[i]:
                _offer(partners, i, k, odds[k])


@compiled
def _forget_all(partners, i):  # type: ignore[no-untyped-def]
    """Leave cluster i without pairs, listed or not."""
    partners.n_listed[i] = 0
    partners.limit_odds[i] = partners.best[i] = -np.inf
    partners.limit_partner[i] = 0


@compiled(inline="always")
def _better(odds, partner, other_odds, other_partner):  # type: ignore[no-untyped-def]
    """Whether a pair goes before another of the same cluster: of equal odds the first partner wins."""
    return odds > other_odds or (odds == other_odds and partner < other_partner)


@compiled
def _offer(partners, i, partner, odds):  # type: ignore[no-untyped-def]
    """List a pair of cluster i in its place if it is above the limit; what the list cannot hold becomes the limit."""
    if not _better(odds, partner, partners.limit_odds[i], partners.limit_partner[i]):
        return
    n = place = partners.n_listed[i]
    while place > 0 and _better(odds, partner, partners.odds[i, place - 1], partners.listed[i, place - 1]):
        place -= 1
    if n == _N_REMEMBERED:
        if place == n:
            partners.limit_odds[i], partners.limit_partner[i] = odds, partner
            return
        n -= 1
        partners.limit_odds[i], partners.limit_partner[i] = partners.odds[i, n], partners.listed[i, n]
    for k in range(n, place, -1):
        partners.listed[i, k], partners.odds[i, k] = partners.listed[i, k - 1], partners.odds[i, k - 1]
    partners.listed[i, place], partners.odds[i, place] = partner, odds
    partners.n_listed[i] = n + 1
    partners.best[i] = partners.odds[i, 0]


@compiled
def _forget(partners, i, one, other):  # type: ignore[no-untyped-def]
    """Take two clusters off the list of cluster i."""
    kept = 0
    for k in range(partners.n_listed[i]):
        if partners.listed[i, k] != one and partners.listed[i, k] != other:
            partners.listed[i, kept], partners.odds[i, kept] = partners.listed[i, k], partners.odds[i, k]
            kept += 1
    partners.n_listed[i] = kept
    partners.best[i] = partners.odds[i, 0] if kept else partners.limit_odds[i]


@compiled
def _best_pair(clusters, partners, terms, width):  # type: ignore[no-untyped-def]
    """The first of the pairs with the highest odds."""
    while True:
        i = np.argmax(partners.best[:width])
        if partners.n_listed[i] > 0:
            return i, partners.listed[i, 0]
        _compare(clusters, partners, terms, i, i + 1, width)


@compiled
def _merge(clusters, partners, terms, merges, width, done, until):  # type: ignore[no-untyped-def]
    """Perform merges number ``done`` to ``until`` in place; a joined cluster lives on in its first part's place.

    Clusters, gaps among them, take up the first ``width`` places; returns how many they do in the end.
    """
    n = len(merges.children) + 1
    # By names of their own, because taking an array out of a tuple in a loop counts a reference each time.
    size, listed, n_listed, limit_odds = clusters.size, partners.listed, partners.n_listed, partners.limit_odds
    odds = np.empty(width)
    for step in range(done, until):
        i, j = _best_pair(clusters, partners, terms, width)
        log_odds, split = partners.odds[i, 0], clusters.log_sum[i] + clusters.log_sum[j]
        merges.children[step, 0], merges.children[step, 1] = clusters.node[i], clusters.node[j]
        merges.log_odds[step] = log_odds
        merges.log_sums[step] = split + max(log_odds, 0.0) + np.log1p(np.exp(-abs(log_odds)))
        clusters.node[i], clusters.log_sum[i] = n + step, merges.log_sums[step]
        clusters.size[i] += clusters.size[j]
        clusters.size[j] = 0
        for r in range(len(clusters.columns)):
            clusters.columns[r, i] += clusters.columns[r, j]
            clusters.highest[r] = max(clusters.highest[r], clusters.columns[r, i])
        _forget_all(partners, i)
        _forget_all(partners, j)
        for first, last in ((0, i), (i + 1, width)):
            _odds_with(i, clusters, first, last, terms, odds)
        for k in range(j):
            for entry in range(n_listed[k]):
                if listed[k, entry] == i or listed[k, entry] == j:
                    _forget(partners, k, i, j)
                    break
        for k in range(width):
            row = min(i, k)
            if size[k] > 0 and k != i and odds[k] >= limit_odds[row]:
                _offer(partners, row, max(i, k), odds[k])
        if (n - 1 - step) < _FULL_ENOUGH * width:
            width = _close_gaps(clusters, partners, width)
    return width


@compiled
def _close_gaps(clusters, partners, width):  # type: ignore[no-untyped-def]
    """Move the clusters together, in order, and rename partners to match; returns the number of clusters."""
    # The new place of one that is gone is that of the next: a limit keeps its rank among equals.
    place = np.empty(width + 1, dtype=np.int64)
    kept = np.empty(width, dtype=np.int64)
    left = 0
    for k in range(width):
        place[k] = left
        if clusters.size[k] > 0:
            kept[left] = k
            left += 1
    place[width] = left
    for r in range(len(clusters.columns)):
        for to in range(left):
            clusters.columns[r, to] = clusters.columns[r, kept[to]]
    for to in range(left):
        k = kept[to]
        clusters.node[to], clusters.size[to] = clusters.node[k], clusters.size[k]
        clusters.log_sum[to] = clusters.log_sum[k]
        partners.n_listed[to], partners.best[to] = partners.n_listed[k], partners.best[k]
        partners.limit_odds[to] = partners.limit_odds[k]
        partners.limit_partner[to] = place[partners.limit_partner[k]]
        for entry in range(partners.n_listed[k]):
            partners.listed[to, entry] = place[partners.listed[k, entry]]
            partners.odds[to, entry] = partners.odds[k, entry]
    return left
