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
from scipy.optimize import minimize
from scipy.special import logsumexp

from kinfolk.maths.blas import one_blas_thread
from kinfolk.maths.compiled import compiled
from kinfolk.maths.conjugate import N_CELLS, log_density_of_number, prior_of, third_cell
from kinfolk.naive_bayes.model.fitted import Fitted, Problem
from kinfolk.naive_bayes.model.mixture import MAX_TEMPER
from kinfolk.tasks.statistics import Rows

Floats = NDArray[np.float64]

# Half the precision of powers about their mean: a priori they differ by about 0.2.
_CLOSENESS = 10.0
_START = 0.5


class Belonging(NamedTuple):
    """Blocks of tasks by their counts, and which of them every task may belong to.

    Entries ``start[u]:start[u + 1]`` are those of task u. ``in_part`` says that a task is in its blocks in part, by
    their weights, and not in one of them.
    """

    counts: NDArray[Any]
    start: NDArray[np.int64]
    block: NDArray[np.int64]
    log_weight: Floats
    in_part: bool = False


def belonging(fitted: Fitted) -> Belonging:
    """Which blocks tasks may belong to as inference has left it."""
    mixture = fitted.blocks.mixture
    return Belonging(fitted.blocks.counts, mixture.start, mixture.block, mixture.log_weight, fitted.independent)


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
        by_label = self.log_fit.transpose(0, 2, 1)
        score, slope = _score(
            self.start, self.log_weight, by_label, self.log_rates, self.labels, self.weights, powers, averaged
        )
        return float(score), np.asarray(slope)


@compiled
def _score(start, log_weight, log_fit, log_rates, labels, weights, powers, averaged):  # type: ignore[no-untyped-def]
    """Log probability of the rows' own labels and its slope; ``log_fit`` is (entries, labels, features)."""
    n_labels, n_features = log_fit.shape[1:]
    score, slope = 0.0, np.zeros(n_features)
    joint = np.empty((np.diff(start).max(), n_labels))
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
            if averaged:
                most = joint[entry].max()
                for y in range(n_labels):
                    sum_of_labels += np.exp(joint[entry, y] - most)
                joint[entry] -= most + np.log(sum_of_labels)
            joint[entry] += log_weight[place]
            highest = max(highest, joint[entry].max())
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
            place, of_entry = start[i] + entry, joint[entry].sum()
            given_own = joint[entry, own] / of_own
            for y in range(n_labels):
                # Averaged, each block's own prediction changes; its weight does not.
                among = given_own * joint[entry, y] / max(of_entry, 2.2e-308) if averaged else joint[entry, y] / of_all
                change = weights[i] * ((given_own if y == own else 0.0) - among)
                for f in range(n_features):
                    slope[f] += change * log_fit[place, y, f]
    return score, slope


def learn_temper(left_out: LeftOut, averaged: bool = False) -> Floats:
    """Powers on the features' likelihoods under which the rows' labels are the most probable.

    A priori features have powers close to each other, wherever that is: together they make up for naive Bayes counting
    correlated features twice, apart for some of them being more so than others. For one block the score is concave.
    """
    n_features = left_out.log_fit.shape[1]

    def loss(powers: Floats) -> tuple[float, Floats]:
        apart = powers - powers.mean()
        score, slope = left_out.score(powers, averaged)
        return _CLOSENESS * float(apart @ apart) - score, 2.0 * _CLOSENESS * apart - slope

    bounds = [(0.0, MAX_TEMPER)] * n_features
    with one_blas_thread():
        found = minimize(loss, np.full(n_features, _START), jac=True, method="L-BFGS-B", bounds=bounds)
    return np.asarray(np.clip(found.x, 0.0, MAX_TEMPER))


def leave_out(problem: Problem, belonging: Belonging, rows: Rows, label_counts: NDArray[Any]) -> LeftOut:
    """Take out each of the labelled rows in turn. O(rows · blocks of its task · features · labels).

    ``label_counts`` are those behind each task's label rates. A row of weight 2 is two rows, of which one is taken out.
    """
    layout = problem.statistics.layout
    weights = np.ones(len(rows.labels)) if rows.weights is None else rows.weights
    taken = np.minimum(weights, 1.0)
    n_entries = np.diff(belonging.start)[rows.task]
    start = np.concatenate([[0], np.cumsum(n_entries)]).astype(np.int64)
    # Where tasks belong to blocks in part, a row is in them in part.
    share = np.exp(belonging.log_weight) if belonging.in_part else np.ones(len(belonging.log_weight))
    counts = belonging.counts.astype(np.float64, copy=False)
    first_cells = layout.group_start[:-1]
    # Where the prior was not learnt, a row's vote weighs nothing against infinitely many.
    votes = np.full(layout.n_counts, np.inf) if problem.votes is None else problem.votes
    n_coded = rows.codes.shape[1]
    # Features side by side in memory, because powers multiply these.
    log_fit = np.empty((int(start[-1]), layout.n_labels, n_coded + len(layout.numbers))).transpose(0, 2, 1)
    prior = _Prior(
        problem.feature_prior,
        np.add.reduceat(problem.feature_prior, first_cells),
        votes,
        np.add.reduceat(votes, first_cells),
        _losses(problem, rows, taken),
    )
    totals = np.add.reduceat(counts[:, : layout.n_counts], first_cells, axis=1)
    coded = rows.codes, rows.labels, rows.task, taken
    entries = belonging.start, belonging.block, share
    _fit_without(*coded, *entries, counts, totals, prior, layout.offsets, start, log_fit)
    if rows.numbers is not None:
        numbers = np.ascontiguousarray(rows.numbers)
        _fit_of_numbers_without(
            numbers, *coded[1:], *entries, counts, layout.number_groups, start, log_fit[:, n_coded:]
        )
    without = label_counts[rows.task] + problem.label_prior
    without[np.arange(len(without)), rows.labels] -= taken
    log_rates = np.log(without) - np.log(without.sum(axis=1, keepdims=True))
    place = np.repeat(belonging.start[rows.task] - start[:-1], n_entries) + np.arange(start[-1])
    row = np.repeat(np.arange(len(rows.labels)), n_entries)
    log_weight = belonging.log_weight[place] - log_fit.sum(axis=1)[np.arange(len(place)), rows.labels[row]]
    highest = np.maximum.reduceat(log_weight, start[:-1])
    total = np.add.reduceat(np.exp(log_weight - highest[row]), start[:-1])
    log_weight -= (highest + np.log(total))[row]
    if layout.numbers:
        log_fit = log_fit[:, layout.order]
    return LeftOut(start, log_weight, log_fit, log_rates, rows.labels, weights)


def _losses(problem: Problem, rows: Rows, taken: Floats) -> Floats:
    """What a prior of rates that all tasks share loses, for every label, at each row's values without the row.

    Its vote there is its chance to have been drawn from the prior, given all other rows with its label.
    """
    losses = np.zeros(rows.codes.shape)
    if problem.common is None:
        return losses
    layout = problem.statistics.layout
    pseudo, votes = problem.common
    starts, widths = layout.group_start[:-1], np.diff(layout.group_start)
    strength, all_votes = (np.repeat(np.add.reduceat(of, starts), widths) for of in problem.common)
    counts = problem.statistics.feature_counts[:, : layout.n_counts].sum(axis=0, dtype=np.float64)
    cells = rows.labels[:, None] * layout.width + layout.offsets[:-1] + np.maximum(rows.codes, 0)
    gone = np.broadcast_to(taken[:, None], cells.shape)
    vote = gone * pseudo[cells] / (pseudo[cells] + counts[cells] - gone)
    losses = pseudo[cells] - strength[cells] * (votes[cells] - vote) / (all_votes[cells] - vote)
    return np.asarray(np.where(rows.codes < 0, 0.0, losses))


class _Prior(NamedTuple):
    """Pseudo-counts and votes, each of cells and of their groups, and what rows' values lose without them."""

    cell: Floats
    group: Floats
    votes: Floats
    all_votes: Floats
    losses: Floats


@compiled
def _fit_without(  # type: ignore[no-untyped-def]
    codes, labels, task, taken, entry_start, block, share, counts, totals, prior, offsets, start, log_fit
):
    """Log likelihood of every row's features under each label in each block, without the row itself."""
    n_features, width = codes.shape[1], offsets[-1]
    pseudo_counts, strength, votes, all_votes = prior.cell, prior.group, prior.votes, prior.all_votes
    for i in range(len(labels)):
        for slot in range(start[i + 1] - start[i]):
            entry = entry_start[task[i]] + slot
            k, mass = block[entry], share[entry] * taken[i]
            for y in range(log_fit.shape[2]):
                gone = mass if y == labels[i] else 0.0
                for f in range(n_features):
                    log_fit[start[i] + slot, f, y] = 0.0
                    if codes[i, f] < 0:
                        continue
                    cell, group = y * width + offsets[f] + codes[i, f], y * n_features + f
                    count, pseudo, lost = counts[k, cell] - gone, pseudo_counts[cell], prior.losses[i, f]
                    if votes[cell] == np.inf:
                        pseudo -= lost
                    elif gone > 0.0 or lost > 0.0:
                        vote = gone * pseudo / (pseudo + count)
                        pseudo = strength[group] * (votes[cell] - vote - lost) / (all_votes[group] - vote)
                    rate = (count + pseudo) / (totals[k, group] - gone + strength[group])
                    log_fit[start[i] + slot, f, y] = np.log(rate)


@compiled
def _fit_of_numbers_without(  # type: ignore[no-untyped-def]
    numbers, labels, task, taken, entry_start, block, share, counts, groups, start, log_fit
):
    """Log density of every row's numbers under each label in each block, without the row itself."""
    n_numbers = numbers.shape[1]
    for i in range(len(labels)):
        for slot in range(start[i + 1] - start[i]):
            entry = entry_start[task[i]] + slot
            k, mass = block[entry], share[entry] * taken[i]
            for y in range(log_fit.shape[2]):
                gone = mass if y == labels[i] else 0.0
                for j in range(n_numbers):
                    log_fit[start[i] + slot, j, y] = 0.0
                    x = numbers[i, j]
                    if np.isnan(x):
                        continue
                    g = y * n_numbers + j
                    c, family = groups.first + N_CELLS * g, groups.family[g]
                    n, total = counts[k, c] - gone, counts[k, c + 1] - gone * x
                    third = counts[k, c + 2] - gone * third_cell(x, family)
                    density = log_density_of_number(x, n, total, third, family, prior_of(groups, g))
                    log_fit[start[i] + slot, j, y] = density
