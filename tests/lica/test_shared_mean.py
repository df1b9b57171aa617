"""What all tasks agree on: a mean of their weights beside the sources, and intercepts that are drawn together."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

import kinfolk
from kinfolk.lica.inference.eb import fit_alone, fit_empirical_bayes
from kinfolk.lica.inference.expectation import Family, fresh_states, update_tasks
from kinfolk.lica.inference.layout import lay_out
from kinfolk.lica.inference.map import fit_point_estimate
from kinfolk.lica.inference.maximisation import Shrinkage, maximise, weights_of_tasks
from kinfolk.lica.model.data import make_linear_tasks
from tests.lica.sweeps import each
from tests.lica.test_empirical_bayes import LINKS, TALL, WIDE, a_prior, related_tasks


@pytest.fixture(scope="module")
def alike():
    """Thirty tasks of eight rows whose weights are nearly the same."""
    rng = np.random.default_rng(3)
    truth = rng.normal(size=12)
    task = np.repeat(np.arange(30), 48)
    X = rng.normal(size=(len(task), 12))
    weights = truth + 0.3 * rng.normal(size=(30, 12))
    score = np.einsum("ij,ij->i", X, weights[task])
    y = (score + rng.logistic(size=len(task)) > 0).astype(int)
    learnt = np.arange(len(task)) % 48 < 8
    return X, y, task, learnt, truth


@pytest.mark.parametrize("isotropic", [True, False])
@pytest.mark.parametrize("shape", [WIDE, TALL])
def test_m_step_of_the_mean_is_a_regression_on_the_sources_and_a_constant(shape, isotropic):
    problem = related_tasks(*shape, "gaussian")
    mean = np.random.default_rng(4).normal(size=shape[1])
    prior, family = a_prior(shape[1], isotropic)._replace(mean=mean, intercept_mean=0.3), Family("gaussian")
    layout, tau_squared, mean_variance = lay_out(problem, isotropic), 0.7, 2.5
    states = update_tasks(layout, prior, fresh_states(layout, prior, family), family, want_variances=True, n_jobs=1)
    weights = weights_of_tasks(layout, prior, states)
    shrinkage = Shrinkage(tau_squared, 1e-9, mean_variance=mean_variance)
    found = maximise(layout, prior, states, link="gaussian", shrinkage=shrinkage).prior
    moments = np.zeros((3, 3))
    for state in each(layout, states):
        known = np.append(state.mean, 1.0)
        moments += np.outer(known, known) + np.diag(np.append(2 * state.spread**2, 0.0))
    known = np.array([np.append(state.mean, 1.0) for state in each(layout, states)])
    for j in range(shape[1]):
        ridge = prior.noise[j] * np.diag([1 / tau_squared, 1 / tau_squared, 1 / mean_variance])
        expected = np.linalg.solve(moments + ridge, weights[:, j] @ known)
        np.testing.assert_allclose(np.append(found.loadings[j], found.mean[j]), expected, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("noise", ["isotropic", "diagonal"])
@pytest.mark.parametrize("shape", [WIDE, TALL])
@pytest.mark.parametrize("link", LINKS)
def test_bound_never_falls_with_a_mean_and_intercepts_that_are_shared(link, shape, noise):
    problem = related_tasks(*shape, link)
    fit = fit_empirical_bayes(
        problem, link=link, n_sources=1, noise=noise, shared_mean=True, shared_intercepts=True, tol=1e-5, n_jobs=1
    )
    assert np.min(np.diff(fit.objective)) >= -1e-8 * abs(fit.objective[-1])
    assert np.abs(fit.prior.mean).max() > 0


@pytest.mark.parametrize("shape", [WIDE, TALL])
def test_without_sources_the_bound_of_a_regression_is_its_evidence_and_the_priors(shape):
    problem = related_tasks(*shape, "gaussian")
    problem = problem._replace(weights=tuple(np.ones_like(w) for w in problem.weights))
    fit = fit_empirical_bayes(
        problem, link="gaussian", n_sources=0, shared_mean=True, shared_intercepts=True, loading_variance=1.0, n_jobs=1
    )
    prior, exact = fit.prior, 0.0
    for rows, y in zip(problem.rows, problem.y, strict=True):
        X = problem.X[rows]
        covariance = X @ np.diag(prior.noise) @ X.T + prior.intercept_variance
        covariance += prior.residual_variance * np.eye(len(y))
        exact += multivariate_normal(X @ prior.mean + prior.intercept_mean, covariance).logpdf(y)
    # The mean is as variable as weights of tasks fitted one by one, and the intercepts' variance has its mode at the
    # spread of the targets.
    variance = fit_alone(problem, Family("gaussian")).prior.noise[0]
    exact += norm(0.0, np.sqrt(variance)).logpdf(prior.mean).sum()
    exact -= 0.5 * (np.log(prior.intercept_variance) + np.var(np.concatenate(problem.y)) / prior.intercept_variance)
    assert fit.objective[-1] == pytest.approx(exact, rel=1e-9)


def test_intercepts_are_drawn_together_as_in_the_analysis_of_variance():
    rng = np.random.default_rng(0)
    n_tasks, n_rows, between, within = 400, 5, 0.8, 2.0
    level = 3.0 + np.sqrt(between) * rng.normal(size=n_tasks)
    y = level[:, None] + np.sqrt(within) * rng.normal(size=(n_tasks, n_rows))
    rows = np.arange(n_tasks * n_rows).reshape(n_tasks, n_rows)
    problem = make_linear_tasks(np.zeros((n_tasks * n_rows, 1)), rows, list(y))
    fit = fit_empirical_bayes(
        problem, link="gaussian", n_sources=0, shared_intercepts=True, max_iter=500, tol=1e-9, n_jobs=1
    )
    # Moment estimates of a balanced one-way design with random effects.
    residual = y.var(axis=1, ddof=1).mean()
    spread = y.mean(axis=1).var(ddof=1) - residual / n_rows
    assert fit.prior.intercept_mean == pytest.approx(y.mean(), abs=0.01)
    assert fit.prior.intercept_variance == pytest.approx(spread, rel=0.05)
    assert fit.prior.residual_variance == pytest.approx(residual, rel=0.02)
    share = spread / (spread + residual / n_rows)
    expected = y.mean() + share * (y.mean(axis=1) - y.mean())
    np.testing.assert_allclose([task.intercept for task in fit.tasks], expected, atol=0.05)


def test_the_objective_of_the_point_estimate_counts_the_mean_as_one_more_task(alike):
    X, y, task, learnt, _ = alike
    rows = [np.flatnonzero(learnt & (task == k)) for k in range(30)]
    problem = make_linear_tasks(X, rows, [2.0 * y[row] - 1.0 for row in rows])
    found = fit_point_estimate(problem, link="logistic", n_sources=2, shared_mean=True, noise_variance=0.5)
    assert np.diff(found.objective).max() <= 1e-9
    prior, total = found.prior, 0.0
    for k, one in enumerate(found.tasks):
        f = X[rows[k]] @ one.weights + one.intercept
        total += np.sum(np.logaddexp(0.0, -problem.y[k] * f))
        total += 0.5 * np.sum((one.weights - prior.mean - prior.loadings @ one.sources) ** 2 / prior.noise)
        total += 0.5 * one.intercept**2 / prior.intercept_variance + np.abs(one.sources).sum() / prior.source_scale
    total += 0.5 * np.sum(prior.loadings**2) / found.loading_variance + 0.5 * np.sum(prior.mean**2) / 0.5
    assert found.objective[-1] == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("inference", ["eb", "map"])
def test_tasks_that_agree_are_learnt_from_few_rows(alike, inference):
    X, y, task, learnt, truth = alike
    settings = {"n_sources": 1, "inference": inference, "random_state": 0}
    scores = {}
    for shared in (True, False):
        model = kinfolk.LICAClassifier(shared_mean=shared, **settings).fit(X[learnt], y[learnt], task=task[learnt])
        assert shared or not model.common_weights_.any()
        scores[shared] = model.score(X[~learnt], y[~learnt], task=task[~learnt])
        if shared:
            assert np.corrcoef(model.common_weights_, truth)[0, 1] > 0.95
            # A task of which nothing is known has the mean, and is predicted well.
            new = model.predict_proba(X[~learnt], task=["new"] * int((~learnt).sum()))[:, 1]
            assert np.mean((new > 0.5) == y[~learnt]) > 0.75
    assert scores[True] > scores[False] + 0.01


@pytest.mark.parametrize("inference", ["eb", "map"])
@pytest.mark.parametrize("shared", [True, False])
def test_a_warm_start_may_take_the_mean_up_or_leave_it(alike, inference, shared):
    X, y, task, learnt, _ = alike
    model = kinfolk.LICAClassifier(1, inference=inference, shared_mean=not shared, warm_start=True, random_state=0)
    model.fit(X[learnt], y[learnt], task=task[learnt])
    model.set_params(shared_mean=shared).fit(X[learnt], y[learnt], task=task[learnt])
    assert bool(model.common_weights_.any()) == shared
    assert np.isfinite(model.coef_).all()


def test_a_saved_model_keeps_mean_and_intercepts(alike, tmp_path):
    X, y, task, learnt, _ = alike
    model = kinfolk.LICAClassifier(n_sources=1, random_state=0).fit(X[learnt], y[learnt] * 1, task=task[learnt])
    assert model.prior_.intercept_mean != 0.0
    kinfolk.save(model, tmp_path / "model.kin")
    again = kinfolk.load(tmp_path / "model.kin", estimator=True)
    assert again.prior_.intercept_mean == model.prior_.intercept_mean
    np.testing.assert_array_equal(again.prior_.mean, model.prior_.mean)
    asked = X[:20]
    for names in (task[:20], ["new"] * 20):
        expected = model.predict_proba(asked, task=names)
        np.testing.assert_allclose(again.predict_proba(asked, task=names), expected, rtol=1e-12)
        np.testing.assert_allclose(kinfolk.load(tmp_path / "model.kin").predict_proba(asked, task=names), expected)


def test_gaussian_sources_are_refused_where_they_would_be_ignored(alike):
    X, y, task, *_ = alike
    model = kinfolk.LICAClassifier(inference="map", source_prior="gaussian")
    with pytest.raises(ValueError, match="source_prior='gaussian' needs inference='eb'"):
        model.fit(X, y, task=task)
