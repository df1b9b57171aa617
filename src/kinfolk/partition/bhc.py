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

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from kinfolk.maths.compiled import compiled
from kinfolk.maths.conjugate import N_CELLS, NumberGroups, log_marginal_of_number, prior_of
from kinfolk.maths.dirichlet import DirichletProduct
from kinfolk.maths.rising import rising, risings
from kinfolk.partition.tree import TaskTree

if TYPE_CHECKING:
    from collections.abc import Callable

# Partners that a cluster remembers. More of them save few comparisons: with 4, tasks without any structure need a
# quarter more than the n² that are needed at least, with 8 a fifth; clustered tasks need next to none with either.
_N_REMEMBERED = 4
# Merges are made in stretches, so that a caller sees progress and can interrupt; shorter ones would cost more than the
# merges.
FEWEST_MERGES = 256
# Columns taken at a time, so that the sums under way stay in the processor's first cache.
_N_TOGETHER = 1024
# Share of the places that clusters fill at least, where there are more than a few; a gap is compared with like a
# cluster, for nothing.
_FULL_ENOUGH = 0.9
_FEW = 64
# Terms of a marginal from which on it pays to look at those alone in which a cluster has any counts, if these are few.
_MANY_TERMS = 1024
_SPARSE = 0.25


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
    nothing = np.zeros_like(counts[:1])
    log_sums = log_marginals_of_sums(nothing, counts, product)[0] + np.log(concentration)
    merges = join_greedily(counts, np.ones(n, dtype=np.int64), log_sums, product, concentration, progress)
    root = merges.log_sums[-1] if n > 1 else log_sums[0]
    return TaskTree(merges.children, merges.log_odds, float(root) - float(risings(concentration, n)))


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
    columns, terms = as_columns(counts, product), terms_of(product)
    clusters = _Clusters(
        columns,
        columns.max(axis=1, initial=0),
        columns.sum(axis=1, dtype=columns.dtype),
        np.arange(n),
        sizes.astype(np.int64),
        log_sums.astype(np.float64),
        np.log(concentration) + gammaln(np.arange(sizes.sum() + 1).clip(min=1)),
        _log_marginals(columns, terms),
    )
    partners = _Partners(
        np.empty((n, _N_REMEMBERED), dtype=np.int64),
        np.empty((n, _N_REMEMBERED)),
        np.zeros(n, dtype=np.int64),
        np.full(n, np.inf),
        np.zeros(n, dtype=np.int64),
        np.full(n, np.inf),
    )
    merges = Merges(np.empty((n - 1, 2), dtype=np.int64), np.empty(n - 1), np.empty(n - 1))
    stretch = max(FEWEST_MERGES, n // 50)
    width, done = n, 0
    while done < n - 1:
        before = done
        done = _join(clusters, partners, terms, merges, width, done, stretch)
        if width > _FEW and n - done < _FULL_ENOUGH * width:
            width = _close_gaps(clusters, partners, width)
        if progress is not None:
            progress(done - before)
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
    is_total = np.insert(np.zeros(n_counts, dtype=bool), product.group_start[1:], True)
    columns[:n_terms][~is_total] = counts[:, :n_counts].T
    if n_counts:
        totals = np.add.reduceat(counts[:, :n_counts], product.group_start[:-1], axis=1, dtype=dtype)
        columns[:n_terms][is_total] = totals.T
    columns[n_terms:] = counts[:, n_counts:].T
    return columns


def log_marginals_of_sums(ones: NDArray[Any], others: NDArray[Any], product: DirichletProduct) -> NDArray[np.float64]:
    """Log marginals of every row of ``ones`` added to every row of ``others``, none of which is formed."""
    if len(product.prior) >= _MANY_TERMS and len(ones) < len(others):
        # Those with fewer rows each have fewer terms to look at.
        return log_marginals_of_sums(others, ones, product).T
    terms, columns, added = terms_of(product), as_columns(others, product), as_columns(ones, product).T
    dtype = np.result_type(columns, added)
    columns, added = columns.astype(dtype, copy=False), np.ascontiguousarray(added, dtype=dtype)
    highest, out = columns.max(axis=1, initial=0).astype(np.float64), np.empty((len(ones), len(others)))
    alone = _log_marginals(columns, terms)
    for one, sums in zip(added, out, strict=True):
        sparse = len(alone) > 0 and np.count_nonzero(one) < _SPARSE * len(one)
        log_marginals_with(one, columns, one + highest, 0, len(others), terms, alone if sparse else alone[:0], sums)
    return out


def _log_marginals(columns: NDArray[Any], terms: Terms) -> NDArray[np.float64]:
    """Log marginals of columns, where there are so many terms that it pays to know them; else none."""
    if len(columns) < _MANY_TERMS:
        return np.empty(0)
    nothing, highest = np.zeros(len(columns), dtype=columns.dtype), columns.max(axis=1, initial=0).astype(np.float64)
    out = np.empty(columns.shape[1])
    log_marginals_with(nothing, columns, highest, 0, len(out), terms, np.empty(0), out)
    return out


@compiled
def log_marginals_with(one, columns, highest, first, last, terms, alone, out):  # type: ignore[no-untyped-def]
    """Log marginal of the statistics ``one`` added to each of the columns from ``first`` to ``last``, into ``out``.

    No count in row r is above ``highest[r]``. One term is added to many sums at a time: its table is found once and the
    sums do not wait for each other, yet each is added up in the order of the terms. Where the columns' own marginals
    are given as ``alone``, what changes is added to them: terms without any counts in ``one`` are passed over.
    """
    sparse = len(alone) > 0
    reach = terms.tables.shape[1]
    numbers = terms.numbers
    first_number, family = numbers.first, numbers.family
    for start in range(first, last, _N_TOGETHER):
        sums = out[start : min(start + _N_TOGETHER, last)]
        for k in range(len(sums)):
            sums[k] = alone[start + k] if sparse else 0.0
        for r in range(len(terms.prior)):
            if sparse and one[r] == 0:
                continue
            counts = columns[r, start : start + len(sums)]
            sign, prior = terms.sign[r], terms.prior[r]
            table = terms.tables[terms.table[r]]
            if highest[r] < reach:
                beyond = table[np.uint64(one[r]) :]
                for k in range(len(sums)):
                    sums[k] += sign * beyond[np.uint64(counts[k])]
                if sparse:
                    for k in range(len(sums)):
                        sums[k] -= sign * table[np.uint64(counts[k])]
                continue
            for turn in range(2 if sparse else 1):
                more = one[r] if turn == 0 else one[r] - one[r]
                for k in range(len(sums)):
                    count = more + counts[k]
                    if count < reach:
                        sums[k] += sign * table[np.uint64(count)]
                    elif count > 0:
                        sums[k] += sign * rising(prior, count)
                sign = -sign
        for g in range(len(family)):
            r, own = first_number + N_CELLS * g, prior_of(numbers, g)
            n, total, third = one[r], one[r + 1], one[r + 2]
            ns, totals, thirds = columns[r, start:], columns[r + 1, start:], columns[r + 2, start:]
            for k in range(len(sums)):
                sums[k] += log_marginal_of_number(n + ns[k], total + totals[k], third + thirds[k], family[g], own)
                if sparse:
                    sums[k] -= log_marginal_of_number(ns[k], totals[k], thirds[k], family[g], own)


class _Clusters(NamedTuple):
    """The clusters left to join, in order; one that was joined to another has size 0 until the gaps are closed.

    In row r of ``columns`` no count is above ``highest[r]``, and ``total[r]`` is that of all clusters together;
    ``log_weight[n]`` is log aΓ(n). ``log_marginal`` is that of each cluster where terms are very many, else empty.
    """

    columns: NDArray[Any]
    highest: NDArray[Any]
    total: NDArray[Any]
    node: NDArray[np.int64]
    size: NDArray[np.int64]
    log_sum: NDArray[np.float64]
    log_weight: NDArray[np.float64]
    log_marginal: NDArray[np.float64]


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
def _join(clusters, partners, terms, merges, width, step, n_comparisons):  # type: ignore[no-untyped-def]
    """Go on from merge number ``step`` for so many comparisons of a cluster with others, all in place.

    The cluster with the best pair is joined with its partner, and what comes of it compared with all others; one that
    has no pair listed is compared with those after it. A joined cluster lives on in its first part's place, and leaves
    a gap in the other's, among the first ``width`` places. Returns the next step, early where gaps are to be closed.
    """
    n = len(merges.children) + 1
    # By names of their own, because taking an array out of a tuple in a loop counts a reference each time.
    columns, size, log_sum, log_marginal = clusters.columns, clusters.size, clusters.log_sum, clusters.log_marginal
    best = partners.best
    odds, one, highest = np.empty(width), np.empty(len(columns), dtype=columns.dtype), np.empty(len(columns))
    fewest = _FULL_ENOUGH * width if width > _FEW else 0
    while step < n - 1 and n_comparisons > 0 and n - step >= fewest:
        n_comparisons -= 1
        i = 0
        for k in range(width):
            if best[k] > best[i]:
                i = k
        # From here on the cluster is compared, or from the first one on where it is a new one.
        lowest = i + 1
        if partners.n_listed[i] > 0:
            lowest, j = 0, partners.listed[i, 0]
            log_odds, split = partners.odds[i, 0], log_sum[i] + log_sum[j]
            merges.children[step, 0], merges.children[step, 1] = clusters.node[i], clusters.node[j]
            merges.log_odds[step] = log_odds
            merges.log_sums[step] = split + max(log_odds, 0.0) + np.log1p(np.exp(-abs(log_odds)))
            clusters.node[i], log_sum[i] = n + step, merges.log_sums[step]
            size[i] += size[j]
            size[j] = 0
            if len(log_marginal) > 0:
                log_marginal[i] = log_odds + split - clusters.log_weight[size[i]]
            for r in range(len(columns)):
                columns[r, i] += columns[r, j]
                clusters.highest[r] = max(clusters.highest[r], columns[r, i])
            for k in range(j):
                _forget(partners, k, i, j)
            _forget_all(partners, j)
            step += 1
        _forget_all(partners, i)
        n_counted = 0
        for r in range(len(columns)):
            one[r] = columns[r, i]
            n_counted += one[r] != 0
            highest[r] = min(clusters.total[r], one[r] + clusters.highest[r])
        alone = log_marginal if n_counted < _SPARSE * len(columns) else log_marginal[:0]
        for first, last in ((lowest, i), (i + 1, width)):
            log_marginals_with(one, columns, highest, first, last, terms, alone, odds)
        for k in range(lowest, width):
            if size[k] > 0 and k != i:
                odds[k] += clusters.log_weight[size[i] + size[k]]
                # The sum comes first because it is the same from both sides: equal pairs stay equal to the last bit.
                odds[k] -= log_sum[i] + log_sum[k]
                _offer(partners, min(i, k), max(i, k), odds[k])
    return step


@compiled(inline="always")
def _forget_all(partners, i):  # type: ignore[no-untyped-def]
    """Leave cluster i without pairs, listed or not."""
    partners.n_listed[i] = 0
    partners.limit_odds[i] = partners.best[i] = -np.inf
    partners.limit_partner[i] = 0


@compiled(inline="always")
def _better(odds, partner, other_odds, other_partner):  # type: ignore[no-untyped-def]
    """Whether a pair goes before another of the same cluster: of equal odds the first partner wins."""
    return odds > other_odds or (odds == other_odds and partner < other_partner)


@compiled(inline="always")
def _offer(partners, i, partner, odds):  # type: ignore[no-untyped-def]
    """List a pair of cluster i in its place if it is above the limit; what the list cannot hold becomes the limit."""
    if _better(odds, partner, partners.limit_odds[i], partners.limit_partner[i]):
        n = place = partners.n_listed[i]
        while place > 0 and _better(odds, partner, partners.odds[i, place - 1], partners.listed[i, place - 1]):
            place -= 1
        if n == _N_REMEMBERED:
            # What leaves the list, or does not come onto it, is the limit from now on.
            n -= 1
            out_odds, out = (odds, partner) if place > n else (partners.odds[i, n], partners.listed[i, n])
            partners.limit_odds[i], partners.limit_partner[i] = out_odds, out
        if place <= n:
            for k in range(n, place, -1):
                partners.listed[i, k], partners.odds[i, k] = partners.listed[i, k - 1], partners.odds[i, k - 1]
            partners.listed[i, place], partners.odds[i, place] = partner, odds
            partners.n_listed[i] = n + 1
            partners.best[i] = partners.odds[i, 0]


@compiled(inline="always")
def _forget(partners, i, one, other):  # type: ignore[no-untyped-def]
    """Take two clusters off the list of cluster i."""
    kept, n_listed = 0, partners.n_listed[i]
    for k in range(n_listed):
        if partners.listed[i, k] != one and partners.listed[i, k] != other:
            partners.listed[i, kept], partners.odds[i, kept] = partners.listed[i, k], partners.odds[i, k]
            kept += 1
    if kept < n_listed:
        partners.n_listed[i] = kept
        partners.best[i] = partners.odds[i, 0] if kept else partners.limit_odds[i]


def _close_gaps(clusters: _Clusters, partners: _Partners, width: int) -> int:
    """Move the clusters together, in order, and rename partners to match; returns the number of clusters."""
    kept = np.flatnonzero(clusters.size[:width])
    # The new place of one that is gone is that of the next: a limit keeps its rank among equals.
    place = np.searchsorted(kept, np.arange(width + 1))
    clusters.columns[:, : len(kept)] = clusters.columns[:, kept]
    for part in (clusters.node, clusters.size, clusters.log_sum, clusters.log_marginal, *partners):
        if len(part):
            part[: len(kept)] = part[kept]
    for names in (partners.listed, partners.limit_partner):
        # What stands in a list past its end names nobody.
        names[: len(kept)] = place[names[: len(kept)].clip(0, width)]
    return len(kept)
