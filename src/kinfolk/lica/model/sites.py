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
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.special import expit, log_expit, log_ndtr, logsumexp

from kinfolk.lica.model.data import Link, Links
from kinfolk.maths.arrays import Floats

LikelihoodBound: TypeAlias = Literal["average", "tangent"]

_HALF_LOG_2PI = 0.5 * np.log(2.0 * np.pi)
# Rows far on the right side curve by nothing at all; below this a row's own variance would drown in rounding.
LEAST_PRECISION = 1e-9
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
NODE_WEIGHTS = NODE_WEIGHTS / np.sum(NODE_WEIGHTS)


class Sites(NamedTuple):
    """The rows' likelihoods as exp(shift · f − ½ precision · f²), up to a constant."""

    precision: Floats
    shift: Floats


class Rows(NamedTuple):
    """What a likelihood hangs on besides f."""

    link: Link
    y: Floats
    weights: Floats
    residual_variance: float
    bound: LikelihoodBound


def match(rows: Rows, mean: Floats, variance: Floats) -> tuple[Sites, float]:
    """The sites that belong to q(f) of some mean and variance, and the bound on Σ w E_q[log p(y | f)].

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones(1)
    >>> average = match(Rows("logistic", one, one, 1.0, "average"), 3.0 * one, one)[1]
    >>> tangent = match(Rows("logistic", one, one, 1.0, "tangent"), 3.0 * one, one)[1]
    >>> bool(tangent < average < 0.0)
    True
    """
    if rows.link == Links.GAUSSIAN:
        precision = rows.weights / rows.residual_variance
        squares = ((rows.y - mean) ** 2 + variance) / rows.residual_variance
        value = -_HALF_LOG_2PI - 0.5 * np.log(rows.residual_variance) - 0.5 * squares
        return Sites(precision, precision * rows.y), float(rows.weights @ value)
    if rows.bound == "average":
        return _average(rows, mean, variance)
    if rows.link == Links.LOGISTIC:
        location = np.sqrt(mean**2 + variance)
        precision, shift = 2.0 * curvature(location), 0.5 * rows.y
        value = log_expit(location) + 0.5 * (rows.y * mean - location)
    else:
        precision, shift = np.ones_like(mean), mean + rows.y * mills(rows.y * mean)
        value = log_ndtr(rows.y * mean) - 0.5 * variance
    return Sites(rows.weights * precision, rows.weights * shift), float(rows.weights @ value)


def curvature(location: Floats) -> Floats:
    """λ(ξ) = tanh(ξ/2) / (4ξ), which is 1/8 at zero."""
    small = location < 1e-3
    safe = np.where(small, 1.0, location)
    return np.where(small, 0.125 - location**2 / 96.0, np.tanh(0.5 * safe) / (4.0 * safe))


def mills(margin: Floats) -> Floats:
    """φ(z) / Φ(z), finite wherever z is."""
    return np.asarray(np.exp(-0.5 * margin**2 - _HALF_LOG_2PI - log_ndtr(margin)))


def _average(rows: Rows, mean: Floats, variance: Floats) -> tuple[Sites, float]:
    margin = (rows.y * mean)[:, None] + np.sqrt(variance)[:, None] * NODES
    if rows.link == Links.LOGISTIC:
        value = log_expit(margin)
        slope = expit(-margin)
        bend = slope * (1.0 - slope)
    else:
        value = log_ndtr(margin)
        slope = mills(margin)
        bend = slope * (slope + margin)
    precision = np.maximum(rows.weights * (bend @ NODE_WEIGHTS), LEAST_PRECISION)
    shift = rows.weights * rows.y * (slope @ NODE_WEIGHTS) + precision * mean
    return Sites(precision, shift), float(rows.weights @ (value @ NODE_WEIGHTS))


def log_predictive(link: Link, y: Floats, mean: Floats, variance: Floats, residual_variance: float = 1.0) -> Floats:
    """Log p(y) of each row where f ~ N(mean, variance): the likelihood averaged over f, not taken at its mean.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones(1)
    >>> np.exp(log_predictive("probit", one, 2.0 * one, 3.0 * one)).round(4)  # Φ(2/√(1 + 3))
    array([0.8413])
    """
    if link == Links.GAUSSIAN:
        spread = variance + residual_variance
        return np.asarray(-_HALF_LOG_2PI - 0.5 * np.log(spread) - 0.5 * (y - mean) ** 2 / spread)
    if link == Links.PROBIT:
        return np.asarray(log_ndtr(y * mean / np.sqrt(1.0 + variance)))
    margin = (y * mean)[:, None] + np.sqrt(variance)[:, None] * NODES
    return np.asarray(logsumexp(log_expit(margin), b=NODE_WEIGHTS, axis=1))
