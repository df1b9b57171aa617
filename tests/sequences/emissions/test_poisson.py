"""Counts against integrals and closed forms of the Gamma and negative binomial distributions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import digamma, gammaln
from scipy.stats import gamma, kstest, nbinom, poisson

from kinfolk.sequences.model.emissions.poisson import Poisson

COUNTS = np.array([4, 0, 7, 2])


def statistics(emission: Poisson) -> np.ndarray:
    return emission.statistics((COUNTS,), np.zeros(4, dtype=np.int64), 1)


def test_the_log_marginal_is_the_integral_over_the_rate():
    emission = Poisson(mean=3.0, strength=1.5)
    prior = gamma(1.5, scale=2.0)
    integral, _ = quad(lambda rate: np.prod(poisson.pmf(COUNTS, rate)) * prior.pdf(rate), 0.0, 60.0)
    assert np.exp(emission.log_marginal(statistics(emission))[0]) == pytest.approx(integral, rel=1e-6)


def test_predictive_densities_are_negative_binomial():
    emission = Poisson(mean=3.0, strength=1.5)
    x = np.array([0, 3, 50, 3])
    log_densities = emission.log_predictive_densities(statistics(emission), (x,))
    shape, rate = 1.5 + COUNTS.sum(), 0.5 + len(COUNTS)
    expected = nbinom.logpmf(x, shape, rate / (rate + 1.0))
    np.testing.assert_allclose(log_densities.rows[log_densities.row][:, 0], expected)


def test_densities_are_poisson():
    emission = Poisson(mean=3.0)
    x = np.array([0, 3, 50])
    log_densities = emission.log_densities(np.log([[0.5], [20.0]]), (x,))
    np.testing.assert_allclose(log_densities.rows, poisson.logpmf(x[:, None], [0.5, 20.0]))


def test_the_divergence_is_that_of_two_gamma_distributions():
    emission = Poisson(mean=3.0, strength=1.5)
    a, b = 1.5 + COUNTS.sum(), 0.5 + len(COUNTS)
    closed = (a - 1.5) * digamma(a) - gammaln(a) + gammaln(1.5) + 1.5 * np.log(b / 0.5) + a * (0.5 - b) / b
    assert emission.divergence(statistics(emission))[0] == pytest.approx(closed, rel=1e-10)


def test_drawn_rates_follow_the_gamma_posterior():
    emission = Poisson(mean=3.0, strength=1.5)
    drawn = emission.draw_parameters(statistics(emission).repeat(4000, axis=0), np.random.default_rng(0))
    assert kstest(emission.means(drawn)[0][:, 0], gamma(1.5 + COUNTS.sum(), scale=1.0 / 4.5).cdf).pvalue > 1e-3


@pytest.mark.parametrize("mean", [0.0, -1.0, np.inf, np.nan])
def test_a_mean_that_no_rate_can_have_is_refused(mean):
    with pytest.raises(ValueError, match="the mean of a rate is a finite number above zero"):
        Poisson(mean)
