"""The Chinese restaurant process: the prior over partitions of tasks (thesis section 2.5)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from kinfolk.maths.rising import risings


def canonical(partition: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rename the blocks of a partition 0, 1, … in the order in which they first appear.

    Examples
    --------
    >>> canonical(np.array([7, 2, 7, 5])).tolist()
    [0, 1, 0, 2]
    """
    _, first, block = np.unique(partition, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[block]


def log_block_weight(size: NDArray[np.int64], concentration: float) -> NDArray[np.float64]:
    """Log of aΓ(n), what a block of n tasks contributes to the prior before normalising."""
    return np.asarray(np.log(concentration) + gammaln(size), dtype=np.float64)


def log_normaliser(n_tasks: int, concentration: float) -> float:
    """Log of Γ(a)/Γ(a + U): block weights times this add up to one over all partitions of U tasks."""
    return -float(risings(concentration, n_tasks))


def log_prior(partition: NDArray[np.int64], concentration: float) -> float:
    """Log probability of a partition under the Chinese restaurant process.

    Examples
    --------
    >>> round(float(np.exp(log_prior(np.array([0, 0, 1]), 1.0))), 6)
    0.166667
    """
    return log_prior_of_sizes(np.bincount(canonical(partition)), concentration)


def log_prior_of_sizes(sizes: NDArray[np.int64], concentration: float) -> float:
    """Log probability of any one partition into blocks of these sizes: it depends on nothing else."""
    return float(log_block_weight(sizes, concentration).sum()) + log_normaliser(int(sizes.sum()), concentration)


def joining_weights(sizes: NDArray[Any], n_tasks: int, concentration: float) -> tuple[NDArray[np.float64], float]:
    """Probabilities with which a new task joins blocks of these sizes, and with which it starts its own.

    The limits are the models without a choice: concentration 0 always joins (complete sharing), infinity never does.

    Examples
    --------
    >>> joining_weights(np.array([2, 1]), 3, 1.0)
    (array([0.5 , 0.25]), 0.25)
    """
    if np.isinf(concentration):
        return np.zeros(len(sizes)), 1.0
    return sizes / (n_tasks + concentration), concentration / (n_tasks + concentration)
