"""What is known of tasks' weights, in the space of their rows or of their features, whichever is smaller.

The prior is θ ~ N(Λm, Ψ), intercept ~ N(0, v₀); rows have sites exp(r f − ½ d f²). With P = XΛ, A = XΨXᵀ + v₀,
S = diag √d, C = I + SAS = LLᵀ and M = S C⁻¹ S = (D⁻¹ + A)⁻¹, nothing needs a matrix of features by features:

- a(m) = (I − MA) r − MPm, and E[θ] = Λm + ΨXᵀa, E[intercept] = v₀ Σa, E[f] = Pm + Aa;
- Var[f_i] = (1 − (C⁻¹)_ii)/d_i; Var[θ_j] = ψ_j − ψ_j² x_jᵀMx_j; log|prior covariance| − log|posterior| = log|C|.

The covariance does not hang on m, so E[θ] can be taken out of the problem: what the rows say of m is −½mᵀQm + qᵀm with
Q = PᵀMP and q = Pᵀ(I − MA)r. One Cholesky factor then serves for weights and sources at once.

Arrays may have axes before those named here, for tasks side by side. A row whose site is flat, d = r = 0, is as none,
so that tasks of unequal numbers of rows can be filled up. All of it needs numpy alone: a saved model predicts by it.

In the papers: Zhang, Ghahramani and Yang (2005), Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from kinfolk.lica.model.prior import TaskPosterior, TaskPrior
from kinfolk.lica.model.row_products import row_products
from kinfolk.maths.arrays import Floats, one_plus

_BLOCK = 4_096  # features, or new rows, gone through at once where a matrix of rows by them is needed
_LEAF, _LEAF_OF_STACK = 32, 8  # size of a triangle that is inverted as any matrix: alone, and where there are many
_TRIANGLE_ROWS = 64  # rows of a triangle that are solved for at once


class Conditioned(NamedTuple):
    """A task's weights given its sites, as functions of the source means m: a = pull − damped m.

    Parameters
    ----------
    pull, damped : ndarray of shapes (n_rows,) and (n_rows, n_sources)
        (I − MA) r and MP.
    pull_spread, damped_spread : ndarrays of the same shapes
        A times each, so that E[f] = Pm + pull_spread − damped_spread m.
    variance : ndarray of shape (n_rows,)
        Var[f].
    log_det : ndarray of shape ()
        log|C|.
    effective : ndarray of shape ()
        tr(MA): the number of weights, intercept included, that the rows decide.
    weights_effective : ndarray of shape ()
        tr(MXΨXᵀ), the same without the intercept: Σ_j Var[θ_j]/ψ_j = n_features − weights_effective.
    root : ndarray of shape (n_rows, n_rows) or None
        L⁻¹S, whose square is M; None by features.
    kept : ndarray of shape (n_features,) or None
        Var[θ_j]/ψ_j; None by rows.
    """

    pull: Floats
    damped: Floats
    pull_spread: Floats
    damped_spread: Floats
    variance: Floats
    log_det: Floats
    effective: Floats
    weights_effective: Floats
    root: Floats | None = None
    kept: Floats | None = None


def by_features(n_rows: int, n_features: int) -> bool:
    """Whether a task of this size is handled by features rather than by rows."""
    return n_features + 1 < n_rows


def condition_by_rows(
    kernel: Floats, precision: Floats, shift: Floats, shared: Floats, intercept_variance: float
) -> Conditioned:
    """Condition tasks on their sites through a matrix of rows by rows.

    Parameters
    ----------
    kernel : ndarray of shape (n_rows, n_rows)
        XΨXᵀ, left untouched.
    precision, shift : ndarrays of shape (n_rows,)
        d and r of the rows' sites.
    shared : ndarray of shape (n_rows, n_sources)
        P = XΛ.
    intercept_variance : float
        v₀.
    """
    covariance = kernel + intercept_variance
    lower, log_det, deviation = _row_factor(covariance, precision)
    root = invert_lower(lower)
    kept = np.einsum("...ij,...ij->...j", root, root)
    root *= deviation[..., None, :]
    columns = np.concatenate([shared, covariance @ shift[..., None]], axis=-1)
    columns = np.swapaxes(root, -1, -2) @ (root @ columns)  # MP and MAr
    damped, pull = columns[..., :-1], shift - columns[..., -1]
    spread = covariance @ np.concatenate([damped, pull[..., None]], axis=-1)
    seen = precision > 0.0
    prior_variance = np.diagonal(covariance, axis1=-2, axis2=-1)
    variance = np.where(seen, (1.0 - kept) / np.where(seen, precision, 1.0), 0.0)
    effective = np.sum(1.0 - kept, axis=-1)
    return Conditioned(
        pull,
        damped,
        spread[..., -1],
        spread[..., :-1],
        np.clip(variance, 0.0, prior_variance),
        log_det,
        effective,
        effective - intercept_variance * np.sum(np.sum(root, axis=-1) ** 2, axis=-1),
        root=root,
    )


def condition_by_features(
    features: Floats, precision: Floats, shift: Floats, shared: Floats, noise: Floats, intercept_variance: float
) -> Conditioned:
    """Condition tasks on their sites through a matrix of features by features, from dense ``features``."""
    # Weights in units of their prior deviation, the intercept last: B = [XΨ^½, √v₀], C = I + BᵀDB, B C⁻¹ Bᵀ = Cov[f].
    root = _in_prior_units(features, noise, intercept_variance)
    lower, log_det = _feature_factor(root, precision)
    inverse = invert_lower(lower)
    reach = root @ np.swapaxes(inverse, -1, -2)
    kept = np.einsum("...ij,...ij->...j", inverse, inverse)
    columns = np.concatenate([precision[..., None] * shared, shift[..., None]], axis=-1)
    columns = columns - precision[..., None] * (reach @ (np.swapaxes(reach, -1, -2) @ columns))
    spread = root @ (np.swapaxes(root, -1, -2) @ columns)
    return Conditioned(
        columns[..., -1],
        columns[..., :-1],
        spread[..., -1],
        spread[..., :-1],
        np.einsum("...ij,...ij->...i", reach, reach),
        log_det,
        np.sum(1.0 - kept, axis=-1),
        np.sum(1.0 - kept[..., :-1], axis=-1),
        kept=kept[..., :-1],
    )


def column_forms(features: Floats, root: Floats) -> Floats:
    """x_jᵀMx_j of every column of dense features, for M = rootᵀ root."""
    forms = np.empty((*features.shape[:-2], features.shape[-1]))
    for first in range(0, forms.shape[-1], _BLOCK):
        block = root @ features[..., first : first + _BLOCK]
        forms[..., first : first + _BLOCK] = np.einsum("...ij,...ij->...j", block, block)
    return forms


def predictive_moments(
    prior: TaskPrior, task: TaskPosterior, X: Any, kernel: Floats | None = None, cross_kernel: Floats | None = None
) -> tuple[Floats, Floats]:
    """Mean and variance of a task's linear predictor f = xᵀθ + intercept at new rows; Algorithm 1, step 2.

    The task's Cholesky factor is not kept: ``task.reach`` holds the site precisions of its training rows, a number a
    row, and the factor is made again here, which costs less than the variances themselves.

    Parameters
    ----------
    prior : TaskPrior
        What the task was fitted under.
    task : TaskPosterior
        What is known of it; a point estimate, without a ``reach``, has no variance.
    X : array or scipy sparse matrix of shape (n_new, n_features)
        New rows.
    kernel, cross_kernel : ndarrays of shapes (n_rows, n_rows) and (n_new, n_rows), optional
        XΨXᵀ of the task's training rows, and X_new Ψ Xᵀ, where they are at hand.

    Returns
    -------
    mean, variance : ndarrays of shape (n_new,)
        Under the task's posterior; the residual variance of a regression is not in it.
    """
    mean = np.asarray(X @ task.weights).ravel() + task.intercept
    reach = task.reach
    if reach is None:
        return mean, np.zeros(len(mean))
    noise, intercept_variance = prior.noise, prior.intercept_variance
    if by_features(len(reach.rows), len(noise)):
        seen = _in_prior_units(reach.X[reach.rows], noise, intercept_variance)
        lower, _ = _feature_factor(seen, reach.precision)
        spread = solve_lower(lower, _in_prior_units(X, noise, intercept_variance).T)
        return mean, np.einsum("ij,ij->j", spread, spread)
    rows = reach.X[reach.rows] if kernel is None or cross_kernel is None else None
    covariance = (row_products(rows, noise, rows) if kernel is None else kernel) + intercept_variance
    lower, _, deviation = _row_factor(covariance, reach.precision)
    squares = X.multiply(X) if hasattr(X, "multiply") else np.asarray(X) ** 2
    variance = np.asarray(squares @ noise).ravel() + intercept_variance
    for first in range(0, len(variance), _BLOCK):
        block = slice(first, first + _BLOCK)
        cross = row_products(X[block], noise, rows) if cross_kernel is None else cross_kernel[block]
        spread = solve_lower(lower, ((cross + intercept_variance) * deviation).T)
        variance[block] -= np.einsum("ij,ij->j", spread, spread)
    return mean, np.maximum(variance, 0.0)


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


def _row_factor(covariance: Floats, precision: Floats) -> tuple[Floats, Floats, Floats]:
    """L, log|C| and the diagonal of S."""
    deviation = np.sqrt(precision)
    scaled = covariance * deviation[..., None, :]
    scaled *= deviation[..., :, None]
    return *factorise(scaled), deviation


def _feature_factor(root: Floats, precision: Floats) -> tuple[Floats, Floats]:
    """Cholesky factor of I + BᵀDB, and its log determinant."""
    return factorise(np.swapaxes(root * precision[..., None], -1, -2) @ root)


def _in_prior_units(features: Any, noise: Floats, intercept_variance: float) -> Floats:
    """B = [XΨ^½, √v₀]: features, dense or sparse, times the prior deviation of their weights, the intercept last."""
    if hasattr(features, "toarray"):
        features = features.toarray()
    root = np.empty((*features.shape[:-1], features.shape[-1] + 1))
    np.multiply(features, np.sqrt(noise), out=root[..., :-1])
    root[..., -1] = np.sqrt(intercept_variance)
    return root


# numpy has neither an inverse of a triangle nor a solver for one. Products of blocks do both, as fast as LAPACK does.


def factorise(matrix: Floats) -> tuple[Floats, Floats]:
    """The lower Cholesky factor L of I + matrix, and log|I + matrix|; the matrix is written over."""
    places = np.arange(matrix.shape[-1])
    lower = np.asarray(np.linalg.cholesky(one_plus(matrix)), dtype=np.float64)
    return lower, np.asarray(2.0 * np.sum(np.log(lower[..., places, places]), axis=-1))


def solve_lower(lower: Floats, known: Floats) -> Floats:
    """L⁻¹ times a matrix, for one L.

    Examples
    --------
    >>> import numpy as np
    >>> solve_lower(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([[4.0], [5.0]]))
    array([[2.],
           [3.]])
    """
    solved = np.empty_like(known)
    for first in range(0, len(lower), _TRIANGLE_ROWS):
        block = slice(first, first + _TRIANGLE_ROWS)
        left = known[block] - lower[block, :first] @ solved[:first]
        solved[block] = invert_lower(lower[block, block]) @ left
    return solved


def invert_lower(lower: Floats) -> Floats:
    """L⁻¹.

    Examples
    --------
    >>> import numpy as np
    >>> invert_lower(np.array([[2.0, 0.0], [1.0, 1.0]]))
    array([[ 0.5,  0. ],
           [-0.5,  1. ]])
    """
    size = lower.shape[-1]
    if size <= (_LEAF_OF_STACK if lower.ndim > 2 and len(lower) > _LEAF_OF_STACK else _LEAF):
        return np.asarray(np.linalg.inv(lower), dtype=np.float64)
    half = size // 2
    first, last = invert_lower(lower[..., :half, :half]), invert_lower(lower[..., half:, half:])
    inverse = np.zeros_like(lower)
    inverse[..., :half, :half], inverse[..., half:, half:] = first, last
    inverse[..., half:, :half] = -last @ (lower[..., half:, :half] @ first)
    return inverse
