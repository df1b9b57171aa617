"""Standard deviations of weights: their prior, and a step towards their most probable values.

A standard deviation τ of n Gaussian weights w has a half-Cauchy prior of scale s; its estimate is the mode of log τ:

    log p(log τ) = log τ − log(1 + τ²/s²).

The term log τ is the Gamma(2) prior of Chung, Rabe-Hesketh, Dorie, Gelman and Liu (2013), which keeps a mode away from
zero by about one standard error: with few tasks, or few rows in each, a mode at zero says only that nothing is known,
and predictions would be as sure as if all tasks were known to be alike.

With E w² under the posterior and γ = 1 − Var(w)/τ² (how much of each weight the data settled), a step is that of Fisher
scoring on the log marginal likelihood, which reaches zero or large values in a few steps where EM takes hundreds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats

_FIRST_SHARE = 0.6
# The longest step in log τ.
_LONGEST = 1.0
# A standard deviation is not taken below this share of its prior's scale.
_SMALLEST = 1e-4


def log_prior(scale: Floats, width: Floats) -> float:
    """Log density of log standard deviations, up to a constant."""
    return float((np.log(scale) - np.log1p((scale / width) ** 2)).sum())


class Pace(NamedTuple):
    """Steps that were taken last, in logs, and the shares of whole steps to take, one for each group.

    Whole steps may go to and fro between two values, since the posterior moves after every one of them: where one turns
    back, the next is half as long.
    """

    step: Floats
    share: Floats


def first_pace(n_groups: int) -> Pace:
    """The pace before any step."""
    return Pace(np.zeros(n_groups), np.full(n_groups, _FIRST_SHARE))


def better_scales(
    scale: Floats, width: Floats, group: NDArray[np.int64], squares: Floats, settled: Floats, pace: Pace
) -> tuple[Floats, Pace]:
    """Standard deviations nearer to their most probable values.

    Parameters
    ----------
    scale, width : ndarray of shape (n_groups,)
        Standard deviations now, and the scales of their priors.
    group : ndarray of shape (n_columns,)
        The group of each column.
    squares, settled : ndarray of shape (n_weights, n_columns)
        E w² and γ of every weight.
    pace : Pace

    Returns
    -------
    ndarray of shape (n_groups,)
    Pace

    Examples
    --------
    Of a hundred weights that are known, the standard deviation is the root of their mean square, nearly.

    >>> scale, known, pace = np.array([1.0]), np.full((100, 1), 9.0), first_pace(1)
    >>> for _ in range(20):
    ...     scale, pace = better_scales(scale, np.ones(1), np.zeros(1, dtype=int), known, np.ones((100, 1)), pace)
    >>> scale.round(2).tolist()
    [2.99]
    """
    n_groups = len(scale)
    ratio = squares.sum(axis=0) / scale[group] ** 2 - len(squares)
    slope: Floats = np.bincount(group, ratio, minlength=n_groups).astype(np.float64)
    information = 2.0 * np.bincount(group, (settled**2).sum(axis=0), minlength=n_groups)
    size, unit = scale**2, width**2
    slope = slope + 1.0 - 2.0 * size / (unit + size)
    information = information + 4.0 * size * unit / (unit + size) ** 2 + 1e-3
    whole = slope / information
    share = np.where(whole * pace.step < 0.0, 0.5 * pace.share, np.minimum(1.2 * pace.share, 1.0))
    step = np.clip(share * whole, -_LONGEST, _LONGEST)
    return np.asarray(np.maximum(scale * np.exp(step), _SMALLEST * width)), Pace(step, share)
