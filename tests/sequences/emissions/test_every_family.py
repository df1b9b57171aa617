"""What holds for emissions of any family."""

from __future__ import annotations

import numpy as np
import pytest

from kinfolk.sequences.model.filtering import scaled
from tests.sequences.emissions.families import NAMES, example, of_one_state, taken

pytestmark = pytest.mark.parametrize("name", NAMES)


def log_rows(log_densities):
    return log_densities.rows[log_densities.row]


def test_the_log_marginal_is_the_sum_of_predictive_log_densities_step_by_step(name):
    emission, observations = example(name)
    total = 0.0
    for t in range(len(observations[0])):
        before = of_one_state(emission, taken(observations, slice(0, t)))
        total += log_rows(emission.log_predictive_densities(before, taken(observations, [t])))[0, 0]
    assert emission.log_marginal(of_one_state(emission, observations))[0] == pytest.approx(total, abs=1e-9)


def test_the_log_marginal_is_the_bound_of_the_exact_posterior(name):
    emission, observations = example(name)
    statistics = of_one_state(emission, observations)
    bound = emission.expected_log_likelihood(statistics, statistics) - emission.divergence(statistics)
    assert bound == pytest.approx(emission.log_marginal(statistics), abs=1e-9)


def test_any_other_posterior_has_a_lower_bound(name):
    emission, observations = example(name)
    statistics = of_one_state(emission, observations)
    for factor in (0.3, 0.8, 1.2, 3.0):
        q = statistics * factor
        bound = emission.expected_log_likelihood(q, statistics) - emission.divergence(q)
        assert bound < emission.log_marginal(statistics) - 1e-4


def test_the_log_marginal_is_the_mean_likelihood_of_parameters_drawn_from_the_prior(name):
    emission, observations = example(name)
    observations = taken(observations, slice(0, 3))
    n_draws = 60_000
    rng = np.random.default_rng(1)
    parameters = emission.draw_parameters(np.zeros((n_draws, emission.n_statistics)), rng)
    log_likelihood = log_rows(emission.log_densities(parameters, observations)).sum(axis=0)
    likelihood = np.exp(log_likelihood)
    truth = np.exp(emission.log_marginal(of_one_state(emission, observations))[0])
    assert abs(likelihood.mean() - truth) < 4.0 * likelihood.std() / np.sqrt(n_draws)
    assert likelihood.std() / np.sqrt(n_draws) < 0.1 * truth


def test_expected_log_densities_are_means_over_parameters_drawn_from_the_posterior(name):
    emission, observations = example(name)
    statistics = of_one_state(emission, observations)
    n_draws = 40_000
    drawn = emission.draw_parameters(np.repeat(statistics, n_draws, axis=0), np.random.default_rng(2))
    log_densities = log_rows(emission.log_densities(drawn, observations))
    expected = log_rows(emission.expected_log_densities(statistics, observations))[:, 0]
    error = log_densities.std(axis=1) / np.sqrt(n_draws)
    assert np.all(np.abs(log_densities.mean(axis=1) - expected) < 4.5 * error + 1e-12)
    assert error.max() < 0.02


def test_predictive_densities_are_means_over_parameters_drawn_from_the_posterior(name):
    emission, observations = example(name)
    statistics = of_one_state(emission, observations)
    n_draws = 40_000
    drawn = emission.draw_parameters(np.repeat(statistics, n_draws, axis=0), np.random.default_rng(3))
    densities = np.exp(log_rows(emission.log_densities(drawn, observations)))
    expected = np.exp(log_rows(emission.log_predictive_densities(statistics, observations))[:, 0])
    error = densities.std(axis=1) / np.sqrt(n_draws)
    assert np.all(np.abs(densities.mean(axis=1) - expected) < 4.5 * error + 1e-12)


def test_the_expected_log_likelihood_is_the_sum_of_expected_log_densities(name):
    emission, observations = example(name)
    of_q = of_one_state(emission, example(name, seed=5).observations)
    total = log_rows(emission.expected_log_densities(of_q, observations)).sum()
    statistics = of_one_state(emission, observations)
    assert emission.expected_log_likelihood(of_q, statistics)[0] == pytest.approx(total, abs=1e-9)


def test_the_divergence_is_zero_without_data_and_above_zero_with_some(name):
    emission, observations = example(name)
    assert emission.divergence(np.zeros(emission.n_statistics)) == 0.0
    assert emission.divergence(of_one_state(emission, observations))[0] > 0.1


def test_statistics_add_up_over_steps_and_over_states(name):
    emission, observations = example(name)
    states = np.random.default_rng(4).integers(3, size=len(observations[0]))
    whole = emission.statistics(observations, states, 3)
    parts = [
        emission.statistics(taken(observations, steps), states[steps], 3) for steps in (slice(0, 6), slice(6, None))
    ]
    assert whole.shape == (3, emission.n_statistics)
    np.testing.assert_allclose(parts[0] + parts[1], whole, rtol=1e-12)
    np.testing.assert_allclose(whole.sum(axis=0), of_one_state(emission, observations)[0], rtol=1e-12)


def test_expected_statistics_are_means_over_states_drawn_from_the_posteriors(name):
    emission, observations = example(name)
    rng = np.random.default_rng(6)
    n_steps = len(observations[0])
    certain = rng.integers(3, size=n_steps)
    np.testing.assert_allclose(
        emission.expected_statistics(observations, np.eye(3)[certain]), emission.statistics(observations, certain, 3)
    )
    posteriors = rng.dirichlet(np.ones(3), size=n_steps)
    each = [emission.expected_statistics(taken(observations, [t]), np.ones((1, 1)))[0] for t in range(n_steps)]
    np.testing.assert_allclose(
        emission.expected_statistics(observations, posteriors), posteriors.T @ np.array(each), atol=1e-12
    )


def test_long_observations_have_the_statistics_and_densities_of_their_parts(name):
    emission, observations = example(name, n_steps=100_000)
    states = np.random.default_rng(7).integers(2, size=100_000)
    halves = slice(0, 50_001), slice(50_001, None)
    whole = emission.statistics(observations, states, 2)
    parts = [emission.statistics(taken(observations, steps), states[steps], 2) for steps in halves]
    np.testing.assert_allclose(parts[0] + parts[1], whole, rtol=1e-9, atol=1e-6)
    parameters = emission.draw_parameters(whole, np.random.default_rng(8))
    densities = log_rows(emission.log_densities(parameters, observations))
    parts = [log_rows(emission.log_densities(parameters, taken(observations, steps))) for steps in halves]
    np.testing.assert_allclose(np.concatenate(parts), densities, atol=1e-9)


def test_leading_axes_are_carried_through(name):
    emission, observations = example(name)
    states = np.arange(len(observations[0])) % 6
    flat = emission.statistics(observations, states, 6)
    stacked = flat.reshape(2, 3, -1)
    for method in (emission.log_marginal, emission.divergence):
        expected = [method(row) for row in flat]
        np.testing.assert_allclose(method(stacked), np.reshape(expected, (2, 3)), atol=1e-9)
    other = flat[::-1].reshape(2, 3, -1)
    expected = [emission.expected_log_likelihood(q, data) for q, data in zip(flat, flat[::-1], strict=True)]
    np.testing.assert_allclose(emission.expected_log_likelihood(stacked, other), np.reshape(expected, (2, 3)))
    rng = np.random.default_rng(9)
    assert emission.draw_parameters(stacked, rng).shape == (2, 3, emission.n_parameters)
    assert emission.draw_parameters(flat[0], rng).shape == (emission.n_parameters,)


def test_rows_of_densities_are_scaled_to_one_and_their_scale_is_kept(name):
    emission, observations = example(name)
    parameters = emission.draw_parameters(np.zeros((3, emission.n_statistics)), np.random.default_rng(10))
    densities = scaled(emission.log_densities(parameters, observations))
    assert densities.row.dtype == np.int64
    np.testing.assert_array_equal(densities.likelihood.max(axis=1), 1.0)
    back = (np.log(densities.likelihood) + densities.log_scale[:, None])[densities.row]
    expected = log_rows(emission.log_densities(parameters, observations))
    near = expected > expected.max(axis=1, keepdims=True) - 300.0
    np.testing.assert_allclose(back[near], expected[near], atol=1e-9)
    assert (densities.likelihood > 0.0).all()


def test_a_state_in_which_a_step_is_all_but_impossible_keeps_a_density_above_zero(name):
    emission, observations = example(name)
    certain = of_one_state(emission, taken(observations, [1])) * 1e9
    statistics = np.concatenate([certain, np.zeros_like(certain)])
    densities = scaled(emission.with_strength(1e-3).expected_log_densities(statistics, observations))
    assert densities.likelihood.min() < 1e-100
    assert densities.likelihood.min() > 0.0


def test_a_step_that_misses_everything_has_density_one_and_teaches_nothing(name):
    emission, observations = example(name)
    missing = tuple(
        np.full_like(array[:4], -1 if np.issubdtype(array.dtype, np.integer) else np.nan) for array in observations
    )
    statistics = of_one_state(emission, observations)
    parameters = emission.draw_parameters(statistics, np.random.default_rng(11))
    np.testing.assert_array_equal(log_rows(emission.log_densities(parameters, missing)), 0.0)
    np.testing.assert_array_equal(log_rows(emission.expected_log_densities(statistics, missing)), 0.0)
    np.testing.assert_array_equal(log_rows(emission.log_predictive_densities(statistics, missing)), 0.0)
    np.testing.assert_array_equal(of_one_state(emission, missing), 0.0)


def test_drawn_observations_have_the_form_of_those_observed_and_bring_their_parameters_back(name):
    emission, observations = example(name)
    rng = np.random.default_rng(12)
    true = emission.draw_parameters(5.0 * of_one_state(emission, observations).repeat(2, axis=0), rng)
    states = rng.integers(2, size=40_000)
    drawn = emission.draw_observations(true, states, rng)
    for array, model in zip(drawn, observations, strict=True):
        assert array.dtype == model.dtype
        assert array.shape == (len(states), *model.shape[1:])
    statistics = emission.statistics(drawn, states, 2)
    again = emission.draw_parameters(statistics, rng)
    for mean, expected in zip(emission.means(again), emission.means(true), strict=True):
        np.testing.assert_allclose(mean, expected, rtol=0.03, atol=0.02)
    # Under the parameters that they were drawn from, data is as probable as it should be: no others do better by much.
    density = log_rows(emission.log_densities(true, drawn))[np.arange(len(states)), states].mean()
    density_again = log_rows(emission.log_densities(again, drawn))[np.arange(len(states)), states].mean()
    assert density_again == pytest.approx(density, abs=2e-3)


def test_the_same_seed_draws_the_same(name):
    emission, observations = example(name)
    statistics = of_one_state(emission, observations)
    draws = [emission.draw_parameters(statistics, np.random.default_rng(13)) for _ in range(2)]
    np.testing.assert_array_equal(*draws)
    states = np.zeros(5, dtype=np.int64)
    first, second = (emission.draw_observations(draws[0], states, np.random.default_rng(14)) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_another_strength_changes_the_prior_alone(name):
    emission, observations = example(name)
    other = emission.with_strength(2.0)
    assert other.strength == 2.0
    assert emission.strength < 1.0
    statistics = of_one_state(emission, observations)
    np.testing.assert_array_equal(of_one_state(other, observations), statistics)
    assert abs(other.log_marginal(statistics)[0] - emission.log_marginal(statistics)[0]) > 0.01
    back = other.with_strength(emission.strength)
    np.testing.assert_array_equal(back.log_marginal(statistics), emission.log_marginal(statistics))


@pytest.mark.parametrize("strength", [0.0, -1.0, np.nan, np.inf])
def test_a_strength_that_is_no_weight_is_refused(name, strength):
    emission, _ = example(name)
    with pytest.raises(ValueError, match="above zero"):
        emission.with_strength(strength)


@pytest.mark.parametrize("strength", [1e-3, 1e3])
def test_extreme_strengths_leave_everything_finite(name, strength):
    emission, observations = example(name)
    emission = emission.with_strength(strength)
    statistics = of_one_state(emission, observations)
    rng = np.random.default_rng(15)
    for counts in (np.zeros((5, emission.n_statistics)), statistics.repeat(5, axis=0)):
        densities = scaled(emission.log_densities(emission.draw_parameters(counts, rng), observations))
        assert np.isfinite(densities.likelihood).all()
        assert np.isfinite(densities.log_scale).all()
        assert np.isfinite(emission.log_marginal(counts)).all()
        assert np.isfinite(emission.divergence(counts)).all()


def test_what_is_expected_at_once_is_what_is_expected_apart(name):
    emission, observations = example(name)
    rng = np.random.default_rng(3)
    posteriors = rng.dirichlet(np.ones(3), size=len(observations[0]))
    statistics = emission.expected_statistics(observations, posteriors)
    log_densities, divergence = emission.expected(statistics, observations)
    np.testing.assert_allclose(
        log_rows(log_densities), log_rows(emission.expected_log_densities(statistics, observations))
    )
    assert divergence == pytest.approx(emission.divergence(statistics).sum(), rel=1e-10)
