"""Independent Gaussian entries against integrals, scipy's distributions and another implementation in the package."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import invgamma, kstest, norm
from scipy.stats import t as student

from kinfolk.maths.conjugate import GAUSSIAN, log_marginal_of_number, number_groups, prior_of
from kinfolk.sequences.model.emissions.gaussian_diagonal import LEAST_SPREAD, GaussianDiagonal

H = 1.2
ONE = GaussianDiagonal(np.array([3.0]), np.array([2.0]), H)
X = np.array([[4.0], [1.5], [5.5]])


def of_one_state(emission: GaussianDiagonal, x: np.ndarray) -> np.ndarray:
    return emission.statistics((x,), np.zeros(len(x), dtype=np.int64), 1)


def rows(log_densities):
    return log_densities.rows[log_densities.row]


def prior() -> tuple[float, float]:
    return 1.0 + 0.5 * H, 0.5 * (H + LEAST_SPREAD)


def test_the_log_marginal_is_the_integral_over_mean_and_variance():
    shape, rate = prior()
    # Over log variance and the mean in units of its own spread, in which both tails are short.
    log_variance, unit = np.linspace(-12.0, 16.0, 1401)[:, None], np.linspace(-9.0, 9.0, 901)
    variance = np.exp(log_variance)
    mean = unit * np.sqrt(variance / H)
    integrand = norm.pdf(unit) * invgamma.pdf(variance, shape, scale=rate) * variance
    for x in X[:, 0]:
        integrand = integrand * norm.pdf(x, 3.0 + 2.0 * mean, 2.0 * np.sqrt(variance))
    integral = np.trapezoid(np.trapezoid(integrand, unit, axis=1), log_variance[:, 0])
    assert np.exp(ONE.log_marginal(of_one_state(ONE, X))[0]) == pytest.approx(integral, rel=1e-6)


def test_the_log_marginal_is_that_of_numeric_features():
    shape, rate = prior()
    z = (X[:, 0] - 3.0) / 2.0
    groups = number_groups(0, np.array([GAUSSIAN]), np.array([[H, shape, rate, np.log(2.0)]]))
    expected = log_marginal_of_number(3.0, z.sum(), (z**2).sum(), GAUSSIAN, prior_of(groups, 0))
    assert ONE.log_marginal(of_one_state(ONE, X))[0] == pytest.approx(expected, rel=1e-12)


def test_densities_are_gaussian_in_the_units_of_the_data():
    emission = GaussianDiagonal(np.array([3.0, -50.0]), np.array([2.0, 10.0]))
    parameters = np.array([[0.5, -1.0, 4.0, 0.25], [0.0, 0.0, 1.0, 1.0]])
    x = np.array([[3.3, -61.0], [100.0, 2.0]])
    first = norm.logpdf(x, [4.0, -60.0], [1.0, 20.0]).sum(axis=1)
    second = norm.logpdf(x, [3.0, -50.0], [2.0, 10.0]).sum(axis=1)
    np.testing.assert_allclose(rows(emission.log_densities(parameters, (x,))), np.column_stack([first, second]))


def test_predictive_densities_are_students_t():
    shape, rate = prior()
    x = np.array([[0.0], [3.0], [40.0]])
    nothing = rows(ONE.log_predictive_densities(np.zeros((1, 3)), (x,)))[:, 0]
    spread = np.sqrt(rate / shape * (1.0 + 1.0 / H))
    np.testing.assert_allclose(nothing, student.logpdf(x[:, 0], 2.0 * shape, 3.0, 2.0 * spread))


def test_the_divergence_is_the_mean_log_ratio_of_posterior_and_prior():
    statistics = of_one_state(ONE, X)
    n_draws = 40_000
    drawn = ONE.draw_parameters(statistics.repeat(n_draws, axis=0), np.random.default_rng(0))
    mean, variance = drawn[:, 0], 1.0 / drawn[:, 1]
    shape, rate = prior()
    z = (X[:, 0] - 3.0) / 2.0
    weight, post_mean = H + 3.0, z.sum() / (H + 3.0)
    # Textbook update, with the scatter about the data's own mean.
    post_rate = rate + 0.5 * ((z - z.mean()) ** 2).sum() + 0.5 * H * 3.0 / weight * z.mean() ** 2
    ratio = norm.logpdf(mean, post_mean, np.sqrt(variance / weight))
    ratio += invgamma.logpdf(variance, shape + 1.5, scale=post_rate)
    ratio -= norm.logpdf(mean, 0.0, np.sqrt(variance / H)) + invgamma.logpdf(variance, shape, scale=rate)
    assert abs(ratio.mean() - ONE.divergence(statistics)[0]) < 4.0 * ratio.std() / np.sqrt(n_draws)
    assert kstest(variance, invgamma(shape + 1.5, scale=post_rate).cdf).pvalue > 1e-3
    assert kstest((mean - post_mean) / np.sqrt(variance / weight), norm.cdf).pvalue > 1e-3


def test_a_missing_entry_leaves_the_others_of_its_step():
    emission = GaussianDiagonal(np.zeros(2), np.ones(2), H)
    x = np.array([[1.0, np.nan], [2.0, 0.5], [np.nan, -3.0]])
    together = emission.log_marginal(of_one_state(emission, x))[0]
    one = GaussianDiagonal(np.zeros(1), np.ones(1), H)
    apart = one.log_marginal(of_one_state(one, x[:2, :1]))[0] + one.log_marginal(of_one_state(one, x[1:, 1:]))[0]
    assert together == pytest.approx(apart, rel=1e-12)
    parameters = np.array([[0.2, 0.3, 2.0, 0.5]])
    density = rows(emission.log_densities(parameters, (x,)))[0, 0]
    assert density == pytest.approx(norm.logpdf(1.0, 0.2, np.sqrt(0.5)))
    density = rows(emission.log_predictive_densities(np.zeros((1, 6)), (x,)))[0, 0]
    assert density == pytest.approx(rows(one.log_predictive_densities(np.zeros((1, 3)), (x[:1, :1],)))[0, 0])


def test_an_entry_of_scale_zero_is_left_out_and_always_drawn_the_same():
    emission = GaussianDiagonal(np.array([3.0, 7.0]), np.array([2.0, 0.0]), H)
    x = np.column_stack([X[:, 0], [7.0, 7.0, 9.0]])
    assert emission.log_marginal(of_one_state(emission, x))[0] == ONE.log_marginal(of_one_state(ONE, X))[0]
    parameters = emission.draw_parameters(of_one_state(emission, x), np.random.default_rng(1))
    one = ONE.log_densities(parameters[:, [0, 2]], (X,))
    np.testing.assert_allclose(rows(emission.log_densities(parameters, (x,))), rows(one))
    [drawn] = emission.draw_observations(parameters, np.zeros(4, dtype=np.int64), np.random.default_rng(2))
    np.testing.assert_array_equal(drawn[:, 1], 7.0)


def test_states_that_show_one_value_each_do_not_drive_the_strength_to_zero():
    emission = GaussianDiagonal(np.zeros(1), np.ones(1))
    x = np.repeat([[-1.0], [1.0]], 500, axis=0)
    statistics = emission.statistics((x,), np.repeat([0, 1], 500), 2)
    strengths = np.geomspace(1e-12, 1e-6, 7)
    evidence = [emission.with_strength(h).log_marginal(statistics).sum() for h in strengths]
    assert evidence[0] < evidence[-1]


def test_half_of_the_variances_expected_are_below_a_fifth_of_the_datas_at_the_default_strength():
    shape, rate = 1.15, 0.5 * (0.3 + LEAST_SPREAD)
    assert invgamma.median(shape, scale=rate) == pytest.approx(0.18, abs=0.02)
    drawn = GaussianDiagonal(np.zeros(1), np.ones(1)).draw_parameters(np.zeros((20_000, 3)), np.random.default_rng(3))
    assert np.median(1.0 / drawn[:, 1]) == pytest.approx(0.18, abs=0.02)
