"""Weights, sources and loadings in turn, each to its most probable value (section 3.2 of Zhang et al. 2005).

All steps lower one objective, the joint negative log posterior without constants,
Σₖ [loss of k + ½ (θₖ − Λsₖ)ᵀΨ⁻¹(θₖ − Λsₖ) + bₖ²/(2v₀) + ‖sₖ‖₁/b₀] + ‖Λ‖²/(2τ²), whose variances are held. The paper
gives Λ no prior; then Λ grows and s shrinks until the sources' penalty is gone. A mean that all tasks share is the
loadings of one more source, the last, which is the same constant in every task and costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from kinfolk.checkpoints import NOWHERE, Nowhere, Place
from kinfolk.interrupts import NEVER, Stop
from kinfolk.lica.inference.weight_solver import WeightsOfTasks, WeightSolver
from kinfolk.lica.model.lasso_sources import fit_lasso_sources
from kinfolk.lica.model.prior import TaskPrior
from kinfolk.maths.arrays import Floats

GROWTH = 1.5  # of the over-relaxation after a step that lowered the objective
INEXACT = 0.03  # gradient of the weights within an alternation: half a thousandth of a nat per task
EXACT = 1e-3


class Variances(NamedTuple):
    """What is held: ψ, τ², b₀ and σ², and the constant source of the mean, which is 0 where tasks share none."""

    noise: Floats
    loading_variance: float
    source_scale: float
    residual_variance: float
    constant: float = 0.0

    def with_constant(self, sources: Floats) -> Floats:
        """Sources, and the constant one after them."""
        if not self.constant:
            return sources
        return np.column_stack([sources, np.full(len(sources), self.constant)])

    def free(self, sources: Floats) -> slice:
        """Columns of the sources that a task has a value of its own for."""
        return slice(0, sources.shape[1] - bool(self.constant))


class Fit(NamedTuple):
    """One state of the alternation.

    Parameters
    ----------
    loadings : ndarray of shape (n_features, n_sources), and a column more where there is a constant source
    sources : ndarray of shape (n_tasks, n_sources), the same
    solved : WeightsOfTasks
    objective : float
    """

    loadings: Floats
    sources: Floats
    solved: WeightsOfTasks
    objective: float


class Course(NamedTuple):
    """How an alternation went: its last state, the objective after each round, whether it converged."""

    fit: Fit
    objective: Floats
    converged: bool


def begin(
    solver: WeightSolver, variances: Variances, sources: Floats, solved: WeightsOfTasks, loadings: Floats | None = None
) -> Fit:
    """The first state: loadings for the given sources and weights, unless they are given too, and weights for both."""
    sources = variances.with_constant(sources)
    if loadings is None:
        loadings = loading_step(solved.weights, sources, variances)
    return _with_weights(solver, variances, *balance(loadings, sources, variances), solved, INEXACT)


def alternate(
    solver: WeightSolver,
    variances: Variances,
    fit: Fit,
    *,
    n_held: int,
    max_iter: int,
    tol: float,
    advance: Callable[[int], None] | None,
    place: Place | Nowhere = NOWHERE,
    stop: Stop = NEVER,
) -> Course:
    """Improve a state until a round lowers the objective by less than ``tol`` of it.

    Sources are held for the first ``n_held`` rounds, in which loadings and weights come to terms. A round then tries to
    go further than the plain steps lead, and does the plain steps where that does not help (adaptive over-relaxation,
    Salakhutdinov and Roweis 2003): plain steps are slow where the noise is small beside what the data say.
    """
    n_done, course, reach = 0, [fit.objective], 1.0
    if (kept := place.load()) is not None:
        n_done, fit, course, reach = kept
    converged = False
    for iteration in range(n_done, max_iter):
        stops = stop.asked()
        if stops or place.due():
            place.save((iteration, fit, course, reach))
        if stops:
            break
        sources = fit.sources
        if iteration >= n_held:
            sources = _lasso_step(fit, variances)
        loadings = loading_step(fit.solved.weights, sources, variances)
        ahead = fit.loadings + reach * (loadings - fit.loadings)
        further = balance(ahead, _beyond(fit.sources, sources, reach), variances)
        new = _with_weights(solver, variances, *further, fit.solved, INEXACT)
        if new.objective > fit.objective and reach > 1.0:
            reach = 1.0
            new = _with_weights(solver, variances, *balance(loadings, sources, variances), fit.solved, INEXACT)
        else:
            reach *= GROWTH
        if advance is not None:
            advance(1)
        fell = fit.objective - new.objective
        fit = new
        course.append(fit.objective)
        if iteration >= n_held and fell <= tol * abs(fit.objective):
            converged = True
            break
    fit = _with_weights(solver, variances, fit.loadings, fit.sources, fit.solved, EXACT)
    course[-1] = fit.objective
    return Course(fit, np.array(course), converged)


def loading_step(weights: Floats, sources: Floats, variances: Variances) -> Floats:
    """Λⱼ = (Σₖ θₖⱼ sₖᵀ)(Σₖ sₖsₖᵀ + (ψⱼ/τ²) I)⁻¹ for every feature j, from one eigendecomposition."""
    size, directions = np.linalg.eigh(sources.T @ sources)
    ridge = variances.noise[:, None] / variances.loading_variance
    return np.asarray(((weights @ (sources @ directions)) / (np.maximum(size, 0.0) + ridge)) @ directions.T)


def balance(loadings: Floats, sources: Floats, variances: Variances) -> tuple[Floats, Floats]:
    """Divide each source by the factor that its loadings are multiplied with so that both priors cost least.

    c = (τ² Σₖ|sₖₕ| / (b₀ ‖Λₕ‖²))^⅓ minimises c²‖Λₕ‖²/(2τ²) + Σₖ|sₖₕ|/(b₀c); mixtures stay what they are.
    """
    lengths, sizes = np.sum(loadings**2, axis=0), np.sum(np.abs(sources), axis=0)
    used = (lengths > 0.0) & (sizes > 0.0)
    used[variances.free(sources).stop :] = False
    factor = np.ones(lengths.size)
    ratio = variances.loading_variance * sizes[used] / (variances.source_scale * lengths[used])
    factor[used] = np.cbrt(ratio)
    return loadings * factor, sources / factor


def _beyond(old: Floats, new: Floats, reach: float) -> Floats:
    """Sources further along from ``old`` to ``new``; those that are zero, or would change sign, stay ``new``."""
    ahead = old + reach * (new - old)
    return np.where((old != 0.0) & (ahead * new > 0.0), ahead, new)


def _lasso_step(fit: Fit, variances: Variances) -> Floats:
    free = variances.free(fit.sources)
    prior = TaskPrior(fit.loadings[:, free], variances.noise, source_scale=variances.source_scale)
    weights = fit.solved.weights
    if variances.constant:
        weights = weights - variances.constant * fit.loadings[:, -1:]
    return variances.with_constant(fit_lasso_sources(prior, weights, start=fit.sources[:, free]))


def _with_weights(
    solver: WeightSolver,
    variances: Variances,
    loadings: Floats,
    sources: Floats,
    before: WeightsOfTasks,
    tolerance: float,
) -> Fit:
    mean = loadings @ sources.T
    solved = solver.solve(mean, variances.noise, variances.residual_variance, before, tolerance)
    cost = solved.loss + solved.penalty(mean, variances.noise, solver.intercept_variance)
    # A solution within its tolerance may still be worse than one that was there before.
    kept = before.loss + before.penalty(mean, variances.noise, solver.intercept_variance)
    worse = kept < cost
    if worse.any():
        solved = solved._replace(
            weights=np.where(worse, before.weights, solved.weights),
            intercepts=np.where(worse, before.intercepts, solved.intercepts),
            loss=np.where(worse, before.loss, solved.loss),
        )
    lasso = np.sum(np.abs(sources[:, variances.free(sources)])) / variances.source_scale
    shared = lasso + np.sum(loadings**2) / (2.0 * variances.loading_variance)
    return Fit(loadings, sources, solved, float(np.minimum(cost, kept).sum() + shared))
