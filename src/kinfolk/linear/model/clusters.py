"""Clusters of tasks that have the same weights, where rows say it by Gaussian sites; their evidence adds up.

    task t of cluster k:   η = b_t + xᵀw_k,    w_k ~ N(μ, diag s²),    b_t ~ N(0, v)

A task's site −½wᵀAw + cᵀw speaks of its weights as they stand; with the own intercept b integrated out (a the column of
A that belongs to the constant, p = 1/v + a_1) it speaks of its cluster's,

    A′ = A − a aᵀ/p,   c′ = c − a c_1/p,        log p(D_S) = log ∫ N(w; μ, s²) exp(Σ_{t∈S} −½wᵀA′w + c′ᵀw) dw + …,

so that sites of a cluster are sums of its tasks', and what is left out is the same for every partition. Given w_k the
own intercept is N((c_1 − aᵀw)/p, 1/p). Several labels have a model each and one partition: their evidence adds up too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats


class Base(NamedTuple):
    """What clusters' weights are drawn from: mean and standard deviation (labels, columns)."""

    mean: Floats
    scale: Floats


class ClusterSites(NamedTuple):
    """Every task's site of its cluster's weights, and what is needed for its own intercept.

    ``precision`` (tasks, labels, columns, columns) and ``shift`` (tasks, labels, columns) are A′ and c′; ``slope`` a/p
    (tasks, labels, columns), ``start`` c_1/p and ``variance`` 1/p (tasks, labels) are of the own intercepts.
    """

    precision: Floats
    shift: Floats
    slope: Floats
    start: Floats
    variance: Floats


def without_intercepts(precision: Floats, shift: Floats, variance: Floats) -> ClusterSites:
    """Integrate own intercepts, of prior variance v for each label, out of sites of tasks' weights."""
    along = precision[..., 0]
    own = variance / (1.0 + variance * along[..., 0])
    slope, start = own[..., None] * along, own * shift[..., 0]
    left = precision - along[..., :, None] * slope[..., None, :]
    return ClusterSites(0.5 * (left + left.swapaxes(-1, -2)), shift - along * start[..., None], slope, start, own)


def log_evidence(precision: Floats, shift: Floats, base: Base) -> Floats:
    """Log evidence of clusters with sums of sites (..., labels, columns, columns), up to what no partition changes.

    Examples
    --------
    >>> base = Base(np.zeros((1, 1)), np.ones((1, 1)))
    >>> log_evidence(np.ones((2, 1, 1, 1)), np.array([[[0.0]], [[2.0]]]), base).round(4).tolist()
    [-0.3466, 0.6534]
    """
    inverse = base.scale**-2.0
    whole, h = precision.copy(), shift + inverse * base.mean
    places = np.arange(shift.shape[-1])
    whole[..., places, places] += inverse
    log_det = np.linalg.slogdet(whole)[1] + 2.0 * np.log(base.scale).sum(axis=-1)
    gain = (h * np.linalg.solve(whole, h[..., None])[..., 0]).sum(axis=-1) - (inverse * base.mean**2).sum(axis=-1)
    return np.asarray(0.5 * (gain - log_det).sum(axis=-1))


def posterior_of_clusters(precision: Floats, shift: Floats, base: Base) -> tuple[Floats, Floats]:
    """Mean and covariance of clusters' weights."""
    inverse = base.scale**-2.0
    places, whole = np.arange(shift.shape[-1]), precision.copy()
    whole[..., places, places] += inverse
    covariance = np.linalg.inv(whole)
    covariance = 0.5 * (covariance + covariance.swapaxes(-1, -2))
    return np.matmul(covariance, (shift + inverse * base.mean)[..., None])[..., 0], covariance


class Seats(NamedTuple):
    """Who sits where: a cluster's sums of sites, sizes and evidence, and the cluster of every task."""

    seat: NDArray[np.int64]
    precision: Floats
    shift: Floats
    size: NDArray[np.int64]
    evidence: Floats
