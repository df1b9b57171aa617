"""Evidence of the labels given the features, p(Y | X), of every naive Bayes model (thesis eq. 4.4–4.7, A.2.2–A.2.3).

A generative model knows it as

    p(Y | X) = p(X, Y) / p(X),        p(X) = Σ p(X, Y) over all labellings Y.

The denominator is annealed along p(Θ) p(Y | φ) p(X | Y, θ)^τ, from τ = 0, where labels and all the rest come from their
priors and the normalising constant is one, to τ = 1; parameters are integrated out wherever they can be. (The path of
A.55 has the power on p(Y | φ) too: it begins with uniform labels, at Z₀ = |L|^N, where A.2.3 prints an inverse.) Blocks
of tasks that are given, as each task is without sharing, are independent, and annealed each by itself.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kinfolk.evidence import Annealed, Evidence, annealed_evidence
from kinfolk.naive_bayes.estimators.base import SharingNB
from kinfolk.naive_bayes.estimators.clustered import ClusteredNB
from kinfolk.naive_bayes.estimators.complete_sharing import CompleteSharingNB
from kinfolk.naive_bayes.estimators.learnt import is_learn
from kinfolk.naive_bayes.estimators.no_sharing import NoSharingNB
from kinfolk.naive_bayes.estimators.prototype import PrototypeNB
from kinfolk.naive_bayes.inference.gibbs import arrange, sampled_evidence
from kinfolk.naive_bayes.inference.given_partition import fixed_evidence
from kinfolk.naive_bayes.inference.label_exchange import HeldSeatsChain, RelabellingChain
from kinfolk.naive_bayes.inference.prototype import noise_model
from kinfolk.naive_bayes.inference.prototype_evidence import prototype_evidence
from kinfolk.naive_bayes.inference.prototype_unlabelled import PrototypeChain
from kinfolk.naive_bayes.model.fitted import Problem
from kinfolk.naive_bayes.model.noisy_copies import NoiseModel
from kinfolk.partition.concentration import GammaPrior
from kinfolk.partition.exact import MAX_TASKS, exact_partitions
from kinfolk.tasks.statistics import Rows, no_rows

# Methods of clustering that learn from unlabelled rows; the others leave them out, here as everywhere.
_USE_UNLABELLED = ("gibbs", "exact")


class Effort(NamedTuple):
    """How hard to try: annealed runs, the standard error to aim at, the most powers of a run, runs side by side."""

    n_runs: int = 32
    target_error: float = 0.1
    max_powers: int = 500
    n_jobs: int | None = None

    def anneal(self, states: list[Annealed], seed: int) -> Evidence:
        """Estimate from one run of each state, whose normalising constant is one at the start."""
        seeds = np.random.SeedSequence([seed, 3]).spawn(len(states))
        return annealed_evidence(
            states, 0.0, seeds, n_jobs=self.n_jobs, target_error=self.target_error, max_powers=self.max_powers
        )


def conditional_evidence(
    model: SharingNB,
    *,
    n_runs: int = 32,
    random_state: Any = None,
    target_error: float = 0.1,
    max_powers: int = 500,
) -> Evidence:
    """Estimate the log probability of the known labels of the training rows, given all their features.

    It weighs models by how well they tell labels, where ``log_evidence_`` weighs how well they tell features too. A
    training row of whole weight w is w rows; one of another weight has a single label, which counts w.

    Parameters
    ----------
    model : fitted NoSharingNB, CompleteSharingNB, PrototypeNB or ClusteredNB
        Fitted to rows: counts do not say which features were seen together.
    n_runs : int
        Annealed runs to average, at least 2.
    random_state : int, RandomState or None
        Seed of the runs; by default that of the fit.
    target_error : float
        Standard error to aim at.
    max_powers : int
        Most steps of a run; where the aim asks for more, the error tells how far it was missed.

    Returns
    -------
    Evidence
        With the standard error of numerator and denominator together.

    Examples
    --------
    Two features that always agree with the label leave little doubt about labels, but for which is which: about one
    chance in two.

    >>> from kinfolk import NoSharingNB
    >>> model = NoSharingNB(label_prior=1.0, feature_prior=1.0, random_state=0)
    >>> model = model.fit([["a", "b"], ["c", "d"]] * 5, ["yes", "no"] * 5)
    >>> found = conditional_evidence(model)
    >>> found.kind, round(found.value, 0), found.error < 0.1
    ('estimate', -1.0, True)
    """
    check_is_fitted(model)
    if n_runs < 2:
        raise ValueError(f"n_runs={n_runs!r}: a standard error needs at least 2 runs")
    problem, rows = _training_rows(model)
    seed = model._seed if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))
    effort = Effort(n_runs, target_error, max_powers, model.n_jobs)
    if isinstance(model, PrototypeNB):
        return prototype_labels_given_features(
            problem, rows, noise_model(problem, model.strength_prior), seed, effort, model._evidence()
        )
    if isinstance(model, NoSharingNB):
        fixed = np.arange(len(problem.statistics.tasks))
        return labels_given_features(problem, rows, 1.0, fixed, seed, effort)
    if isinstance(model, CompleteSharingNB):
        problem = model._shared(problem)
        fixed = np.zeros(len(problem.statistics.tasks), dtype=np.int64)
        rows = rows._replace(task=np.zeros_like(rows.task)) if model.share_labels else rows
        return labels_given_features(problem, rows, 1.0, fixed, seed, effort)
    if isinstance(model, ClusteredNB):
        drawn = model.inference == "gibbs" and is_learn(model.concentration)
        concentration = GammaPrior() if drawn else model.concentration_
        known = model.posterior_.evidence
        joint = known if known is not None and known.kind == "exact" else None
        return labels_given_features(problem, rows, concentration, None, seed, effort, joint)
    raise ValueError(f"the conditional evidence of a {type(model).__name__} is not known")


def _training_rows(model: SharingNB) -> tuple[Problem, Rows]:
    """The problem that a model was fitted to, and all rows of it."""
    problem = model._problem()
    layout = problem.statistics.layout
    rows: Rows = getattr(model, "_rows", no_rows(layout))
    n_counted = float(len(rows.labels) if rows.weights is None else rows.weights.sum())
    if not np.isclose(n_counted, float(problem.statistics.label_counts.sum())):
        raise ValueError(
            "conditional evidence needs the training rows, and this model holds counts alone: fit it to rows"
        )
    if getattr(model, "inference", "gibbs") in _USE_UNLABELLED:
        return problem, _repeated(rows).followed_by(problem.unlabelled)
    return problem._replace(unlabelled=no_rows(layout)), _repeated(rows)


def _repeated(rows: Rows) -> Rows:
    """Rows of weight one, as many of each as its weight says; as they are where weights are not whole."""
    if rows.weights is None or (rows.weights != np.floor(rows.weights)).any():
        return rows
    return rows.take(np.repeat(np.arange(len(rows.labels)), rows.weights.astype(np.int64)))._replace(weights=None)


def labels_given_features(
    problem: Problem,
    rows: Rows,
    concentration: float | GammaPrior,
    fixed: NDArray[np.int64] | None,
    seed: int,
    effort: Effort | None = None,
    joint: Evidence | None = None,
) -> Evidence:
    """Estimate log p(Y | X) for tasks that are clustered, or whose partition is given (``fixed``).

    ``rows`` are all rows of the problem, labelled or not; ``joint`` is its log p(X, Y) where that is known.
    """
    effort = Effort() if effort is None else effort
    if joint is None:
        joint = _joint_evidence(problem, concentration, fixed, seed, effort)
    blind = _without_labels(problem, rows)
    order = blind.canonical_order()
    arranged, _ = arrange(blind, order)
    product = blind.product()
    states: list[Annealed] = [
        RelabellingChain(arranged, product, concentration)
        if fixed is None
        else HeldSeatsChain(arranged, product, concentration, fixed[order])
        for _ in range(effort.n_runs)
    ]
    return _ratio(joint, effort.anneal(states, seed))


def prototype_labels_given_features(
    problem: Problem,
    rows: Rows,
    model: NoiseModel,
    seed: int,
    effort: Effort | None = None,
    joint: Evidence | None = None,
) -> Evidence:
    """Estimate log p(Y | X) for tasks that are noisy copies of a prototype; otherwise as above."""
    effort = Effort() if effort is None else effort
    if joint is None:
        joint = prototype_evidence(problem, model, seed, effort.n_jobs, effort.n_runs)
    blind = _without_labels(problem, rows)
    arranged, _ = arrange(blind, blind.canonical_order())
    states: list[Annealed] = [PrototypeChain(arranged, model) for _ in range(effort.n_runs)]
    return _ratio(joint, effort.anneal(states, seed))


def _joint_evidence(
    problem: Problem, concentration: float | GammaPrior, fixed: NDArray[np.int64] | None, seed: int, effort: Effort
) -> Evidence:
    """Log p(X, Y), exactly where that is no trouble."""
    statistics = problem.statistics
    if not len(problem.unlabelled.labels):
        if fixed is not None:
            return fixed_evidence(problem._replace(statistics=statistics.widened()), fixed)
        if len(statistics.tasks) <= MAX_TASKS and not isinstance(concentration, GammaPrior):
            partitions = exact_partitions(statistics.feature_counts, problem.product(), concentration)
            return Evidence(partitions.log_evidence + problem.log_label_evidence(), "exact")
    return sampled_evidence(problem, concentration, seed, effort.n_jobs, fixed, effort.n_runs)


def _without_labels(problem: Problem, rows: Rows) -> Problem:
    """The same tasks, of whose rows no label is known."""
    statistics, weights = problem.statistics, rows.weights
    whole = weights is None or not (weights != np.floor(weights)).any()
    dtype = np.dtype(np.int64 if whole and not statistics.layout.numbers else np.float64)
    nothing = statistics._replace(
        feature_counts=np.zeros(statistics.feature_counts.shape, dtype=dtype),
        label_counts=np.zeros(statistics.label_counts.shape, dtype=dtype),
    )
    unlabelled = rows._replace(
        codes=np.ascontiguousarray(rows.codes), labels=np.full(len(rows.labels), -1, dtype=np.int32)
    )
    return problem._replace(statistics=nothing, unlabelled=unlabelled)


def _ratio(joint: Evidence, features: Evidence) -> Evidence:
    """Log p(X, Y) − log p(X), with the errors of two runs that know nothing of each other."""
    return Evidence(joint.value - features.value, "estimate", float(np.hypot(joint.error, features.error)))
