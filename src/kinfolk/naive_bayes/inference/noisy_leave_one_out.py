"""What clusters of noisy copies say of each training row once that row is taken out again.

In a block whose rates are (n + K m) / (N + K), taking out a row with value x leaves n_x − 1 and N − 1 of the task's own
rows, and a prototype m without the vote that the row had cast, if it had: that is so with probability
K m_x / (K m_x + n_x − 1). What is known of the block changes by the row's own probability, as in ``leave_one_out``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled
from kinfolk.naive_bayes.inference.leave_one_out import LeftOut, entries_of_rows, weigh_without
from kinfolk.naive_bayes.model.data import TrainingData
from kinfolk.naive_bayes.model.fitted import Fitted
from kinfolk.naive_bayes.model.hyper import HyperParameters
from kinfolk.tasks.statistics import Rows


class _Blocks(NamedTuple):
    """Blocks that tasks may belong to, entry by entry, with their rates and what these are made of."""

    start: NDArray[np.int64]
    block: NDArray[np.int64]
    log_theta: Floats
    pull: Floats
    mass: Floats


class _Tasks(NamedTuple):
    """Counts of the tasks, and their totals group by group."""

    counts: NDArray[np.generic]
    totals: NDArray[np.generic]


def leave_out_noisy(data: TrainingData, hyper: HyperParameters, fitted: Fitted, rows: Rows) -> LeftOut:
    """Take out each of the labelled rows in turn. O(rows · blocks of its task · features · labels).

    A row of weight 2 is two rows, of which one is taken out.
    """
    assert fitted.sources is not None
    layout, mixture = data.statistics.layout, fitted.blocks.mixture
    start = entries_of_rows(mixture.start, rows.task)
    log_fit = np.empty((int(start[-1]), rows.codes.shape[1], layout.n_labels))
    counts = data.statistics.feature_counts
    tasks = _Tasks(counts, np.add.reduceat(counts, layout.group_start[:-1], axis=1))
    blocks = _Blocks(mixture.start, mixture.block, mixture.log_theta, fitted.sources.pull, fitted.sources.mass)
    _fit_without(rows.codes, rows.labels, rows.task, tasks, blocks, layout.offsets, start, log_fit)
    taken, label_counts = np.ones(len(rows.labels)), data.statistics.label_counts
    return weigh_without(start, mixture.start, mixture.log_weight, log_fit, rows, taken, label_counts, hyper)


@compiled
def _fit_without(codes, labels, task, tasks, blocks, offsets, start, log_fit):  # type: ignore[no-untyped-def]
    """Log likelihood of every row's features under each label in each block, without the row itself."""
    n_features, width = codes.shape[1], offsets[-1]
    for i in range(len(labels)):
        u = task[i]
        for slot in range(start[i + 1] - start[i]):
            k = blocks.block[blocks.start[u] + slot]
            for y in range(log_fit.shape[2]):
                for f in range(n_features):
                    value = 0.0
                    if codes[i, f] >= 0:
                        cell = offsets[f] + codes[i, f]
                        value = blocks.log_theta[k, cell, y]
                        if y == labels[i]:
                            group = y * n_features + f
                            strength, votes = blocks.pull[k, group], blocks.mass[k, group]
                            n = float(tasks.counts[u, y * width + cell])
                            pseudo = max(np.exp(value) * (tasks.totals[u, group] + strength) - n, 1e-12 * strength)
                            cast = pseudo / (pseudo + n - 1.0)
                            share = (pseudo / strength * votes - cast) / (votes - cast)
                            rate = n - 1.0 + strength * max(share, 1e-12)
                            value = np.log(rate / (tasks.totals[u, group] - 1.0 + strength))
                    log_fit[start[i] + slot, f, y] = value
