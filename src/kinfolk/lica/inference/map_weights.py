"""The most probable weights of one task under a Gaussian prior (Zhang, Ghahramani and Yang 2005, section 3.2).

Newton's method, whose steps come from conjugate gradients on products with the Hessian, so that memory grows with the
number of features and time with the number of nonzero ones. It works with u = (θ − μ)/√ψ, where the prior is a standard
normal: the Hessian is then at least the identity, and a gradient of norm g leaves the objective within g²/2 of its
minimum. Among weights, the intercept is the last. Plain loops: array expressions and calls of linear algebra would take
several times as long to compile.
"""

from __future__ import annotations

from math import log, sqrt
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from kinfolk.lica.model.data import LinearTasks, Link
from kinfolk.lica.model.links import LINK_CODES
from kinfolk.lica.model.links import loss as loss_of
from kinfolk.lica.model.prior import TaskPrior
from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled

TOLERANCE = 1e-6  # norm of the gradient in u
MAX_STEPS = 200
EXACT_FEATURES = 30  # up to here the Hessian is written out and factorised: as fast, and indifferent to conditioning
EXACT_VARIANCES = 200  # up to here variances are exact: they are wanted once, not at every step
_ARMIJO = 1e-4
_HALVINGS = 60
_ROUNDING = 1e-13  # of a loss, relative: a smaller rise is none
PROBE_ERROR = 0.01  # in units of a determined weight


class Design(NamedTuple):
    """A table of features, row by row: where each row starts, the places of nonzero entries in order, their values."""

    starts: NDArray[np.int64]
    places: NDArray[np.int32]
    values: Floats


class TaskRows(NamedTuple):
    """One task's rows of a design, their targets and weights, and the likelihood: link code and σ²."""

    rows: NDArray[np.int64]
    y: Floats
    weights: Floats
    link: int
    residual_variance: float


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


@compiled
def _predictors(design: Design, task: TaskRows, weights: Floats, out: Floats) -> None:
    """Linear predictor of each row; the last weight is the intercept."""
    for i in range(task.rows.size):
        total = weights[-1]
        for entry in range(design.starts[task.rows[i]], design.starts[task.rows[i] + 1]):
            total += design.values[entry] * weights[design.places[entry]]
        out[i] = total


@compiled
def _losses(task: TaskRows, f: Floats, moved: Floats, length: float, slope: Floats, curvature: Floats) -> float:
    """Loss at predictors f + length · moved, and its derivatives row by row."""
    total = 0.0
    for i in range(task.rows.size):
        value, first, second = loss_of(task.link, task.y[i], f[i] + length * moved[i], task.residual_variance)
        total += task.weights[i] * value
        slope[i] = task.weights[i] * first
        curvature[i] = task.weights[i] * second
    return total


@compiled
def _add_curvature_product(design: Design, task: TaskRows, curvature: Floats, direction: Floats, out: Floats) -> None:
    """Add XᵀDX · direction in one pass over the rows."""
    last = out.size - 1
    for i in range(task.rows.size):
        if curvature[i] > 0.0:
            begin, end = design.starts[task.rows[i]], design.starts[task.rows[i] + 1]
            total = direction[last]
            for entry in range(begin, end):
                total += design.values[entry] * direction[design.places[entry]]
            total *= curvature[i]
            for entry in range(begin, end):
                out[design.places[entry]] += total * design.values[entry]
            out[last] += total


@compiled
def _solve_by_conjugate_gradients(
    design: Design, task: TaskRows, curvature: Floats, scale: Floats, target: Floats, share: float, enough: float
) -> Floats:
    """Solve (I + √Ψ XᵀDX √Ψ) u = target, preconditioned by the diagonal.

    Stops where the energy of the remaining error is about ``share`` of the solution's, or ``enough``.
    """
    size = target.size
    diagonal = np.ones(size)
    for i in range(task.rows.size):
        for entry in range(design.starts[task.rows[i]], design.starts[task.rows[i] + 1]):
            j = design.places[entry]
            diagonal[j] += curvature[i] * (design.values[entry] * scale[j]) ** 2
        diagonal[-1] += curvature[i] * scale[-1] ** 2
    solution, residual, direction = np.zeros(size), np.empty(size), np.empty(size)
    scaled, product = np.empty(size), np.empty(size)
    error = 0.0
    for j in range(size):
        residual[j] = target[j]
        direction[j] = target[j] / diagonal[j]
        error += target[j] * direction[j]
    gain = 0.0
    for _ in range(2 * size + 20):
        if error <= max(share * gain, enough):
            break
        for j in range(size):
            scaled[j] = scale[j] * direction[j]
            product[j] = 0.0
        _add_curvature_product(design, task, curvature, scaled, product)
        energy = 0.0
        for j in range(size):
            product[j] = direction[j] + scale[j] * product[j]
            energy += direction[j] * product[j]
        length = error / energy
        gain += length * error
        before = error
        error = 0.0
        for j in range(size):
            solution[j] += length * direction[j]
            residual[j] -= length * product[j]
            error += residual[j] * residual[j] / diagonal[j]
        for j in range(size):
            direction[j] = residual[j] / diagonal[j] + error / before * direction[j]
    return solution


@compiled
def _dot(left: Floats, right: Floats) -> float:
    total = 0.0
    for j in range(left.size):
        total += left[j] * right[j]
    return total


@compiled
def _factor(design: Design, task: TaskRows, curvature: Floats, scale: Floats) -> Floats:
    """Cholesky factor of I + √Ψ XᵀDX √Ψ; the intercept's row and column are the last."""
    size = scale.size
    lower = np.zeros((size, size))
    for i in range(task.rows.size):
        begin, end = design.starts[task.rows[i]], design.starts[task.rows[i] + 1]
        for entry in range(begin, end):
            j = design.places[entry]
            left = curvature[i] * design.values[entry] * scale[j]
            for other in range(begin, entry + 1):
                lower[j, design.places[other]] += left * design.values[other] * scale[design.places[other]]
            lower[size - 1, j] += left * scale[size - 1]
        lower[size - 1, size - 1] += curvature[i] * scale[size - 1] ** 2
    for j in range(size):
        lower[j, j] += 1.0
        for column in range(j):
            for other in range(column):
                lower[j, column] -= lower[j, other] * lower[column, other]
            lower[j, column] /= lower[column, column]
            lower[j, j] -= lower[j, column] ** 2
        lower[j, j] = sqrt(lower[j, j])
    return lower


@compiled
def _solve_by_factor(lower: Floats, target: Floats) -> Floats:
    """Solve LLᵀu = target."""
    size = target.size
    u = np.empty(size)
    for j in range(size):
        total = target[j]
        for other in range(j):
            total -= lower[j, other] * u[other]
        u[j] = total / lower[j, j]
    for back in range(size):
        j = size - 1 - back
        u[j] /= lower[j, j]
        for other in range(j):
            u[other] -= lower[j, other] * u[j]
    return u


@compiled
def newton(
    design: Design, task: TaskRows, centre: Floats, scale: Floats, start: Floats, tolerance: float, max_steps: int
) -> tuple[Floats, float, float, float, int]:
    """Newton's method with a line search, from ``start`` under N(centre, scale²).

    Returns weights with the intercept last, loss, objective, norm of the gradient, and number of steps.
    """
    size, n_rows = centre.size, task.rows.size
    whitened, gradient, target, fitted = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for j in range(size):
        whitened[j] = (start[j] - centre[j]) / scale[j]
        fitted[j] = centre[j] + scale[j] * whitened[j]
    predictor, moved, slope, curvature = np.empty(n_rows), np.zeros(n_rows), np.empty(n_rows), np.empty(n_rows)
    _predictors(design, task, fitted, predictor)
    loss = _losses(task, predictor, moved, 0.0, slope, curvature)
    enough = (0.03 * tolerance) ** 2
    steps, settled = 0, False
    while True:
        for j in range(size):
            gradient[j] = 0.0
        for i in range(n_rows):
            if slope[i] != 0.0:
                for entry in range(design.starts[task.rows[i]], design.starts[task.rows[i] + 1]):
                    gradient[design.places[entry]] += slope[i] * design.values[entry]
                gradient[size - 1] += slope[i]
        for j in range(size):
            gradient[j] = scale[j] * gradient[j] + whitened[j]
            target[j] = -gradient[j]
        norm = sqrt(_dot(gradient, gradient))
        if norm <= tolerance or settled or steps == max_steps:
            break
        steps += 1
        if size <= EXACT_FEATURES + 1:
            step = _solve_by_factor(_factor(design, task, curvature, scale), target)
        else:
            # A step may leave a small share of what a full one gains, and a smaller one as the minimum comes near,
            # which keeps the convergence faster than linear.
            step = _solve_by_conjugate_gradients(design, task, curvature, scale, target, min(0.1, norm), enough)
        for j in range(size):
            fitted[j] = scale[j] * step[j]
        _predictors(design, task, fitted, moved)
        slope_along = _dot(gradient, step)
        # What is left to gain: where the Hessian is steep, the gradient is the last to become small.
        settled = -slope_along <= enough
        prior_slope, prior_curvature = _dot(whitened, step), _dot(step, step)
        length, new_loss = 1.0, loss
        accepted = False
        for _ in range(_HALVINGS):
            new_loss = _losses(task, predictor, moved, length, slope, curvature)
            change = new_loss - loss + length * prior_slope + 0.5 * length * length * prior_curvature
            if change <= _ARMIJO * length * slope_along + _ROUNDING * (1.0 + loss):
                accepted = True
                break
            length *= 0.5
        if not accepted:
            break
        for j in range(size):
            whitened[j] += length * step[j]
        for i in range(n_rows):
            predictor[i] += length * moved[i]
        loss = new_loss
    for j in range(size):
        fitted[j] = centre[j] + scale[j] * whitened[j]
    return fitted, loss, loss + 0.5 * _dot(whitened, whitened), norm, steps


@compiled
def inverse_diagonal(design: Design, task: TaskRows, scale: Floats, weights: Floats, signs: Floats) -> Floats:
    """Variances of the weights by Laplace's method, exact or from one vector of random signs."""
    size, n_rows = scale.size, task.rows.size
    predictor, still = np.empty(n_rows), np.zeros(n_rows)
    slope, curvature = np.empty(n_rows), np.empty(n_rows)
    _predictors(design, task, weights, predictor)
    _losses(task, predictor, still, 0.0, slope, curvature)
    variance = np.empty(size)
    if size <= EXACT_VARIANCES + 1:
        lower = _factor(design, task, curvature, scale)
        unit = np.zeros(size)
        for j in range(size):
            unit[j] = 1.0
            variance[j] = scale[j] ** 2 * _solve_by_factor(lower, unit)[j]
            unit[j] = 0.0
        return variance
    solved = _solve_by_conjugate_gradients(design, task, curvature, scale, signs, 0.0, PROBE_ERROR)
    for j in range(size):
        variance[j] = scale[j] ** 2 * signs[j] * solved[j]
    return variance
