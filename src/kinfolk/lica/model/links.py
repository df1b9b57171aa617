"""Negative log likelihood of a target given its linear predictor, for each link, with two derivatives."""

from __future__ import annotations

from math import erfc, exp, log, log1p, pi, sqrt

import numpy as np

from kinfolk.lica.model.data import Link
from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled

LINK_CODES: dict[Link, int] = {"logistic": 0, "probit": 1, "gaussian": 2}
_TAIL = -5.0  # below, Φ comes from the continued fraction of its Mills ratio: erfc underflows at −38


@compiled
def log_normal_cdf(z: float) -> tuple[float, float]:
    """Give log Φ(z) and φ(z)/Φ(z), far in the lower tail too."""
    if z > _TAIL:
        cdf = 0.5 * erfc(-z / sqrt(2.0))
        return log(cdf), exp(-0.5 * z * z) / sqrt(2.0 * pi) / cdf
    ratio = -z
    for n in range(60, 0, -1):
        ratio = -z + n / ratio
    return -0.5 * z * z - 0.5 * log(2.0 * pi) - log(ratio), ratio


@compiled
def loss(link: int, y: float, f: float, residual_variance: float) -> tuple[float, float, float]:
    """−log p(y | f) without constants, and its first and second derivative in f."""
    if link == 0:
        margin = y * f
        small = exp(-abs(margin))
        wrong = small / (1.0 + small) if margin > 0.0 else 1.0 / (1.0 + small)
        return log1p(small) + max(-margin, 0.0), -y * wrong, small / (1.0 + small) ** 2
    if link == 1:
        log_cdf, ratio = log_normal_cdf(y * f)
        return -log_cdf, -y * ratio, ratio * (ratio + y * f)
    return 0.5 * (f - y) ** 2 / residual_variance, (f - y) / residual_variance, 1.0 / residual_variance


@compiled
def losses(
    link: int, y: Floats, f: Floats, row_weights: Floats, residual_variance: float
) -> tuple[Floats, Floats, Floats]:
    """Weighted losses of a table of tasks × rows: their sum for each task, and their derivatives in f."""
    n_tasks, n_rows = y.shape
    total, slope, curvature = np.zeros(n_tasks), np.empty((n_tasks, n_rows)), np.empty((n_tasks, n_rows))
    for k in range(n_tasks):
        for i in range(n_rows):
            value, first, second = loss(link, y[k, i], f[k, i], residual_variance)
            total[k] += row_weights[k, i] * value
            slope[k, i], curvature[k, i] = row_weights[k, i] * first, row_weights[k, i] * second
    return total, slope, curvature
