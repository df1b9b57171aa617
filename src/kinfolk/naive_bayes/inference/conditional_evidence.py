"""Evidence of the labels given the features, p(Y | X), of every naive Bayes model (thesis eq. 4.4–4.7, A.2.2–A.2.3).

A generative model knows it as

    p(Y | X) = p(X, Y) / p(X),        p(X) = Σ p(X, Y) over all labellings Y.

The denominator is annealed along p(Θ) p(Y | φ) p(X | Y, θ)^τ, from τ = 0, where labels and all the rest come from their
priors and the normalising constant is one, to τ = 1; parameters are integrated out wherever they can be. (The path of
A.55 has the power on p(Y | φ) too: it begins with uniform labels, at Z₀ = |L|^N, where A.2.3 prints an inverse.) Blocks
of tasks that are given, as each task is without sharing, are independent, and annealed each by itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kinfolk.evidence import Annealed, Evidence
from kinfolk.naive_bayes.inference import gibbs, given_partition
from kinfolk.naive_bayes.inference.label_exchange import HeldSeatsChain, RelabellingChain
from kinfolk.naive_bayes.inference.options import Effort, Options
from kinfolk.naive_bayes.model.values import HyperParameters, TrainingData, feature_product
from kinfolk.partition.exact import MAX_TASKS, exact_partitions
from kinfolk.tasks.statistics import Rows


def training_rows(data: TrainingData, rows: Rows, uses_unlabelled: bool) -> tuple[TrainingData, Rows]:
    """The data that a model learnt from, and all rows of them, given the labelled ones.

    A row of whole weight w is w rows; one of another weight has a single label, which counts w.
    """
    n_counted = float(len(rows.labels) if rows.weights is None else rows.weights.sum())
    if not np.isclose(n_counted, float(data.statistics.label_counts.sum())):
        raise ValueError(
            "conditional evidence needs the training rows, and this model holds counts alone: fit it to rows"
        )
    if uses_unlabelled:
        return data, _repeated(rows).followed_by(data.unlabelled)
    return data.labelled_only(), _repeated(rows)


def _repeated(rows: Rows) -> Rows:
    """Rows of weight one, as many of each as its weight says; as they are where weights are not whole."""
    if rows.weights is None or (rows.weights != np.floor(rows.weights)).any():
        return rows
    return rows.take(np.repeat(np.arange(len(rows.labels)), rows.weights.astype(np.int64)))._replace(weights=None)


def labels_given_features_and_blocks(
    data: TrainingData, hyper: HyperParameters, rows: Rows, partition: NDArray[np.int64], effort: Effort
) -> Evidence:
    """Estimate log p(Y | X) for tasks whose partition is given; ``rows`` are all rows of the data, labelled or not."""
    if data.n_unlabelled:
        joint = gibbs.evidence(data, hyper, effort.seed, effort.n_jobs, partition, effort.n_runs)
    else:
        joint = given_partition.evidence(data, hyper, Options(), effort.seed, partition)
    blind = without_labels(data, rows)
    order = blind.canonical_order
    arranged, _ = blind.arranged(order)
    product = feature_product(blind, hyper)
    states: list[Annealed] = [HeldSeatsChain(arranged, hyper, product, partition[order]) for _ in range(effort.n_runs)]
    return ratio(joint, effort.log_features(states))


def labels_given_features_and_clusters(
    data: TrainingData, hyper: HyperParameters, rows: Rows, effort: Effort, joint: Evidence | None = None
) -> Evidence:
    """Estimate log p(Y | X) for tasks that are clustered; ``joint`` is log p(X, Y) where that is known."""
    if joint is None:
        joint = _joint_evidence(data, hyper, effort)
    blind = without_labels(data, rows)
    arranged, _ = blind.arranged(blind.canonical_order)
    product = feature_product(blind, hyper)
    states: list[Annealed] = [RelabellingChain(arranged, hyper, product) for _ in range(effort.n_runs)]
    return ratio(joint, effort.log_features(states))


def _joint_evidence(data: TrainingData, hyper: HyperParameters, effort: Effort) -> Evidence:
    """Log p(X, Y) of clustered tasks, exactly where that is no trouble."""
    statistics = data.statistics
    if not data.n_unlabelled and len(statistics.tasks) <= MAX_TASKS and hyper.concentration_prior is None:
        partitions = exact_partitions(statistics.feature_counts, feature_product(data, hyper), hyper.concentration)
        return Evidence(partitions.log_evidence + hyper.log_label_evidence(statistics.label_counts), "exact")
    return gibbs.evidence(data, hyper, effort.seed, effort.n_jobs, None, effort.n_runs)


def without_labels(data: TrainingData, rows: Rows) -> TrainingData:
    """The same tasks, of whose rows no label is known."""
    statistics, weights = data.statistics, rows.weights
    whole = weights is None or not (weights != np.floor(weights)).any()
    dtype = np.dtype(np.int64 if whole and not statistics.layout.numbers else np.float64)
    nothing = statistics._replace(
        feature_counts=np.zeros(statistics.feature_counts.shape, dtype=dtype),
        label_counts=np.zeros(statistics.label_counts.shape, dtype=dtype),
    )
    unlabelled = rows._replace(
        codes=np.ascontiguousarray(rows.codes), labels=np.full(len(rows.labels), -1, dtype=np.int32)
    )
    return TrainingData(nothing, unlabelled)


def ratio(joint: Evidence, features: Evidence) -> Evidence:
    """Log p(X, Y) − log p(X), with the errors of two runs that know nothing of each other."""
    return Evidence(joint.value - features.value, "estimate", float(np.hypot(joint.error, features.error)))
