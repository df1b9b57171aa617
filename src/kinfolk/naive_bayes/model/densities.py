"""Predictive densities of numbers in blocks of tasks, in numpy alone: Student's t and the negative binomial.

With the posteriors of ``maths.conjugate``, one more number of a block and label has log density

    c − e log(1 + q(x − m)²),    m = Σx/κ', 1/q = 2b'(κ' + 1)/κ', e = a' + ½    (Gaussian, in standard units),
    c + log Γ(a' + x) − x log(1 + b')                                           (count),

up to a term that all labels and blocks have in common: the column's unit, or −log x!.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.maths.log_gamma import log_gamma
from kinfolk.tasks.schema import Number

_GAUSSIAN, _COUNT = 0, 1
# Predictions are right for values up to so many standard deviations, or means, from where the training rows were.
_REACH = 10.0


class Densities(NamedTuple):
    """Parameters of the densities above: c, m, q and e, or c, a', log(1 + b') and 0.

    ``family`` (columns,) is 0 for Gaussian numbers and 1 for counts; ``reach`` (columns,) is the largest value that
    blocks must be held against each other for; ``parameters`` has shape (blocks, columns, labels, 4).
    """

    family: NDArray[np.int64]
    reach: Floats
    parameters: Floats

    def log_density(self, values: Floats, column: int, block: NDArray[np.int64]) -> Floats:
        """Log density of each value of a column in a block, under each label (rows, labels); zero where missing."""
        c, m, q, e = np.moveaxis(self.parameters[block, column], -1, 0)
        missing = np.isnan(values)
        x = np.where(missing, 0.0, values)[:, None]
        log_density = c - e * np.log1p(q * (x - m) ** 2) if self.family[column] == _GAUSSIAN else _count(x, c, m, q)
        log_density[missing] = 0.0
        return np.asarray(log_density)

    def log_fit(self, numbers: Floats, block: NDArray[np.int64]) -> Floats:
        """Log density of all numbers of each row (rows, columns, labels)."""
        fits = [self.log_density(numbers[:, j], j, block) for j in range(len(self.family))]
        return np.stack(fits, axis=1)

    def bounds(self) -> tuple[Floats, Floats]:
        """The lowest and the highest log density of a row within reach, in every block (blocks,), under any label."""
        lowest = np.zeros((len(self.parameters), self.parameters.shape[2]))
        highest = np.zeros_like(lowest)
        for j, reach in enumerate(self.reach):
            c, m, q, e = np.moveaxis(self.parameters[:, j], -1, 0)
            if self.family[j] == _GAUSSIAN:
                lowest += c - e * np.log1p(q * (reach + np.abs(m)) ** 2)
                highest += c
            else:
                # Both are probabilities, at most one, which fall off to either side of their mode.
                far = _count(np.array(reach), c, m, q) - log_gamma(np.array(reach + 1.0))
                lowest += np.minimum(_count(np.array(0.0), c, m, q), far)
        return lowest.min(axis=1), highest.max(axis=1)

    def take(self, blocks: NDArray[Any]) -> Densities:
        """Those of some of the blocks."""
        return self._replace(parameters=self.parameters[blocks])


def _count(x: Floats, c: Floats, shape: Floats, log_more: Floats) -> Floats:
    return np.asarray(c + log_gamma(shape + x) - x * log_more)


def densities(sums: Floats, numbers: tuple[Number, ...]) -> Densities:
    """The densities of blocks with these sums (blocks, labels, columns, 3)."""
    n_blocks, n_labels = sums.shape[:2]
    parameters = np.zeros((n_blocks, len(numbers), n_labels, 4))
    for j, number in enumerate(numbers):
        n, total, third = np.moveaxis(sums[:, :, j], -1, 0)
        prior = number.prior
        if number.family == "gaussian":
            weight, shape = prior[0] + n, prior[1] + 0.5 * n
            spread = (2.0 * prior[2] + third - total**2 / weight) * (weight + 1.0) / weight
            c = log_gamma(shape + 0.5) - log_gamma(shape) - 0.5 * np.log(np.pi * spread)
            parts = (c, total / weight, 1.0 / spread, shape + 0.5)
        else:
            shape, rate = prior[0] + total, prior[1] + n
            c = -log_gamma(shape) - shape * np.log1p(1.0 / rate)
            parts = (c, shape, np.log1p(rate), np.zeros_like(c))
        parameters[:, j] = np.stack(parts, axis=-1)
    family = np.array([_GAUSSIAN if number.family == "gaussian" else _COUNT for number in numbers], dtype=np.int64)
    reach = np.array([_REACH if number.family == "gaussian" else _REACH * (1.0 + number.scale) for number in numbers])
    return Densities(family, np.floor(reach), parameters)
