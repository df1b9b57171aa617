"""Gaussian sites against numerical integration and the likelihoods themselves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from kinfolk.lica.model.factors import Likelihoods, log_predictive, match
from kinfolk.lica.model.links import log_normal_cdf
from tests.lica.oracle import log_likelihood

MEANS = np.array([-4.0, -0.7, 0.0, 0.3, 2.5])
VARIANCES = np.array([0.2, 1.5, 0.5, 3.0, 0.01])
Y = np.array([1.0, -1.0, 1.0, 1.0, -1.0])


def expectation(link: str, y: float, mean: float, variance: float) -> float:
    deviation = np.sqrt(variance)

    def integrand(f: float) -> float:
        return float(log_likelihood(link, y, np.asarray(f)) * norm.pdf(f, mean, deviation))

    return quad(integrand, mean - 12 * deviation, mean + 12 * deviation, epsabs=1e-11, limit=400)[0]


def one(link: str, i: int, bound: str, weight: float = 1.0) -> Likelihoods:
    return Likelihoods(link, Y[i : i + 1], np.array([weight]), 1.0, bound)


def bound_of(rows: Likelihoods, mean, variance) -> float:
    return float(match(rows, mean, variance).value.sum())


@pytest.mark.parametrize("link", ["logistic", "probit"])
@pytest.mark.parametrize("i", range(5))
def test_average_is_the_expected_log_likelihood(link, i):
    value = bound_of(one(link, i, "average"), MEANS[i : i + 1], VARIANCES[i : i + 1])
    assert value == pytest.approx(expectation(link, Y[i], MEANS[i], VARIANCES[i]), abs=1e-8)


@pytest.mark.parametrize("link", ["logistic", "probit"])
@pytest.mark.parametrize("i", range(5))
def test_sites_of_the_average_hold_its_derivatives(link, i):
    mean, variance, step = MEANS[i], VARIANCES[i], 1e-4
    sites = match(one(link, i, "average"), MEANS[i : i + 1], VARIANCES[i : i + 1])
    by_mean = (expectation(link, Y[i], mean + step, variance) - expectation(link, Y[i], mean - step, variance)) / (
        2 * step
    )
    wider, narrower = variance * (1 + step), variance * (1 - step)
    by_variance = (expectation(link, Y[i], mean, wider) - expectation(link, Y[i], mean, narrower)) / (wider - narrower)
    assert sites.precision[0] == pytest.approx(-2.0 * by_variance, rel=1e-4, abs=1e-6)
    assert sites.shift[0] - sites.precision[0] * mean == pytest.approx(by_mean, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("link", ["logistic", "probit"])
@pytest.mark.parametrize("i", range(5))
def test_tangent_lies_below_the_expected_log_likelihood_and_touches_it_without_variance(link, i):
    value = bound_of(one(link, i, "tangent"), MEANS[i : i + 1], VARIANCES[i : i + 1])
    assert value < expectation(link, Y[i], MEANS[i], VARIANCES[i])
    sites = match(one(link, i, "tangent"), MEANS[i : i + 1], np.zeros(1))
    value = float(sites.value.sum())
    assert value == pytest.approx(log_likelihood(link, Y[i], MEANS[i]), rel=1e-12)
    step = 1e-5
    slope = (log_likelihood(link, Y[i], MEANS[i] + step) - log_likelihood(link, Y[i], MEANS[i] - step)) / (2 * step)
    assert sites.shift[0] - sites.precision[0] * MEANS[i] == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_tangent_is_a_lower_bound_of_the_likelihood_everywhere(link):
    f = np.linspace(-10, 10, 201)
    for y in (-1.0, 1.0):
        for mean in (-2.0, 0.5, 4.0):
            sites = match(Likelihoods(link, np.array([y]), np.ones(1), 1.0, "tangent"), np.array([mean]), np.zeros(1))
            value = float(sites.value.sum())
            quadratic = sites.shift[0] * f - 0.5 * sites.precision[0] * f**2
            constant = value - (sites.shift[0] * mean - 0.5 * sites.precision[0] * mean**2)
            assert np.all(quadratic + constant <= log_likelihood(link, y, f) + 1e-12)


@pytest.mark.parametrize("bound", ["average", "tangent"])
@pytest.mark.parametrize("link", ["logistic", "probit", "gaussian"])
def test_a_weight_of_two_is_the_row_twice(link, bound):
    double = match(one(link, 1, bound, 2.0), MEANS[1:2], VARIANCES[1:2])
    value = float(double.value.sum())
    single = match(one(link, 1, bound), MEANS[1:2], VARIANCES[1:2])
    half = float(single.value.sum())
    assert value == pytest.approx(2.0 * half, rel=1e-14)
    np.testing.assert_allclose(double.precision, 2.0 * single.precision, rtol=1e-14)
    np.testing.assert_allclose(double.shift, 2.0 * single.shift, rtol=1e-14)


def test_gaussian_site_is_exact():
    rows = Likelihoods("gaussian", np.array([1.5]), np.ones(1), 0.4, "average")
    sites = match(rows, np.array([1.0]), np.array([0.3]))
    value = float(sites.value.sum())
    assert value == pytest.approx(norm.logpdf(1.5, 1.0, np.sqrt(0.4)) - 0.3 / 0.8, rel=1e-12)
    np.testing.assert_allclose([sites.precision[0], sites.shift[0]], [2.5, 3.75])


def test_curvature_is_smooth_through_zero():
    def curvature(location):  # λ(ξ), half the precision of a tangent at ξ
        rows = Likelihoods("logistic", np.ones(1), np.ones(1), bound="tangent")
        return 0.5 * match(rows, np.array([location]), np.zeros(1)).precision[0]

    assert curvature(0.0) == 0.125
    assert curvature(0.999999e-3) == pytest.approx(curvature(1.000001e-3), rel=1e-9)


def test_far_tails_stay_finite():
    # Φ(−40): log Φ(−z) = log φ(z) − log z − 1/z² + …; φ(z)/Φ(−z) ≈ z + 1/z.
    assert log_normal_cdf(-40.0)[1] == pytest.approx(40.0 + 1.0 / 40.0, rel=1e-5)
    for link in ("logistic", "probit"):
        for bound in ("average", "tangent"):
            for mean in (-300.0, 300.0):
                sites = match(Likelihoods(link, np.ones(1), np.ones(1), 1.0, bound), np.array([mean]), np.ones(1))
                value = float(sites.value.sum())
                assert np.isfinite(value)
                assert np.isfinite(sites.shift[0])
                assert 0.0 < sites.precision[0] <= 1.0


@pytest.mark.parametrize("link", ["logistic", "probit", "gaussian"])
def test_log_predictive_averages_the_likelihood(link):
    for mean, variance, y in zip(MEANS, VARIANCES, Y, strict=True):
        deviation = np.sqrt(variance)

        def integrand(f, y=y, mean=mean, deviation=deviation):
            return np.exp(log_likelihood(link, y, f, 0.7)) * norm.pdf(f, mean, deviation)

        exact = np.log(quad(integrand, mean - 12 * deviation, mean + 12 * deviation, epsabs=1e-12)[0])
        found = log_predictive(link, np.array([y]), np.array([mean]), np.array([variance]), 0.7)
        assert found[0] == pytest.approx(exact, abs=1e-7)
