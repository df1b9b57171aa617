"""What a regression predicts: Gaussians averaged over what is not known of the noise, by a few of them; numpy alone.

The predictive distribution is ∫ N(y; m, v + s²) IG(s²; a, b) ds². It is replaced by a mixture of Gaussians whose
variances are those at the nodes of Gauss–Hermite quadrature, the cube root of a Gamma variable being nearly Gaussian
(Wilson and Hilferty 1931): 1/s² ≈ (a/b)(1 − 1/(9a) + z/(3√a))³, z standard normal.
"""

from __future__ import annotations

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from kinfolk.maths.arrays import Floats

_NODES, _WEIGHTS = hermegauss(7)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
# A cube root of a Gamma variable, over its mean, that is taken for no less: the approximation may go below zero.
_LEAST_ROOT = 0.15


def noise_variance(shape: Floats, rate: Floats) -> Floats:
    """E s² of an inverse Gamma distribution; the shape is above one."""
    return np.asarray(rate / (shape - 1.0))


def _noise_nodes(shape: Floats, rate: Floats) -> Floats:
    root = 1.0 - 1.0 / (9.0 * shape[:, None]) + _NODES / (3.0 * np.sqrt(shape[:, None]))
    return np.asarray((rate / shape)[:, None] / np.maximum(root, _LEAST_ROOT) ** 3)


def quantiles(mean: Floats, variance: Floats, shape: Floats, rate: Floats, levels: Floats) -> Floats:
    """Quantiles of predictive distributions (rows, levels).

    Parameters
    ----------
    mean, variance : ndarray of shape (n_rows,)
        Of the linear predictor.
    shape, rate : ndarray of shape (n_rows,)
        Of the noise's inverse Gamma distribution.
    levels : ndarray of shape (n_levels,)
        Between 0 and 1.

    Examples
    --------
    >>> one = np.ones(1)
    >>> quantiles(0 * one, 0 * one, 1e6 * one, 1e6 * one, np.array([0.025, 0.975])).round(3).tolist()
    [[-1.96, 1.96]]
    """
    spreads = np.sqrt(variance[:, None] + _noise_nodes(shape, rate))
    found = np.empty((len(mean), len(levels)))
    for k, level in enumerate(levels):
        low, high = -40.0 * spreads.max(axis=1), 40.0 * spreads.max(axis=1)
        for _ in range(60):
            middle = 0.5 * (low + high)
            below = normal_cdf(middle[:, None] / spreads) @ _WEIGHTS < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        found[:, k] = mean + 0.5 * (low + high)
    return found


def normal_cdf(x: Floats) -> Floats:
    """The standard normal distribution function, to 1e-7 (Abramowitz–Stegun 26.2.17).

    Examples
    --------
    >>> normal_cdf(np.array([0.0, 1.959964])).round(6).tolist()
    [0.5, 0.975]
    """
    t = 1.0 / (1.0 + 0.2316419 * np.abs(x))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi) * series
    return np.asarray(np.where(x >= 0.0, 1.0 - tail, tail))
