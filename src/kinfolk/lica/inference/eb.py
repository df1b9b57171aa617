"""Empirical Bayes for LICA: expectation–maximisation for Λ and Ψ (Zhang, Ghahramani and Yang 2005, §3.1).

Tasks are first fitted one by one under a variance of the weights that they share; their weights give Λ and the sources
a start, and EM goes on from there (``em``). The bound on log p(y, Λ, Ψ | X) never falls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from kinfolk.lica.inference.convergence import warn_of_convergence
from kinfolk.lica.inference.em import run_em
from kinfolk.lica.inference.expectation import Family, Sweeps, fresh_states, update_tasks, variances_of_weights
from kinfolk.lica.inference.layout import Layout, TaskStates, lay_out
from kinfolk.lica.inference.maximisation import Shrinkage, weights_of_tasks
from kinfolk.lica.inference.rotation import sources_of_weights
from kinfolk.lica.model.data import LinearTasks, Link
from kinfolk.lica.model.fitted import Learnt
from kinfolk.lica.model.prior import INTERCEPT_VARIANCE, UNIT_SCALE, Reach, TaskPosterior, TaskPrior
from kinfolk.lica.model.sites import LikelihoodBound
from kinfolk.lica.model.source_posterior import SourceKind
from kinfolk.maths.arrays import Floats
from kinfolk.maths.blas import one_blas_thread

Noise: TypeAlias = Literal["isotropic", "diagonal"]

_ALONE = 10  # iterations of the fit without sources that a start is made from
_LEAST_LEFT = 0.1  # least share of a weight's variance that the noise has at the start
_SHARE = 0.5  # of the variance of a weight that the sources have by default
_FLOOR = 1e-4  # least ψ_j, relative to the variance of a weight
# Where each feature has a ψ of its own, its prior counts for so many tasks: little more than the two that it takes for
# a mode. With 200 rows and no sources 2.1, 3 and 5 gave log losses of 0.136, 0.143 and 0.150 on Reuters, and of 0.103,
# 0.104 and 0.110 on RCV1; on the sets with few features they hardly differ.
_NOISE_STRENGTH = 2.1
_RESIDUAL_FLOOR = 1e-5  # least σ² of a regression, relative to the variance of the targets


class Alone(NamedTuple):
    """Tasks fitted without sources, under one variance for all weights."""

    prior: TaskPrior
    states: TaskStates


def fit_empirical_bayes(
    data: LinearTasks,
    *,
    link: Link,
    n_sources: int,
    noise: Noise = "isotropic",
    sources: SourceKind = "laplace",
    shared_mean: bool = False,
    shared_intercepts: bool = False,
    loading_variance: float | None = None,
    source_scale: float = UNIT_SCALE,
    intercept_variance: float = INTERCEPT_VARIANCE,
    residual_variance: float | None = None,
    likelihood_bound: LikelihoodBound = "average",
    max_iter: int = 100,
    tol: float = 1e-4,
    n_jobs: int | None = None,
    start: TaskPrior | None = None,
    alone: Alone | None = None,
    seed: int = 0,
    weight_variances: bool = False,
    advance: Callable[[int], None] | None = None,
) -> Learnt:
    """Learn what tasks have in common, and each task, by empirical Bayes.

    Parameters
    ----------
    data : LinearTasks
        The tasks' data.
    link : {"logistic", "probit", "gaussian"}
        The likelihood.
    n_sources : int
        Number of sources; with none, tasks share the noise variance alone.
    noise : {"isotropic", "diagonal"}
        One ψ for all features, or one each.
    sources : {"laplace", "gaussian"}
        Prior of the sources; Gaussian ones leave rotations of them open.
    shared_mean : bool
        Let the weights of all tasks have a mean beside their sources, which is learnt too.
    shared_intercepts : bool
        Learn mean and variance of the intercepts; ``intercept_variance`` is where they start.
    loading_variance : float, optional
        τ²; by default such that the sources have half the variance of a weight in tasks fitted one by one.
    source_scale, intercept_variance : float
        b₀ and v₀; with ``start``, those of it count.
    residual_variance : float, optional
        σ² of a regression, held; learnt by default.
    likelihood_bound : {"average", "tangent"}
        How the likelihood enters the bound: by its expectation, or by the paper's tangents (see ``sites``).
    max_iter, tol : int, float
        Iterations at most, and the gain in nats per row, counted by its weight, under which they end.
    n_jobs : int, optional
        Threads over tasks. Each works with one BLAS thread, and the result does not hang on their number.
    start : TaskPrior, optional
        Start from here (a warm start) and not from tasks fitted one by one; ``n_sources`` must agree.
    alone : Alone, optional
        What ``fit_alone`` gave on the same data under the same settings, where several fits are to share it.
    seed : int
        For sources beyond the number of tasks, whose start is random.
    weight_variances : bool
        Give each task's ``weight_variance`` too: tasks × features numbers.
    advance : callable, optional
        Called with 1 after every iteration.

    Returns
    -------
    Learnt
        The fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> from kinfolk.lica.model.data import make_linear_tasks
    >>> rng = np.random.default_rng(0)
    >>> X, shared = rng.normal(size=(60, 5)), np.array([2.0, -2.0, 0.0, 0.0, 1.0])
    >>> y = [np.sign(X @ (size * shared) + 0.1) for size in (1.0, -1.0, 2.0)]
    >>> fit = fit_empirical_bayes(make_linear_tasks(X, [np.arange(60)] * 3, y), link="logistic", n_sources=1)
    >>> fit.prior.loadings.shape, len(fit.tasks)
    ((5, 1), 3)
    >>> bool(np.all(np.diff(fit.objective) >= -1e-8 * abs(fit.objective[-1])))
    True
    >>> signs = np.sign([task.sources[0] for task in fit.tasks])
    >>> bool(signs[0] == signs[2] != signs[1])
    True
    """
    if start is not None and start.loadings.shape != (data.X.shape[1], n_sources):
        raise ValueError(
            f"The start has {start.n_features} features and {start.n_sources} sources; "
            f"{data.n_features} features and {n_sources} sources are needed."
        )
    data = data.compact()
    with one_blas_thread():
        family = Family(link, sources, likelihood_bound)
        layout = lay_out(data, noise == "isotropic")
        if start is not None:
            nothing = np.zeros(data.n_features)
            prior = start._replace(mean=(nothing if start.mean is None else start.mean) if shared_mean else None)
            states = fresh_states(layout, prior, family)
            own_variance = weight_variance = float(np.mean(prior.noise) + np.mean(np.sum(prior.loadings**2, axis=1)))
        else:
            if alone is None:
                alone = _fit_alone(data, family, source_scale, intercept_variance, tol, n_jobs)
            weight_variance = float(alone.prior.noise[0])
            prior, states, own = _with_sources(layout, alone, n_sources, seed, sources, shared_mean)
            own_variance = own * weight_variance
        tau_squared = loading_variance or _SHARE * weight_variance / max(n_sources, 1)
        if residual_variance is not None:
            prior = prior._replace(residual_variance=residual_variance)
        strength = 0.0 if noise == "isotropic" else _NOISE_STRENGTH
        shrinkage = Shrinkage(
            tau_squared,
            _FLOOR * weight_variance,
            own_variance,
            strength,
            _RESIDUAL_FLOOR * _spread_of_targets(data),
            weight_variance if shared_mean else None,
            (_spread_of_targets(data) if link == "gaussian" else 1.0) if shared_intercepts else None,
            residual_variance is not None,
        )
        found = run_em(
            layout, family, prior, states, shrinkage, max_iter=max_iter, tol=tol, n_jobs=n_jobs, advance=advance
        )
        tasks = _posteriors(layout, found.prior, found.states, weight_variances, n_jobs)
    return Learnt(found.prior, tuple(tasks), found.bounds, found.converged, tau_squared)


def fit_alone(
    data: LinearTasks,
    *,
    link: Link,
    sources: SourceKind = "laplace",
    source_scale: float = UNIT_SCALE,
    intercept_variance: float = INTERCEPT_VARIANCE,
    likelihood_bound: LikelihoodBound = "average",
    tol: float = 1e-4,
    n_jobs: int | None = None,
) -> Alone:
    """Fit tasks that share the variance of their weights alone, as a start for any number of sources.

    Parameters are those of ``fit_empirical_bayes``.
    """
    family = Family(link, sources, likelihood_bound)
    with one_blas_thread():
        return _fit_alone(data.compact(), family, source_scale, intercept_variance, tol, n_jobs)


def _fit_alone(
    data: LinearTasks,
    family: Family,
    source_scale: float,
    intercept_variance: float,
    tol: float,
    n_jobs: int | None,
) -> Alone:
    prior = _plain_prior(data, family.link, source_scale, intercept_variance)
    floors = _FLOOR * float(prior.noise[0]), _RESIDUAL_FLOOR * _spread_of_targets(data)
    shrinkage = Shrinkage(1.0, floors[0], residual_floor=floors[1])
    layout = lay_out(data, True)
    states = fresh_states(layout, prior, family)
    found = run_em(layout, family, prior, states, shrinkage, max_iter=_ALONE, tol=tol, n_jobs=n_jobs)
    return Alone(found.prior, found.states)


def fit_task(
    prior: TaskPrior,
    data: LinearTasks,
    link: Link,
    *,
    sources: SourceKind = "laplace",
    likelihood_bound: LikelihoodBound = "average",
    max_iter: int = 200,
    tol: float = 1e-7,
    weight_variances: bool = False,
) -> TaskPosterior:
    """Fit a new task with Λ and Ψ held, to convergence.

    Parameters
    ----------
    prior : TaskPrior
        What was learnt from other tasks.
    data : LinearTasks
        The data of one task.
    link, sources, likelihood_bound : str
        As the prior was learnt.
    max_iter, tol : int, float
        Sweeps at most, and the gain in nats per row, counted by its weight, under which they end.
    weight_variances : bool
        Give ``weight_variance`` too.
    """
    if data.n_tasks != 1:
        raise ValueError(f"The data have {data.n_tasks} tasks; a fit under a prior that is held takes one.")
    data = data.compact()
    with one_blas_thread():
        family = Family(link, sources, likelihood_bound)
        layout = lay_out(data, bool(np.all(prior.noise == prior.noise[0])))
        states = fresh_states(layout, prior, family)
        states = update_tasks(layout, prior, states, family, Sweeps(max_iter, tol), n_jobs=1)
        more = update_tasks(layout, prior, states, family, Sweeps(same_prior=True), n_jobs=1)
        if more.bound[0] - states.bound[0] > tol * float(np.sum(layout.weights)):
            warn_of_convergence("the task", max_iter)
        return _posteriors(layout, prior, states, weight_variances, 1)[0]


def _posteriors(
    layout: Layout, prior: TaskPrior, states: TaskStates, weight_variances: bool, n_jobs: int | None
) -> list[TaskPosterior]:
    """The tasks' posteriors in the space of features."""
    weights = weights_of_tasks(layout, prior, states)
    variances: Floats | None = None
    if weight_variances:
        known = states.weight_variance.shape == weights.shape
        variances = states.weight_variance if known else variances_of_weights(layout, prior, states, n_jobs)
    found = []
    for k, rows in enumerate(layout.data.rows):
        its = slice(layout.ends[k], layout.ends[k + 1])
        found.append(
            TaskPosterior(
                weights[k],
                prior.intercept_mean + prior.intercept_variance * float(np.sum(states.dual[its])),
                states.mean[k],
                states.spread[k],
                None if variances is None else variances[k],
                Reach(layout.data.X, rows, states.precision[its]),
            )
        )
    return found


def _plain_prior(data: LinearTasks, link: Link, source_scale: float, intercept_variance: float) -> TaskPrior:
    """A prior without sources, under which the linear predictors are of a size that the targets ask for."""
    squares = data.X.multiply(data.X).sum(axis=1) if hasattr(data.X, "multiply") else np.sum(data.X**2, axis=1)
    places, weights = np.concatenate(data.rows), np.concatenate(data.weights)
    size = float(weights @ np.asarray(squares).ravel()[places]) / (data.counted or 1.0) or 1.0
    spread = _spread_of_targets(data) if link == "gaussian" else 4.0
    residual = 0.5 * spread if link == "gaussian" else 1.0
    n_features = data.X.shape[1]
    return TaskPrior(
        np.zeros((n_features, 0)), np.full(n_features, spread / size), source_scale, intercept_variance, residual
    )


def _spread_of_targets(data: LinearTasks) -> float:
    """Variance of all targets, rows counted by their weights."""
    targets, weights = np.concatenate(data.y), np.concatenate(data.weights)
    if not len(targets):
        return 1.0
    return float(np.average((targets - np.average(targets, weights=weights)) ** 2, weights=weights)) or 1.0


def _with_sources(
    layout: Layout, alone: Alone, n_sources: int, seed: int, kind: SourceKind, shared_mean: bool
) -> tuple[TaskPrior, TaskStates, float]:
    """Move what the tasks' weights have in common from the noise to their mean and to sources.

    The last result is the share of the weights' variance that is about their mean.
    """
    weights = weights_of_tasks(layout, alone.prior, alone.states)
    total = float(np.sum(weights**2))
    mean = weights.mean(axis=0) if shared_mean else None
    if mean is not None:
        weights = weights - mean
    own = max(float(np.sum(weights**2)) / total if total > 0.0 else 1.0, _LEAST_LEFT)
    loadings, means = sources_of_weights(weights, n_sources, seed, rotate=kind == "laplace")
    left = float(np.sum((weights - means @ loadings.T) ** 2)) / total if total > 0.0 else 1.0
    prior = alone.prior._replace(loadings=loadings, noise=alone.prior.noise * max(left, _LEAST_LEFT), mean=mean)
    begun = alone.states._replace(mean=means, spread=np.full(means.shape, prior.source_scale))
    return prior, begun, own
