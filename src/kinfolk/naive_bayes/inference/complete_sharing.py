"""Complete sharing: one naive Bayes model for all tasks (thesis section 2.3; inference A.1.2).

Where label rates are shared too, all tasks are one, and what that one has is every task's.

In the papers: Roy (2006), eq. 2.18–2.24, A.31–A.38.
"""

from __future__ import annotations

import numpy as np

from kinfolk.evidence import Evidence
from kinfolk.naive_bayes.inference import given_partition
from kinfolk.naive_bayes.inference.conditional_evidence import labels_given_features_and_blocks
from kinfolk.naive_bayes.inference.empirical_bayes import with_learnt_prior
from kinfolk.naive_bayes.inference.fitting import LeftOut
from kinfolk.naive_bayes.inference.leave_one_out import fitted_blocks
from kinfolk.naive_bayes.inference.leave_one_out import leave_out as leave_out_of_blocks
from kinfolk.naive_bayes.inference.options import Effort, Options
from kinfolk.naive_bayes.model.values import Fitted, HyperParameters, TrainingData
from kinfolk.tasks.statistics import Rows

# A new task always joins: the limit of the Chinese restaurant process.
_ALWAYS_JOINS = 0.0


def infer(data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> tuple[HyperParameters, Fitted]:
    """All tasks are one block."""
    shared = data.pooled() if options.share_labels else data
    layout, counts = data.statistics.layout, data.statistics.pooled().feature_counts
    hyper = with_learnt_prior(hyper, counts, layout, same_for_labels=True)._replace(concentration=_ALWAYS_JOINS)
    together = np.zeros(len(shared.statistics.tasks), dtype=np.int64)
    hyper, fitted = given_partition.infer(shared, hyper, options, seed, together)
    return hyper, _for_all(fitted, len(data.statistics.tasks)) if options.share_labels else fitted


def evidence(data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> Evidence:
    """Log p(X, Y), in closed form where all rows are labelled."""
    shared = data.pooled() if options.share_labels else data
    together = np.zeros(len(shared.statistics.tasks), dtype=np.int64)
    return given_partition.evidence(shared, hyper, options, seed, together)


def leave_out(data: TrainingData, hyper: HyperParameters, fitted: Fitted, rows: Rows, options: Options) -> LeftOut:
    """What is said of each of these training rows by all others."""
    label_counts = data.statistics.label_counts
    if options.share_labels:
        label_counts = np.broadcast_to(label_counts.sum(axis=0), label_counts.shape)
    return leave_out_of_blocks(data, hyper, fitted_blocks(fitted), rows, label_counts)


def labels_given_features(
    data: TrainingData, hyper: HyperParameters, fitted: Fitted, rows: Rows, options: Options, effort: Effort
) -> Evidence:
    """Log p(Y | X)."""
    if options.share_labels:
        data, rows = data.pooled(), rows._replace(task=np.zeros_like(rows.task))
    together = np.zeros(len(data.statistics.tasks), dtype=np.int64)
    return labels_given_features_and_blocks(data, hyper, rows, together, effort)


def _for_all(fitted: Fitted, n_tasks: int) -> Fitted:
    """Give every task, a new one included, what the one task of a pooled fit has."""
    blocks = fitted.blocks
    mixture = blocks.mixture
    n_entries = int(mixture.start[1])
    mixture = mixture._replace(
        start=np.arange(n_tasks + 2) * n_entries,
        block=np.tile(mixture.block[:n_entries], n_tasks + 1),
        log_weight=np.tile(mixture.log_weight[:n_entries], n_tasks + 1),
        log_rates=np.tile(mixture.log_rates[:n_entries], (n_tasks + 1, 1)),
    )
    # The pooled block holds all tasks, not one.
    blocks = blocks._replace(sizes=blocks.sizes * n_tasks, mixture=mixture)
    return fitted._replace(blocks=blocks, partition=np.zeros(n_tasks, dtype=np.int64), partitions=None)
