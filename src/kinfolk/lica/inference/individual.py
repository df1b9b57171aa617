"""Every task by itself, its weights N(0, ψ): what LICA is compared with first."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from kinfolk.checkpoints import Checkpoint
from kinfolk.lica.inference.held_out import Fitter, choose_noise, individual_weights
from kinfolk.lica.inference.weight_solver import WeightsOfTasks, WeightSolver, without_empty_features
from kinfolk.lica.model.data import LinearTasks, Link
from kinfolk.lica.model.fitted import Learnt
from kinfolk.lica.model.prior import INTERCEPT_VARIANCE, UNIT_SCALE, TaskPosterior, TaskPrior
from kinfolk.maths.arrays import Floats

TOLERANCE = 1e-4  # gradient of the weights that are returned


def fit_individual(
    data: LinearTasks,
    *,
    link: Link,
    noise_variance: float | None = None,
    residual_variance: float | None = None,
    intercept_variance: float = INTERCEPT_VARIANCE,
    n_jobs: int | None = None,
    seed: int = 0,
    checkpoint: Checkpoint = Checkpoint(),  # noqa: B008 - a value
) -> Learnt:
    """Fit every task by itself, its weights N(0, ψ): nothing is shared but ψ.

    Parameters
    ----------
    data : LinearTasks
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
    checkpoint : Checkpoint
        Keeps the fits that are done.

    Returns
    -------
    Learnt

    Examples
    --------
    >>> from kinfolk.lica.model.data import make_linear_tasks
    >>> data = make_linear_tasks([[-1.0], [1.0]], rows=[[0, 1], [0, 1]], y=[[-1.0, 1.0], [1.0, -1.0]])
    >>> found = fit_individual(data, link="logistic", noise_variance=1.0)
    >>> [task.weights.round(3) for task in found.tasks]
    [array([0.675]), array([-0.675])]
    """
    kept, part = without_empty_features(data)
    level, residual = choose_levels(
        part, link, noise_variance, residual_variance, individual_weights, intercept_variance, seed, n_jobs, checkpoint
    )
    solver = WeightSolver(part, link, intercept_variance, n_jobs)
    mean = np.zeros((kept.size, len(data.rows)))
    noise = np.full(kept.size, level)
    solved = checkpoint.done(partial(solver.solve, mean, noise, residual, None, TOLERANCE), "weights")
    objective = float(np.sum(solved.loss + solved.penalty(mean, noise, intercept_variance)))
    return as_learnt(solved, kept, data.X.shape[1], noise, level, intercept_variance, residual, None, objective)


def choose_levels(
    data: LinearTasks,
    link: Link,
    noise_variance: float | None,
    residual_variance: float | None,
    fit: Fitter,
    intercept_variance: float,
    seed: int,
    n_jobs: int | None,
    checkpoint: Checkpoint,
) -> tuple[float, float]:
    """ψ and σ², as given or else as rows held out say."""
    residual = residual_variance if link == "gaussian" else 1.0
    if noise_variance is not None and residual is not None:
        return noise_variance, residual
    found = choose_noise(data, link, intercept_variance, fit=fit, seed=seed, n_jobs=n_jobs, checkpoint=checkpoint)
    level = found.noise if noise_variance is None else noise_variance
    return level, found.residual_variance if residual is None else residual


def as_learnt(
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
    """What was solved for some features as what was learnt of all; the others have the prior's weights."""
    spread = np.full(n_features, level)
    spread[kept] = noise
    tasks = []
    for k, intercept in enumerate(solved.intercepts):
        weights = np.zeros(n_features)
        weights[kept] = solved.weights[:, k]
        tasks.append(TaskPosterior(weights, float(intercept), np.zeros(0), np.zeros(0)))
    prior = TaskPrior(np.zeros((n_features, 0)), spread, UNIT_SCALE, intercept_variance, residual_variance, mean)
    return Learnt(prior, tuple(tasks), np.array([objective]), True, 1.0)
