"""The sampler and the model agree: J. Geweke, J. Amer. Statist. Assoc. 99, 2004, and calibration of co-clustering.

Draws of everything from the prior are compared with a chain that alternates a sweep with new data given the state.
"""

from dataclasses import replace

import numpy as np
import pytest

from kinfolk.partition.concentration import GammaPrior
from kinfolk.sequences.inference.sweep import start_state, sweep
from kinfolk.sequences.model.draw import HyperParameters
from kinfolk.sequences.model.emissions.autoregressive import Autoregressive
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.emissions.emission import with_past
from kinfolk.sequences.model.emissions.gaussian_diagonal import GaussianDiagonal
from kinfolk.sequences.model.emissions.student_t import StudentT
from kinfolk.sequences.model.ndp_ihmm import Priors, State
from kinfolk.sequences.model.sequences import Sequences
from tests.sequences.invalid_step import papers_sweep

# The third task has but one step.
BOUNDS, TASK_BOUNDS = np.array([0, 4, 7, 12, 13, 18]), np.array([0, 2, 3, 4, 5])
N_STEPS, K, L = 18, 3, 3
LEARNT = Priors(*[GammaPrior(3.0, 2.0)] * 5)
CODES = Categorical(3)
NUMBERS = GaussianDiagonal(np.zeros(1), np.ones(1))
OUTLIERS = StudentT(np.zeros(1), np.ones(1))
ONE = np.ones((1, 1))
AUTOREGRESSIVE = Autoregressive(np.zeros(1), np.zeros(1), 0.8 * ONE, 0.5 * ONE, 1.5 * ONE, ONE / 1.5, -np.log(1.5))


def dirichlet(shapes, rng):
    """A Dirichlet draw by breaking a stick, another way than the code's."""
    out, left = np.zeros(len(shapes)), 1.0
    for i in range(len(shapes) - 1):
        part = rng.beta(shapes[i], shapes[i + 1 :].sum())
        out[i], left = left * part, left * (1 - part)
    out[-1] = left
    return out


def prior_draw(emission, rng, priors=LEARNT, bounds=BOUNDS, task_bounds=TASK_BOUNDS, n_clusters=K, n_states=L):
    """A state of the model and data, top to bottom as model.py has the equations."""
    n_tasks = len(task_bounds) - 1
    eta, gamma, alpha, strength, kappa = (p.draw(rng) if isinstance(p, GammaPrior) else p for p in priors)
    shares = dirichlet(np.full(n_clusters, eta / n_clusters), rng)
    base_weights = np.array([dirichlet(np.full(n_states, gamma / n_states), rng) for _ in range(n_clusters)])
    base_weights = np.maximum(base_weights, 1e-100)
    nothing = np.zeros((n_clusters, n_states, emission.n_statistics))
    parameters = emission.with_strength(strength).draw_parameters(nothing, rng)
    cluster = rng.choice(n_clusters, size=n_tasks, p=shares)
    transitions = np.empty((n_tasks, n_states + 1, n_states))
    states = np.empty(bounds[-1], dtype=np.int64)
    for j in range(n_tasks):
        for r in range(n_states + 1):
            shapes = alpha * base_weights[cluster[j]]
            if r > 0:
                shapes[r - 1] += kappa
            transitions[j, r] = dirichlet(shapes, rng)
        for i in range(task_bounds[j], task_bounds[j + 1]):
            before = 0
            for t in range(bounds[i], bounds[i + 1]):
                states[t] = rng.choice(n_states, p=transitions[j, before])
                before = states[t] + 1
    hyper = HyperParameters(eta, gamma, alpha, strength, kappa)
    state = State(cluster, states, base_weights, parameters, transitions, hyper)
    return state, Sequences(new_data(state, emission, bounds, task_bounds, rng), bounds, task_bounds)


def new_data(state, emission, bounds, task_bounds, rng):
    cluster = np.repeat(state.cluster, np.diff(bounds[task_bounds]))
    together = cluster * state.base_weights.shape[1] + state.states
    parameters = state.parameters.reshape(-1, emission.n_parameters)
    if not isinstance(emission, Autoregressive):
        return emission.draw_observations(parameters, together, rng)
    # The model is one of the steps after the first of a sequence, whatever that is.
    x, law = np.ones((len(together), 1)), emission.regression(parameters)
    for t in np.setdiff1d(np.arange(len(together)), bounds):
        s = together[t]
        x[t] = law.constant[s] + x[t - 1] @ law.slope[s] + rng.normal() * np.sqrt(law.covariance[s, 0])
    return (with_past(x, np.diff(bounds), 1),)


def features(state, data):
    """What the two ways of drawing are compared by."""
    s, c = state.states, state.cluster
    hyper = np.log(state.hyper)
    stays = np.diff(s)[np.setdiff1d(np.arange(N_STEPS - 1), BOUNDS - 1)] == 0
    observed = np.asarray(data.observations[0], dtype=float).reshape(N_STEPS, -1)[:, 0]
    alike = [np.tanh(observed[:4]).std(), np.abs(np.tanh(observed[0] - observed[-1]))]
    return [
        *hyper,
        *hyper**2,
        c[0] == c[1],
        len(set(c.tolist())),
        stays.mean(),
        len(set(s[:7].tolist())),
        s[0] == s[4],
        (c[0] == c[3]) * (s[0] == s[-1]),
        state.base_weights[c[0]].max(),
        *alike,
        (c[0] == c[3]) * alike[1],
    ]


def drawn_at_once(emission, n_prior, seed):
    rng = np.random.default_rng(seed)
    return np.array([features(*prior_draw(emission, rng)) for _ in range(n_prior)], dtype=float)


@pytest.fixture(scope="module")
def independent():
    """Draws from the prior that both short tests compare their chains with."""
    return drawn_at_once(CODES, 4_000, seed=0)


def z_scores(independent, emission, n_sweeps, step, seed=2, n_batches=40):
    rng = np.random.default_rng(seed)
    state, data = prior_draw(emission, rng)
    chain = []
    for _ in range(n_sweeps):
        state = step(state, data, emission, LEARNT, rng)
        data = replace(data, observations=new_data(state, emission, BOUNDS, TASK_BOUNDS, rng))
        chain.append(features(state, data))
    batches = np.array(chain, dtype=float).reshape(n_batches, -1, independent.shape[1]).mean(axis=1)
    variance = batches.var(axis=0, ddof=1) / n_batches + independent.var(axis=0) / len(independent)
    return (batches.mean(axis=0) - independent.mean(axis=0)) / np.sqrt(variance)


def some_empty(state, data, emission, priors, rng):
    """A sweep in which one empty cluster in two takes part."""
    return sweep(state, data, emission, priors, rng, n_picks=2, n_empty=1.5)


def test_chain_with_new_data_at_each_sweep_is_the_prior(independent):
    assert np.abs(z_scores(independent, CODES, 4_000, some_empty)).max() < 4.0


def test_the_papers_own_step_is_found_out(independent):
    assert np.abs(z_scores(independent, CODES, 2_400, papers_sweep)).max() > 5.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "emission",
    [CODES, NUMBERS, AUTOREGRESSIVE, OUTLIERS],
    ids=["codes", "numbers", "autoregressive", "outliers"],
)
def test_a_long_chain_with_new_data_at_each_sweep_is_the_prior(emission):
    independent = drawn_at_once(emission, 15_000, seed=1)
    assert np.abs(z_scores(independent, emission, 20_000, some_empty, seed=3)).max() < 4.0


@pytest.mark.slow
def test_probabilities_of_being_together_are_calibrated():
    """Of pairs of tasks said to be together with probability p, a share p was drawn together."""
    rng = np.random.default_rng(5)
    bounds, task_bounds = np.arange(13) * 8, np.arange(7) * 2
    priors = LEARNT._replace(eta=1.0, stickiness=0.0)
    emission = Categorical(4)
    first, second = np.triu_indices(6, 1)
    said, was = [], []
    for _ in range(100):
        truth, data = prior_draw(emission, rng, priors, bounds, task_bounds, n_clusters=6, n_states=4)
        was.append(truth.cluster[first] == truth.cluster[second])
        all_in_one = np.zeros(6, dtype=np.int64)
        state = start_state(data, emission, priors, n_clusters=6, n_states=4, rng=rng, cluster=all_in_one)
        draws = []
        for _ in range(250):
            state = sweep(state, data, emission, priors, rng)
            draws.append(state.cluster[first] == state.cluster[second])
        said.append(np.mean(draws[50:], axis=0))
    said, off = np.array(said), np.array(was) - np.array(said)
    assert 0.1 < said.mean() < 0.9
    low, high = np.quantile(said, [1 / 3, 2 / 3])
    for group in (said < low, (said >= low) & (said < high), said >= high, said >= 0.0):
        # Data sets are independent, pairs of tasks in one are not.
        of_data_sets = (off * group).sum(axis=1)
        assert abs(of_data_sets.sum()) < 3.5 * np.sqrt((of_data_sets**2).sum())
