"""Models held against each other: the verdict is that of the numbers, and the numbers are those of rows held out."""

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

import kinfolk
from kinfolk.transfer.comparison import CLASSIFIERS, REGRESSORS, evaluate, judge, mean_and_error
from kinfolk.transfer.contenders import Indicators, Part

FEW = ["alone", "pooled", "task-feature", "clustered"]


def make_kin(n_tasks=100, n_rows=4, seed=0):
    """Tasks of two kinds: what speaks for a label in those of the first speaks against it in those of the second."""
    rng = np.random.default_rng(seed)
    task = np.repeat(np.arange(n_tasks), n_rows)
    y = rng.choice(["go", "stop"], len(task))
    speaks = ((y == "stop") == (task < n_tasks // 2))[:, np.newaxis] == (rng.random((len(task), 5)) < 0.8)
    X = pd.DataFrame(np.where(speaks, "red", "blue"), columns=list("abcde"))
    return X, y, np.array([f"task {t}" for t in task])


@pytest.fixture(scope="module")
def kin():
    X, y, task = make_kin()
    return evaluate(X, y, task=task, models=FEW)


def test_sharing_is_found_to_help_where_tasks_are_kin(kin):
    assert kin.best == "clustered"
    assert kin.sharing_helps is True
    assert "Take 'clustered'" in kin.verdict
    assert "Sharing helps here" in kin.verdict
    assert kin.verdict in repr(kin)


def test_sharing_is_not_said_to_help_where_one_model_of_all_rows_is_right():
    X, _, task = make_kin()
    y = np.where(X["a"] == "red", "stop", "go")
    found = evaluate(X, y, task=task, models=FEW)
    assert found.sharing_helps is not True


def test_losses_are_those_of_rows_held_out_by_the_splitter(kin):
    X, y, task = make_kin()
    expected = []
    for train, test in kinfolk.TaskKFold(5, random_state=0).split(X, y, task=task):
        model = kinfolk.NoSharingNB(random_state=0).fit(X.iloc[train], y[train], task=task[train])
        proba = model.predict_proba(X.iloc[test], task=task[test])
        expected.append(-np.log(proba[np.arange(len(test)), model.classes_.searchsorted(y[test])]).mean())
    np.testing.assert_allclose(kin.losses["alone"], expected, rtol=1e-9)


def test_whole_tasks_are_held_out_where_new_ones_are_asked_about():
    X, _, task = make_kin(20, 6)
    # What a task's kind is cannot be known before its first label; what "a" means is the same for all.
    y = np.where(X["a"] == "red", "stop", "go")
    found = evaluate(X, y, task=task, models=[*FEW, "lica", "logistic-alone"], hold_out="tasks", n_folds=4)
    expected = []
    for train, test in kinfolk.LeaveTasksOut(5, random_state=0).split(X, y, task=task):
        assert not set(task[train]) & set(task[test])
        model = kinfolk.CompleteSharingNB(random_state=0).fit(X.iloc[train], y[train], task=task[train])
        proba = model.predict_proba(X.iloc[test], task=task[test])
        expected.append(-np.log(proba[np.arange(len(test)), model.classes_.searchsorted(y[test])]).mean())
    np.testing.assert_allclose(found.losses["pooled"], expected, rtol=1e-9)
    assert found.losses["alone"].mean() > 3 * found.losses["pooled"].mean()
    assert "on tasks held out" in found.verdict
    # Nothing is said of new tasks, which were meant; what cannot answer is named.
    assert found.notes == ("logistic-alone is left out: it says nothing of a task that it has not learnt from",)
    with pytest.raises(ValueError, match="n_folds=30 parts of tasks are needed, and 20 tasks have labels"):
        evaluate(X, y, task=task, models=["alone"], hold_out="tasks", n_folds=30)
    with pytest.raises(ValueError, match="hold_out='all': one of 'rows', 'tasks' is needed"):
        evaluate(X, y, task=task, hold_out="all")


def test_the_order_of_rows_does_not_hold_whole_tasks_out(kin):
    X, y, task = make_kin()
    order = np.random.default_rng(1).permutation(len(y))
    shuffled = evaluate(X.iloc[order], y[order], task=task[order], models=["alone"])
    assert np.mean(shuffled.losses["alone"]) == pytest.approx(np.mean(kin.losses["alone"]), rel=0.2)


@pytest.mark.parametrize("form", ["polars", "array", "task column", "mapping"])
def test_tables_of_all_kinds_give_the_same_numbers(kin, form):
    X, y, task = make_kin()
    given = {"X": X, "task": task}
    if form == "polars":
        given = {"X": pl.from_pandas(X), "task": pl.Series(task)}
    elif form == "array":
        given["X"] = X.to_numpy(dtype=object)
    elif form == "mapping":
        given["X"] = {name: X[name].tolist() for name in X}
    else:
        given = {"X": X.assign(who=task), "task_column": "who"}
    found = evaluate(y=y, models=FEW, **given)
    for name in FEW:
        np.testing.assert_allclose(found.losses[name], kin.losses[name], rtol=1e-9)
    frame = pd.DataFrame if form == "task column" else pl.DataFrame
    assert isinstance(found.table(), frame)
    assert found.table()["model"].to_list()[0] == "clustered"


def test_results_repeat_and_do_not_depend_on_the_number_of_jobs(kin):
    X, y, task = make_kin()
    with joblib.parallel_config("threading"):
        again = evaluate(X, y, task=task, models=FEW, n_jobs=2)
    for name in FEW:
        np.testing.assert_array_equal(again.losses[name], kin.losses[name])


def test_all_models_of_labels_run_and_learn(recwarn):
    X, y, task = make_kin(4, 16)
    found = evaluate(X.assign(size=np.arange(64.0)), y, task=task, n_folds=2)
    assert set(found.losses) == set(CLASSIFIERS)
    assert not recwarn.list
    assert all(np.isfinite(losses).all() for losses in found.losses.values())
    for way in ("lica", "logistic-alone", "averaged"):
        assert found.losses[way].mean() < found.losses["logistic-pooled"].mean()


def test_rows_without_a_label_are_learnt_from_and_never_tested():
    X, y, task = make_kin(8, 12)
    some = y.astype(object)
    some[::6] = None
    found = evaluate(X, some, task=task, models=["alone", "logistic-alone", "clustered"], n_folds=2)
    assert np.isfinite(found.losses["alone"]).all()
    assert any("unlabelled" in note for note in found.notes)
    marked = evaluate(X, np.where(some == None, "?", some), task=task, models=["alone"], unlabelled="?", n_folds=2)  # noqa: E711
    np.testing.assert_allclose(marked.losses["alone"], found.losses["alone"])


def test_a_model_that_cannot_be_used_is_left_out_by_name():
    X, y, task = make_kin(8, 12)
    three = np.where(np.arange(96) % 7 == 0, "maybe", y)
    found = evaluate(X, three, task=task, models=["lica", "alone", "pooled"], n_folds=2)
    assert set(found.losses) == {"alone", "pooled"}
    assert found.sharing_helps is None
    assert any(note.startswith("lica is left out: it tells two labels apart") for note in found.notes)
    with pytest.raises(ValueError, match="no model could be compared: lica is left out"):
        evaluate(X, three, task=task, models=["lica"], n_folds=2)


def test_numbers_are_predicted_by_linear_models():
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(6), 10)
    X = rng.normal(size=(60, 4))
    y = (X @ [1.0, -1.0, 0.5, 0.0]) * np.where(task < 3, 1.0, -1.0) + 0.3 * rng.normal(size=60)
    found = evaluate(X, y, task=task, n_folds=2)
    assert set(found.losses) == set(REGRESSORS)
    assert (found.measure, found.quality) == ("mean squared error", "R²")
    assert found.best in ("lica", "transfer")
    assert found.losses["ridge-alone"].mean() < found.losses["ridge-pooled"].mean()
    whole = evaluate(X, np.round(y), task=task, target="number", models=["ridge-pooled"], n_folds=2)
    assert set(whole.losses) == {"ridge-pooled"}


def test_the_error_is_that_of_nadeau_and_bengio():
    values = np.array([1.0, 2.0, 4.0])
    mean, error = mean_and_error(values)
    assert mean == pytest.approx(7 / 3)
    # (1/J + n_test/n_train) S², with J = 3 folds of which each trains on two others (their eq. 9).
    assert error == pytest.approx(np.sqrt((1 / 3 + 1 / 2) * np.var(values, ddof=1)))


@pytest.mark.parametrize(
    ("behind", "helps", "said"),
    [
        ([0.1, 0.12, 0.1, 0.11, 0.1], True, "Sharing helps here"),
        ([-0.1, -0.12, -0.1, -0.11, -0.1], False, "Sharing does not help here"),
        ([0.1, -0.12, 0.1, -0.11, 0.1], None, "may be chance"),
    ],
)
def test_the_verdict_follows_the_paired_differences(behind, helps, said):
    folds = np.array([0.5, 0.9, 0.2, 0.7, 0.4])
    losses = {"kin": folds, "one": folds + behind}
    found, verdict = judge(losses, {"kin": "sharing", "one": "pooled"}, "log loss")
    assert found is helps
    assert said in verdict
    assert verdict.startswith("Take 'one'" if helps is False else "Take 'kin'")


def test_linear_models_see_numbers_in_units_of_their_deviation_and_categories_as_indicators():
    columns = {"size": np.array([1.0, 3.0, np.nan]), "colour": np.array(["red", None, "blue"], dtype=object)}
    read = Indicators.of(columns)
    np.testing.assert_allclose(read(columns), [[-1, 0, 1], [1, 0, 0], [0, 1, 0]])
    unseen = {"size": np.array([2.0]), "colour": np.array(["green"], dtype=object)}
    np.testing.assert_allclose(read(unseen), [[0, 0, 0]])


def test_logistic_regression_alone_is_one_of_each_task():
    X, y, task = make_kin(3, 12)
    codes = (y == "stop").astype(np.int64)
    part = Part({name: X[name].to_numpy(dtype=object) for name in X}, codes, task)
    found = CLASSIFIERS["logistic-alone"].learn(part, 2, 0)(part)
    own = task == "task 1"
    design = Indicators.of({name: column[own] for name, column in part.columns.items()})
    rows = design({name: column[own] for name, column in part.columns.items()})
    alone = LogisticRegression(max_iter=1_000).fit(rows, codes[own]).predict_proba(rows)
    np.testing.assert_allclose(found[own], (12 * alone + 1) / 14)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"task": None}, "task= or task_column="),
        ({"models": ["best"]}, "models='best'"),
        ({"models": "alone"}, "models='alone'"),
        ({"models": []}, r"models=\[\]"),
        ({"n_folds": 1}, "n_folds=1"),
        ({"target": "both"}, "target='both'"),
        ({"y": ["no"] * 36}, "every label is the same"),
        ({"y": ["no"] * 3}, "inconsistent numbers"),
        ({"y": [None] * 36}, "no row has a label"),
    ],
)
def test_what_cannot_be_compared_gets_one_sentence(given, told):
    X, y, task = make_kin(3, 12)
    with pytest.raises(ValueError, match=told):
        evaluate(**({"X": X, "y": y, "task": task} | given))


def test_an_estimator_of_ones_own_is_compared_by_copies_of_it_and_what_it_predicted_is_kept():
    X, y, task = make_kin(20)
    mine = kinfolk.ClusteredNB(random_state=0, task_column="task").fit(X.assign(task=task), y)
    before = mine.predict_proba(X.assign(task=task))
    found = evaluate(X, y, task=task, models=["clustered", "alone"], estimators={"mine": mine})
    np.testing.assert_allclose(found.losses["mine"], found.losses["clustered"], rtol=1e-9)
    assert found.ways["mine"] == "sharing"
    proba = found.predictions["mine"]
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    own = proba[np.arange(len(y)), found.classes.searchsorted(y)]
    np.testing.assert_allclose(-np.log(own).mean(), found.losses["mine"].mean(), rtol=1e-9)  # folds of one size
    np.testing.assert_array_equal(before, mine.predict_proba(X.assign(task=task)))


def test_predictions_of_numbers_are_kept_row_by_row():
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(60, 2)), np.repeat(["a", "b", "c"], 20)
    y = X[:, 0] + rng.normal(size=60)
    mine = kinfolk.LICARegressor(random_state=0)
    found = evaluate(X, y, task=task, models=["ridge-alone"], estimators={"mine": mine})
    assert found.classes is None
    np.testing.assert_allclose(((found.predictions["mine"] - y) ** 2).mean(), found.losses["mine"].mean(), rtol=1e-9)
