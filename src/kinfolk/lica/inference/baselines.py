"""What LICA is compared with: every task by itself, all tasks as one, and a Gaussian prior that tasks teach each other.

The last is the idea of Marx, Rosenstein, Kaelbling and Dietterich (2005): mean and variances of a Gaussian prior on a
task's weights come from other tasks' weights. It is LICA without sources, with a mean.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kinfolk.lica.inference.common_mean import TOLERANCE, common_mean, fit_hierarchy, rough_hierarchy
from kinfolk.lica.inference.map import without_empty_features
from kinfolk.lica.inference.noise_level import FLOOR, Fitter, choose_noise, individual_weights, noise_by_feature
from kinfolk.lica.inference.weight_solver import WeightsOfTasks, WeightSolver
from kinfolk.lica.model.data import LinearTasks, Link
from kinfolk.lica.model.fitted import Learnt
from kinfolk.lica.model.prior import INTERCEPT_VARIANCE, UNIT_SCALE, TaskPosterior, TaskPrior
from kinfolk.maths.arrays import Floats

HIERARCHY_ROUNDS = 200  # of weights and their mean in turn, by default


def fit_individual(
    problem: LinearTasks,
    *,
    link: Link,
    noise_variance: float | None = None,
    residual_variance: float | None = None,
    intercept_variance: float = INTERCEPT_VARIANCE,
    n_jobs: int | None = None,
    seed: int = 0,
) -> Learnt:
    """Fit every task by itself, its weights N(0, ψ): nothing is shared but ψ.

    Parameters
    ----------
    problem : LinearTasks
    link : {"logistic", "probit", "gaussian"}
    noise_variance : float, optional
        ψ; by default what predicts rows held out best, all tasks together.
    residual_variance : float, optional
        σ² of a regression; by default the mean squared error of rows held out.
    intercept_variance : float
        v₀.
    n_jobs : int, optional
        Threads over tasks; the result does not depend on it.
    seed : int
        Which rows are held out.

    Returns
    -------
    Learnt

    Examples
    --------
    >>> from kinfolk.lica.model.data import make_linear_tasks
    >>> problem = make_linear_tasks([[-1.0], [1.0]], rows=[[0, 1], [0, 1]], y=[[-1.0, 1.0], [1.0, -1.0]])
    >>> found = fit_individual(problem, link="logistic", noise_variance=1.0)
    >>> [task.weights.round(3) for task in found.tasks]
    [array([0.675]), array([-0.675])]
    """
    kept, part = without_empty_features(problem)
    level, residual = _levels(
        part, link, noise_variance, residual_variance, individual_weights, intercept_variance, seed, n_jobs
    )
    solver = WeightSolver(part, link, intercept_variance, n_jobs)
    mean = np.zeros((kept.size, problem.n_tasks))
    noise = np.full(kept.size, level)
    solved = solver.solve(mean, noise, residual, None, TOLERANCE)
    objective = float(np.sum(solved.loss + solved.penalty(mean, noise, intercept_variance)))
    return _estimate(solved, kept, problem.n_features, noise, level, intercept_variance, residual, None, objective)


def fit_pooled(
    problem: LinearTasks,
    *,
    link: Link,
    noise_variance: float | None = None,
    residual_variance: float | None = None,
    intercept_variance: float = INTERCEPT_VARIANCE,
    n_jobs: int | None = None,
    seed: int = 0,
) -> Learnt:
    """Fit one set of weights and one intercept to the rows of all tasks.

    Parameters are those of ``fit_individual``. The prior that is returned has the pooled weights as its mean and hardly
    any noise.

    Returns
    -------
    Learnt

    Examples
    --------
    >>> from kinfolk.lica.model.data import make_linear_tasks
    >>> problem = make_linear_tasks([[-1.0], [1.0]], rows=[[0, 1], [0, 1]], y=[[-1.0, 1.0], [1.0, -1.0]])
    >>> found = fit_pooled(problem, link="logistic", noise_variance=1.0)
    >>> [abs(task.weights.round(3)) for task in found.tasks]
    [array([0.]), array([0.])]
    """
    # Tasks on the same rows repeat them; a row counts once for each target that it has, with the sum of its weights.
    pairs = np.stack([np.concatenate(problem.rows).astype(np.float64), np.concatenate(problem.y)])
    found, place = np.unique(pairs, axis=1, return_inverse=True)
    weights = np.bincount(place.ravel(), weights=np.concatenate(problem.weights), minlength=found.shape[1])
    together = LinearTasks(
        problem.X, (found[0].astype(np.int64),), (found[1],), (np.asarray(weights, dtype=np.float64),)
    )
    one = fit_individual(
        together,
        link=link,
        noise_variance=noise_variance,
        residual_variance=residual_variance,
        intercept_variance=intercept_variance,
        n_jobs=n_jobs,
        seed=seed,
    )
    pooled = one.tasks[0].weights
    prior = one.prior._replace(mean=pooled, noise=np.full(pooled.size, FLOOR * float(np.median(one.prior.noise))))
    return one._replace(prior=prior, tasks=one.tasks * problem.n_tasks)


def fit_hierarchical_gaussian(
    problem: LinearTasks,
    *,
    link: Link,
    noise: Literal["isotropic", "diagonal"] = "diagonal",
    noise_variance: float | None = None,
    residual_variance: float | None = None,
    intercept_variance: float = INTERCEPT_VARIANCE,
    max_iter: int = HIERARCHY_ROUNDS,
    tol: float = 1e-5,
    n_jobs: int | None = None,
    seed: int = 0,
) -> Learnt:
    """Fit tasks whose weights are N(m, ψ), with m ~ N(0, ψ) and ψ learnt from all tasks.

    Parameters
    ----------
    problem, link, residual_variance, intercept_variance, n_jobs, seed
        As for ``fit_individual``.
    noise : {"diagonal", "isotropic"}
        Whether features differ in ψ: where tasks differ little, a feature's weight is drawn to the mean strongly.
    noise_variance : float, optional
        The common level of ψ; by default what predicts rows held out best.
    max_iter : int
        Rounds at most.
    tol : float
        Fraction of the objective; a round that lowers it by less is the last.

    Returns
    -------
    Learnt

    Examples
    --------
    >>> from kinfolk.lica.model.data import make_linear_tasks
    >>> problem = make_linear_tasks([[-1.0], [1.0]], rows=[[0, 1], [0, 1]], y=[[-1.0, 1.0], [-1.0, 1.0]])
    >>> found = fit_hierarchical_gaussian(problem, link="logistic", noise_variance=1.0)
    >>> found.prior.mean.round(2), found.tasks[0].weights.round(2)
    (array([0.86]), array([1.29]))
    """
    kept, part = without_empty_features(problem)
    level, residual = _levels(
        part, link, noise_variance, residual_variance, rough_hierarchy, intercept_variance, seed, n_jobs
    )
    solver = WeightSolver(part, link, intercept_variance, n_jobs)
    spread = np.full(kept.size, level)
    solved, course, converged = fit_hierarchy(solver, spread, residual, None, max_iter, tol)
    if noise == "diagonal":
        mean = np.tile(common_mean(solved)[:, None], (1, problem.n_tasks))
        spread = noise_by_feature(solver, solved, mean, level, residual, np.random.default_rng(seed))
        solved, course, converged = fit_hierarchy(solver, spread, residual, solved, max_iter, tol)
    shared = np.zeros(problem.n_features)
    shared[kept] = common_mean(solved)
    found = _estimate(solved, kept, problem.n_features, spread, level, intercept_variance, residual, shared, 0.0)
    return found._replace(objective=course, converged=converged)


def _levels(
    problem: LinearTasks,
    link: Link,
    noise_variance: float | None,
    residual_variance: float | None,
    fit: Fitter,
    intercept_variance: float,
    seed: int,
    n_jobs: int | None,
) -> tuple[float, float]:
    """ψ and σ², as given or else as rows held out say."""
    residual = residual_variance if link == "gaussian" else 1.0
    if noise_variance is not None and residual is not None:
        return noise_variance, residual
    chosen = choose_noise(problem, link, intercept_variance, fit=fit, seed=seed, n_jobs=n_jobs)
    return (
        chosen.noise if noise_variance is None else noise_variance,
        chosen.residual_variance if residual is None else residual,
    )


def _estimate(
    solved: WeightsOfTasks,
    kept: NDArray[np.int64],
    n_features: int,
    noise: Floats,
    level: float,
    intercept_variance: float,
    residual_variance: float,
    mean: Floats | None,
    objective: float,
) -> Learnt:
    spread = np.full(n_features, level)
    spread[kept] = noise
    tasks = []
    for k, intercept in enumerate(solved.intercepts):
        weights = np.zeros(n_features)
        weights[kept] = solved.weights[:, k]
        tasks.append(TaskPosterior(weights, float(intercept), np.zeros(0), np.zeros(0)))
    prior = TaskPrior(np.zeros((n_features, 0)), spread, UNIT_SCALE, intercept_variance, residual_variance, mean)
    return Learnt(prior, tuple(tasks), np.array([objective]), True, 1.0)
