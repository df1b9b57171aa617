"""Clustered naive Bayes whose tasks have noisy copies of their cluster's rates.

The model and its sampler are described in ``noisy_sampling``.

In the papers: Roy and Kaelbling (2007), section 6.
"""

from __future__ import annotations

from kinfolk.evidence import Evidence
from kinfolk.naive_bayes.inference import noisy_sampling
from kinfolk.naive_bayes.inference.clustered import learn_from_blocks
from kinfolk.naive_bayes.inference.conditional_evidence import Effort
from kinfolk.naive_bayes.inference.leave_one_out import LeftOut
from kinfolk.naive_bayes.inference.noisy_evidence import noisy_evidence
from kinfolk.naive_bayes.inference.noisy_leave_one_out import leave_out_noisy
from kinfolk.naive_bayes.inference.options import Options
from kinfolk.naive_bayes.model.data import TrainingData
from kinfolk.naive_bayes.model.fitted import Fitted
from kinfolk.naive_bayes.model.hyper import GivenHyperParameters, HyperParameters
from kinfolk.tasks.statistics import Rows


def infer(
    data: TrainingData, given: GivenHyperParameters, options: Options, seed: int
) -> tuple[HyperParameters, Fitted]:
    """Sample partitions, strengths and prototypes, whatever algorithm the options name."""
    data.refuse_numbers()
    hyper, _ = learn_from_blocks(data, given, options, seed, samples=True)
    return noisy_sampling.infer(data, hyper, options, seed)


def evidence(data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> Evidence:
    """Log p(X, Y) of the labelled rows, annealed."""
    return noisy_evidence(data, hyper, options.strength_prior, seed, options.n_jobs)


def leave_out(data: TrainingData, hyper: HyperParameters, fitted: Fitted, rows: Rows, options: Options) -> LeftOut:
    """What is said of each of these training rows by all others."""
    return leave_out_noisy(data, hyper, fitted, rows)


def labels_given_features(
    data: TrainingData, hyper: HyperParameters, fitted: Fitted, rows: Rows, options: Options, effort: Effort
) -> Evidence:
    """Refuse: unknown labels and votes are not annealed together."""
    raise ValueError('conditional_evidence knows partition_per="task" with within="same" alone')
