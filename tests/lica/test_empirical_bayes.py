"""Empirical Bayes: the bound, the M-step and the fits, against full matrices, closed forms and exact integrals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import multivariate_normal

from kinfolk.lica.inference.eb import fit_empirical_bayes, fit_task
from kinfolk.lica.inference.expectation import Family, Sweeps, fresh_states, update_tasks, variances_of_weights
from kinfolk.lica.inference.layout import lay_out
from kinfolk.lica.inference.maximisation import Shrinkage, maximise, weights_of_tasks
from kinfolk.lica.model.data import make_linear_tasks
from kinfolk.lica.model.factors import Likelihoods, match
from kinfolk.lica.model.prior import TaskPrior
from kinfolk.lica.model.task_posterior import predictive_moments
from tests.lica.oracle import dense_posterior, divergence, exact_log_evidence, source_terms
from tests.lica.sweeps import each

LINKS = ["logistic", "probit", "gaussian"]
WIDE, TALL = (12, 30), (40, 5)  # rows and features of a task: handled by rows, by features


def related_tasks(n_rows, n_features, link="logistic", n_tasks=6, seed=0, as_sparse=False, n_sources=2):
    """Tasks of unequal sizes whose rows overlap (labels are missing), with uneven weights, some of them zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3 * n_rows, n_features)) * (rng.random((3 * n_rows, n_features)) < 0.7)
    loadings = rng.normal(size=(n_features, n_sources)) * np.sqrt(4.0 / n_features)
    rows, y, weights = [], [], []
    for _ in range(n_tasks):
        place = np.sort(rng.choice(3 * n_rows, size=n_rows + int(rng.integers(0, 4)), replace=False))
        theta = loadings @ rng.laplace(size=n_sources) + rng.normal(size=n_features) * 0.3
        f = X[place] @ theta + 0.5
        target = f + rng.normal(size=len(f))
        rows.append(place)
        y.append(target if link == "gaussian" else np.where(target > 0, 1.0, -1.0))
        weights.append(rng.choice([0.0, 0.5, 1.0, 2.0], size=len(f)))
    return make_linear_tasks(sparse.csr_matrix(X) if as_sparse else X, rows, y, weights)


def a_prior(n_features, isotropic=True, seed=1, n_sources=2):
    rng = np.random.default_rng(seed)
    noise = np.full(n_features, 0.4) if isotropic else rng.gamma(2.0, 0.3, n_features)
    return TaskPrior(rng.normal(size=(n_features, n_sources)) * 0.5, noise, residual_variance=0.8)


def weights_and_variances(layout, prior, states):
    return weights_of_tasks(layout, prior, states), np.array(variances_of_weights(layout, prior, states))


@pytest.mark.parametrize("bound", ["average", "tangent"])
@pytest.mark.parametrize("isotropic", [True, False])
@pytest.mark.parametrize("shape", [WIDE, TALL])
@pytest.mark.parametrize("link", LINKS)
def test_bound_of_a_task_is_that_of_full_matrices(link, shape, isotropic, bound):
    problem = related_tasks(*shape, link)
    prior, family = a_prior(shape[1], isotropic), Family(link, "laplace", bound)
    layout = lay_out(problem, isotropic)
    states = update_tasks(layout, prior, fresh_states(layout, prior, family), family, Sweeps(3), n_jobs=1)
    for k, state in enumerate(each(layout, states)):
        X = problem.X[problem.rows[k]]
        q = dense_posterior(prior, X, state.precision, state.shift, state.mean)
        full = np.hstack([X, np.ones((len(X), 1))])
        predictor, variance = full @ q.mean, np.diag(full @ q.covariance @ full.T)
        rows = Likelihoods(link, problem.y[k], problem.weights[k], prior.residual_variance, bound)
        sites = match(rows, predictor, variance)
        expected = sites.value.sum() - divergence(q) + source_terms(prior, state.mean, state.spread)
        assert state.bound == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("bound", ["average", "tangent"])
def test_bound_lies_below_the_exact_log_evidence_and_close_to_it(link, bound):
    prior = TaskPrior(np.array([[1.2]]), np.array([0.5]), intercept_variance=1.5, residual_variance=0.6)
    x, y, weights = np.array([0.8, -1.5, 0.3]), np.array([1.0, -1.0, 1.0]), np.array([1.0, 1.0, 2.0])
    problem, family = make_linear_tasks(x[:, None], [np.arange(3)], [y], [weights]), Family(link, "laplace", bound)
    layout = lay_out(problem, True)
    states = update_tasks(layout, prior, fresh_states(layout, prior, family), family, Sweeps(200), n_jobs=1)
    state = each(layout, states)[0]
    exact = exact_log_evidence(prior, link, x, y, weights)
    assert state.bound < exact
    # Independence of θ and s costs the most here; a tangent to the probit adds more than half a nat of its own.
    assert state.bound > exact - (1.4 if (link, bound) == ("probit", "tangent") else 0.8)


@pytest.mark.parametrize("isotropic", [True, False])
@pytest.mark.parametrize("shape", [WIDE, TALL])
@pytest.mark.parametrize("link", LINKS)
def test_plain_em_with_tangents_never_lowers_the_bound(link, shape, isotropic):
    # One sweep per M-step: with lower bounds of the likelihood every part of it can only raise the bound.
    problem = related_tasks(*shape, link, as_sparse=True)
    prior, family = a_prior(shape[1], isotropic), Family(link, "laplace", "tangent")
    shrinkage = Shrinkage(0.3, 1e-4, 0.5, 0.0 if isotropic else 3.0)
    layout = lay_out(problem, isotropic)
    states = fresh_states(layout, prior, family)
    bounds = []
    for _ in range(25):
        states = update_tasks(layout, prior, states, family, want_variances=True, n_jobs=1)
        bounds.append(states.bound.sum() + shrinkage.log_density(prior))
        prior = maximise(layout, prior, states, link=link, shrinkage=shrinkage).prior
    assert np.min(np.diff(bounds)) >= -1e-8 * abs(bounds[-1])
    assert bounds[-1] > bounds[0] + 1.0


@pytest.mark.parametrize("isotropic", [True, False])
@pytest.mark.parametrize("shape", [WIDE, TALL])
@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_em_with_the_average_never_lowers_the_bound_where_tasks_converge(link, shape, isotropic):
    problem = related_tasks(*shape, link)
    prior, family = a_prior(shape[1], isotropic), Family(link)
    shrinkage = Shrinkage(0.3, 1e-4, 0.5, 0.0 if isotropic else 3.0)
    layout = lay_out(problem, isotropic)
    states = fresh_states(layout, prior, family)
    bounds = []
    for _ in range(8):
        states = update_tasks(layout, prior, states, family, Sweeps(60, 1e-13), want_variances=True, n_jobs=1)
        bounds.append(states.bound.sum() + shrinkage.log_density(prior))
        prior = maximise(layout, prior, states, link=link, shrinkage=shrinkage).prior
    assert np.min(np.diff(bounds)) >= -1e-8 * abs(bounds[-1])


@pytest.mark.parametrize("noise", ["isotropic", "diagonal"])
@pytest.mark.parametrize("shape", [WIDE, TALL])
@pytest.mark.parametrize("link", LINKS)
def test_bound_of_a_fit_never_falls_and_rises_a_good_deal(link, shape, noise):
    fit = fit_empirical_bayes(related_tasks(*shape, link), link=link, n_sources=2, noise=noise, tol=1e-5, n_jobs=1)
    assert np.min(np.diff(fit.objective)) >= -1e-8 * abs(fit.objective[-1])
    assert fit.objective[-1] > fit.objective[0] + 1.0


@pytest.mark.parametrize("isotropic", [True, False])
@pytest.mark.parametrize("as_sparse", [True, False])
@pytest.mark.parametrize("shape", [WIDE, TALL])
def test_m_step_is_the_equations_with_every_weight_written_out(shape, as_sparse, isotropic):
    problem = related_tasks(*shape, "gaussian", as_sparse=as_sparse)
    prior, family = a_prior(shape[1], isotropic), Family("gaussian")
    layout, tau_squared = lay_out(problem, isotropic), 0.7
    states = update_tasks(layout, prior, fresh_states(layout, prior, family), family, want_variances=True, n_jobs=1)
    weights, variances = weights_and_variances(layout, prior, states)
    means = np.array([state.mean for state in each(layout, states)])
    second = [np.outer(state.mean, state.mean) + np.diag(2 * state.spread**2) for state in each(layout, states)]
    found = maximise(layout, prior, states, link="gaussian", shrinkage=Shrinkage(tau_squared, 1e-9)).prior
    noise = np.zeros(shape[1])
    for j in range(shape[1]):
        ridge = np.sum(second, axis=0) + prior.noise[j] / tau_squared * np.eye(2)
        expected = np.linalg.solve(ridge, weights[:, j] @ means)
        np.testing.assert_allclose(found.loadings[j], expected, rtol=1e-7, atol=1e-10)
        for k in range(problem.n_tasks):
            cross = 2 * weights[k, j] * expected @ means[k]
            noise[j] += variances[k, j] + weights[k, j] ** 2 - cross + expected @ second[k] @ expected
    noise /= problem.n_tasks
    np.testing.assert_allclose(found.noise, np.mean(noise) if isotropic else noise, rtol=1e-7)
    squares = [
        w @ ((y - state.predictor) ** 2 + state.predictor_variance)
        for y, w, state in zip(problem.y, problem.weights, each(layout, states), strict=True)
    ]
    assert found.residual_variance == pytest.approx(sum(squares) / sum(np.sum(w) for w in problem.weights))


def test_noise_prior_draws_each_variance_to_its_mode():
    problem = related_tasks(*WIDE)
    prior, family = a_prior(WIDE[1], False), Family("logistic")
    layout = lay_out(problem, False)
    states = update_tasks(layout, prior, fresh_states(layout, prior, family), family, want_variances=True, n_jobs=1)
    free, drawn = (
        maximise(layout, prior, states, link="logistic", shrinkage=Shrinkage(0.7, 1e-9, 0.9, strength)).prior.noise
        for strength in (0.0, 4.0)
    )
    np.testing.assert_allclose(drawn, (6 * free + 4 * 0.9) / 10)  # six tasks


@pytest.mark.parametrize("shape", [WIDE, TALL])
def test_without_sources_the_bound_of_a_regression_is_its_exact_evidence(shape):
    problem = related_tasks(*shape, "gaussian")._replace()
    problem = problem._replace(weights=tuple(np.ones_like(w) for w in problem.weights))
    fit = fit_empirical_bayes(problem, link="gaussian", n_sources=0, n_jobs=1)
    exact = 0.0
    for rows, y in zip(problem.rows, problem.y, strict=True):
        X = problem.X[rows]
        covariance = X @ np.diag(fit.prior.noise) @ X.T + fit.prior.intercept_variance
        covariance += fit.prior.residual_variance * np.eye(len(y))
        exact += multivariate_normal(np.zeros(len(y)), covariance).logpdf(y)
    assert fit.objective[-1] == pytest.approx(exact, rel=1e-9)


def test_a_new_task_under_a_prior_with_no_sources_is_ridge_regression():
    problem = related_tasks(*TALL, "gaussian").of_tasks([2])
    prior = TaskPrior(np.zeros((5, 0)), np.full(5, 0.6), intercept_variance=2.0, residual_variance=0.5)
    task, _ = fit_task(prior, problem, "gaussian", weight_variances=True)
    X, w = problem.X[problem.rows[0]], problem.weights[0]
    full = np.hstack([X, np.ones((len(X), 1))])
    precision = np.diag(np.append(1 / prior.noise, 1 / 2.0)) + full.T @ np.diag(w / 0.5) @ full
    expected = np.linalg.solve(precision, full.T @ (w * problem.y[0] / 0.5))
    np.testing.assert_allclose(np.append(task.weights, task.intercept), expected, rtol=1e-9)
    np.testing.assert_allclose(task.weight_variance, np.diag(np.linalg.inv(precision))[:-1], rtol=1e-9)


def test_a_task_says_whether_it_has_converged():
    problem, prior = related_tasks(*WIDE).of_tasks([0]), a_prior(WIDE[1])
    assert fit_task(prior, problem, "logistic")[1]
    assert not fit_task(prior, problem, "logistic", max_iter=1)[1]


def test_a_prior_with_a_mean_draws_a_task_without_evidence_to_it():
    prior = a_prior(3)._replace(mean=np.array([1.0, -2.0, 0.5]))
    blank = make_linear_tasks(np.zeros((2, 3)), [[0, 1]], [[1.0, -1.0]])
    np.testing.assert_allclose(fit_task(prior, blank, "logistic")[0].weights, prior.mean, atol=1e-12)
    # Moving every weight by the mean moves a regression's targets by X mean, and nothing else.
    problem = related_tasks(*TALL, "gaussian").of_tasks([0])
    centre = np.array([1.0, -2.0, 0.5, 3.0, 0.0])
    plain = a_prior(5)
    moved = problem._replace(y=(problem.y[0] + problem.X[problem.rows[0]] @ centre,))
    there, here = fit_task(plain._replace(mean=centre), moved, "gaussian")[0], fit_task(plain, problem, "gaussian")[0]
    np.testing.assert_allclose(there.weights, here.weights + centre, atol=1e-9)
    np.testing.assert_allclose(there.sources, here.sources, atol=1e-9)


@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_a_fitted_task_is_at_the_maximum_of_its_bound(link):
    # From the matched sites nothing moves any more.
    problem = related_tasks(*WIDE, link).of_tasks([0])
    prior, family = a_prior(WIDE[1]), Family(link)
    layout = lay_out(problem, True)
    states = update_tasks(layout, prior, fresh_states(layout, prior, family), family, Sweeps(300), n_jobs=1)
    state = each(layout, states)[0]
    np.testing.assert_allclose(state.matched_precision, state.precision, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(state.matched_shift, state.shift, rtol=1e-3, atol=1e-5)


def test_rows_of_weight_zero_are_as_if_absent_and_weight_two_counts_twice():
    kept = related_tasks(*WIDE)
    assert all(np.all(w > 0) for w in kept.weights)
    doubled = [np.repeat(rows, np.where(w == 2.0, 2, 1)) for rows, w in zip(kept.rows, kept.weights, strict=True)]
    y = [np.repeat(t, np.where(w == 2.0, 2, 1)) for t, w in zip(kept.y, kept.weights, strict=True)]
    weights = [np.repeat(np.where(w == 2.0, 1.0, w), np.where(w == 2.0, 2, 1)) for w in kept.weights]
    prior = a_prior(WIDE[1])
    other = make_linear_tasks(kept.X, doubled, y, weights)
    for k in range(3):
        there, here = (fit_task(prior, which.of_tasks([k]), "logistic", tol=0.0)[0] for which in (other, kept))
        np.testing.assert_allclose(there.weights, here.weights, atol=1e-5)


@pytest.mark.parametrize("as_sparse", [True, False])
@pytest.mark.parametrize("link", LINKS)
def test_a_fit_of_weighted_rows_goes_the_way_of_a_fit_of_repeated_rows(link, as_sparse):
    # Not the limit alone: each iteration, and when they end. A σ² that is learnt would fall to its floor, and rounding
    # decide.
    problem = related_tasks(*WIDE, link, as_sparse=as_sparse)
    whole = problem._replace(weights=tuple(2.0 * w for w in problem.weights))
    times = [w.astype(np.int64) for w in whole.weights]
    repeated = make_linear_tasks(
        problem.X,
        [np.repeat(rows, n) for rows, n in zip(problem.rows, times, strict=True)],
        [np.repeat(y, n) for y, n in zip(problem.y, times, strict=True)],
    )
    settings = {"link": link, "n_sources": 2, "shared_mean": True, "shared_intercepts": True, "residual_variance": 1.0}
    weighed, counted = (fit_empirical_bayes(which, **settings, n_jobs=1) for which in (whole, repeated))
    np.testing.assert_allclose(weighed.objective, counted.objective, rtol=1e-8)
    np.testing.assert_allclose(weighed.tasks[2].weights, counted.tasks[2].weights, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("noise", ["isotropic", "diagonal"])
def test_any_number_of_threads_gives_the_same_numbers(noise):
    problem = related_tasks(*WIDE, as_sparse=True)
    alone, together = (
        fit_empirical_bayes(problem, link="logistic", n_sources=2, noise=noise, n_jobs=n, max_iter=8) for n in (1, 3)
    )
    np.testing.assert_array_equal(alone.objective, together.objective)
    np.testing.assert_array_equal(alone.prior.loadings, together.prior.loadings)
    np.testing.assert_array_equal(alone.tasks[3].weights, together.tasks[3].weights)


def test_sparse_and_dense_features_give_the_same_fit():
    fits = [
        fit_empirical_bayes(related_tasks(*WIDE, as_sparse=s), link="logistic", n_sources=2, noise="diagonal", n_jobs=1)
        for s in (True, False)
    ]
    np.testing.assert_allclose(fits[0].objective, fits[1].objective, rtol=1e-8)
    np.testing.assert_allclose(fits[0].tasks[1].weights, fits[1].tasks[1].weights, rtol=1e-4, atol=1e-6)


def test_a_warm_start_goes_on_where_the_last_fit_ended():
    problem, _ = synthetic_regression(0)
    first = fit_empirical_bayes(problem, link="gaussian", n_sources=2, tol=1e-6, n_jobs=1)
    again = fit_empirical_bayes(
        problem,
        link="gaussian",
        n_sources=2,
        tol=1e-6,
        start=first.prior,
        loading_variance=first.loading_variance,
        n_jobs=1,
    )
    assert again.objective[0] == pytest.approx(first.objective[-1], abs=1e-3)
    assert len(again.objective) < len(first.objective)


def test_a_start_of_another_size_is_refused():
    with pytest.raises(ValueError, match="30 features and 3 sources are needed"):
        fit_empirical_bayes(related_tasks(*WIDE), link="logistic", n_sources=3, start=a_prior(WIDE[1]))


def test_a_task_without_rows_and_a_task_with_one_class_learn_from_the_others():
    problem = related_tasks(*TALL)
    nothing = np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
    rows, y, weights = (list(part) for part in (problem.rows, problem.y, problem.weights))
    rows[0], y[0], weights[0] = nothing
    y[1] = np.ones_like(y[1])
    fit = fit_empirical_bayes(make_linear_tasks(problem.X, rows, y, weights), link="logistic", n_sources=2, n_jobs=1)
    empty, one_class = fit.tasks[0], fit.tasks[1]
    np.testing.assert_allclose(empty.weights, fit.prior.loadings @ empty.sources, atol=1e-12)
    assert empty.intercept == 0.0
    assert one_class.intercept > 0.5
    assert np.all(np.isfinite(one_class.weights))


def test_more_sources_than_tasks_and_separable_labels_stay_finite():
    problem = related_tasks(20, 3, n_tasks=3)
    y = tuple(np.where(problem.X[rows, 0] > 0, 1.0, -1.0) for rows in problem.rows)
    fit = fit_empirical_bayes(problem._replace(y=y), link="logistic", n_sources=5, n_jobs=1)
    assert np.all(np.isfinite(fit.prior.loadings))
    assert all(np.all(np.abs(task.weights) < 100) for task in fit.tasks)


def test_predictions_of_a_fit_vary_by_the_posterior_of_full_matrices():
    problem = related_tasks(*WIDE)
    fit = fit_empirical_bayes(problem, link="logistic", n_sources=2, n_jobs=1, weight_variances=True)
    task, new = fit.tasks[2], np.eye(WIDE[1])
    reach = task.reach
    q = dense_posterior(fit.prior, reach.X[reach.rows], reach.precision, np.zeros(len(reach.rows)), task.sources)
    full = np.hstack([new, np.ones((len(new), 1))])
    _, variance = predictive_moments(fit.prior, task, new)
    np.testing.assert_allclose(variance, np.diag(full @ q.covariance @ full.T), rtol=1e-8)
    np.testing.assert_allclose(task.weight_variance, np.diag(q.covariance)[:-1], rtol=1e-8)


def synthetic_regression(seed, n_tasks=60, n_features=30, n_sources=3):
    rng = np.random.default_rng(seed)
    loadings, sources = rng.normal(size=(n_features, n_sources)), rng.laplace(size=(n_tasks, n_sources))
    X = rng.normal(size=(n_tasks * 40, n_features))
    rows = np.arange(len(X)).reshape(n_tasks, 40)
    y = [X[row] @ (loadings @ s) + 0.5 * rng.normal(size=40) for row, s in zip(rows, sources, strict=True)]
    return make_linear_tasks(X, rows, y), sources


def recovery(found, truth):
    """Mean over true sources of the largest absolute correlation with a source that was found."""
    n = truth.shape[1]
    return np.mean(np.max(np.abs(np.corrcoef(found.T, truth.T)[:-n, -n:]), axis=0))


def test_laplace_sources_are_identified_and_gaussian_ones_less_well():
    scores = {}
    for kind in ("laplace", "gaussian"):
        kept = []
        for seed in range(3):
            problem, truth = synthetic_regression(seed)
            fit = fit_empirical_bayes(problem, link="gaussian", n_sources=3, sources=kind, n_jobs=1)
            kept.append(recovery(np.array([task.sources for task in fit.tasks]), truth))
        scores[kind] = np.mean(kept)
    assert scores["laplace"] > 0.95
    assert scores["laplace"] > scores["gaussian"] + 0.1


def test_tasks_with_common_sources_predict_better_together_than_alone():
    rng = np.random.default_rng(3)
    n_tasks, n_rows, n_features = 30, 30, 40
    loadings, sources = rng.normal(size=(n_features, 2)), rng.laplace(size=(n_tasks, 2))
    X, new = rng.normal(size=(n_tasks * n_rows, n_features)), rng.normal(size=(500, n_features))
    rows = np.arange(len(X)).reshape(n_tasks, n_rows)
    weights = sources @ loadings.T
    y = [np.where(X[row] @ w > 0, 1.0, -1.0) for row, w in zip(rows, weights, strict=True)]
    right = {}
    for n_sources in (0, 2):
        fit = fit_empirical_bayes(make_linear_tasks(X, rows, y), link="logistic", n_sources=n_sources, n_jobs=1)
        found = np.array([task.weights for task in fit.tasks])
        right[n_sources] = np.mean((new @ found.T > 0) == (new @ weights.T > 0))
    assert right[2] > right[0] + 0.08
