"""The evidence of labels given features agrees with sums over every labelling and every partition."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import gammaln, logsumexp, softmax
from scipy.stats import beta, gamma
from sklearn.base import clone

from kinfolk import ClusteredNB, CompleteSharingNB, NoSharingNB, PrototypeNB
from kinfolk.naive_bayes.inference.conditional_evidence import labels_given_features_and_blocks
from kinfolk.naive_bayes.inference.label_exchange import HeldSeatsChain, RelabellingChain
from kinfolk.naive_bayes.inference.options import Effort
from kinfolk.partition.crp import canonical
from kinfolk.tasks.statistics import Rows
from tests import oracle
from tests.naive_bayes.posed import posed_to
from tests.problems import as_arguments, priors, random_problems

FARTHEST = 4.0
# Runs that all agree have an error of nought, and are exact to rounding and no further.
FLOOR = 1e-6

MODELS = {
    "clustered": ClusteredNB(inference="gibbs"),
    "none": NoSharingNB(),
    "complete": CompleteSharingNB(),
    "complete-own-labels": CompleteSharingNB(share_labels=False),
}
LABELLED = {"n_tasks": 3, "n_rows": 8, "missing": 0.1}
THREE_LABELS = {"n_tasks": 2, "n_rows": 6, "n_labels": 3, "n_features": 3}
PARTLY_LABELLED = {"n_tasks": 3, "n_rows": 8, "unlabelled": 0.25}


def log_labels_given_features(problem: oracle.Problem, name: str) -> float:
    """log P(Y | X): the known labels' evidence over that of all labellings together."""
    nothing_known = replace(problem, labels=np.full_like(problem.labels, -1))
    return oracle.log_evidence(problem, name) - oracle.log_evidence(nothing_known, name)


def fitted(problem: oracle.Problem, name: str, seed: int = 0, **parameters: Any) -> Any:
    model = clone(MODELS[name]).set_params(n_chains=1, n_burn_in=0, n_draws=1, random_state=seed, **priors(problem))
    if name == "clustered":
        model.set_params(concentration=problem.concentration)
    return model.set_params(**parameters).fit(**as_arguments(problem))


def distances(problem: oracle.Problem, name: str, seeds: range, **parameters: Any) -> list[float]:
    """How far estimates are from the truth, in their own standard errors."""
    truth = log_labels_given_features(problem, name)
    model = fitted(problem, name, **parameters)
    found = [model.conditional_evidence(random_state=seed, n_runs=16, max_powers=100) for seed in seeds]
    assert {estimate.kind for estimate in found} == {"estimate"}
    return [(estimate.value - truth) / float(np.hypot(estimate.error, FLOOR)) for estimate in found]


@pytest.mark.parametrize("shape", [LABELLED, THREE_LABELS, PARTLY_LABELLED])
@pytest.mark.parametrize("name", MODELS)
def test_the_estimate_is_within_its_error_of_the_sum_over_all_labellings(name, shape):
    (problem,) = random_problems(1, seed=300, **shape)
    assert np.abs(distances(problem, name, range(2))).max() < FARTHEST


@pytest.mark.parametrize("name", ["clustered", "none", "complete-own-labels"])
def test_standard_errors_are_as_large_as_the_errors(name):
    problems = random_problems(3, seed=310, **LABELLED)
    z = np.array([distances(problem, name, range(8)) for problem in problems]).ravel()
    assert 0.5 < z.std() < 1.8
    assert abs(z.mean()) < 4 / np.sqrt(len(z))


@pytest.mark.parametrize("inference", ["bhc", "variational", "exact"])
def test_every_way_to_cluster_has_the_model_s_own_conditional_evidence(inference):
    (problem,) = random_problems(1, seed=320, **LABELLED)
    assert np.abs(distances(problem, "clustered", range(2), inference=inference)).max() < FARTHEST


@pytest.mark.filterwarnings("ignore:.*left out:UserWarning")
def test_a_method_that_leaves_unlabelled_rows_out_leaves_their_features_out_too():
    (problem,) = random_problems(1, seed=330, **PARTLY_LABELLED)
    known = problem.labels >= 0
    labelled = replace(
        problem,
        codes=problem.codes[known],
        labels=problem.labels[known],
        task=problem.task[known],
        weights=problem.weights[known],
    )
    with_all, with_labelled = (
        fitted(p, "clustered", inference="bhc").conditional_evidence(random_state=0) for p in (problem, labelled)
    )
    truth = log_labels_given_features(labelled, "clustered")
    assert abs(with_all.value - truth) < FARTHEST * with_all.error
    assert abs(with_labelled.value - truth) < FARTHEST * with_labelled.error


def test_a_row_of_weight_two_is_two_rows():
    (problem,) = random_problems(1, seed=340, n_tasks=2, n_rows=5)
    twice = np.array([0, 0, 1, 2, 3, 3, 4])
    repeated = replace(
        problem,
        codes=problem.codes[twice],
        labels=problem.labels[twice],
        task=problem.task[twice],
        weights=np.ones(len(twice)),
    )
    model = clone(MODELS["complete"]).set_params(random_state=0, **priors(problem))
    model.fit(**as_arguments(problem), sample_weight=[2, 1, 1, 2, 1])
    found = model.conditional_evidence()
    assert abs(found.value - log_labels_given_features(repeated, "complete")) < FARTHEST * found.error


def test_independent_tasks_together_are_estimated_as_well_as_the_sum_of_each():
    """Weights of whole states would spread as far as the product of all tasks' weights does."""
    (problem,) = random_problems(1, seed=350, n_tasks=40, n_rows=240)
    model = fitted(problem, "none")
    truth = 0.0
    for task in range(40):
        own = problem.task == task
        alone = replace(
            problem,
            codes=problem.codes[own],
            labels=problem.labels[own],
            task=np.zeros(own.sum(), dtype=np.int64),
            weights=problem.weights[own],
            n_tasks=1,
        )
        truth += log_labels_given_features(alone, "none")
    found = model.conditional_evidence(max_powers=60)
    assert found.error < 0.3
    assert abs(found.value - truth) < FARTHEST * found.error


@pytest.mark.parametrize("held", [True, False])
def test_a_sweep_that_exchanges_labels_leaves_the_annealed_distribution_as_it_is(held):
    power = 0.6
    (problem,) = random_problems(1, seed=360, n_tasks=3, n_rows=5, concentration=0.9)
    problem = replace(problem, labels=np.full_like(problem.labels, -1))
    blind = replace(problem, codes=np.full_like(problem.codes, -1))
    zs = [(0, 1, 0)] if held else oracle.partitions(3)
    states = [(z, tuple(y)) for z in zs for y in oracle.labellings(problem).tolist()]
    log_blind = np.array([oracle.log_joint(blind, z, y) for z, y in states])
    log_full = np.array([oracle.log_joint(problem, z, y) for z, y in states])
    annealed = softmax(log_blind + power * (log_full - log_blind))

    inner = nothing_known(problem)
    kind = HeldSeatsChain if held else RelabellingChain
    fixed = np.array(zs[0]) if held else None
    rng = np.random.default_rng(3)
    n_chains, n_sweeps = 40, 250
    place = {state: i for i, state in enumerate(states)}
    shares = np.zeros((n_chains, len(states)))
    for share in shares:
        chain = kind(*inner, inner.product(), fixed)
        chain.draw_from_prior(rng)
        for sweep in range(20 + n_sweeps):
            chain.sweep(rng, power)
            if sweep >= 20:
                seats = tuple(canonical(chain.seating.seat))
                share[place[seats, tuple(chain.labels.rows.labels.tolist())]] += 1 / n_sweeps
    error = shares.std(axis=0, ddof=1) / np.sqrt(n_chains)
    far = np.abs(shares.mean(axis=0) - annealed) / np.maximum(error, 2e-4)
    assert far.max() < 4.5
    assert np.sqrt((far**2).mean()) < 1.5


def nothing_known(problem: oracle.Problem) -> Any:
    """The library's own problem of rows without labels."""
    shown = replace(problem, labels=np.arange(len(problem.labels)) % problem.n_labels)
    inner = posed_to(fitted(shown, "clustered")).at(problem.concentration)
    statistics = inner.statistics
    nothing = statistics._replace(
        feature_counts=np.zeros_like(statistics.feature_counts), label_counts=np.zeros_like(statistics.label_counts)
    )
    rows = Rows(problem.codes.astype(np.int32), problem.labels.astype(np.int32), problem.task, None)
    return inner._replace(data=replace(inner.data, statistics=nothing, unlabelled=rows))


def test_the_core_takes_any_given_partition():
    (problem,) = random_problems(1, seed=370, **LABELLED)
    partition = np.array([0, 1, 0])
    nothing = replace(problem, labels=np.full_like(problem.labels, -1))
    log_features = logsumexp([oracle.log_data(nothing, tuple(partition), y) for y in oracle.labellings(nothing)])
    truth = oracle.log_data(problem, tuple(partition), problem.labels) - log_features
    rows = Rows(problem.codes.astype(np.int32), problem.labels.astype(np.int32), problem.task, None)
    posed = posed_to(fitted(problem, "clustered"))
    found = labels_given_features_and_blocks(*posed, rows, partition, Effort(max_powers=60))
    assert abs(found.value - truth) < FARTHEST * found.error


def log_prototype_joint(problem: oracle.Problem, labels: Any, strength_prior: tuple[float, float]) -> float:
    """log P(X, Y) with prototypes of two values each, by the sum over a grid of K and θ̄."""
    shape, rate = strength_prior
    # Midpoints of equal shares of the prior's mass make every integral a plain mean.
    middle = (np.arange(120) + 0.5) / 120
    strength = gamma.ppf(middle, shape, scale=1 / rate)[:, None]
    total = 0.0
    for u in range(problem.n_tasks):
        m = np.bincount(labels[problem.task == u], minlength=problem.n_labels)
        total += gammaln(m + problem.alpha).sum() - gammaln(problem.alpha).sum()
        total += gammaln(problem.alpha.sum()) - gammaln((m + problem.alpha).sum())
    for y in range(problem.n_labels):
        for f in range(len(problem.n_values)):
            theta = beta.ppf(middle, *problem.beta[y][f])[None, :]
            log_fit = np.zeros((120, 120))
            for u in range(problem.n_tasks):
                own = (problem.task == u) & (labels == y) & (problem.codes[:, f] >= 0)
                n = np.bincount(problem.codes[own, f], minlength=2)
                for x, part in enumerate((theta, 1 - theta)):
                    log_fit += gammaln(strength * part + n[x]) - gammaln(strength * part)
                log_fit += gammaln(strength) - gammaln(strength + n.sum())
            total += float(logsumexp(log_fit)) - 2 * np.log(120)
    return total


def test_the_prototype_model_agrees_with_quadrature_over_every_labelling():
    (problem,) = random_problems(1, seed=380, n_tasks=2, n_rows=6, n_values=2)
    strength_prior = (2.0, 0.2)
    nothing = replace(problem, labels=np.full_like(problem.labels, -1))
    joint = log_prototype_joint(problem, problem.labels, strength_prior)
    features = logsumexp([log_prototype_joint(problem, y, strength_prior) for y in oracle.labellings(nothing)])
    model = PrototypeNB(strength_prior=strength_prior, n_chains=1, n_draws=20, random_state=0, **priors(problem))
    model.fit(**as_arguments(problem))
    for seed in range(2):
        found = model.conditional_evidence(random_state=seed, n_runs=16, max_powers=60)
        assert abs(found.value - (joint - features)) < FARTHEST * found.error


def test_the_seed_repeats_the_estimate_and_threads_do_not_change_it():
    (problem,) = random_problems(1, seed=390, **LABELLED)
    model = fitted(problem, "clustered")
    first, again, other = (model.conditional_evidence(random_state=s, n_runs=8, max_powers=40) for s in (1, 1, 2))
    assert first == again
    assert first != other
    assert model.set_params(n_jobs=2).conditional_evidence(random_state=1, n_runs=8, max_powers=40) == first


def test_a_model_fitted_to_counts_says_what_it_lacks():
    model = NoSharingNB().fit_statistics(np.ones((2, 2, 1, 3), dtype=int), np.full((2, 2), 3))
    with pytest.raises(ValueError, match="holds counts alone"):
        model.conditional_evidence()


def test_a_single_run_is_refused():
    (problem,) = random_problems(1, seed=390, **LABELLED)
    with pytest.raises(ValueError, match="n_runs=1"):
        fitted(problem, "none").conditional_evidence(n_runs=1)


@pytest.mark.parametrize("numeric", ["gaussian", {"n": "count"}], ids=str)
@pytest.mark.parametrize("model", [NoSharingNB, CompleteSharingNB], ids=lambda model: model.__name__)
def test_columns_of_numbers_beside_categories_agree_with_the_sum_over_all_labellings(model, numeric):
    """log P(Y | X) = log P(X, Y) − log Σ_Y P(X, Y), each from the closed form of one fit."""
    rng = np.random.default_rng(3)
    y = np.array([0, 1, 0, 1, 1, 0, 1])
    X = pl.DataFrame({"a": rng.choice(["p", "q"], 7), "n": (rng.poisson(40.0, 7) + 30 * y).astype(float)})
    task = np.array([0, 0, 0, 0, 1, 1, 1])
    priors = {"label_prior": 1.0, "feature_prior": 1.0, "temper": 1.0, "categorical_features": ["a"]}

    def log_joint(labels):
        fitted = model(numeric=numeric, **priors).partial_fit(X, labels, classes=[0, 1], task=task)
        return fitted.log_evidence_

    everything = np.logaddexp.reduce([log_joint(np.array(labels)) for labels in product((0, 1), repeat=7)])
    found = model(numeric=numeric, **priors).fit(X, y, task=task).conditional_evidence(n_runs=64, random_state=0)
    assert found.value == pytest.approx(log_joint(y) - everything, abs=4 * found.error + 0.02)
