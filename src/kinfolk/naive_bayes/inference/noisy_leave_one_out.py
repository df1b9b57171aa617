"""What clusters of noisy copies say of each training row once that row is taken out again.

In a block whose rates are (n + K m) / (N + K), taking out a row with value x leaves n_x − 1 and N − 1 of the task's own
rows, and a prototype m without the vote that the row had cast, if it had: that is so with probability
K m_x / (K m_x + n_x − 1). What is known of the block changes by the row's own probability, as in ``leave_one_out``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.naive_bayes.inference.leave_one_out import LeftOut
from kinfolk.naive_bayes.model.fitted import Behind, Fitted, Problem
from kinfolk.tasks.statistics import Rows


def leave_out_noisy(
    problem: Problem, fitted: Fitted, behind: Behind, rows: Rows, label_counts: NDArray[Any]
) -> LeftOut:
    """Take out each of the labelled rows in turn. O(rows · blocks of its task · features · labels).

    ``label_counts`` are those behind each task's label rates. A row of weight 2 is two rows, of which one is taken out.
    """
    layout, mixture = problem.statistics.layout, fitted.blocks.mixture
    n_entries = np.diff(mixture.start)[rows.task]
    start = np.concatenate([[0], np.cumsum(n_entries)]).astype(np.int64)
    log_fit = np.empty((int(start[-1]), rows.codes.shape[1], layout.n_labels))
    counts = problem.statistics.feature_counts
    totals = np.add.reduceat(counts, layout.group_start[:-1], axis=1)
    coded = rows.codes, rows.labels, rows.task
    entries = mixture.start, mixture.block, mixture.log_theta
    _fit_without(*coded, *entries, behind.pull, behind.mass, counts, totals, layout.offsets, start, log_fit)
    without = label_counts[rows.task] + problem.label_prior
    without[np.arange(len(without)), rows.labels] -= 1.0
    log_rates = np.log(without) - np.log(without.sum(axis=1, keepdims=True))
    row = np.repeat(np.arange(len(rows.labels)), n_entries)
    place = np.repeat(mixture.start[rows.task] - start[:-1], n_entries) + np.arange(start[-1])
    log_weight = mixture.log_weight[place] - log_fit.sum(axis=1)[np.arange(len(place)), rows.labels[row]]
    highest = np.maximum.reduceat(log_weight, start[:-1])
    log_weight -= (highest + np.log(np.add.reduceat(np.exp(log_weight - highest[row]), start[:-1])))[row]
    weights = np.ones(len(rows.labels)) if rows.weights is None else rows.weights
    return LeftOut(start, log_weight, log_fit, log_rates, rows.labels, weights)


@compiled
def _fit_without(  # type: ignore[no-untyped-def]
    codes, labels, task, entry_start, block, log_theta, pull, mass, counts, totals, offsets, start, log_fit
):
    """Log likelihood of every row's features under each label in each block, without the row itself."""
    n_features, width = codes.shape[1], offsets[-1]
    for i in range(len(labels)):
        u = task[i]
        for slot in range(start[i + 1] - start[i]):
            k = block[entry_start[u] + slot]
            for y in range(log_fit.shape[2]):
                for f in range(n_features):
                    value = 0.0
                    if codes[i, f] >= 0:
                        cell = offsets[f] + codes[i, f]
                        value = log_theta[k, cell, y]
                        if y == labels[i]:
                            group = y * n_features + f
                            strength, votes = pull[k, group], mass[k, group]
                            n = float(counts[u, y * width + cell])
                            pseudo = max(np.exp(value) * (totals[u, group] + strength) - n, 1e-12 * strength)
                            cast = pseudo / (pseudo + n - 1.0)
                            share = (pseudo / strength * votes - cast) / (votes - cast)
                            rate = n - 1.0 + strength * max(share, 1e-12)
                            value = np.log(rate / (totals[u, group] - 1.0 + strength))
                    log_fit[start[i] + slot, f, y] = value
