"""Tasks taken out of their clusters and seated anew, so that a row left out has not chosen the cluster that judges it.

A partition that was found with a row belongs to it: a task of one row sits with those that look like the row, and
taking the row out of the counts afterwards does not undo that. So the task itself is taken out of its cluster, and the
rest of the partition held. Then, by the Chinese restaurant process with concentration a,

    p(k | D) ∝ n_k^{−u} p(D_u | D_k^{−u}),        p(alone | D) ∝ a p(D_u),

and what follows when one of its rows is taken out is left to ``leave_one_out``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from kinfolk.maths.compiled import compiled
from kinfolk.maths.dirichlet import log_marginal_of_sum, log_marginals
from kinfolk.naive_bayes.inference.leave_one_out import CandidateBlocks
from kinfolk.naive_bayes.model.data import TrainingData
from kinfolk.naive_bayes.model.hyper import HyperParameters, feature_product

# Clusters that a task may join, at most: the largest ones; and seats of a task that are kept: the most probable ones.
_MAX_CLUSTERS = 256
_MAX_SEATS = 16


def reseat(
    data: TrainingData, hyper: HyperParameters, partition: NDArray[np.int64], tasks: NDArray[np.int64]
) -> CandidateBlocks:
    """Seats of some tasks, given the partition of all others; other tasks have none. O(tasks · clusters · cells)."""
    statistics = data.statistics.widened()
    own = statistics.feature_counts
    order = np.argsort(partition, kind="stable")
    names, first, sizes = np.unique(partition[order], return_index=True, return_counts=True)
    # In the tasks' own type, so that kernels are compiled for one.
    clusters = np.add.reduceat(own[order], first, axis=0, dtype=own.dtype)
    # A task's own cluster may be a small one: without the task it has little to say.
    largest = np.sort(np.argsort(-sizes, kind="stable")[:_MAX_CLUSTERS])
    place = np.full(len(names), -1)
    place[largest] = np.arange(len(largest))
    clusters, sizes = clusters[largest], sizes[largest]
    home = place[np.searchsorted(names, partition[tasks])]
    product = feature_product(data, hyper)
    log_weight = np.empty((len(tasks), len(clusters) + 1))
    log_weight[:, -1] = np.log(hyper.concentration) + log_marginals(own[tasks], product)
    _weigh(own[tasks], home, _Clusters(clusters, sizes, log_marginals(clusters, product)), product, log_weight)
    n_seats = min(_MAX_SEATS, log_weight.shape[1])
    seat = np.argsort(-log_weight, axis=1, kind="stable")[:, :n_seats]
    kept = np.take_along_axis(log_weight, seat, axis=1)
    possible = np.isfinite(kept)
    kept -= logsumexp(kept, axis=1, keepdims=True)
    nobody = np.concatenate([clusters, np.zeros_like(clusters[:1])])
    counts = nobody[seat[possible]]
    at_home = seat == home[:, None]
    elsewhere = np.nonzero(~at_home[possible])[0]
    counts[elsewhere] += own[np.repeat(tasks, possible.sum(axis=1))[elsewhere]]
    n_entries = np.zeros(len(partition), dtype=np.int64)
    n_entries[tasks] = possible.sum(axis=1)
    return CandidateBlocks(
        counts, np.concatenate([[0], np.cumsum(n_entries)]), np.arange(len(counts)), np.asarray(kept[possible])
    )


class _Clusters(NamedTuple):
    """Clusters that a task may join: their counts, how many tasks they hold, and their log marginals."""

    counts: NDArray[np.generic]
    sizes: NDArray[np.int64]
    log_marginal: NDArray[np.float64]


@compiled
def _weigh(own, home, clusters, product, log_weight):  # type: ignore[no-untyped-def]
    """Log weight of every task's joining every cluster, itself not among the cluster's tasks."""
    nothing = np.zeros_like(own[0])
    others = np.zeros_like(own[0])
    for i in range(len(own)):
        for k in range(len(clusters.sizes)):
            if k != home[i]:
                joined = log_marginal_of_sum(clusters.counts[k], own[i], product)
                log_weight[i, k] = np.log(clusters.sizes[k]) + joined - clusters.log_marginal[k]
            elif clusters.sizes[k] == 1:
                log_weight[i, k] = -np.inf
            else:
                for c in range(len(others)):
                    others[c] = clusters.counts[k, c] - own[i, c]
                without = log_marginal_of_sum(others, nothing, product)
                log_weight[i, k] = np.log(clusters.sizes[k] - 1) + clusters.log_marginal[k] - without
