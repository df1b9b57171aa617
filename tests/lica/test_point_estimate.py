import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment, minimize_scalar
from sklearn.metrics import roc_auc_score

from kinfolk.datasets import make_lica_tasks
from kinfolk.lica.inference import alternation
from kinfolk.lica.inference.alternation import Variances, balance, loading_step
from kinfolk.lica.inference.held_out import make_folds, search_levels
from kinfolk.lica.inference.individual import fit_individual
from kinfolk.lica.inference.map import break_even_loading_variance, fit_point_estimate, fit_point_task
from kinfolk.lica.model.data import make_linear_tasks
from kinfolk.lica.model.prior import UNIT_SCALE, TaskPrior


def long_form(made, n_rows, link="logistic"):
    """The first rows of every task to fit, and the others to judge by."""
    rows = [np.flatnonzero(made.task == k) for k in range(len(made.sources))]
    y = made.y if link == "gaussian" else 2.0 * made.y - 1.0
    problem = make_linear_tasks(made.X, [r[:n_rows] for r in rows], [y[r[:n_rows]] for r in rows])
    return problem, [(made.X[r[n_rows:]], y[r[n_rows:]]) for r in rows]


def multi_label(seed=0, n_rows=80, n_features=150, n_tasks=12):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * (rng.uniform(size=(n_rows, n_features)) < 0.1)
    X[:, -3:] = 0.0  # features that no row has
    weights = rng.normal(size=(n_features, 2)) @ rng.laplace(size=(2, n_tasks))
    Y = np.where(X @ weights + rng.logistic(size=(n_rows, n_tasks)) > 0.0, 1.0, -1.0)
    return make_linear_tasks(sparse.csr_matrix(X), [np.arange(n_rows)] * n_tasks, list(Y.T))


def weights_of(estimate):
    return np.stack([task.weights for task in estimate.tasks])


def sources_of(estimate):
    return np.stack([task.sources for task in estimate.tasks])


def mean_auc(estimate, test):
    return np.mean([roc_auc_score(y, X @ t.weights) for t, (X, y) in zip(estimate.tasks, test, strict=True)])


def negative_log_posterior(problem, found):
    """Of a logistic problem, from the definition."""
    prior, total = found.prior, 0.0
    for k, task in enumerate(found.tasks):
        f = problem.X[problem.rows[k]] @ task.weights + task.intercept
        total += problem.weights[k] @ np.logaddexp(0.0, -problem.y[k] * f)
        total += 0.5 * np.sum((task.weights - prior.loadings @ task.sources) ** 2 / prior.noise)
        total += 0.5 * task.intercept**2 / prior.intercept_variance + np.abs(task.sources).sum() / prior.source_scale
    return total + 0.5 * np.sum(prior.loadings**2) / found.loading_variance


@pytest.mark.parametrize("noise", ["isotropic", "diagonal"])
@pytest.mark.parametrize("link", ["logistic", "probit", "gaussian"])
def test_no_round_raises_the_objective(link, noise):
    problem, _ = long_form(make_lica_tasks(12, 25, 40, 2, link=link, random_state=0), 40, link)
    found = fit_point_estimate(problem, link=link, n_sources=3, noise=noise, tol=1e-6, max_iter=60)
    assert len(found.objective) > 5
    assert np.diff(found.objective).max() <= 1e-9
    assert np.isfinite(found.objective).all()


@pytest.mark.parametrize("form", ["long", "multi-label"])
def test_the_objective_is_the_joint_negative_log_posterior(form):
    problem = (
        multi_label() if form == "multi-label" else long_form(make_lica_tasks(8, 20, 30, 2, random_state=1), 30)[0]
    )
    found = fit_point_estimate(problem, link="logistic", n_sources=2, noise_variance=0.5)
    assert found.objective[-1] == pytest.approx(negative_log_posterior(problem, found), rel=1e-9)
    assert np.diff(found.objective).max() <= 1e-9


@pytest.mark.parametrize("form", ["long", "multi-label"])
def test_weights_that_are_hardly_solved_for_never_raise_the_objective(form, monkeypatch):
    monkeypatch.setattr(alternation, "INEXACT", 30.0)
    monkeypatch.setattr(alternation, "EXACT", 30.0)
    made = make_lica_tasks(8, 20, 30, 2, random_state=1)
    problem = multi_label() if form == "multi-label" else long_form(made, 30)[0]
    found = fit_point_estimate(
        problem, link="logistic", n_sources=2, noise_variance=0.5, loading_variance=0.1, max_iter=10, tol=-1.0
    )
    assert np.diff(found.objective).max() <= 1e-9
    assert found.objective[-1] == pytest.approx(negative_log_posterior(problem, found), rel=1e-9)


def test_no_small_change_of_weights_sources_or_loadings_lowers_the_objective_at_the_end():
    problem, _ = long_form(make_lica_tasks(6, 8, 40, 2, random_state=2), 40)
    found = fit_point_estimate(
        problem, link="logistic", n_sources=2, noise_variance=0.3, loading_variance=0.5, tol=1e-12, max_iter=5000
    )
    least = negative_log_posterior(problem, found)
    rng = np.random.default_rng(0)
    for _ in range(200):
        size = 10.0 ** rng.uniform(-4, -1)
        loadings = found.prior.loadings + size * rng.normal(size=(8, 2))
        tasks = tuple(
            t._replace(
                weights=t.weights + size * rng.normal(size=8),
                sources=t.sources + size * rng.normal(size=2) * (t.sources != 0.0),
                intercept=t.intercept + size * rng.normal(),
            )
            for t in found.tasks
        )
        moved = found._replace(prior=found.prior._replace(loadings=loadings), tasks=tasks)
        # Weights are solved to a gradient of 0.03 within rounds, which leaves them within half its square at most.
        assert negative_log_posterior(problem, moved) > least - 1e-5


def test_tasks_that_share_sources_are_predicted_better_than_by_individual_fits():
    problem, test = long_form(make_lica_tasks(40, 60, 250, 4, random_state=1), 50)
    shared = fit_point_estimate(problem, link="logistic", n_sources=4)
    alone = fit_individual(problem, link="logistic")
    assert mean_auc(shared, test) > mean_auc(alone, test) + 0.05


def test_sources_are_exactly_sparse_and_more_so_the_smaller_the_loadings_may_be():
    problem, _ = long_form(make_lica_tasks(30, 40, 60, 4, sparsity=0.6, random_state=3), 60)
    share = [
        np.mean(sources_of(fit_point_estimate(problem, link="logistic", n_sources=4, loading_variance=v)) != 0.0)
        for v in (1e-6, 3e-3, 1.0)
    ]
    assert share[0] == 0.0
    assert 0.0 < share[1] < share[2] <= 1.0


def test_known_sources_are_found_up_to_order_sign_and_scale():
    made = make_lica_tasks(60, 30, 300, 3, sparsity=0.5, noise=0.02, random_state=4)
    problem, _ = long_form(made, 300)
    found = sources_of(fit_point_estimate(problem, link="logistic", n_sources=3, tol=1e-5))
    match = np.abs(np.corrcoef(found.T, made.sources.T)[:3, 3:])
    assert match[linear_sum_assignment(-match)].min() > 0.9


def test_noise_and_loadings_stay_of_the_size_that_made_the_tasks():
    made = make_lica_tasks(40, 20, 200, 2, noise=0.3, random_state=5)
    problem, _ = long_form(made, 200)
    for noise in ("isotropic", "diagonal"):
        found = fit_point_estimate(problem, link="logistic", n_sources=2, noise=noise, tol=1e-6)
        # Weights have variance 9/20, of which 0.3 is noise: the first bounds ψ from above, a tenth of it from below.
        assert 0.045 < found.prior.noise.min() <= found.prior.noise.max() < 2.0
        assert np.std(weights_of(found)) == pytest.approx(np.std(made.weights), rel=0.4)


def test_diagonal_noise_is_larger_for_features_whose_weights_vary_more():
    rng = np.random.default_rng(0)
    n_tasks, spread = 40, np.repeat([0.1, 2.0], 5)
    weights = rng.normal(size=(n_tasks, 10)) * spread
    X = rng.normal(size=(n_tasks * 150, 10))
    task = np.repeat(np.arange(n_tasks), 150)
    y = np.where(np.sum(X * weights[task], axis=1) + rng.logistic(size=task.size) > 0.0, 1.0, -1.0)
    rows = np.split(np.arange(task.size), n_tasks)
    found = fit_point_estimate(
        make_linear_tasks(X, rows, [y[r] for r in rows]), link="logistic", n_sources=1, noise="diagonal"
    )
    assert found.prior.noise[5:].min() > 5 * found.prior.noise[:5].max()


def test_a_source_for_one_task_costs_what_noise_costs_at_the_break_even_variance():
    theta, psi, scale = np.array([3.0, -1.0, 2.0]), 0.7, 0.4
    tau2 = break_even_loading_variance(np.tile(theta[:, None], (1, 5)), np.full(3, psi), scale)
    as_noise = 0.5 * theta @ theta / psi
    as_source = minimize_scalar(
        lambda log_c: 0.5 * np.exp(2 * log_c) * (theta @ theta) / tau2 + np.exp(-log_c) / scale,
        bounds=(-20, 20), method="bounded", options={"xatol": 1e-10},
    ).fun  # fmt: skip
    assert as_source == pytest.approx(as_noise, rel=1e-6)


def test_balanced_scales_cost_least_and_leave_mixtures_as_they_are():
    rng = np.random.default_rng(0)
    loadings, sources = rng.normal(size=(10, 3)), rng.laplace(size=(6, 3))
    sources[:, 2] = 0.0
    held = Variances(np.ones(10), 0.3, 0.6, 1.0)

    def cost(factor):
        return np.sum((loadings * factor) ** 2) / 0.6 + np.sum(np.abs(sources / factor)) / 0.6

    new_loadings, new_sources = balance(loadings, sources, held)
    np.testing.assert_allclose(new_loadings @ new_sources.T, loadings @ sources.T)
    reached = np.sum(new_loadings**2) / 0.6 + np.sum(np.abs(new_sources)) / 0.6
    factors = np.append(np.exp(rng.normal(size=(2000, 2)) * 0.5), np.ones((2000, 1)), axis=1)
    assert reached <= min(cost(factor) for factor in factors) + 1e-12


def test_the_loading_step_solves_the_normal_equations_of_every_feature():
    rng = np.random.default_rng(0)
    weights, sources, noise = rng.normal(size=(7, 9)), rng.normal(size=(9, 3)), rng.uniform(0.1, 2.0, 7)
    found = loading_step(weights, sources, Variances(noise, 0.4, 1.0, 1.0))
    for j in range(7):
        exact = np.linalg.solve(sources.T @ sources + noise[j] / 0.4 * np.eye(3), sources.T @ weights[j])
        np.testing.assert_allclose(found[j], exact)


def test_features_that_no_row_has_change_nothing_and_get_no_weight():
    problem = multi_label()
    fewer = make_linear_tasks(problem.X[:, :-3], problem.rows, problem.y)
    found, same = (fit_point_estimate(p, link="logistic", n_sources=2) for p in (problem, fewer))
    np.testing.assert_array_equal(weights_of(found)[:, -3:], 0.0)
    np.testing.assert_array_equal(found.prior.loadings[-3:], 0.0)
    np.testing.assert_allclose(weights_of(found)[:, :-3], weights_of(same))


def test_threads_and_dense_or_sparse_tables_give_the_same_result():
    problem, _ = long_form(make_lica_tasks(10, 20, 30, 2, random_state=0), 30)
    thin = make_linear_tasks(sparse.csr_matrix(problem.X), problem.rows, problem.y)
    one = fit_point_estimate(problem, link="logistic", n_sources=2, n_jobs=1)
    np.testing.assert_array_equal(
        weights_of(one), weights_of(fit_point_estimate(problem, link="logistic", n_sources=2, n_jobs=2))
    )
    np.testing.assert_allclose(
        weights_of(one), weights_of(fit_point_estimate(thin, link="logistic", n_sources=2)), atol=1e-9
    )


def test_a_warm_start_goes_on_where_the_fit_ended():
    problem, _ = long_form(make_lica_tasks(15, 20, 40, 2, random_state=0), 40)
    first = fit_point_estimate(problem, link="logistic", n_sources=2, tol=1e-2)
    again = fit_point_estimate(problem, link="logistic", n_sources=2, start=first, tol=1e-6)
    assert again.objective[0] <= first.objective[-1] + 1e-6
    assert again.objective[-1] < first.objective[-1]
    np.testing.assert_array_equal(again.prior.noise, first.prior.noise)
    assert again.loading_variance == first.loading_variance


def test_a_start_with_other_tasks_is_refused_with_one_sentence():
    problem, _ = long_form(make_lica_tasks(4, 5, 20, 1, random_state=0), 20)
    first = fit_point_estimate(problem, link="logistic", n_sources=1)
    with pytest.raises(ValueError, match=r"^start has 4 tasks, 5 features and 1 sources; it needs 3, 5 and 2\.$"):
        fit_point_estimate(problem.of_tasks([0, 1, 2]), link="logistic", n_sources=2, start=first)


@pytest.mark.parametrize("n_sources", [0, 1, 30], ids=["none", "one", "more than tasks"])
def test_any_number_of_sources_gives_a_finite_fit(n_sources):
    problem, _ = long_form(make_lica_tasks(6, 10, 20, 1, random_state=0), 20)
    found = fit_point_estimate(problem, link="logistic", n_sources=n_sources)
    assert np.isfinite(weights_of(found)).all()
    assert sources_of(found).shape == (6, n_sources)


def test_one_class_one_row_no_rows_and_separable_tasks_get_finite_weights():
    X = np.random.default_rng(0).normal(size=(30, 4))
    rows = [np.arange(10), np.arange(10, 20), np.arange(20, 30), [0], []]
    y = [np.ones(10), np.sign(X[10:20, 0]), np.sign(X[20:, 0]), [1.0], []]
    found = fit_point_estimate(make_linear_tasks(X, rows, y), link="logistic", n_sources=1)
    assert np.isfinite(weights_of(found)).all()
    np.testing.assert_allclose(found.tasks[4].weights, found.prior.loadings @ found.tasks[4].sources, atol=1e-8)


def test_a_new_task_gets_the_weights_and_sources_that_minimise_its_own_objective():
    problem, _ = long_form(make_lica_tasks(10, 12, 60, 2, random_state=6), 60)
    rng = np.random.default_rng(0)
    prior = TaskPrior(rng.normal(size=(12, 2)), np.full(12, 0.2))
    found, _ = fit_point_task(problem, 3, prior, link="logistic")

    def value(weights, intercept, sources):
        f = problem.X[problem.rows[3]] @ weights + intercept
        loss = np.logaddexp(0.0, -problem.y[3] * f).sum() + intercept**2 / 200.0
        return loss + np.sum((weights - prior.loadings @ sources) ** 2) / 0.4 + np.abs(sources).sum() / UNIT_SCALE

    least = value(found.weights, found.intercept, found.sources)
    for _ in range(300):
        size = 10.0 ** rng.uniform(-3, 0)
        step = size * rng.normal(size=15)
        moved = value(found.weights + step[:12], found.intercept + step[12], found.sources + step[13:])
        assert moved > least - 1e-6


def test_a_task_says_whether_it_has_converged():
    made = make_lica_tasks(4, 10, 30, 2, random_state=0)
    problem, _ = long_form(made, 30)
    prior = TaskPrior(np.random.default_rng(0).normal(size=(10, 2)), np.full(10, 0.1))
    assert fit_point_task(problem, 0, prior, link="logistic")[1]
    assert not fit_point_task(problem, 0, prior, link="logistic", max_iter=1)[1]


def test_folds_judge_every_row_once_and_keep_a_row_on_one_side_for_all_tasks():
    problem = make_linear_tasks(np.ones((20, 1)), [np.arange(20), np.arange(5, 20)], [np.ones(20), np.ones(15)])
    folds = make_folds(problem, seed=0)
    assert len(folds) == 4
    np.testing.assert_array_equal(np.sort(np.concatenate([f.judged.rows[0] for f in folds])), np.arange(20))
    for fold in folds:
        assert not np.isin(fold.fitted.rows[0], fold.judged.rows[1]).any()
        assert fold.fitted.rows[1].size + fold.judged.rows[1].size == 15


@pytest.mark.parametrize(("best", "found"), [(1.0, 1.0), (31.0, 10**1.5), (0.001, 0.001), (1e9, 100.0)])
def test_the_climb_stops_at_the_least_loss_within_bounds(best, found):
    assert search_levels(lambda v: np.log(v / best) ** 2, 1.0, 9e-4, 150.0) == pytest.approx(found)
