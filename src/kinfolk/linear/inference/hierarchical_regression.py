"""Partially pooled linear regression by empirical Bayes, with a variance of noise of each task.

    y_i = xᵀw_t + ε,   ε ~ N(0, s_t²/m_i),   s_t² ~ IG(a, b)

Weights and noise are approximated as independent. Given E 1/s_t² the posterior of the weights is exactly Gaussian;
given that, s_t² is IG(a + ½n_t, b + ½E Σ m r²), and (a, b) have a mode of their own; a says how alike tasks' noise is.
Statistics of each task are made once, O(rows × columns²); an iteration is O(tasks × columns³) whatever the number of
rows. Where tasks have fewer rows than there are columns, rows are gone through in every iteration instead, which is
O(rows × columns²) and keeps nothing of tasks × columns².
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import digamma, gammaln

from kinfolk.linear.inference.hierarchical import better_hyper, first_paces, hyper_change, log_prior_of
from kinfolk.linear.model.rows import LinearRows
from kinfolk.linear.model.values import Fitted, Groups, Hyper, Noise, Options, first_hyper
from kinfolk.linear.model.weights import Sites, TaskWeights, weights_given_sites
from kinfolk.maths.arrays import Floats
from kinfolk.maths.blas import one_blas_thread

_SETTLED = 0.05
# Prior of log a: tasks' noise differs by about a factor of exp(±√(1/a)) in variance.
_LOG_SHAPE, _LOG_SHAPE_SPREAD = np.log(8.0), 1.0
_SHAPES = np.log(1.5), np.log(1e4)
# Where noise begins, and what it is not below, in units of the target's variance: rows may fit without any.
_FIRST = 0.5
_LEAST = 1e-6


class _Sums(NamedTuple):
    """Sums of squares and products of every task, and weights and rows of each."""

    products: Floats
    with_target: Floats
    of_target: Floats
    n_rows: Floats

    @classmethod
    def of(cls, rows: LinearRows) -> _Sums:
        """Sum up rows."""
        n, size = rows.n_tasks, rows.n_columns
        sums = cls(np.zeros((n, size, size)), np.zeros((n, size)), np.zeros(n), rows_of_tasks(rows))
        for block in rows.blocks:
            turned = (block.weights[..., None] * block.X).transpose(0, 2, 1)
            sums.products[block.tasks] = turned @ block.X
            sums.with_target[block.tasks] = np.matmul(turned, block.y[..., None])[..., 0]
            sums.of_target[block.tasks] = (block.weights * block.y**2).sum(axis=1)
        return sums

    def sites(self, precisions: Floats, n_own: int) -> Sites:
        """What rows say of weights, given E 1/s² of every task."""
        own = precisions[:, None, None] * self.products[:, :n_own], precisions[:, None] * self.with_target[:, :n_own]
        return Sites(*own, np.tensordot(precisions, self.products, axes=1), precisions @ self.with_target)

    def squared_residuals(self, weights: TaskWeights) -> Floats:
        """E Σ m (y − xᵀw)² of every task."""
        means, n_own = weights.means, weights.n_own
        fit = self.of_target - 2.0 * (means * self.with_target).sum(axis=1)
        fit = fit + np.einsum("tc,tc->t", np.matmul(self.products, means[..., None])[..., 0], means)
        own = np.einsum("tab,tab->t", weights.own_covariance, self.products[:, :n_own, :n_own])
        # tr(S K V Kᵀ) with K = 1 less the gain in own rows.
        left = np.broadcast_to(np.eye(self.products.shape[1]), self.products.shape).copy()
        left[:, :n_own] -= weights.gain
        common = np.einsum("tcd,tcd->t", self.products @ left, left @ weights.common_covariance)
        return np.asarray(np.maximum(fit + own + common, 0.0))


class _Rows(NamedTuple):
    """The rows themselves, which answer as their sums do."""

    rows: LinearRows
    n_rows: Floats

    @classmethod
    def of(cls, rows: LinearRows) -> _Rows:
        """Keep rows."""
        return cls(rows, rows_of_tasks(rows))

    def sites(self, precisions: Floats, n_own: int) -> Sites:
        """What rows say of weights, given E 1/s² of every task."""
        n, size = self.rows.n_tasks, self.rows.n_columns
        found = Sites(np.zeros((n, n_own, size)), np.zeros((n, n_own)), np.zeros((size, size)), np.zeros(size))
        for block in self.rows.blocks:
            weighted = (block.weights * block.of_tasks(precisions)[:, None])[..., None] * block.X
            turned = weighted[..., :n_own].transpose(0, 2, 1)
            found.precision[block.tasks] = turned @ block.X
            found.shift[block.tasks] = np.matmul(turned, block.y[..., None])[..., 0]
            flat = weighted.reshape(-1, size)
            found.total_precision[...] += flat.T @ block.X.reshape(-1, size)
            found.total_shift[...] += flat.T @ block.y.ravel()
        return found

    def squared_residuals(self, weights: TaskWeights) -> Floats:
        """E Σ m (y − xᵀw)² of every task."""
        found, means = np.zeros(self.rows.n_tasks), weights.means
        for block in self.rows.blocks:
            at = np.matmul(block.X, block.of_tasks(means)[..., None])[..., 0]
            squares = (block.y - at) ** 2 + weights.variances(block.X, block.tasks)
            found[block.tasks] = (block.weights * squares).sum(axis=1)
        return found


def rows_of_tasks(rows: LinearRows) -> Floats:
    """How many rows every task has, by their weights."""
    found = np.zeros(rows.n_tasks)
    for block in rows.blocks:
        found[block.tasks] = block.weights.sum(axis=1)
    return found


def statistics_of(rows: LinearRows) -> _Sums | _Rows:
    """Sums, or rows where these are fewer than the sums' columns."""
    n_rows = sum(block.y.size for block in rows.blocks)
    return _Rows.of(rows) if n_rows < rows.n_tasks * rows.n_columns else _Sums.of(rows)


@one_blas_thread()
def infer(rows: LinearRows, hyper: Hyper | None = None, options: Options | None = None) -> tuple[Hyper, Fitted]:
    """Learn scales, noise and weights from targets in units of their standard deviation; no step is random.

    Parameters
    ----------
    rows : LinearRows
    hyper : Hyper, optional
        Where to start from.
    options : Options, optional

    Returns
    -------
    hyper : Hyper
    fitted : Fitted
    """
    groups, options = Groups(rows.own_group), Options() if options is None else options
    hyper = first_hyper(groups) if hyper is None else hyper
    sums = statistics_of(rows)
    shape, rate = float(np.exp(_LOG_SHAPE)), _FIRST * float(np.exp(_LOG_SHAPE))
    noise = Noise(np.full(rows.n_tasks, shape), np.full(rows.n_tasks, rate), shape, rate)
    bounds: list[float] = []
    paces = first_paces(groups)
    for _ in range(options.max_iter):
        scales = hyper.spread(groups), hyper.scale(rows.n_columns)
        weights = weights_given_sites(sums.sites(noise.precisions, rows.n_own), *scales)
        residual = sums.squared_residuals(weights)
        noise = _better_noise(noise, residual, sums.n_rows)
        divergence = weights.divergence(*scales)
        bounds.append(_log_likelihood(noise, residual, sums.n_rows) - divergence + log_prior_of(hyper, groups))
        before = hyper
        if options.learn_scales:
            hyper, paces = better_hyper(hyper, groups, weights, paces)
        gain = np.inf if len(bounds) < 2 else abs(bounds[-1] - bounds[-2])
        if gain < options.enough(rows) and hyper_change(before, hyper) < _SETTLED:
            return hyper, Fitted(weights, np.array(bounds), True, noise)
    return hyper, Fitted(weights, np.array(bounds), False, noise)


def _better_noise(noise: Noise, residual: Floats, n_rows: Floats) -> Noise:
    """Variances of noise given squared residuals, and the distribution that they were drawn from."""
    shape, rate = noise.new_shape + 0.5 * n_rows, noise.new_rate + 0.5 * residual
    new_shape, new_rate = _drawn_from(shape, rate)
    return Noise(shape, rate, new_shape, new_rate)


def _drawn_from(shape: Floats, rate: Floats) -> tuple[float, float]:
    """The most probable inverse Gamma distribution of variances of which inverse Gamma posteriors are known."""
    rate = np.maximum(rate, _LEAST * shape)
    precision, log_variance = float((shape / rate).mean()), float((np.log(rate) - digamma(shape)).mean())
    n = len(shape)

    def loss(log_shape: float) -> float:
        a = np.exp(log_shape)
        b = a / precision
        fit = n * (a * np.log(b) - gammaln(a) - (a + 1.0) * log_variance - b * precision)
        return float(-fit + 0.5 * ((log_shape - _LOG_SHAPE) / _LOG_SHAPE_SPREAD) ** 2)

    found = float(np.exp(minimize_scalar(loss, bounds=_SHAPES, method="bounded").x))
    return found, found / precision


def _log_likelihood(noise: Noise, residual: Floats, n_rows: Floats) -> float:
    """Expected log likelihood, less the divergence of the noise from what it was drawn from."""
    precision, log_variance = noise.precisions, np.log(noise.rate) - digamma(noise.shape)
    fit = -0.5 * (n_rows * (np.log(2.0 * np.pi) + log_variance) + residual * precision)
    a, b = noise.new_shape, noise.new_rate
    drawn = a * np.log(b) - gammaln(a) - (a + 1.0) * log_variance - b * precision
    entropy = noise.shape * np.log(noise.rate) - gammaln(noise.shape)
    entropy = entropy - (noise.shape + 1.0) * log_variance - noise.rate * precision
    return float((fit + drawn - entropy).sum())
