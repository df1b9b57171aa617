"""Clustered naive Bayes summed exactly over all partitions, and over all labellings of a few unlabelled rows."""

from __future__ import annotations

from itertools import product as every_choice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from kinfolk.evidence import Evidence
from kinfolk.maths.dirichlet import DirichletProduct
from kinfolk.naive_bayes.inference.options import Options
from kinfolk.naive_bayes.model.values import (
    Blocks,
    Fitted,
    HyperParameters,
    Memberships,
    TrainingData,
    feature_product,
    make_blocks,
)
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


def infer(data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> tuple[HyperParameters, Fitted]:
    """Sum over everything unknown. O(labellings · (3^U + 2^U · cells)) time; refuses what would take too long."""
    n_tasks, n_labels = data.statistics.label_counts.shape
    n_unlabelled = data.n_unlabelled
    if n_tasks > MAX_TASKS:
        raise ValueError(f'inference="exact" takes at most {MAX_TASKS} tasks, not {n_tasks}: use "bhc" or "gibbs"')
    if n_unlabelled * np.log(n_labels) > np.log(MAX_LABELLINGS) + 1e-9:
        raise ValueError(
            f'inference="exact" sums over at most {MAX_LABELLINGS:,} labellings, and {n_unlabelled} unlabelled rows '
            f'have {n_labels}^{n_unlabelled} of them: use "gibbs"'
        )
    # Taken in an order that no name decides: of two partitions equally probable it settles which one is reported.
    order, product = data.canonical_order, feature_product(data, hyper)
    labellings = [
        _given_labels(data, hyper, np.array(labels, dtype=np.int32), order, product)
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
    fitted = Fitted(
        blocks=_blocks(data, hyper, labellings, log_share),
        partition=labellings[int(np.argmax(log_best))].partitions.partition,
        evidence=Evidence(log_total, "exact"),
        co_clustering=similarity,
        label_probability=label_probability,
    )
    return hyper, fitted


def _given_labels(
    data: TrainingData,
    hyper: HyperParameters,
    labels: NDArray[np.int32],
    order: NDArray[np.int64],
    product: DirichletProduct,
) -> _Labelling:
    completed = data.statistics
    if len(labels):
        rows = data.unlabelled._replace(labels=labels)
        completed = completed + count(rows, completed.layout, completed.tasks)
    partitions = exact_partitions(completed.feature_counts[order], product, hyper.concentration)
    back = np.argsort(order)
    partitions = partitions._replace(
        members=partitions.members[:, back], partition=canonical(partitions.partition[back])
    )
    log_labels = hyper.log_label_evidence(completed.label_counts)
    return _Labelling(labels, partitions.log_evidence + log_labels, completed, partitions)


def _blocks(
    data: TrainingData, hyper: HyperParameters, labellings: list[_Labelling], log_share: NDArray[np.float64]
) -> Blocks:
    """Every subset of tasks, under every labelling, is a block of each of its members; the last block is empty."""
    n_tasks = len(data.statistics.tasks)
    no_rates = hyper.log_label_rates(np.zeros_like(hyper.label_prior))
    memberships, counts, sizes = [], [], []
    n_blocks = 0
    for labelling, share in zip(labellings, log_share, strict=True):
        completed = labelling.completed
        members = labelling.partitions.members[1:]
        log_block = labelling.partitions.log_probability[1:] + share
        size = members.sum(axis=1)
        which, who = np.nonzero(members)
        log_rates = hyper.log_label_rates(completed.label_counts)
        memberships.append(Memberships(who, which + n_blocks, log_block[which], log_rates[who]))
        joins, _ = joining_weights(size, n_tasks, hyper.concentration)
        subsets = np.arange(len(members))
        memberships.append(
            Memberships(
                np.full(len(members), n_tasks),
                subsets + n_blocks,
                log_block + np.log(joins),
                np.tile(no_rates, (len(members), 1)),
            )
        )
        counts.append(members.astype(completed.feature_counts.dtype) @ completed.feature_counts)
        sizes.append(size)
        n_blocks += len(members)
    _, alone = joining_weights(np.zeros(0, dtype=np.int64), n_tasks, hyper.concentration)
    memberships.append(Memberships(np.array([n_tasks]), np.array([n_blocks]), np.log([alone]), no_rates[None]))
    counts.append(np.zeros_like(counts[0][:1]))
    sizes.append(np.zeros(1, dtype=np.int64))
    return make_blocks(data, hyper, np.concatenate(counts), np.concatenate(sizes), memberships)
