"""What is known of the weights of all tasks, and of their common mean, where rows say it by Gaussian sites.

    w_t = μ + (b_t, 0),   b_t ~ N(0, diag τ²),   μ ~ N(0, diag σ²),   log site of task t: −½ wᵀA_t w + c_tᵀw

for the columns of which tasks have weights of their own; the others have common weights alone. Given μ, tasks are
independent, so that with A_t restricted to rows of own columns (own, columns), C_t = (diag τ⁻² + A_t)⁻¹ there,

    b_t | μ ~ N(C_t c_t − C_t A_t μ, C_t),     μ ~ N(V h, V),
    V⁻¹ = diag σ⁻² + Σ_t (A_t − A_tᵀ C_t A_t),   h = Σ_t (c_t − A_tᵀ C_t c_t).

C_t is written diag τ (1 + diag τ A_t diag τ)⁻¹ diag τ, which holds for τ = 0 too. C_t A_t, the *gain*, tells how much
of what is common a task puts aside for what its own rows say.

Time is O(tasks × (own³ + own × columns²)), memory O(tasks × own × columns).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.linear.model.rows import lay_out_tasks
from kinfolk.maths.arrays import Floats, one_plus

# Rows of a matrix product at once.
_PART = 16_384


class Sites(NamedTuple):
    """Gaussian sites: A and c of every task's own columns, and their sums over tasks for all columns."""

    precision: Floats
    shift: Floats
    total_precision: Floats
    total_shift: Floats

    def towards(self, other: Sites, step: float) -> Sites:
        """Sites on the way to others; all of it for a step of one."""
        if step == 1.0:
            return other
        return Sites(*(mine + step * (its - mine) for mine, its in zip(self, other, strict=True)))


class Moments(NamedTuple):
    """What is known of weights, as far as scales are learnt from it.

    Parameters
    ----------
    own_squares : ndarray of shape (n_tasks, n_own)
        E b², what is not known of μ included.
    own_known : ndarray of shape (n_tasks, n_own)
        Variances of b where μ is known: the diagonal of C_t.
    common, common_covariance : ndarray of shape (n_columns,) and (n_columns, n_columns)
    log_det : float
        Σ_t log |C_t|.
    """

    own_squares: Floats
    own_known: Floats
    common: Floats
    common_covariance: Floats
    log_det: float

    def divergence(self, spread: Floats, scale: Floats) -> float:
        """Kullback–Leibler divergence from the prior with standard deviations τ and σ."""
        common = self.common**2 + np.diag(self.common_covariance)
        size, log_det = len(scale), np.linalg.slogdet(self.common_covariance)[1]
        of_common = (common / scale**2).sum() - size - log_det + 2.0 * np.log(scale).sum()
        logs = 2.0 * len(self.own_squares) * np.log(spread).sum() - self.log_det
        of_own = (self.own_squares / spread**2).sum() - self.own_squares.size + logs
        return float(0.5 * (of_common + of_own))


class TaskWeights(NamedTuple):
    """A Gaussian over the weights of all tasks.

    Parameters
    ----------
    common, common_covariance : ndarray of shape (n_columns,) and (n_columns, n_columns)
        Mean and covariance of μ: Vh and V.
    own : ndarray of shape (n_tasks, n_own)
        Mean of b_t.
    own_covariance : ndarray of shape (n_tasks, n_own, n_own)
        C_t, the covariance of b_t where μ is known.
    gain : ndarray of shape (n_tasks, n_own, n_columns)
        C_t A_t.
    log_det : ndarray of shape (n_tasks,)
        log |C_t|.
    """

    common: Floats
    common_covariance: Floats
    own: Floats
    own_covariance: Floats
    gain: Floats
    log_det: Floats

    @property
    def n_own(self) -> int:
        """Columns of which tasks have weights of their own."""
        return int(self.own.shape[1])

    @property
    def means(self) -> Floats:
        """Expected weights of every task (tasks, columns)."""
        means = np.tile(self.common, (len(self.own), 1))
        means[:, : self.n_own] += self.own
        return means

    def own_squares(self) -> Floats:
        """E b² of every task and own column, what is not known of μ included."""
        return self.own**2 + self.own_variances()

    def own_variances(self) -> Floats:
        """Variance of every b."""
        through = quadratic_forms(self.gain, self.common_covariance)
        return np.asarray(np.einsum("taa->ta", self.own_covariance) + through)

    def variances(self, X: Floats, tasks: NDArray[np.int64]) -> Floats:
        """Variance of linear predictors xᵀw_t of some tasks' rows (tasks, rows, columns)."""
        own = X[..., : self.n_own]
        left = X - own @ self.gain[tasks]
        spread = np.einsum("tna,tna->tn", own @ self.own_covariance[tasks], own)
        return np.asarray(np.maximum(spread + quadratic_forms(left, self.common_covariance), 0.0))

    def with_new_task(self, spread: Floats) -> TaskWeights:
        """The same with one task more, of which nothing is known but the standard deviations τ of its own weights."""
        n_own, n_columns = self.n_own, len(self.common)
        return self._replace(
            own=np.append(self.own, np.zeros((1, n_own)), axis=0),
            own_covariance=np.append(self.own_covariance, np.diag(spread**2)[None], axis=0),
            gain=np.append(self.gain, np.zeros((1, n_own, n_columns)), axis=0),
            log_det=np.append(self.log_det, 2.0 * np.log(spread).sum()),
        )

    def with_clustered_task(self, mean: Floats, covariance: Floats) -> TaskWeights:
        """The same with one task more, of whose own columns the weights themselves are known so far."""
        gain = np.zeros((1, self.n_own, len(self.common)))
        gain[0, np.arange(self.n_own), np.arange(self.n_own)] = 1.0
        return self._replace(
            own=np.append(self.own, (mean - self.common[: self.n_own])[None], axis=0),
            own_covariance=np.append(self.own_covariance, covariance[None], axis=0),
            gain=np.append(self.gain, gain, axis=0),
            log_det=np.append(self.log_det, np.linalg.slogdet(covariance)[1]),
        )

    def linear_predictors(self, X: Floats, place: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Mean and variance of the linear predictor of every row (rows, columns), given the place of its task."""
        mean, variance = X @ self.common, np.zeros(len(X))
        mean += np.einsum("na,na->n", X[:, : self.n_own], self.own[place])
        for tasks, rows, there in lay_out_tasks(place, len(self.own)):
            variance[rows[there]] = self.variances(X[rows], tasks)[there]
        return mean, variance

    def moments(self) -> Moments:
        """What scales are learnt from."""
        known = np.einsum("taa->ta", self.own_covariance)
        return Moments(self.own_squares(), known, self.common, self.common_covariance, float(self.log_det.sum()))


def weights_given_sites(sites: Sites, spread: Floats, scale: Floats) -> TaskWeights:
    """The posterior of all weights, given sites and the standard deviations τ of own and σ of common weights.

    Examples
    --------
    One task whose own intercept and common one are not told apart: each has half of what was seen.

    >>> one = np.ones((1, 1))
    >>> found = weights_given_sites(Sites(one[None], one, one, np.ones(1)), np.ones(1), np.ones(1))
    >>> found.common.round(3).tolist(), found.own.round(3).tolist()
    ([0.333], [[0.333]])
    """
    covariance, gain, log_det = given_common(sites.precision, spread)
    n_columns = len(scale)
    flat = sites.precision.reshape(-1, n_columns), gain.reshape(-1, n_columns)
    precision = np.diag(scale**-2.0) + sites.total_precision - flat[0].T @ flat[1]
    shift = sites.total_shift - flat[1].T @ sites.shift.ravel()
    common, common_covariance = common_weights(precision, shift, scale)
    own = np.einsum("tab,tb->ta", covariance, sites.shift) - gain @ common
    return TaskWeights(common, common_covariance, own, covariance, gain, log_det)


def given_common(precision: Floats, spread: Floats) -> tuple[Floats, Floats, Floats]:
    """C_t, the gain C_t A_t and log |C_t| of tasks, from A_t in rows of own columns."""
    n_own = len(spread)
    inner = one_plus(spread[:, None] * precision[..., :n_own] * spread)
    covariance = spread[:, None] * np.linalg.inv(inner) * spread
    covariance = 0.5 * (covariance + covariance.transpose(0, 2, 1))
    log_det = 2.0 * np.log(spread).sum() - np.linalg.slogdet(inner)[1]
    return covariance, covariance @ precision, log_det


def common_weights(precision: Floats, shift: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Mean and covariance of μ, of which rows can leave no variance above the prior's σ².

    Where rows weigh so much that rounding has taken the prior from the precision, V would be anything: there it is put
    together from eigenvalues, none of which may be below the prior's.
    """
    precision = 0.5 * (precision + precision.T)
    try:
        covariance = np.linalg.inv(precision)
    except np.linalg.LinAlgError:
        covariance = np.full_like(precision, np.nan)
    variances = np.diag(covariance)
    if not ((variances > 0.0) & (variances <= 1.01 * scale**2)).all():
        values, vectors = np.linalg.eigh(scale[:, None] * precision * scale)
        half = scale[:, None] * vectors / np.sqrt(np.maximum(values, 1.0))
        covariance = half @ half.T
    covariance = 0.5 * (covariance + covariance.T)
    return covariance @ shift, covariance


def quadratic_forms(X: Floats, matrix: Floats) -> Floats:
    """xᵀMx of every last axis; all as one product, a part at a time, since many small ones take several times as long.

    Examples
    --------
    >>> quadratic_forms(np.array([[[1.0, 2.0]], [[0.0, 1.0]]]), np.diag([1.0, 10.0])).tolist()
    [[41.0], [10.0]]
    """
    flat = X.reshape(-1, X.shape[-1])
    found = np.empty(len(flat))
    for start in range(0, len(flat), _PART):
        part = flat[start : start + _PART]
        found[start : start + _PART] = np.einsum("rc,rc->r", part @ matrix, part)
    return found.reshape(X.shape[:-1])
