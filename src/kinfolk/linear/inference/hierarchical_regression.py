"""Partially pooled linear regression by empirical Bayes, with a variance of noise of each task.

    y_i = xᵀw_t + ε,   ε ~ N(0, s_t²/m_i),   s_t² ~ IG(a, b)

Weights and noise are approximated as independent. Given E 1/s_t² the posterior of the weights is exactly Gaussian;
given that, s_t² is IG(a + ½n_t, b + ½E Σ m r²), and (a, b) have a mode of their own; a says how alike tasks' noise is.
What an iteration costs is said in ``regression_statistics``.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import digamma, gammaln

from kinfolk.interrupts import stops_safely
from kinfolk.linear.inference.hierarchical import better_hyper, first_paces, hyper_change, log_prior_of
from kinfolk.linear.inference.regression_statistics import statistics_of
from kinfolk.linear.model.rows import LinearRows
from kinfolk.linear.model.values import Fitted, Groups, Hyper, Noise, Options, first_hyper
from kinfolk.linear.model.weights import weights_given_sites
from kinfolk.maths.arrays import Floats
from kinfolk.maths.blas import one_blas_thread

_SETTLED = 0.05
# Prior of log a: tasks' noise differs by about a factor of exp(±√(1/a)) in variance.
_LOG_SHAPE, _LOG_SHAPE_SPREAD = np.log(8.0), 1.0
_SHAPES = np.log(1.5), np.log(1e4)
# Where noise begins, and what it is not below, in units of the target's variance: rows may fit without any.
_FIRST = 0.5
_LEAST = 1e-6
# Rows and tasks that are enough to find out about scales, before all are gone through.
_ENOUGH_ROWS, _ENOUGH_TASKS = 5_000, 500
_ROUGH, _ROUGH_ITER = 10.0, 50


@one_blas_thread()
def infer(rows: LinearRows, hyper: Hyper | None = None, options: Options | None = None) -> tuple[Hyper, Fitted]:
    """Learn scales, noise and weights from targets in units of their standard deviation; no step is random.

    Parameters
    ----------
    rows : LinearRows
    hyper : Hyper, optional
        Where to start from.
    options : Options, optional

    Returns
    -------
    hyper : Hyper
    fitted : Fitted
    """
    groups, options = Groups(rows.own_group, rows.bends), Options() if options is None else options
    shape, rate = float(np.exp(_LOG_SHAPE)), _FIRST * float(np.exp(_LOG_SHAPE))
    step = int(min(rows.n_rows / _ENOUGH_ROWS, rows.n_tasks / _ENOUGH_TASKS))
    if hyper is None and step > 1:
        # A part of the tasks tells nearly what scales are, so that all need to be gone through a few times alone.
        roughly = options._replace(max_iter=min(options.max_iter, _ROUGH_ITER), tol=_ROUGH * options.tol)
        hyper, part = infer(rows.every(step), None, roughly)
        if part.noise is not None:
            shape, rate = part.noise.new_shape, part.noise.new_rate
    hyper = first_hyper(groups) if hyper is None else hyper
    statistics = statistics_of(rows)
    noise = Noise(np.full(rows.n_tasks, shape), np.full(rows.n_tasks, rate), shape, rate)
    given = noise.precisions, hyper.spread(groups), hyper.scale(rows.n_columns, groups)
    bounds, converged, paces = list[float](), False, first_paces(groups)
    place = options.place("numbers", rows, hyper)
    if (kept := place.load()) is not None:
        hyper, noise, given, bounds, converged, paces = kept
    with stops_safely() as stop:
        while not converged and len(bounds) < options.max_iter and not (bounds and stop.asked()):
            if place.due():
                place.save((hyper, noise, given, bounds, converged, paces))
            given = noise.precisions, hyper.spread(groups), hyper.scale(rows.n_columns, groups)
            moments, residual = statistics.learnt(*given)
            noise = _better_noise(noise, residual, statistics.n_rows)
            likelihood = _log_likelihood(noise, residual, statistics.n_rows)
            bounds.append(likelihood - moments.divergence(*given[1:]) + log_prior_of(hyper, groups))
            before = hyper
            if options.learn_scales:
                hyper, paces = better_hyper(hyper, groups, moments, paces)
            gain = np.inf if len(bounds) < 2 else abs(bounds[-1] - bounds[-2])
            converged = bool(gain < options.enough(rows) and hyper_change(before, hyper) < _SETTLED)
        (place.save if stop.asked() else place.end)((hyper, noise, given, bounds, converged, paces))
    weights = weights_given_sites(statistics.sites(given[0], rows.n_own), *given[1:])
    return hyper, Fitted(weights, np.array(bounds), converged, noise)


def _better_noise(noise: Noise, residual: Floats, n_rows: Floats) -> Noise:
    """Variances of noise given squared residuals, and the distribution that they were drawn from."""
    shape, rate = noise.new_shape + 0.5 * n_rows, noise.new_rate + 0.5 * residual
    new_shape, new_rate = _drawn_from(shape, rate)
    return Noise(shape, rate, new_shape, new_rate)


def _drawn_from(shape: Floats, rate: Floats) -> tuple[float, float]:
    """The most probable inverse Gamma distribution of variances of which inverse Gamma posteriors are known."""
    rate = np.maximum(rate, _LEAST * shape)
    precision, log_variance = float((shape / rate).mean()), float((np.log(rate) - digamma(shape)).mean())
    n = len(shape)

    def loss(log_shape: float) -> float:
        a = np.exp(log_shape)
        b = a / precision
        fit = n * (a * np.log(b) - gammaln(a) - (a + 1.0) * log_variance - b * precision)
        return float(-fit + 0.5 * ((log_shape - _LOG_SHAPE) / _LOG_SHAPE_SPREAD) ** 2)

    found = float(np.exp(minimize_scalar(loss, bounds=_SHAPES, method="bounded").x))
    return found, found / precision


def _log_likelihood(noise: Noise, residual: Floats, n_rows: Floats) -> float:
    """Expected log likelihood, less the divergence of the noise from what it was drawn from."""
    precision, log_variance = noise.precisions, np.log(noise.rate) - digamma(noise.shape)
    fit = -0.5 * (n_rows * (np.log(2.0 * np.pi) + log_variance) + residual * precision)
    a, b = noise.new_shape, noise.new_rate
    drawn = a * np.log(b) - gammaln(a) - (a + 1.0) * log_variance - b * precision
    entropy = noise.shape * np.log(noise.rate) - gammaln(noise.shape)
    entropy = entropy - (noise.shape + 1.0) * log_variance - noise.rate * precision
    return float((fit + drawn - entropy).sum())
