"""Autoregressions in each state against scipy's distributions, textbook updates and sums over all paths of states."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import invwishart, kstest, multivariate_normal, multivariate_t, t

from kinfolk.sequences.model.emissions.autoregressive import Autoregressive
from kinfolk.sequences.model.emissions.emission import Asked, with_past
from kinfolk.sequences.model.emissions.families import choose_emission, kind_named
from kinfolk.sequences.model.emissions.gaussian_diagonal import LEAST_SPREAD

H = 1.2
LENGTHS = np.array([40, 25, 1, 34])
STATES = np.repeat(np.arange(10) % 2, 10)


def simulated(seed: int = 0) -> np.ndarray:
    """Two columns, whose sequences go on as before in state 0 and turn in state 1, far from zero and of any units."""
    rng = np.random.default_rng(seed)
    x, slopes = np.zeros((100, 2)), (np.array([[0.8, 0.1], [0.0, 0.7]]), np.array([[-0.6, 0.0], [0.5, -0.2]]))
    for step in range(100):
        before = x[step - 1] if step not in np.cumsum([0, *LENGTHS]) else rng.normal(size=2)
        x[step] = before @ slopes[STATES[step]] + rng.normal(scale=0.4, size=2)
    return x * np.array([5.0, 0.1]) + np.array([100.0, -3.0])


NUMBERS = simulated()


def made(order: int = 1, numbers: np.ndarray = NUMBERS, strength: float = H) -> tuple[Autoregressive, np.ndarray]:
    steps = with_past(numbers, LENGTHS, order)
    return Autoregressive.made_for(steps, strength, Asked("x", order=order)), steps


def of_one_state(emission, steps):
    return emission.statistics((steps,), np.zeros(len(steps), dtype=np.int64), 1)


def rows(log_densities):
    return log_densities.rows[log_densities.row]


def regressors(emission, steps):
    """u and e of complete steps, from the definitions."""
    complete = steps[np.isfinite(steps).all(axis=1)]
    w = (complete[:, 2:] - emission.lag_centre) @ emission.lag_whiten
    e = (complete[:, :2] - emission.centre - w @ emission.trend) @ emission.whiten
    return np.column_stack([np.ones(len(w)), w]), e


def posterior(emission, steps):
    """The textbook update of a matrix-normal–inverse-Wishart: precision of u, mean, ν, Ψ."""
    u, e = regressors(emission, steps)
    precision = H * np.eye(u.shape[1]) + u.T @ u
    mean = np.linalg.inv(precision) @ u.T @ e
    rest = e - u @ mean
    return precision, mean, 3.0 + H + len(u), (H + LEAST_SPREAD) * np.eye(2) + rest.T @ rest + H * mean.T @ mean


@pytest.mark.parametrize("order", [1, 2])
def test_the_coordinates_are_those_of_the_regression_of_all_steps(order):
    emission, steps = made(order)
    complete = steps[np.isfinite(steps).all(axis=1)]
    u, e = regressors(emission, steps)
    np.testing.assert_allclose(u[:, 1:].T @ u[:, 1:] / len(u), np.eye(2 * order), atol=1e-9)
    np.testing.assert_allclose(e.T @ e / len(e), np.eye(2), atol=1e-9)
    # A ridge of one step's weight, in coordinates in which steps have covariance I, is all that sets it apart.
    design = np.column_stack([np.ones(len(complete)), complete[:, 2:]])
    least_squares = design @ np.linalg.lstsq(design, complete[:, :2])[0]
    ours = emission.centre + u[:, 1:] @ emission.trend
    np.testing.assert_allclose(ours - emission.centre, (least_squares - emission.centre) * len(u) / (len(u) + 1.0))


def test_densities_are_those_of_gaussians_around_what_the_state_makes_of_the_steps_before():
    emission, steps = made(2)
    parameters = emission.draw_parameters(emission.statistics((steps,), STATES, 2), np.random.default_rng(1))
    constant, slope, covariance = emission.regression(parameters)
    found = rows(emission.log_densities(parameters, (steps,)))
    for step, state in product([2, 30, 70], [0, 1]):
        law = multivariate_normal(constant[state] + steps[step, 2:] @ slope[state], covariance[state])
        assert found[step, state] == pytest.approx(law.logpdf(steps[step, :2]))


def test_the_first_steps_of_a_sequence_and_those_after_a_gap_teach_nothing_and_have_density_one():
    emission, _ = made(2)
    numbers = NUMBERS.copy()
    numbers[10, 1] = np.nan
    steps = with_past(numbers, LENGTHS, 2)
    parameters = emission.draw_parameters(np.zeros((1, emission.n_statistics)), np.random.default_rng(2))
    left_out = rows(emission.log_densities(parameters, (steps,)))[:, 0] == 0.0
    assert np.flatnonzero(left_out).tolist() == [0, 1, 10, 11, 12, 40, 41, 65, 66, 67]
    assert of_one_state(emission, steps)[0, 0] == 90.0


def test_predictive_densities_are_the_multivariate_t():
    emission, steps = made()
    precision, mean, freedom, scatter = posterior(emission, steps)
    new = np.array([[101.0, -3.1, 99.0, -2.9], [90.0, -3.0, 120.0, -3.0]])
    found = rows(emission.log_predictive_densities(of_one_state(emission, steps), (new,)))[:, 0]
    u, e = regressors(emission, new)
    for own, regressor, value in zip(found, u, e, strict=True):
        shape = scatter * (1.0 + regressor @ np.linalg.inv(precision) @ regressor) / (freedom - 1.0)
        expected = multivariate_t(mean.T @ regressor, shape, freedom - 1.0).logpdf(value) - emission.log_volume
        assert own == pytest.approx(expected)


def test_drawn_precisions_are_wishart_and_drawn_coefficients_matrix_t():
    emission, steps = made()
    precision, mean, freedom, scatter = posterior(emission, steps[:12])
    statistics = of_one_state(emission, steps[:12])
    drawn = emission.draw_parameters(statistics.repeat(8_000, axis=0), np.random.default_rng(3))
    coefficients, root = drawn[:, :6].reshape(-1, 3, 2), drawn[:, 6:].reshape(-1, 2, 2)
    covariance = np.linalg.inv(root @ np.swapaxes(root, 1, 2))
    theirs = invwishart(freedom, scatter).rvs(8_000, random_state=4)
    for i, j in ((0, 0), (0, 1), (1, 1)):
        assert kstest(covariance[:, i, j], theirs[:, i, j]).pvalue > 1e-3
    spread = np.linalg.inv(precision)
    for i, j in product(range(3), range(2)):
        scale = np.sqrt(spread[i, i] * scatter[j, j] / (freedom - 1.0))
        assert kstest(coefficients[:, i, j], t(freedom - 1.0, mean[i, j], scale).cdf).pvalue > 1e-3


def test_without_steps_before_it_is_the_full_gaussian():
    emission, steps = made(0)
    full = choose_emission((NUMBERS,), "gaussian-full", strength=H)
    ours, theirs = (own.log_marginal(own.statistics((steps,), STATES, 2)) for own in (emission, full))
    np.testing.assert_allclose(ours, theirs)


def evidence_of_states(numbers: np.ndarray, order: int = 1) -> float:
    emission, steps = made(order, numbers)
    apart = emission.log_marginal(emission.statistics((steps,), STATES, 2)).sum()
    return float(apart - emission.log_marginal(of_one_state(emission, steps))[0])


@pytest.mark.parametrize("order", [1, 3])
def test_neither_units_nor_mixtures_of_columns_matter(order):
    mixed = NUMBERS @ np.array([[0.01, 3.0], [2.0, 50.0]]) + np.array([1e5, 0.0])
    assert evidence_of_states(mixed, order) == pytest.approx(evidence_of_states(NUMBERS, order), rel=1e-6)
    assert evidence_of_states(NUMBERS, order) > 10.0


def test_columns_that_are_constant_or_always_missing_change_nothing():
    wider = np.column_stack([NUMBERS, np.full(100, 7.0), np.full(100, np.nan)])
    emission, steps = made(1, wider)
    assert evidence_of_states(wider) == pytest.approx(evidence_of_states(NUMBERS), rel=1e-9)
    parameters = emission.draw_parameters(emission.statistics((steps,), STATES, 2), np.random.default_rng(5))
    [drawn] = emission.draw_observations(parameters, STATES, np.random.default_rng(6))
    np.testing.assert_array_equal(drawn[:, 2], 7.0)
    assert np.isnan(drawn[:, 3]).all()
    assert np.isfinite(drawn[:, :2]).all()
    past = emission.past((steps,), np.cumsum([0, *LENGTHS]))
    states = np.full((4, 2), 0.5)
    [ahead] = emission.moments_ahead(parameters, np.full((2, 2), 0.5), states, 3, past)
    np.testing.assert_allclose(ahead.mean[..., 2], 7.0)
    assert np.isnan(ahead.mean[..., 3]).all()


def test_a_line_that_says_all_leaves_a_density_that_is_finite():
    wave = np.sin(np.arange(100) / 5.0)[:, None]
    steps = with_past(wave, np.array([100]), 2)
    emission = Autoregressive.made_for(steps, 1.0, Asked("x", order=2))
    statistics = of_one_state(emission, steps)
    assert np.isfinite(emission.log_marginal(statistics)).all()
    assert np.isfinite(rows(emission.log_predictive_densities(statistics, (steps,)))).all()


@pytest.mark.parametrize("order", [1, 2])
def test_drawn_sequences_go_on_from_what_was_there(order):
    emission, steps = made(order)
    parameters = emission.draw_parameters(emission.statistics((steps,), STATES, 2), np.random.default_rng(7))
    constant, slope, covariance = emission.regression(parameters)
    before = np.array([[140.0, -2.0], [60.0, -2.5]])[:order]
    states = np.tile([0, 1], (4_000, 1))
    past = (np.tile(before, (4_000, 1, 1)),)
    [drawn] = emission.draw_observations(parameters, states, np.random.default_rng(8), past)
    assert drawn.shape == (8_000, 2 * (order + 1))
    first, second = drawn[::2, :2], drawn[1::2]
    expected = constant[0] + before.ravel() @ slope[0]
    assert kstest(first[:, 0], "norm", (expected[0], np.sqrt(covariance[0, 0, 0]))).pvalue > 1e-3
    np.testing.assert_array_equal(second[:, 2:4], first)
    lags = np.column_stack([first, np.tile(before, (4_000, 1, 1)).reshape(4_000, -1)])[:, : 2 * order]
    rest = second[:, 1] - (constant[1] + lags @ slope[1])[:, 1]
    assert kstest(rest, "norm", (0.0, np.sqrt(covariance[1, 1, 1]))).pvalue > 1e-3


@pytest.mark.parametrize("order", [1, 2])
def test_moments_ahead_are_sums_over_all_paths_of_states(order):
    emission, steps = made(order)
    parameters = emission.draw_parameters(emission.statistics((steps,), STATES, 2), np.random.default_rng(9))
    constant, slope, covariance = emission.regression(parameters)
    past = emission.past((steps,), np.cumsum([0, *LENGTHS]))
    transitions, last = np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([[0.2, 0.8], [1.0, 0.0], [0.5, 0.5], [0.1, 0.9]])
    [found] = emission.moments_ahead(parameters, transitions, last, 3, past)
    mean, square = np.zeros((4, 3, 2)), np.zeros((4, 3, 2))
    for sequence, before, path in product(range(4), range(2), product(range(2), repeat=3)):
        probability, here = last[sequence, before], before
        # Given the path, the last steps are jointly Gaussian.
        location, spread = past[0][sequence].ravel(), np.zeros((2 * order, 2 * order))
        for ahead, state in enumerate(path):
            probability, here = probability * transitions[here, state], state
            x = constant[state] + location @ slope[state]
            across = slope[state].T @ spread
            own = across @ slope[state] + covariance[state]
            location = np.concatenate([x, location])[: 2 * order]
            spread = np.block([[own, across], [across.T, spread]])[: 2 * order, : 2 * order]
            # Every path of three steps that begins with these counts it once.
            share = probability / 2 ** (2 - ahead)
            mean[sequence, ahead] += share * x
            square[sequence, ahead] += share * (x**2 + np.diag(own))
    np.testing.assert_allclose(found.mean, mean)
    np.testing.assert_allclose(found.mean_square, square)


def test_the_past_of_a_sequence_is_its_last_steps_gaps_filled_by_the_step_before_or_the_mean():
    emission, _ = made(2)
    numbers = NUMBERS.copy()
    numbers[39, 0] = np.nan
    numbers[65, 1] = np.nan
    [past] = emission.past((with_past(numbers, LENGTHS, 2),), np.cumsum([0, *LENGTHS]))
    np.testing.assert_array_equal(past[0], [[NUMBERS[38, 0], NUMBERS[39, 1]], NUMBERS[38]])
    np.testing.assert_array_equal(past[1], NUMBERS[[64, 63]])
    np.testing.assert_array_equal(past[2], [[NUMBERS[65, 0], emission.centre[1]], emission.centre])


def test_what_an_unstable_state_draws_and_expects_stays_finite():
    emission, steps = made()
    parameters = emission.draw_parameters(of_one_state(emission, steps), np.random.default_rng(10))
    parameters[:, 2:6] += 1e3
    [drawn] = emission.draw_observations(parameters, np.zeros(200, dtype=np.int64), np.random.default_rng(11))
    assert np.isfinite(drawn[1:]).all()
    past = emission.past((steps,), np.cumsum([0, *LENGTHS]))
    [ahead] = emission.moments_ahead(parameters, np.ones((1, 1)), np.ones((4, 1)), 200, past)
    assert np.isfinite(ahead.mean).all()
    assert np.isfinite(ahead.mean_square).all()


def test_its_name_says_how_far_it_looks_back():
    assert [kind_named(name).order for name in ("ar", "ar-1", "ar-2", "ar-12")] == [1, 1, 2, 12]
    assert [kind_named(name) for name in ("ar-0", "ar-", "ar2", "gaussian-2", "ar-100", 2)] == [None] * 6


def test_sequences_too_short_to_learn_from_are_refused():
    with pytest.raises(ValueError, match="Channel 0 has nowhere 2 steps in a row without a missing entry"):
        choose_emission((with_past(NUMBERS[:3], np.ones(3, dtype=np.int64), 1),), "ar")
