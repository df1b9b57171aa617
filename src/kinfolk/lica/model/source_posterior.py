"""What is known of tasks' sources (Zhang, Ghahramani and Yang 2005, Algorithm 1, step 3).

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

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled

SourceKind: TypeAlias = Literal["laplace", "gaussian"]

_MAX_SWEEPS = 200
_TOLERANCE = 1e-12  # of a mean or spread in one sweep, relative to its prior scale


class SourcePosterior(NamedTuple):
    """Means and spreads of tasks' sources: Var[s_h] = 2 spread_h², under Gaussian sources too.

    ``value`` is E[log p(s)] + H[q(s)] − Σ_h R_h spread_h², the sources' own part of each task's evidence bound.
    """

    mean: Floats
    spread: Floats
    value: Floats


def fit_sources(
    quadratic: Floats,
    linear: Floats,
    rigidity: Floats,
    kind: SourceKind,
    scale: float,
    start: tuple[Floats, Floats],
) -> SourcePosterior:
    """Find q(s) of every task.

    Parameters
    ----------
    quadratic, linear : ndarray of shapes (n_tasks, n_sources, n_sources) and (n_tasks, n_sources)
        Q and q.
    rigidity : ndarray of shape (n_sources,)
        R.
    kind : {"laplace", "gaussian"}
        The sources' prior, and the family of q.
    scale : float
        b₀; Gaussian sources have unit variance whatever it is.
    start : pair of ndarrays of shape (n_tasks, n_sources)
        Means and spreads to start from; spreads above zero.

    Examples
    --------
    >>> import numpy as np
    >>> start = np.zeros((1, 1)), np.ones((1, 1))
    >>> q = fit_sources(np.array([[[4.0]]]), np.array([[8.0]]), np.array([4.0]), "laplace", 0.5**0.5, start)
    >>> bool(1.5 < q.mean[0, 0] < 2.0), bool(q.spread[0, 0] < 0.5)
    (True, True)
    """
    if kind == "gaussian":
        ridge = quadratic + np.eye(len(rigidity))
        mean = np.asarray(np.linalg.solve(ridge, linear[..., None])[..., 0], dtype=np.float64)
        variance = 1.0 / (1.0 + rigidity)
        value = 0.5 * np.sum(np.log(variance) - mean**2, axis=1)
        return SourcePosterior(mean, np.tile(np.sqrt(0.5 * variance), (len(mean), 1)), value)
    mean, spread = start[0].copy(), start[1].copy()
    value = _descend(np.ascontiguousarray(quadratic), np.ascontiguousarray(linear), rigidity, scale, mean, spread)
    return SourcePosterior(mean, spread, value)


@compiled
def _descend(quadratic: Floats, linear: Floats, rigidity: Floats, scale: float, mean: Floats, spread: Floats) -> Floats:
    """Minimise over one mean and its spread after the other, in place; no step raises the function.

    Returns ``value``.
    """
    n_tasks, n_sources = mean.shape
    gradient = np.empty(n_sources)
    value = np.zeros(n_tasks)
    for k in range(n_tasks):
        for h in range(n_sources):
            gradient[h] = linear[k, h]
            for other in range(n_sources):
                gradient[h] -= quadratic[k, h, other] * mean[k, other]
        for _ in range(_MAX_SWEEPS):
            largest = 0.0
            for h in range(n_sources):
                pull = gradient[h] + quadratic[k, h, h] * mean[k, h]
                moved = _best_mean(quadratic[k, h, h], pull, spread[k, h], scale, mean[k, h])
                step = moved - mean[k, h]
                if step != 0.0:
                    for other in range(n_sources):
                        gradient[other] -= quadratic[k, other, h] * step
                    mean[k, h] = moved
                wider = _best_spread(rigidity[h], abs(mean[k, h]), scale, spread[k, h])
                largest = max(largest, abs(step), abs(wider - spread[k, h]))
                spread[k, h] = wider
            if largest <= _TOLERANCE * scale:
                break
        for h in range(n_sources):
            expected_size = abs(mean[k, h]) + spread[k, h] * exp(-abs(mean[k, h]) / spread[k, h])
            value[k] += 1.0 + log(spread[k, h] / scale) - expected_size / scale - rigidity[h] * spread[k, h] ** 2
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
