"""Jointly Gaussian entries against scipy's distributions and against the diagonal one in one dimension."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import invwishart, kstest, multivariate_normal, multivariate_t

from kinfolk.sequences.model.emissions.gaussian_diagonal import LEAST_SPREAD, GaussianDiagonal
from kinfolk.sequences.model.emissions.gaussian_full import GaussianFull

H = 1.2
MIXING = np.array([[0.5, 0.1], [-0.2, 0.3]])
CENTRE = np.array([11.0, 14.0])
EMISSION = GaussianFull(CENTRE, MIXING, np.linalg.inv(MIXING), -float(np.log(np.linalg.det(MIXING))), H)
X = np.array([[12.0, 9.0], [10.0, 15.0], [13.5, 14.2], [8.0, 11.0]])


def of_one_state(emission, x):
    return emission.statistics((x,), np.zeros(len(x), dtype=np.int64), 1)


def rows(log_densities):
    return log_densities.rows[log_densities.row]


def posterior(x: np.ndarray) -> tuple[float, np.ndarray, float, np.ndarray]:
    """Textbook update in whitened coordinates, with the scatter about the data's own mean: κ, m, ν, Ψ."""
    z = (x - CENTRE) @ MIXING
    n, mean = len(z), z.mean(axis=0)
    scatter = (z - mean).T @ (z - mean) + (H + LEAST_SPREAD) * np.eye(2)
    scatter += H * n / (H + n) * np.outer(mean, mean)
    return H + n, n * mean / (H + n), 3.0 + H + n, scatter


def test_one_entry_alone_is_the_diagonal_gaussian():
    full = GaussianFull(np.array([3.0]), np.array([[0.5]]), np.array([[2.0]]), np.log(2.0), H)
    diagonal = GaussianDiagonal(np.array([3.0]), np.array([2.0]), H)
    x = np.array([[4.0], [1.5], [np.nan], [5.5]])
    statistics = of_one_state(full, x)
    np.testing.assert_allclose(statistics, of_one_state(diagonal, x))
    for method in ("log_marginal", "divergence", "expected_natural_parameters"):
        np.testing.assert_allclose(getattr(full, method)(statistics), getattr(diagonal, method)(statistics))
    for method in ("log_predictive_densities", "expected_log_densities"):
        np.testing.assert_allclose(
            rows(getattr(full, method)(statistics, (x,))), rows(getattr(diagonal, method)(statistics, (x,)))
        )


def test_predictive_densities_are_the_multivariate_t():
    weight, mean, freedom, scatter = posterior(X)
    back = np.linalg.inv(MIXING)
    degrees = freedom - 1.0
    shape = back.T @ (scatter * (weight + 1.0) / (weight * degrees)) @ back
    new = np.array([[0.0, 0.0], [11.0, 12.0]])
    expected = multivariate_t(CENTRE + mean @ back, shape, degrees).logpdf(new)
    np.testing.assert_allclose(
        rows(EMISSION.log_predictive_densities(of_one_state(EMISSION, X), (new,)))[:, 0], expected
    )


def test_densities_are_gaussian_in_the_units_of_the_data():
    root = np.array([[1.5, 0.0], [0.7, 2.0]])
    parameters = np.concatenate([[0.3, -0.4], root.ravel()])[None]
    back = np.linalg.inv(MIXING)
    covariance = back.T @ np.linalg.inv(root @ root.T) @ back
    expected = multivariate_normal(CENTRE + np.array([0.3, -0.4]) @ back, covariance).logpdf(X)
    np.testing.assert_allclose(rows(EMISSION.log_densities(parameters, (X,)))[:, 0], expected)


def test_drawn_parameters_follow_the_normal_inverse_wishart_posterior():
    n_draws = 4000
    statistics = of_one_state(EMISSION, X)
    drawn = EMISSION.draw_parameters(statistics.repeat(n_draws, axis=0), np.random.default_rng(0))
    root = drawn[:, 2:].reshape(-1, 2, 2)
    covariance = np.linalg.inv(root @ np.swapaxes(root, 1, 2))
    weight, mean, freedom, scatter = posterior(X)
    reference = invwishart(freedom, scatter).rvs(n_draws, random_state=np.random.default_rng(1))
    for i, j in ((0, 0), (0, 1), (1, 1)):
        assert kstest(covariance[:, i, j], reference[:, i, j]).pvalue > 1e-3
    whitened = np.sqrt(weight) * np.einsum("nji,nj->ni", root, drawn[:, :2] - mean)
    for i in range(2):
        assert kstest(whitened[:, i], "norm").pvalue > 1e-3


def test_the_divergence_is_the_mean_log_ratio_of_posterior_and_prior():
    n_draws = 3000
    statistics = of_one_state(EMISSION, X)
    drawn = EMISSION.draw_parameters(statistics.repeat(n_draws, axis=0), np.random.default_rng(2))
    root = drawn[:, 2:].reshape(-1, 2, 2)
    weight, mean, freedom, scatter = posterior(X)
    prior_scatter = (H + LEAST_SPREAD) * np.eye(2)
    ratio = np.empty(n_draws)
    for i, covariance in enumerate(np.linalg.inv(root @ np.swapaxes(root, 1, 2))):
        ratio[i] = multivariate_normal.logpdf(drawn[i, :2], mean, covariance / weight)
        ratio[i] -= multivariate_normal.logpdf(drawn[i, :2], np.zeros(2), covariance / H)
    covariances = np.moveaxis(np.linalg.inv(root @ np.swapaxes(root, 1, 2)), 0, -1)
    ratio += invwishart.logpdf(covariances, freedom, scatter) - invwishart.logpdf(covariances, 3.0 + H, prior_scatter)
    assert abs(ratio.mean() - EMISSION.divergence(statistics)[0]) < 4.0 * ratio.std() / np.sqrt(n_draws)


def test_a_step_with_a_missing_entry_is_left_out_whole():
    x = np.concatenate([X, [[5.0, np.nan], [np.nan, 5.0]]])
    np.testing.assert_allclose(of_one_state(EMISSION, x), of_one_state(EMISSION, X))
    statistics = of_one_state(EMISSION, X)
    np.testing.assert_array_equal(rows(EMISSION.log_predictive_densities(statistics, (x,)))[4:], 0.0)


def test_drawn_observations_have_the_covariance_of_their_state():
    root = np.array([[1.5, 0.0], [0.7, 2.0]])
    parameters = np.concatenate([[0.3, -0.4], root.ravel()])[None]
    [drawn] = EMISSION.draw_observations(parameters, np.zeros(50_000, dtype=np.int64), np.random.default_rng(3))
    back = np.linalg.inv(MIXING)
    np.testing.assert_allclose(np.cov(drawn.T), back.T @ np.linalg.inv(root @ root.T) @ back, rtol=0.04, atol=0.03)
    np.testing.assert_allclose(drawn.mean(axis=0), EMISSION.means(parameters)[0][0], atol=0.03)


def test_a_channel_without_variance_works_and_says_nothing():
    constant = GaussianFull(np.array([7.0]), np.zeros((1, 0)), np.zeros((0, 1)), 0.0)
    x = np.full((3, 1), 7.0)
    statistics = of_one_state(constant, x)
    assert constant.log_marginal(statistics)[0] == pytest.approx(0.0)
    parameters = constant.draw_parameters(statistics, np.random.default_rng(4))
    np.testing.assert_allclose(rows(constant.log_densities(parameters, (x,))), 0.0)
    [drawn] = constant.draw_observations(parameters, np.zeros(3, dtype=np.int64), np.random.default_rng(5))
    np.testing.assert_array_equal(drawn, x)
