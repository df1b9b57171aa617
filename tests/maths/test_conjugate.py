"""Log marginals and predictive densities of numbers, against numerical integration and the chain rule."""

from math import exp, gamma, lgamma, pi, prod, sqrt

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import dblquad, quad

from kinfolk.maths.conjugate import (
    COUNT,
    GAUSSIAN,
    log_density_of_number,
    log_marginal_of_number,
    number_groups,
    third_cell,
)
from kinfolk.maths.dirichlet import (
    dirichlet_product,
    log_marginal_of_sum,
    log_marginals,
)

KAPPA, SHAPE, RATE, SCALE = 0.7, 1.8, 1.3, 2.5
OF_NUMBERS = np.array([[KAPPA, SHAPE, RATE, np.log(SCALE)], [1.4, 0.6, 0.0, 0.0]])
NUMBERS = number_groups(2, np.array([GAUSSIAN, COUNT]), OF_NUMBERS)
OF_GAUSSIAN, OF_COUNTS = PRIORS = NUMBERS.prior


def sums(x, family, weights=1.0):
    thirds = np.array([third_cell(value, family) for value in x])
    return [float(np.sum(weights * part)) for part in (np.ones(len(x)), np.asarray(x), thirds)]


def marginal(x, family):
    return log_marginal_of_number(*sums(x, family), family, PRIORS[family])


def test_the_marginal_of_gaussian_numbers_is_the_integral_over_mean_and_variance():
    z = np.array([0.4, -1.1, 0.9])
    raw = (10.0 + SCALE * z).tolist()

    def normal(x, mean, variance):
        return exp(-((x - mean) ** 2) / (2 * variance)) / sqrt(2 * pi * variance)

    def joint(mean, log_variance):
        variance = exp(log_variance)
        inverse_gamma = RATE**SHAPE / gamma(SHAPE) * variance ** (-SHAPE - 1) * exp(-RATE / variance)
        likelihood = prod(normal(x, 10.0 + SCALE * mean, SCALE**2 * variance) for x in raw)
        return inverse_gamma * normal(mean, 0.0, variance / KAPPA) * likelihood * variance

    expected, _ = dblquad(joint, -6.0, 6.0, -12.0, 12.0, epsabs=1e-10)
    assert exp(marginal(z, GAUSSIAN)) == pytest.approx(expected, rel=1e-5)


def test_the_marginal_of_counts_is_the_integral_over_the_rate():
    x = np.array([3.0, 0.0, 2.0, 5.0])

    def joint(rate):
        return stats.gamma.pdf(rate, OF_COUNTS[0], scale=1 / OF_COUNTS[1]) * stats.poisson.pmf(x, rate).prod()

    expected, _ = quad(joint, 0, np.inf, epsabs=1e-14)
    assert exp(marginal(x, COUNT)) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(("family", "x"), [(GAUSSIAN, [0.3, -2.0, 1.1, 0.3]), (COUNT, [2.0, 0.0, 7.0, 1.0])])
def test_a_marginal_is_the_product_of_predictive_densities(family, x):
    chained = sum(
        log_density_of_number(value, *sums(x[:i], family), family, PRIORS[family]) for i, value in enumerate(x)
    )
    assert chained == pytest.approx(marginal(x, family), abs=1e-12)


def test_one_more_gaussian_number_has_students_t_in_raw_units():
    z = np.array([0.4, -1.1, 0.9])
    weight, shape = KAPPA + 3, SHAPE + 1.5
    rate = RATE + 0.5 * ((z**2).sum() - z.sum() ** 2 / weight)
    t = stats.t(2 * shape, SCALE * z.sum() / weight, SCALE * np.sqrt(rate * (weight + 1) / (weight * shape)))
    found = log_density_of_number(1.7, *sums(z, GAUSSIAN), GAUSSIAN, OF_GAUSSIAN)
    assert found == pytest.approx(t.logpdf(SCALE * 1.7), abs=1e-12)


def test_one_more_count_is_negative_binomial():
    x = [2.0, 0.0, 7.0]
    rate = OF_COUNTS[1] + 3
    found = log_density_of_number(4.0, *sums(x, COUNT), COUNT, OF_COUNTS)
    assert found == pytest.approx(stats.nbinom.logpmf(4, OF_COUNTS[0] + 9, rate / (1 + rate)), abs=1e-12)


@pytest.mark.parametrize("family", [GAUSSIAN, COUNT])
def test_leaving_a_number_out_is_subtracting_its_statistics(family):
    x = [2.0, 0.0, 1.0]
    every = np.array(sums(x, family))
    own = np.array([1.0, x[2], third_cell(x[2], family)])
    found = log_density_of_number(x[2], *(every - own), family, PRIORS[family])
    assert found == pytest.approx(marginal(x, family) - marginal(x[:2], family), abs=1e-12)


def test_a_number_of_weight_two_counts_as_two():
    twice = log_marginal_of_number(*sums([0.5, 0.2], GAUSSIAN, np.array([2.0, 1.0])), GAUSSIAN, OF_GAUSSIAN)
    assert twice == pytest.approx(marginal([0.5, 0.5, 0.2], GAUSSIAN), abs=1e-12)


def test_numbers_that_hardly_vary_keep_their_marginal():
    # 1,000 numbers within 1e-9 of 30 standard deviations: the variance is the prior's, to ten digits.
    x = 30.0 + 1e-9 * np.sin(np.arange(1000))
    same = marginal(np.full(1000, 30.0), GAUSSIAN)
    assert np.isfinite(same)
    assert marginal(x, GAUSSIAN) == pytest.approx(same, rel=1e-9)


class TestProduct:
    """Counts and numbers side by side in one row."""

    ROWS = np.array(
        [
            [3.0, 1.0, *sums([0.2, -1.0], GAUSSIAN), *sums([4.0], COUNT)],
            [0.0, 2.0, *sums([0.7], GAUSSIAN), *sums([1.0, 0.0, 2.0], COUNT)],
        ]
    )

    @pytest.mark.parametrize("largest", [0, 20])
    def test_the_log_marginal_adds_up_over_groups(self, largest):
        product = dirichlet_product(np.ones(2), np.array([0, 2]), largest, NUMBERS)
        of_counts = [lgamma(4) + lgamma(2) - lgamma(6), lgamma(3) - lgamma(4)]
        expected = [
            of_counts[0] + marginal([0.2, -1.0], GAUSSIAN) + marginal([4.0], COUNT),
            of_counts[1] + marginal([0.7], GAUSSIAN) + marginal([1.0, 0.0, 2.0], COUNT),
        ]
        assert log_marginals(self.ROWS, product) == pytest.approx(expected, abs=1e-12)
        joined = lgamma(4) + lgamma(4) - lgamma(8)
        joined += marginal([0.2, -1.0, 0.7], GAUSSIAN) + marginal([4.0, 1.0, 0.0, 2.0], COUNT)
        assert log_marginal_of_sum(*self.ROWS, product) == pytest.approx(joined, abs=1e-12)
