"""Which of several partitions agrees best with them all.

Two partitions differ by the number of pairs of tasks that one joins and the other parts (W. M. Rand, J. Amer. Statist.
Assoc. 66, 1971). Of draws of a partition, the one with the least sum of differences to all draws is closest to their
average similarity in squares, too (D. B. Dahl, "Model-based clustering for expression data via a Dirichlet process
mixture model", 2006).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from kinfolk.maths.arrays import Floats
from kinfolk.partition.crp import canonical


def central_partition(partitions: NDArray[np.int64], weights: Floats | None = None) -> NDArray[np.int64]:
    """The partition, of these (partitions, tasks), with the least sum of differences to all; the first of equals.

    ``weights`` say how often each counts, once by default.

    O(different partitions² · tasks) time, O(different partitions · tasks) memory.

    Examples
    --------
    >>> central_partition(np.array([[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 1, 2], [0, 1, 2, 3]])).tolist()
    [0, 0, 1, 2]
    """
    named = np.array([canonical(partition) for partition in partitions])
    distinct, first, which = np.unique(named, axis=0, return_index=True, return_inverse=True)
    times = np.bincount(which.ravel(), weights)
    n_partitions, n_tasks = distinct.shape
    n_clusters = distinct.max(axis=1) + 1
    start = np.concatenate([[0], np.cumsum(n_clusters)])
    column = (distinct + start[:-1, None]).T.ravel()
    everywhere = np.arange(0, len(column) + 1, n_partitions)
    seats = csr_array((np.ones(len(column)), column, everywhere), shape=(n_tasks, int(start[-1])))
    of_cluster = np.repeat(np.arange(n_partitions), n_clusters)
    difference = np.empty(n_partitions)
    for d in range(n_partitions):
        here = csr_array((np.ones(n_tasks), distinct[d], np.arange(n_tasks + 1)), shape=(n_tasks, int(n_clusters[d])))
        shared = (here.T @ seats).tocoo()
        # Pairs that both join, counted as ordered pairs with a task beside itself.
        both = np.bincount(of_cluster[shared.coords[1]], shared.data**2, n_partitions)
        joined = float((np.bincount(distinct[d]) ** 2).sum())
        difference[d] = times.sum() * joined - 2.0 * (times @ both)
    return np.asarray(named[min(first[difference == difference.min()])])
