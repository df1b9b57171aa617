"""The concentration given the number of clusters, checked by numerical integration and by enumeration."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import gammaln
from scipy.stats import gamma, kstest

from kinfolk.partition.concentration import (
    GammaPrior,
    draw_concentration,
    log_clusters_weight,
    most_probable_concentration,
)
from tests import oracle

PRIORS = [GammaPrior(), GammaPrior(0.4, 2.0), GammaPrior(3.0, 0.5)]
CASES = [(1, 1), (1, 40), (2, 3), (7, 40), (40, 40)]


def weight(log_a: Any, n_clusters: int, n_tasks: int, prior: GammaPrior) -> Any:
    """Prior density of log a times the probability of the number of clusters, up to a constant factor."""
    a = np.exp(log_a)
    fit = n_clusters * log_a + gammaln(a) - gammaln(a + n_tasks) + gammaln(n_tasks)
    return np.exp(fit + gamma.logpdf(a, prior.shape, scale=1 / prior.rate) + log_a)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize(("n_clusters", "n_tasks"), CASES)
def test_draws_have_the_posterior_that_integration_gives(n_clusters, n_tasks, prior):
    rng = np.random.default_rng(1)
    a, draws = prior.draw(rng), []
    for step in range(8_000):
        a = draw_concentration(a, n_clusters, n_tasks, prior, rng)
        # Neighbours depend on each other; the test is one of independent draws.
        if step % 8 == 7:
            draws.append(math.log(a))
    grid = np.linspace(-60, 12, 20_001)
    height = weight(grid, n_clusters, n_tasks, prior)
    cumulative = np.cumsum(height) / height.sum()
    assert kstest(draws, lambda x: np.interp(x, grid, cumulative)).pvalue > 0.001


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize(("n_clusters", "n_tasks"), CASES)
def test_the_weight_of_a_number_of_clusters_is_the_integral(n_clusters, n_tasks, prior):
    total, _ = quad(weight, -200, 10, args=(n_clusters, n_tasks, prior), limit=500, points=[-5, 0, 2])
    assert log_clusters_weight(n_clusters, n_tasks, prior) == pytest.approx(
        math.log(total) - gammaln(n_tasks), abs=1e-6
    )


@pytest.mark.parametrize("prior", PRIORS)
def test_partitions_have_probability_one_together_whatever_the_concentration(prior):
    total = 0.0
    for z in oracle.partitions(6):
        sizes = np.bincount(z)
        total += math.exp(gammaln(sizes).sum() + log_clusters_weight(len(sizes), 6, prior))
    assert total == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize(
    ("expected", "n_tasks"), [(1.0, 1), (1.0, 40), (1.7, 3), (12.3, 40), (40.0, 40), (500.0, 10**6)]
)
def test_the_most_probable_concentration_maximises_the_objective(expected, n_tasks, prior):
    def loss(log_a: float) -> float:
        a = math.exp(log_a)
        density = gamma.logpdf(a, prior.shape, scale=1 / prior.rate) + log_a
        return float(-(expected * log_a + gammaln(a) - gammaln(a + n_tasks) + density))

    best = minimize_scalar(loss, bounds=(-12, 12), method="bounded", options={"xatol": 1e-9})
    found = most_probable_concentration(expected, n_tasks, prior)
    assert math.log(found) == pytest.approx(best.x, abs=1e-3)
    assert loss(math.log(found)) <= best.fun + 1e-9 + 1e-14 * abs(best.fun)


@pytest.mark.parametrize("n_tasks", [1, 2, 100, 10**7])
def test_tasks_all_together_or_all_alone_give_a_concentration_that_can_be_used(n_tasks):
    together = most_probable_concentration(1.0, n_tasks, GammaPrior())
    alone = most_probable_concentration(float(n_tasks), n_tasks, GammaPrior())
    assert 1e-3 < together <= alone < np.inf
    assert math.isfinite(log_clusters_weight(n_tasks, n_tasks, GammaPrior()))
    # Expectations may be off by rounding, or more where they are approximate.
    assert most_probable_concentration(0.9, n_tasks, GammaPrior()) == together
    assert most_probable_concentration(n_tasks + 0.1, n_tasks, GammaPrior()) == alone


@pytest.mark.parametrize("prior", PRIORS)
def test_the_log_density_is_that_of_the_logarithm(prior):
    for a in (0.01, 0.7, 5.0):
        expected = gamma.logpdf(a, prior.shape, scale=1 / prior.rate) + math.log(a)
        assert prior.log_density(a) == pytest.approx(expected, abs=1e-12)


def test_a_prior_that_hugs_zero_gives_draws_above_it():
    rng = np.random.default_rng(3)
    prior = GammaPrior(1e-3, 1.0)
    assert all(prior.draw(rng) > 0 for _ in range(100))
    assert all(draw_concentration(1e-300, 1, 5, prior, rng) > 0 for _ in range(100))
