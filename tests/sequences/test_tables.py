"""Counts of transitions, their marginals, Dirichlet rows and tables, against definitions and closed forms."""

import numpy as np
import pytest

from kinfolk.sequences.model.dirichlet_draws import draw_dirichlet, draw_transitions
from kinfolk.sequences.model.ndp_ihmm import (
    count_transitions,
    draw_tables,
    log_transition_marginals,
)
from tests.sequences.oracle import log_dirichlet_multinomial


def is_near(draws, wanted):
    """Whether the mean is within four standard errors of what is wanted."""
    draws = np.asarray(draws, dtype=float)
    return np.all(np.abs(draws.mean(axis=0) - wanted) <= 4 * draws.std(axis=0) / np.sqrt(len(draws)) + 1e-12)


def test_transitions_are_counted_within_sequences_and_tasks():
    rng = np.random.default_rng(0)
    states, bounds, task_bounds = rng.integers(3, size=20), np.array([0, 5, 5, 12, 13, 20]), np.array([0, 2, 2, 5])
    wanted = np.zeros((3, 4, 3), dtype=int)
    for j in range(3):
        for i in range(task_bounds[j], task_bounds[j + 1]):
            path = states[bounds[i] : bounds[i + 1]]
            for before, state in zip([0, *(path + 1)], path, strict=False):
                wanted[j, before, state] += 1
    np.testing.assert_array_equal(count_transitions(states, bounds, task_bounds, 3), wanted)


def test_marginals_are_those_of_each_row_by_itself():
    rng = np.random.default_rng(1)
    counts = rng.integers(4, size=(3, 5, 4))
    weights = rng.gamma(1.0, size=(3, 4))
    found = log_transition_marginals(counts, weights, 0.7)
    for j in range(3):
        wanted = sum(
            log_dirichlet_multinomial(counts[j, r], weights[j] + (0.7 * np.eye(4)[r - 1] if r else 0.0))
            for r in range(5)
        )
        assert found[j] == pytest.approx(wanted, rel=1e-12)


def test_a_state_too_rare_for_a_float_has_a_finite_marginal():
    counts = np.zeros((1, 3, 2), dtype=np.int64)
    counts[0, 0] = [2, 1]
    assert np.isfinite(log_transition_marginals(counts, np.array([[1.0, 0.0]]), 0.0)[0])


@pytest.mark.parametrize("shapes", [[3.0, 0.2, 1.5], [0.01, 0.02, 0.03], [1.0, 1.0, 1.0]])
def test_dirichlet_draws_have_their_means_and_squares(shapes):
    shapes, rng = np.array(shapes), np.random.default_rng(2)
    drawn = draw_dirichlet(np.tile(shapes, (20_000, 1)), rng)
    total = shapes.sum()
    assert np.allclose(drawn.sum(axis=1), 1.0)
    assert is_near(drawn, shapes / total)
    assert is_near(drawn**2, shapes * (shapes + 1) / (total * (total + 1)))


@pytest.mark.parametrize("scale", [1e-8, 1e-310, 5e-324])
def test_of_tiny_shapes_all_goes_to_one_with_probability_as_its_shape(scale):
    rng = np.random.default_rng(3)
    shapes = np.array([1.0, 3.0, 0.0]) * scale
    drawn = draw_dirichlet(np.tile(shapes, (4_000, 1)), rng)
    assert np.allclose(drawn.max(axis=1), 1.0)
    assert is_near(drawn, [0.25, 0.75, 0.0])


def test_rows_have_counts_base_weights_and_stickiness_as_shapes():
    rng = np.random.default_rng(4)
    weights, counts = np.array([0.6, 1.4]), np.array([[2, 0], [0, 0], [1, 5]])
    drawn = draw_transitions(np.tile(weights, (10_000, 1)), 0.5, counts, rng)
    assert is_near(drawn[:, :, 0], [2.6 / 4.0, 1.1 / 2.5, 1.6 / 8.5])


def test_tables_are_as_many_as_the_chinese_restaurant_has():
    weight, n_customers, rng = 0.8, 6, np.random.default_rng(5)
    counts = np.zeros((1, 3, 2), dtype=np.int64)
    counts[0, 0, 1] = n_customers
    drawn = [draw_tables(counts, np.array([0]), np.array([[0.3, weight]]), 0.0, rng)[0] for _ in range(20_000)]
    assert not np.array(drawn)[:, 0, 0].any()
    # A table more with each customer: the distribution by dynamic programming.
    probability = np.array([1.0])
    for i in range(n_customers):
        new = weight / (weight + i)
        probability = np.append(probability * (1 - new), 0.0) + np.append(0.0, probability * new)
    frequency = np.bincount(np.array(drawn)[:, 0, 1], minlength=n_customers + 1) / len(drawn)
    np.testing.assert_allclose(frequency, probability, atol=4 * np.sqrt(0.25 / len(drawn)))


def test_overrides_are_the_share_of_self_transitions_due_to_stickiness():
    rng = np.random.default_rng(6)
    counts = np.zeros((2, 3, 2), dtype=np.int64)
    counts[1, 2, 1], counts[0, 1, 1] = 9, 1
    weights, kappa = np.array([[0.5, 0.5], [0.2, 0.4]]), 1.2
    of_states, overrides = [], []
    for _ in range(10_000):
        tables, n_overrides = draw_tables(counts, np.array([0, 1]), weights, kappa, rng)
        of_states.append(tables.ravel())
        overrides.append([n_overrides])
    tables_of_nine = sum(1.6 / (1.6 + i) for i in range(9))
    assert is_near(overrides, [tables_of_nine * 1.2 / 1.6])
    assert is_near(of_states, [0.0, 1.0, 0.0, tables_of_nine * 0.4 / 1.6])
