"""Clustered naive Bayes: tasks of a cluster have the same feature rates (thesis sections 2.5 and A.1.3).

Hyper-parameters that are to be learnt are found by an EM algorithm: infer blocks, learn from them, and infer again
until nothing changes much.

In the papers: Roy (2006), eq. 2.32–2.35, A.39–A.42; Roy and Kaelbling (2007), section 2.2.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kinfolk.evidence import Evidence
from kinfolk.naive_bayes.inference import bhc, exact, gibbs, variational
from kinfolk.naive_bayes.inference.conditional_evidence import labels_given_features_and_clusters
from kinfolk.naive_bayes.inference.empirical_bayes import learn_feature_prior
from kinfolk.naive_bayes.inference.fitting import LeftOut
from kinfolk.naive_bayes.inference.leave_one_out import fitted_blocks, reseat
from kinfolk.naive_bayes.inference.leave_one_out import leave_out as leave_out_of_blocks
from kinfolk.naive_bayes.inference.options import Effort, Options
from kinfolk.naive_bayes.model.values import Fitted, HyperParameters, TrainingData, feature_product
from kinfolk.partition.concentration import GammaPrior, most_probable_concentration
from kinfolk.partition.search import search_partitions
from kinfolk.partition.tree import TaskTree
from kinfolk.tasks.statistics import Rows

# The algorithms, by what a user types.
ALGORITHMS = {
    "bhc": bhc.infer,
    "randomised-bhc": bhc.infer,
    "gibbs": gibbs.infer,
    "exact": exact.infer,
    "variational": variational.infer,
}
# Algorithms that learn from unlabelled rows; the others leave them out.
USE_UNLABELLED = ("gibbs", "exact")
# Beyond this many tasks a draft for the sampler's hyper-parameters is made by variational inference.
_MAX_BHC_TASKS = 2_000
# Rounds of inference and learning, and the change of logs below which there is no other.
_MAX_ROUNDS, _SETTLED = 4, 0.05


def infer(data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> tuple[HyperParameters, Fitted]:
    """Infer the partition, and hyper-parameters along with it."""
    hyper, fitted = learn_from_blocks(data, hyper, options, seed)
    return ALGORITHMS[options.inference](data, hyper, options, seed) if fitted is None else (hyper, fitted)


def learn_from_blocks(
    data: TrainingData, hyper: HyperParameters, options: Options, seed: int
) -> tuple[HyperParameters, Fitted | None]:
    """Hyper-parameters, given or learnt by EM, and what the last inference left, where it was made with them.

    A sampler's are learnt from a quicker algorithm's blocks, of the labelled rows; the concentration it draws itself.
    """
    layout, n_tasks = data.statistics.layout, len(data.statistics.tasks)
    samples = options.inference == "gibbs"
    if samples and "concentration" in hyper.learns:
        hyper = hyper._replace(concentration_prior=GammaPrior())
    if not hyper.learns & ({"feature_prior"} if samples else {"feature_prior", "concentration"}):
        return hyper, None
    if samples:
        # Variational inference takes no columns of numbers.
        many = "randomised-bhc" if layout.numbers else "variational"
        options = options._replace(inference="bhc" if n_tasks <= _MAX_BHC_TASKS else many)
        data = data.labelled_only()
    change = 0.0
    for _ in range(_MAX_ROUNDS):
        _, fitted = ALGORITHMS[options.inference](data, hyper, options, seed)
        if fitted.interrupted:
            if samples:  # without a draw
                raise KeyboardInterrupt
            return hyper, fitted
        learnt, probability = hyper, fitted.block_probabilities()
        if "feature_prior" in hyper.learns:
            prior = learn_feature_prior(fitted.blocks.counts, probability, layout)
            learnt = learnt._replace(feature_prior=prior.pseudo_counts(layout), votes=prior.votes)
        if "concentration" in hyper.learns:
            concentration = most_probable_concentration(float(probability.sum()), n_tasks, GammaPrior())
            learnt = learnt._replace(concentration=concentration)
        ratios = np.append(learnt.feature_prior / hyper.feature_prior, learnt.concentration / hyper.concentration)
        change = float(np.abs(np.log(ratios)).max())
        if change < _SETTLED:
            return hyper, None if samples else fitted
        hyper = learnt
    warnings.warn(
        f"feature_prior and concentration had not settled after {_MAX_ROUNDS} rounds of inference: the last changed "
        f"one of them by a factor of {np.exp(change):.2g}; give numbers, or look at feature_prior_ and concentration_",
        ConvergenceWarning,
        stacklevel=2,
    )
    return hyper, None


def evidence(data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> Evidence:
    """Log p(X, Y), annealed."""
    return gibbs.evidence(data, hyper, seed, options.n_jobs)


def leave_out(data: TrainingData, hyper: HyperParameters, fitted: Fitted, rows: Rows, options: Options) -> LeftOut:
    """What is said of each of these training rows by all others, once its task has been seated anew."""
    # Where all partitions are summed over, those that the row does not choose are among them.
    if options.inference == "exact":
        blocks = fitted_blocks(fitted)
    else:
        blocks = reseat(data, hyper, fitted.partition, np.unique(rows.task))
    return leave_out_of_blocks(data, hyper, blocks, rows, data.statistics.label_counts)


def labels_given_features(
    data: TrainingData, hyper: HyperParameters, fitted: Fitted, rows: Rows, options: Options, effort: Effort
) -> Evidence:
    """Log p(Y | X)."""
    known = fitted.evidence
    joint = known if known is not None and known.kind == "exact" else None
    return labels_given_features_and_clusters(data, hyper, rows, effort, joint)


def searched_evidence(
    data: TrainingData, hyper: HyperParameters, seed: int, tree: TaskTree | None = None, n_sweeps: int = 100
) -> Evidence:
    """Bound log p(X, Y) of the labelled rows from below by searching partitions (thesis section 4.3, eq. 4.11–4.15).

    The bound is no lower than the sum over the tree's partitions.
    """
    statistics = data.statistics.widened()
    # Neither names nor the order of tasks may tell where the search goes.
    order = data.canonical_order
    if tree is not None:
        n_tasks = len(order)
        place = np.concatenate([np.argsort(order), np.arange(n_tasks, 2 * n_tasks - 1)])
        tree = tree._replace(children=place[tree.children])
    found = search_partitions(
        statistics.feature_counts[order],
        feature_product(data, hyper),
        hyper.concentration,
        tree=tree,
        n_sweeps=n_sweeps,
        seed=seed,
    ).evidence
    return found._replace(value=found.value + hyper.log_label_evidence(data.statistics.label_counts))
