"""Why a row got its prediction: what each feature added, and whose data stood behind it (thesis figure 4-2).

Where a task may belong to several blocks, their log probabilities are averaged with the blocks' probabilities given the
row; the small rest that the average leaves, zero where one block is certain, is reported as ``remainder``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from kinfolk.explanation import Explanation
from kinfolk.naive_bayes.answers.predictor import CodedRows, NaiveBayesPredictor
from kinfolk.naive_bayes.model.prototype import rate_shares
from kinfolk.naive_bayes.model.values import NaiveBayesFit
from kinfolk.tasks.schema import rows_of_tasks
from kinfolk.tasks.statistics import Layout, add_expected


class Parts(NamedTuple):
    """The arrays of an :class:`Explanation`."""

    label_part: NDArray[np.float64]
    feature_part: NDArray[np.float64]
    remainder: NDArray[np.float64]
    own: NDArray[np.float64]
    kin: NDArray[np.float64]
    everybody: NDArray[np.float64]
    prior: NDArray[np.float64]


def explain(fit: NaiveBayesFit, predictor: NaiveBayesPredictor, rows: CodedRows) -> Explanation:
    """Take the predictions of rows apart. O(rows · blocks of a task · features · labels).

    Shares of what a task itself has brought count unlabelled rows by the probabilities of their labels. Where blocks
    hold a task's counts more than once, in votes for a prototype, what was left behind says how many are its own.
    """
    log_p = predictor.log_predictive(rows)
    parts = _parts(fit, rows, log_p)
    if fit.posterior.prototypes is not None:
        parts = parts._replace(**_prototype_shares(fit, rows, np.exp(log_p)))
    values = fit.schema.read_back(rows.codes, rows.numbers)
    return Explanation(fit.classes, fit.schema.names, values, *parts, backend=fit.backend)


def _prototype_shares(
    fit: NaiveBayesFit, rows: CodedRows, probability: NDArray[np.float64]
) -> dict[str, NDArray[np.float64]]:
    """Whose data stand behind noisy copies of one prototype: nobody is kin, others speak through the prototype."""
    asked, row_of = np.unique(rows.place, return_inverse=True)
    shares = rate_shares(fit.posterior, fit.hyper, fit.data.statistics.layout, asked)
    own, everybody, prior = np.einsum("ry,sryf->srf", probability, shares[:, row_of])
    return {"own": own, "kin": np.zeros_like(own), "everybody": everybody, "prior": prior}


def _parts(fit: NaiveBayesFit, asked: CodedRows, log_p: NDArray[np.float64]) -> Parts:
    blocks, layout, averaged = fit.posterior.blocks, fit.data.statistics.layout, fit.averaged
    own_of_blocks = None if fit.posterior.sources is None else fit.posterior.sources.own
    temper = fit.hyper.temper[fit.schema.coded_first]
    own_counts, feature_prior = _own_counts(fit), fit.hyper.feature_prior
    codes, numbers, task = asked
    mixture = blocks.mixture
    n_rows, n_features = len(codes), codes.shape[1] + len(layout.numbers)
    n_labels = mixture.n_labels
    label_part = np.zeros((n_rows, n_labels))
    feature_part = np.zeros((n_rows, n_features, n_labels))
    shares = np.zeros((4, n_rows, n_features))
    cells = mixture.cells(codes)
    block_totals, task_totals = _totals(blocks.counts, layout), _totals(own_counts, layout)
    pseudo = _pseudo_rows(feature_prior, layout)
    task_totals = np.concatenate([task_totals, np.zeros_like(task_totals[:1])])
    n_tasks = len(own_counts)
    for u, rows in enumerate(rows_of_tasks(task, n_tasks + 1)):
        if not len(rows):
            continue
        entries = mixture.entries(u)
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


def _own_counts(fit: NaiveBayesFit) -> NDArray[Any]:
    """Feature counts that each task has brought itself, unlabelled rows by the probabilities of their labels."""
    counts, probability = fit.data.statistics.feature_counts, fit.posterior.label_probability
    if probability is None or not len(probability):
        return counts
    counts = counts.astype(np.float64)
    add_expected(counts, fit.data.unlabelled, fit.data.statistics.layout, probability)
    return counts


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
