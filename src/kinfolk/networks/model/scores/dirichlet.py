"""Log marginal likelihood of counts under a Dirichlet prior that is the same for every cell: BDeu and K2."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.model.kernels import inner, int64

_SMALL = 256
_SLOTS = 61
_HALF_LOG_2_PI = 0.9189385332046727
# Above this log Γ is so large that a difference of two loses digits, and Stirling's series have them.
_LARGE = 1e4


class Rises(NamedTuple):
    """Look-up tables of log Γ(prior + n) − log Γ(prior) for small n, each in the one slot that its prior's hash names.

    ``rise[t, level, slot]`` holds them, and last log Γ(prior) itself, of the prior that ``prior[t, level, slot]``
    names; priors of cells and of rows are two levels. Every task has slots of its own, so that threads may search
    different tasks.
    """

    prior: NDArray[np.float64]
    rise: NDArray[np.float64]


def no_rises(n_tasks: int) -> Rises:
    """Make room for look-up tables."""
    return Rises(np.full((n_tasks, 2, _SLOTS), -1.0), np.empty((n_tasks, 2, _SLOTS, _SMALL + 1)))


@inner
def log_gamma(x: float) -> float:
    """Natural log of the gamma function: Stirling's series where it is exact to the last digits."""
    if x < 16.0:
        return math.lgamma(x)
    inverse = 1.0 / x
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    return (x - 0.5) * math.log(x) - x + _HALF_LOG_2_PI + series


@inner
def log_rise(prior: float, n: float, log_gamma_prior: float) -> float:
    """Log Γ(prior + n) − log Γ(prior)."""
    if prior < _LARGE:
        return float(log_gamma(prior + n) - log_gamma_prior)
    more = prior + n
    series = (1.0 / more - 1.0 / prior) / 12.0
    return (prior - 0.5) * math.log1p(n / prior) + n * (math.log(more) - 1.0) + series


@inner
def _slot_of(rises: Rises, task: int, level: int, prior: float) -> int:
    """Find the slot of a prior, filled anew if another prior is there."""
    slot = int(1e6 / prior) % _SLOTS
    if rises.prior[task, level, slot] != prior:
        rises.prior[task, level, slot] = prior
        rises.rise[task, level, slot, 0] = 0.0
        for n in range(1, _SMALL):
            rises.rise[task, level, slot, n] = rises.rise[task, level, slot, n - 1] + math.log(prior + (n - 1))
        rises.rise[task, level, slot, _SMALL] = math.lgamma(prior)
    return slot


@inner
def log_marginal(
    counts: NDArray[np.float64], shape: tuple[int, int, int], cell: float, rises: Rises, task: int, whole: bool
) -> float:
    """Log marginal likelihood of counts under Dirichlet priors of ``cell`` for each value."""
    n_numbers, n_values, card = shape
    row = cell * n_values
    cell_rises = rises.rise[task, 0, _slot_of(rises, task, int64(0), cell)]
    row_rises = rises.rise[task, 1, _slot_of(rises, task, int64(1), row)]
    base_cell, base_row = cell_rises[_SMALL], row_rises[_SMALL]
    score = 0.0
    for u in range(n_numbers):
        for v in range(card):
            total = 0.0
            for x in range(n_values):
                n = counts[(u * n_values + x) * card + v]
                total += n
                # No branch for cells without rows, of which nobody could guess which they are: they rise by 0.
                if whole and n < _SMALL:
                    score += cell_rises[int(n)]
                elif n > 0:
                    score += log_rise(cell, n, base_cell)
            if whole and total < _SMALL:
                score -= row_rises[int(total)]
            elif total > 0:
                score -= log_rise(row, total, base_row)
    return score
