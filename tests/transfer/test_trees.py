"""Boosted trees: one tree against all cuts by brute force, many against scikit-learn, effects against closed forms."""

import numpy as np
import pytest
from scipy.special import betaln, expit
from sklearn.ensemble import GradientBoostingRegressor

from kinfolk.transfer.trees.boosting import LOGISTIC, SOFTMAX, SQUARED, Growth, boost
from kinfolk.transfer.trees.effects import label_effects, number_effects
from kinfolk.transfer.trees.forest import Forest
from kinfolk.transfer.trees.learning import learn_forest

PLAIN = Growth(depth=1, rate=1.0, ridge=0.0, least=1.0)


def test_one_cut_is_the_best_of_all_cuts():
    rng = np.random.default_rng(0)
    bins, y = rng.integers(0, 6, (40, 3)).astype(np.uint8), rng.normal(size=40)
    grown = boost(bins, y, np.zeros((40, 1)), np.ones(40), SQUARED, PLAIN, 1)

    def error(column, cut):
        right = bins[:, column] > cut
        return sum(((y[side] - y[side].mean()) ** 2).sum() for side in (right, ~right))

    cuts = [(j, b) for j in range(3) for b in range(5) if 0 < (bins[:, j] > b).sum() < 40]
    best = min(cuts, key=lambda cut: error(*cut))
    right = bins[:, best[0]] > best[1]
    assert (grown.column[0, 0, 0], grown.bin[0, 0, 0]) == best
    assert np.allclose(grown.leaf[0, 0], [y[~right].mean(), y[right].mean()])


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_trees_for_numbers_are_those_of_scikit_learn(depth):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 12, (200, 4)).astype(np.uint8)
    y = X[:, 0] * 1.0 - (X[:, 1] > 5) * X[:, 2] + rng.normal(size=200)
    growth = Growth(depth=depth, rate=0.3, ridge=0.0, least=1.0)
    grown = boost(X, y, np.full((200, 1), y.mean()), np.ones(200), SQUARED, growth, 5)
    theirs = GradientBoostingRegressor(n_estimators=5, learning_rate=0.3, max_depth=depth)
    forest = Forest("numbers", number_effects(np.zeros(200, int), y, np.ones(200), 1), {}, grown.column,
                    grown.bin + 0.5, grown.leaf)  # fmt: skip
    assert np.allclose(y.mean() + forest._leaves(X.astype(float)), theirs.fit(X, y).predict(X)[:, None], atol=1e-10)


@pytest.mark.parametrize(("kind", "n_outputs"), [(LOGISTIC, 1), (SOFTMAX, 3)])
def test_a_leaf_for_labels_is_one_step_of_newton(kind, n_outputs):
    y = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 1.0])
    bins = np.array([[0], [0], [0], [1], [1], [1]], dtype=np.uint8)
    offset = np.linspace(-1.0, 1.0, 6)[:, None] * np.arange(1, n_outputs + 1)
    growth = Growth(depth=1, rate=0.5, ridge=0.7, least=0.0)
    grown = boost(bins, y, offset, np.ones(6), kind, growth, 1)
    p = expit(offset) if n_outputs == 1 else np.exp(offset) / np.exp(offset).sum(axis=1, keepdims=True)
    hit = y[:, None] if n_outputs == 1 else y[:, None] == np.arange(n_outputs)
    for c in range(n_outputs):
        if grown.bin[0, c, 0] != 0:
            continue
        for k, rows in enumerate([slice(0, 3), slice(3, 6)]):
            slope, curvature = (hit - p)[rows, c].sum(), (p * (1 - p))[rows, c].sum()
            assert grown.leaf[0, c, k] == pytest.approx(0.5 * slope / (curvature + 0.7))
    assert (grown.bin[0] == 0).any()


def test_rows_of_negative_weight_are_not_learnt_from_and_make_the_loss():
    rng = np.random.default_rng(2)
    bins, y = rng.integers(0, 4, (60, 2)).astype(np.uint8), rng.integers(0, 2, 60).astype(float)
    weights = np.where(np.arange(60) < 40, 1.0, -1.0)
    grown = boost(bins, y, np.zeros((60, 1)), weights, LOGISTIC, Growth(most_trees=5), 3)
    alone = boost(bins[:40], y[:40], np.zeros((40, 1)), np.ones(40), LOGISTIC, Growth(most_trees=5), 3)
    assert np.array_equal(grown.leaf, alone.leaf)
    assert grown.loss[0] == pytest.approx(20 * np.log(2))


def test_effects_of_labels_are_rates_drawn_to_those_of_all_by_the_strength_of_the_highest_evidence():
    counts = np.array([[8.0, 2.0], [1.0, 9.0], [5.0, 5.0]])
    overall = (counts.sum(axis=0) + 0.5) / (counts.sum() + 1.0)

    def evidence(s):
        a = s * overall
        return sum(betaln(a[0] + n[0], a[1] + n[1]) - betaln(*a) for n in counts)

    strength = max(2.0 ** np.arange(-1, 11), key=evidence)
    rates = (counts + strength * overall) / (10 + strength)
    expected = np.append(np.log(rates[:, 1] / rates[:, 0]), np.log(overall[1] / overall[0]))
    assert np.allclose(label_effects(counts).values[:, 0], expected)


def test_effects_of_numbers_shrink_by_the_variances_within_and_between():
    rng = np.random.default_rng(3)
    place = np.repeat(np.arange(400), 5)
    truth = rng.normal(3.0, 1.0, 400)
    y = truth[place] + rng.normal(0.0, 2.0, 2000)
    effects = number_effects(place, y, np.ones(2000), 400).values[:, 0]
    means = y.reshape(400, 5).mean(axis=1)
    # Of a variance of 1 between and 4 within, five rows are believed by 1 / (1 + 4/5).
    slope = np.polyfit(means, effects[:400], 1)[0]
    assert slope == pytest.approx(1 / (1 + 4 / 5), abs=0.06)
    assert effects[400] == pytest.approx(3.0, abs=0.2)


def test_what_tasks_have_beside_the_trees_is_their_drawn_mean_of_what_trees_leave():
    rng = np.random.default_rng(7)
    task, bins = np.arange(120) % 10, rng.integers(0, 5, (120, 2)).astype(np.uint8)
    y = 2.0 * rng.normal(size=10)[task] + bins[:, 0] + rng.normal(size=120)
    grown = boost(bins, y, np.zeros((120, 1)), np.ones(120), SQUARED, PLAIN, 3, task, 10)
    forest = Forest("numbers", number_effects(task, y, np.ones(120), 10), {}, grown.column, grown.bin + 0.5, grown.leaf)
    left = y - forest._leaves(bins.astype(float))[:, 0]
    assert np.allclose(grown.of_tasks, number_effects(task, left, np.ones(120), 10).values[:, 0])


def test_trees_do_not_explain_by_a_column_what_is_its_tasks_own():
    """Tasks with large columns have small numbers, and within each task a larger column goes with a larger number."""
    rng = np.random.default_rng(8)
    level = rng.normal(size=100)
    place = np.repeat(np.arange(100), 20)
    x = level[place] + 0.5 * rng.normal(size=2000)
    y = x - 6.0 * level[place] + 0.1 * rng.normal(size=2000)
    forest = learn_forest(x[:, None], place, y, np.ones(2000), n_tasks=100, n_labels=0, n_levels={}, seed=0)
    low, high = forest.score(np.array([[-0.5], [0.5]]), np.zeros(2, dtype=np.int64))[:, 0]
    assert high - low == pytest.approx(1.0, abs=0.35)


def test_trees_find_a_product_of_two_columns_that_no_sum_shows():
    rng = np.random.default_rng(4)
    X, place = rng.normal(size=(3000, 3)), np.arange(3000) % 20
    y = (rng.random(3000) < expit(3.0 * np.sign(X[:, 0] * X[:, 1]))).astype(np.int64)
    given = {"n_tasks": 20, "n_labels": 2, "n_levels": {}, "seed": 0}
    forest = learn_forest(X[:2000], place[:2000], y[:2000], np.ones(2000), **given)
    right = (forest.score(X[2000:], place[2000:])[:, 0] > 0) == y[2000:]
    assert right.mean() > 0.9


def test_a_missing_number_has_a_side_of_its_own():
    rng = np.random.default_rng(5)
    gone = rng.random(800) < 0.4
    X = np.where(gone, np.nan, rng.normal(size=800))[:, None]
    y = (rng.random(800) < np.where(gone, 0.9, 0.1)).astype(np.int64)
    place = np.zeros(800, dtype=np.int64)
    forest = learn_forest(X, place, y, np.ones(800), n_tasks=1, n_labels=2, n_levels={}, seed=0)
    asked = np.array([[np.nan], [0.0]])
    found = expit(forest.score(asked, np.zeros(2, dtype=np.int64))[:, 0])
    assert found[0] > 0.8
    assert found[1] < 0.2


def test_labels_that_only_chance_made_grow_hardly_any_tree():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(600, 5)), rng.integers(0, 2, 600)
    place = np.arange(600) % 30
    forest = learn_forest(X, place, y, np.ones(600), n_tasks=30, n_labels=2, n_levels={}, seed=0)
    p = expit(forest.score(X, place))
    assert np.abs(p - 0.5).max() < 0.2
