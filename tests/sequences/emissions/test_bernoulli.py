"""Columns of 0 and 1 against Beta distributions, and against a codebook of two symbols for each."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import bernoulli, beta, betabinom, kstest

from kinfolk.sequences.model.emissions.bernoulli import Bernoulli
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.emissions.channels import Channels

X = np.array([[1.0, 0.0], [1.0, np.nan], [0.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
STATES = np.array([0, 0, 1, 0, 1])
EMISSION = Bernoulli(2, 0.6)


def rows(log_densities):
    return log_densities.rows[log_densities.row]


def test_each_column_is_a_codebook_of_two_symbols():
    codes = tuple(np.where(np.isnan(column), -1, column).astype(np.int64) for column in X.T)
    symbols = Channels((Categorical(2, 0.6), Categorical(2, 0.6)))
    ours, theirs = EMISSION.statistics((X,), STATES, 2), symbols.statistics(codes, STATES, 2)
    np.testing.assert_allclose(EMISSION.log_marginal(ours), symbols.log_marginal(theirs))
    np.testing.assert_allclose(EMISSION.divergence(ours), symbols.divergence(theirs))
    for method in ("log_predictive_densities", "expected_log_densities"):
        found, expected = getattr(EMISSION, method)(ours, (X,)), getattr(symbols, method)(theirs, codes)
        np.testing.assert_allclose(rows(found), rows(expected))


def test_densities_are_those_of_bernoulli_variables_and_gaps_are_left_out():
    shares = np.array([[0.2, 0.9], [0.5, 0.01]])
    found = rows(EMISSION.log_densities(np.log(np.concatenate([shares, 1.0 - shares], axis=1)), (X,)))
    for step, state in np.ndindex(5, 2):
        each = bernoulli(shares[state]).logpmf(np.nan_to_num(X[step]))
        assert found[step, state] == pytest.approx(each[~np.isnan(X[step])].sum())


def test_shares_are_drawn_from_the_beta_posterior():
    statistics = EMISSION.statistics((X,), STATES, 2)[:1].repeat(8_000, axis=0)
    drawn = EMISSION.draw_parameters(statistics, np.random.default_rng(0))
    np.testing.assert_allclose(np.exp(drawn[:, :2]) + np.exp(drawn[:, 2:]), 1.0)
    for column, law in enumerate((beta(3.6, 0.6), beta(1.6, 1.6))):
        assert kstest(np.exp(drawn[:, column]), law.cdf).pvalue > 1e-3


def test_the_evidence_of_many_answers_is_beta_binomial():
    answers = np.repeat([1.0, 0.0], [7, 5])[:, None]
    one = Bernoulli(1, 0.4)
    found = one.log_marginal(one.statistics((answers,), np.zeros(12, dtype=np.int64), 1))[0]
    # The answers come in one of 792 orders.
    assert found == pytest.approx(betabinom(12, 0.4, 0.4).logpmf(7) - np.log(792))


def test_shares_too_small_for_a_float_have_finite_densities():
    drawn = Bernoulli(1, 1e-4).draw_parameters(np.zeros((50, 2)), np.random.default_rng(1))
    assert np.isfinite(drawn).all()
    assert drawn.min() < -1_000.0
