"""Crossed random intercepts: effects against a dense mixed model, variances against its restricted likelihood."""

import numpy as np
import pytest
from scipy.optimize import minimize

from kinfolk.transfer.trees.crossed import Groups, settle


def settled(places, n_groups, y, weights=None, sweeps=5000, unit_noise=False):
    """Effects, the mean and the variances, after so many sweeps."""
    groups = Groups.of(list(zip(places, n_groups, strict=True)), len(y))
    effects, variances = np.zeros(sum(n_groups) + 1), np.zeros(len(n_groups) + 1)
    weights = np.ones(len(y)) if weights is None else weights
    room = np.empty((2, len(effects)))
    settle(groups, y, weights, effects, variances, np.empty(len(y)), room, sweeps, 1e-14, unit_noise)
    return effects, variances


def dense(places, n_groups, y, weights, variances):
    """The mean by generalised least squares and the best linear unbiased predictions, from whole matrices."""
    Z = np.zeros((len(y), sum(n_groups)))
    for place, start in zip(places, np.cumsum([0, *n_groups[:-1]]), strict=True):
        known = np.flatnonzero(place >= 0)
        Z[known, start + place[known]] = 1.0
    prior = np.diag(np.repeat(variances[:-1], n_groups))
    covariance = Z @ prior @ Z.T + variances[-1] * np.diag(1.0 / weights)
    inverse = np.linalg.inv(covariance)
    mean = (inverse @ y).sum() / inverse.sum()
    return np.append(prior @ Z.T @ inverse @ (y - mean), mean), covariance, inverse


def crossed_rows(rng, n_rows=120, n_tasks=9, n_kinds=14):
    task, kind = rng.integers(0, n_tasks, n_rows), rng.integers(0, n_kinds, n_rows)
    y = 3.0 + rng.normal(size=n_tasks)[task] + 0.7 * rng.normal(size=n_kinds)[kind] + 0.5 * rng.normal(size=n_rows)
    return task, kind, y


@pytest.mark.parametrize("seed", [0, 1])
def test_effects_of_crossed_groupings_are_the_best_linear_unbiased_predictions(seed):
    rng = np.random.default_rng(seed)
    task, kind, y = crossed_rows(rng)
    kind[rng.random(120) < 0.1] = -1  # some rows are of no kind
    weights = rng.integers(1, 4, 120).astype(float)
    effects, variances = settled([task, kind], [9, 14], y, weights)
    expected, _, _ = dense([task, kind], [9, 14], y, weights, variances)
    assert np.allclose(effects, expected, atol=1e-6)
    assert (variances > 0.0).all()


def test_rows_without_weight_or_kind_change_nothing():
    rng = np.random.default_rng(2)
    task, kind, y = crossed_rows(rng)
    weights = np.where(np.arange(120) < 100, 1.0, -1.0)
    some = settled([task, kind], [9, 14], y, weights)
    alone = settled([task[:100], kind[:100]], [9, 14], y[:100])
    assert np.allclose(some[0], alone[0], atol=1e-9)
    assert np.allclose(some[1], alone[1], atol=1e-9)


def test_a_row_of_weight_two_is_two_rows():
    rng = np.random.default_rng(3)
    task, kind, y = crossed_rows(rng)
    twice = np.repeat(np.arange(120), rng.integers(1, 3, 120))
    one = settled([task, kind], [9, 14], y, np.bincount(twice).astype(float))
    other = settled([task[twice], kind[twice]], [9, 14], y[twice])
    assert np.allclose(one[0], other[0], atol=1e-8)
    assert np.allclose(one[1], other[1], atol=1e-8)


@pytest.mark.parametrize("seed", [4, 5])
def test_variances_of_one_grouping_have_the_highest_restricted_likelihood(seed):
    rng = np.random.default_rng(seed)
    task = rng.choice(12, 60, p=np.arange(1, 13) / 78)
    y = rng.normal(size=12)[task] + 0.8 * rng.normal(size=60)

    def less_likely(logs):
        _, covariance, inverse = dense([task], [12], y, np.ones(60), np.exp(logs))
        left = y - (inverse @ y).sum() / inverse.sum()
        return np.linalg.slogdet(covariance)[1] + np.log(inverse.sum()) + left @ inverse @ left

    best = minimize(less_likely, np.log([1.0, 1.0]), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10})
    _, variances = settled([task], [12], y)
    assert np.allclose(variances, np.exp(best.x), rtol=1e-3)


def test_variances_of_crossed_groupings_are_near_those_that_made_the_numbers():
    rng = np.random.default_rng(6)
    task, kind = rng.integers(0, 400, 6000), rng.integers(0, 150, 6000)
    y = rng.normal(size=400)[task] + 0.5 * rng.normal(size=150)[kind] + 0.7 * rng.normal(size=6000)
    _, variances = settled([task, kind], [400, 150], y)
    assert np.allclose(variances, [1.0, 0.25, 0.49], rtol=0.2)


def test_groups_of_one_row_each_are_believed_by_half():
    """Nothing tells their variance from that of the noise."""
    y = np.random.default_rng(7).normal(size=50)
    effects, variances = settled([np.arange(50)], [50], y)
    assert variances[0] == pytest.approx(variances[1])
    assert np.allclose(effects[:50], 0.5 * (y - y.mean()))


def test_numbers_that_are_all_alike_are_their_mean():
    effects, variances = settled([np.arange(6) % 3], [3], np.full(6, 2.5))
    assert effects.tolist() == [0.0, 0.0, 0.0, 2.5]
    assert variances.tolist() == [0.0, 0.0]
