"""Distances between fitted models: divergences known in closed form, by enumeration, and with real emissions."""

from itertools import product

import numpy as np
import pytest

from kinfolk.sequences.answers.distances import Model, distances, model_distances, similarities, simulate
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.emissions.gaussian_diagonal import GaussianDiagonal


def with_codes(start, transitions, emissions):
    """A model of codes; the emission's parameters are logarithms, the last one of an unknown code."""
    emissions = np.asarray(emissions, dtype=float)
    unknown = np.full((len(emissions), 1), -20.0)
    return Model(np.vstack([start, transitions]), np.hstack([np.log(emissions), unknown]))


ONE = with_codes([0.7, 0.3], [[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])
OTHER = with_codes([0.5, 0.5], [[0.5, 0.5], [0.4, 0.6]], [[0.2, 0.2, 0.6], [0.5, 0.3, 0.2]])
CODES = Categorical(3)


def probabilities(model, length):
    """The probability of every sequence, by enumeration of codes and hidden states."""
    emissions = np.exp(model.parameters[:, :3])
    found = {}
    for codes in product(range(3), repeat=length):
        total = 0.0
        for states in product(range(2), repeat=length):
            p, row = 1.0, 0
            for state, code in zip(states, codes, strict=True):
                p *= model.transitions[row, state] * emissions[state, code]
                row = state + 1
            total += p
        found[codes] = total
    return np.array(list(found.values()))


def test_distance_is_the_mean_of_the_two_divergences_by_enumeration():
    p, q = probabilities(ONE, 4), probabilities(OTHER, 4)
    truth = (np.sum(p * np.log(p / q)) + np.sum(q * np.log(q / p))) / 2
    found = model_distances([ONE, OTHER], CODES, n_sequences=20_000, length=4)
    assert found[0, 1] == pytest.approx(truth, rel=0.05)
    assert found[1, 0] == found[0, 1]
    assert np.diag(found).tolist() == [0.0, 0.0]


def test_simulated_sequences_come_as_often_as_they_are_probable():
    n = 20_000
    (codes,) = simulate(ONE, CODES, n, 3, np.random.default_rng(0))
    frequency = np.bincount(codes.reshape(n, 3) @ [9, 3, 1], minlength=27) / n
    assert frequency == pytest.approx(probabilities(ONE, 3), abs=4 * (0.25 / n) ** 0.5)


def test_models_that_only_name_their_states_otherwise_are_at_no_distance():
    swapped = Model(ONE.transitions[[0, 2, 1]][:, [1, 0]], ONE.parameters[[1, 0]])
    assert model_distances([ONE, swapped], CODES)[0, 1] == pytest.approx(0.0, abs=1e-9)


def test_distance_of_gaussian_models_of_one_state_is_the_closed_form():
    """Between unit normals a distance d apart it is d²/2 for each step."""
    emission = GaussianDiagonal(np.array([20.0]), np.array([5.0]))
    single = np.ones((2, 1))
    # Parameters are mean and precision, in units of the emission's scale.
    near, far = (np.array([[mean, 1.0]]) for mean in (0.0, 0.5))
    found = model_distances([Model(single, near), Model(single, far)], emission, n_sequences=4_000, length=10)
    assert found[0, 1] == pytest.approx(10 * 0.5**2 / 2, rel=0.05)


def test_the_same_seed_gives_the_same_distances():
    one, same, other = (model_distances([ONE, OTHER], CODES, random_state=seed)[0, 1] for seed in (0, 0, 1))
    assert one == same != other


def test_an_estimators_own_sampling_and_scoring_can_be_used():
    """Normal distributions at known places: the divergence of two is half the squared distance of their means."""
    means = np.array([0.0, 1.0, 3.0])
    rng = np.random.default_rng(0)
    draws = [mean + rng.normal(size=20_000) for mean in means]
    found = distances(3, lambda i: draws[i], lambda x, j: -((x - means[j]) ** 2) / 2)
    assert found == pytest.approx(np.subtract.outer(means, means) ** 2 / 2, abs=0.1)


def test_similarity_is_one_over_e_at_the_distance_sigma():
    found = similarities(np.array([[0.0, 3.0, 6.0], [3.0, 0.0, 3.0], [6.0, 3.0, 0.0]]), variance=9.0)
    assert found[0] == pytest.approx([1.0, np.exp(-1), np.exp(-4)])


def test_by_default_half_of_the_pairs_are_above_one_over_e():
    distance = np.abs(np.subtract.outer([0.0, 1.0, 3.0, 7.0], [0.0, 1.0, 3.0, 7.0]))
    pairs = similarities(distance)[np.triu_indices(4, 1)]
    assert (pairs > np.exp(-1)).sum() == 3
    assert similarities(np.zeros((2, 2))).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert similarities(np.zeros((1, 1))).tolist() == [[1.0]]


def test_a_variance_of_zero_is_refused():
    with pytest.raises(ValueError, match="variance is 0, but must be above 0"):
        similarities(np.eye(2), variance=0)
