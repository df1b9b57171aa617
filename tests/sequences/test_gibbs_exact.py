"""The sampler against a sum over every partition and every path."""

from itertools import product

import numpy as np
import pytest
from scipy.special import roots_jacobi
from scipy.stats import beta

from kinfolk.partition.concentration import GammaPrior
from kinfolk.sequences.inference.cluster_moves import choose
from kinfolk.sequences.inference.sweep import start_state, sweep
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.ndp_ihmm import Priors, counts_of, kept, log_joint, statistics_of
from kinfolk.sequences.model.sequences import Sequences
from tests.sequences.invalid_step import papers_sweep
from tests.sequences.oracle import exact_posterior

OBSERVED = ([0, 1, 0, 1], [0, 0, 0])
HYPER = {"eta": 1.3, "gamma": 1.5, "alpha": 1.2, "strength": 0.1}
DATA = Sequences((np.concatenate(OBSERVED),), np.array([0, 4, 7]), np.array([0, 1, 2]))


def priors(kappa):
    return Priors(HYPER["eta"], HYPER["gamma"], HYPER["alpha"], HYPER["strength"], kappa)


def run(n_sweeps, n_clusters, kappa, seed=0, step=sweep, **options):
    """Whether tasks are together and whether states stay, of every sweep."""
    rng, emission = np.random.default_rng(seed), Categorical(2, HYPER["strength"])
    state = start_state(DATA, emission, priors(kappa), n_clusters=n_clusters, n_states=2, rng=rng)
    found = np.empty((n_sweeps, 6))
    for i in range(n_sweeps):
        state = step(state, DATA, emission, priors(kappa), rng, **options)
        s = state.states
        found[i] = state.cluster[0] == state.cluster[1], *(s[1:4] == s[:3]), *(s[5:] == s[4:6])
    return found


def z_scores(found, wanted, n_batches=40):
    """How many standard errors means are off, the errors from batches."""
    batches = found[: len(found) // n_batches * n_batches].reshape(n_batches, -1, found.shape[1]).mean(axis=1)
    return (batches.mean(axis=0) - wanted) / (batches.std(axis=0, ddof=1) / np.sqrt(n_batches))


CASES = {
    "as_by_default": (2, 0.0, {}),
    "one_pick_and_few_empty_clusters": (4, 0.0, {"n_picks": 1, "n_empty": 1.0}),
    "sticky": (3, 0.8, {"n_picks": 2, "n_empty": 1.5}),
}


@pytest.mark.parametrize("case", CASES)
def test_partitions_and_paths_are_as_frequent_as_enumeration_says(case):
    n_clusters, kappa, options = CASES[case]
    exact = exact_posterior(OBSERVED, 2, n_clusters, kappa=kappa, **HYPER)
    found = run(4_000, n_clusters, kappa, **options)
    assert np.abs(z_scores(found, [exact.together, *exact.stays])).max() < 4.0


def test_the_papers_own_step_is_found_out():
    exact = exact_posterior(OBSERVED, 2, 2, kappa=0.0, **HYPER)
    found = run(12_000, 2, 0.0, seed=1, step=papers_sweep)
    assert np.abs(z_scores(found, [exact.together, *exact.stays])).max() > 5.0


def some_data(seed=1, n_tasks=5):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 30, size=2 * n_tasks)
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    return Sequences((rng.integers(-1, 4, size=bounds[-1]),), bounds, np.arange(n_tasks + 1) * 2)


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_the_same_seed_gives_the_same_chain_whatever_the_threads(n_jobs, monkeypatch):
    # Pieces small enough that there is something to run side by side.
    monkeypatch.setattr("kinfolk.sequences.inference.threads.pieces.__defaults__", (20, 2))
    data, emission, learnt = some_data(), Categorical(4), Priors(stickiness=GammaPrior())

    def end(jobs):
        rng = np.random.default_rng(3)
        state = start_state(data, emission, learnt, n_clusters=6, n_states=4, rng=rng)
        for _ in range(5):
            state = sweep(state, data, emission, learnt, rng, n_jobs=jobs)
        return state

    for one, other in zip(end(1), end(n_jobs), strict=True):
        np.testing.assert_array_equal(one, other)


def test_tasks_in_several_batches_are_drawn_as_those_in_one(monkeypatch):
    """Enumeration again, with a batch for each task."""
    monkeypatch.setattr("kinfolk.sequences.inference.cluster_moves._MOST_TASKS", 1)
    exact = exact_posterior(OBSERVED, 2, 3, kappa=0.0, **HYPER)
    found = run(3_000, 3, 0.0)
    assert np.abs(z_scores(found, [exact.together, *exact.stays])).max() < 4.0


def test_a_cluster_that_cannot_give_the_data_is_not_chosen_where_rounding_leaves_something_over():
    slots, sizes = np.zeros(1, dtype=np.int64), np.array([1, 1])
    choose(np.array([[[0.0], [-np.inf]]]), slots, sizes, 0.5, 0.5, np.array([1.0]))
    assert (slots.tolist(), sizes.tolist()) == ([0], [1, 1])


def test_with_one_cluster_all_tasks_stay_in_it():
    data, emission, rng = some_data(), Categorical(4), np.random.default_rng(0)
    state = start_state(data, emission, Priors(), n_clusters=1, n_states=4, rng=rng)
    for _ in range(3):
        state = sweep(state, data, emission, Priors(), rng)
    assert state.cluster.tolist() == [0] * 5


def test_hyper_parameters_given_as_numbers_stay():
    data, emission, rng = some_data(), Categorical(4), np.random.default_rng(0)
    fixed = Priors(0.7, 1.1, 2.0, 0.3, 0.5)
    state = start_state(data, emission, fixed, n_clusters=3, n_states=4, rng=rng)
    for _ in range(3):
        state = sweep(state, data, emission, fixed, rng)
    assert state.hyper == (0.7, 1.1, 2.0, 0.3, 0.5)


def test_log_joint_adds_up_over_paths_and_weights_to_the_exact_evidence():
    """p(o) is the mean over β of the sum over paths of exp(log joint)/p(β): one task, two states."""
    observed, gamma = [0, 1, 1], 1.5
    exact = exact_posterior([observed, []], 2, 1, eta=1.0, gamma=gamma, alpha=1.2, kappa=0.6, strength=0.4)
    nodes, node_weights = roots_jacobi(24, gamma / 2 - 1, gamma / 2 - 1)
    data = Sequences((np.array(observed),), np.array([0, 3]), np.array([0, 1]))
    emission, fixed = Categorical(2), Priors(1.0, gamma, 1.2, 0.4, 0.6)
    rng = np.random.default_rng(0)
    total = 0.0
    for path in product(range(2), repeat=3):
        state = start_state(data, emission, fixed, n_clusters=1, n_states=2, rng=rng, states=np.array(path))
        for node, weight in zip((1 + nodes) / 2, node_weights / node_weights.sum(), strict=True):
            here = state._replace(base_weights=np.array([[node, 1 - node]]))
            joint = log_joint(here, emission, counts_of(here, data), statistics_of(here, data, emission))
            total += weight * np.exp(joint - beta(gamma / 2, gamma / 2).logpdf(node))
    assert np.log(total) == pytest.approx(exact.log_evidence, rel=1e-9)


def test_kept_draws_name_clusters_by_their_first_tasks():
    data, emission, rng = some_data(), Categorical(4), np.random.default_rng(0)
    given = np.array([4, 2, 4, 0, 2])
    state = start_state(data, emission, Priors(), n_clusters=6, n_states=4, rng=rng, cluster=given)
    draw = kept(state, data, emission)
    assert draw.cluster.tolist() == [0, 1, 0, 2, 1]
    np.testing.assert_array_equal(draw.parameters, state.parameters[[4, 2, 0]])
    np.testing.assert_array_equal(draw.base_weights[draw.cluster], state.base_weights[given])
    used = [len(np.unique(state.states[data.steps_of(j)])) for j in range(5)]
    assert draw.n_states.tolist() == used
