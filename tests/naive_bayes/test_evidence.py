"""Annealed estimates of the evidence lie where their standard errors say, for every model."""

from typing import Any

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone

from kinfolk import ClusteredNB, CompleteSharingNB, NoSharingNB
from kinfolk.naive_bayes.inference.gibbs import Chain
from kinfolk.partition.crp import canonical
from tests import oracle
from tests.naive_bayes.posed import posed_to
from tests.problems import as_arguments, priors, random_problems

# Estimates are compared about fifty times; standard errors come from 32 runs, so their tails are those of Student's t.
FARTHEST = 4.0
# Where hardly anything is unknown all runs agree to more digits than the powers of the path are exact to.
FLOOR = 1e-4

MODELS = {
    "clustered": ClusteredNB(inference="gibbs"),
    "none": NoSharingNB(),
    "complete": CompleteSharingNB(),
    "complete-own-labels": CompleteSharingNB(share_labels=False),
}
LABELLED = [{"n_tasks": 3, "n_rows": 9, "missing": 0.2}, {"n_tasks": 5, "n_rows": 20, "n_labels": 3}]
PARTLY_LABELLED = [
    {"n_tasks": 2, "n_rows": 8, "unlabelled": 0.5},
    {"n_tasks": 3, "n_rows": 9, "unlabelled": 0.34, "missing": 0.2, "n_labels": 3},
    {"n_tasks": 4, "n_rows": 14, "unlabelled": 0.36, "n_values": 4},
]


def problems_of(shapes: list[dict[str, Any]], each: int, seed: int) -> list[oracle.Problem]:
    return [p for i, shape in enumerate(shapes) for p in random_problems(each, seed=seed + i, **shape)]


def fitted(problem: oracle.Problem, name: str, seed: int = 0, **arguments: Any) -> Any:
    """A model fitted in no time: its evidence comes from a run of its own, not from these few draws."""
    model = clone(MODELS[name]).set_params(n_chains=1, n_burn_in=0, n_draws=1, random_state=seed, **priors(problem))
    if name == "clustered":
        model.set_params(concentration=problem.concentration)
    return model.fit(**as_arguments(problem), **arguments)


def distance(model: Any, truth: float) -> float:
    """How far an estimate is from the truth, in its own standard errors."""
    assert model.log_evidence_kind_ == "estimate"
    return float((model.log_evidence_ - truth) / np.hypot(model.log_evidence_error_, FLOOR))


@pytest.mark.parametrize("problem", problems_of(LABELLED, 3, seed=200))
def test_the_estimate_over_partitions_of_labelled_tasks_is_within_its_error(problem):
    assert abs(distance(fitted(problem, "clustered"), oracle.log_evidence(problem))) < FARTHEST


@pytest.mark.parametrize("problem", problems_of(PARTLY_LABELLED, 2, seed=210))
@pytest.mark.parametrize("name", MODELS)
def test_the_estimate_with_unlabelled_rows_is_within_its_error(problem, name):
    assert abs(distance(fitted(problem, name), oracle.log_evidence(problem, name))) < FARTHEST


@pytest.mark.parametrize("name", ["none", "complete", "complete-own-labels"])
@pytest.mark.parametrize("problem", problems_of(LABELLED, 1, seed=220))
def test_without_unlabelled_rows_a_given_partition_has_exact_evidence(problem, name):
    model = fitted(problem, name)
    assert model.log_evidence_ == pytest.approx(oracle.log_evidence(problem, name), abs=1e-10)
    assert (model.log_evidence_kind_, model.log_evidence_error_) == ("exact", 0.0)


@pytest.mark.parametrize(
    ("name", "shape"), [("clustered", LABELLED[0]), ("clustered", PARTLY_LABELLED[1]), ("none", PARTLY_LABELLED[0])]
)
def test_standard_errors_are_as_large_as_the_errors(name, shape):
    problems = random_problems(6, seed=230, **shape)
    truths = [oracle.log_evidence(problem, name) for problem in problems]
    z = np.array(
        [
            distance(fitted(problem, name, seed), truth)
            for problem, truth in zip(problems, truths, strict=True)
            for seed in range(5)
        ]
    )
    assert 0.5 < z.std() < 1.8
    assert abs(z.mean()) < 4 / np.sqrt(len(z))


def test_fractional_weights_have_the_closed_form_s_evidence():
    (problem,) = random_problems(1, seed=240, n_tasks=3, n_rows=9)
    weights = np.random.default_rng(1).uniform(0.2, 2.5, size=9)
    weighted = oracle.make_problem(
        problem.codes,
        problem.labels,
        problem.task,
        n_labels=problem.n_labels,
        n_values=problem.n_values,
        alpha=problem.alpha,
        beta=problem.beta,
        concentration=problem.concentration,
        weights=weights,
    )
    model = fitted(problem, "clustered", sample_weight=weights)
    assert abs(distance(model, oracle.log_evidence(weighted))) < FARTHEST


@pytest.mark.parametrize("power", [0.0, 0.3, 1.0])
def test_a_sweep_at_any_power_leaves_the_annealed_distribution_as_it_is(power):
    (problem,) = random_problems(1, seed=250, n_tasks=3, n_rows=8, unlabelled=0.25, missing=0.1, concentration=0.9)
    blind = oracle.make_problem(
        np.full_like(problem.codes, -1),
        problem.labels,
        problem.task,
        n_labels=problem.n_labels,
        n_values=problem.n_values,
        alpha=problem.alpha,
        beta=problem.beta,
        concentration=problem.concentration,
    )
    states = [(z, tuple(y)) for z in oracle.partitions(3) for y in oracle.labellings(problem).tolist()]
    log_blind = np.array([oracle.log_joint(blind, z, y) for z, y in states])
    log_full = np.array([oracle.log_joint(problem, z, y) for z, y in states])
    annealed = softmax(log_blind + power * (log_full - log_blind))

    model = fitted(problem, "clustered")
    inner = posed_to(model)
    unlabelled_row = np.flatnonzero(problem.labels < 0)
    rng = np.random.default_rng(3)
    n_chains, n_sweeps = 40, 500
    place = {state: i for i, state in enumerate(states)}
    shares = np.zeros((n_chains, len(states)))
    for share in shares:
        chain = Chain(*inner, inner.product())
        chain.draw_from_prior(rng)
        for sweep in range(20 + n_sweeps):
            chain.sweep(rng, power)
            if sweep >= 20:
                labels = problem.labels.copy()
                labels[unlabelled_row] = chain.labels.rows.labels
                share[place[tuple(canonical(chain.seating.seat)), tuple(labels)]] += 1 / n_sweeps
    error = shares.std(axis=0, ddof=1) / np.sqrt(n_chains)
    far = np.abs(shares.mean(axis=0) - annealed) / np.maximum(error, 2e-4)
    assert far.max() < 4.5
    assert np.sqrt((far**2).mean()) < 1.5


def test_the_estimate_is_repeated_by_its_seed_and_changed_by_another():
    (problem,) = random_problems(1, seed=260, **PARTLY_LABELLED[1])
    first, again, other = (fitted(problem, "clustered", seed).log_evidence_ for seed in (1, 1, 2))
    assert first == again
    assert first != other
