"""Newton's method for one task's weights, on sparse rows: the loops behind ``map_weights``.

All of it works with u = (θ − μ)/√ψ, where the prior is a standard normal, and with the intercept as the last weight.
Plain loops: array expressions and calls of linear algebra would take several times as long to compile.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.lica.model.links import loss as loss_of
from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled

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
