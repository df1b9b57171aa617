"""No sharing: one naive Bayes model per task, all at once (thesis section 2.2; inference A.1.1).

In the papers: Roy (2006), eq. 2.14–2.17, A.10–A.13; Roy and Kaelbling (2007), eq. (1).
"""

from __future__ import annotations

import numpy as np

from kinfolk.evidence import Evidence
from kinfolk.naive_bayes.inference import given_partition
from kinfolk.naive_bayes.inference.conditional_evidence import labels_given_features_and_blocks
from kinfolk.naive_bayes.inference.empirical_bayes import with_learnt_prior
from kinfolk.naive_bayes.inference.fitting import LeftOut
from kinfolk.naive_bayes.inference.leave_one_out import fitted_blocks
from kinfolk.naive_bayes.inference.leave_one_out import leave_out as leave_out_of_blocks
from kinfolk.naive_bayes.inference.options import Effort, Options
from kinfolk.naive_bayes.model.values import Fitted, HyperParameters, TrainingData
from kinfolk.tasks.statistics import Rows

# A new task never joins another: the limit of the Chinese restaurant process.
_NEVER_JOINS = np.inf


def infer(data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> tuple[HyperParameters, Fitted]:
    """Every task is a block of its own."""
    statistics = data.statistics
    hyper = with_learnt_prior(hyper, statistics.feature_counts, statistics.layout)
    hyper = hyper._replace(concentration=_NEVER_JOINS)
    return given_partition.infer(data, hyper, options, seed, np.arange(len(statistics.tasks)))


def evidence(data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> Evidence:
    """Log p(X, Y), in closed form where all rows are labelled."""
    return given_partition.evidence(data, hyper, options, seed, np.arange(len(data.statistics.tasks)))


def leave_out(data: TrainingData, hyper: HyperParameters, fitted: Fitted, rows: Rows, options: Options) -> LeftOut:
    """What is said of each of these training rows by all others."""
    return leave_out_of_blocks(data, hyper, fitted_blocks(fitted), rows, data.statistics.label_counts)


def labels_given_features(
    data: TrainingData, hyper: HyperParameters, fitted: Fitted, rows: Rows, options: Options, effort: Effort
) -> Evidence:
    """Log p(Y | X)."""
    return labels_given_features_and_blocks(data, hyper, rows, np.arange(len(data.statistics.tasks)), effort)
