"""The most probable weights of one task under a Gaussian prior (Zhang, Ghahramani and Yang 2005, section 3.2).

Newton's method, whose steps come from conjugate gradients on products with the Hessian, so that memory grows with the
number of features and time with the number of nonzero ones. It works with u = (θ − μ)/√ψ, where the prior is a standard
normal: the Hessian is then at least the identity, and a gradient of norm g leaves the objective within g²/2 of its
minimum.
"""

from __future__ import annotations

from math import log
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from kinfolk.lica.inference.newton import Design, TaskRows, inverse_diagonal, newton
from kinfolk.lica.model.data import LinearTasks, Link
from kinfolk.lica.model.links import LINK_CODES
from kinfolk.lica.model.prior import TaskPrior
from kinfolk.maths.arrays import Floats

TOLERANCE = 1e-6  # norm of the gradient in u
MAX_STEPS = 200


class MapWeights(NamedTuple):
    """The most probable weights of one task.

    Parameters
    ----------
    weights : ndarray of shape (n_features,)
    intercept : float
    loss : float
        Negative log likelihood of the task's rows, without constants.
    objective : float
        ``loss`` and the negative log prior of weights and intercept, without constants.
    gradient : float
        Norm of the objective's gradient in u = (θ − μ)/√ψ.
    n_steps : int
        Newton steps taken.
    """

    weights: Floats
    intercept: float
    loss: float
    objective: float
    gradient: float
    n_steps: int


def make_design(X: Any) -> Design:
    """Lay out a dense or sparse table of features for the functions of this file."""
    table = sparse.csr_matrix(X)
    if not table.has_sorted_indices:
        table = table.sorted_indices()
    return Design(
        table.indptr.astype(np.int64),
        table.indices.astype(np.int32),
        np.ascontiguousarray(table.data, dtype=np.float64),
    )


def fit_map_weights(
    data: LinearTasks,
    task: int,
    prior: TaskPrior,
    sources: Floats,
    *,
    link: Link,
    design: Design | None = None,
    start: tuple[Floats, float] | None = None,
    tolerance: float = TOLERANCE,
    max_steps: int = MAX_STEPS,
) -> MapWeights:
    """Find the most probable weights of one task, given its sources.

    Minimises Σᵢ weightᵢ · loss(yᵢ, xᵢᵀθ + b) + ½ Σⱼ (θⱼ − μⱼ)²/ψⱼ + b²/(2v₀), where μ = Λs, and the
    prior's mean besides where it has one.

    Parameters
    ----------
    data : LinearTasks
    task : int
        The task's place in ``data``.
    prior : TaskPrior
        Its loadings, noise, intercept variance and, for a Gaussian link, residual variance.
    sources : ndarray of shape (n_sources,)
    link : {"logistic", "probit", "gaussian"}
    design : Design, optional
        ``make_design(data.X)``, where it is at hand.
    start : (weights, intercept), optional
        Where to start; by default at the prior's mean and the intercept of a model without features.
    tolerance : float
        Norm of the gradient, in u = (θ − μ)/√ψ, at which to stop.
    max_steps : int
        Newton steps at most.

    Returns
    -------
    MapWeights

    Examples
    --------
    >>> import numpy as np
    >>> from kinfolk.lica.inference.map_weights import fit_map_weights
    >>> from kinfolk.lica.model.prior import TaskPrior
    >>> from kinfolk.lica.model.data import make_linear_tasks
    >>> data = make_linear_tasks([[-1.0], [1.0]], rows=[[0, 1]], y=[[-1.0, 1.0]])
    >>> prior = TaskPrior(loadings=np.zeros((1, 0)), noise=np.ones(1))
    >>> found = fit_map_weights(data, 0, prior, np.zeros(0), link="logistic")
    >>> found.weights.round(3), abs(round(found.intercept, 3))
    (array([0.675]), 0.0)
    """
    design = make_design(data.X) if design is None else design
    mean = prior.loadings @ sources if prior.mean is None else prior.mean + prior.loadings @ sources
    if start is None:
        start = mean, starting_intercept(data.y[task], data.weights[task], link)
    return solve_task(
        design,
        rows_of_task(data, task, link, prior.residual_variance),
        np.append(mean, 0.0),
        np.sqrt(np.append(prior.noise, prior.intercept_variance)),
        np.append(*start),
        tolerance,
        max_steps,
    )


def rows_of_task(data: LinearTasks, task: int, link: Link, residual_variance: float) -> TaskRows:
    """One task's rows as Newton's method takes them."""
    its = data.rows[task], data.y[task], data.weights[task]
    return TaskRows(*its, LINK_CODES[link], float(residual_variance))


def solve_task(
    design: Design, task: TaskRows, centre: Floats, scale: Floats, start: Floats, tolerance: float, max_steps: int
) -> MapWeights:
    """Find the most probable weights under N(centre, scale²), the intercept being the last of them."""
    weights, loss, objective, gradient, steps = newton(design, task, centre, scale, start, tolerance, max_steps)
    return MapWeights(weights[:-1], float(weights[-1]), loss, objective, gradient, steps)


def starting_intercept(y: Floats, row_weights: Floats, link: Link) -> float:
    """The intercept of a model without features, its targets joined by half a row of each class."""
    total = float(row_weights.sum())
    if link == "gaussian":
        return float(row_weights @ y) / total if total > 0.0 else 0.0
    share = (float(row_weights @ (y > 0.0)) + 0.5) / (total + 1.0)
    return log(share / (1.0 - share)) if link == "logistic" else NormalDist().inv_cdf(share)


def weight_variance(
    data: LinearTasks,
    task: int,
    prior: TaskPrior,
    weights: Floats,
    intercept: float,
    *,
    link: Link,
    design: Design,
    signs: Floats,
) -> Floats:
    """Variances of the weights in the Laplace approximation, the diagonal of the inverse Hessian, intercept last.

    Exact up to 200 features. Beyond that, an unbiased estimate z ∘ H⁻¹z from one vector z of random
    ``signs`` (n_features + 1 of them): its errors cancel in sums over features and over tasks, which is what noise is
    learnt from.
    """
    scale = np.sqrt(np.append(prior.noise, prior.intercept_variance))
    rows = rows_of_task(data, task, link, prior.residual_variance)
    return np.asarray(inverse_diagonal(design, rows, scale, np.append(weights, intercept), signs))
