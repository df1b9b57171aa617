"""What a fitted model says of each training row once that row is taken out again, in closed form (thesis eq. 3.4–3.8).

Given the block k that task u belongs to, taking row i out lowers one count of every feature and one of the label, so
that p_k(x_i, y | D∖i) is at hand without a new fit. The row also takes its share of what is known about the block with
it: p(k | D∖i) ∝ p(k | D) / p_k(x_i, y_i | D∖i). Priors stay as they are, but for learnt rates that all blocks have in
common: from these too the row's own vote is taken, or a task of few rows would seem to be predicted by itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled
from kinfolk.maths.conjugate import N_CELLS, log_density_of_number, prior_of, third_cell
from kinfolk.naive_bayes.model.data import TrainingData
from kinfolk.naive_bayes.model.fitted import Fitted
from kinfolk.naive_bayes.model.hyper import HyperParameters
from kinfolk.tasks.statistics import Rows


class CandidateBlocks(NamedTuple):
    """Blocks of tasks by their counts, and which of them every task may belong to.

    Entries ``start[u]:start[u + 1]`` are those of task u. ``in_part`` says that a task is in its blocks in part, by
    their weights, and not in one of them.
    """

    counts: NDArray[Any]
    start: NDArray[np.int64]
    block: NDArray[np.int64]
    log_weight: Floats
    in_part: bool = False


def fitted_blocks(fitted: Fitted) -> CandidateBlocks:
    """Which blocks tasks may belong to as inference has left it."""
    mixture = fitted.blocks.mixture
    return CandidateBlocks(fitted.blocks.counts, mixture.start, mixture.block, mixture.log_weight, fitted.independent)


class LeftOut(NamedTuple):
    """For every row taken out, what each block that its task may belong to says of it.

    Entries ``start[i]:start[i + 1]`` are those of row i: log weights of the blocks without the row, and the log
    likelihood of each of its features under each label (entries, features, labels). ``log_rates`` (rows, labels) are
    those of the labels, ``labels`` and ``weights`` those of the rows.
    """

    start: NDArray[np.int64]
    log_weight: Floats
    log_fit: Floats
    log_rates: Floats
    labels: NDArray[np.int32]
    weights: Floats

    @property
    def row(self) -> NDArray[np.int64]:
        """The row that each entry belongs to."""
        return np.repeat(np.arange(len(self.labels)), np.diff(self.start))

    def log_joint(self, powers: Floats, averaged: bool = False) -> Floats:
        """Log probability of blocks and labels (entries, labels), up to a constant for each row."""
        log_joint = np.tensordot(self.log_fit, powers, axes=(1, 0)) + self.log_rates[self.row]
        if averaged:
            log_joint -= logsumexp(log_joint, axis=1, keepdims=True)
        return np.asarray(log_joint + self.log_weight[:, None])

    def log_predictive(self, powers: Floats, averaged: bool = False) -> Floats:
        """Log probability of every label of every row, given all other rows (rows, labels)."""
        log_joint, first = self.log_joint(powers, averaged), self.start[:-1]
        highest = np.maximum.reduceat(log_joint.max(axis=1), first)
        summed = np.add.reduceat(np.exp(log_joint - highest[self.row, None]), first, axis=0)
        # A label that no block leaves any chance must not become −inf.
        log_sum = np.log(np.maximum(summed, np.finfo(np.float64).tiny))
        return np.asarray(log_sum - logsumexp(log_sum, axis=1, keepdims=True))

    def score(self, powers: Floats, averaged: bool = False) -> tuple[float, Floats]:
        """Log probability of the rows' own labels, added up by the rows' weights, and its slope by each power."""
        # Labels before features, because powers multiply what lies side by side in memory.
        score, slope = _score(self._replace(log_fit=self.log_fit.transpose(0, 2, 1)), powers, averaged)
        return float(score), np.asarray(slope)


@compiled
def _score(left_out, powers, averaged):  # type: ignore[no-untyped-def]
    """Log probability of the rows' own labels and its slope; ``log_fit`` is (entries, labels, features)."""
    start, log_weight, log_fit, log_rates, labels, weights = left_out
    n_labels, n_features = log_fit.shape[1:]
    score, slope = 0.0, np.zeros(n_features)
    # Plain loops: array expressions would take seconds to compile.
    most_entries = 0
    for i in range(len(labels)):
        most_entries = max(most_entries, start[i + 1] - start[i])
    joint = np.empty((most_entries, n_labels))
    for i in range(len(labels)):
        n_entries, own = start[i + 1] - start[i], labels[i]
        highest = -np.inf
        for entry in range(n_entries):
            place, sum_of_labels = start[i] + entry, 0.0
            for y in range(n_labels):
                fit = log_rates[i, y]
                for f in range(n_features):
                    fit += powers[f] * log_fit[place, y, f]
                joint[entry, y] = fit
            log_sum = 0.0
            if averaged:
                most = -np.inf
                for y in range(n_labels):
                    most = max(most, joint[entry, y])
                for y in range(n_labels):
                    sum_of_labels += np.exp(joint[entry, y] - most)
                log_sum = most + np.log(sum_of_labels)
            for y in range(n_labels):
                joint[entry, y] = joint[entry, y] - log_sum + log_weight[place]
                highest = max(highest, joint[entry, y])
        of_all, of_own = 0.0, 0.0
        for entry in range(n_entries):
            for y in range(n_labels):
                joint[entry, y] = np.exp(joint[entry, y] - highest)
                of_all += joint[entry, y]
            of_own += joint[entry, own]
        # A label that no block leaves any chance must not become −inf.
        of_own = max(of_own, 2.2e-308)
        score += weights[i] * np.log(of_own / of_all)
        for entry in range(n_entries):
            place, of_entry = start[i] + entry, 0.0
            for y in range(n_labels):
                of_entry += joint[entry, y]
            given_own = joint[entry, own] / of_own
            for y in range(n_labels):
                # Averaged, each block's own prediction changes; its weight does not.
                among = given_own * joint[entry, y] / max(of_entry, 2.2e-308) if averaged else joint[entry, y] / of_all
                change = weights[i] * ((given_own if y == own else 0.0) - among)
                for f in range(n_features):
                    slope[f] += change * log_fit[place, y, f]
    return score, slope


class _RowsOut(NamedTuple):
    """Rows to be taken out, how much of each, and where the entries of each begin among those of all."""

    codes: NDArray[np.int32]
    labels: NDArray[np.int32]
    task: NDArray[np.int64]
    taken: Floats
    start: NDArray[np.int64]


class _Entries(NamedTuple):
    """Entries of the tasks, and blocks by their counts and by the totals of groups of counts.

    ``share`` is how much of a task is in an entry's block.
    """

    start: NDArray[np.int64]
    block: NDArray[np.int64]
    share: Floats
    counts: Floats
    totals: Floats


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
    entries = _Entries(blocks.start, blocks.block, share, counts, totals)
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
            entry = entries.start[rows.task[i]] + slot
            k, mass = entries.block[entry], entries.share[entry] * rows.taken[i]
            for y in range(log_fit.shape[2]):
                gone = mass if y == rows.labels[i] else 0.0
                for f in range(n_features):
                    log_fit[rows.start[i] + slot, f, y] = 0.0
                    if rows.codes[i, f] < 0:
                        continue
                    cell, group = y * width + offsets[f] + rows.codes[i, f], y * n_features + f
                    count, pseudo, lost = entries.counts[k, cell] - gone, prior.cell[cell], prior.losses[i, f]
                    if not prior.learnt:
                        pseudo -= lost
                    elif gone > 0.0 or lost > 0.0:
                        vote = gone * pseudo / (pseudo + count)
                        pseudo = (
                            prior.group[group] * (prior.votes[cell] - vote - lost) / (prior.all_votes[group] - vote)
                        )
                    rate = (count + pseudo) / (entries.totals[k, group] - gone + prior.group[group])
                    log_fit[rows.start[i] + slot, f, y] = np.log(rate)


@compiled
def _fit_of_numbers_without(numbers, rows, entries, groups, log_fit):  # type: ignore[no-untyped-def]
    """Log density of every row's numbers under each label in each block, without the row itself."""
    n_numbers = numbers.shape[1]
    for i in range(len(rows.labels)):
        for slot in range(rows.start[i + 1] - rows.start[i]):
            entry = entries.start[rows.task[i]] + slot
            k, mass = entries.block[entry], entries.share[entry] * rows.taken[i]
            for y in range(log_fit.shape[2]):
                gone = mass if y == rows.labels[i] else 0.0
                for j in range(n_numbers):
                    log_fit[rows.start[i] + slot, j, y] = 0.0
                    x = numbers[i, j]
                    if np.isnan(x):
                        continue
                    g = y * n_numbers + j
                    c, family = groups.first + N_CELLS * g, groups.family[g]
                    n, total = entries.counts[k, c] - gone, entries.counts[k, c + 1] - gone * x
                    third = entries.counts[k, c + 2] - gone * third_cell(x, family)
                    density = log_density_of_number(x, n, total, third, family, prior_of(groups, g))
                    log_fit[rows.start[i] + slot, j, y] = density
