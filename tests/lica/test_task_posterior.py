"""Weights of one task: both sides against full matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from kinfolk.lica.model.prior import Reach, TaskPosterior, TaskPrior
from kinfolk.lica.model.sites import Sites
from kinfolk.lica.model.task_posterior import condition_by_features, condition_by_rows, predictive_moments, row_kernel
from tests.lica.oracle import dense_posterior

SHAPES = [(7, 20), (25, 6), (5, 5)]


def draw(n_rows, n_features, seed=0, n_sources=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.5)
    prior = TaskPrior(rng.normal(size=(n_features, n_sources)), rng.gamma(2.0, 1.0, n_features), intercept_variance=3.0)
    sites = Sites(rng.gamma(1.0, 1.0, n_rows), rng.normal(size=n_rows))
    return prior, X, sites, rng.normal(size=n_sources)


def conditioned(side, prior, X, sites, as_sparse):
    features = sparse.csr_matrix(X) if as_sparse else X
    shared = X @ prior.loadings
    if side == "features":
        return condition_by_features(features, prior.noise, sites, shared, prior.intercept_variance)
    columns = features.tocsc() if as_sparse else features
    kernel = row_kernel(features, prior.noise)
    return condition_by_rows(kernel, sites, shared, prior.intercept_variance, columns, prior.noise)


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("side", ["rows", "features"])
@pytest.mark.parametrize("shape", SHAPES)
def test_both_sides_agree_with_full_matrices(shape, side, as_sparse):
    prior, X, sites, sources = draw(*shape)
    known = conditioned(side, prior, X, sites, as_sparse)
    q = dense_posterior(prior, X, sites.precision, sites.shift, sources)
    full = np.hstack([X, np.ones((len(X), 1))])
    dual = known.pull - known.damped @ sources
    np.testing.assert_allclose(prior.loadings @ sources + prior.noise * (X.T @ dual), q.mean[:-1], atol=1e-10)
    assert prior.intercept_variance * np.sum(dual) == pytest.approx(q.mean[-1], abs=1e-10)
    predictor = X @ prior.loadings @ sources + known.pull_spread - known.damped_spread @ sources
    np.testing.assert_allclose(predictor, full @ q.mean, atol=1e-10)
    np.testing.assert_allclose(known.variance, np.diag(full @ q.covariance @ full.T), rtol=1e-9)
    np.testing.assert_allclose(known.weight_variance, np.diag(q.covariance)[:-1], rtol=1e-9)
    log_dets = np.linalg.slogdet(q.prior_covariance)[1] - np.linalg.slogdet(q.covariance)[1]
    assert known.log_det == pytest.approx(log_dets, rel=1e-10)
    kept = np.diag(q.covariance) / np.diag(q.prior_covariance)
    assert known.effective == pytest.approx(len(kept) - np.sum(kept), rel=1e-9)
    assert known.weights_effective == pytest.approx(len(kept) - 1 - np.sum(kept[:-1]), rel=1e-9)


@pytest.mark.parametrize("side", ["rows", "features"])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_rows_say_of_the_sources_is_their_marginal_likelihood(shape, side):
    # With θ integrated out, r/d ~ N(Pm, XΨXᵀ + v₀ + D⁻¹).
    prior, X, sites, _ = draw(*shape)
    known = conditioned(side, prior, X, sites, False)
    shared = X @ prior.loadings
    covariance = X @ np.diag(prior.noise) @ X.T + prior.intercept_variance + np.diag(1.0 / sites.precision)
    inverse = np.linalg.inv(covariance)
    np.testing.assert_allclose(shared.T @ known.damped, shared.T @ inverse @ shared, rtol=1e-8, atol=1e-10)
    seen = sites.shift / sites.precision
    np.testing.assert_allclose(shared.T @ known.pull, shared.T @ inverse @ seen, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_predictions_at_new_rows_have_the_moments_of_full_matrices(shape, as_sparse):
    prior, X, sites, sources = draw(*shape)
    q = dense_posterior(prior, X, sites.precision, sites.shift, sources)
    table = np.vstack([np.zeros(shape[1]), X])  # the task's rows are not the table's first
    rows = np.arange(1, len(table))
    reach = Reach(sparse.csr_matrix(table) if as_sparse else table, rows, sites.precision)
    task = TaskPosterior(q.mean[:-1], q.mean[-1], sources, np.ones(3), reach=reach)
    new = np.random.default_rng(1).normal(size=(9, shape[1]))
    full = np.hstack([new, np.ones((9, 1))])
    mean, variance = predictive_moments(prior, task, sparse.csr_matrix(new) if as_sparse else new)
    np.testing.assert_allclose(mean, full @ q.mean, atol=1e-10)
    np.testing.assert_allclose(variance, np.diag(full @ q.covariance @ full.T), rtol=1e-9)
    at_hand = predictive_moments(prior, task, new, row_kernel(new, prior.noise, X), row_kernel(X, prior.noise))
    np.testing.assert_allclose(at_hand[1], variance, rtol=1e-9)


def test_a_task_without_rows_predicts_from_its_prior():
    prior, X, _, _ = draw(4, 6)
    nothing = np.zeros(0)
    reach = Reach(X, np.zeros(0, dtype=np.int64), nothing)
    task = TaskPosterior(np.zeros(6), 0.0, np.zeros(3), np.ones(3), reach=reach)
    _, variance = predictive_moments(prior, task, np.eye(6))
    np.testing.assert_allclose(variance, prior.noise + 3.0)


def test_a_point_estimate_has_no_variances_to_give():
    prior, X, _, _ = draw(4, 6)
    with pytest.raises(ValueError, match="point estimate"):
        predictive_moments(prior, TaskPosterior(np.zeros(6), 0.0, np.zeros(3), np.zeros(3)), X)


def test_nearly_flat_sites_keep_the_prior_variance():
    prior, X, _, _ = draw(6, 20)
    flat = Sites(np.full(6, 1e-9), np.zeros(6))
    known = conditioned("rows", prior, X, flat, False)
    np.testing.assert_allclose(known.variance, (X**2) @ prior.noise + 3.0, rtol=1e-6)
