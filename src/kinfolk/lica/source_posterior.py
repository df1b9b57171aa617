"""What is known of one task's sources (Zhang, Ghahramani and Yang 2005, Algorithm 1, step 3).

q(s) = ∏_h Laplace(m_h, b_h) minimises

    Σ_h [ (|m_h| + b_h e^{−|m_h|/b_h})/b₀ − log 2b_h + R_h b_h² ] + ½ mᵀQm − qᵀm,

with R_h = (ΛᵀΨ⁻¹Λ)_hh, and ½mᵀQm − qᵀm what the task's weights (or its rows, weights taken out of the problem) say
of the means. In m the function is convex and smooth, its curvature at zero 1/(b_h b₀): means are small where nothing
asks for them, never exactly zero. The spread b_h is free; the paper holds it at the prior's, which costs tens of nats.

Gaussian sources, q(s_h) = N(m_h, 2b_h²) under N(0, 1), are there to compare with: they leave rotations of Λ open.
"""

from __future__ import annotations

from math import exp, log
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numba import njit
from scipy.linalg import solve

from kinfolk.lica.problem import Floats

SourceKind: TypeAlias = Literal["laplace", "gaussian"]

_MAX_SWEEPS = 200
_TOLERANCE = 1e-12  # of a mean or spread in one sweep, relative to its prior scale


class SourcePosterior(NamedTuple):
    """Means and spreads of a task's sources: Var[s_h] = 2 spread_h², under Gaussian sources too.

    ``value`` is E[log p(s)] + H[q(s)] − Σ_h R_h spread_h², the sources' own part of the evidence bound.
    """

    mean: Floats
    spread: Floats
    value: float


def fit_sources(
    quadratic: Floats,
    linear: Floats,
    rigidity: Floats,
    kind: SourceKind,
    scale: float,
    start: tuple[Floats, Floats],
) -> SourcePosterior:
    """Find q(s) of one task.

    Parameters
    ----------
    quadratic, linear : ndarray of shapes (n_sources, n_sources) and (n_sources,)
        Q and q.
    rigidity : ndarray of shape (n_sources,)
        R.
    kind : {"laplace", "gaussian"}
        The sources' prior, and the family of q.
    scale : float
        b₀; Gaussian sources have unit variance whatever it is.
    start : pair of ndarrays of shape (n_sources,)
        Means and spreads to start from; spreads above zero.

    Examples
    --------
    >>> import numpy as np
    >>> start = np.zeros(1), np.ones(1)
    >>> q = fit_sources(np.array([[4.0]]), np.array([8.0]), np.array([4.0]), "laplace", 0.5**0.5, start)
    >>> bool(1.5 < q.mean[0] < 2.0), bool(q.spread[0] < 0.5)
    (True, True)
    """
    mean, spread = start[0].copy(), start[1].copy()
    if kind == "gaussian":
        if len(mean):
            mean = solve(quadratic + np.eye(len(mean)), linear, assume_a="pos", check_finite=False)
        variance = 1.0 / (1.0 + rigidity)
        value = 0.5 * float(np.sum(1.0 + np.log(variance) - mean**2 - variance * (1.0 + rigidity)))
        return SourcePosterior(mean, np.sqrt(0.5 * variance), value)
    _descend(np.ascontiguousarray(quadratic), linear, rigidity, scale, mean, spread)
    expected_size = np.abs(mean) + spread * np.exp(-np.abs(mean) / spread)
    terms = 1.0 + np.log(spread / scale) - expected_size / scale - rigidity * spread**2
    return SourcePosterior(mean, spread, float(np.sum(terms)))


@njit(cache=True, nogil=True)
def _descend(quadratic: Floats, linear: Floats, rigidity: Floats, scale: float, mean: Floats, spread: Floats) -> None:
    """Minimise over one mean and its spread after the other, in place; no step raises the function."""
    n_sources = len(mean)
    gradient = linear - quadratic @ mean
    for _ in range(_MAX_SWEEPS):
        largest = 0.0
        for h in range(n_sources):
            moved = _best_mean(quadratic[h, h], gradient[h] + quadratic[h, h] * mean[h], spread[h], scale)
            step = moved - mean[h]
            if step != 0.0:
                for other in range(n_sources):
                    gradient[other] -= quadratic[other, h] * step
                mean[h] = moved
            largest = max(largest, abs(step))
            wider = _best_spread(rigidity[h], abs(mean[h]), scale)
            largest = max(largest, abs(wider - spread[h]))
            spread[h] = wider
        if largest <= _TOLERANCE * scale:
            break


@njit(cache=True, nogil=True)
def _best_mean(quadratic: float, linear: float, spread: float, scale: float) -> float:
    """Minimise (|m| + b e^{−|m|/b})/b₀ + ½Qm² − qm.

    For m > 0 the derivative is concave and increasing, so Newton's steps from zero approach its root from the left
    and never pass it.
    """
    pull = abs(linear)
    if pull == 0.0:
        return 0.0
    if quadratic <= 0.0 and pull * scale >= 1.0:  # no minimum: nothing holds the mean, and nothing should pull it
        return 0.0
    m = 0.0
    for _ in range(100):
        decay = exp(-m / spread)
        step = (pull - quadratic * m - (1.0 - decay) / scale) / (quadratic + decay / (spread * scale))
        m += step
        if step <= 1e-15 * m:
            break
    return m if linear > 0.0 else -m


@njit(cache=True, nogil=True)
def _best_spread(rigidity: float, size: float, scale: float) -> float:
    """Minimise b e^{−|m|/b}/b₀ + Rb² − log b, whose derivative is increasing, by bisection of log b."""
    low, high = scale, scale
    while _spread_slope(low, rigidity, size, scale) > 0.0:
        low *= 0.5
    while _spread_slope(high, rigidity, size, scale) < 0.0:
        high *= 2.0
    log_low, log_high = log(low), log(high)
    for _ in range(60):
        middle = 0.5 * (log_low + log_high)
        if _spread_slope(exp(middle), rigidity, size, scale) > 0.0:
            log_high = middle
        else:
            log_low = middle
        if log_high - log_low < 1e-15:
            break
    return exp(0.5 * (log_low + log_high))


@njit(cache=True, nogil=True)
def _spread_slope(b: float, rigidity: float, size: float, scale: float) -> float:
    ratio = size / b
    return exp(-ratio) * (1.0 + ratio) / scale + 2.0 * rigidity * b - 1.0 / b
