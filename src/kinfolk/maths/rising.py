"""Rising factorials a↑n = Γ(a + n) / Γ(a) by their logarithms, compiled."""

from __future__ import annotations

from math import lgamma
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from kinfolk.maths.compiled import compiled

# Above this Stirling's series is good to 1e−13, and does not lose digits as a difference of two lgammas does.
_LARGE = 30.0


@compiled
def _series(z):  # type: ignore[no-untyped-def]
    """What lgamma(z) has beyond (z − ½) log z − z + ½ log 2π."""
    return (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * z * z)) / (z * z)) / z


@compiled
def log_rising(a, log_a, n):  # type: ignore[no-untyped-def]
    """Log of a↑n for n > 0; log a is given too, since a itself may be too small for a float.

    Examples
    --------
    >>> round(float(np.exp(log_rising(2.0, np.log(2.0), 3.0))), 9)  # 2 · 3 · 4
    24.0
    """
    if a < _LARGE:
        return log_a + lgamma(a + n) - lgamma(a + 1.0)
    return _of_large(a, n)


@compiled
def _of_large(a, n):  # type: ignore[no-untyped-def]
    """Log of a↑n by Stirling's series."""
    return (a - 0.5) * np.log1p(n / a) + n * (np.log(a + n) - 1.0) + _series(a + n) - _series(a)


@compiled
def rising(a, n):  # type: ignore[no-untyped-def]
    """Log of a↑n for a that is a float.

    Examples
    --------
    >>> float(rising(1e12, 1.0) - np.log(1e12))
    0.0
    """
    return lgamma(a + n) - lgamma(a) if a < _LARGE else _of_large(a, n)


def risings(a: NDArray[np.float64] | float, n: NDArray[Any] | float) -> NDArray[np.float64]:
    """Log of a↑n for arrays.

    Examples
    --------
    >>> risings(np.array([2.0, 1e12]), np.array([3.0, 1.0])).round(9).tolist()
    [3.17805383, 27.631021116]
    """
    if np.max(a, initial=0.0) < _LARGE:
        return np.asarray(gammaln(a + n) - gammaln(a))
    small, large = np.minimum(a, _LARGE), np.maximum(a, _LARGE)
    by_series = (large - 0.5) * np.log1p(n / large) + n * (np.log(large + n) - 1.0)
    for sign, z in ((1.0, large + n), (-1.0, large)):
        by_series = by_series + sign * (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * z * z)) / (z * z)) / z
    return np.asarray(np.where(np.less(a, _LARGE), gammaln(small + n) - gammaln(small), by_series))
