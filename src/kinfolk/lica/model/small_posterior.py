"""What is known of one small task's weights, compiled: the algebra of ``task_posterior`` without a call into numpy.

With eight rows the arithmetic takes two microseconds, and calling numpy and LAPACK for it a hundred times that.
Features and intercept come as B = [XΨ^½, √v₀], so that A = XΨXᵀ + v₀ = BBᵀ. Inner loops run along rows of a matrix and
add to them, which compilers turn into vector instructions.
"""

from __future__ import annotations

from math import log, sqrt
from typing import NamedTuple

import numpy as np

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled


class Given(NamedTuple):
    """A task's weights given its sites, as ``task_posterior.Conditioned``, in arrays to be filled in.

    ``left`` is the share of its prior variance that each weight, and last the intercept, still has. By rows, the
    weights' shares are left out unless asked for.
    """

    pull: Floats
    damped: Floats
    variance: Floats
    left: Floats


@compiled
def covariance_of(root: Floats) -> Floats:
    """BBᵀ."""
    n_rows = root.shape[0]
    out = np.empty((n_rows, n_rows))
    for i in range(n_rows):
        for j in range(i + 1):
            total = 0.0
            for column in range(root.shape[1]):
                total += root[i, column] * root[j, column]
            out[i, j] = total
            out[j, i] = total
    return out


@compiled
def condition_by_rows(
    root: Floats, covariance: Floats, precision: Floats, shift: Floats, shared: Floats, want_left: bool, given: Given
) -> tuple[float, float, float]:
    """Condition through a matrix of rows by rows; returns log|C|, and the number of weights decided with and without
    the intercept.
    """
    n_rows, n_sources = shared.shape
    deviation = np.sqrt(precision)
    lower = np.empty((n_rows, n_rows))
    for i in range(n_rows):
        for j in range(i + 1):
            lower[i, j] = covariance[i, j] * deviation[i] * deviation[j]
        lower[i, i] += 1.0
    log_det = factorise(lower)
    inverse = invert_lower(lower)
    kept = np.zeros(n_rows)
    for i in range(n_rows):
        for j in range(i + 1):
            kept[j] += inverse[i, j] ** 2
            inverse[i, j] *= deviation[j]
    # MP and MAr at once: M is the square of L⁻¹S.
    columns = np.zeros((n_rows, n_sources + 1))
    for i in range(n_rows):
        columns[i, :n_sources] = shared[i]
        for j in range(n_rows):
            columns[j, n_sources] += covariance[i, j] * shift[i]
    damped = np.zeros_like(columns)
    reached = np.empty(n_sources + 1)
    for i in range(n_rows):
        reached[:] = 0.0
        for j in range(i + 1):
            for column in range(n_sources + 1):
                reached[column] += inverse[i, j] * columns[j, column]
        for j in range(i + 1):
            for column in range(n_sources + 1):
                damped[j, column] += inverse[i, j] * reached[column]
    effective = float(n_rows)
    for i in range(n_rows):
        effective -= kept[i]
        given.pull[i] = shift[i] - damped[i, n_sources]
        given.damped[i] = damped[i, :n_sources]
        given.variance[i] = min(max((1.0 - kept[i]) / precision[i], 0.0), covariance[i, i])
    first = 0 if want_left else root.shape[1] - 1
    given.left[first:] = 1.0
    seen = np.empty(root.shape[1] - first)
    for i in range(n_rows):
        seen[:] = 0.0
        for j in range(i + 1):
            for column in range(len(seen)):
                seen[column] += inverse[i, j] * root[j, first + column]
        for column in range(len(seen)):
            given.left[first + column] -= seen[column] ** 2
    return log_det, effective, effective - (1.0 - given.left[-1])


@compiled
def condition_by_features(
    root: Floats, precision: Floats, shift: Floats, shared: Floats, given: Given
) -> tuple[float, float, float]:
    """Condition through a matrix of features by features; returns what ``condition_by_rows`` does."""
    n_rows, n_sources = shared.shape
    size = root.shape[1]
    lower = np.eye(size)
    for i in range(n_rows):
        for j in range(size):
            weighted = precision[i] * root[i, j]
            for column in range(j + 1):
                lower[j, column] += weighted * root[i, column]
    log_det = factorise(lower)
    inverse = invert_lower(lower)
    given.left[:] = 0.0
    for i in range(size):
        for j in range(i + 1):
            given.left[j] += inverse[i, j] ** 2
    upper = inverse.T.copy()
    # Cov[f] = B C⁻¹ Bᵀ is the square of the reach, and M = D − D Cov[f] D.
    reach = np.zeros((n_rows, size))
    back = np.zeros((size, n_sources + 1))
    for i in range(n_rows):
        for j in range(size):
            for column in range(j, size):
                reach[i, column] += root[i, j] * upper[j, column]
        square = 0.0
        for j in range(size):
            square += reach[i, j] ** 2
            for h in range(n_sources):
                back[j, h] += reach[i, j] * precision[i] * shared[i, h]
            back[j, n_sources] += reach[i, j] * shift[i]
        given.variance[i] = square
    reached = np.empty(n_sources + 1)
    for i in range(n_rows):
        reached[:] = 0.0
        for j in range(size):
            for column in range(n_sources + 1):
                reached[column] += reach[i, j] * back[j, column]
        given.pull[i] = shift[i] - precision[i] * reached[n_sources]
        for h in range(n_sources):
            given.damped[i, h] = precision[i] * (shared[i, h] - reached[h])
    decided = 0.0
    for j in range(size - 1):
        decided += 1.0 - given.left[j]
    return log_det, decided + 1.0 - given.left[-1], decided


@compiled
def factorise(matrix: Floats) -> float:
    """Turn the lower half of a positive definite matrix into its Cholesky factor, in place; returns log|matrix|."""
    size = len(matrix)
    column = np.empty(size)
    log_det = 0.0
    for j in range(size):
        pivot = sqrt(matrix[j, j])
        log_det += 2.0 * log(pivot)
        matrix[j, j] = pivot
        for i in range(j + 1, size):
            column[i] = matrix[i, j] / pivot
        for i in range(j + 1, size):
            matrix[i, j] = column[i]
            for other in range(j + 1, i + 1):
                matrix[i, other] -= column[i] * column[other]
    return log_det


@compiled
def invert_lower(lower: Floats) -> Floats:
    """L⁻¹; what stands above the diagonal of L is not looked at."""
    size = len(lower)
    inverse = np.zeros((size, size))
    for i in range(size):
        for j in range(i):
            for column in range(j + 1):
                inverse[i, column] -= lower[i, j] * inverse[j, column]
        for column in range(i):
            inverse[i, column] /= lower[i, i]
        inverse[i, i] = 1.0 / lower[i, i]
    return inverse
