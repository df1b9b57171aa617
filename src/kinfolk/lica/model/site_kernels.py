"""The site of one row, compiled: what ``sites.match`` does for many rows at once, for tasks of few."""

from __future__ import annotations

from math import log, pi, sqrt, tanh

from kinfolk.lica.model.links import LINK_CODES, log_normal_cdf
from kinfolk.lica.model.links import loss as loss_of
from kinfolk.lica.model.sites import LEAST_PRECISION, NODE_WEIGHTS, NODES
from kinfolk.maths.compiled import compiled

_LOGISTIC, _GAUSSIAN = LINK_CODES["logistic"], LINK_CODES["gaussian"]
_HALF_LOG_2PI = 0.5 * log(2.0 * pi)
_N_NODES = len(NODES)


@compiled
def match_row(
    link: int, by_average: bool, y: float, weight: float, residual_variance: float, mean: float, variance: float
) -> tuple[float, float, float]:
    """Precision and shift of the site that belongs to f ~ N(mean, variance), and the bound on w E[log p(y | f)].

    Examples
    --------
    >>> import numpy as np
    >>> from kinfolk.lica.model.sites import Rows, match
    >>> one = np.ones(1)
    >>> sites, value = match(Rows("logistic", one, one, 1.0, "average"), 0.5 * one, 2.0 * one)
    >>> bool(np.allclose(match_row(0, True, 1.0, 1.0, 1.0, 0.5, 2.0), (*sites.precision, *sites.shift, value)))
    True
    """
    if link == _GAUSSIAN:
        precision = weight / residual_variance
        square = ((y - mean) ** 2 + variance) / residual_variance
        return precision, precision * y, weight * (-_HALF_LOG_2PI - 0.5 * log(residual_variance) - 0.5 * square)
    if by_average:
        deviation = sqrt(variance)
        value, slope, bend = 0.0, 0.0, 0.0
        for node in range(_N_NODES):
            lost, first, second = loss_of(link, 1.0, y * mean + deviation * NODES[node], 1.0)
            value -= NODE_WEIGHTS[node] * lost
            slope -= NODE_WEIGHTS[node] * first
            bend += NODE_WEIGHTS[node] * second
        precision = max(weight * bend, LEAST_PRECISION)
        return precision, weight * y * slope + precision * mean, weight * value
    if link == _LOGISTIC:
        location = sqrt(mean**2 + variance)
        curvature = 0.125 - location**2 / 96.0 if location < 1e-3 else tanh(0.5 * location) / (4.0 * location)
        value = 0.5 * (y * mean - location) - loss_of(link, 1.0, location, 1.0)[0]
        return 2.0 * weight * curvature, 0.5 * weight * y, weight * value
    log_cdf, mills = log_normal_cdf(y * mean)
    return weight, weight * (mean + y * mills), weight * (log_cdf - 0.5 * variance)
