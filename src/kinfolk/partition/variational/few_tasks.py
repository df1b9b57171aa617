"""Clusters of few tasks by hierarchical clustering, as variational inference uses them for a start and for births."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.dirichlet import dirichlet_product
from kinfolk.partition.bhc import cluster_hierarchically
from kinfolk.partition.variational.mean_field import Clusters
from kinfolk.partition.variational.task_counts import Groups


def cluster_few(counts: NDArray[Any], groups: Groups, concentration: float) -> Clusters:
    """Clusters of the most probable partition of the tree. O(tasks² · cells)."""
    largest = int(counts.sum(axis=1).max(initial=0)) * len(counts) if counts.dtype.kind == "i" else 0
    tabled = dirichlet_product(groups.prior, groups.group_start, largest)
    partition = cluster_hierarchically(counts, tabled, concentration).partition()
    summed = np.zeros((int(partition.max()) + 1, counts.shape[1]))
    np.add.at(summed, partition, counts)
    return Clusters(summed, np.bincount(partition).astype(np.float64), -np.inf)
