import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit, log_ndtr
from scipy.stats import norm
from sklearn.linear_model import LogisticRegression

from kinfolk.lica.inference.map_weights import (
    EXACT_FEATURES,
    EXACT_VARIANCES,
    fit_map_weights,
    make_design,
    weight_variance,
)
from kinfolk.lica.inference.weight_solver import WeightSolver
from kinfolk.lica.model.data import make_linear_tasks
from kinfolk.lica.model.links import log_normal_cdf
from kinfolk.lica.model.prior import TaskPrior


def draw(n_rows, n_features, seed=0, density=1.0, scale=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * (rng.uniform(size=(n_rows, n_features)) < density)
    truth = scale * rng.normal(size=n_features) / np.sqrt(n_features * density)
    y = np.where(rng.uniform(size=n_rows) < expit(3 * X @ truth + 0.5), 1.0, -1.0)
    return X, y


def plain_prior(n_features, noise=1.0, **fields):
    return TaskPrior(np.zeros((n_features, 0)), np.full(n_features, noise), **fields)


def one_task(X, y, weights=None):
    return make_linear_tasks(X, [np.arange(len(y))], [y], None if weights is None else [weights])


def objective(X, y, row_weights, mean, noise, v0, link, variance=1.0):
    def value(point):
        f = X @ point[:-1] + point[-1]
        loss = {
            "logistic": lambda: np.logaddexp(0.0, -y * f),
            "probit": lambda: -log_ndtr(y * f),
            "gaussian": lambda: 0.5 * (y - f) ** 2 / variance,
        }[link]()
        return row_weights @ loss + 0.5 * np.sum((point[:-1] - mean) ** 2 / noise) + 0.5 * point[-1] ** 2 / v0

    return value


@pytest.mark.parametrize("size", [(80, 5), (200, 60), (50, 400)], ids=["few features", "some", "more than rows"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_without_a_mean_it_is_ridge_logistic_regression_as_scikit_learn_fits_it(size, form):
    X, y = draw(*size, density=0.3)
    prior = plain_prior(size[1], 2.5, intercept_variance=1e9)  # scikit-learn leaves the intercept free
    found = fit_map_weights(one_task(form(X), y), 0, prior, np.zeros(0), link="logistic")
    theirs = LogisticRegression(C=2.5, tol=1e-10, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(found.weights, theirs.coef_[0], atol=2e-5)
    assert found.intercept == pytest.approx(theirs.intercept_[0], abs=2e-5)


@pytest.mark.parametrize("n_features", [4, EXACT_FEATURES + 20], ids=["factorised", "conjugate gradients"])
@pytest.mark.parametrize("link", ["logistic", "probit", "gaussian"])
def test_the_minimum_of_the_objective_is_found_for_every_link_mean_noise_and_weights(link, n_features):
    X, y = draw(60, n_features, seed=1)
    if link == "gaussian":
        y = y + X[:, 0]
    rng = np.random.default_rng(2)
    loadings, sources = rng.normal(size=(n_features, 2)), np.array([0.7, -0.3])
    noise, row_weights = rng.uniform(0.2, 2.0, n_features), rng.uniform(0.0, 2.0, 60)
    row_weights[:5] = 0.0
    prior = TaskPrior(loadings, noise, intercept_variance=3.0, residual_variance=0.6, mean=np.full(n_features, 0.1))
    found = fit_map_weights(one_task(X, y, row_weights), 0, prior, sources, link=link)
    value = objective(X, y, row_weights, loadings @ sources + 0.1, noise, 3.0, link, 0.6)
    best = minimize(value, np.zeros(n_features + 1), method="BFGS", options={"gtol": 1e-7})
    assert found.objective == pytest.approx(best.fun, abs=1e-7)
    assert value(np.append(found.weights, found.intercept)) == pytest.approx(found.objective, abs=1e-9)
    np.testing.assert_allclose(found.weights, best.x[:-1], atol=1e-4)
    assert found.gradient <= 1e-6


def test_a_gaussian_link_gives_the_closed_form_of_ridge_regression_in_one_step():
    X, y = draw(30, 6)
    prior = plain_prior(6, 0.5, intercept_variance=2.0, residual_variance=0.3)
    found = fit_map_weights(one_task(X, y), 0, prior, np.zeros(0), link="gaussian")
    full = np.column_stack([X, np.ones(30)])
    exact = np.linalg.solve(full.T @ full / 0.3 + np.diag(1.0 / np.append(np.full(6, 0.5), 2.0)), full.T @ y / 0.3)
    np.testing.assert_allclose(np.append(found.weights, found.intercept), exact, atol=1e-10)
    assert found.n_steps == 1


def test_a_whole_weight_counts_as_that_many_rows():
    X, y = draw(25, 4)
    counts = np.random.default_rng(0).integers(0, 4, 25)
    prior = plain_prior(4)
    weighted = fit_map_weights(one_task(X, y, counts.astype(float)), 0, prior, np.zeros(0), link="logistic")
    repeated = np.repeat(np.arange(25), counts)
    rows = fit_map_weights(make_linear_tasks(X, [repeated], [y[repeated]]), 0, prior, np.zeros(0), link="logistic")
    np.testing.assert_allclose(weighted.weights, rows.weights, atol=1e-7)


@pytest.mark.parametrize("link", ["logistic", "probit"])
def test_separable_data_give_finite_weights(link):
    X = np.array([[-1.0, 0.0], [-2.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    found = fit_map_weights(
        one_task(X, np.sign(X[:, 0])), 0, plain_prior(2, 1e4), np.zeros(0), link=link, max_steps=500
    )
    assert np.isfinite(found.weights).all()
    assert found.weights[0] > 3.0
    assert found.gradient <= 1e-6


def test_features_on_very_different_scales_do_not_stop_it():
    X, y = draw(100, EXACT_FEATURES + 30, seed=3)
    X = X * np.logspace(-3, 3, X.shape[1]) + 5.0
    found = fit_map_weights(one_task(X, y), 0, plain_prior(X.shape[1]), np.zeros(0), link="logistic")
    # The same problem in terms of u = Qᵀθ, Q orthogonal: only conditioning differs.
    Q = np.linalg.svd(X, full_matrices=False)[2].T
    turned = fit_map_weights(one_task(X @ Q, y), 0, plain_prior(Q.shape[1]), np.zeros(0), link="logistic")
    assert found.n_steps < 100
    assert found.objective == pytest.approx(turned.objective, abs=1e-9)
    np.testing.assert_allclose(found.weights, Q @ turned.weights, atol=1e-6)


def test_entries_of_a_sparse_row_may_come_in_any_order():
    X, y = draw(30, 4, density=0.6)
    table = sparse.csr_matrix(X)
    for row in range(30):
        part = slice(table.indptr[row], table.indptr[row + 1])
        table.indices[part], table.data[part] = table.indices[part][::-1].copy(), table.data[part][::-1].copy()
    table.has_sorted_indices = False
    problem = one_task(X, y)
    sorted_, shuffled = (
        fit_map_weights(problem, 0, plain_prior(4), np.zeros(0), link="logistic", design=make_design(t))
        for t in (X, table)
    )
    np.testing.assert_allclose(sorted_.weights, shuffled.weights, atol=1e-9)


def test_the_start_does_not_matter():
    X, y = draw(40, 50)
    far = (np.random.default_rng(1).normal(size=50) * 10, 7.0)
    ends = [
        fit_map_weights(one_task(X, y), 0, plain_prior(50), np.zeros(0), link="logistic", start=start)
        for start in (None, far)
    ]
    np.testing.assert_allclose(ends[0].weights, ends[1].weights, atol=1e-6)


def test_a_task_without_rows_keeps_the_mean_of_its_prior():
    problem = make_linear_tasks(np.ones((3, 2)), [[]], [[]])
    prior = TaskPrior(np.array([[1.0], [2.0]]), np.ones(2))
    found = fit_map_weights(problem, 0, prior, np.array([0.5]), link="logistic")
    np.testing.assert_allclose(found.weights, [0.5, 1.0])
    assert found.intercept == 0.0


@pytest.mark.parametrize("z", [-300.0, -40.0, -5.0001, -4.9999, -1.0, 0.0, 3.0, 30.0])
def test_the_normal_distribution_is_right_far_in_its_tail(z):
    value, ratio = log_normal_cdf(z)
    assert value == pytest.approx(log_ndtr(z), rel=1e-12, abs=1e-15)
    assert ratio == pytest.approx(np.exp(norm.logpdf(z) - log_ndtr(z)), rel=1e-9)


def laplace_variances(X, point, noise, v0):
    full = np.column_stack([X, np.ones(len(X))])
    p = expit(full @ point)
    return np.diag(np.linalg.inv(full.T @ ((p * (1 - p))[:, None] * full) + np.diag(1.0 / np.append(noise, v0))))


def test_variances_of_few_weights_are_the_diagonal_of_the_inverse_hessian():
    X, y = draw(40, 6)
    prior = plain_prior(6, 0.7)
    problem = one_task(X, y)
    found = fit_map_weights(problem, 0, prior, np.zeros(0), link="logistic")
    variances = weight_variance(
        problem, 0, prior, found.weights, found.intercept,
        link="logistic", design=make_design(X), signs=np.ones(7),
    )  # fmt: skip
    exact = laplace_variances(X, np.append(found.weights, found.intercept), prior.noise, 100.0)
    np.testing.assert_allclose(variances, exact, rtol=1e-8)


def test_variances_of_many_weights_are_right_on_average_over_random_signs():
    n_features = EXACT_VARIANCES + 50
    X, y = draw(40, n_features)
    prior = plain_prior(n_features, 0.7)
    problem, design, rng = one_task(X, y), make_design(X), np.random.default_rng(0)
    found = fit_map_weights(problem, 0, prior, np.zeros(0), link="logistic")
    estimates = [
        weight_variance(
            problem, 0, prior, found.weights, found.intercept,
            link="logistic", design=design, signs=rng.choice([-1.0, 1.0], n_features + 1),
        )
        for _ in range(300)
    ]  # fmt: skip
    exact = laplace_variances(X, np.append(found.weights, found.intercept), prior.noise, 100.0)
    assert np.mean(estimates, axis=0)[:-1].sum() == pytest.approx(exact[:-1].sum(), rel=5e-3)
    np.testing.assert_allclose(np.mean(estimates, axis=0)[:-1], exact[:-1], atol=0.05)


def shared_problem(link="logistic", missing=False, form=sparse.csr_matrix):
    X, _ = draw(60, 300, density=0.2, seed=5)
    rng = np.random.default_rng(6)
    Y = np.sign(X @ rng.normal(size=(300, 7)) + rng.normal(size=(60, 7)) - 1.0)
    if link == "gaussian":
        Y = Y + rng.normal(size=Y.shape)
    rows = [np.flatnonzero(rng.uniform(size=60) < 0.8) if missing else np.arange(60) for _ in range(7)]
    return make_linear_tasks(
        form(X), rows, [Y[r, k] for k, r in enumerate(rows)], [rng.uniform(size=r.size) for r in rows]
    )


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("missing", [False, True], ids=["all rows", "some rows"])
@pytest.mark.parametrize("link", ["logistic", "probit", "gaussian"])
def test_tasks_solved_together_are_those_solved_one_by_one(link, missing, form):
    problem = shared_problem(link, missing, form)
    rng = np.random.default_rng(0)
    loadings, sources = 0.3 * rng.normal(size=(300, 2)), rng.normal(size=(7, 2))
    prior = TaskPrior(loadings, rng.uniform(0.5, 2.0, 300), intercept_variance=5.0, residual_variance=0.8)
    solver = WeightSolver(problem, link, 5.0)
    assert solver.together
    solved = solver.solve(loadings @ sources.T, prior.noise, 0.8, None, 1e-6)
    for k in range(7):
        alone = fit_map_weights(problem, k, prior, sources[k], link=link)
        np.testing.assert_allclose(solved.weights[:, k], alone.weights, atol=1e-5)
        assert solved.intercepts[k] == pytest.approx(alone.intercept, abs=1e-5)
        assert solved.loss[k] == pytest.approx(alone.loss, abs=1e-5)


def test_a_warm_start_from_other_duals_or_from_weights_ends_in_the_same_place():
    problem = shared_problem()
    solver = WeightSolver(problem, "logistic", 5.0)
    mean, noise = np.zeros((300, 7)), np.ones(300)
    first = solver.solve(mean, 3.0 * noise, 1.0, None, 1e-6)
    cold = solver.solve(mean, noise, 1.0, None, 1e-6)
    for start in (first, first._replace(duals=None)):
        np.testing.assert_allclose(solver.solve(mean, noise, 1.0, start, 1e-6).weights, cold.weights, atol=1e-5)


def test_threads_do_not_change_the_result():
    X, y = draw(200, 40)
    problem = make_linear_tasks(X, np.split(np.arange(200), 5), np.split(y, 5))
    mean, noise = np.zeros((40, 5)), np.ones(40)
    one, two = (WeightSolver(problem, "logistic", 5.0, n_jobs).solve(mean, noise, 1.0, None, 1e-6) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.weights, two.weights)


@pytest.mark.parametrize("together", [True, False])
def test_the_number_of_weights_that_data_determine_is_the_trace_of_laplaces_method(together):
    problem = shared_problem()
    solver = WeightSolver(problem, "logistic", 5.0)
    assert solver.together
    solver.together = together
    noise = np.full(300, 2.0)
    solved = solver.solve(np.zeros((300, 7)), noise, 1.0, None, 1e-6)
    rng = np.random.default_rng(0)
    estimate = np.mean([solver.determined(solved, noise, 1.0, rng).sum() for _ in range(40)])
    exact = 0.0
    for k in range(7):
        root = np.sqrt(problem.weights[k])
        p = expit(problem.X @ solved.weights[:, k] + solved.intercepts[k])
        full = np.column_stack([problem.X.toarray(), np.ones(60)])
        hessian = full.T @ ((root**2 * p * (1 - p))[:, None] * full) + np.diag(1.0 / np.append(noise, 5.0))
        exact += 300 - np.diag(np.linalg.inv(hessian))[:-1].sum() / 2.0
    assert estimate == pytest.approx(exact, rel=0.03)
