"""Weights of one task: both sides against full matrices."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from kinfolk.lica.model.factors import Sites
from kinfolk.lica.model.prior import Reach, TaskPosterior, TaskPrior
from kinfolk.lica.model.row_products import SparseRows, row_products
from kinfolk.lica.model.sparse_forms import sparse_column_forms
from kinfolk.lica.model.task_posterior import (
    column_forms,
    condition_by_features,
    condition_by_rows,
    factorise,
    invert_lower,
    predictive_moments,
    solve_lower,
)
from tests.lica.oracle import dense_posterior

SHAPES = [(7, 20), (25, 6), (5, 5)]


def draw(n_rows, n_features, seed=0, n_sources=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.5)
    prior = TaskPrior(rng.normal(size=(n_features, n_sources)), rng.gamma(2.0, 1.0, n_features), intercept_variance=3.0)
    sites = Sites(rng.gamma(1.0, 1.0, n_rows), rng.normal(size=n_rows), np.zeros(n_rows))
    return prior, X, sites, rng.normal(size=n_sources)


def conditioned(side, prior, X, sites):
    given = sites.precision, sites.shift, X @ prior.loadings
    if side == "features":
        return condition_by_features(X, *given, prior.noise, prior.intercept_variance)
    return condition_by_rows(row_products(X, prior.noise, X), *given, prior.intercept_variance)


def variances(prior, X, known, as_sparse):
    if known.kept is not None:
        return prior.noise * known.kept
    forms = sparse_column_forms(sparse.csc_matrix(X), known.root) if as_sparse else column_forms(X, known.root)
    return prior.noise - prior.noise**2 * forms


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("side", ["rows", "features"])
@pytest.mark.parametrize("shape", SHAPES)
def test_both_sides_agree_with_full_matrices(shape, side, as_sparse):
    prior, X, sites, sources = draw(*shape)
    known = conditioned(side, prior, X, sites)
    q = dense_posterior(prior, X, sites.precision, sites.shift, sources)
    full = np.hstack([X, np.ones((len(X), 1))])
    dual = known.pull - known.damped @ sources
    np.testing.assert_allclose(prior.loadings @ sources + prior.noise * (X.T @ dual), q.mean[:-1], atol=1e-10)
    assert prior.intercept_variance * np.sum(dual) == pytest.approx(q.mean[-1], abs=1e-10)
    predictor = X @ prior.loadings @ sources + known.pull_spread - known.damped_spread @ sources
    np.testing.assert_allclose(predictor, full @ q.mean, atol=1e-10)
    np.testing.assert_allclose(known.variance, np.diag(full @ q.covariance @ full.T), rtol=1e-9)
    np.testing.assert_allclose(variances(prior, X, known, as_sparse), np.diag(q.covariance)[:-1], rtol=1e-9)
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
    known = conditioned(side, prior, X, sites)
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
    at_hand = predictive_moments(prior, task, new, *(row_products(rows, prior.noise, X) for rows in (X, new)))
    np.testing.assert_allclose(at_hand[1], variance, rtol=1e-9)


def test_a_task_without_rows_predicts_from_its_prior():
    prior, X, _, _ = draw(4, 6)
    nothing = np.zeros(0)
    reach = Reach(X, np.zeros(0, dtype=np.int64), nothing)
    task = TaskPosterior(np.zeros(6), 0.0, np.zeros(3), np.ones(3), reach=reach)
    _, variance = predictive_moments(prior, task, np.eye(6))
    np.testing.assert_allclose(variance, prior.noise + 3.0)


def test_a_point_estimate_has_no_variance():
    prior, X, _, _ = draw(4, 6)
    mean, variance = predictive_moments(prior, TaskPosterior(np.ones(6), 0.5, np.zeros(3), np.zeros(3)), X)
    np.testing.assert_allclose(mean, X.sum(axis=1) + 0.5)
    assert not variance.any()


def test_nearly_flat_sites_keep_the_prior_variance():
    prior, X, _, _ = draw(6, 20)
    flat = Sites(np.full(6, 1e-9), np.zeros(6), np.zeros(6))
    known = conditioned("rows", prior, X, flat)
    np.testing.assert_allclose(known.variance, (X**2) @ prior.noise + 3.0, rtol=1e-6)


@pytest.mark.parametrize("side", ["rows", "features"])
def test_tasks_side_by_side_are_each_alone_and_flat_rows_are_as_none(side):
    shape = (5, 9) if side == "rows" else (12, 4)
    prior = draw(*shape)[0]
    drawn = [draw(*shape, seed=seed)[1:3] for seed in range(40)]
    # A row without precision or shift is added to each, somewhere else in every task.
    at = [seed % (shape[0] + 1) for seed in range(40)]
    X = np.array([np.insert(table, k, 7.0, axis=0) for (table, _), k in zip(drawn, at, strict=True)])
    precision, shift = (
        np.array([np.insert(sites[i], k, 0.0) for (_, sites), k in zip(drawn, at, strict=True)]) for i in (0, 1)
    )
    given = precision, shift, X @ prior.loadings
    if side == "features":
        together = condition_by_features(X, *given, prior.noise, prior.intercept_variance)
    else:
        kernel = (X * prior.noise) @ X.swapaxes(1, 2)
        together = condition_by_rows(kernel, *given, prior.intercept_variance)
    for k, (table, sites) in enumerate(drawn):
        alone, here = conditioned(side, prior, table, sites), np.arange(shape[0] + 1) != at[k]
        for field in ("pull", "damped", "pull_spread", "damped_spread", "variance"):
            np.testing.assert_allclose(getattr(together, field)[k][here], getattr(alone, field), rtol=1e-9, atol=1e-11)
        for field in ("log_det", "effective", "weights_effective"):
            assert getattr(together, field)[k] == pytest.approx(float(getattr(alone, field)), rel=1e-10)


@pytest.mark.parametrize("size", [1, 7, 40, 150])
@pytest.mark.parametrize("n_tasks", [None, 3, 30])
def test_factors_and_their_inverses_are_those_of_full_matrices(size, n_tasks):
    rng = np.random.default_rng(size)
    root = rng.normal(size=(size, size) if n_tasks is None else (n_tasks, size, size))
    matrix = root @ np.swapaxes(root, -1, -2)
    full = matrix + np.eye(size)
    lower, log_det = factorise(matrix.copy())
    np.testing.assert_allclose(lower @ np.swapaxes(lower, -1, -2), full, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(log_det, np.linalg.slogdet(full)[1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(invert_lower(lower) @ lower, np.broadcast_to(np.eye(size), full.shape), atol=1e-9)
    if n_tasks is None:
        known = rng.normal(size=(size, 4))
        np.testing.assert_allclose(lower @ solve_lower(lower, known), known, atol=1e-9)


def test_rows_as_a_file_holds_them_give_the_same_products():
    rng = np.random.default_rng(0)
    X, Z = (sparse.random(n, 7, 0.4, format="csr", random_state=rng) for n in (5, 6))
    noise, held = rng.random(7), SparseRows(Z.data, Z.indices, Z.indptr, 7)
    expected = X.toarray() * noise @ Z.toarray().T
    for rows in (X, X.toarray()):
        for others in (Z, Z.toarray(), held):
            np.testing.assert_allclose(row_products(rows, noise, others), expected, rtol=1e-12, atol=1e-14)
