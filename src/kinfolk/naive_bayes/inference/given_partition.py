"""Naive Bayes with a partition that is given, in closed form where all rows are labelled (thesis sections 2.2 and 2.3).

Every task alone is no sharing, all tasks together complete sharing; both are limits of the Chinese restaurant process,
with concentration infinity and zero, which also says what a new task gets. Labels of unlabelled rows are sampled.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kinfolk.evidence import Evidence
from kinfolk.maths.dirichlet import log_marginals
from kinfolk.naive_bayes.inference import gibbs
from kinfolk.naive_bayes.inference.options import Options
from kinfolk.naive_bayes.model.values import (
    Fitted,
    HyperParameters,
    Memberships,
    TrainingData,
    feature_product,
    make_blocks,
)
from kinfolk.partition.crp import joining_weights


def infer(
    data: TrainingData, hyper: HyperParameters, options: Options, seed: int, partition: NDArray[np.int64]
) -> tuple[HyperParameters, Fitted]:
    """Count the labelled rows of each block; the concentration is that of a new task. O(tasks · cells)."""
    if data.n_unlabelled:
        return gibbs.infer(data, hyper, options, seed, partition)
    statistics = data.statistics
    n_tasks = len(partition)
    sizes = np.bincount(partition)
    n_blocks = len(sizes)
    counts = np.zeros((n_blocks + 1, statistics.layout.n_cells), dtype=statistics.feature_counts.dtype)
    if n_blocks == n_tasks and np.array_equal(partition, np.arange(n_tasks)):
        counts[:-1] = statistics.feature_counts
    else:
        np.add.at(counts, partition, statistics.feature_counts)
    log_rates = hyper.log_label_rates(statistics.label_counts)
    memberships = [Memberships(np.arange(n_tasks), partition, np.zeros(n_tasks), log_rates)]
    joins, alone = joining_weights(sizes, n_tasks, hyper.concentration)
    weights = np.append(joins, alone)
    block = np.flatnonzero(weights)
    no_rates = hyper.log_label_rates(np.zeros_like(hyper.label_prior))
    memberships.append(
        Memberships(np.full(len(block), n_tasks), block, np.log(weights[block]), np.tile(no_rates, (len(block), 1)))
    )
    return hyper, Fitted(make_blocks(data, hyper, counts, np.append(sizes, 0), memberships), partition)


def evidence(
    data: TrainingData, hyper: HyperParameters, options: Options, seed: int, partition: NDArray[np.int64]
) -> Evidence:
    """Evidence given the partition (thesis eq. A.30 and A.51); annealed where labels are unknown."""
    if data.n_unlabelled:
        return gibbs.evidence(data, hyper, seed, options.n_jobs, partition)
    counts = data.statistics.feature_counts
    if not np.array_equal(partition, np.arange(len(partition))):
        counts = np.zeros_like(data.statistics.widened().feature_counts)
        np.add.at(counts, partition, data.statistics.feature_counts)
    features = float(log_marginals(counts, feature_product(data, hyper)).sum())
    return Evidence(features + hyper.log_label_evidence(data.statistics.label_counts), "exact")
