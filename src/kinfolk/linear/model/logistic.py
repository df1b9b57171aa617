"""The logistic function and what goes with it, averaged over a Gaussian linear predictor; with numpy alone.

Averages are by Gauss–Hermite quadrature with twelve nodes: for standard deviations up to 4 they err by less than 1e-3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from kinfolk.maths.arrays import Floats

_NODES, _WEIGHTS = hermegauss(12)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


class Averages(NamedTuple):
    """E σ(η), E σ′(η) and E log(1 + eᵑ) for Gaussian η."""

    rate: Floats
    slope: Floats
    log_total: Floats


def averages(mean: Floats, variance: Floats) -> Averages:
    """Averages over Gaussians of given means and variances.

    Examples
    --------
    >>> round(float(averages(np.array(1.0), np.array(0.0)).rate), 4)
    0.7311
    """
    spread = np.sqrt(variance)
    rate, slope, log_total = np.zeros_like(mean), np.zeros_like(mean), np.zeros_like(mean)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        at = mean + spread * node
        small = np.exp(-np.abs(at))
        inverse = 1.0 / (1.0 + small)
        rate += weight * np.where(at >= 0.0, inverse, small * inverse)
        slope += weight * small * inverse**2
        log_total += weight * (np.maximum(at, 0.0) + np.log1p(small))
    return Averages(rate, slope, log_total)


def average_rate(mean: Floats, variance: Floats) -> Floats:
    """E σ(η) alone, as predictions need it."""
    spread, rate = np.sqrt(variance), np.zeros_like(mean)
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        at = mean + spread * node
        small = np.exp(-np.abs(at))
        rate += weight * np.where(at >= 0.0, 1.0, small) / (1.0 + small)
    return rate
