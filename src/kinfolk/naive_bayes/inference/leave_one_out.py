"""What a fitted model says of each training row once that row is taken out again, in closed form (thesis eq. 3.4–3.8).

Given the block k that task u belongs to, taking row i out lowers one count of every feature and one of the label, so
that p_k(x_i, y | D∖i) is at hand without a new fit. The row also takes its share of what is known about the block with
it: p(k | D∖i) ∝ p(k | D) / p_k(x_i, y_i | D∖i). Priors stay as they are, but for learnt rates that all blocks have in
common: from these too the row's own vote is taken, or a task of few rows would seem to be predicted by itself.

A partition that was found with a row belongs to it: a task of one row sits with those that look like the row, and
taking the row out of the counts afterwards does not undo that. So the task itself is taken out of its cluster first and
seated anew, the rest of the partition held. By the Chinese restaurant process with concentration a,

    p(k | D) ∝ n_k^{−u} p(D_u | D_k^{−u}),        p(alone | D) ∝ a p(D_u).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled
from kinfolk.maths.conjugate import N_CELLS, log_density_of_number, prior_of, third_cell
from kinfolk.naive_bayes.inference.fitting import LeftOut
from kinfolk.naive_bayes.model.values import Fitted, HyperParameters, TrainingData, feature_product
from kinfolk.partition.bhc import log_marginals_of_sums
from kinfolk.tasks.statistics import Rows

# Clusters that a task may join, at most: the largest ones; and seats of a task that are kept: the most probable ones.
_MAX_CLUSTERS = 256
_MAX_SEATS = 16


class CandidateBlocks(NamedTuple):
    """Blocks of tasks by their counts, and which of them every task may belong to.

    Entries ``start[u]:start[u + 1]`` are those of task u. ``joins`` says of every entry whether the task's own counts
    come to those of the block, which else has them; ``in_part`` that a task is in its blocks in part, by their weights,
    and not in one of them.
    """

    counts: NDArray[Any]
    start: NDArray[np.int64]
    block: NDArray[np.int64]
    log_weight: Floats
    joins: NDArray[np.bool_]
    in_part: bool = False


def fitted_blocks(fitted: Fitted) -> CandidateBlocks:
    """Which blocks tasks may belong to as inference has left it."""
    mixture = fitted.blocks.mixture
    has_all = np.zeros(len(mixture.block), dtype=bool)
    return CandidateBlocks(
        fitted.blocks.counts, mixture.start, mixture.block, mixture.log_weight, has_all, fitted.independent
    )


def reseat(
    data: TrainingData, hyper: HyperParameters, partition: NDArray[np.int64], tasks: NDArray[np.int64]
) -> CandidateBlocks:
    """Seats of some tasks, given the partition of all others; other tasks have none. O(tasks · clusters · cells)."""
    own = data.statistics.feature_counts
    order = np.argsort(partition, kind="stable")
    names, first, sizes = np.unique(partition[order], return_index=True, return_counts=True)
    wide = np.int64 if own.dtype.kind in "iu" else np.float64
    clusters = np.add.reduceat(own[order], first, axis=0, dtype=wide)
    # A task's own cluster may be a small one: without the task it has little to say.
    largest = np.sort(np.argsort(-sizes, kind="stable")[:_MAX_CLUSTERS])
    place = np.full(len(names), -1)
    place[largest] = np.arange(len(largest))
    clusters, sizes = clusters[largest], sizes[largest]
    home = place[np.searchsorted(names, partition[tasks])]
    product = feature_product(data, hyper)
    nobody = np.concatenate([clusters, np.zeros_like(clusters[:1])])
    *of_clusters, _ = log_marginals_of_sums(nobody[-1:], nobody, product)[0]
    log_weight = log_marginals_of_sums(nobody, own[tasks], product).T
    log_weight[:, :-1] += np.log(sizes) - of_clusters
    log_weight[:, -1] += np.log(hyper.concentration)
    # A task at home is not among those that it would join.
    at_home = np.flatnonzero(home >= 0)
    where = home[at_home]
    without = log_marginals_of_sums(nobody[-1:], clusters[where] - own[tasks[at_home]], product)[0]
    with np.errstate(divide="ignore"):
        log_weight[at_home, where] = np.log(sizes[where] - 1) + np.array(of_clusters)[where] - without
    n_seats = min(_MAX_SEATS, log_weight.shape[1])
    seat = np.argsort(-log_weight, axis=1, kind="stable")[:, :n_seats]
    kept = np.take_along_axis(log_weight, seat, axis=1)
    possible = np.isfinite(kept)
    kept -= logsumexp(kept, axis=1, keepdims=True)
    n_entries = np.zeros(len(partition), dtype=np.int64)
    n_entries[tasks] = possible.sum(axis=1)
    start = np.concatenate([[0], np.cumsum(n_entries)])
    elsewhere = (seat != home[:, None])[possible]
    return CandidateBlocks(nobody, start, seat[possible], np.asarray(kept[possible]), elsewhere)


class _RowsOut(NamedTuple):
    """Rows to be taken out, how much of each, and where the entries of each begin among those of all."""

    codes: NDArray[np.int32]
    labels: NDArray[np.int32]
    task: NDArray[np.int64]
    taken: Floats
    start: NDArray[np.int64]


class _Entries(NamedTuple):
    """Entries of the tasks, and blocks by their counts and by the totals of groups of counts.

    ``share`` is how much of a task is in an entry's block, ``joins`` how much of its counts comes to the block's.
    """

    start: NDArray[np.int64]
    block: NDArray[np.int64]
    share: Floats
    joins: Floats
    counts: Floats
    totals: Floats
    own: NDArray[Any]
    own_totals: NDArray[Any]


class _Prior(NamedTuple):
    """Pseudo-counts of cells and of their groups, and what rows' values lose of them without the rows.

    ``votes`` and ``all_votes``, of cells and groups, are looked at where rates were ``learnt`` from the blocks.
    """

    cell: Floats
    group: Floats
    losses: Floats
    learnt: bool
    votes: Floats
    all_votes: Floats


def leave_out(
    data: TrainingData, hyper: HyperParameters, blocks: CandidateBlocks, rows: Rows, label_counts: NDArray[Any]
) -> LeftOut:
    """Take out each of the labelled rows in turn. O(rows · blocks of its task · features · labels).

    ``label_counts`` are those behind each task's label rates. A row of weight 2 is two rows, of which one is taken out.
    """
    layout = data.statistics.layout
    taken = np.ones(len(rows.labels)) if rows.weights is None else np.minimum(rows.weights, 1.0)
    start = entries_of_rows(blocks.start, rows.task)
    counts = blocks.counts.astype(np.float64, copy=False)
    first_cells = layout.group_start[:-1]
    n_coded = rows.codes.shape[1]
    # Features side by side in memory, because powers multiply these.
    log_fit = np.empty((int(start[-1]), layout.n_labels, n_coded + len(layout.numbers))).transpose(0, 2, 1)
    out = _RowsOut(rows.codes, rows.labels, rows.task, taken, start)
    # Where tasks belong to blocks in part, a row is in them in part.
    share = np.exp(blocks.log_weight) if blocks.in_part else np.ones(len(blocks.log_weight))
    totals = np.add.reduceat(counts[:, : layout.n_counts], first_cells, axis=1)
    own = data.statistics.feature_counts
    own_totals = np.add.reduceat(own[:, : layout.n_counts], first_cells, axis=1, dtype=np.float64)
    joins = blocks.joins.astype(np.float64)
    entries = _Entries(blocks.start, blocks.block, share, joins, counts, totals, own, own_totals)
    votes = np.zeros(layout.n_counts) if hyper.votes is None else hyper.votes
    prior = _Prior(
        hyper.feature_prior,
        np.add.reduceat(hyper.feature_prior, first_cells),
        _losses(data, hyper, rows, taken),
        hyper.votes is not None,
        votes,
        np.add.reduceat(votes, first_cells),
    )
    _fit_without(out, entries, prior, layout.offsets, log_fit)
    if rows.numbers is not None:
        numbers = np.ascontiguousarray(rows.numbers)
        _fit_of_numbers_without(numbers, out, entries, layout.number_groups, log_fit[:, n_coded:])
    left_out = weigh_without(start, blocks.start, blocks.log_weight, log_fit, rows, taken, label_counts, hyper)
    return left_out._replace(log_fit=log_fit[:, layout.order]) if layout.numbers else left_out


def entries_of_rows(start: NDArray[np.int64], task: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the entries of each row begin, which has as many as its task, whose entries begin at ``start``."""
    return np.concatenate([[0], np.cumsum(np.diff(start)[task])]).astype(np.int64)


def weigh_without(
    start: NDArray[np.int64],
    task_start: NDArray[np.int64],
    log_weight: Floats,
    log_fit: Floats,
    rows: Rows,
    taken: Floats,
    label_counts: NDArray[Any],
    hyper: HyperParameters,
) -> LeftOut:
    """What is known of the blocks without each row, p(k | D∖i) ∝ p(k | D) / p_k(x_i, y_i | D∖i), and of its label."""
    without = label_counts[rows.task] + hyper.label_prior
    without[np.arange(len(without)), rows.labels] -= taken
    log_rates = np.log(without) - np.log(without.sum(axis=1, keepdims=True))
    n_entries = np.diff(start)
    row = np.repeat(np.arange(len(rows.labels)), n_entries)
    place = np.repeat(task_start[rows.task] - start[:-1], n_entries) + np.arange(start[-1])
    log_weight = log_weight[place] - log_fit.sum(axis=1)[np.arange(len(place)), rows.labels[row]]
    highest = np.maximum.reduceat(log_weight, start[:-1])
    total = np.add.reduceat(np.exp(log_weight - highest[row]), start[:-1])
    log_weight -= (highest + np.log(total))[row]
    weights = np.ones(len(rows.labels)) if rows.weights is None else rows.weights
    return LeftOut(start, log_weight, log_fit, log_rates, rows.labels, weights)


def _losses(data: TrainingData, hyper: HyperParameters, rows: Rows, taken: Floats) -> Floats:
    """What a prior of rates that all tasks share loses, for every label, at each row's values without the row.

    Its vote there is its chance to have been drawn from the prior, given all other rows with its label.
    """
    losses = np.zeros(rows.codes.shape)
    if hyper.common is None:
        return losses
    layout = data.statistics.layout
    pseudo, votes = hyper.common
    starts, widths = layout.group_start[:-1], np.diff(layout.group_start)
    strength, all_votes = (np.repeat(np.add.reduceat(of, starts), widths) for of in hyper.common)
    counts = data.statistics.feature_counts[:, : layout.n_counts].sum(axis=0, dtype=np.float64)
    cells = rows.labels[:, None] * layout.width + layout.offsets[:-1] + np.maximum(rows.codes, 0)
    gone = np.broadcast_to(taken[:, None], cells.shape)
    vote = gone * pseudo[cells] / (pseudo[cells] + counts[cells] - gone)
    losses = pseudo[cells] - strength[cells] * (votes[cells] - vote) / (all_votes[cells] - vote)
    return np.asarray(np.where(rows.codes < 0, 0.0, losses))


@compiled
def _fit_without(rows, entries, prior, offsets, log_fit):  # type: ignore[no-untyped-def]
    """Log likelihood of every row's features under each label in each block, without the row itself."""
    n_features, width = rows.codes.shape[1], offsets[-1]
    for i in range(len(rows.labels)):
        for slot in range(rows.start[i + 1] - rows.start[i]):
            u = rows.task[i]
            entry = entries.start[u] + slot
            k, mass, joins = entries.block[entry], entries.share[entry] * rows.taken[i], entries.joins[entry]
            for y in range(log_fit.shape[2]):
                gone = mass if y == rows.labels[i] else 0.0
                for f in range(n_features):
                    log_fit[rows.start[i] + slot, f, y] = 0.0
                    if rows.codes[i, f] < 0:
                        continue
                    cell, group = y * width + offsets[f] + rows.codes[i, f], y * n_features + f
                    count = entries.counts[k, cell] + joins * entries.own[u, cell] - gone
                    pseudo, lost = prior.cell[cell], prior.losses[i, f]
                    if not prior.learnt:
                        pseudo -= lost
                    elif gone > 0.0 or lost > 0.0:
                        vote = gone * pseudo / (pseudo + count)
                        pseudo = (
                            prior.group[group] * (prior.votes[cell] - vote - lost) / (prior.all_votes[group] - vote)
                        )
                    total = entries.totals[k, group] + joins * entries.own_totals[u, group] - gone
                    rate = (count + pseudo) / (total + prior.group[group])
                    log_fit[rows.start[i] + slot, f, y] = np.log(rate)


@compiled
def _fit_of_numbers_without(numbers, rows, entries, groups, log_fit):  # type: ignore[no-untyped-def]
    """Log density of every row's numbers under each label in each block, without the row itself."""
    n_numbers = numbers.shape[1]
    for i in range(len(rows.labels)):
        for slot in range(rows.start[i + 1] - rows.start[i]):
            u = rows.task[i]
            entry = entries.start[u] + slot
            k, mass, joins = entries.block[entry], entries.share[entry] * rows.taken[i], entries.joins[entry]
            for y in range(log_fit.shape[2]):
                gone = mass if y == rows.labels[i] else 0.0
                for j in range(n_numbers):
                    log_fit[rows.start[i] + slot, j, y] = 0.0
                    x = numbers[i, j]
                    if np.isnan(x):
                        continue
                    g = y * n_numbers + j
                    c, family = groups.first + N_CELLS * g, groups.family[g]
                    n = entries.counts[k, c] + joins * entries.own[u, c] - gone
                    total = entries.counts[k, c + 1] + joins * entries.own[u, c + 1] - gone * x
                    third = entries.counts[k, c + 2] + joins * entries.own[u, c + 2] - gone * third_cell(x, family)
                    density = log_density_of_number(x, n, total, third, family, prior_of(groups, g))
                    log_fit[rows.start[i] + slot, j, y] = density
