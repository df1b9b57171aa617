"""The fitted parameters of tasks and clusters as tables in the user's names (thesis eq. 2.8, 2.9 and figure 4-2).

In the papers: Roy (2006), eq. A.5–A.6.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.naive_bayes.model.mixture import Mixture
from kinfolk.tasks.schema import Number

Estimate = Literal["mean", "map", "ml"]


def dirichlet_estimate(
    counts: NDArray[Any], prior: NDArray[np.float64], group_start: NDArray[np.int64], estimate: str
) -> NDArray[np.float64]:
    """Point estimate of the probabilities of groups of cells, for each row of counts.

    ``"mean"`` of the posterior, its mode ``"map"`` (the mean where the density has no single mode), or maximum
    likelihood ``"ml"``, which is undefined, NaN here and null in tables, where a group has no data. Cells after the
    last group, those of numbers, are left alone.

    Examples
    --------
    >>> counts, start = np.array([[3.0, 1.0]]), np.array([0, 2])
    >>> dirichlet_estimate(counts, np.full(2, 2.0), start, "map").round(3).tolist()
    [[0.667, 0.333]]
    """
    counts = counts[:, : group_start[-1]]
    if estimate == "mean":
        mass = counts + prior
    elif estimate == "map":
        mass = np.maximum(counts + prior - 1.0, 0.0)
    elif estimate == "ml":
        mass = counts.astype(np.float64)
    else:
        raise ValueError(f'estimate={estimate!r}: give "mean", "map" or "ml"')
    widths = np.diff(group_start)
    totals = np.repeat(np.add.reduceat(mass, group_start[:-1], axis=1), widths, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = mass / totals
    if estimate == "map":
        mean = dirichlet_estimate(counts, prior, group_start, "mean")
        rates = np.where(totals > 0, rates, mean)
    return np.asarray(rates)


class Moments(NamedTuple):
    """Mean and variance of numbers in their own units (owners, labels, columns)."""

    mean: NDArray[np.float64]
    variance: NDArray[np.float64]


def moments(sums: NDArray[np.float64], numbers: tuple[Number, ...]) -> Moments:
    """Posterior mean of the mean, and the inverse of the precision's, for blocks' sums (blocks, labels, columns, 3).

    Examples
    --------
    >>> sums = np.array([[[[99.0, 198.0, 500.0]]]])
    >>> moments(sums, (Number("gaussian", 10.0, 2.0),)).mean.round(2).tolist()
    [[[13.92]]]
    """
    mean, variance = np.empty(sums.shape[:3]), np.empty(sums.shape[:3])
    for j, number in enumerate(numbers):
        n, total, squares = np.moveaxis(sums[:, :, j], -1, 0)
        prior = number.prior
        if number.family == "gaussian":
            weight = prior[0] + n
            mean[:, :, j] = number.raw(total / weight)
            rate = prior[2] + 0.5 * (squares - total**2 / weight)
            variance[:, :, j] = number.scale**2 * rate / (prior[1] + 0.5 * n)
        else:
            mean[:, :, j] = variance[:, :, j] = (prior[0] + total) / (prior[1] + n)
    return Moments(mean, variance)


def moments_over_blocks(mixture: Mixture, n_tasks: int, of_blocks: Moments) -> Moments:
    """The moments of every task's numbers, blocks weighed by their probability."""
    shape = (n_tasks, *of_blocks.mean.shape[1:])
    mean, variance = np.empty(shape), np.empty(shape)
    for u in range(n_tasks):
        entries = mixture.entries(u)
        weight = np.exp(mixture.log_weight[entries])
        weight /= weight.sum()
        block = mixture.block[entries]
        mean[u] = np.tensordot(weight, of_blocks.mean[block], axes=1)
        spread = of_blocks.variance[block] + (of_blocks.mean[block] - mean[u]) ** 2
        variance[u] = np.tensordot(weight, spread, axes=1)
    return Moments(mean, variance)


def mean_over_blocks(mixture: Mixture, n_tasks: int) -> NDArray[np.float64]:
    """Posterior mean of every task's feature rates, blocks weighed by their probability (tasks, values, labels)."""
    theta = np.exp(mixture.log_theta[:, :-1])
    out = np.empty((n_tasks, *theta.shape[1:]))
    for u in range(n_tasks):
        entries = mixture.entries(u)
        weight = np.exp(mixture.log_weight[entries])
        out[u] = np.tensordot(weight / weight.sum(), theta[mixture.block[entries]], axes=1)
    return out


def mean_label_rates(mixture: Mixture, n_tasks: int) -> NDArray[np.float64]:
    """Posterior mean of every task's label rates (tasks, labels)."""
    out = np.empty((n_tasks, mixture.n_labels))
    for u in range(n_tasks):
        entries = mixture.entries(u)
        weight = np.exp(mixture.log_weight[entries])
        out[u] = weight / weight.sum() @ np.exp(mixture.log_rates[entries])
    return out


def nulls(values: NDArray[np.float64]) -> list[float | None]:
    """Numbers as a list, with None for NaN."""
    return [None if value != value else value for value in values.ravel().tolist()]
