"""Why a row got its prediction: what each feature added, and whose data stood behind it (thesis figure 4-2).

Where a task may belong to several blocks, their log probabilities are averaged with the blocks' probabilities given the
row; the small rest that the average leaves, zero where one block is certain, is reported as ``remainder``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from kinfolk.naive_bayes.answers.parameters import label_pair
from kinfolk.naive_bayes.model.fitted import Blocks
from kinfolk.tasks.frames import make_frame
from kinfolk.tasks.statistics import Layout, Values
from kinfolk.tasks.table import Backend


class Explanation(NamedTuple):
    """Additive parts of each row's log probabilities, and the sources of the data behind each feature.

    Attributes
    ----------
    classes, feature_names
        What the axes mean.
    values : list of lists of str
        The rows' own feature values, in the model's categories or bins.
    label_part : array of shape (n_rows, n_classes)
        From the task's label rates.
    feature_part : array of shape (n_rows, n_features, n_classes)
        From each feature; zero where its value is missing or unknown.
    remainder : array of shape (n_rows, n_classes)
        What is left of the log probability; differences between classes matter, not the values.
    own, kin, everybody, prior : arrays of shape (n_rows, n_features)
        Shares, adding up to one, of the counts behind a feature's rates that came from the task itself, from other
        tasks of its cluster, from a cluster that holds all tasks, and from the prior's pseudo-counts.
    backend : str
        Library that tables are made with.
    """

    classes: NDArray[Any]
    feature_names: list[str]
    values: list[list[str]]
    label_part: NDArray[np.float64]
    feature_part: NDArray[np.float64]
    remainder: NDArray[np.float64]
    own: NDArray[np.float64]
    kin: NDArray[np.float64]
    everybody: NDArray[np.float64]
    prior: NDArray[np.float64]
    backend: Backend

    def log_odds(self, label: Any = None, against: Any = None) -> NDArray[np.float64]:
        """Log odds of one label against another for each row; of the last against the first by default."""
        total = self.label_part + self.feature_part.sum(axis=1) + self.remainder
        y, other = label_pair(self.classes, label, against)
        return np.asarray(total[:, y] - total[:, other])

    def table(self, row: int = 0, label: Any = None, against: Any = None) -> Any:
        """One row's explanation, the weightiest feature first: what it added to the log odds, and whose data it was."""
        y, other = label_pair(self.classes, label, against)
        added = self.feature_part[row, :, y] - self.feature_part[row, :, other]
        order = np.argsort(-np.abs(added), kind="stable")
        return make_frame(
            {
                "feature": [self.feature_names[f] for f in order],
                "value": [self.values[row][f] for f in order],
                "log_odds": added[order].tolist(),
                "own": self.own[row, order].tolist(),
                "kin": self.kin[row, order].tolist(),
                "everybody": self.everybody[row, order].tolist(),
                "prior": self.prior[row, order].tolist(),
            },
            self.backend,
        )


class Parts(NamedTuple):
    """The arrays of an :class:`Explanation`."""

    label_part: NDArray[np.float64]
    feature_part: NDArray[np.float64]
    remainder: NDArray[np.float64]
    own: NDArray[np.float64]
    kin: NDArray[np.float64]
    everybody: NDArray[np.float64]
    prior: NDArray[np.float64]


def explain_rows(
    blocks: Blocks,
    own_counts: NDArray[Any],
    layout: Layout,
    feature_prior: NDArray[np.float64],
    values: Values,
    task: NDArray[np.int64],
    temper: NDArray[np.float64],
    averaged: bool,
    own_of_blocks: NDArray[np.float64] | None = None,
) -> Parts:
    """Take the predictions of rows apart. O(rows · blocks of a task · features · labels).

    ``own_counts`` (tasks, cells) are what each task itself has brought, unlabelled rows by the probabilities of their
    labels; ``own_of_blocks`` (blocks, groups) says it of blocks that hold a task's counts more than once, in votes for
    a prototype. Powers come in the order of the mixture, features with codes first; the parts in that of the table.
    """
    mixture = blocks.mixture
    codes, numbers = values
    n_rows, n_features = len(codes), codes.shape[1] + len(layout.numbers)
    n_labels = mixture.n_labels
    label_part = np.zeros((n_rows, n_labels))
    feature_part = np.zeros((n_rows, n_features, n_labels))
    shares = np.zeros((4, n_rows, n_features))
    log_p = mixture.log_predictive(codes, task, temper, averaged, numbers)
    cells = mixture.cells(codes)
    block_totals, task_totals = _totals(blocks.counts, layout), _totals(own_counts, layout)
    pseudo = _pseudo_rows(feature_prior, layout)
    task_totals = np.concatenate([task_totals, np.zeros_like(task_totals[:1])])
    n_tasks = len(own_counts)
    for u in np.unique(task):
        rows = np.flatnonzero(task == u)
        entries = mixture.entries(int(u))
        block = mixture.block[entries]
        parts = mixture.log_theta[block][:, cells[rows]]  # (entries, rows, features, labels)
        if mixture.densities is not None and numbers is not None:
            fits = [mixture.densities.log_fit(numbers[rows], np.full(len(rows), k)) for k in block]
            parts = np.concatenate([parts, np.stack(fits)], axis=2)
        parts = temper[:, None] * parts
        log_joint = parts.sum(axis=2) + mixture.log_rates[entries][:, None, :]
        log_weight = mixture.log_weight[entries][:, None] + (0.0 if averaged else logsumexp(log_joint, axis=2))
        responsibility = np.exp(log_weight - logsumexp(log_weight, axis=0))  # (entries, rows)
        label_part[rows] = responsibility.T @ mixture.log_rates[entries]
        feature_part[rows] = np.einsum("er,erfy->rfy", responsibility, parts)
        # Whose counts they are, averaged over blocks and over the labels that the row may have.
        total = block_totals[block] + pseudo
        mine = np.minimum(task_totals[u], block_totals[block])
        # A block of one task has nobody else's counts, whatever labels a draw gave to its unlabelled rows.
        if u < n_tasks:
            mine = np.where((blocks.sizes[block] == 1)[:, None, None], block_totals[block], mine)
        if own_of_blocks is not None:
            mine = own_of_blocks[block].reshape(len(block), n_labels, n_features)
        others = block_totals[block] - mine
        of_all = (blocks.sizes[block] == n_tasks)[:, None, None] & (n_tasks > 1)
        split = [mine / total, np.where(of_all, 0, others) / total, np.where(of_all, others, 0) / total, pseudo / total]
        weight = responsibility[:, :, None] * np.exp(log_p[rows])[None]
        for s, share in enumerate(split):
            shares[s, rows] = np.einsum("ery,eyf->rf", weight, share)
    remainder = log_p - label_part - feature_part.sum(axis=1)
    return Parts(label_part, feature_part[:, layout.order], remainder, *shares[:, :, layout.order])


def _totals(counts: NDArray[Any], layout: Layout) -> NDArray[Any]:
    """How often each feature was seen with each label, out of rows of cells (rows, labels, features)."""
    starts = layout.group_start[:-1]
    seen = np.add.reduceat(counts[:, : layout.n_counts], starts, axis=1) if len(starts) else counts[:, :0]
    seen = seen.reshape(len(counts), layout.n_labels, -1)
    return np.concatenate([seen, layout.sums_of_numbers(counts)[..., 0]], axis=2) if layout.numbers else seen


def _pseudo_rows(feature_prior: NDArray[np.float64], layout: Layout) -> NDArray[np.float64]:
    """Rows that the prior of each feature is worth (labels, features)."""
    starts = layout.group_start[:-1]
    of_counts = np.add.reduceat(feature_prior, starts) if len(starts) else feature_prior
    # Of a Gaussian it is the weight of its prior mean, of counts the rate of its Gamma prior.
    of_numbers = [number.prior[0 if number.family == "gaussian" else 1] for number in layout.numbers]
    of_counts = of_counts.reshape(layout.n_labels, -1)
    return np.concatenate([of_counts, np.tile(of_numbers, (layout.n_labels, 1))], axis=1)
