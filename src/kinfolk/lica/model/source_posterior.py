"""What is known of one task's sources (Zhang, Ghahramani and Yang 2005, Algorithm 1, step 3).

q(s) = ∏_h Laplace(m_h, b_h) minimises

    Σ_h [ (|m_h| + b_h e^{−|m_h|/b_h})/b₀ − log 2b_h + R_h b_h² ] + ½ mᵀQm − qᵀm,

with R_h = (ΛᵀΨ⁻¹Λ)_hh, and ½mᵀQm − qᵀm what the task's weights (or its rows, weights taken out of the problem) say
of the means. In m the function is convex and smooth, its curvature at zero 1/(b_h b₀): means are small where nothing
asks for them, never exactly zero. The spread b_h is free; the paper holds it at the prior's, which costs tens of nats.

Gaussian sources, q(s_h) = N(m_h, 2b_h²) under N(0, 1), are there to compare with: they leave rotations of Λ open.
"""

from __future__ import annotations

from math import exp, log, sqrt
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.linalg import solve

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled

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
        return SourcePosterior(mean, *gaussian_spread(mean, rigidity))
    value = descend(np.ascontiguousarray(quadratic), linear, rigidity, scale, mean, spread)
    return SourcePosterior(mean, spread, value)


@compiled
def gaussian_spread(mean: Floats, rigidity: Floats) -> tuple[Floats, float]:
    """The spreads of Gaussian sources, and ``value`` with them."""
    spread = np.empty(len(mean))
    value = 0.0
    for h in range(len(mean)):
        variance = 1.0 / (1.0 + rigidity[h])
        spread[h] = sqrt(0.5 * variance)
        value += 0.5 * (log(variance) - mean[h] ** 2)
    return spread, value


@compiled
def descend(quadratic: Floats, linear: Floats, rigidity: Floats, scale: float, mean: Floats, spread: Floats) -> float:
    """Minimise over one mean and its spread after the other, in place; no step raises the function.

    Returns ``value``.
    """
    n_sources = len(mean)
    gradient = linear.copy()
    for h in range(n_sources):
        for other in range(n_sources):
            gradient[h] -= quadratic[h, other] * mean[other]
    for _ in range(_MAX_SWEEPS):
        largest = 0.0
        for h in range(n_sources):
            pull = gradient[h] + quadratic[h, h] * mean[h]
            moved = _best_mean(quadratic[h, h], pull, spread[h], scale, mean[h])
            step = moved - mean[h]
            if step != 0.0:
                for other in range(n_sources):
                    gradient[other] -= quadratic[other, h] * step
                mean[h] = moved
            largest = max(largest, abs(step))
            wider = _best_spread(rigidity[h], abs(mean[h]), scale, spread[h])
            largest = max(largest, abs(wider - spread[h]))
            spread[h] = wider
        if largest <= _TOLERANCE * scale:
            break
    value = 0.0
    for h in range(n_sources):
        expected_size = abs(mean[h]) + spread[h] * exp(-abs(mean[h]) / spread[h])
        value += 1.0 + log(spread[h] / scale) - expected_size / scale - rigidity[h] * spread[h] ** 2
    return value


@compiled
def _best_mean(quadratic: float, linear: float, spread: float, scale: float, start: float) -> float:
    """Minimise (|m| + b e^{−|m|/b})/b₀ + ½Qm² − qm.

    For m > 0 the derivative is concave and increasing: Newton's first step, from wherever, ends left of its root, and
    the others approach the root from there and never pass it.
    """
    pull = abs(linear)
    if pull == 0.0:
        return 0.0
    if quadratic <= 0.0 and pull * scale >= 1.0:  # no minimum: nothing holds the mean, and nothing should pull it
        return 0.0
    m = min(abs(start), pull / quadratic) if quadratic > 0.0 and start * linear > 0.0 else 0.0
    for number in range(100):
        decay = exp(-m / spread)
        step = (pull - quadratic * m - (1.0 - decay) / scale) / (quadratic + decay / (spread * scale))
        m = max(m + step, 0.0)
        if abs(step) <= 1e-15 * m or (number > 0 and step <= 0.0):
            break
    return m if linear > 0.0 else -m


@compiled
def _best_spread(rigidity: float, size: float, scale: float, start: float) -> float:
    """Minimise b e^{−|m|/b}/b₀ + Rb² − log b: the root of (b + |m|) e^{−|m|/b}/b₀ + 2Rb² − 1, which grows with b.

    The root lies between those that bounds of (b + |m|) e^{−|m|/b} give, b above and b − m²/2b or zero below. Newton's
    steps that leave what is left of that interval are replaced by its middle.
    """
    low = 2.0 / (1.0 / scale + sqrt(1.0 / scale**2 + 8.0 * rigidity))
    high = 0.5 * (scale + sqrt(scale**2 + 2.0 * size**2))
    if 2.0 * rigidity * high**2 > 1.0:
        high = 1.0 / sqrt(2.0 * rigidity)
    b = min(max(start, low), high)
    for _ in range(100):
        ratio = size / b
        decay = exp(-ratio) / scale
        excess = (b + size) * decay + 2.0 * rigidity * b**2 - 1.0
        if excess > 0.0:
            high = b
        else:
            low = b
        slope = decay * (1.0 + ratio + ratio**2) + 4.0 * rigidity * b
        moved = b - excess / slope if slope > 0.0 else high
        if not low < moved < high:
            moved = 0.5 * (low + high)
        settled = abs(moved - b) <= 1e-15 * b
        b = moved
        if settled:
            break
    return b
