"""The factors of a task's approximate posterior that have no closed form: its likelihoods' sites, and its sources.

Likelihoods are Gaussian sites exp(r f − ½ d f²). A row has target y, weight w and linear predictor f, of which q says
N(m, c). Two ways to bound Σ w E_q[log p(y | f)]:

- ``"average"``: the expectation itself, by Gauss–Hermite quadrature. The best Gaussian q then has sites with
  d = −w E[∂² log p] and r = w E[∂ log p] + d m (Opper and Archambeau 2009), which are iterated.
- ``"tangent"``: a quadratic lower bound of log p(y | f) that touches where q is. Logistic (Jaakkola and Jordan 1997;
  Zhang, Ghahramani and Yang 2005, §3.1.1): w log g(yf) ≥ w [log g(ξ) + (yf − ξ)/2 − λ(ξ)(f² − ξ²)], ξ² = m² + c,
  λ(ξ) = tanh(ξ/2)/(4ξ). Probit: log Φ curves by less than 1, so w log Φ(yf) ≥ w [log Φ(ym) + yρ(f − m) − ½(f − m)²]
  with ρ = φ(m)/Φ(ym), which is what a truncated normal for the probit's latent variable gives.

Tangents charge a row that is classified well for the variance of its f as if it were in doubt: c/(4|m|) nats, or c/2
for probit, where the truth falls off exponentially. With rare classes this drives the learnt variance of the weights
to zero, so the average is the default; the tangent is the paper's. For a Gaussian likelihood the two are the same.

Of tasks' sources (Algorithm 1, step 3), q(s) = ∏_h Laplace(m_h, b_h) minimises

    Σ_h [ (|m_h| + b_h e^{−|m_h|/b_h})/b₀ − log 2b_h + R_h b_h² ] + ½ mᵀQm − qᵀm,

with R_h = (ΛᵀΨ⁻¹Λ)_hh, and ½mᵀQm − qᵀm what the task's weights (or its rows, weights taken out of the problem) say
of the means. In m the function is convex and smooth, its curvature at zero 1/(b_h b₀): means are small where nothing
asks for them, never exactly zero. The spread b_h is free; the paper holds it at the prior's, which costs tens of nats.

Gaussian sources, q(s_h) = N(m_h, 2b_h²) under N(0, 1), are there to compare with: they leave rotations of Λ open.

In the papers: Zhang, Ghahramani and Yang (2005), eq. (2) and Algorithm 1.
"""

from __future__ import annotations

from math import exp, log, pi, sqrt, tanh
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.special import log_expit, log_ndtr, logsumexp

from kinfolk.lica.model.data import Link
from kinfolk.lica.model.links import LINK_CODES, log_normal_cdf
from kinfolk.lica.model.links import loss as loss_of
from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled

LikelihoodBound: TypeAlias = Literal["average", "tangent"]
SourceKind: TypeAlias = Literal["laplace", "gaussian"]

_LOGISTIC, _GAUSSIAN = LINK_CODES["logistic"], LINK_CODES["gaussian"]
_HALF_LOG_2PI = 0.5 * log(2.0 * pi)
# Rows far on the right side curve by nothing at all; below this a row's own variance would drown in rounding.
_LEAST_PRECISION = 1e-9
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
_NODE_WEIGHTS = _NODE_WEIGHTS / np.sum(_NODE_WEIGHTS)
# The outermost nodes weigh less than rounding, whatever the likelihood is there.
_NODES, _NODE_WEIGHTS = _NODES[_NODE_WEIGHTS > 1e-20], _NODE_WEIGHTS[_NODE_WEIGHTS > 1e-20]
_MAX_SWEEPS = 200  # over a task's sources
_TOLERANCE = 1e-12  # of a mean or spread in one sweep, relative to its prior scale


class Likelihoods(NamedTuple):
    """What the likelihoods of some rows hang on besides f."""

    link: Link
    y: Floats
    weights: Floats
    residual_variance: float = 1.0
    bound: LikelihoodBound = "average"


class Sites(NamedTuple):
    """Likelihoods of some rows as exp(shift · f − ½ precision · f²), up to a constant.

    ``value`` is each row's bound on w E_q[log p(y | f)], for the q that the sites belong to.
    """

    precision: Floats
    shift: Floats
    value: Floats


def match(rows: Likelihoods, mean: Floats, variance: Floats) -> Sites:
    """The sites that belong to q(f) of some mean and variance; flat ones for rows of weight zero.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones(1)
    >>> average = match(Likelihoods("logistic", one, one), 3.0 * one, one)
    >>> tangent = match(Likelihoods("logistic", one, one, bound="tangent"), 3.0 * one, one)
    >>> bool(tangent.value[0] < average.value[0] < 0.0)
    True
    """
    held = LINK_CODES[rows.link], rows.bound == "average", rows.residual_variance
    return Sites(*_match(*held, rows.y, rows.weights, mean, variance))


@compiled
def _match(
    link: int,
    by_average: bool,
    residual_variance: float,
    y: Floats,
    weights: Floats,
    mean: Floats,
    variance: Floats,
) -> tuple[Floats, Floats, Floats]:
    precision, shift, value = np.zeros(len(y)), np.zeros(len(y)), np.zeros(len(y))
    for i in range(len(y)):
        if weights[i] == 0.0:
            continue
        if link == _GAUSSIAN:
            precision[i] = 1.0 / residual_variance
            square = ((y[i] - mean[i]) ** 2 + variance[i]) / residual_variance
            shift[i], value[i] = y[i] / residual_variance, -_HALF_LOG_2PI - 0.5 * (log(residual_variance) + square)
        elif by_average:
            deviation = sqrt(variance[i])
            expected, slope, bend = 0.0, 0.0, 0.0
            for node in range(len(_NODES)):
                lost, first, second = loss_of(link, 1.0, y[i] * mean[i] + deviation * _NODES[node], 1.0)
                expected -= _NODE_WEIGHTS[node] * lost
                slope -= _NODE_WEIGHTS[node] * first
                bend += _NODE_WEIGHTS[node] * second
            # The least precision is that of the row however much it counts.
            precision[i] = max(bend, _LEAST_PRECISION / weights[i])
            shift[i], value[i] = y[i] * slope + precision[i] * mean[i], expected
        elif link == _LOGISTIC:
            location = sqrt(mean[i] ** 2 + variance[i])
            small = location < 1e-3  # where λ has a series
            curvature = 0.125 - location**2 / 96.0 if small else tanh(0.5 * location) / (4.0 * location)
            precision[i], shift[i] = 2.0 * curvature, 0.5 * y[i]
            value[i] = 0.5 * (y[i] * mean[i] - location) - loss_of(link, 1.0, location, 1.0)[0]
        else:
            log_cdf, mills = log_normal_cdf(y[i] * mean[i])
            precision[i], shift[i], value[i] = 1.0, mean[i] + y[i] * mills, log_cdf - 0.5 * variance[i]
        precision[i] *= weights[i]
        shift[i] *= weights[i]
        value[i] *= weights[i]
    return precision, shift, value


def log_predictive(link: Link, y: Floats, mean: Floats, variance: Floats, residual_variance: float = 1.0) -> Floats:
    """Log p(y) of each row where f ~ N(mean, variance): the likelihood averaged over f, not taken at its mean.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones(1)
    >>> np.exp(log_predictive("probit", one, 2.0 * one, 3.0 * one)).round(4)  # Φ(2/√(1 + 3))
    array([0.8413])
    """
    if link == "gaussian":
        spread = variance + residual_variance
        return np.asarray(-_HALF_LOG_2PI - 0.5 * np.log(spread) - 0.5 * (y - mean) ** 2 / spread)
    if link == "probit":
        return np.asarray(log_ndtr(y * mean / np.sqrt(1.0 + variance)))
    margin = (y * mean)[:, None] + np.sqrt(variance)[:, None] * _NODES
    return np.asarray(logsumexp(log_expit(margin), b=_NODE_WEIGHTS, axis=1))


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
