"""q(s) against a general optimiser, closed forms and numerical integration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import laplace

from kinfolk.lica.model.factors import SourcePosterior, fit_sources

SCALE = 0.5**0.5


def fit_one(quadratic, linear, rigidity, kind, scale, at):
    """The sources of a task that is alone."""
    found = fit_sources(quadratic[None], linear[None], rigidity, kind, scale, (at[0][None], at[1][None]))
    return SourcePosterior(*(field[0] for field in found))


def objective(quadratic, linear, rigidity, scale, mean, spread):
    sizes = np.abs(mean) + spread * np.exp(-np.abs(mean) / spread)
    own = sizes / scale - np.log(2.0 * spread) + rigidity * spread**2
    return float(np.sum(own) + 0.5 * mean @ quadratic @ mean - linear @ mean)


def draw(seed, n_sources=4, strength=3.0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n_sources, n_sources)) * strength
    return root @ root.T, rng.normal(size=n_sources) * 3 * strength, rng.gamma(1.0, 10.0, n_sources)


def start(n_sources, at=0.0):
    return np.full(n_sources, at), np.full(n_sources, SCALE)


@pytest.mark.parametrize("strength", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("seed", range(4))
def test_no_other_optimiser_finds_a_lower_point(seed, strength):
    quadratic, linear, rigidity = draw(seed, strength=strength)
    found = fit_one(quadratic, linear, rigidity, "laplace", SCALE, start(4))

    def of_one(z):
        return objective(quadratic, linear, rigidity, SCALE, z[:4], np.exp(z[4:]))

    tries = [
        minimize(of_one, np.append(at, np.full(4, np.log(0.3))), method="L-BFGS-B", options={"maxiter": 5000}).fun
        for at in (np.zeros(4), found.mean, np.random.default_rng(seed).normal(size=4))
    ]
    assert objective(quadratic, linear, rigidity, SCALE, found.mean, found.spread) <= min(tries) + 1e-6


def test_the_minimum_never_lies_above_the_start():
    for seed in range(20):
        quadratic, linear, rigidity = draw(seed)
        rng = np.random.default_rng(seed)
        mean, spread = rng.normal(size=4) * 3, rng.gamma(1.0, 1.0, 4) + 0.01
        found = fit_one(quadratic, linear, rigidity, "laplace", SCALE, (mean, spread))
        after = objective(quadratic, linear, rigidity, SCALE, found.mean, found.spread)
        assert after <= objective(quadratic, linear, rigidity, SCALE, mean, spread)


def test_a_source_that_nothing_asks_for_has_mean_zero_and_the_spread_of_a_quadratic_equation():
    rigidity = np.array([0.0, 3.0, 500.0])
    found = fit_one(np.diag(rigidity), np.zeros(3), rigidity, "laplace", SCALE, start(3, at=1.0))
    np.testing.assert_array_equal(found.mean, 0.0)
    # At m = 0: 2Rb² + b/b₀ = 1.
    roots = [SCALE] + [(-1 / SCALE + np.sqrt(1 / SCALE**2 + 8 * r)) / (4 * r) for r in rigidity[1:]]
    np.testing.assert_allclose(found.spread, roots, rtol=1e-12)


def test_turning_the_evidence_round_turns_the_means_round():
    quadratic, linear, rigidity = draw(7)
    there = fit_one(quadratic, linear, rigidity, "laplace", SCALE, start(4))
    back = fit_one(quadratic, -linear, rigidity, "laplace", SCALE, start(4))
    np.testing.assert_allclose(back.mean, -there.mean, atol=1e-8)
    np.testing.assert_allclose(back.spread, there.spread, rtol=1e-8)


def test_value_is_expected_log_prior_plus_entropy_less_rigidity():
    rigidity = np.array([2.5])
    found = fit_one(np.array([[2.0]]), np.array([3.0]), rigidity, "laplace", SCALE, start(1))
    q = laplace(found.mean[0], found.spread[0])
    kinks = [0.0, found.mean[0]]
    expected = quad(lambda s: q.pdf(s) * laplace.logpdf(s, scale=SCALE), -12, 12, points=kinks, limit=400)[0]
    assert found.value == pytest.approx(expected + q.entropy() - 0.5 * rigidity[0] * q.var(), abs=1e-8)


def test_gaussian_sources_have_the_closed_form():
    quadratic, linear, rigidity = draw(3)
    found = fit_one(quadratic, linear, rigidity, "gaussian", SCALE, start(4))
    np.testing.assert_allclose(found.mean, np.linalg.solve(np.eye(4) + quadratic, linear))
    variance = 2.0 * found.spread**2
    np.testing.assert_allclose(variance, 1.0 / (1.0 + rigidity))
    # −KL(N(m, v) ‖ N(0, 1)) less the rigidity's ½Rv, term by term.
    divergence = 0.5 * np.sum(variance + found.mean**2 - 1.0 - np.log(variance))
    assert found.value == pytest.approx(-divergence - 0.5 * np.sum(rigidity * variance))


def test_no_sources_at_all_is_fine():
    empty = np.zeros(0)
    for kind in ("laplace", "gaussian"):
        assert fit_one(np.zeros((0, 0)), empty, empty, kind, SCALE, (empty, empty)).value == 0.0
