"""Linear predictors of fitted tasks, and of tasks that nobody has seen, at new rows; with numpy alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.lica.model.prior import TaskPosterior, TaskPrior
from kinfolk.lica.model.row_products import row_products
from kinfolk.lica.model.task_posterior import by_features, moments_of_new_task, predictive_moments
from kinfolk.maths.arrays import Floats
from kinfolk.tasks.schema import rows_of_tasks

_BLOCK = 4_096  # new rows that are gone through at once


def moments_of_rows(
    prior: TaskPrior, tasks: Sequence[TaskPosterior], X: Any, place: NDArray[Any]
) -> tuple[Floats, Floats]:
    """Mean and variance of each row's linear predictor, given the place of its task, after all others for a new one."""
    mean, variance = np.empty(len(place)), np.empty(len(place))
    for k, its in enumerate(rows_of_tasks(place, len(tasks) + 1)):
        if len(its) and k == len(tasks):
            mean[its], variance[its] = moments_of_new_task(prior, tasks, X[its])
        elif len(its):
            mean[its], variance[its] = predictive_moments(prior, tasks[k], X[its])
    return mean, variance


def moments_of_tasks(prior: TaskPrior, tasks: Sequence[TaskPosterior], X: Any) -> tuple[Floats, Floats]:
    """Mean and variance of every row's linear predictor in every task, (rows, tasks).

    Products of training rows that tasks share are made once.
    """
    mean, variance = np.empty((X.shape[0], len(tasks))), np.empty((X.shape[0], len(tasks)))
    table = _shared_table(prior, tasks)
    kernel = None if table is None else row_products(table, prior.noise, table)
    for first in range(0, X.shape[0], _BLOCK):
        block = slice(first, first + _BLOCK)
        rows = X[block]
        cross = None if table is None else row_products(rows, prior.noise, table)
        for k, task in enumerate(tasks):
            at_hand: tuple[Floats, ...] = ()
            if task.reach is not None and task.reach.X is table and kernel is not None and cross is not None:
                its = task.reach.rows
                at_hand = kernel[np.ix_(its, its)], cross[:, its]
            mean[block, k], variance[block, k] = predictive_moments(prior, task, rows, *at_hand)
    return mean, variance


def _shared_table(prior: TaskPrior, tasks: Sequence[TaskPosterior]) -> Any:
    """The table whose rows tasks have in common, if multiplying all of them is less than each task's by itself."""
    reaches = [task.reach for task in tasks if task.reach is not None]
    large = [reach for reach in reaches if not by_features(len(reach.rows), prior.n_features)]
    if not large:
        return None
    table = large[0].X
    apart = sum(len(reach.rows) ** 2 for reach in large if reach.X is table)
    return table if apart > table.shape[0] ** 2 else None
