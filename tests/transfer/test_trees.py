"""Boosted trees: one tree against all cuts by brute force, many against scikit-learn, effects against closed forms."""

import numpy as np
import pytest
from scipy.special import betaln, expit
from sklearn.ensemble import GradientBoostingRegressor

from kinfolk.transfer.trees.boosting import LOGISTIC, SOFTMAX, SQUARED, Growth, boost
from kinfolk.transfer.trees.crossed import Groups
from kinfolk.transfer.trees.effects import label_effects, number_effects
from kinfolk.transfer.trees.forest import Forest
from kinfolk.transfer.trees.growing import cells_of
from kinfolk.transfer.trees.learning import learn_forest

PLAIN = Growth(depth=1, rate=1.0, ridge=0.0, least=1.0)


def test_one_cut_is_the_best_of_all_cuts():
    rng = np.random.default_rng(0)
    bins, y = rng.integers(0, 6, (40, 3)).astype(np.uint8), rng.normal(size=40)
    grown = boost(cells_of(bins), y, np.zeros((40, 1)), np.ones(40), SQUARED, PLAIN, 1)

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
    grown = boost(cells_of(X), y, np.full((200, 1), y.mean()), np.ones(200), SQUARED, growth, 5)
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
    grown = boost(cells_of(bins), y, offset, np.ones(6), kind, growth, 1)
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
    grown = boost(cells_of(bins), y, np.zeros((60, 1)), weights, LOGISTIC, Growth(most_trees=5), 3)
    alone = boost(cells_of(bins[:40]), y[:40], np.zeros((40, 1)), np.ones(40), LOGISTIC, Growth(most_trees=5), 3)
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
    grown = boost(cells_of(bins), y, np.zeros((120, 1)), np.ones(120), SQUARED, PLAIN, 3, Groups.of([(task, 10)], 120))
    forest = Forest("numbers", number_effects(task, y, np.ones(120), 10), {}, grown.column, grown.bin + 0.5, grown.leaf)
    left = y - forest._leaves(bins.astype(float))[:, 0]
    effects = number_effects(task, left, np.ones(120), 10).values[:, 0]
    assert np.allclose(grown.effects[:-1] + grown.effects[-1], effects[:-1], atol=1e-3)
    assert grown.effects[-1] == pytest.approx(effects[-1], abs=1e-3)


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


def test_a_column_that_is_mostly_one_value_is_cut_as_scikit_learn_cuts_it():
    rng = np.random.default_rng(9)
    X = np.where(rng.random((300, 6)) < 0.9, 3, rng.integers(0, 8, (300, 6))).astype(np.uint8)
    y = X[:, 0] * 1.0 - (X[:, 1] > 3) * X[:, 2] + 0.1 * rng.normal(size=300)
    grown = boost(cells_of(X), y, np.full((300, 1), y.mean()), np.ones(300), SQUARED,
                  Growth(depth=4, rate=0.5, ridge=0.0, least=1.0), 4)  # fmt: skip
    theirs = GradientBoostingRegressor(n_estimators=4, learning_rate=0.5, max_depth=4, random_state=0).fit(X, y)
    forest = Forest("numbers", number_effects(np.zeros(300, int), y, np.ones(300), 1), {}, grown.column,
                    grown.bin + 0.5, grown.leaf)  # fmt: skip
    assert np.allclose(y.mean() + forest._leaves(X.astype(float))[:, 0], theirs.predict(X), atol=1e-10)


def of_many_kinds(rng, n_rows=2000, n_kinds=60):
    """A column of noise and one of kinds, each of which has a level of its own; tasks of several sizes have theirs."""
    level, of_kind = rng.normal(size=20), 2.0 * rng.normal(size=n_kinds)
    place, kind = rng.choice(20, n_rows, p=np.arange(1, 21) / 210), rng.integers(0, n_kinds, n_rows)
    X = np.column_stack([rng.normal(size=n_rows), kind])
    return X, place, level[place] + of_kind[kind] + 0.3 * rng.normal(size=n_rows), of_kind


def test_kinds_of_which_there_are_many_have_intercepts_of_their_own_and_one_never_seen_has_none():
    X, place, y, of_kind = of_many_kinds(np.random.default_rng(10))
    forest = learn_forest(X, place, y, np.ones(2000), n_tasks=20, n_labels=0, n_levels={1: 60}, seed=0)
    assert list(forest.crossed) == [1]
    found = forest.crossed[1].values[:, 0]
    assert found[60] == 0.0
    asked = np.column_stack([np.zeros(60), np.arange(60)])
    answer = forest.score(asked, np.zeros(60, dtype=np.int64))[:, 0]
    assert np.allclose(answer - answer.mean(), of_kind - of_kind.mean(), atol=0.35)
    # What trees say of a kind, which is in a column of theirs too, comes beside the intercept.
    without = forest._replace(crossed={}).score(asked, np.zeros(60, dtype=np.int64))[:, 0]
    assert np.allclose(answer - without, found[:60])
    gone = np.array([[0.0, np.nan]])
    assert forest.score(gone, np.zeros(1, int)) == forest._replace(crossed={}).score(gone, np.zeros(1, int))


def test_few_kinds_are_left_to_the_trees():
    X, place, y, _ = of_many_kinds(np.random.default_rng(11), n_kinds=20)
    forest = learn_forest(X, place, y, np.ones(2000), n_tasks=20, n_labels=0, n_levels={1: 20}, seed=0)
    assert not forest.crossed
    assert list(forest.sizes) == [-1]


def test_the_same_seed_learns_the_same_trees_and_another_one_others():
    X, place, y, _ = of_many_kinds(np.random.default_rng(12))
    y += np.abs(X[:, 0])
    given = {"n_tasks": 20, "n_levels": {1: 60}}
    for target, n_labels in ((y, 0), ((y > 0).astype(np.int64), 2)):
        one, same, other = (
            learn_forest(X, place, target, np.ones(2000), n_labels=n_labels, seed=seed, **given).score(X, place)
            for seed in (0, 0, 1)
        )
        assert np.array_equal(one, same)
        assert not np.array_equal(one, other)


def test_trees_see_how_many_other_rows_a_task_has():
    """Tasks of one row are low, of two rows high: one more row of a task of one is like the rows of a task of two."""
    rng = np.random.default_rng(13)
    size = np.repeat([1, 2], 400)
    place = np.repeat(np.arange(800), size)
    y = np.where(size[place] == 1, -1.0, 1.0) + 0.3 * rng.normal(size=len(place))
    X = rng.normal(size=(len(place), 1))
    forest = learn_forest(X, place, y, np.ones(len(y)), n_tasks=800, n_labels=0, n_levels={}, seed=0)
    with_sizes = forest._leaves(np.array([[0.0, 0.0, n] for n in (0.0, 2.0)]))[:, 0]
    assert with_sizes[1] - with_sizes[0] > 1.2
    of_one, new = forest.score(np.zeros((2, 1)), np.array([0, 800]))[:, 0]
    assert new < -0.5
    assert of_one - forest.effects.values[0, 0] == pytest.approx(with_sizes[1])


def test_intercepts_of_labels_have_as_much_left_over_as_their_prior_holds_them_back_by():
    """Penalised quasi-likelihood at rest: residuals of a group's rows add up to its effect over the variance.

    Trees that go nowhere leave it time.
    """
    rng = np.random.default_rng(14)
    task, kind = rng.integers(0, 12, 600), rng.integers(0, 40, 600)
    y = (rng.random(600) < expit(rng.normal(size=12)[task] + rng.normal(size=40)[kind])).astype(float)
    groups = Groups.of([(task, 12), (kind, 40)], 600)
    cells = cells_of(np.zeros((600, 1), dtype=np.uint8))
    grown = boost(cells, y, np.zeros((600, 1)), np.ones(600), LOGISTIC, Growth(rate=0.0), 60, groups)
    a, b, mean = grown.effects[:12], grown.effects[12:52], grown.effects[52]
    left = y - expit(mean + a[task] + b[kind])
    for effects, of_task in ((a, np.bincount(task, left)), (b, np.bincount(kind, left))):
        # One variance for all: what is left is in proportion to the effects.
        assert np.corrcoef(effects, of_task)[0, 1] > 0.999
    assert left.sum() == pytest.approx(mean / 9.0, abs=1e-3)
