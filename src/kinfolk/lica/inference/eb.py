"""Empirical Bayes for LICA: expectation–maximisation for Λ and Ψ (Zhang, Ghahramani and Yang 2005, §3.1).

Tasks are first fitted one by one under a variance of the weights that they share; their weights give Λ and the sources
a start, and EM goes on from there. The bound on log p(y, Λ, Ψ | X) never falls.

One iteration is an M-step and one sweep over every task's posterior. Plain EM crawls where tasks have many more
features than rows, because nearly all of a weight's posterior is then its prior. Each iteration therefore tries in
turn, and keeps the first that does not lower the bound: a longer step with the sources turned (now and then; see
``maximisation``), a longer step (Salakhutdinov and Roweis 2003 for Λ, MacKay 1992 for Ψ), and EM's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from kinfolk.checkpoints import NOWHERE, Nowhere, Place
from kinfolk.interrupts import NEVER, Stop
from kinfolk.lica.inference.expectation import (
    ONE_SWEEP,
    Family,
    Sweeps,
    TaskStates,
    update_tasks,
    variances_of_weights,
)
from kinfolk.lica.inference.layout import Layout, lay_out
from kinfolk.lica.inference.maximisation import Shrinkage, maximise, sources_of_weights, unmix, weights_of_tasks
from kinfolk.lica.model.data import LinearTasks, Link
from kinfolk.lica.model.factors import LikelihoodBound, SourceKind
from kinfolk.lica.model.fitted import SHARE, Learnt
from kinfolk.lica.model.prior import INTERCEPT_VARIANCE, UNIT_SCALE, Reach, TaskPosterior, TaskPrior
from kinfolk.maths.arrays import Floats

Noise: TypeAlias = Literal["isotropic", "diagonal"]

_ALONE = 10  # iterations of the fit without sources that a start is made from
_LEAST_LEFT = 0.1  # least share of a weight's variance that the noise has at the start
_FLOOR = 1e-4  # least ψ_j, relative to the variance of a weight
# Where each feature has a ψ of its own, its prior counts for so many tasks: little more than the two that it takes for
# a mode. With 200 rows and no sources 2.1, 3 and 5 gave log losses of 0.136, 0.143 and 0.150 on Reuters, and of 0.103,
# 0.104 and 0.110 on RCV1; on the sets with few features they hardly differ.
_NOISE_STRENGTH = 2.1
_RESIDUAL_FLOOR = 1e-5  # least σ² of a regression, relative to the variance of the targets
_FIRST_SWEEPS = 10  # over tasks of which nothing is known yet
_SURE = Sweeps(10, 1e-6)  # where one sweep has not followed the prior far enough
_STRETCH = 1.3  # growth of Λ's step after each longer step that raised the bound
_LONGEST = 20.0  # longest step of Λ, in steps of EM
_TURNS = (0, 1, 3, 7, 15, 31, 63)  # iterations that turn the sources
_WIDEST = 3.0  # most that one longer step multiplies or divides a ψ_j by, where each feature has its own
_SMALL_GAINS = 2  # in a row, after which there is nothing left to gain


class EMResult(NamedTuple):
    """Where EM ended: the states belong to the prior; ``bounds`` are those at the start and after each iteration."""

    prior: TaskPrior
    states: TaskStates
    bounds: Floats
    converged: bool


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
    scale: float = 1.0,
    share: float = SHARE,
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
    place: Place | Nowhere = NOWHERE,
    stop: Stop = NEVER,
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
        τ²; by default such that sources have their ``share`` of the variance of a weight in tasks fitted one by one.
    scale, share : float
        How many times the variance that tasks fitted one by one learn their weights are given at the start, and the
        share of it that the sources have; ``starts`` chooses them.
    source_scale, intercept_variance : float
        b₀ and v₀; with ``start``, those of it count.
    residual_variance : float, optional
        σ² of a regression, held; learnt by default.
    likelihood_bound : {"average", "tangent"}
        How the likelihood enters the bound: by its expectation, or by the paper's tangents (see ``factors``).
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
            f"{data.X.shape[1]} features and {n_sources} sources are needed."
        )
    family = Family(link, sources, likelihood_bound)
    spread = _spread_of_targets(data)
    layout = lay_out(data, noise == "isotropic")
    states: TaskStates | None = None
    if start is not None:
        nothing = np.zeros(len(start.noise))
        prior = start._replace(mean=(nothing if start.mean is None else start.mean) if shared_mean else None)
        own_variance = weight_variance = float(np.mean(prior.noise) + np.mean(np.sum(prior.loadings**2, axis=1)))
    else:
        if alone is None:
            alone = fit_alone(data, family, source_scale, intercept_variance, tol, n_jobs, scale)
        weight_variance = float(alone.prior.noise[0])
        prior, states, own = _with_sources(layout, alone, n_sources, seed, sources, shared_mean)
        own_variance = own * weight_variance
    tau_squared = loading_variance or share * weight_variance / max(n_sources, 1)
    if residual_variance is not None:
        prior = prior._replace(residual_variance=residual_variance)
    shrinkage = Shrinkage(
        tau_squared,
        _FLOOR * weight_variance,
        own_variance,
        0.0 if noise == "isotropic" else _NOISE_STRENGTH,
        _RESIDUAL_FLOOR * spread,
        weight_variance if shared_mean else None,
        (spread if link == "gaussian" else 1.0) if shared_intercepts else None,
        residual_variance is not None,
    )
    found = _run_em(layout, family, prior, states, shrinkage, max_iter, tol, n_jobs, advance, place, stop)
    tasks = _posteriors(layout, found.prior, found.states, weight_variances, n_jobs)
    return Learnt(found.prior, tuple(tasks), found.bounds, found.converged, tau_squared)


def fit_alone(
    data: LinearTasks,
    family: Family,
    source_scale: float = UNIT_SCALE,
    intercept_variance: float = INTERCEPT_VARIANCE,
    tol: float = 1e-4,
    n_jobs: int | None = None,
    scale: float = 1.0,
    narrower: Alone | None = None,
) -> Alone:
    """Fit tasks that share the variance of their weights alone, as a start for any number of sources.

    Parameters are those of ``fit_empirical_bayes``; with a ``scale``, the variance that was learnt is multiplied by it,
    from where it ended with a scale of 1, which ``narrower`` is where it is known.
    """
    spread = _spread_of_targets(data)
    prior = _plain_prior(data, family.link, spread, source_scale, intercept_variance)
    shrinkage = Shrinkage(1.0, _FLOOR * float(prior.noise[0]), residual_floor=_RESIDUAL_FLOOR * spread)
    layout = lay_out(data, True)
    if narrower is None:
        found = _run_em(layout, family, prior, None, shrinkage, _ALONE, tol, n_jobs)
        narrower = Alone(found.prior, found.states)
    if scale == 1.0:
        return narrower
    wider = narrower.prior._replace(noise=scale * narrower.prior.noise)
    followed = _run_em(layout, family, wider, narrower.states, shrinkage, 0, tol, n_jobs)
    return Alone(followed.prior, followed.states)


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
) -> tuple[TaskPosterior, bool]:
    """Fit a new task with Λ and Ψ held, to convergence; the second result is whether it was reached.

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
    if len(data.rows) != 1:
        raise ValueError(f"The data have {len(data.rows)} tasks; a fit under a prior that is held takes one.")
    family = Family(link, sources, likelihood_bound)
    layout = lay_out(data, bool(np.all(prior.noise == prior.noise[0])))
    states = update_tasks(layout, prior, None, family, Sweeps(max_iter, tol), n_jobs=1)
    more = update_tasks(layout, prior, states, family, Sweeps(same_prior=True), n_jobs=1)
    converged = bool(more.bound[0] - states.bound[0] <= tol * float(np.sum(layout.weights)))
    return _posteriors(layout, prior, states, weight_variances, 1)[0], converged


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


def _plain_prior(
    data: LinearTasks, link: Link, spread: float, source_scale: float, intercept_variance: float
) -> TaskPrior:
    """A prior without sources, under which the linear predictors are of a size that the targets ask for."""
    squares = data.X.multiply(data.X).sum(axis=1) if hasattr(data.X, "multiply") else np.sum(data.X**2, axis=1)
    places, weights = np.concatenate(data.rows), np.concatenate(data.weights)
    size = float(weights @ np.asarray(squares).ravel()[places]) / (float(np.sum(weights)) or 1.0) or 1.0
    wanted, residual = (spread, 0.5 * spread) if link == "gaussian" else (4.0, 1.0)
    n_features = data.X.shape[1]
    noise = np.full(n_features, wanted / size)
    return TaskPrior(np.zeros((n_features, 0)), noise, source_scale, intercept_variance, residual)


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


def _run_em(
    layout: Layout,
    family: Family,
    prior: TaskPrior,
    start: TaskStates | None,
    shrinkage: Shrinkage,
    max_iter: int,
    tol: float,
    n_jobs: int | None,
    advance: Callable[[int], None] | None = None,
    place: Place | Nowhere = NOWHERE,
    stop: Stop = NEVER,
) -> EMResult:
    """Iterate until an iteration gains too little."""
    counted, isotropic = float(np.sum(layout.weights)), layout.isotropic

    def expect(at: TaskPrior, known: TaskStates | None, sweeps: Sweeps = ONE_SWEEP) -> tuple[TaskStates, float]:
        found = update_tasks(layout, at, known, family, sweeps, want_variances=not isotropic, n_jobs=n_jobs)
        return found, float(np.sum(found.bound)) + shrinkage.log_density(at)

    n_done, stretch, small_gains = 0, 1.0, 0
    if (kept := place.load()) is not None:
        n_done, prior, states, bounds, stretch, small_gains = kept
    else:
        states, bound = expect(prior, start, Sweeps(_FIRST_SWEEPS, tol))
        bounds = [bound]
    can_turn = family.sources == "laplace" and prior.loadings.size > 0
    for iteration in range(n_done, max_iter):
        stops = stop.asked()
        if stops or place.due():
            place.save((iteration, prior, states, bounds, stretch, small_gains))
        if stops:
            break
        best, ahead = maximise(layout, prior, states, link=family.link, shrinkage=shrinkage)
        longer = _longer_step(prior, best, ahead, stretch, isotropic)
        stretch = min(stretch * _STRETCH, _LONGEST)
        at, found, bound = prior, states, -np.inf
        if can_turn and iteration in _TURNS:
            at, moved = _turned(longer, states, shrinkage.loading_variance)
            found, bound = expect(at, moved)
        if not bound >= bounds[-1]:
            at = longer
            found, bound = expect(longer, states)
        if not bound >= bounds[-1]:
            at, stretch = best, 1.0
            found, bound = expect(best, states, _SURE)
        if not bound >= bounds[-1]:
            # A task had not followed its last prior yet, and lost by following the new one: let it do so first.
            at = prior
            found, bound = expect(prior, states, _SURE._replace(same_prior=True))
        prior, states = at, found
        bounds.append(bound)
        if advance is not None:
            advance(1)
        small_gains = small_gains + 1 if bounds[-1] - bounds[-2] < tol * counted else 0
        if small_gains == _SMALL_GAINS:
            return EMResult(prior, states, np.array(bounds), True)
    return EMResult(prior, states, np.array(bounds), False)


def _longer_step(prior: TaskPrior, best: TaskPrior, ahead: Floats, stretch: float, isotropic: bool) -> TaskPrior:
    if not isotropic:
        ahead = np.clip(ahead, prior.noise / _WIDEST, prior.noise * _WIDEST)
    longer = best._replace(loadings=prior.loadings + stretch * (best.loadings - prior.loadings), noise=ahead)
    if prior.mean is not None and best.mean is not None:
        longer = longer._replace(mean=prior.mean + stretch * (best.mean - prior.mean))
    return longer


def _turned(prior: TaskPrior, states: TaskStates, loading_variance: float) -> tuple[TaskPrior, TaskStates]:
    """Turn the sources to where they are independent, and Λ with them."""
    spread = float(np.median(states.spread))
    turn = unmix(states.mean, spread, prior.loadings, prior.source_scale, loading_variance)
    loadings = np.asarray(np.linalg.solve(turn.T, prior.loadings.T).T, dtype=np.float64)
    return prior._replace(loadings=loadings), states._replace(mean=states.mean @ turn.T)
