"""Clustered naive Bayes summed exactly over all partitions, and over all labellings of a few unlabelled rows."""

from __future__ import annotations

from itertools import product as every_choice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from kinfolk.evidence import Evidence
from kinfolk.naive_bayes.model.fitted import Blocks, Entry, Fitted, Problem, log_label_marginals, make_blocks
from kinfolk.partition.crp import canonical, joining_weights
from kinfolk.partition.exact import MAX_TASKS, ExactPartitions, exact_partitions
from kinfolk.tasks.statistics import Statistics, count

MAX_LABELLINGS = 4096


class _Labelling(NamedTuple):
    """One way to label the unlabelled rows: its log joint probability and the partitions given it."""

    labels: NDArray[np.int32]
    log_joint: float
    completed: Statistics
    partitions: ExactPartitions


def fit_exactly(problem: Problem, concentration: float) -> Fitted:
    """Sum over everything unknown. O(labellings · (3^U + 2^U · cells)) time; refuses what would take too long."""
    n_tasks, n_labels = problem.statistics.label_counts.shape
    n_unlabelled = len(problem.unlabelled.labels)
    if n_tasks > MAX_TASKS:
        raise ValueError(f'inference="exact" takes at most {MAX_TASKS} tasks, not {n_tasks}: use "bhc" or "gibbs"')
    if n_unlabelled * np.log(n_labels) > np.log(MAX_LABELLINGS) + 1e-9:
        raise ValueError(
            f'inference="exact" sums over at most {MAX_LABELLINGS:,} labellings, and {n_unlabelled} unlabelled rows '
            f'have {n_labels}^{n_unlabelled} of them: use "gibbs"'
        )
    labellings = [
        _given_labels(problem, concentration, np.array(labels, dtype=np.int32))
        for labels in every_choice(range(n_labels), repeat=n_unlabelled)
    ]
    log_total = float(logsumexp([labelling.log_joint for labelling in labellings]))
    log_share = np.array([labelling.log_joint for labelling in labellings]) - log_total
    label_probability = np.zeros((n_unlabelled, n_labels))
    similarity = np.zeros((n_tasks, n_tasks))
    log_best = []
    for labelling, share in zip(labellings, log_share, strict=True):
        label_probability[np.arange(n_unlabelled), labelling.labels] += np.exp(share)
        members = labelling.partitions.members.astype(np.float64)
        is_block = np.exp(labelling.partitions.log_probability + share)
        similarity += members.T @ (is_block[:, None] * members)
        log_best.append(share + labelling.partitions.log_joint - labelling.partitions.log_evidence)
    np.fill_diagonal(similarity, 1.0)
    return Fitted(
        blocks=_blocks(problem, labellings, log_share, concentration),
        partition=labellings[int(np.argmax(log_best))].partitions.partition,
        evidence=Evidence(log_total, "exact"),
        co_clustering=similarity,
        label_probability=label_probability,
    )


def _given_labels(problem: Problem, concentration: float, labels: NDArray[np.int32]) -> _Labelling:
    completed = problem.statistics
    if len(labels):
        rows = problem.unlabelled._replace(labels=labels)
        completed = completed + count(rows, completed.layout, completed.tasks)
    # Taken in an order that no name decides: of two partitions equally probable it settles which one is reported.
    order = problem.canonical_order()
    partitions = exact_partitions(completed.feature_counts[order], problem.product(), concentration)
    back = np.argsort(order)
    partitions = partitions._replace(
        members=partitions.members[:, back], partition=canonical(partitions.partition[back])
    )
    log_labels = float(log_label_marginals(completed.label_counts, problem.label_prior).sum())
    return _Labelling(labels, partitions.log_evidence + log_labels, completed, partitions)


def _blocks(
    problem: Problem, labellings: list[_Labelling], log_share: NDArray[np.float64], concentration: float
) -> Blocks:
    """Every subset of tasks, under every labelling, is a block of each of its members; the last block is empty."""
    n_tasks = len(problem.statistics.tasks)
    no_rates = problem.log_rates(np.zeros_like(problem.label_prior))
    entries, counts, sizes = [], [], []
    n_blocks = 0
    for labelling, share in zip(labellings, log_share, strict=True):
        completed = labelling.completed
        members = labelling.partitions.members[1:]
        log_block = labelling.partitions.log_probability[1:] + share
        size = members.sum(axis=1)
        which, who = np.nonzero(members)
        log_rates = problem.log_rates(completed.label_counts)
        entries.append(Entry(who, which + n_blocks, log_block[which], log_rates[who]))
        joins, _ = joining_weights(size, n_tasks, concentration)
        subsets = np.arange(len(members))
        entries.append(
            Entry(
                np.full(len(members), n_tasks),
                subsets + n_blocks,
                log_block + np.log(joins),
                np.tile(no_rates, (len(members), 1)),
            )
        )
        counts.append(members.astype(completed.feature_counts.dtype) @ completed.feature_counts)
        sizes.append(size)
        n_blocks += len(members)
    _, alone = joining_weights(np.zeros(0, dtype=np.int64), n_tasks, concentration)
    entries.append(Entry(np.array([n_tasks]), np.array([n_blocks]), np.log([alone]), no_rates[None]))
    counts.append(np.zeros_like(counts[0][:1]))
    sizes.append(np.zeros(1, dtype=np.int64))
    return make_blocks(problem, np.concatenate(counts), np.concatenate(sizes), entries)
