"""Completions of rows with missing cells against the posterior that enumeration of all joint states gives."""

import numpy as np
import pytest

from kinfolk.networks.inference.completions import completions, draw_missing
from kinfolk.networks.model.network import make_network
from tests.networks.test_elimination import all_patterns, consistent, joint_states, random_network


def enumerated_posterior(network, row):
    """Oracle: the completions of a row that are possible, and their probabilities."""
    states, probabilities = joint_states(network)
    probabilities = np.where(consistent(states, row), probabilities, 0.0)
    return states[probabilities > 0], probabilities[probabilities > 0] / probabilities.sum()


@pytest.mark.parametrize("seed", range(6))
def test_listed_completions_carry_the_exact_posterior(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng, 2 + seed % 4, max_parents=3, zeros=0.2 if seed % 2 else 0.0)
    rows = all_patterns(rng, network)
    rows = np.where(rows < 0, rows, network.sample(len(rows), rng))
    filled = completions(network, rows, rng, most=3**5)
    assert filled.codes.dtype == np.int32
    for i, row in enumerate(rows):
        states, probabilities = enumerated_posterior(network, row)
        its = filled.codes[filled.row == i]
        given = dict(zip(map(tuple, its.tolist()), filled.weights[filled.row == i], strict=True))
        assert set(given) == set(map(tuple, states.tolist()))
        np.testing.assert_allclose([given[tuple(s)] for s in states.tolist()], probabilities, rtol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_draws_are_as_frequent_as_the_exact_posterior_says(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng, 6, max_parents=3, zeros=0.2 if seed % 2 else 0.0)
    rows = network.sample(6, rng)
    rows[rng.random(rows.shape) < 0.6] = -1
    rows[0] = -1
    n_draws = 20_000
    draws = draw_missing(network, rows, n_draws, rng)
    assert (draws >= 0).all()
    for i, row in enumerate(rows):
        states, probabilities = enumerated_posterior(network, row)
        place = np.full(tuple(network.cards), -1)
        place[tuple(states.T)] = np.arange(len(states))
        drawn = place[tuple(draws[:, i].T)]
        assert (drawn >= 0).all()  # nothing impossible, nothing that contradicts the row
        frequencies = np.bincount(drawn, minlength=len(states)) / n_draws
        error = np.sqrt(probabilities * (1 - probabilities) / n_draws)
        # Rare states are far from normal: one draw more or less is granted to all.
        assert (np.abs(frequencies - probabilities) <= 4 * error + 1 / n_draws).all()


def test_weights_of_each_row_sum_to_one_whether_listed_or_drawn():
    rng = np.random.default_rng(4)
    network = random_network(rng, 37, 3, most_states=4)
    rows = network.sample(150, rng)
    rows[50:][rng.random((100, 37)) < 0.3] = -1
    rows[100:, 5] = -1
    rows[25:50, 3] = -1
    filled = completions(network, rows, rng, most=32, n_draws=7)
    np.testing.assert_allclose(np.bincount(filled.row, filled.weights), 1.0)
    assert (np.diff(filled.row) >= 0).all()
    shown = rows[filled.row] >= 0
    np.testing.assert_array_equal(filled.codes[shown], rows[filled.row][shown])
    assert (filled.codes >= 0).all()
    assert (filled.codes < network.cards).all()
    np.testing.assert_array_equal(filled.codes[filled.row < 25], rows[:25])
    ways = np.where(rows < 0, network.cards, 1).prod(axis=1)
    per_row = np.bincount(filled.row)
    np.testing.assert_array_equal(per_row[ways > 32], 7)
    np.testing.assert_array_equal(per_row[ways <= 32], ways[ways <= 32])


def test_expected_counts_from_draws_approach_those_from_listing():
    rng = np.random.default_rng(8)
    network = random_network(rng, 6, 2)
    rows = network.sample(300, rng)
    rows[rng.random(rows.shape) < 0.4] = -1
    listed = completions(network, rows, rng, most=10**6)
    drawn = completions(network, rows, rng, most=1, n_draws=200)
    for v in range(6):
        exact = np.bincount(listed.codes[:, v], listed.weights, minlength=3)
        estimate = np.bincount(drawn.codes[:, v], drawn.weights, minlength=3)
        # 300 rows, each the mean of 200 draws of variance at most a quarter.
        assert np.abs(exact - estimate).max() <= 4 * np.sqrt(300 * 0.25 / 200)


def test_the_same_seed_gives_the_same_completions():
    network = random_network(np.random.default_rng(0), 12, 2)
    rows = network.sample(40, np.random.default_rng(1))
    rows[np.random.default_rng(2).random(rows.shape) < 0.6] = -1
    first, second = (completions(network, rows, np.random.default_rng(3)) for _ in range(2))
    np.testing.assert_array_equal(first.codes, second.codes)
    np.testing.assert_array_equal(first.weights, second.weights)


@pytest.mark.parametrize("uniform", [0.0, np.nextafter(1.0, 0.0)])
def test_the_smallest_and_the_largest_uniform_draw_nothing_impossible(uniform):
    class Fixed:
        def random(self, shape):
            return np.full(shape, uniform)

    only_second = np.array([[0.0, 1.0, 0.0]] * 3)
    tables = [np.array([0.0, 0.4, 0.6]), only_second, np.array([[0.0, 0.7, 0.3]] * 3)]
    network = make_network("abc", [[0, 1, 2]] * 3, [[], [0], [0]], tables)
    draws = draw_missing(network, np.array([[-1, -1, 2]]), 1, Fixed())
    assert draws.tolist() == [[[1 if uniform == 0 else 2, 1, 2]]]


@pytest.mark.parametrize("most", [1, 32])
@pytest.mark.parametrize("row", [[-1, 1, 0, -1], [0, 1, -1, -1], [-1, -1, 1, -1]])
def test_a_row_that_the_tables_rule_out_is_refused_by_number(most, row):
    # b is always 0, and c copies b: neither b = 1 nor c = 1 can be.
    copy = np.array([[1.0, 0.0], [0.0, 1.0]])
    tables = [np.array([0.5, 0.5]), np.array([[1.0, 0.0], [1.0, 0.0]]), copy, np.array([0.5, 0.5])]
    network = make_network("abcd", [[0, 1]] * 4, [[], [0], [1], []], tables)
    rows = np.array([[0, 0, 0, 0], [-1, 0, -1, -1], row])
    with pytest.raises(ValueError, match=r"^row 2: its observed cells have probability zero"):
        completions(network, rows, np.random.default_rng(0), most=most)


def test_no_rows_give_no_completions():
    network = random_network(np.random.default_rng(0), 4, 2)
    filled = completions(network, np.zeros((0, 4), dtype=np.int32), np.random.default_rng(0))
    assert filled.codes.shape == (0, 4)
    assert len(filled.weights) == len(filled.row) == 0
