"""Prototype sharing: every task a noisy copy of one prototype (thesis section 2.4, eq. 2.25–2.31)."""

from __future__ import annotations

from kinfolk.evidence import Annealed, Evidence
from kinfolk.naive_bayes.inference import prototype_labelled, prototype_unlabelled
from kinfolk.naive_bayes.inference.conditional_evidence import Effort, ratio, without_labels
from kinfolk.naive_bayes.inference.empirical_bayes import learn_priors
from kinfolk.naive_bayes.inference.leave_one_out import LeftOut, fitted_blocks
from kinfolk.naive_bayes.inference.leave_one_out import leave_out as leave_out_of_blocks
from kinfolk.naive_bayes.inference.options import Options
from kinfolk.naive_bayes.inference.prototype_evidence import prototype_evidence
from kinfolk.naive_bayes.inference.prototype_unlabelled import PrototypeChain
from kinfolk.naive_bayes.model.data import TrainingData
from kinfolk.naive_bayes.model.fitted import Fitted
from kinfolk.naive_bayes.model.hyper import GivenHyperParameters, HyperParameters
from kinfolk.naive_bayes.model.noisy_copies import noise_model
from kinfolk.naive_bayes.model.prototype import all_votes, mean_counts, pseudo_counts
from kinfolk.tasks.statistics import Rows


def infer(
    data: TrainingData, given: GivenHyperParameters, options: Options, seed: int
) -> tuple[HyperParameters, Fitted]:
    """Sample strengths and prototypes, and the labels of unlabelled rows."""
    statistics = data.statistics
    pooled = statistics.pooled().feature_counts
    hyper = learn_priors(given, statistics.layout, statistics.label_counts, pooled, same_for_labels=True)
    infer_all = prototype_unlabelled.infer if data.n_unlabelled else prototype_labelled.infer
    return infer_all(data, hyper, options, seed)


def evidence(data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> Evidence:
    """Log p(X, Y): a bridge, and annealed where there are unlabelled rows."""
    model = noise_model(hyper.feature_prior, data.statistics.layout, options.strength_prior)
    return prototype_evidence(data, hyper, model, seed, options.n_jobs)


def leave_out(data: TrainingData, hyper: HyperParameters, fitted: Fitted, rows: Rows, options: Options) -> LeftOut:
    """Take rows out of their tasks and, by their votes, out of the prototype; strengths stay as they are."""
    assert fitted.prototypes is not None
    layout = data.statistics.layout
    pseudo = pseudo_counts(fitted.prototypes, layout)
    votes = hyper.feature_prior + all_votes(mean_counts(fitted), pseudo, layout)
    of_tasks = hyper._replace(feature_prior=pseudo, votes=votes)
    return leave_out_of_blocks(data, of_tasks, fitted_blocks(fitted), rows, data.statistics.label_counts)


def labels_given_features(
    data: TrainingData, hyper: HyperParameters, fitted: Fitted, rows: Rows, options: Options, effort: Effort
) -> Evidence:
    """Log p(Y | X)."""
    model = noise_model(hyper.feature_prior, data.statistics.layout, options.strength_prior)
    joint = prototype_evidence(data, hyper, model, effort.seed, effort.n_jobs)
    blind = without_labels(data, rows)
    arranged, _ = blind.arranged(blind.canonical_order())
    states: list[Annealed] = [PrototypeChain(arranged, hyper, model) for _ in range(effort.n_runs)]
    return ratio(joint, effort.log_features(states))
