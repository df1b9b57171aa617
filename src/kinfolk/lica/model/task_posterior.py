"""What is known of one task's weights, in the space of its rows or of its features, whichever is smaller.

The prior is θ ~ N(Λm, Ψ), intercept ~ N(0, v₀); rows have sites exp(r f − ½ d f²). With P = XΛ, A = XΨXᵀ + v₀,
from kinfolk.maths.arrays import Floats
S = diag √d, C = I + SAS = LLᵀ and M = S C⁻¹ S = (D⁻¹ + A)⁻¹, nothing needs a matrix of features by features:

- a(m) = (I − MA) r − MPm, and E[θ] = Λm + ΨXᵀa, E[intercept] = v₀ Σa, E[f] = Pm + Aa;
- Var[f_i] = (1 − (C⁻¹)_ii)/d_i; Var[θ_j] = ψ_j − ψ_j² x_jᵀMx_j; log|prior covariance| − log|posterior| = log|C|.

The covariance does not hang on m, so E[θ] can be taken out of the problem: what the rows say of m is −½mᵀQm + qᵀm with
Q = PᵀMP and q = Pᵀ(I − MA)r. One Cholesky factor then serves for weights and sources at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import cholesky, lapack, solve_triangular

from kinfolk.lica.model.prior import TaskPosterior, TaskPrior
from kinfolk.lica.model.sites import Sites
from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled

_BLOCK = 4_096  # features, or new rows, gone through at once where a matrix of rows by them is needed


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
    log_det : float
        log|C|.
    effective : float
        tr(MA): the number of weights, intercept included, that the rows decide.
    weights_effective : float
        tr(MXΨXᵀ), the same without the intercept: Σ_j Var[θ_j]/ψ_j = n_features − weights_effective.
    weight_variance : ndarray of shape (n_features,) or None
        Var[θ_j], where asked for.
    """

    pull: Floats
    damped: Floats
    pull_spread: Floats
    damped_spread: Floats
    variance: Floats
    log_det: float
    effective: float
    weights_effective: float
    weight_variance: Floats | None


def condition_by_rows(
    kernel: Floats, sites: Sites, shared: Floats, intercept_variance: float, columns: Any = None, noise: Any = None
) -> Conditioned:
    """Condition a task on its sites through a matrix of rows by rows.

    Parameters
    ----------
    kernel : ndarray of shape (n_rows, n_rows)
        XΨXᵀ, left untouched.
    sites : Sites
        Of the task's rows, precisions above zero.
    shared : ndarray of shape (n_rows, n_sources)
        P = XΛ.
    intercept_variance : float
        v₀.
    columns, noise : the task's features (dense, or a CSC matrix) and ψ, optional
        Given where the variance of each weight is wanted.
    """
    covariance = kernel + intercept_variance
    root = np.sqrt(sites.precision)
    scaled = covariance * root
    scaled *= root[:, None]
    scaled.flat[:: len(root) + 1] += 1.0
    lower = cholesky(scaled, lower=True, overwrite_a=True, check_finite=False)
    log_det = 2.0 * float(np.sum(np.log(np.diagonal(lower))))
    inverse, _ = lapack.dtrtri(lower, lower=1)
    kept = np.einsum("ij,ij->j", inverse, inverse)  # diagonal of C⁻¹
    inverse *= root  # L⁻¹S, whose square is M
    pull = sites.shift - inverse.T @ (inverse @ (covariance @ sites.shift))
    damped = inverse.T @ (inverse @ shared)
    effective = len(root) - float(np.sum(kept))
    variance = np.clip((1.0 - kept) / sites.precision, 0.0, np.diagonal(covariance))
    weight_variance = None
    if columns is not None:
        weight_variance = noise - noise**2 * _column_forms(columns, inverse)
    return Conditioned(
        pull,
        damped,
        covariance @ pull,
        covariance @ damped,
        variance,
        log_det,
        effective,
        effective - intercept_variance * float(np.sum(np.sum(inverse, axis=1) ** 2)),
        weight_variance,
    )


def condition_by_features(
    features: Any, noise: Floats, sites: Sites, shared: Floats, intercept_variance: float
) -> Conditioned:
    """Condition a task on its sites through a matrix of features by features; variances of weights come for free."""
    lower = _feature_factor(features, noise, sites.precision, intercept_variance)
    inverse, _ = lapack.dtrtri(lower, lower=1)
    # Weights in units of their prior deviation, the intercept last: B = [XΨ^½, √v₀], C = I + BᵀDB, B C⁻¹ Bᵀ = Cov[f].
    root = _with_intercept(features, noise, intercept_variance)
    reach = root @ inverse.T
    kept = np.einsum("ij,ij->j", inverse, inverse)
    precision = sites.precision
    pull = sites.shift - precision * (reach @ (reach.T @ sites.shift))
    weighted = precision[:, None] * shared
    damped = weighted - precision[:, None] * (reach @ (reach.T @ weighted))
    return Conditioned(
        pull,
        damped,
        root @ (root.T @ pull),
        root @ (root.T @ damped),
        np.einsum("ij,ij->i", reach, reach),
        2.0 * float(np.sum(np.log(np.diagonal(lower)))),
        len(kept) - float(np.sum(kept)),
        len(kept) - 1 - float(np.sum(kept[:-1])),
        noise * kept[:-1],
    )


def predictive_moments(
    prior: TaskPrior, task: TaskPosterior, X: Any, cross_kernel: Floats | None = None, kernel: Floats | None = None
) -> tuple[Floats, Floats]:
    """Mean and variance of a task's linear predictor f = xᵀθ + intercept at new rows.

    The task's Cholesky factor is not kept: ``task.reach`` holds the site precisions of its training rows, a number a
    row, and the factor is made again here, which costs less than the variances themselves.

    Parameters
    ----------
    prior : TaskPrior
        What the task was fitted under.
    task : TaskPosterior
        A task with a ``reach``.
    X : array or scipy sparse matrix of shape (n_new, n_features)
        New rows.
    cross_kernel, kernel : ndarrays of shapes (n_new, n_rows) and (n_rows, n_rows), optional
        X_new Ψ Xᵀ and XΨXᵀ of the task's training rows, where several tasks share them and they are at hand.

    Returns
    -------
    mean, variance : ndarrays of shape (n_new,)
        Under the task's posterior; the residual variance of a regression is not in it.
    """
    reach = task.reach
    if reach is None:
        raise ValueError("The task holds a point estimate, without the precisions that variances are made from.")
    mean = np.asarray(X @ task.weights) + task.intercept
    noise, intercept_variance = prior.noise, prior.intercept_variance
    prior_variance = _squares(X) @ noise + intercept_variance
    if not len(reach.rows):
        return mean, prior_variance
    if by_features(len(reach.rows), prior.n_features):
        lower = _feature_factor(reach.X[reach.rows], noise, reach.precision, intercept_variance)
        explained = _with_intercept(X, noise, intercept_variance)
        spread = solve_triangular(lower, explained.T, lower=True, overwrite_b=True, check_finite=False)
        return mean, np.einsum("ij,ij->j", spread, spread)
    features = reach.X[reach.rows] if cross_kernel is None or kernel is None else None
    covariance = (row_kernel(features, noise) if kernel is None else kernel) + intercept_variance
    root = np.sqrt(reach.precision)
    scaled = covariance * root * root[:, None]
    scaled.flat[:: len(root) + 1] += 1.0
    lower = cholesky(scaled, lower=True, overwrite_a=True, check_finite=False)
    variance = np.empty(X.shape[0])
    for first in range(0, len(variance), _BLOCK):
        block = slice(first, first + _BLOCK)
        cross = cross_kernel[block] if cross_kernel is not None else row_kernel(X[block], noise, features)
        known = ((cross + intercept_variance) * root).T
        spread = solve_triangular(lower, known, lower=True, check_finite=False)
        variance[block] = prior_variance[block] - np.einsum("ij,ij->j", spread, spread)
    return mean, np.maximum(variance, 0.0)


def by_features(n_rows: int, n_features: int) -> bool:
    """Whether a task of this size is handled by features rather than by rows."""
    return n_features + 1 < n_rows


def row_kernel(features: Any, noise: Floats, others: Any = None) -> Floats:
    """XΨZᵀ, where Z is X unless other rows are given."""
    others = features if others is None else others
    if sparse.issparse(features):
        return np.asarray((features.multiply(noise).tocsr() @ others.T).toarray(), dtype=np.float64)
    return np.asarray((features * noise) @ others.T, dtype=np.float64)


def _squares(X: Any) -> Any:
    return X.multiply(X).tocsr() if sparse.issparse(X) else np.asarray(X) ** 2


def _with_intercept(features: Any, noise: Floats, intercept_variance: float) -> Floats:
    """B = [XΨ^½, √v₀], dense: there are fewer features than rows where it is used."""
    dense = features.toarray() if sparse.issparse(features) else np.asarray(features)
    root = np.empty((dense.shape[0], dense.shape[1] + 1))
    np.multiply(dense, np.sqrt(noise), out=root[:, :-1])
    root[:, -1] = np.sqrt(intercept_variance)
    return root


def _feature_factor(features: Any, noise: Floats, precision: Floats, intercept_variance: float) -> Floats:
    """Cholesky factor of I + BᵀDB."""
    root = _with_intercept(features, noise, intercept_variance)
    scaled = (root.T * precision) @ root
    scaled.flat[:: len(scaled) + 1] += 1.0
    return np.asarray(cholesky(scaled, lower=True, overwrite_a=True, check_finite=False))


def _column_forms(columns: Any, root: Floats) -> Floats:
    """x_jᵀMx_j of every column, for M = rootᵀ root."""
    if sparse.issparse(columns):
        return np.asarray(_sparse_forms(columns.data, columns.indices, columns.indptr, root.T @ root))
    forms = np.empty(columns.shape[1])
    for first in range(0, len(forms), _BLOCK):
        block = root @ columns[:, first : first + _BLOCK]
        forms[first : first + _BLOCK] = np.einsum("ij,ij->j", block, block)
    return forms


@compiled
def _sparse_forms(data: Floats, indices: NDArray[np.int32], indptr: NDArray[np.int32], matrix: Floats) -> Floats:
    n_columns = len(indptr) - 1
    forms = np.zeros(n_columns)
    for j in range(n_columns):
        total = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            row = matrix[indices[p]]
            within = 0.5 * data[p] * row[indices[p]]
            for q in range(indptr[j], p):
                within += data[q] * row[indices[q]]
            total += 2.0 * data[p] * within
        forms[j] = total
    return forms
