"""A concentration that is drawn along with the partition: integrated numerically, and by Geweke's test."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from kinfolk import ClusteredNB
from kinfolk.naive_bayes.inference.gibbs import Chain, evidence, infer
from kinfolk.naive_bayes.inference.options import Options, Schedule
from kinfolk.naive_bayes.model.values import Fitted
from kinfolk.partition.concentration import GammaPrior
from tests import oracle
from tests.naive_bayes.posed import Posed, posed_to
from tests.naive_bayes.test_geweke import (
    KNOWN,
    N_TASKS,
    TASK,
    KinfolkSweep,
    State,
    draw_data,
    draw_index,
    observed,
)
from tests.problems import as_arguments, priors, random_problems

PRIOR = GammaPrior(1.5, 0.8)
N_CHAINS = 24
# The logarithms of concentrations that an integral over them is a sum of.
GRID = np.linspace(-14.0, 4.5, 75)
PROBLEMS = [
    *random_problems(1, seed=300, n_tasks=4, n_rows=14),
    *random_problems(1, seed=301, n_tasks=3, n_rows=9, unlabelled=0.34, missing=0.2),
]


def log_evidences(problem: oracle.Problem) -> np.ndarray:
    """Log evidence together with the prior's weight, at every concentration of the grid."""
    partitions = oracle.partitions(problem.n_tasks)
    fit = [logsumexp([oracle.log_data(problem, z, y) for y in oracle.labellings(problem)]) for z in partitions]
    seats = np.array([[oracle.log_crp(z, a) for z in partitions] for a in np.exp(GRID)])
    log_weight = PRIOR.shape * np.log(PRIOR.rate) - gammaln(PRIOR.shape) + PRIOR.shape * GRID
    log_weight += np.log(GRID[1] - GRID[0]) - PRIOR.rate * np.exp(GRID)
    return np.asarray(logsumexp(seats + np.array(fit), axis=1) + log_weight)


def posterior_of_grid(problem: oracle.Problem) -> np.ndarray:
    log_evidence = log_evidences(problem)
    return np.asarray(np.exp(log_evidence - logsumexp(log_evidence)))


def inner(problem: oracle.Problem) -> Posed:
    """What an estimator makes of the problem."""
    model = ClusteredNB(inference="gibbs", n_chains=1, n_burn_in=0, n_draws=4, random_state=0, **priors(problem))
    return posed_to(model.fit(**as_arguments(problem))).at(PRIOR)


@pytest.fixture(scope="module", params=PROBLEMS)
def fits(request) -> tuple[oracle.Problem, list[Fitted]]:
    handed = inner(request.param)
    return request.param, [infer(*handed, Options(schedule=Schedule(1, 20, 200)), seed)[1] for seed in range(N_CHAINS)]


def check(found: Any, truth: Any) -> None:
    """The mean of independent fits is where their spread lets it be."""
    found = np.array(found)
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert np.max(np.abs(found.mean(axis=0) - truth) / np.hypot(error, 5e-4)) < 4.5


def test_co_clustering_is_that_of_the_integral_over_concentrations(fits):
    problem, found = fits
    at_each = [oracle.co_clustering(replace(problem, concentration=a)) for a in np.exp(GRID)]
    check([fit.similarity() for fit in found], np.tensordot(posterior_of_grid(problem), at_each, axes=1))


def test_concentrations_have_the_mean_of_the_integral(fits):
    problem, found = fits
    assert found[0].concentrations is not None
    assert found[0].concentrations.shape == (1, 200)
    check([np.log(fit.concentrations).mean() for fit in found], posterior_of_grid(problem) @ GRID)
    check([fit.concentrations.mean() for fit in found], posterior_of_grid(problem) @ np.exp(GRID))


def test_predictions_for_a_new_task_average_over_concentrations(fits):
    problem, found = fits
    x = [0] * len(problem.n_values)
    wider = replace(problem, n_tasks=problem.n_tasks + 1)
    scores = []
    for y in range(problem.n_labels):
        row = replace(
            wider,
            codes=np.vstack([problem.codes, x]),
            labels=np.append(problem.labels, y),
            task=np.append(problem.task, problem.n_tasks),
            weights=np.append(problem.weights, 1.0),
        )
        scores.append(logsumexp(log_evidences(row)))
    truth = np.exp(scores - logsumexp(scores))
    codes, task = np.array([x], dtype=np.int32), np.array([problem.n_tasks])
    check([np.exp(fit.blocks.mixture.log_predictive(codes, task))[0] for fit in found], truth)


def test_a_new_task_is_met_with_every_draws_own_concentration(fits):
    problem, (fit, *_) = fits
    mixture, n = fit.blocks.mixture, problem.n_tasks
    weights = np.exp(mixture.log_weight[mixture.entries(n)])
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    alone = weights[fit.blocks.sizes[mixture.block[mixture.entries(n)]] == 0]
    assert alone.sum() == pytest.approx((fit.concentrations / (n + fit.concentrations)).mean(), abs=1e-12)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_annealed_evidence_is_the_integral_over_concentrations(problem):
    found = evidence(*inner(problem), seed=1)
    assert abs(found.value - logsumexp(log_evidences(problem))) < 4 * np.hypot(found.error, 1e-4)


def test_the_log_joint_has_the_concentration_integrated_out():
    problem = PROBLEMS[0]
    (labels,) = oracle.labellings(problem)
    _, fit = infer(*inner(problem), Options(schedule=Schedule(1, 0, 30)), seed=2)
    log_weight = PRIOR.shape * (np.log(PRIOR.rate) + GRID) - gammaln(PRIOR.shape) - PRIOR.rate * np.exp(GRID)
    for z, found in zip(fit.partitions[0], fit.log_joint[0], strict=True):
        seats = np.array([oracle.log_crp(tuple(z), a) for a in np.exp(GRID)])
        integral = logsumexp(seats + log_weight) + np.log(GRID[1] - GRID[0])
        assert found == pytest.approx(integral + oracle.log_data(problem, tuple(z), labels), abs=1e-5)


def test_convergence_is_told_of_what_was_sampled():
    handed = inner(PROBLEMS[1])
    options = Options(schedule=Schedule(4, 50, 100))
    drawn = infer(*handed, options, seed=0)[1].convergence
    assert drawn is not None
    assert set(drawn.r_hat) == {"log joint", "number of clusters", "concentration"} == set(drawn.ess)
    assert drawn.converged
    handed = handed._replace(hyper=handed.hyper._replace(concentration=1.0, concentration_prior=None))
    _, given = infer(*handed, options, seed=0)
    assert given.concentrations is None
    assert set(given.convergence.r_hat) == {"log joint", "number of clusters"}
    _, held = infer(*handed.at(0.0), options, seed=0, fixed=np.zeros(3, dtype=np.int64))
    assert held.concentrations is None
    assert set(held.convergence.r_hat) == {"log joint"}


class SweepWithConcentration(KinfolkSweep):
    """The sampler under test, which draws the concentration too; one of its own for every simulation."""

    def __init__(self, concentrations: np.ndarray) -> None:
        super().__init__()
        posed = Posed(self.chain.data, self.chain.hyper).at(PRIOR)
        self.chain = Chain(*posed, posed.product())
        self.concentrations = concentrations

    def __call__(self, state: State, rng: np.random.Generator) -> None:
        for i in range(len(state.seats)):
            one = State(state.seats[i : i + 1], state.labels[i : i + 1], state.codes[i : i + 1])
            self.chain.seating.concentration = self.concentrations[i]
            super().__call__(one, rng)
            self.concentrations[i] = self.chain.seating.concentration


def draw_all(n: int, rng: np.random.Generator) -> tuple[np.ndarray, State]:
    """Concentrations, and all else given them."""
    concentrations = rng.gamma(PRIOR.shape, 1 / PRIOR.rate, n)
    state = State(np.zeros((n, N_TASKS), int), np.zeros((n, len(TASK)), int), np.zeros((n, len(TASK), 2), int))
    for u in range(1, N_TASKS):
        company = (state.seats[:, :u, None] == np.arange(N_TASKS)).sum(axis=1).astype(float)
        company[np.arange(n), state.seats[:, :u].max(axis=1) + 1] = concentrations
        state.seats[:, u] = draw_index(company, rng)
    draw_data(state, np.ones(len(TASK), dtype=bool), rng, given_data=False)
    return concentrations, state


def seen(concentrations: np.ndarray, state: State) -> dict[str, np.ndarray]:
    values = observed(state)
    clusters = values["number of clusters"]
    return values | {
        "concentration": concentrations,
        "its logarithm": np.log(concentrations),
        "its square": concentrations**2,
        "with clusters": np.log(concentrations) * clusters,
        "with a value": concentrations * values["values of two tasks agree"],
    }


def test_the_sampler_with_a_drawn_concentration_keeps_the_joint_distribution():
    at_once = seen(*draw_all(200_000, np.random.default_rng(1)))
    rng = np.random.default_rng(2)
    concentrations, state = draw_all(300, rng)
    sweep = SweepWithConcentration(concentrations)
    turns = []
    for _ in range(50):
        sweep(state, rng)
        draw_data(state, KNOWN, rng, given_data=True)
        turns.append(seen(concentrations.copy(), state))
    for name, values in at_once.items():
        by_turns = np.mean([turn[name] for turn in turns], axis=0)
        error = np.hypot(*(x.std(ddof=1) / np.sqrt(len(x)) for x in (by_turns, values)))
        assert abs(by_turns.mean() - values.mean()) < 4 * error, name
