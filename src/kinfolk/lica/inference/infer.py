"""From the data of many tasks to what they share, by the way of sharing and the inference that were asked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sklearn.exceptions import ConvergenceWarning

from kinfolk.lica.inference.baselines import fit_hierarchical_gaussian, fit_individual, fit_pooled
from kinfolk.lica.inference.eb import fit_empirical_bayes, fit_task
from kinfolk.lica.inference.map import PointEstimate, fit_point_estimate, fit_point_task
from kinfolk.lica.inference.number_of_sources import Choice, choose_n_sources
from kinfolk.lica.inference.residual_level import choose_residual_variance
from kinfolk.lica.model.data import LinearTasks, Links
from kinfolk.lica.model.prior import INTERCEPT_VARIANCE, TaskPosterior, TaskPrior
from kinfolk.maths.arrays import Floats


class Plan(NamedTuple):
    """All that decides how tasks are learnt."""

    link: Any
    sharing: str
    inference: str
    n_sources: int | None
    noise: Any
    source_prior: Any
    loading_variance: float | None
    shared_mean: bool
    intercept_variance: float | None
    max_iter: int
    tol: float
    weight_variances: bool
    n_jobs: int | None
    seed: int


class Learnt(NamedTuple):
    """What tasks share, what is known of each, how the objective rose, and how the number of sources was chosen."""

    prior: TaskPrior
    tasks: Sequence[TaskPosterior]
    objective: Floats
    converged: bool
    loading_variance: float
    choice: Choice | None


def learn(problem: LinearTasks, plan: Plan, start: Learnt | None, advance: Callable[[int], None]) -> Learnt:
    """Learn all tasks."""
    if plan.sharing != "sources":
        found = _baseline(problem, plan)
        return Learnt(found.prior, found.tasks, -found.objective, found.converged, found.loading_variance, None)
    if start is not None and start.prior.n_features != problem.n_features:
        start = None
    choice, n_sources = None, plan.n_sources
    if n_sources is None:
        if start is not None and start.prior.n_sources:
            n_sources = start.prior.n_sources
        else:
            choice = choose_n_sources(
                problem,
                plan.link,
                noise=plan.noise,
                sources=plan.source_prior,
                shared_mean=plan.shared_mean,
                shared_intercepts=_shares_intercepts(problem, plan),
                intercept_variance=plan.intercept_variance or INTERCEPT_VARIANCE,
                seed=plan.seed,
                n_jobs=plan.n_jobs,
            )
            n_sources = choice.n_sources
    elif n_sources >= problem.n_tasks > 1:
        warnings.warn(
            f"n_sources={n_sources} is no fewer than the {problem.n_tasks} tasks: each can have a source of its own, "
            "and hardly anything is shared; a number well below is better, or None to choose it",
            UserWarning,
            stacklevel=4,
        )
    learnt = (_by_bayes if plan.inference == "eb" else _by_points)(problem, plan, n_sources, start, advance)
    if not learnt.converged:
        warnings.warn(
            f"the fit did not converge within max_iter={plan.max_iter} iterations: allow more, or a larger tol",
            ConvergenceWarning,
            stacklevel=4,
        )
    return learnt._replace(choice=choice)


def _shares_intercepts(problem: LinearTasks, plan: Plan) -> bool:
    """Whether the intercepts' mean and variance are learnt: not where tasks are labels of the same rows."""
    return plan.intercept_variance is None and not problem.shares_rows


def _by_bayes(
    problem: LinearTasks, plan: Plan, n_sources: int, start: Learnt | None, advance: Callable[[int], None]
) -> Learnt:
    before = None
    if start is not None and start.prior.n_sources == n_sources:
        before = start.prior
        if plan.intercept_variance is not None:
            before = before._replace(intercept_variance=plan.intercept_variance, intercept_mean=0.0)
    settings: dict[str, Any] = {
        "n_sources": n_sources,
        "noise": plan.noise,
        "sources": plan.source_prior,
        "shared_mean": plan.shared_mean,
        "shared_intercepts": _shares_intercepts(problem, plan),
        "loading_variance": plan.loading_variance,
        "intercept_variance": plan.intercept_variance or INTERCEPT_VARIANCE,
        "n_jobs": plan.n_jobs,
    }
    residual = None
    if plan.link == Links.GAUSSIAN:
        residual = (
            choose_residual_variance(problem, plan.seed, **settings) if before is None else before.residual_variance
        )
    found = fit_empirical_bayes(
        problem,
        link=plan.link,
        **settings,
        residual_variance=residual,
        max_iter=plan.max_iter,
        tol=plan.tol,
        start=before,
        seed=plan.seed,
        weight_variances=plan.weight_variances,
        advance=advance,
    )
    return Learnt(found.prior, found.tasks, found.bound, found.converged, found.loading_variance, None)


def _by_points(
    problem: LinearTasks, plan: Plan, n_sources: int, start: Learnt | None, advance: Callable[[int], None]
) -> Learnt:
    fits = start is not None and len(start.tasks) == problem.n_tasks and start.prior.n_sources == n_sources
    before = (
        PointEstimate(start.prior, tuple(start.tasks), start.objective, start.converged, start.loading_variance)
        if fits and start is not None
        else None
    )
    found = fit_point_estimate(
        problem,
        link=plan.link,
        n_sources=n_sources,
        noise=plan.noise,
        shared_mean=plan.shared_mean,
        loading_variance=plan.loading_variance,
        intercept_variance=plan.intercept_variance or INTERCEPT_VARIANCE,
        max_iter=plan.max_iter,
        # The alternation stops by a share of its objective, which falls by far more than nats per row.
        tol=max(10 * plan.tol, 1e-6),
        n_jobs=plan.n_jobs,
        start=before,
        seed=plan.seed,
        advance=advance,
    )
    return Learnt(found.prior, found.tasks, -found.objective, found.converged, found.loading_variance, None)


def _baseline(problem: LinearTasks, plan: Plan) -> PointEstimate:
    common: dict[str, Any] = {
        "link": plan.link,
        "intercept_variance": plan.intercept_variance or INTERCEPT_VARIANCE,
        "n_jobs": plan.n_jobs,
        "seed": plan.seed,
    }
    if plan.sharing == "individual":
        return fit_individual(problem, **common)
    if plan.sharing == "pooled":
        return fit_pooled(problem, **common)
    return fit_hierarchical_gaussian(problem, noise=plan.noise, **common)


def learn_one(problem: LinearTasks, plan: Plan, prior: TaskPrior) -> TaskPosterior:
    """Learn one task, all that tasks share being held."""
    if plan.sharing == "sources" and plan.inference == "eb":
        return fit_task(prior, problem, plan.link, sources=plan.source_prior, weight_variances=plan.weight_variances)
    return fit_point_task(problem, 0, prior, link=plan.link)
