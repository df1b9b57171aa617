"""Splits and merges against a sum over every partition and every path, and from every start to the same place."""

import numpy as np
import pytest
from scipy.special import logsumexp

from kinfolk.sequences.inference import annealing, split_merge
from kinfolk.sequences.inference.agglomeration import SetFits
from kinfolk.sequences.inference.annealing import annealed, draw_from
from kinfolk.sequences.inference.split_merge import SplitMerge, _aligned, _AtWork, _log_alignment, _prior, _renumbered
from kinfolk.sequences.inference.sweep import draw_given_states, start_state
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.filtering import draw_states, scaled
from kinfolk.sequences.model.ndp_ihmm import ClusterPrior, Priors
from tests.sequences.oracle import exact_posterior
from tests.sequences.test_agglomeration import two_kinds
from tests.sequences.test_gibbs_exact import DATA, HYPER, OBSERVED, priors, z_scores
from tests.sequences.test_gibbs_geweke import CODES, drawn_at_once
from tests.sequences.test_gibbs_geweke import z_scores as geweke_z_scores

# A prior of the emissions that has some weight: without it weights are heavy-tailed, and chains would have to be long.
SMOOTH = HYPER | {"strength": 1.0}


def moves_of(data, emission, hyper):
    return SplitMerge.of(SetFits.of_data(data, emission, hyper, n_starts=2))


def step(state, moves, data, emission, at, rng, learning=False):
    """A split or merge, then states given transitions, then all but clusters and states: no other move of tasks."""
    state, moves = moves.move(state, emission, rng, learning=learning)
    states = state.states.copy()
    for j in range(data.n_tasks):
        own, steps = data.between(j, j + 1), data.steps_of(j)
        drawn = states[steps].copy()
        densities = scaled(emission.log_densities(state.parameters[state.cluster[j]], own.observations))
        draw_states(densities, own.layout, state.transitions[j : j + 1], rng.random(len(drawn)), drawn)
        states[steps] = drawn
    return draw_given_states(state._replace(states=states), data, emission, at, rng), moves


def off(n_clusters, kappa, n_sweeps=1_500):
    """How far a chain is from enumeration: the largest z-score."""
    exact = exact_posterior(OBSERVED, 2, n_clusters, kappa=kappa, **SMOOTH)
    rng, emission, fixed = np.random.default_rng(0), Categorical(2, SMOOTH["strength"]), Priors(*SMOOTH.values(), kappa)
    # SetFits under other hyper-parameters than the chain's are references all the same.
    moves = moves_of(DATA, Categorical(2, 0.4), ClusterPrior(1.0, 1.0, 0.2, 2))
    state = start_state(DATA, emission, fixed, n_clusters=n_clusters, n_states=2, rng=rng)
    found = np.empty((n_sweeps, 6))
    for i in range(len(found)):
        state, moves = step(state, moves, DATA, emission, fixed, rng)
        s = state.states
        found[i] = state.cluster[0] == state.cluster[1], *(s[1:4] == s[:3]), *(s[5:] == s[4:6])
    return np.abs(z_scores(found, [exact.together, *exact.stays])).max()


@pytest.mark.parametrize(("n_clusters", "kappa"), [(2, 0.0), (3, 0.8)])
def test_partitions_and_paths_are_as_frequent_as_enumeration_says(n_clusters, kappa, monkeypatch):
    # Exact for a glance of any weight: of so few data bounds say little.
    monkeypatch.setattr(split_merge, "_GLANCE", 8.0)
    assert off(n_clusters, kappa) < 4.0


BROKEN = {
    "a split forgets how probable the partition is": (_AtWork, "_log_seats", lambda *given: 0.0),
    "paths forget their weights": (split_merge, "annealed", lambda *given, **how: (annealed(*given, **how)[0], 0.0)),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_split_or_merge_is_found_out_by_enumeration(how, monkeypatch):
    where, name, instead = BROKEN[how]
    monkeypatch.setattr(where, name, instead)
    assert off(3, 0.8) > 5.0


@pytest.mark.slow
def test_a_chain_of_splits_and_merges_with_new_data_each_time_is_the_prior():
    def with_references_of_the_data(state, data, emission, at, rng):
        moves = moves_of(data, Categorical(3, 0.5), ClusterPrior(1.0, 1.0, 0.2, 3))
        return step(state, moves, data, emission, at, rng)[0]

    independent = drawn_at_once(CODES, 8_000, seed=4)
    assert np.abs(geweke_z_scores(independent, CODES, 4_000, with_references_of_the_data, seed=6)).max() < 4.0


@pytest.mark.parametrize("kappa", [0.0, 0.8])
def test_the_mean_weight_of_paths_is_the_evidence(kappa, monkeypatch):
    # Longer paths than so few data get, whose weights scatter less.
    monkeypatch.setattr(annealing, "_FEWEST", 10)
    exact = exact_posterior(OBSERVED, 2, 1, kappa=kappa, **SMOOTH)
    rng, emission = np.random.default_rng(0), Categorical(2, SMOOTH["strength"])
    moves = moves_of(DATA, Categorical(2, 0.4), ClusterPrior(1.0, 1.0, 0.2, 2))
    state = start_state(DATA, emission, priors(kappa), n_clusters=2, n_states=2, rng=rng)
    reference = _AtWork(moves, emission, False)._reference(np.array([0, 1]), 2)
    weights = np.empty(1_000)
    for i in range(len(weights)):
        start = draw_from(reference, emission, _prior(state), rng)
        end, weights[i] = annealed(start, reference, emission, _prior(state), rng)
        weights[i] += _log_alignment(end, reference, emission)
    error = np.exp(weights - exact.log_evidence).std() / np.sqrt(len(weights))
    assert np.exp(logsumexp(weights) - np.log(len(weights)) - exact.log_evidence) == pytest.approx(1.0, abs=4 * error)
    assert error < 0.12


def test_alignment_undoes_any_numbering_of_states_that_are_sure():
    data, emission = two_kinds(), Categorical(3)
    moves = moves_of(data, emission, ClusterPrior(n_states=5))
    rng = np.random.default_rng(1)
    state = start_state(data, emission, Priors(), n_clusters=3, n_states=5, rng=rng)
    reference = _AtWork(moves, emission, False)._reference(np.array([0, 2]), 5)
    particle = draw_from(reference, emission, _prior(state), rng)
    weight = _log_alignment(particle, reference, emission)
    for _ in range(5):
        shuffled = _renumbered(particle, rng.permutation(5))
        aligned = _aligned(shuffled, reference, emission, rng)
        assert aligned.base_weights[:2] == pytest.approx(particle.base_weights[:2])
        assert _log_alignment(aligned, reference, emission) == pytest.approx(weight, abs=1e-6)


@pytest.mark.parametrize("start", [[0, 0, 0, 0], [0, 0, 1, 1]])
def test_tasks_that_are_with_the_wrong_ones_get_to_their_kin(start):
    data, emission = two_kinds(), Categorical(3)
    moves = moves_of(data, emission, ClusterPrior(n_states=5))
    rng = np.random.default_rng(0)
    state = start_state(data, emission, Priors(), n_clusters=6, n_states=5, rng=rng, cluster=np.array(start))
    for _ in range(250):
        state, moves = step(state, moves, data, emission, Priors(), rng, learning=True)
        if state.cluster[0] == state.cluster[2] != state.cluster[1] == state.cluster[3]:
            return
    raise AssertionError(f"kin were not found from {start}")


def test_one_task_and_one_cluster_are_left_alone():
    rng, emission = np.random.default_rng(0), Categorical(3)
    for data, n_clusters in ((two_kinds().of_tasks([0]), 3), (two_kinds(), 1)):
        moves = moves_of(data, emission, ClusterPrior(n_states=4))
        state = start_state(data, emission, Priors(), n_clusters=n_clusters, n_states=4, rng=rng)
        assert moves.move(state, emission, rng) == (state, moves)


def test_the_same_seed_makes_the_same_moves():
    data, emission = two_kinds(), Categorical(3)
    ends = []
    for _ in range(2):
        moves, rng = moves_of(data, emission, ClusterPrior(n_states=5)), np.random.default_rng(5)
        state = start_state(data, emission, Priors(), n_clusters=6, n_states=5, rng=rng)
        for _ in range(5):
            state, moves = step(state, moves, data, emission, Priors(), rng)
        ends.append(state)
    assert (ends[0].states == ends[1].states).all()
    assert (ends[0].transitions == ends[1].transitions).all()


def test_a_path_leads_from_the_reference_to_the_model():
    rng, emission, hyper = np.random.default_rng(0), Categorical(2, 1.0), ClusterPrior(n_states=3)
    set_fits = SetFits.of_data(DATA, emission, hyper, n_starts=1)
    reference = annealing.reference_of(set_fits.of(range(DATA.n_tasks)), DATA, emission, hyper, 3)
    particle = draw_from(reference, emission, hyper, rng)
    rows = emission.log_densities(particle.parameters, DATA.observations).rows
    log_moves = np.log(np.maximum(particle.transitions, 1e-300))
    for at, log_rows, moves in ((0.0, reference.log_rows, reference.log_moves), (1.0, rows, log_moves)):
        densities, found = annealing._tempered(reference, rows, log_moves, at)
        np.testing.assert_allclose(densities.likelihood, np.exp(log_rows - log_rows.max(axis=1, keepdims=True)))
        np.testing.assert_allclose(densities.log_scale, log_rows.max(axis=1))
        np.testing.assert_allclose(found, np.exp(moves))
