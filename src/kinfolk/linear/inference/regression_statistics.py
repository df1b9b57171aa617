"""What partially pooled regressions need of rows: sums of squares and products, or the rows themselves.

Sums of a task are made once, O(rows × columns²), after which an iteration is O(tasks × columns³) whatever the number of
rows. Where tasks have fewer rows than there are columns, rows are gone through in every iteration instead. A task that
has no more rows than columns of its own is then looked at through its rows, whose targets have the covariance D⁻¹ + K
given what is common, K = X diag τ² Xᵀ in own columns and D the rows' precisions. With M = (D⁻¹ + K)⁻¹,

    Σ A_t − A_tᵀC_tA_t = Σ XᵀMX,     b_t | μ ~ N(T Xᵀ M (y − Xμ), T − T Xᵀ M X T),     T = diag τ²,

so that an iteration is O(rows × columns²) and nothing of tasks × own × columns is kept.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kinfolk.linear.model.rows import Block, LinearRows
from kinfolk.linear.model.weights import (
    Moments,
    Sites,
    TaskWeights,
    common_weights,
    given_common,
    weights_given_sites,
)
from kinfolk.maths.arrays import Floats, one_plus


class Sums(NamedTuple):
    """Sums of squares and products of every task, and weights and rows of each."""

    products: Floats
    with_target: Floats
    of_target: Floats
    n_rows: Floats

    @classmethod
    def of(cls, rows: LinearRows) -> Sums:
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

    def learnt(self, precisions: Floats, spread: Floats, scale: Floats) -> tuple[Moments, Floats]:
        """Moments of all weights, given E 1/s² and scales, and E Σ m (y − xᵀw)² of every task."""
        weights = weights_given_sites(self.sites(precisions, len(spread)), spread, scale)
        return weights.moments(), self.squared_residuals(weights)


class Rows(NamedTuple):
    """The rows themselves, which answer as their sums do."""

    rows: LinearRows
    n_rows: Floats

    @classmethod
    def of(cls, rows: LinearRows) -> Rows:
        """Keep rows."""
        return cls(rows, rows_of_tasks(rows))

    def sites(self, precisions: Floats, n_own: int) -> Sites:
        """What rows say of weights, given E 1/s² of every task."""
        n, size = self.rows.n_tasks, self.rows.n_columns
        found = Sites(np.zeros((n, n_own, size)), np.zeros((n, n_own)), np.zeros((size, size)), np.zeros(size))
        for block in self.rows.blocks:
            precision, shift, of_all, shift_of_all = _sites_of(block, block.of_tasks(precisions), n_own)
            found.precision[block.tasks] = precision
            found.shift[block.tasks] = shift
            found.total_precision[...] += of_all
            found.total_shift[...] += shift_of_all
        return found

    def learnt(self, precisions: Floats, spread: Floats, scale: Floats) -> tuple[Moments, Floats]:
        """Moments of all weights, given E 1/s² and scales, and E Σ m (y − xᵀw)² of every task."""
        n_own, precision, shift = len(spread), np.diag(scale**-2.0), np.zeros(len(scale))
        halves: list[_ByRows | _ByWeights] = []
        for block in self.rows.blocks:
            kind = _ByRows if block.y.shape[1] <= n_own else _ByWeights
            half, of_all, shift_of_all = kind.of(block, block.of_tasks(precisions), spread)
            precision, shift = precision + of_all, shift + shift_of_all
            halves.append(half)
        common, covariance = common_weights(precision, shift, scale)
        squares, known = np.zeros((self.rows.n_tasks, n_own)), np.zeros((self.rows.n_tasks, n_own))
        residual, log_det = np.zeros(self.rows.n_tasks), 0.0
        for block, half in zip(self.rows.blocks, halves, strict=True):
            its, residual[block.tasks] = half.learnt(block, spread, common, covariance)
            squares[block.tasks], known[block.tasks] = its.own_squares, its.own_known
            log_det += its.log_det
        return Moments(squares, known, common, covariance, log_det), residual


class _ByRows(NamedTuple):
    """A block of tasks through the covariances of their rows: M, M X, and log |C| of all."""

    middle: Floats
    turned: Floats
    log_det: float

    @classmethod
    def of(cls, block: Block, precisions: Floats, spread: Floats) -> tuple[_ByRows, Floats, Floats]:
        """Half of the way; and what the block says of common weights."""
        size = block.X.shape[-1]
        # A row of weight zero, which only fills up, has a root of zero, and M too.
        root = np.sqrt(block.weights * precisions[:, None])
        inner = one_plus(root[:, :, None] * _between_rows(block, spread) * root[:, None, :])
        middle = root[:, :, None] * np.linalg.inv(inner) * root[:, None, :]
        turned = middle @ block.X
        log_det = len(inner) * 2.0 * float(np.log(spread).sum()) - float(np.linalg.slogdet(inner)[1].sum())
        flat = block.X.reshape(-1, size).T
        shift = flat @ np.matmul(middle, block.y[..., None]).ravel()
        return cls(middle, turned, log_det), flat @ turned.reshape(-1, size), shift

    def learnt(self, block: Block, spread: Floats, common: Floats, covariance: Floats) -> tuple[Moments, Floats]:
        """The other half, once common weights are known."""
        X, variance, n_own = block.X, spread**2, len(spread)
        between = _between_rows(block, spread)
        left_over = block.y - X @ common
        pulled = np.matmul(self.middle, left_over[..., None])
        own = variance * np.matmul(X[..., :n_own].transpose(0, 2, 1), pulled)[..., 0]
        through = (X.reshape(-1, X.shape[-1]) @ covariance).reshape(X.shape) @ X.transpose(0, 2, 1)
        turned = self.turned[..., :n_own]
        known = variance - variance**2 * (X[..., :n_own] * turned).sum(axis=1)
        unsure = variance**2 * (turned * (through @ turned)).sum(axis=1)
        # 1 − K M: what is left of a row's error when the task's own weights have taken theirs.
        left = np.eye(X.shape[1]) - between @ self.middle
        spread_of_rows = np.einsum("tnm,tmn->tn", left, between) + np.einsum("tnm,tnm->tn", left @ through, left)
        squares = (left_over - np.matmul(between, pulled)[..., 0]) ** 2 + np.maximum(spread_of_rows, 0.0)
        moments = Moments(own**2 + known + unsure, known, common, covariance, self.log_det)
        return moments, (block.weights * squares).sum(axis=1)


def _between_rows(block: Block, spread: Floats) -> Floats:
    """K, the covariance of rows of a task by its own weights."""
    own = block.X[..., : len(spread)] * spread
    return np.asarray(own @ own.transpose(0, 2, 1))


class _ByWeights(NamedTuple):
    """A block of tasks with more rows than own columns, through their weights."""

    own_shift: Floats
    covariance: Floats
    gain: Floats
    log_det: Floats

    @classmethod
    def of(cls, block: Block, precisions: Floats, spread: Floats) -> tuple[_ByWeights, Floats, Floats]:
        """Half of the way; and what the block says of common weights."""
        precision, shift, of_all, shift_of_all = _sites_of(block, precisions, len(spread))
        covariance, gain, log_det = given_common(precision, spread)
        flat = precision.reshape(-1, precision.shape[-1]), gain.reshape(-1, precision.shape[-1])
        half = cls(np.einsum("tab,tb->ta", covariance, shift), covariance, gain, log_det)
        return half, of_all - flat[0].T @ flat[1], shift_of_all - flat[1].T @ shift.ravel()

    def learnt(self, block: Block, spread: Floats, common: Floats, covariance: Floats) -> tuple[Moments, Floats]:
        """The other half, once common weights are known."""
        own = self.own_shift - self.gain @ common
        weights = TaskWeights(common, covariance, own, self.covariance, self.gain, self.log_det)
        at = block.X @ common + np.matmul(block.X[..., : len(spread)], own[..., None])[..., 0]
        squares = (block.y - at) ** 2 + weights.variances(block.X, np.arange(len(own)))
        return weights.moments(), (block.weights * squares).sum(axis=1)


def _sites_of(block: Block, precisions: Floats, n_own: int) -> tuple[Floats, Floats, Floats, Floats]:
    """What the rows of a block say of their tasks' weights, and all together of common ones."""
    size = block.X.shape[-1]
    weighted = (block.weights * precisions[:, None])[..., None] * block.X
    turned = weighted[..., :n_own].transpose(0, 2, 1)
    flat = weighted.reshape(-1, size).T
    own = turned @ block.X, np.matmul(turned, block.y[..., None])[..., 0]
    return *own, flat @ block.X.reshape(-1, size), flat @ block.y.ravel()


def rows_of_tasks(rows: LinearRows) -> Floats:
    """How many rows every task has, by their weights."""
    found = np.zeros(rows.n_tasks)
    for block in rows.blocks:
        found[block.tasks] = block.weights.sum(axis=1)
    return found


def statistics_of(rows: LinearRows) -> Sums | Rows:
    """Sums, or rows where these are fewer than the sums' columns."""
    n_rows = sum(block.y.size for block in rows.blocks)
    return Rows.of(rows) if n_rows < rows.n_tasks * rows.n_columns else Sums.of(rows)
