"""A Gaussian prior of the weights, of which tasks teach each other mean and variances.

The idea is that of Marx, Rosenstein, Kaelbling and Dietterich (2005): mean and variances of a Gaussian prior on a
task's weights come from other tasks' weights. It is LICA without sources, with a mean.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from kinfolk.checkpoints import NOWHERE, Checkpoint, Nowhere, Place
from kinfolk.interrupts import asked
from kinfolk.lica.inference.held_out import ROUGH, noise_by_feature
from kinfolk.lica.inference.individual import TOLERANCE, as_learnt, choose_levels
from kinfolk.lica.inference.weight_solver import WeightsOfTasks, WeightSolver, without_empty_features
from kinfolk.lica.model.data import LinearTasks, Link
from kinfolk.lica.model.fitted import Learnt
from kinfolk.lica.model.prior import INTERCEPT_VARIANCE
from kinfolk.maths.arrays import Floats

HIERARCHY_ROUNDS = 200  # of weights and their mean in turn, by default
GROWTH = 1.5
ROUGH_ROUNDS, ROUGH_GAIN = 8, 5e-3
MANY_ROWS = 1000.0  # of a task, with which a rough fit may be as rough as it gets


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
    checkpoint: Checkpoint = Checkpoint(),  # noqa: B008 - a value
) -> Learnt:
    """Fit tasks whose weights are N(m, ψ), with m ~ N(0, ψ) and ψ learnt from all tasks.

    Parameters
    ----------
    data, link, residual_variance, intercept_variance, n_jobs, seed, checkpoint
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
        part, link, noise_variance, residual_variance, rough_hierarchy, intercept_variance, seed, n_jobs, checkpoint
    )
    solver = WeightSolver(part, link, intercept_variance, n_jobs)
    spread = np.full(kept.size, level)
    place = checkpoint.place("alike")
    solved, course, converged = fit_hierarchy(solver, spread, residual, None, max_iter, tol, place=place)
    if noise == "diagonal":
        mean = np.tile(common_mean(solved)[:, None], (1, len(data.rows)))
        spread = noise_by_feature(solver, solved, mean, level, residual, np.random.default_rng(seed))
        place = checkpoint.place("each feature")
        solved, course, converged = fit_hierarchy(solver, spread, residual, solved, max_iter, tol, place=place)
    shared = np.zeros(data.X.shape[1])
    shared[kept] = common_mean(solved)
    found = as_learnt(solved, kept, data.X.shape[1], spread, level, intercept_variance, residual, shared, 0.0)
    return found._replace(objective=course, converged=converged)


def common_mean(solved: WeightsOfTasks) -> Floats:
    """The most probable mean, which is itself as variable as one more task."""
    return np.asarray(solved.weights.sum(axis=1) / (solved.weights.shape[1] + 1.0))


def rough_hierarchy(
    solver: WeightSolver, noise: Floats, residual_variance: float, start: WeightsOfTasks | None
) -> WeightsOfTasks:
    """Weights about a common mean, good enough to be compared."""
    # A gradient that does not matter to a task of many rows would decide one of few.
    rows = float(np.mean([len(rows) for rows in solver.data.rows]))
    tolerance = max(TOLERANCE, ROUGH * min(rows / MANY_ROWS, 1.0))
    return fit_hierarchy(solver, noise, residual_variance, start, ROUGH_ROUNDS, ROUGH_GAIN, tolerance)[0]


def fit_hierarchy(
    solver: WeightSolver,
    noise: Floats,
    residual_variance: float,
    start: WeightsOfTasks | None,
    max_iter: int,
    tol: float,
    tolerance: float = TOLERANCE,
    place: Place | Nowhere = NOWHERE,
) -> tuple[WeightsOfTasks, Floats, bool]:
    """Weights and their mean in turn, the mean over-relaxed while that helps: together they are one convex problem.

    Rounds are at most ``max_iter``, and end where one lowers the objective by less than ``tol`` of it; ``tolerance`` is
    the gradient of the weights within a round; ``place`` is where the rounds that are done are kept.
    """

    def at(mean: Floats, before: WeightsOfTasks | None) -> tuple[WeightsOfTasks, float]:
        centre = np.tile(mean[:, None], (1, len(solver.data.rows)))
        solved = solver.solve(centre, noise, residual_variance, before, tolerance)
        cost = float(np.sum(solved.loss + solved.penalty(centre, noise, solver.intercept_variance)))
        return solved, cost + 0.5 * float(np.sum(mean**2 / noise))

    if (kept := place.load()) is not None:
        mean, solved, course, reach = kept
    else:
        mean = np.zeros(noise.size) if start is None else common_mean(start)
        solved, objective = at(mean, start)
        course, reach = [objective], 1.0
    while len(course) <= max_iter and not _settled(course, tol) and not (len(course) > 1 and asked()):
        plain = common_mean(solved)
        further = mean + reach * (plain - mean)
        found, new = at(further, solved)
        if new > course[-1] and reach > 1.0:
            reach, further = 1.0, plain
            found, new = at(further, solved)
        else:
            reach *= GROWTH
        mean, solved = further, found
        course.append(new)
        if place.due():
            place.save((mean, solved, course, reach))
    (place.save if asked() else place.end)((mean, solved, course, reach))
    return solved, np.array(course), _settled(course, tol)


def _settled(course: list[float], tol: float) -> bool:
    """Whether the last round hardly lowered the objective."""
    return len(course) > 1 and course[-2] - course[-1] <= tol * abs(course[-1])
