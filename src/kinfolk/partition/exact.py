"""Exact inference over all partitions of a few tasks, by a recursion over subsets.

With g(S) = aΓ(|S|) p(D_S), the sum over all partitions of a set A is Z(A) = Σ_{S ∋ min A} g(S) Z(A∖S): each partition
is met once, through the block that holds A's first task. The cost is O(3^U) instead of the Bell number of U.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.maths.dirichlet import DirichletProduct, log_marginals
from kinfolk.partition.crp import canonical, log_block_weight, log_normaliser

MAX_TASKS = 10


class ExactPartitions(NamedTuple):
    """Posterior over all partitions: every subset of tasks, with the probability that it is a block.

    ``members`` (subsets, tasks) is boolean; ``log_probability`` belongs to its rows; ``log_evidence`` is the log of the
    sum over all partitions of prior times marginal; ``partition`` is the most probable one.
    """

    members: NDArray[np.bool_]
    log_probability: NDArray[np.float64]
    log_evidence: float
    partition: NDArray[np.int64]
    log_joint: float


def all_subsets(n_tasks: int) -> NDArray[np.bool_]:
    """Membership of every subset of tasks; row m holds the tasks whose bits are set in m."""
    return (np.arange(1 << n_tasks)[:, None] >> np.arange(n_tasks) & 1).astype(bool)


def exact_partitions(counts: NDArray[np.generic], product: DirichletProduct, concentration: float) -> ExactPartitions:
    """Sum over all partitions of the rows of ``counts``. O(3^U + 2^U · cells) time, O(2^U · cells) memory."""
    n_tasks = len(counts)
    members = all_subsets(n_tasks)
    subset_counts = np.zeros((len(members), counts.shape[1]), dtype=counts.dtype)
    for task in range(n_tasks):
        # The subsets whose last task is this one are those before it, with it added.
        half = 1 << task
        subset_counts[half : 2 * half] = subset_counts[:half] + counts[task]
    log_g = np.full(len(members), -np.inf)
    log_g[1:] = log_block_weight(members[1:].sum(axis=1), concentration)
    log_g[1:] += log_marginals(subset_counts[1:], product)
    log_sum, log_best, best_block = _subset_sums(log_g)
    everything = len(members) - 1
    # A subset is a block where the rest of the tasks are partitioned in any way.
    log_probability = log_g + log_sum[everything - np.arange(len(members))] - log_sum[everything]
    partition = np.zeros(n_tasks, dtype=np.int64)
    rest, label = everything, 0
    while rest:
        partition[members[best_block[rest]]] = label
        rest, label = rest ^ int(best_block[rest]), label + 1
    normaliser = log_normaliser(n_tasks, concentration)
    return ExactPartitions(
        members,
        log_probability,
        float(log_sum[everything]) + normaliser,
        canonical(partition),
        float(log_best[everything]) + normaliser,
    )


@compiled
def _subset_sums(log_g):  # type: ignore[no-untyped-def]
    """Log-sum and maximum over the partitions of every subset, with the first block of the best one."""
    n = len(log_g)
    log_sum = np.full(n, -np.inf)
    log_best = np.full(n, -np.inf)
    best_block = np.zeros(n, dtype=np.int64)
    log_sum[0] = 0.0
    log_best[0] = 0.0
    for everything in range(1, n):
        lowest = everything & -everything
        others = everything ^ lowest
        part = others
        while True:
            block = part | lowest
            rest = everything ^ block
            term = log_g[block] + log_sum[rest]
            high = max(term, log_sum[everything])
            if high > -np.inf:
                low = min(term, log_sum[everything])
                log_sum[everything] = high + np.log1p(np.exp(low - high))
            best = log_g[block] + log_best[rest]
            if best > log_best[everything]:
                log_best[everything] = best
                best_block[everything] = block
            if part == 0:
                break
            part = (part - 1) & others
    return log_sum, log_best, best_block
