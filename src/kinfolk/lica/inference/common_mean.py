"""Weights of tasks about a mean that all of them share, both learnt: one convex problem."""

from __future__ import annotations

import numpy as np

from kinfolk.lica.inference.noise_level import ROUGH
from kinfolk.lica.inference.weight_solver import WeightsOfTasks, WeightSolver
from kinfolk.maths.arrays import Floats

TOLERANCE = 1e-4  # gradient of the weights that are returned
GROWTH = 1.5
ROUGH_ROUNDS, ROUGH_GAIN = 8, 5e-3
MANY_ROWS = 1000.0  # of a task, with which a rough fit may be as rough as it gets


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
) -> tuple[WeightsOfTasks, Floats, bool]:
    """Weights and their mean in turn, the mean over-relaxed while that helps: together they are one convex problem.

    Rounds are at most ``max_iter``, and end where one lowers the objective by less than ``tol`` of it; ``tolerance`` is
    the gradient of the weights within a round.
    """

    def at(mean: Floats, before: WeightsOfTasks | None) -> tuple[WeightsOfTasks, float]:
        centre = np.tile(mean[:, None], (1, solver.data.n_tasks))
        solved = solver.solve(centre, noise, residual_variance, before, tolerance)
        cost = float(np.sum(solved.loss + solved.penalty(centre, noise, solver.intercept_variance)))
        return solved, cost + 0.5 * float(np.sum(mean**2 / noise))

    mean = np.zeros(noise.size) if start is None else common_mean(start)
    solved, objective = at(mean, start)
    course = [objective]
    reach = 1.0
    for _ in range(max_iter):
        plain = common_mean(solved)
        further = mean + reach * (plain - mean)
        found, new = at(further, solved)
        if new > objective and reach > 1.0:
            reach, further = 1.0, plain
            found, new = at(further, solved)
        else:
            reach *= GROWTH
        fell = objective - new
        mean, solved, objective = further, found, new
        course.append(objective)
        if fell <= tol * abs(objective):
            return solved, np.array(course), True
    return solved, np.array(course), False
