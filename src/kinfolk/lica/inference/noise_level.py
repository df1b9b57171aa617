"""The variance of weights that predicts rows held out best, common to all tasks, and how features differ in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from kinfolk.lica.inference.held_out import Fold, judge, make_folds, search_levels
from kinfolk.lica.inference.map_weights import make_design
from kinfolk.lica.inference.weight_solver import WeightsOfTasks, WeightSolver
from kinfolk.lica.model.data import LinearTasks, Link
from kinfolk.maths.arrays import Floats

Fitter: TypeAlias = Callable[[WeightSolver, Floats, float, WeightsOfTasks | None], WeightsOfTasks]

ROUGH = 0.3  # gradient at which fits are good enough to be compared
START = 10.0  # first candidate: a predictor of this variance
LOWEST, HIGHEST = 1e-3, 1e4
FLOOR = 1e-8  # of a noise variance, relative to the first candidate
PSEUDO_TASKS = 4.0  # how many tasks' weights the common level counts for, beside each feature's own


class NoiseLevel(NamedTuple):
    """What rows held out said.

    Parameters
    ----------
    noise : float
        The variance of weights.
    residual_variance : float
        σ² of a regression: the mean squared error of rows held out; 1 for a classifier.
    folds : list of Fold
    fits : list of WeightsOfTasks
        Of each fold, at about that variance: where further fits may start.
    """

    noise: float
    residual_variance: float
    folds: list[Fold]
    fits: list[WeightsOfTasks]


def individual_weights(
    solver: WeightSolver, noise: Floats, residual_variance: float, start: WeightsOfTasks | None
) -> WeightsOfTasks:
    """Weights of every task by itself, roughly."""
    mean = np.zeros((solver.data.n_features, solver.data.n_tasks))
    return solver.solve(mean, noise, residual_variance, start, ROUGH)


def choose_noise(
    data: LinearTasks,
    link: Link,
    intercept_variance: float,
    *,
    fit: Fitter = individual_weights,
    seed: int,
    n_jobs: int | None,
) -> NoiseLevel:
    """Choose the variance of weights, the same for all tasks and features, on rows held out.

    Parameters
    ----------
    data : LinearTasks
    link : {"logistic", "probit", "gaussian"}
    intercept_variance : float
    fit : callable
        Fits the weights of all tasks, given their solver, noise, residual variance and a start.
    seed : int
        Which rows are held out.
    n_jobs : int, optional

    Returns
    -------
    NoiseLevel
    """
    residual = _spread_of_targets(data) if link == "gaussian" else 1.0
    first = START * residual / _mean_square_length(data)
    folds = make_folds(data, seed)
    design = make_design(data.X)
    solvers = [WeightSolver(fold.fitted, link, intercept_variance, n_jobs, design) for fold in folds]
    fits: list[WeightsOfTasks | None] = [None] * len(folds)
    judged: dict[float, float] = {}
    best: list[WeightsOfTasks] = []

    def evaluate(level: float) -> float:
        noise = np.full(data.n_features, level)
        for i, solver in enumerate(solvers):
            fits[i] = fit(solver, noise, residual, fits[i])
        found = [one for one in fits if one is not None]
        losses = [
            judge(fold.judged, one.weights, one.intercepts, link, residual)
            for fold, one in zip(folds, found, strict=True)
        ]
        judged[level] = sum(losses)
        if judged[level] <= min(judged.values()):
            best[:] = found
        return judged[level]

    noise = search_levels(evaluate, first, LOWEST * first, HIGHEST * first) if folds else first
    if link == "gaussian" and folds:
        n_judged = sum(float(weights.sum()) for fold in folds for weights in fold.judged.weights)
        error = 2.0 * residual * judged[noise] / n_judged if n_judged > 0.0 else residual
        # Weights hang on ψ/σ² alone: both change by the same factor.
        error = max(error, FLOOR * residual)
        noise, residual = noise * error / residual, error
    return NoiseLevel(noise, residual, folds, best)


def noise_by_feature(
    solver: WeightSolver,
    solved: WeightsOfTasks,
    mean: Floats,
    level: float,
    residual_variance: float,
    rng: np.random.Generator,
) -> Floats:
    """Share a common level of noise out among features.

    MacKay's re-estimate Σₖ(θₖⱼ − μₖⱼ)²/γⱼ, where the data determine γⱼ of the tasks' weights by Laplace's method, so
    that features which few rows have are not taken for certain; relative to the same over all features, and drawn
    towards the common level as if ``PSEUDO_TASKS`` tasks had shown it.
    """
    noise = np.full(mean.shape[0], level)
    determined = np.clip(solver.determined(solved, noise, residual_variance, rng), 0.0, float(mean.shape[1]))
    squares = np.sum((solved.weights - mean) ** 2, axis=1)
    if not squares.sum() > 0.0 or not determined.sum() > 0.0:
        return noise
    usual = squares.sum() / determined.sum()
    return np.asarray(level * (PSEUDO_TASKS + squares / usual) / (PSEUDO_TASKS + determined))


def _spread_of_targets(data: LinearTasks) -> float:
    """Mean variance of targets within tasks."""
    total = sum(float(w @ (y - w @ y / w.sum()) ** 2) for y, w in zip(data.y, data.weights, strict=True) if w.sum() > 0)
    rows = sum(float(w.sum()) for w in data.weights)
    return total / rows if total > 0.0 else 1.0


def _mean_square_length(data: LinearTasks) -> float:
    """Mean of ‖x‖² over rows that some task has."""
    used = np.unique(np.concatenate(data.rows))
    table = data.X[used]
    squares = table.multiply(table).sum() if hasattr(table, "multiply") else np.sum(table**2)
    length = float(squares) / max(used.size, 1)
    return length if length > 0.0 else 1.0
