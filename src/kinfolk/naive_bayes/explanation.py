"""Why a row got its prediction: what each feature added, and whose data stood behind it (thesis figure 4-2).

Where a task may belong to several blocks, their log probabilities are averaged with the blocks' probabilities given the
row; the small rest that the average leaves, zero where one block is certain, is reported as ``remainder``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from kinfolk.naive_bayes.fitted import Blocks
from kinfolk.naive_bayes.parameters import label_pair
from kinfolk.tasks.frames import Backend, make_frame
from kinfolk.tasks.statistics import Layout


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
    codes: NDArray[np.int32],
    task: NDArray[np.int64],
    temper: float,
    averaged: bool,
) -> Parts:
    """Take the predictions of coded rows apart. O(rows · blocks of a task · features · labels).

    ``own_counts`` (tasks, cells) are what each task itself has brought, unlabelled rows by the probabilities of their
    labels.
    """
    mixture = blocks.mixture
    n_rows, n_features = codes.shape
    n_labels = mixture.n_labels
    label_part = np.zeros((n_rows, n_labels))
    feature_part = np.zeros((n_rows, n_features, n_labels))
    shares = np.zeros((4, n_rows, n_features))
    log_p = mixture.log_predictive(codes, task, temper, averaged)
    cells = mixture.cells(codes)
    starts = layout.group_start[:-1]
    block_totals = np.add.reduceat(blocks.counts, starts, axis=1).reshape(-1, n_labels, n_features)
    pseudo = np.add.reduceat(feature_prior, starts).reshape(n_labels, n_features)
    task_totals = np.add.reduceat(own_counts, starts, axis=1).reshape(-1, n_labels, n_features)
    task_totals = np.concatenate([task_totals, np.zeros_like(task_totals[:1])])
    n_tasks = len(own_counts)
    for u in np.unique(task):
        rows = np.flatnonzero(task == u)
        entries = mixture.entries(int(u))
        block = mixture.block[entries]
        parts = temper * mixture.log_theta[block][:, cells[rows]]  # (entries, rows, features, labels)
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
        others = block_totals[block] - mine
        of_all = (blocks.sizes[block] == n_tasks)[:, None, None] & (n_tasks > 1)
        split = [mine / total, np.where(of_all, 0, others) / total, np.where(of_all, others, 0) / total, pseudo / total]
        weight = responsibility[:, :, None] * np.exp(log_p[rows])[None]
        for s, share in enumerate(split):
            shares[s, rows] = np.einsum("ery,eyf->rf", weight, share)
    remainder = log_p - label_part - feature_part.sum(axis=1)
    return Parts(label_part, feature_part, remainder, *shares)
