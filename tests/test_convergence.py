"""R-hat and effective sample size: known answers, ArviZ's own where it is installed, and the verdict on chains."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import norm, rankdata

from kinfolk.convergence import Convergence, _normal_scores, bulk_ess, diagnose, r_hat


def autoregressive(n_chains: int, n_draws: int, memory: float, seed: int) -> np.ndarray:
    """Stationary chains x_t = memory · x_{t−1} + noise, of variance one."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(n_chains, n_draws)) * np.sqrt(1 - memory**2)
    chains = np.empty((n_chains, n_draws))
    chains[:, 0] = rng.normal(size=n_chains)
    for t in range(1, n_draws):
        chains[:, t] = memory * chains[:, t - 1] + noise[:, t]
    return chains


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9, -0.4])
def test_an_autoregressive_chain_has_the_effective_size_that_theory_gives(memory):
    found = bulk_ess(autoregressive(4, 20_000, memory, seed=1))
    # The sum of autocorrelations is 1 + 2 Σ memory^t = (1 + memory) / (1 − memory).
    assert found == pytest.approx(80_000 * (1 - memory) / (1 + memory), rel=0.1)


def test_ranks_alone_matter_to_the_effective_size():
    chains = autoregressive(4, 500, 0.6, seed=2)
    assert bulk_ess(np.exp(5 * chains)) == pytest.approx(bulk_ess(chains), rel=1e-9)


def test_r_hat_is_the_ratio_of_standard_deviations_that_the_paper_defines():
    chains = autoregressive(3, 10, 0.5, seed=3)
    chains[2] += 1.0
    found = []
    halves = [half for chain in chains for half in (chain[:5], chain[5:])]
    folded = [np.abs(half - np.median(halves)) for half in halves]
    for values in (np.array(halves), np.array(folded)):
        z = norm.ppf((rankdata(values).reshape(values.shape) - 3 / 8) / (values.size + 1 / 4))
        between, within = 5 * np.var([half.mean() for half in z], ddof=1), np.mean([half.var(ddof=1) for half in z])
        found.append(np.sqrt((4 / 5 * within + between / 5) / within))
    assert r_hat(chains) == pytest.approx(max(found), abs=1e-12)


def test_chains_of_one_distribution_have_an_r_hat_of_one():
    assert abs(r_hat(autoregressive(4, 5_000, 0.3, seed=4)) - 1) < 0.005


@pytest.mark.parametrize("change", ["place", "spread", "drift"])
def test_chains_that_differ_have_a_large_r_hat(change):
    chains = autoregressive(4, 500, 0.0, seed=5)
    if change == "place":
        chains[0] += 2
    elif change == "spread":
        chains[0] *= 5
    else:
        chains += np.linspace(0, 4, 500)
    assert r_hat(chains) > 1.1


def test_chains_that_stand_still_have_converged_if_they_agree_and_only_then():
    still = np.full((4, 100), -12.5)
    assert (r_hat(still), bulk_ess(still)) == (1.0, 400.0)
    still[1] += 1
    assert r_hat(still) == np.inf
    verdict = diagnose({"log joint": still, "number of clusters": np.ones((4, 100))})
    assert not verdict.converged
    # No number can be compared with the wanted one: the advice says in words what happened.
    assert "disagree about the log joint, and each stays as it began" in verdict.advice()


def test_rounding_makes_no_difference_between_chains():
    # Chains that stand still at the same place, but for the last bit of a sum taken in another order.
    dusty = np.full((4, 100), -1234.5)
    dusty[2:] += 3e-13
    assert diagnose({"log joint": dusty}).converged
    # And chains that move between two such places.
    moving = np.where(np.random.default_rng(6).random((4, 100)) < 0.5, 1.0, 2.0) * 1000
    clean = diagnose({"log joint": moving})
    moving[1] += 1e-12
    assert diagnose({"log joint": moving}) == clean


def test_half_of_the_draws_at_each_of_two_values_is_judged_by_the_values_alone():
    # All are equally far from the median, so that the spread has no R-hat of its own.
    two = np.tile([[0.0, 1.0]], (4, 50))
    assert r_hat(two) < 1.01


def test_a_single_chain_is_judged_by_its_halves():
    rng = np.random.default_rng(7)
    assert r_hat(rng.normal(size=(1, 500))) < 1.02
    assert r_hat(rng.normal(size=(1, 500)) + np.repeat([0, 3], 250)) > 1.5


@pytest.mark.parametrize("n_draws", [1, 3])
def test_too_few_draws_tell_nothing(n_draws):
    verdict = diagnose({"log joint": np.zeros((4, n_draws))})
    assert np.isnan(verdict.r_hat["log joint"])
    assert not verdict.converged
    assert "raise n_draws" in verdict.advice()


@pytest.mark.parametrize("n_draws", [4, 5, 6, 9])
def test_a_handful_of_draws_has_numbers(n_draws):
    chains = np.random.default_rng(8).normal(size=(2, n_draws))
    assert np.isfinite(r_hat(chains))
    assert 0 < bulk_ess(chains) < np.inf


def test_the_verdict_needs_every_quantity_and_advice_names_the_worst():
    good = autoregressive(4, 200, 0.0, seed=9)
    slow = autoregressive(4, 200, 0.9, seed=10)
    assert diagnose({"log joint": good}).converged
    assert "nothing needs to be done" in diagnose({"log joint": good}).advice()
    apart = diagnose({"log joint": good, "number of clusters": good + np.arange(4)[:, None]})
    assert not apart.converged
    assert "disagree about the number of clusters" in apart.advice()
    slow_ess = bulk_ess(slow)
    short = Convergence({"log joint": 1.0, "concentration": 1.02}, {"log joint": 500.0, "concentration": slow_ess})
    assert slow_ess < 100
    assert not short.converged
    assert "too short to estimate the concentration" in short.advice()


@pytest.mark.parametrize(("n_chains", "n_draws", "memory"), [(4, 100, 0.5), (2, 31, 0.9), (3, 1000, -0.7), (4, 7, 0.0)])
def test_own_numbers_are_those_of_arviz(n_chains, n_draws, memory):
    arviz = pytest.importorskip("arviz", reason="ArviZ is not installed")
    chains = autoregressive(n_chains, n_draws, memory, n_draws)
    for drawn in (chains, np.round(2 * chains), (np.round(chains) > 0).astype(float)):
        own = r_hat(drawn), bulk_ess(drawn)
        np.testing.assert_allclose(own, (float(arviz.rhat(drawn)), float(arviz.ess(drawn))), rtol=1e-6)


def test_r_hat_imports_neither_arviz_nor_all_of_scipys_statistics(tmp_path):
    (tmp_path / "arviz.py").write_text("raise RuntimeError('this one is broken')")
    program = (
        "import sys, numpy as np\n"
        "from kinfolk.convergence import diagnose\n"
        "diagnose({'x': np.random.default_rng(0).normal(size=(4, 50))})\n"
        "print([name for name in ('arviz', 'scipy.stats') if name in sys.modules])"
    )
    there = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=there, check=True)
    assert done.stdout.strip() == "[]"


def test_equal_draws_share_a_rank():
    draws = np.array([[3.0, 1.0, 3.0, 2.0], [3.0, 0.0, 1.0, 3.0]])
    np.testing.assert_allclose(_normal_scores(draws), norm.ppf((rankdata(draws).reshape(2, 4) - 0.375) / 8.25))
