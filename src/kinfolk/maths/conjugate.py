"""Conjugate families of numbers, whose statistics add up: Gaussian with unknown mean and variance, and Poisson counts.

A group is the numbers of one kind, three cells side by side: n, Σx and Σx² of Gaussian ones, n, Σx and Σ log x! of
counts. Gaussian numbers are given in standard units; the density is that of the raw ones, 1/s of the standardised.

    σ² ~ IG(a, b), μ | σ² ~ N(0, σ²/κ):   log p(x) = log Γ(a')/Γ(a) + a log b − a' log b' + ½ log κ/κ' − n log √2π s,
                                          κ' = κ + n, a' = a + n/2, b' = b + ½(Σx² − (Σx)²/κ');
    λ ~ Gamma(a, rate b):                 log p(x) = log Γ(a')/Γ(a) + a log b − a' log b' − Σ log x!,
                                          a' = a + Σx, b' = b + n.

Writing b' with κ' instead of n keeps it above b to the last bit, however little the numbers vary.
"""

from __future__ import annotations

from math import lgamma, log, pi
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from kinfolk.maths.compiled import compiled

GAUSSIAN = 0
COUNT = 1
# Cells of a group.
N_CELLS = 3
_LOG_ROOT_2_PI = 0.5 * log(2.0 * pi)


class NumberGroups(NamedTuple):
    """Groups of numbers in a flat row of cells: the first cell of all, and family and prior of each.

    A row of ``prior`` is κ, a, b and log s of a Gaussian group; a, b and two zeros of one of counts; then what does not
    depend on any data, a log b − log Γ(a), and ½ log κ for a Gaussian.
    """

    first: int
    family: NDArray[np.int64]
    prior: NDArray[np.float64]


def number_groups(first: int, family: NDArray[np.int64], prior: NDArray[np.float64]) -> NumberGroups:
    """Groups of numbers from the first cell on, from family and prior of each (groups, 4)."""
    is_gaussian = family == GAUSSIAN
    shape, rate = np.where(is_gaussian, prior[:, 1:3].T, prior[:, :2].T)
    constant = shape * np.log(rate) - gammaln(shape) + np.where(is_gaussian, 0.5 * np.log(prior[:, 0]), 0.0)
    return NumberGroups(first, family, np.column_stack([prior, constant]))


@compiled(inline="always")
def prior_of(numbers, g):  # type: ignore[no-untyped-def]
    """The prior of one group as plain numbers, which are handed on without counting references to an array."""
    prior = numbers.prior
    return prior[g, 0], prior[g, 1], prior[g, 2], prior[g, 3], prior[g, 4]


@compiled
def log_marginal_of_number(n, total, third, family, prior):  # type: ignore[no-untyped-def]
    """Log density of the numbers of one group, given their statistics; ``prior`` as ``prior_of`` gives it."""
    if n <= 0:
        return 0.0
    if family == GAUSSIAN:
        weight, shape = prior[0] + n, prior[1] + 0.5 * n
        rate = prior[2] + 0.5 * (third - total * total / weight)
        grown = lgamma(shape) - shape * np.log(rate) - 0.5 * np.log(weight)
        return grown + prior[4] - n * (_LOG_ROOT_2_PI + prior[3])
    shape = prior[0] + total
    return lgamma(shape) - shape * np.log(prior[1] + n) + prior[4] - third


@compiled(inline="always")
def third_cell(x, family):  # type: ignore[no-untyped-def]
    """What a number adds to the last cell of its group."""
    return x * x if family == GAUSSIAN else lgamma(x + 1.0)


@compiled
def log_density_of_number(x, n, total, third, family, prior):  # type: ignore[no-untyped-def]
    """Log density of one more number, given the statistics of those before it: Student's t or negative binomial.

    Leaving a row out takes no more than subtracting its 1, x and ``third_cell(x)`` from the statistics first.
    """
    if family == GAUSSIAN:
        weight, shape = prior[0] + n, prior[1] + 0.5 * n
        rate = prior[2] + 0.5 * (third - total * total / weight)
        spread = 2.0 * rate * (weight + 1.0) / weight
        grown = lgamma(shape + 0.5) - lgamma(shape) - 0.5 * np.log(pi * spread) - prior[3]
        return grown - (shape + 0.5) * np.log1p((x - total / weight) ** 2 / spread)
    shape, rate = prior[0] + total, prior[1] + n
    grown = lgamma(shape + x) - lgamma(shape) - lgamma(x + 1.0)
    return grown - shape * np.log1p(1.0 / rate) - x * np.log1p(rate)
