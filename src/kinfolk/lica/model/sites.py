"""Likelihoods as Gaussian sites exp(r f − ½ d f²), and what they say of the log evidence.

A row has target y, weight w and linear predictor f, of which q says N(m, c). Two ways to bound Σ w E_q[log p(y | f)]:

- ``"average"``: the expectation itself, by Gauss–Hermite quadrature. The best Gaussian q then has sites with
  d = −w E[∂² log p] and r = w E[∂ log p] + d m (Opper and Archambeau 2009), which are iterated.
- ``"tangent"``: a quadratic lower bound of log p(y | f) that touches where q is. Logistic (Jaakkola and Jordan 1997;
  Zhang, Ghahramani and Yang 2005, §3.1.1): w log g(yf) ≥ w [log g(ξ) + (yf − ξ)/2 − λ(ξ)(f² − ξ²)], ξ² = m² + c,
  λ(ξ) = tanh(ξ/2)/(4ξ). Probit: log Φ curves by less than 1, so w log Φ(yf) ≥ w [log Φ(ym) + yρ(f − m) − ½(f − m)²]
  with ρ = φ(m)/Φ(ym), which is what a truncated normal for the probit's latent variable gives.

Tangents charge a row that is classified well for the variance of its f as if it were in doubt: c/(4|m|) nats, or c/2
for probit, where the truth falls off exponentially. With rare classes this drives the learnt variance of the weights
to zero, so the average is the default; the tangent is the paper's. For a Gaussian likelihood the two are the same.

In the papers: Zhang, Ghahramani and Yang (2005), eq. (2).
"""

from __future__ import annotations

from math import log, pi, sqrt, tanh
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.special import log_expit, log_ndtr, logsumexp

from kinfolk.lica.model.data import Link
from kinfolk.lica.model.links import LINK_CODES, log_normal_cdf
from kinfolk.lica.model.links import loss as loss_of
from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled

LikelihoodBound: TypeAlias = Literal["average", "tangent"]

_LOGISTIC, _GAUSSIAN = LINK_CODES["logistic"], LINK_CODES["gaussian"]
_HALF_LOG_2PI = 0.5 * log(2.0 * pi)
# Rows far on the right side curve by nothing at all; below this a row's own variance would drown in rounding.
_LEAST_PRECISION = 1e-9
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
_NODE_WEIGHTS = _NODE_WEIGHTS / np.sum(_NODE_WEIGHTS)
# The outermost nodes weigh less than rounding, whatever the likelihood is there.
_NODES, _NODE_WEIGHTS = _NODES[_NODE_WEIGHTS > 1e-20], _NODE_WEIGHTS[_NODE_WEIGHTS > 1e-20]


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
