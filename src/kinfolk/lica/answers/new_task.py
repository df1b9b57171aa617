"""What the prior says of a task that nobody has seen, with numpy alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.lica.model.prior import TaskPosterior, TaskPrior
from kinfolk.maths.arrays import Floats


def moments_of_rows(
    prior: TaskPrior,
    posteriors: Sequence[TaskPosterior],
    X: Any,
    place: NDArray[Any],
    of_task: Callable[[TaskPrior, TaskPosterior, Any], tuple[Floats, Floats]],
) -> tuple[Floats, Floats]:
    """Mean and variance of each row's linear predictor, given the place of its task; −1 for a new one."""
    mean, variance = np.empty(len(place)), np.empty(len(place))
    for k in np.unique(place):
        its = np.flatnonzero(place == k)
        if k < 0:
            mean[its], variance[its] = moments_of_new_task(prior, posteriors, X[its])
        else:
            mean[its], variance[its] = of_task(prior, posteriors[k], X[its])
    return mean, variance


def moments_of_new_task(prior: TaskPrior, tasks: Sequence[TaskPosterior], X: Any) -> tuple[Floats, Floats]:
    """Mean and variance of the linear predictor of a task of which there are no rows.

    Its weights are what the prior says, with sources of mean zero and variance 2b₀²; its intercept is like those of the
    known tasks, since label rates say more about a new one than the wide prior of intercepts does.
    """
    intercepts = np.array([task.intercept for task in tasks])
    shared = np.zeros(prior.n_features) if prior.mean is None else prior.mean
    mean = np.asarray(X @ shared).ravel() + intercepts.mean()
    squares = X.multiply(X) if hasattr(X, "multiply") else np.asarray(X) ** 2
    mixed = np.asarray(X @ prior.loadings)
    spread = 2.0 * prior.source_scale**2 * np.einsum("ih,ih->i", mixed, mixed)
    return mean, np.asarray(squares @ prior.noise).ravel() + spread + intercepts.var()
