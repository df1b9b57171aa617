"""Naive Bayes with a partition that is given, in closed form (thesis sections 2.2 and 2.3).

Every task alone is no sharing, all tasks together complete sharing; both are limits of the Chinese restaurant process,
with concentration infinity and zero, which also says what a new task gets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.evidence import Evidence
from kinfolk.maths.dirichlet import log_marginals
from kinfolk.naive_bayes.model.fitted import Entry, Fitted, Problem, make_blocks
from kinfolk.partition.crp import joining_weights


def fit_fixed(problem: Problem, partition: NDArray[np.int64], concentration: float) -> Fitted:
    """Count the labelled rows of each block. O(tasks · cells)."""
    statistics = problem.statistics
    n_tasks = len(partition)
    sizes = np.bincount(partition)
    n_blocks = len(sizes)
    counts = np.zeros((n_blocks + 1, statistics.layout.n_cells), dtype=statistics.feature_counts.dtype)
    _add_up(counts, partition, statistics.feature_counts)
    log_rates = problem.log_rates(statistics.label_counts)
    entries = [Entry(np.arange(n_tasks), partition, np.zeros(n_tasks), log_rates)]
    joins, alone = joining_weights(sizes, n_tasks, concentration)
    weights = np.append(joins, alone)
    block = np.flatnonzero(weights)
    no_rates = problem.log_rates(np.zeros_like(problem.label_prior))
    entries.append(
        Entry(np.full(len(block), n_tasks), block, np.log(weights[block]), np.tile(no_rates, (len(block), 1)))
    )

    return Fitted(blocks=make_blocks(problem, counts, np.append(sizes, 0), entries), partition=partition)


def fixed_evidence(problem: Problem, partition: NDArray[np.int64]) -> Evidence:
    """Evidence of the labelled rows given the partition (thesis eq. A.30 and A.51)."""
    counts = np.zeros_like(problem.statistics.feature_counts)
    _add_up(counts, partition, problem.statistics.feature_counts)
    features = float(log_marginals(counts, problem.product()).sum())
    return Evidence(features + problem.log_label_evidence(), "exact")


def _add_up(counts: NDArray[Any], partition: NDArray[np.int64], of_tasks: NDArray[Any]) -> None:
    """Add tasks' counts to those of their blocks."""
    if len(counts) >= len(partition) and np.array_equal(partition, np.arange(len(partition))):
        counts[: len(partition)] = of_tasks
    else:
        np.add.at(counts, partition, of_tasks)
