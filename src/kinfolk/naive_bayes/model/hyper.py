"""Hyper-parameters of the naive Bayes models, as one value: given, or learnt from all tasks together."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from kinfolk.maths.arrays import Floats
from kinfolk.maths.dirichlet import DirichletProduct, dirichlet_product
from kinfolk.naive_bayes.model.data import TrainingData
from kinfolk.partition.concentration import GammaPrior


class GivenHyperParameters(NamedTuple):
    """Hyper-parameters as a user gave them; None stands for one that is to be learnt.

    Priors are the pseudo-counts of the labels and of all cells of the features; ``temper`` has a power per feature.
    ``concentration`` is looked at by models that cluster.
    """

    label_prior: Floats | None
    feature_prior: Floats | None
    temper: Floats | None
    concentration: float | None = None


class CommonRates(NamedTuple):
    """A prior of rates that all tasks share, learnt from the rows of all tasks: pseudo-counts and votes of its cells.

    Its rates are those of the features' values whatever the label, so that each label has the same.
    """

    pseudo_counts: Floats
    votes: Floats


class HyperParameters(NamedTuple):
    """Dirichlet pseudo-counts of labels (labels,) and features (cells), and what else is not inferred task by task.

    ``temper`` has a power per feature, in the order of the table. ``concentration`` is that of the Chinese restaurant
    process over tasks (zero where all share, infinity where none do) and ``concentration_prior`` its prior where it is
    drawn. ``votes`` says, for a prior of the
    features that was learnt, how many observations, and pseudo-counts beside them, speak for each of its cells;
    ``common`` says it of a prior of rates that all tasks share.
    """

    label_prior: Floats
    feature_prior: Floats
    temper: Floats
    concentration: float = 1.0
    concentration_prior: GammaPrior | None = None
    votes: Floats | None = None
    common: CommonRates | None = None

    @property
    def given_concentration(self) -> float | GammaPrior:
        """The concentration as a sampler takes it: its prior where it is drawn, else a number."""
        return self.concentration if self.concentration_prior is None else self.concentration_prior

    def log_label_rates(self, label_counts: NDArray[Any]) -> Floats:
        """Log posterior mean of the label rates for rows of label counts."""
        posterior = label_counts + self.label_prior
        return np.asarray(np.log(posterior) - np.log(posterior.sum(axis=-1, keepdims=True)))

    def log_label_evidence(self, label_counts: NDArray[Any]) -> float:
        """Log probability of known labels: each task has its own rates (thesis eq. A.30, first factor)."""
        return float(log_label_marginals(label_counts, self.label_prior).sum())


def log_label_marginals(label_counts: NDArray[Any], label_prior: Floats) -> Floats:
    """Log marginal of each row of label counts under one Dirichlet prior (thesis eq. A.30, first factor)."""
    posterior = label_counts + label_prior
    terms = gammaln(posterior).sum(axis=1) - gammaln(posterior.sum(axis=1))
    return np.asarray(terms - gammaln(label_prior).sum() + gammaln(label_prior.sum()))


def feature_product(data: TrainingData, hyper: HyperParameters) -> DirichletProduct:
    """The features' prior, with tables that reach the count of all rows together."""
    statistics, largest = data.statistics, 0
    if statistics.whole:
        largest = int(statistics.label_counts.sum()) + len(data.unlabelled.labels)
    layout = statistics.layout
    return dirichlet_product(hyper.feature_prior, layout.group_start, largest, layout.number_groups)
