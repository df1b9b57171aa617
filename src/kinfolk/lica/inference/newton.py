"""Newton's method for one task's weights, on sparse rows: the loops behind ``map_weights``.

All of it works with u = (θ − μ)/√ψ, where the prior is a standard normal, and with the intercept as the last weight.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfolk.lica.model.links import loss as loss_of
from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled

Rows: TypeAlias = NDArray[np.int64]

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


@compiled
def _predictors(design: Design, rows: Rows, weights: Floats) -> Floats:
    """Linear predictor of each row; the last weight is the intercept."""
    out = np.empty(rows.size)
    for i in range(rows.size):
        total = weights[-1]
        for entry in range(design.starts[rows[i]], design.starts[rows[i] + 1]):
            total += design.values[entry] * weights[design.places[entry]]
        out[i] = total
    return out


@compiled
def _add_transposed(design: Design, rows: Rows, coefficients: Floats, out: Floats) -> None:
    for i in range(rows.size):
        coefficient = coefficients[i]
        if coefficient != 0.0:
            for entry in range(design.starts[rows[i]], design.starts[rows[i] + 1]):
                out[design.places[entry]] += coefficient * design.values[entry]
            out[-1] += coefficient


@compiled
def _add_curvature_product(design: Design, rows: Rows, curvature: Floats, direction: Floats, out: Floats) -> None:
    """Add XᵀDX · direction in one pass over the rows."""
    for i in range(rows.size):
        if curvature[i] > 0.0:
            first, last = design.starts[rows[i]], design.starts[rows[i] + 1]
            total = direction[-1]
            for entry in range(first, last):
                total += design.values[entry] * direction[design.places[entry]]
            total *= curvature[i]
            for entry in range(first, last):
                out[design.places[entry]] += total * design.values[entry]
            out[-1] += total


@compiled
def _solve_by_conjugate_gradients(
    design: Design,
    rows: Rows,
    curvature: Floats,
    scale: Floats,
    target: Floats,
    share: float,
    enough: float,
) -> Floats:
    """Solve (I + √Ψ XᵀDX √Ψ) u = target, preconditioned by the diagonal.

    Stops where the energy of the remaining error is about ``share`` of the solution's, or ``enough``.
    """
    size = target.size
    diagonal = np.ones(size)
    for i in range(rows.size):
        for entry in range(design.starts[rows[i]], design.starts[rows[i] + 1]):
            j = design.places[entry]
            diagonal[j] += curvature[i] * (design.values[entry] * scale[j]) ** 2
        diagonal[-1] += curvature[i] * scale[-1] ** 2
    solution = np.zeros(size)
    residual = target.copy()
    direction = residual / diagonal
    error = float(residual @ direction)
    gain = 0.0
    for _ in range(2 * size + 20):
        if error <= max(share * gain, enough):
            break
        product = np.zeros(size)
        _add_curvature_product(design, rows, curvature, scale * direction, product)
        product = direction + scale * product
        length = error / float(direction @ product)
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
def _hessian(design: Design, rows: Rows, curvature: Floats, scale: Floats) -> Floats:
    """I + √Ψ XᵀDX √Ψ, written out; the intercept's row and column are the last."""
    size = scale.size
    out = np.eye(size)
    for i in range(rows.size):
        first, last = design.starts[rows[i]], design.starts[rows[i] + 1]
        for entry in range(first, last):
            j = design.places[entry]
            left = curvature[i] * design.values[entry] * scale[j]
            for other in range(first, entry + 1):
                out[j, design.places[other]] += left * design.values[other] * scale[design.places[other]]
            out[size - 1, j] += left * scale[-1]
        out[size - 1, size - 1] += curvature[i] * scale[-1] ** 2
    for j in range(size):
        for other in range(j):
            out[other, j] = out[j, other]
    return out


@compiled
def newton(
    design: Design,
    rows: Rows,
    y: Floats,
    row_weights: Floats,
    mean: Floats,
    noise: Floats,
    intercept_variance: float,
    residual_variance: float,
    link: int,
    weights: Floats,
    intercept: float,
    tolerance: float,
    max_steps: int,
) -> tuple[Floats, float, float, float, float, int]:
    """Newton's method with a line search; returns the fields of ``MapWeights``."""
    size = mean.size + 1
    scale = np.empty(size)
    scale[:-1] = np.sqrt(noise)
    scale[-1] = sqrt(intercept_variance)
    centre = np.zeros(size)
    centre[:-1] = mean
    whitened = np.empty(size)
    whitened[:-1] = (weights - mean) / scale[:-1]
    whitened[-1] = intercept / scale[-1]
    predictor = _predictors(design, rows, centre + scale * whitened)
    slope, curvature = np.empty(rows.size), np.empty(rows.size)
    loss = 0.0
    for i in range(rows.size):
        value, first, second = loss_of(link, y[i], predictor[i], residual_variance)
        loss += row_weights[i] * value
        slope[i], curvature[i] = row_weights[i] * first, row_weights[i] * second
    steps = 0
    norm = np.inf
    settled = False
    while True:
        gradient = np.zeros(size)
        _add_transposed(design, rows, slope, gradient)
        gradient = scale * gradient + whitened
        norm = sqrt(gradient @ gradient)
        if norm <= tolerance or settled or steps == max_steps:
            break
        steps += 1
        if size <= EXACT_FEATURES + 1:
            step = np.linalg.solve(_hessian(design, rows, curvature, scale), -gradient)
        else:
            # A step may leave a small share of what a full one gains, and a smaller one as the minimum comes near,
            # which keeps the convergence faster than linear.
            step = _solve_by_conjugate_gradients(
                design, rows, curvature, scale, -gradient, min(0.1, norm), (0.03 * tolerance) ** 2
            )
        moved = _predictors(design, rows, scale * step)
        slope_along = float(gradient @ step)
        # What is left to gain: where the Hessian is steep, the gradient is the last to become small.
        settled = -slope_along <= (0.03 * tolerance) ** 2
        prior_slope, prior_curvature = whitened @ step, step @ step
        length = 1.0
        accepted = False
        for _ in range(_HALVINGS):
            new_loss = 0.0
            for i in range(rows.size):
                value, first, second = loss_of(link, y[i], predictor[i] + length * moved[i], residual_variance)
                new_loss += row_weights[i] * value
                slope[i], curvature[i] = row_weights[i] * first, row_weights[i] * second
            change = new_loss - loss + length * prior_slope + 0.5 * length * length * prior_curvature
            if change <= _ARMIJO * length * slope_along + _ROUNDING * (1.0 + loss):
                accepted = True
                break
            length *= 0.5
        if not accepted:
            break
        whitened += length * step
        predictor += length * moved
        loss = new_loss
    fitted = centre + scale * whitened
    return fitted[:-1], fitted[-1], loss, loss + 0.5 * float(whitened @ whitened), norm, steps


@compiled
def inverse_diagonal(
    design: Design,
    rows: Rows,
    y: Floats,
    row_weights: Floats,
    variance: Floats,
    residual_variance: float,
    link: int,
    weights: Floats,
    signs: Floats,
) -> Floats:
    """Variances of the weights by Laplace's method, exact or from one vector of random signs."""
    scale = np.sqrt(variance)
    predictor = _predictors(design, rows, weights)
    curvature = np.empty(rows.size)
    for i in range(rows.size):
        curvature[i] = row_weights[i] * loss_of(link, y[i], predictor[i], residual_variance)[2]
    if scale.size <= EXACT_VARIANCES + 1:
        inverse = np.linalg.inv(_hessian(design, rows, curvature, scale))
        return variance * np.diag(inverse)
    solved = _solve_by_conjugate_gradients(design, rows, curvature, scale, signs, 0.0, PROBE_ERROR)
    return variance * signs * solved
