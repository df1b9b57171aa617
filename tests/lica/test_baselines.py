import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score

from kinfolk.lica.inference.hierarchical import fit_hierarchical_gaussian
from kinfolk.lica.inference.individual import fit_individual
from kinfolk.lica.inference.pooled import fit_pooled
from kinfolk.lica.model.data import make_linear_tasks


def tasks_around_a_mean(n_tasks=30, n_rows=25, n_features=10, spread=0.2, seed=0, link="logistic"):
    """Tasks whose weights lie about a common mean; also rows to judge by."""
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=n_features) + spread * rng.normal(size=(n_tasks, n_features))
    X = rng.normal(size=(n_tasks * (n_rows + 200), n_features))
    task = np.repeat(np.arange(n_tasks), n_rows + 200)
    f = np.sum(X * weights[task], axis=1)
    y = f + rng.normal(size=f.size) if link == "gaussian" else np.where(f + rng.logistic(size=f.size) > 0, 1.0, -1.0)
    rows = [np.flatnonzero(task == k) for k in range(n_tasks)]
    problem = make_linear_tasks(X, [r[:n_rows] for r in rows], [y[r[:n_rows]] for r in rows])
    return problem, [(X[r[n_rows:]], y[r[n_rows:]]) for r in rows], weights


def mean_auc(estimate, test):
    return np.mean([roc_auc_score(y, X @ t.weights) for t, (X, y) in zip(estimate.tasks, test, strict=True)])


def test_individual_fits_are_scikit_learns_task_by_task():
    problem, _, _ = tasks_around_a_mean(n_tasks=4)
    found = fit_individual(problem, link="logistic", noise_variance=0.7, intercept_variance=1e9)
    for k, task in enumerate(found.tasks):
        X = problem.X[problem.rows[k]]
        theirs = LogisticRegression(C=0.7, tol=1e-10, max_iter=10_000).fit(X, problem.y[k])
        np.testing.assert_allclose(task.weights, theirs.coef_[0], atol=1e-3)
    assert found.prior.loadings.shape == (10, 0)


def test_pooled_weights_are_scikit_learns_on_all_rows():
    problem, _, _ = tasks_around_a_mean(n_tasks=4)
    found = fit_pooled(problem, link="logistic", noise_variance=0.7, intercept_variance=1e9)
    rows = np.concatenate(problem.rows)
    theirs = LogisticRegression(C=0.7, tol=1e-10, max_iter=10_000).fit(problem.X[rows], np.concatenate(problem.y))
    for task in found.tasks:
        np.testing.assert_allclose(task.weights, theirs.coef_[0], atol=1e-3)
    np.testing.assert_array_equal(found.prior.mean, found.tasks[0].weights)


def test_pooled_rows_that_tasks_share_count_once_for_every_task():
    rng = np.random.default_rng(0)
    X, Y, weights = rng.normal(size=(30, 3)), np.sign(rng.normal(size=(30, 5)) + 0.3), rng.uniform(size=(30, 5))
    problem = make_linear_tasks(X, [np.arange(30)] * 5, list(Y.T), list(weights.T))
    found = fit_pooled(problem, link="logistic", noise_variance=0.7, intercept_variance=1e9)
    theirs = LogisticRegression(C=0.7, tol=1e-10, max_iter=10_000)
    theirs.fit(np.tile(X, (5, 1)), Y.T.ravel(), sample_weight=weights.T.ravel())
    np.testing.assert_allclose(found.tasks[3].weights, theirs.coef_[0], atol=1e-3)


def test_pooled_regression_is_scikit_learns_ridge():
    problem, _, _ = tasks_around_a_mean(n_tasks=3, link="gaussian")
    found = fit_pooled(problem, link="gaussian", noise_variance=0.5, residual_variance=2.0, intercept_variance=1e9)
    theirs = Ridge(alpha=2.0 / 0.5).fit(problem.X[np.concatenate(problem.rows)], np.concatenate(problem.y))
    np.testing.assert_allclose(found.tasks[0].weights, theirs.coef_, atol=1e-5)


@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0])
def test_the_learnt_variance_is_near_the_one_that_made_the_weights(scale):
    rng = np.random.default_rng(0)
    n_tasks, n_features = 40, 8
    weights = scale * rng.normal(size=(n_tasks, n_features))
    X = rng.normal(size=(n_tasks * 80, n_features))
    task = np.repeat(np.arange(n_tasks), 80)
    y = np.where(np.sum(X * weights[task], axis=1) + rng.logistic(size=task.size) > 0, 1.0, -1.0)
    rows = np.split(np.arange(task.size), n_tasks)
    found = fit_individual(make_linear_tasks(X, rows, [y[r] for r in rows]), link="logistic")
    assert scale**2 / 10 < found.prior.noise[0] < scale**2 * 10


def test_the_learnt_residual_variance_of_a_regression_is_near_the_true_one():
    problem, _, _ = tasks_around_a_mean(n_rows=60, link="gaussian")
    found = fit_individual(problem, link="gaussian")
    assert 0.8 < found.prior.residual_variance < 1.7


def test_tasks_about_a_mean_are_predicted_best_by_the_hierarchy():
    problem, test, weights = tasks_around_a_mean(spread=0.5)
    hierarchy = fit_hierarchical_gaussian(problem, link="logistic")
    assert mean_auc(hierarchy, test) > mean_auc(fit_individual(problem, link="logistic"), test) + 0.01
    assert mean_auc(hierarchy, test) > mean_auc(fit_pooled(problem, link="logistic"), test)
    assert np.corrcoef(hierarchy.prior.mean, weights.mean(axis=0))[0, 1] > 0.95


@pytest.mark.parametrize("noise", ["isotropic", "diagonal"])
def test_variances_of_the_hierarchy_do_not_collapse(noise):
    problem, _, _ = tasks_around_a_mean(spread=0.5, n_rows=60)
    found = fit_hierarchical_gaussian(problem, link="logistic", noise=noise)
    assert 0.02 < found.prior.noise.min() <= found.prior.noise.max() < 2.5
    assert found.converged
    assert np.diff(found.objective).max() <= 1e-4


def test_the_hierarchys_variances_follow_the_features():
    rng = np.random.default_rng(1)
    spread = np.repeat([0.05, 1.5], 4)
    weights = 1.0 + spread * rng.normal(size=(40, 8))
    X = rng.normal(size=(40 * 120, 8))
    task = np.repeat(np.arange(40), 120)
    y = np.where(np.sum(X * weights[task], axis=1) + rng.logistic(size=task.size) > 0, 1.0, -1.0)
    rows = np.split(np.arange(task.size), 40)
    found = fit_hierarchical_gaussian(make_linear_tasks(X, rows, [y[r] for r in rows]), link="logistic")
    assert found.prior.noise[4:].min() > 3 * found.prior.noise[:4].max()


def test_the_mean_and_weights_of_a_gaussian_hierarchy_have_their_closed_form():
    problem, _, _ = tasks_around_a_mean(n_tasks=3, n_features=2, n_rows=15, link="gaussian")
    found = fit_hierarchical_gaussian(
        problem, link="gaussian", noise="isotropic", noise_variance=0.4, residual_variance=1.5,
        intercept_variance=2.0, tol=1e-12, max_iter=2000,
    )  # fmt: skip
    # Unknowns: mean (2), then weights (2) and intercept (1) of each task, all in one quadratic form.
    quadratic, linear = np.zeros((11, 11)), np.zeros(11)
    quadratic[:2, :2] += np.eye(2) / 0.4
    for k in range(3):
        at = np.arange(2 + 3 * k, 5 + 3 * k)
        full = np.column_stack([problem.X[problem.rows[k]], np.ones(15)])
        quadratic[np.ix_(at, at)] += full.T @ full / 1.5 + np.diag([1 / 0.4, 1 / 0.4, 0.5])
        linear[at] += full.T @ problem.y[k] / 1.5
        quadratic[:2, :2] += np.eye(2) / 0.4
        quadratic[at[:2], [0, 1]] -= 1 / 0.4
        quadratic[[0, 1], at[:2]] -= 1 / 0.4
    exact = np.linalg.solve(quadratic, linear)
    np.testing.assert_allclose(found.prior.mean, exact[:2], atol=1e-4)
    np.testing.assert_allclose(found.tasks[1].weights, exact[5:7], atol=1e-4)


def test_threads_do_not_change_the_hierarchy():
    problem, _, _ = tasks_around_a_mean(n_tasks=6)
    one, two = (fit_hierarchical_gaussian(problem, link="logistic", n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.prior.mean, two.prior.mean)
    np.testing.assert_array_equal(one.prior.noise, two.prior.noise)
