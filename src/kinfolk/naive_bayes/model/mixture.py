"""The predictive distribution that every naive Bayes model of kinfolk comes down to, in numpy alone.

Given the data, a task u belongs to one of several blocks of tasks k with probability w_{u,k}; its next row has

    p(x, y) = Σ_k w_{u,k} φ_{u,k,y} ∏_f θ_{k,y,f,x_f},

φ and θ being posterior means of the label rates and feature rates; for a column of numbers a predictive density stands
in the place of a rate. No sharing is one block per task, complete sharing one block for all; hierarchical clustering
has a block for every node above a task (Roy and Kaelbling 2007, eq. 4), Gibbs sampling a block for every draw.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.naive_bayes.model.densities import Densities

# A block is dropped from a task's mixture if it can never make up more than e^−40 of any prediction.
NEGLIGIBLE = -40.0
# The largest power that a feature can have: shrunken rates may understate what a feature tells.
MAX_TEMPER = 2.0


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
        np.fill_diagonal(shared, 1.0)
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
    highest = log_p.max(axis=1, keepdims=True)
    shifted = log_p - highest
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def log_feature_rates(
    counts: NDArray[Any],
    prior: NDArray[np.float64],
    group_start: NDArray[np.int64],
    n_labels: int,
) -> NDArray[np.float64]:
    """Log posterior mean of θ for rows of counts, in the shape that a mixture holds them; numbers are left alone."""
    posterior = counts[:, : group_start[-1]] + prior
    totals = np.add.reduceat(posterior, group_start[:-1], axis=1)
    log_theta = np.log(posterior) - np.repeat(np.log(totals), np.diff(group_start), axis=1)
    by_value = log_theta.reshape(len(counts), n_labels, -1).transpose(0, 2, 1)
    return np.concatenate([by_value, np.zeros((len(counts), 1, n_labels))], axis=1)


def prune(mixture: Mixture) -> tuple[Mixture, NDArray[np.int64]]:
    """Drop the entries that cannot matter to any prediction, and the blocks that nobody is left in.

    Returns the smaller mixture and which of the blocks it still has.

    An entry k cannot matter beside b if w_k · max_x p_k(x | y) ≤ e^−40 · w_b · min_x p_b(x | y); of codes the maximum
    is at most one, of numbers both are taken within reach. Valid where a task's entries have equal label rates.
    """
    lowest = np.minimum.reduceat(mixture.log_theta, mixture.offsets[:-1], axis=1).sum(axis=1).min(axis=1)
    highest = np.zeros_like(lowest)
    if mixture.densities is not None:
        of_numbers, highest = mixture.densities.bounds()
        lowest = lowest + of_numbers
    floor = np.maximum.reduceat(mixture.log_weight + lowest[mixture.block], mixture.start[:-1])
    n_entries = np.diff(mixture.start)
    keep = mixture.log_weight + highest[mixture.block] >= np.repeat(floor, n_entries) + NEGLIGIBLE
    used, block = np.unique(mixture.block[keep], return_inverse=True)
    kept = np.add.reduceat(keep.astype(np.int64), mixture.start[:-1])
    smaller = mixture._replace(
        log_theta=mixture.log_theta[used],
        start=np.concatenate([[0], np.cumsum(kept)]),
        block=block,
        log_weight=mixture.log_weight[keep],
        log_rates=mixture.log_rates[keep],
        densities=None if mixture.densities is None else mixture.densities.take(used),
    )
    return smaller, used
