"""Counts that stand for an average over several blocks: put in one block, they give the averaged feature rates.

A block with counts n_k has the rates (n_k + β) / (N_k + B) in a group of cells, N_k and B being the sums of counts and
pseudo-counts. The average of these rates with weights w_k is the rate of one block whose counts are

    n = Σ_k ω_k n_k,        ω_k ∝ w_k / (N_k + B),        Σ_k ω_k = 1,

group by group; and the share of the prior behind it, B / (N + B), is the average of the shares too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def averaged_counts(
    counts: NDArray[Any],
    weights: NDArray[np.float64],
    prior: NDArray[np.float64],
    group_start: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Counts (cells,) of one block that stands for the blocks ``counts`` (blocks, cells) with these weights.

    Examples
    --------
    >>> counts = np.array([[9, 1], [0, 0]])
    >>> n = averaged_counts(counts, np.array([0.5, 0.5]), np.ones(2), np.array([0, 2]))
    >>> (n + 1) / (n + 1).sum()  # the average of 10/12 and 1/2
    array([0.66666667, 0.33333333])
    """
    totals = np.add.reduceat(counts, group_start[:-1], axis=1) + np.add.reduceat(prior, group_start[:-1])
    share = weights[:, None] / totals
    share /= share.sum(axis=0)
    return np.asarray((np.repeat(share, np.diff(group_start), axis=1) * counts).sum(axis=0))
