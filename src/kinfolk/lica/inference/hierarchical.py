"""A Gaussian prior of the weights, of which tasks teach each other mean and variances.

The idea is that of Marx, Rosenstein, Kaelbling and Dietterich (2005): mean and variances of a Gaussian prior on a
task's weights come from other tasks' weights. It is LICA without sources, with a mean.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from kinfolk.lica.inference.common_mean import common_mean, fit_hierarchy, rough_hierarchy
from kinfolk.lica.inference.individual import as_learnt, choose_levels
from kinfolk.lica.inference.map import without_empty_features
from kinfolk.lica.inference.noise_level import noise_by_feature
from kinfolk.lica.inference.weight_solver import WeightSolver
from kinfolk.lica.model.data import LinearTasks, Link
from kinfolk.lica.model.fitted import Learnt
from kinfolk.lica.model.prior import INTERCEPT_VARIANCE

HIERARCHY_ROUNDS = 200  # of weights and their mean in turn, by default


def fit_hierarchical_gaussian(
    data: LinearTasks,
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
    data, link, residual_variance, intercept_variance, n_jobs, seed
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
    >>> data = make_linear_tasks([[-1.0], [1.0]], rows=[[0, 1], [0, 1]], y=[[-1.0, 1.0], [-1.0, 1.0]])
    >>> found = fit_hierarchical_gaussian(data, link="logistic", noise_variance=1.0)
    >>> found.prior.mean.round(2), found.tasks[0].weights.round(2)
    (array([0.86]), array([1.29]))
    """
    kept, part = without_empty_features(data)
    level, residual = choose_levels(
        part, link, noise_variance, residual_variance, rough_hierarchy, intercept_variance, seed, n_jobs
    )
    solver = WeightSolver(part, link, intercept_variance, n_jobs)
    spread = np.full(kept.size, level)
    solved, course, converged = fit_hierarchy(solver, spread, residual, None, max_iter, tol)
    if noise == "diagonal":
        mean = np.tile(common_mean(solved)[:, None], (1, data.n_tasks))
        spread = noise_by_feature(solver, solved, mean, level, residual, np.random.default_rng(seed))
        solved, course, converged = fit_hierarchy(solver, spread, residual, solved, max_iter, tol)
    shared = np.zeros(data.n_features)
    shared[kept] = common_mean(solved)
    found = as_learnt(solved, kept, data.n_features, spread, level, intercept_variance, residual, shared, 0.0)
    return found._replace(objective=course, converged=converged)
