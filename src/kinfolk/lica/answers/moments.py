"""Linear predictors of fitted tasks at new rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from kinfolk.lica.model.prior import TaskPosterior, TaskPrior
from kinfolk.lica.model.task_posterior import by_features, predictive_moments, row_kernel
from kinfolk.maths.arrays import Floats

_BLOCK = 4_096  # new rows that are gone through at once


def moments(prior: TaskPrior, task: TaskPosterior, X: Any) -> tuple[Floats, Floats]:
    """Mean and variance of a fitted task's linear predictor; a point estimate has no variance."""
    if task.reach is None:
        mean = np.asarray(X @ task.weights).ravel() + task.intercept
        return mean, np.zeros(len(mean))
    return predictive_moments(prior, task, _like(X, task.reach.X))


def _like(X: Any, table: Any) -> Any:
    """New rows, sparse where the training rows are."""
    if sparse.issparse(X) == sparse.issparse(table):
        return X
    return X.toarray() if sparse.issparse(X) else sparse.csr_matrix(X)


def moments_of_tasks(prior: TaskPrior, tasks: Sequence[TaskPosterior], X: Any) -> tuple[Floats, Floats]:
    """The same of every task, (rows, tasks); products of training rows that tasks share are made once."""
    mean, variance = np.empty((X.shape[0], len(tasks))), np.empty((X.shape[0], len(tasks)))
    table = _shared_table(prior, tasks)
    kernel = None if table is None else row_kernel(table, prior.noise)
    for first in range(0, X.shape[0], _BLOCK):
        block = slice(first, first + _BLOCK)
        rows = X[block]
        cross = None if table is None else row_kernel(_like(rows, table), prior.noise, table)
        for k, task in enumerate(tasks):
            reach = task.reach
            if reach is not None and reach.X is table and cross is not None and kernel is not None:
                its = (cross[:, reach.rows], kernel[np.ix_(reach.rows, reach.rows)])
                mean[block, k], variance[block, k] = predictive_moments(prior, task, rows, *its)
            else:
                mean[block, k], variance[block, k] = moments(prior, task, rows)
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
