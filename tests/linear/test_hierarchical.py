"""Partially pooled models against a sampler, a dense Gaussian posterior, and simulation from what they assume."""

import numpy as np
import pytest

import kinfolk
from kinfolk import HierarchicalClassifier, HierarchicalRegressor
from kinfolk.linear.inference import hierarchical, hierarchical_regression
from kinfolk.linear.inference.own_columns import MAX_OWN, choose_own_columns, room_for
from kinfolk.linear.inference.regression_statistics import Rows, Sums, statistics_of
from kinfolk.linear.model.logistic import average_rate, averages
from kinfolk.linear.model.predictive import quantiles
from kinfolk.linear.model.rows import lay_out_rows
from kinfolk.linear.model.scales import better_scales, first_pace
from kinfolk.linear.model.values import Hyper, Options
from kinfolk.linear.model.weights import Sites, weights_given_sites
from tests.linear.oracle import draw_polya_gamma, sample_weights


def tasks_of_labels(n_tasks, n_rows, n_columns, rng, spread=0.7):
    X = rng.normal(size=(n_tasks * n_rows, n_columns))
    task = np.repeat(np.arange(n_tasks), n_rows)
    weights = rng.normal(size=n_columns) + spread * rng.normal(size=(n_tasks, n_columns))
    own = 0.5 * rng.normal(size=n_tasks)
    y = (rng.logistic(size=len(X)) < own[task] + (X * weights[task]).sum(axis=1)).astype(float)
    return X, y, task


def test_the_oracles_polya_gamma_variables_have_their_mean_and_variance():
    c = np.full(20_000, 1.3)
    draws = draw_polya_gamma(c, np.random.default_rng(0))
    assert draws.mean() == pytest.approx(np.tanh(0.65) / 2.6, rel=0.01)
    variance = (np.sinh(1.3) - 1.3) / (4 * 1.3**3 * np.cosh(0.65) ** 2)
    assert draws.var() == pytest.approx(variance, rel=0.03)


def compare_with_the_sampler(n_rows, n_draws, tolerance):
    rng = np.random.default_rng(3)
    X, y, task = tasks_of_labels(5, n_rows, 2, rng)
    spread, scale = np.array([0.5, 0.6, 0.3]), np.array([5.0, 0.8, 0.8])
    table = np.column_stack([np.ones(len(X)), X])
    draws = sample_weights(table, y, task, 5, spread, scale, n_draws, rng)
    rows = lay_out_rows(X, y, None, task, 5, np.arange(3))
    hyper = Hyper(spread, 0.8)
    options = Options(tol=1e-6, learn_scales=False)
    after, fitted = hierarchical.infer(rows, hyper, options)
    assert after is hyper
    assert fitted.weights.means == pytest.approx(draws.mean(axis=0), abs=2 * tolerance)
    # Probabilities at new rows, averaged over the weights.
    new = rng.normal(size=(40, 2))
    asked = np.column_stack([np.ones(40), new])
    for t in range(5):
        found = average_rate(*fitted.weights.linear_predictors(asked, np.full(40, t)))
        exact = (1.0 / (1.0 + np.exp(-draws[:, t] @ asked.T))).mean(axis=0)
        assert found == pytest.approx(exact, abs=tolerance)


def test_two_rows_a_task_are_predicted_as_a_sampler_predicts_them():
    compare_with_the_sampler(2, 1_500, 0.025)


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [1, 2, 8, 32])
def test_probabilities_are_those_of_a_long_run_of_the_sampler(n_rows):
    compare_with_the_sampler(n_rows, 20_000, 0.012)


def test_weights_given_sites_are_those_of_one_large_gaussian():
    rng = np.random.default_rng(0)
    n_tasks, n_own, n_columns = 4, 2, 3
    spread, scale = np.array([0.4, 1.3]), np.array([2.0, 0.7, 0.9])
    parts = rng.normal(size=(n_tasks, 5, n_columns))
    A, c = parts.transpose(0, 2, 1) @ parts, rng.normal(size=(n_tasks, n_columns))
    found = weights_given_sites(Sites(A[:, :n_own], c[:, :n_own], A.sum(axis=0), c.sum(axis=0)), spread, scale)
    # All unknowns in one vector: the common weights, then the own ones of every task.
    size = n_columns + n_tasks * n_own
    precision, shift = np.diag(np.concatenate([scale**-2.0, *[spread**-2.0] * n_tasks])), np.zeros(size)
    reads = []
    for t in range(n_tasks):
        read = np.zeros((n_columns, size))
        read[:, :n_columns] = np.eye(n_columns)
        read[:n_own, n_columns + t * n_own : n_columns + (t + 1) * n_own] = np.eye(n_own)
        precision, shift = precision + read.T @ A[t] @ read, shift + read.T @ c[t]
        reads.append(read)
    covariance = np.linalg.inv(precision)
    mean = covariance @ shift
    assert found.means == pytest.approx(np.array([read @ mean for read in reads]))
    x = rng.normal(size=(n_tasks, 6, n_columns))
    wanted = [np.einsum("nc,cd,nd->n", x[t], reads[t] @ covariance @ reads[t].T, x[t]) for t in range(n_tasks)]
    assert found.variances(x, np.arange(n_tasks)) == pytest.approx(np.array(wanted))
    squares = (mean**2 + np.diag(covariance))[n_columns:].reshape(n_tasks, n_own)
    assert found.own_squares() == pytest.approx(squares)
    # The divergence between the two large Gaussians.
    prior = np.concatenate([scale, *[spread] * n_tasks])
    trace = ((mean**2 + np.diag(covariance)) / prior**2).sum()
    wanted = 0.5 * (trace - size - np.linalg.slogdet(covariance)[1] + 2 * np.log(prior).sum())
    assert found.moments().divergence(spread, scale) == pytest.approx(wanted)


def test_averages_over_a_gaussian_are_those_of_fine_quadrature():
    z = np.linspace(-10.0, 10.0, 20_001)
    density = np.exp(-0.5 * z**2) / np.exp(-0.5 * z**2).sum()
    for mean, variance in ((0.3, 0.5), (-2.0, 4.0), (5.0, 9.0)):
        at = mean + np.sqrt(variance) * z
        rate = 1.0 / (1.0 + np.exp(-at))
        found = averages(np.array([mean]), np.array([variance]))
        wanted = [density @ rate, density @ (rate * (1 - rate)), density @ np.logaddexp(0.0, at)]
        assert [float(part[0]) for part in found] == pytest.approx(wanted, abs=2e-3)
        assert average_rate(np.array([mean]), np.array([variance]))[0] == found.rate[0]


def test_the_scale_of_known_weights_is_the_mode_of_its_density():
    squares, width = np.array([[0.5], [1.5], [4.0]]), np.array([0.3])
    scale, pace = np.array([1.0]), first_pace(1)
    for _ in range(100):
        scale, pace = better_scales(scale, width, np.zeros(1, dtype=int), squares, np.ones((3, 1)), pace)
    grid = np.exp(np.linspace(-4, 3, 70_001))
    log_density = -3 * np.log(grid) - squares.sum() / (2 * grid**2) + np.log(grid) - np.log1p((grid / width) ** 2)
    assert scale[0] == pytest.approx(grid[log_density.argmax()], rel=1e-3)


def test_the_bound_rises_while_scales_are_held():
    X, y, task = tasks_of_labels(8, 6, 3, np.random.default_rng(1))
    rows = lay_out_rows(X, y, None, task, 8, np.arange(4))
    options = Options(tol=1e-8, learn_scales=False)
    _, fitted = hierarchical.infer(rows, Hyper(np.full(4, 0.5), 1.0), options)
    assert (np.diff(fitted.bound) >= -1e-9 * np.abs(fitted.bound[1:])).all()


def test_quantiles_are_those_of_students_t():
    from scipy.stats import t

    shape, rate, levels = np.array([3.0, 12.0]), np.array([2.0, 5.0]), np.array([0.05, 0.5, 0.95, 0.99])
    found = quantiles(np.array([1.0, -2.0]), np.zeros(2), shape, rate, levels)
    wanted = [[m + np.sqrt(b / a) * t(2 * a).ppf(q) for q in levels] for m, a, b in ((1.0, 3, 2), (-2.0, 12, 5))]
    assert found == pytest.approx(np.array(wanted), rel=0.02, abs=1e-6)


def covered(seed, n_tasks, n_rows):
    """Which new targets lie in 90% intervals, of known tasks and of new ones, where the model's story is true."""
    rng = np.random.default_rng(seed)
    n_new, n_columns = 3, 2
    task = np.repeat(np.arange(n_tasks + n_new), n_rows + 4)
    X = rng.normal(size=(len(task), n_columns))
    own = np.array([0.8, 0.4, 0.1]) * rng.normal(size=(n_tasks + n_new, n_columns + 1))
    weights = own + np.array([0.0, 0.5, -0.5])
    noise = np.sqrt(4.0 / rng.gamma(5.0, size=n_tasks + n_new))
    y = weights[task, 0] + (X * weights[task, 1:]).sum(axis=1) + 0.5 * noise[task] * rng.normal(size=len(task))
    train = (np.tile(np.arange(n_rows + 4), n_tasks + n_new) < n_rows) & (task < n_tasks)
    model = HierarchicalRegressor(new_tasks="expected").fit(X[train], y[train], task=task[train])
    low, high = model.predict_quantiles(X[~train], [0.05, 0.95], task=task[~train]).T
    inside = (low < y[~train]) & (y[~train] < high)
    return inside[task[~train] < n_tasks], inside[task[~train] >= n_tasks]


def check_coverage(n_data, n_tasks, n_rows):
    parts = [covered(seed, n_tasks, n_rows) for seed in range(n_data)]
    for known_or_new in (0, 1):
        shares = np.array([part[known_or_new].mean() for part in parts])
        error = max(shares.std(ddof=1) / np.sqrt(n_data), 0.01)
        # Scales are taken as known, which with few of them makes intervals of new tasks a little short.
        short = known_or_new / n_tasks
        assert -short - 3.0 * error < shares.mean() - 0.9 < 3.0 * error, (known_or_new, shares.mean(), error)


def test_intervals_cover_what_they_say():
    check_coverage(25, 20, 4)


@pytest.mark.slow
@pytest.mark.parametrize(("n_tasks", "n_rows"), [(20, 2), (20, 10), (100, 4)])
def test_intervals_cover_what_they_say_in_many_simulations(n_tasks, n_rows):
    check_coverage(200, n_tasks, n_rows)


def test_one_large_task_is_fitted_as_least_squares_fit_it():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = 4.0 + X @ [1.0, -2.0, 0.0] + 0.1 * rng.normal(size=500)
    exact = np.column_stack([np.ones(500), X]) @ np.linalg.lstsq(np.column_stack([np.ones(500), X]), y)[0]
    assert HierarchicalRegressor().fit(X, y).predict(X) == pytest.approx(exact, abs=0.01)


def test_scales_tell_which_columns_differ_between_tasks():
    rng = np.random.default_rng(2)
    X, task = rng.normal(size=(900, 2)), np.repeat(np.arange(60), 15)
    slope = rng.normal(size=60)
    y = slope[task] * X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=900)
    spread = dict(HierarchicalRegressor().fit(X, y, task=task).scales().iter_rows())
    unit = y.std() / X.std(axis=0)
    assert spread["0"] * unit[0] == pytest.approx(slope.std(), rel=0.1)
    assert spread["1"] * unit[1] < 0.1
    labels = (y + 0.5 * rng.logistic(size=900) > 0).astype(int)
    spread = dict(HierarchicalClassifier().fit(X, labels, task=task).scales().iter_rows())
    assert spread["0"] > 5 * spread["1"]


def test_of_many_columns_those_get_slopes_in_which_tasks_differ():
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(600, 40)), np.repeat(np.arange(30), 20)
    y = rng.normal(size=30)[task] * X[:, 31] + X[:, 0] + rng.normal(size=600)
    chosen = choose_own_columns(X, y, None, task, 30, np.arange(40), np.ones(40, dtype=bool))
    assert chosen.sum() == MAX_OWN
    assert chosen[31]
    few = np.arange(40) < 3
    assert choose_own_columns(X, y, None, task, 30, np.arange(40), few).tolist() == few.tolist()


def test_tasks_in_another_order_give_the_same_answers():
    X, y, task = tasks_of_labels(6, 5, 2, np.random.default_rng(0))
    names = np.array(["f", "e", "d", "c", "b", "a"])[task]
    one = HierarchicalClassifier().fit(X, y, task=task).predict_proba(X, task=task)
    other = HierarchicalClassifier().fit(X, y, task=names).predict_proba(X, task=names)
    assert one == pytest.approx(other, abs=1e-9)


def test_regression_noise_differs_between_tasks_where_the_data_say_so():
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(400, 1)), np.repeat(np.arange(20), 20)
    y = X[:, 0] + np.where(task < 10, 0.1, 2.0) * rng.normal(size=400)
    _, std = HierarchicalRegressor().fit(X, y, task=task).predict(np.zeros((2, 1)), task=[0, 19], return_std=True)
    assert std[0] < 0.3
    assert std[1] > 1.3


def test_regression_is_inferred_from_sums_alone():
    rng = np.random.default_rng(0)
    X, y, task = rng.normal(size=(30, 2)), rng.normal(size=30), np.repeat([0, 1, 2], 10)
    weighted = lay_out_rows(X, y, np.full(30, 2.0), task, 3, np.arange(3))
    twice = lay_out_rows(np.tile(X, (2, 1)), np.tile(y, 2), None, np.tile(task, 2), 3, np.arange(3))
    one, other = (hierarchical_regression.infer(rows)[1].weights for rows in (weighted, twice))
    assert one.means == pytest.approx(other.means)


def test_rows_say_what_their_sums_say_whether_tasks_have_fewer_than_own_columns_or_more():
    rng = np.random.default_rng(1)
    # One task has no row, two have fewer than the three own columns, one as many, the others more.
    task = np.repeat([0, 1, 3, 4, 5, 6], [1, 2, 3, 5, 9, 20])
    X, y = rng.normal(size=(40, 4)), rng.normal(size=40)
    rows = lay_out_rows(X, y, rng.uniform(0.5, 2.0, size=40), task, 7, np.arange(3))
    sums, themselves = Sums.of(rows), Rows.of(rows)
    precisions, spread, scale = rng.uniform(0.5, 2.0, size=7), np.array([0.7, 0.2, 1.5]), np.full(5, 0.9)
    for one, other in zip(sums.sites(precisions, 3), themselves.sites(precisions, 3), strict=True):
        assert one == pytest.approx(other)
    (moments, residual), (same, same_residual) = (each.learnt(precisions, spread, scale) for each in (sums, themselves))
    for one, other in zip(moments, same, strict=True):
        assert one == pytest.approx(other)
    assert residual == pytest.approx(same_residual)
    assert sums.n_rows == pytest.approx(themselves.n_rows)


def test_rows_are_kept_where_tasks_have_fewer_than_there_are_columns():
    rng = np.random.default_rng(1)
    y, task = rng.normal(size=40), np.repeat(np.arange(6), [2, 3, 5, 8, 10, 12])
    many, wide = (lay_out_rows(rng.normal(size=(40, n)), y, None, task, 6, np.arange(3)) for n in (3, 30))
    assert type(statistics_of(many)) is Sums
    assert type(statistics_of(wide)) is Rows


def test_tasks_have_weights_of_their_own_of_no_more_columns_than_there_is_room_for():
    rng = np.random.default_rng(0)
    X, y, task = rng.normal(size=(50, 12)), rng.normal(size=50), np.arange(50) % 25
    every = np.ones(12, dtype=bool)
    few = choose_own_columns(X, y, None, task, 25, np.arange(12), every)
    assert few.sum() == 12
    assert choose_own_columns(X, y, None, task, 400_000, np.arange(12), every).sum() == room_for(400_000, 12) == 4


def test_values_beside_a_number_have_a_scale_of_their_own_which_is_small_where_lines_are_straight():
    rng = np.random.default_rng(5)
    size, age = rng.normal(size=600), rng.integers(0, 11, size=600)
    task = np.repeat(np.arange(30), 20)

    def fitted(bend):
        y = (rng.logistic(size=600) < 2.0 * size + bend * ((age % 2) - 0.5)).astype(int)
        return HierarchicalClassifier(slopes="none").fit({"size": size, "age": age}, y, task=task)

    straight, bent = fitted(0.0), fitted(3.0)
    assert straight.hyper_[0].bends < 0.3 * straight.hyper_[0].common
    assert bent.hyper_[0].bends > 3.0 * straight.hyper_[0].bends


def test_a_table_without_whole_numbers_has_one_scale_of_common_weights(tmp_path):
    rng = np.random.default_rng(6)
    X, y, task = rng.normal(size=(60, 2)), rng.normal(size=60), np.repeat([0, 1, 2], 20)
    assert HierarchicalRegressor().fit(X, y, task=task).hyper_[0].bends is None
    X = np.column_stack([X, rng.integers(0, 6, size=60)])
    model = HierarchicalRegressor().fit(X, y, task=task)
    kinfolk.save(model, tmp_path / "it.kin")
    again = kinfolk.load(tmp_path / "it.kin", estimator=True)
    assert again.hyper_[0].bends == model.hyper_[0].bends > 0.0
    assert np.allclose(again.explain(X, task=task).everybody, model.explain(X, task=task).everybody)
