"""LICA with full matrices and no shortcuts: what the inference must agree with on small problems."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_ndtr

from kinfolk.lica.model.prior import TaskPrior

Floats = NDArray[np.float64]


class DensePosterior(NamedTuple):
    """N(mean, covariance) of the weights and, last, the intercept; its prior's mean and covariance."""

    mean: Floats
    covariance: Floats
    prior_mean: Floats
    prior_covariance: Floats


def dense_posterior(prior: TaskPrior, X: Floats, precision: Floats, shift: Floats, sources: Floats) -> DensePosterior:
    """Bayes' rule for exp(shift f − ½ precision f²) under N(Λ sources, Ψ) and N(0, v₀), in the space of features."""
    full = np.hstack([X, np.ones((len(X), 1))])
    prior_mean = np.append(prior.loadings @ sources, 0.0)
    prior_covariance = np.diag(np.append(prior.noise, prior.intercept_variance))
    inverse = np.linalg.inv(prior_covariance)
    covariance = np.linalg.inv(inverse + full.T @ np.diag(precision) @ full)
    return DensePosterior(
        covariance @ (inverse @ prior_mean + full.T @ shift), covariance, prior_mean, prior_covariance
    )


def divergence(q: DensePosterior) -> float:
    """KL(q ‖ prior)."""
    inverse = np.linalg.inv(q.prior_covariance)
    away = q.mean - q.prior_mean
    log_dets = np.linalg.slogdet(q.prior_covariance)[1] - np.linalg.slogdet(q.covariance)[1]
    return float(0.5 * (np.trace(inverse @ q.covariance) - len(away) + away @ inverse @ away + log_dets))


def source_terms(prior: TaskPrior, mean: Floats, spread: Floats) -> float:
    """E[log p(s)] + H[q(s)] − ½ tr(ΛᵀΨ⁻¹Λ Cov[s]) for Laplace sources."""
    rigidity = np.diag(prior.loadings.T @ np.diag(1.0 / prior.noise) @ prior.loadings)
    expected_size = np.abs(mean) + spread * np.exp(-np.abs(mean) / spread)
    log_prior = -np.log(2.0 * prior.source_scale) - expected_size / prior.source_scale
    return float(np.sum(log_prior + 1.0 + np.log(2.0 * spread) - 0.5 * rigidity * 2.0 * spread**2))


def log_likelihood(link: str, y: Floats | float, f: Floats, residual_variance: float = 1.0) -> Floats:
    """Log p(y | f)."""
    if link == "logistic":
        return np.asarray(np.log(expit(y * f)))
    if link == "probit":
        return np.asarray(log_ndtr(y * f))
    return np.asarray(-0.5 * np.log(2.0 * np.pi * residual_variance) - 0.5 * (y - f) ** 2 / residual_variance)


def exact_log_evidence(prior: TaskPrior, link: str, x: Floats, y: Floats, weights: Floats) -> float:
    """Log ∫∫∫ p(y | θ, intercept) p(θ | s) p(s) p(intercept), one feature and one source, on a fine grid."""
    s = np.linspace(-14.0, 14.0, 4001)
    theta = np.linspace(-14.0, 14.0, 801)
    deviation = np.sqrt(prior.intercept_variance)
    intercept = np.linspace(-9.0 * deviation, 9.0 * deviation, 801)
    p_s = np.exp(-np.abs(s) / prior.source_scale) / (2.0 * prior.source_scale)
    psi = prior.noise[0]
    given = np.exp(-0.5 * (theta[:, None] - prior.loadings[0, 0] * s) ** 2 / psi) / np.sqrt(2.0 * np.pi * psi)
    p_theta = np.trapezoid(given * p_s, s, axis=1)
    p_intercept = np.exp(-0.5 * intercept**2 / deviation**2) / (deviation * np.sqrt(2.0 * np.pi))
    logs = np.zeros((len(theta), len(intercept)))
    for i in range(len(x)):
        f = theta[:, None] * x[i] + intercept
        logs += weights[i] * log_likelihood(link, y[i], f, prior.residual_variance)
    joint = np.exp(logs) * p_theta[:, None] * p_intercept
    return float(np.log(np.trapezoid(np.trapezoid(joint, intercept, axis=1), theta)))
