"""Codes against integrals and closed forms of the Dirichlet distribution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import digamma, gammaln
from scipy.stats import beta, kstest

from kinfolk.sequences.model.emissions.categorical import Categorical

COUNTS = np.array([3.0, 1.0, 0.0, 6.0])


def test_the_log_marginal_is_the_integral_over_shares_of_two_codes():
    emission = Categorical(2, strength=0.4)
    integral, _ = quad(lambda share: share**3 * (1.0 - share) ** 2 * beta.pdf(share, 0.4, 0.4), 0.0, 1.0)
    assert np.exp(emission.log_marginal(np.array([3.0, 2.0]))) == pytest.approx(integral, rel=1e-7)


def test_the_divergence_is_that_of_two_dirichlet_distributions():
    emission = Categorical(4, strength=0.3)
    q, p = COUNTS + 0.3, np.full(4, 0.3)
    closed = gammaln(q.sum()) - gammaln(q).sum() - gammaln(p.sum()) + gammaln(p).sum()
    closed += ((q - p) * (digamma(q) - digamma(q.sum()))).sum()
    assert emission.divergence(COUNTS) == pytest.approx(closed, rel=1e-12)


def test_drawn_shares_follow_the_dirichlet_posterior():
    emission = Categorical(4, strength=0.3)
    drawn = emission.draw_parameters(np.tile(COUNTS, (4000, 1)), np.random.default_rng(0))
    [shares] = emission.means(drawn)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    for code, weight in enumerate(COUNTS + 0.3):
        assert kstest(shares[:, code], beta(weight, COUNTS.sum() + 1.2 - weight).cdf).pvalue > 1e-3


def test_shares_too_small_for_a_float_have_their_logarithm():
    emission = Categorical(2, strength=1e-3)
    drawn = emission.draw_parameters(np.zeros((4000, 2)), np.random.default_rng(1))
    assert np.isfinite(drawn).all()
    # With exponential E, E' the log shares are nearly −E/h and −E'/h less the larger: the smaller is −|E − E'|/h.
    smaller = -1e-3 * drawn[:, :2].min(axis=1)
    assert kstest(smaller[smaller > 0.01], lambda x: 1.0 - np.exp(0.01 - x)).pvalue > 1e-3


def test_an_unknown_code_has_the_share_that_one_more_unseen_code_would_have():
    emission, wider = Categorical(4, strength=0.3), Categorical(5, strength=0.3)
    with_one_more = wider.log_predictive_densities(np.append(COUNTS, 0.0)[None], (np.array([4]),))
    unseen = with_one_more.rows[with_one_more.row][0, 0]
    assert unseen == pytest.approx(np.log(0.3 / 11.5))
    codes = (np.array([4, 9, 1000]),)
    for log_densities in (
        emission.log_predictive_densities(COUNTS[None], codes),
        emission.expected_log_densities(COUNTS[None], codes),
        emission.log_densities(emission.draw_parameters(COUNTS[None], np.random.default_rng(2)), codes),
    ):
        np.testing.assert_allclose(log_densities.rows[log_densities.row][:, 0], unseen)


def test_a_state_learns_nothing_from_an_unknown_code():
    emission = Categorical(3)
    states = np.array([0, 0, 1])
    np.testing.assert_array_equal(
        emission.statistics((np.array([2, 3, 77]),), states, 2), [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    )
    np.testing.assert_array_equal(
        emission.expected_statistics((np.array([2, 3, 77]),), np.full((3, 2), 0.5)), [[0.0, 0.0, 0.5]] * 2
    )


def test_an_unknown_code_is_never_drawn():
    emission = Categorical(3, strength=1.0)
    parameters = emission.draw_parameters(np.zeros((2, 3)), np.random.default_rng(3))
    [codes] = emission.draw_observations(parameters, np.tile([0, 1], 5000), np.random.default_rng(4))
    assert set(codes.tolist()) == {0, 1, 2}


def test_codes_share_rows_of_densities():
    emission = Categorical(3)
    parameters = emission.draw_parameters(np.zeros((2, 3)), np.random.default_rng(5))
    densities = emission.log_densities(parameters, (np.arange(-1, 5),))
    assert densities.rows.shape == (5, 2)
    assert densities.row.tolist() == [4, 0, 1, 2, 3, 3]


def test_a_codebook_of_one_code_says_nothing():
    emission = Categorical(1)
    counts = np.array([[7.0], [0.0]])
    np.testing.assert_allclose(emission.log_marginal(counts), 0.0)
    drawn = emission.draw_parameters(counts, np.random.default_rng(6))
    np.testing.assert_allclose(emission.log_densities(drawn, (np.zeros(3, dtype=np.int64),)).rows[0], 0.0)


def test_a_codebook_without_codes_is_refused():
    with pytest.raises(ValueError, match="n_codes=0 was given, but a codebook has at least one code"):
        Categorical(0)
