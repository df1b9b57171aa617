"""How large variances of a prior should be, judged on rows held out.

A point estimate cannot tell by itself: the density of weights grows without bound as their variance goes to zero, and
the evidence from Laplace's method, which does not collapse, comes out several times too small where most tasks have few
positive rows (RCV1, 1,000 rows: 3 where 30 predicts best). Rows held out say it directly.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfolk.checkpoints import Checkpoint
from kinfolk.lica.inference.weight_solver import WeightsOfTasks, WeightSolver
from kinfolk.lica.model.data import LinearTasks, Link
from kinfolk.lica.model.links import LINK_CODES, losses
from kinfolk.maths.arrays import Floats

Fitter: TypeAlias = Callable[[WeightSolver, Floats, float, WeightsOfTasks | None], WeightsOfTasks]

FACTOR = 10**0.5  # between neighbouring candidates
N_FOLDS = 4
MANY_ROWS = 20_000  # rows, summed over tasks, beyond which one fold judges well enough
ROUGH = 0.3  # gradient at which fits are good enough to be compared
START = 10.0  # first candidate: a predictor of this variance
LOWEST, HIGHEST = 1e-3, 1e4
FLOOR = 1e-8  # of a noise variance, relative to the first candidate
PSEUDO_TASKS = 4.0  # how many tasks' weights the common level counts for, beside each feature's own


class Level(NamedTuple):
    """A variance of weights, σ² of a regression (or 1), and the negative log likelihood of rows held out under both."""

    noise: float
    residual_variance: float
    loss: float


class Fold(NamedTuple):
    """Two parts of the rows: those to fit, those to judge by."""

    fitted: LinearTasks
    judged: LinearTasks


def make_folds(data: LinearTasks, seed: int) -> list[Fold]:
    """Split rows at random into four parts, each judged by a fit of the others; of many rows, one part suffices.

    A row that several tasks have is on the same side for all of them. With fewer than two rows there is no fold.
    """
    used = np.unique(np.concatenate(data.rows)) if len(data.rows) else np.zeros(0, dtype=np.int64)
    if used.size < 2:
        return []
    part = np.full(data.X.shape[0], -1)
    part[used] = np.random.default_rng(seed).permutation(np.arange(used.size) % N_FOLDS)
    total = sum(rows.size for rows in data.rows)
    n_folds = int(np.clip(MANY_ROWS // total, 1, min(N_FOLDS, used.size)))
    return [
        Fold(
            _keep(data, [part[rows] != fold for rows in data.rows]),
            _keep(data, [part[rows] == fold for rows in data.rows]),
        )
        for fold in range(n_folds)
    ]


def judge(data: LinearTasks, weights: Floats, intercepts: Floats, link: Link, residual_variance: float) -> float:
    """Negative log likelihood of all tasks' rows, without constants."""
    shared = np.asarray(data.X[data.rows[0]] @ weights + intercepts) if data.shares_rows else None
    total = 0.0
    for k, rows in enumerate(data.rows):
        predictors = data.X[rows] @ weights[:, k] + intercepts[k] if shared is None else shared[:, k]
        one = (data.y[k][None], np.reshape(predictors, (1, -1)), data.weights[k][None])
        total += float(losses(LINK_CODES[link], *one, residual_variance)[0][0])
    return total


def search_levels(evaluate: Callable[[float], float], start: float, lowest: float, highest: float) -> float:
    """The value with the least ``evaluate``: upwards from ``start`` or, where that is no better, downwards."""
    best, least = start, evaluate(start)
    for factor in (FACTOR, 1.0 / FACTOR):
        value = best
        while lowest <= value * factor <= highest:
            value *= factor
            loss = evaluate(value)
            if not loss < least:
                break
            best, least = value, loss
        if best != start:
            break
    return best


def _keep(data: LinearTasks, kept: list[NDArray[np.bool_]]) -> LinearTasks:
    return data._replace(
        rows=tuple(rows[keep] for rows, keep in zip(data.rows, kept, strict=True)),
        y=tuple(y[keep] for y, keep in zip(data.y, kept, strict=True)),
        weights=tuple(weights[keep] for weights, keep in zip(data.weights, kept, strict=True)),
    )


def thin(data: LinearTasks, most_rows: int, seed: int) -> LinearTasks:
    """Leave out rows at random until no task has many; a row stays for all tasks or for none."""
    largest = max(len(rows) for rows in data.rows)
    if largest <= most_rows:
        return data
    kept = np.random.default_rng(seed).random(data.X.shape[0]) < most_rows / largest
    weights = tuple(np.where(kept[rows], weight, 0.0) for rows, weight in zip(data.rows, data.weights, strict=True))
    return data._replace(weights=weights).compact()


def individual_weights(
    solver: WeightSolver, noise: Floats, residual_variance: float, start: WeightsOfTasks | None
) -> WeightsOfTasks:
    """Weights of every task by itself, roughly."""
    mean = np.zeros((solver.data.X.shape[1], len(solver.data.rows)))
    return solver.solve(mean, noise, residual_variance, start, ROUGH)


def choose_noise(
    data: LinearTasks,
    link: Link,
    intercept_variance: float,
    *,
    fit: Fitter = individual_weights,
    seed: int,
    n_jobs: int | None,
    checkpoint: Checkpoint = Checkpoint(),  # noqa: B008 - a value
) -> Level:
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
    checkpoint : Checkpoint
        Keeps the fits that are done; it is of these data and this way to fit.

    Returns
    -------
    Level
        The variance that predicts best; and σ² of a regression, the mean squared error of rows held out, or 1.
    """
    residual = _spread_of_targets(data) if link == "gaussian" else 1.0
    first = START * residual / _mean_square_length(data)
    folds = make_folds(data, seed)
    solvers: list[WeightSolver] = []
    for fold in folds:
        design = solvers[0].design if solvers else None  # all folds have rows of one table
        solvers.append(WeightSolver(fold.fitted, link, intercept_variance, n_jobs, design))
    fits: list[WeightsOfTasks | None] = [None] * len(folds)
    judged: dict[float, float] = {}

    def evaluate(level: float) -> float:
        noise = np.full(data.X.shape[1], level)
        judged[level] = 0.0
        for i, (fold, solver) in enumerate(zip(folds, solvers, strict=True)):
            found = fits[i] = checkpoint.done(partial(fit, solver, noise, residual, fits[i]), "level", level, i)
            judged[level] += judge(fold.judged, found.weights, found.intercepts, link, residual)
        return judged[level]

    noise = search_levels(evaluate, first, LOWEST * first, HIGHEST * first) if folds else first
    loss = judged.get(noise, 0.0)
    if link == "gaussian" and folds:
        n_judged = sum(float(weights.sum()) for fold in folds for weights in fold.judged.weights)
        error = 2.0 * residual * loss / n_judged if n_judged > 0.0 else residual
        # Weights hang on ψ/σ² alone: both change by the same factor.
        error = max(error, FLOOR * residual)
        noise, residual = noise * error / residual, error
    return Level(noise, residual, loss)


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
