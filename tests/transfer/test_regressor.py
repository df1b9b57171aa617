"""TransferRegressor: it equals a member that is alone, covers what it says, and answers for every table."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from scipy.stats import t as student

import kinfolk
from kinfolk import HierarchicalRegressor, LICARegressor, TransferRegressor
from kinfolk.tasks.design import learn_design
from kinfolk.tasks.table import read_table
from kinfolk.transfer.held_out import HeldOutNumbers
from kinfolk.transfer.members import REGRESSORS, Told
from kinfolk.transfer.scales import WIDTHS, Mixture, learn_scales, mix
from kinfolk.transfer.sizes import SizeWeights


def any_table(seed, n_tasks=15, n_rows=20, noise=None):
    """Text, whole numbers and numbers with gaps; tasks differ in their means and in one weight."""
    rng = np.random.default_rng(seed)
    n = n_tasks * n_rows
    task = np.repeat([f"t{k}" for k in range(n_tasks)], n_rows)
    mean, weight = rng.normal(5.0, 2.0, n_tasks).repeat(n_rows), rng.normal(1.0, 0.7, n_tasks).repeat(n_rows)
    size, colour, count = rng.normal(size=n), rng.choice(["red", "blue", "grey"], n), rng.integers(0, 5, n)
    error = rng.normal(size=n) if noise is None else noise(rng, n)
    y = mean + weight * size + (colour == "red") * 1.5 + 0.2 * count + error
    X = pd.DataFrame({"size": np.where(rng.random(n) < 0.05, np.nan, size), "colour": colour, "count": count})
    return X, y, task


@pytest.fixture(scope="module")
def data():
    return any_table(0)


@pytest.fixture(scope="module")
def model(data):
    X, y, task = data
    return TransferRegressor(random_state=0).fit(X, y, task=task)


def test_where_all_members_but_one_are_excluded_the_average_has_that_models_means(data):
    X, y, task = data
    average = TransferRegressor({"it": LICARegressor(2, random_state=0)}, random_state=0).fit(X, y, task=task)
    matrix = learn_design(read_table(X)).encode(read_table(X))
    # Members learn from numbers in units of their deviation, as columns are.
    alone = LICARegressor(2, random_state=0).fit(matrix, (y - y.mean()) / y.std(), task=task)
    expected = y.mean() + y.std() * alone.predict(matrix, task=task)
    assert np.allclose(average.predict(X, task=task), expected, atol=1e-9)


def test_where_all_members_but_partial_pooling_are_excluded_the_average_has_its_means(data):
    X, y, task = data
    average = TransferRegressor(["partly pooled"], random_state=0).fit(X, y, task=task)
    alone = HierarchicalRegressor().fit(X, y, task=task)
    assert np.allclose(average.predict(X, task=task), alone.predict(X, task=task), atol=1e-6)


def test_the_pooled_member_is_partial_pooling_of_all_rows_as_one_task(tmp_path, data):
    X, y, task = data
    average = TransferRegressor(["pooled"], random_state=0).fit(X, y, task=task)
    one = np.zeros(len(y))
    alone = HierarchicalRegressor().fit(X, y, task=one)
    assert np.allclose(average.predict(X, task=task), alone.predict(X, task=one), atol=1e-6)
    kinfolk.save(average, tmp_path / "it.kin")
    loaded = kinfolk.load(tmp_path / "it.kin")
    assert np.array_equal(loaded.predict(X, task=task), average.predict(X, task=task))
    said = average.explain(X, task=task)
    assert np.allclose(said.own, 0.0)
    assert (said.everybody[:, 0] > 0.0).all()


def test_the_mean_is_the_members_means_averaged_by_the_weights_of_a_tasks_size(data, model):
    X, y, task = data
    predictor = model._predictor()
    asked = kinfolk.tasks.answering.receive_rows(X, model._average.known, task=task)
    means = [member.moments(coded)[0] for member, coded in predictor.coded_for_members(asked)]
    centre, size = y.mean(), y.std()
    expected = centre + size * (predictor.weights_of(asked.place).T * means).sum(axis=0)
    assert np.allclose(model.predict(X, task=task), expected)


@pytest.mark.parametrize(
    "noise",
    [None, lambda rng, n: rng.standard_t(3, n), lambda rng, n: rng.exponential(2.0, n)],
    ids=["normal", "heavy tails", "skewed"],
)
def test_nine_in_ten_numbers_lie_between_the_quantiles_that_say_so(noise):
    X, y, task = any_table(1, n_tasks=40, n_rows=40, noise=noise)
    train = np.arange(len(y)) % 40 < 12
    model = TransferRegressor(["sources", "pooled"], random_state=0).fit(X[train], y[train], task=task[train])
    found = model.predict_quantiles(X[~train], task=task[~train])
    covered = ((y[~train] >= found[:, 0]) & (y[~train] <= found[:, 2])).reshape(40, -1).mean(axis=1)
    error = covered.std(ddof=1) / np.sqrt(40)
    # Rows held out while learning are some hundreds themselves, which tell of the width to about a twentieth.
    assert abs(covered.mean() - 0.9) < 2 * error + 0.015
    assert (np.diff(found, axis=1) > 0).all()


def test_intervals_of_new_tasks_cover_too_and_are_wider():
    X, y, task = any_table(2, n_tasks=80, n_rows=15)
    known = np.arange(len(y)) < 60 * 15
    model = TransferRegressor(["sources", "pooled"], random_state=0, new_tasks="expected")
    model.fit(X[known], y[known], task=task[known])
    found = model.predict_quantiles(X[~known], task=task[~known])
    covered = ((y[~known] >= found[:, 0]) & (y[~known] <= found[:, 2])).reshape(20, -1).mean(axis=1)
    assert abs(covered.mean() - 0.9) < 2 * covered.std(ddof=1) / np.sqrt(20) + 0.03
    own = model.predict_quantiles(X[known], task=task[known])
    assert np.median(found[:, 2] - found[:, 0]) > 1.3 * np.median(own[:, 2] - own[:, 0])


def test_widths_are_learnt_from_errors_whatever_deviation_a_model_gave():
    rng = np.random.default_rng(3)
    error = student(4).rvs(4000, random_state=rng)
    said = np.full((4000, 1), 5.0)
    scales = learn_scales(error, np.zeros((4000, 1)), said, np.ones(4000), np.ones(4000))
    weight = np.tile(scales.known[0], (1, 1))
    found = Mixture(weight, np.zeros((1, len(WIDTHS))), 5.0 * WIDTHS[None])
    for level in (0.05, 0.5, 0.95):
        assert found.quantile(level)[0] == pytest.approx(student(4).ppf(level), abs=0.12)


def two_halves(seed, n=4000):
    """Targets that are sums of two things, and the mean and deviation of two models that each know one of them."""
    rng = np.random.default_rng(seed)
    parts = rng.normal(size=(n, 2))
    return parts.sum(axis=1) + 0.3 * rng.normal(size=n), parts, np.full((n, 2), np.sqrt(1.09))


def coverage(scales, believed, data, is_known):
    target, mean, deviation = data
    said = mix(believed, scales, mean, deviation, is_known)
    low, high = (said.quantile(scales.level(level, is_known)) for level in (0.05, 0.95))
    return (low < target) & (target < high)


def test_an_average_of_models_that_are_each_as_wide_as_their_errors_is_made_as_narrow_as_its_own():
    held_out, fresh = two_halves(0), two_halves(1)
    target, mean, deviation = held_out
    rows, half = np.ones(len(target)), np.full(mean.shape, 0.5)
    alone = learn_scales(target, mean, deviation, rows, rows)
    together = HeldOutNumbers(*held_out, rows, rows).pooled_scales(SizeWeights(np.ones(1), half[:1]))
    assert coverage(alone, half, fresh, rows > 0).mean() > 0.93
    assert coverage(together, half, fresh, rows > 0).mean() == pytest.approx(0.9, abs=0.012)
    # It is more probable as well.
    density = [
        np.log(density_of(mix(half, scales, *fresh[1:], rows > 0), fresh[0])).mean() for scales in (alone, together)
    ]
    assert density[1] > density[0] + 0.01


def density_of(said, target):
    return (said.weight * norm.pdf(target[:, None], said.mean, said.deviation)).sum(axis=1)


def test_new_tasks_have_widths_and_levels_of_their_own():
    target, mean, deviation = two_halves(2)
    new = np.arange(len(target)) % 2 == 0
    target = np.where(new, mean.mean(axis=1) + 5.0 * (target - mean.mean(axis=1)), target)
    rows, half = np.ones(len(target)), np.full((1, 2), 0.5)
    scales = HeldOutNumbers(target, mean, deviation, rows, (~new).astype(float)).pooled_scales(
        SizeWeights(rows[:1], half)
    )
    inside = coverage(scales, np.repeat(half, len(target), axis=0), (target, mean, deviation), ~new)
    assert inside[new].mean() == pytest.approx(0.9, abs=0.01)
    assert inside[~new].mean() == pytest.approx(0.9, abs=0.01)


def test_quantiles_of_skewed_errors_leave_as_many_on_either_side():
    rng = np.random.default_rng(5)
    error, rows = rng.exponential(size=4000) - 1.0, np.ones(4000)
    nothing = np.zeros((4000, 1)), np.ones((4000, 1))
    scales = HeldOutNumbers(error, *nothing, rows, rows).pooled_scales(SizeWeights(np.ones(1), np.ones((1, 1))))
    said = mix(np.ones((1, 1)), scales, np.zeros((1, 1)), np.ones((1, 1)), np.ones(1, dtype=bool))
    for level in (0.05, 0.5, 0.95):
        found = said.quantile(scales.level(level, np.ones(1, dtype=bool)))[0]
        assert found == pytest.approx(-np.log1p(-level) - 1.0, abs=0.1)


def test_quantiles_and_moments_of_a_mixture_are_those_of_its_gaussians():
    mixture = Mixture(np.array([[0.3, 0.7]]), np.array([[-1.0, 2.0]]), np.array([[0.5, 1.5]]))
    assert mixture.expected()[0] == pytest.approx(0.3 * -1.0 + 0.7 * 2.0)
    variance = 0.3 * (0.25 + 1.0) + 0.7 * (2.25 + 4.0) - 1.1**2
    assert mixture.standard_deviation()[0] == pytest.approx(np.sqrt(variance))
    for level in (0.05, 0.5, 0.99):
        value = mixture.quantile(level)[0]
        assert 0.3 * norm.cdf(value, -1.0, 0.5) + 0.7 * norm.cdf(value, 2.0, 1.5) == pytest.approx(level, abs=1e-6)


def test_interactions_are_believed_where_no_sum_of_features_predicts():
    rng = np.random.default_rng(4)
    X, task = rng.normal(size=(1000, 3)), np.arange(1000) % 25
    y = 3.0 * np.sign(X[:, 0] * X[:, 1]) + rng.normal(size=1000)
    assert TransferRegressor(random_state=0).fit(X, y, task=task).weights_["interactions"] > 0.8


def test_every_row_of_an_explanation_adds_up_to_the_expected_number(data, model):
    X, _, task = data
    rows, of = pd.concat([X[:20], X[:2]]), [*task[:20], "somebody new", "t1"]
    found = model.explain(rows, task=of)
    expected = model.predict(rows, task=of)
    assert np.allclose(found.expected(), expected)
    table = found.table(0)
    assert table["added"].iloc[:-1].sum() == pytest.approx(table["added"].iloc[-1])
    assert table["added"].iloc[-1] == pytest.approx(expected[0])
    assert table["feature"].tolist()[-2:] == ["(level)", "(total)"]
    assert len(found.table()) == 22 * len(table)
    assert found.feature_names[:3] == list(X.columns)
    assert np.allclose(found.own + found.kin + found.everybody + found.prior, 1.0)
    assert np.allclose(sum(found.weights.values()), 1.0)
    assert set(found.weights) == set(model.members_)
    assert repr(found).startswith("<Explanation of 22 rows: expected ")


@pytest.mark.parametrize("name", ["sources", "partly pooled", "pooled"])
def test_a_feature_that_alone_matters_has_all_that_is_added(name):
    rng = np.random.default_rng(6)
    X, task = rng.normal(size=(300, 2)), np.repeat(np.arange(6), 50)
    y = 7.0 + 3.0 * X[:, 0] + 0.1 * rng.normal(size=300)
    found = TransferRegressor([name], random_state=0).fit(X, y, task=task).explain(X[:40], task=task[:40])
    assert found.level == pytest.approx(np.full(40, y.mean()), abs=0.4)
    assert found.feature_part[:, 0] == pytest.approx(3.0 * (X[:40, 0] - X[:, 0].mean()), abs=0.1)
    assert found.feature_part[:, 1] == pytest.approx(np.zeros(40), abs=0.1)


def test_what_trees_see_in_several_features_is_one_line_of_the_explanation():
    rng = np.random.default_rng(4)
    X, task = rng.normal(size=(1000, 3)), np.arange(1000) % 25
    y = 3.0 * np.sign(X[:, 0] * X[:, 1]) + rng.normal(size=1000)
    model = TransferRegressor(["pooled", "interactions"], random_state=0).fit(X, y, task=task)
    found = model.explain(X[:50], task=task[:50])
    assert found.feature_names == ["0", "1", "2", "interactions"]
    assert (np.abs(found.feature_part).argmax(axis=1) == 3).mean() > 0.9
    assert found.everybody[:, 3].tolist() == [1.0] * 50


def test_a_saved_average_answers_the_same_and_is_the_same_estimator(tmp_path, data, model):
    X, _, task = data
    path = tmp_path / "model.kin"
    kinfolk.save(model, path)
    for again in (kinfolk.load(path), kinfolk.load(path, estimator=True)):
        assert np.array_equal(again.predict_quantiles(X, task=task), model.predict_quantiles(X, task=task))
        expected = model.predict(X, task=task, return_std=True)
        assert np.array_equal(again.predict(X, task=task, return_std=True), expected)
    explained = [each.explain(X[:5], task=task[:5]) for each in (model, kinfolk.load(path, estimator=True))]
    assert np.array_equal(*(found.feature_part for found in explained))


def test_units_of_the_target_do_not_matter():
    X, y, task = any_table(0, n_tasks=6, n_rows=12)
    made = [TransferRegressor(["sources", "interactions"], random_state=0).fit(X, u * y, task=task) for u in (1.0, 1e6)]
    one, other = (each.predict_quantiles(X[:20], task=task[:20]) for each in made)
    assert np.allclose(one, other / 1e6, atol=1e-3)


def test_rows_without_a_number_are_left_out():
    X, y, task = any_table(0, n_tasks=6, n_rows=12)
    some = np.where(np.arange(len(y)) % 7 == 0, np.nan, y)
    kept = ~np.isnan(some)
    gaps = TransferRegressor(["sources"], random_state=0).fit(X, some, task=task)
    alone = TransferRegressor(["sources"], random_state=0).fit(X[kept], y[kept], task=task[kept])
    assert np.allclose(gaps.predict(X, task=task), alone.predict(X, task=task))


def test_quantiles_are_taken_by_their_place(data, model):
    X, _, task = data
    found = model.predict_quantiles(X[:5], [0.25, 0.75], task=task[:5])
    assert np.array_equal(found, model.predict_quantiles(X[:5], quantiles=[0.25, 0.75], task=task[:5]))


def test_a_model_that_would_take_minutes_for_so_many_tasks_and_columns_is_not_among_the_members():
    common = {"task_column": None, "new_tasks": "warn"}
    assert REGRESSORS["sources"].suits(Told(common, 0, n_tasks=3_000, n_labels=0, n_columns=53))
    assert not REGRESSORS["sources"].suits(Told(common, 0, n_tasks=4_500, n_labels=0, n_columns=53))
    assert REGRESSORS["partly pooled"].suits(Told(common, 0, n_tasks=4_500, n_labels=0, n_columns=53))
    assert not REGRESSORS["partly pooled"].suits(Told(common, 0, n_tasks=34_000, n_labels=0, n_columns=160))


def test_text_for_a_number_is_refused(data):
    X, y, task = data
    with pytest.raises(ValueError, match="'high' in row 0"):
        TransferRegressor().fit(X, ["high", *y[1:].tolist()], task=task)


@pytest.mark.parametrize("quantiles", [0.0, [0.5, 1.0], [[0.5]]])
def test_quantiles_must_lie_between_zero_and_one(quantiles, data, model):
    X, _, task = data
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.predict_quantiles(X, quantiles, task=task)


def coverage_of_a_simulation(seed, n_tasks, n_rows, n_new=10, n_judged=4):
    """Shares of targets in 90 % intervals, of known tasks and of new ones, drawn from what partial pooling assumes."""
    rng = np.random.default_rng([seed, n_tasks, n_rows])
    n_every = n_tasks + n_new
    task = np.repeat(np.arange(n_every), n_rows + n_judged)
    X = rng.normal(size=(len(task), 2))
    weights = np.array([0.0, 0.5, -0.5]) + rng.normal(size=(n_every, 3)) * np.array([0.7, 0.4, 0.1])
    noise = 0.5 * np.sqrt(4.0 / rng.gamma(5.0, size=n_every))
    y = weights[task, 0] + (X * weights[task, 1:]).sum(axis=1) + noise[task] * rng.normal(size=len(task))
    train = (np.tile(np.arange(n_rows + n_judged), n_every) < n_rows) & (task < n_tasks)
    model = TransferRegressor(random_state=seed, new_tasks="expected").fit(X[train], y[train], task=task[train])
    low, high = model.predict_quantiles(X[~train], [0.05, 0.95], task=task[~train]).T
    inside, new = (low < y[~train]) & (y[~train] < high), task[~train] >= n_tasks
    return inside[~new].mean(), inside[new].mean()


@pytest.mark.slow
def test_intervals_cover_what_they_say_in_many_simulations():
    found = np.array([coverage_of_a_simulation(seed, 30, 8) for seed in range(30)])
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    # With thirty tasks, of which three are held out whole at a time, little is known of how new ones differ.
    assert (np.abs(found.mean(axis=0) - 0.9) < 2.0 * error + np.array([0.0, 0.01])).all()


def test_members_whose_columns_differ_are_asked_each_in_its_own_way(data):
    """Rows are coded once for members of the same columns; a place in memory that was freed tells nothing."""
    X, y, task = data
    members = {f"{n}": HierarchicalRegressor(slopes=["size"] if n % 2 else ["count"]) for n in range(6)}
    average = TransferRegressor(members, random_state=0).fit(X, y, task=task)
    one = TransferRegressor({"it": HierarchicalRegressor(slopes=["size"])}, random_state=0).fit(X, y, task=task)
    # Slopes of one column differ between tasks, so that the others are believed less.
    assert sum(weight for name, weight in average.weights_.items() if int(name) % 2) > 0.8
    assert np.abs(average.predict(X, task=task) - one.predict(X, task=task)).mean() < 0.3 * y.std()
