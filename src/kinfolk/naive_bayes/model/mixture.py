"""The predictive distribution that every naive Bayes model of kinfolk comes down to, in numpy alone.

Given the data, a task u belongs to one of several blocks of tasks k with probability w_{u,k}; its next row has

    p(x, y) = Σ_k w_{u,k} φ_{u,k,y} ∏_f θ_{k,y,f,x_f},

φ and θ being posterior means of the label rates and feature rates; for a column of numbers a predictive density stands
in the place of a rate. No sharing is one block per task, complete sharing one block for all; hierarchical clustering
has a block for every node above a task (Roy and Kaelbling 2007, eq. 4), Gibbs sampling a block for every draw.
"""

from __future__ import annotations

from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.naive_bayes.model.densities import Densities

# The largest power that a feature can have: shrunken rates may understate what a feature tells.
MAX_TEMPER = 2.0
# Numbers that numpy adds up one by one.
_FEW_LABELS = 8


class Mixture(NamedTuple):
    """Blocks, and for every task (the last row: a task never seen) which of them it may belong to.

    ``log_theta`` (blocks, values of all features + 1, labels) has a last row of zeros, to which missing values point.
    Entries ``start[u]:start[u + 1]`` of the other arrays are those of task u. ``densities`` are those of columns of
    numbers, None where there are none.
    """

    offsets: NDArray[np.int64]
    log_theta: NDArray[np.float64]
    start: NDArray[np.int64]
    block: NDArray[np.int64]
    log_weight: NDArray[np.float64]
    log_rates: NDArray[np.float64]
    densities: Densities | None = None

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.log_theta.shape[2])

    def cells(self, codes: NDArray[np.int32]) -> NDArray[np.int64]:
        """Rows of ``log_theta`` that feature codes (rows, features) point to."""
        return np.where(codes < 0, self.offsets[-1], codes + self.offsets[:-1])

    def entries(self, task: int) -> slice:
        """The entries of one task."""
        return slice(int(self.start[task]), int(self.start[task + 1]))

    def overlap(self, tasks: NDArray[np.int64]) -> NDArray[np.float64]:
        """Probability that two tasks are in the same block, if each is in its blocks independently of the other."""
        weight = np.zeros((len(tasks), len(self.log_theta)))
        for row, task in enumerate(tasks):
            entries = self.entries(int(task))
            weight[row, self.block[entries]] = np.exp(self.log_weight[entries])
        shared = weight @ weight.T
        shared[tasks[:, None] == tasks] = 1.0
        return shared

    def log_predictive(
        self,
        codes: NDArray[np.int32],
        task: NDArray[np.int64],
        temper: NDArray[np.float64] | float = 1.0,
        averaged: bool = False,
        numbers: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Log p(y | x) for each row. O(rows · blocks of its task · features · labels).

        ``numbers`` (rows, columns of numbers) are standardised, NaN where missing. ``temper`` is a power on the feature
        likelihood, one for all features or one each, those with codes first. Where ``averaged``, the
        blocks' own predictions are averaged with weights that the row does not change, as eq. (4) is printed;
        otherwise the row tells its share about which block it came from, which is what the model implies.
        """
        out = np.full((len(codes), self.n_labels), -np.inf)
        n_features = codes.shape[1] + (0 if self.densities is None else len(self.densities.family))
        powers = np.broadcast_to(np.asarray(temper, dtype=np.float64), n_features)
        n_entries = np.diff(self.start)[task]
        rows = np.arange(len(codes))
        for slot in range(int(n_entries.max(initial=0))):
            if slot:
                rows = rows[n_entries[rows] > slot]
            entry = self.start[task[rows]] + slot
            block = self.block[entry]
            log_joint = self._log_fit(codes[rows] if slot else codes, block, powers)
            if self.densities is not None:
                assert numbers is not None
                fits = self.densities.log_fit(numbers[rows], block)
                log_joint += np.einsum("rjy,j->ry", fits, powers[codes.shape[1] :])
            log_joint += self.log_rates[entry]
            if averaged:
                log_joint = normalise_log(log_joint)
            log_joint += self.log_weight[entry, None]
            out[rows] = np.logaddexp(out[rows], log_joint) if slot else log_joint
        return normalise_log(out)

    def _log_fit(
        self, codes: NDArray[np.int32], block: NDArray[np.int64], powers: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Log likelihood of the features, each raised to its power, under each label (rows, labels)."""
        n_cells = self.log_theta.shape[1]
        flat = self.log_theta.reshape(-1, self.n_labels)
        first = block * n_cells
        fit = np.zeros((len(codes), self.n_labels))
        for f in range(codes.shape[1]):
            code = codes[:, f]
            cell = np.where(code < 0, n_cells - 1, code + self.offsets[f])
            part = flat.take(first + cell, axis=0)
            fit += part if powers[f] == 1.0 else powers[f] * part
        return fit


def normalise_log(log_p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Subtract each row's log sum."""
    if not 0 < log_p.shape[1] < _FEW_LABELS:
        shifted = log_p - log_p.max(axis=1, keepdims=True)
        return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))
    # Over so few numbers numpy goes one by one, in this order, and takes three times as long.
    columns = list(log_p.T)
    shifted = log_p - reduce(np.maximum, columns)[:, None]
    return np.asarray(shifted - np.log(reduce(np.add, list(np.exp(shifted).T)))[:, None])
