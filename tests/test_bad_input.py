"""Bad input: each kind behaves sensibly, or is refused in one sentence with the column, row or task in it."""

import datetime
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.base import clone

from kinfolk import ClusteredNB, CompleteSharingNB, NoSharingNB, UnseenWarning

NAN, INF = float("nan"), float("inf")
SAMPLING = {"n_chains": 1, "n_burn_in": 2, "n_draws": 3, "random_state": 0}
EVERY = [
    NoSharingNB(),
    CompleteSharingNB(),
    CompleteSharingNB(share_labels=False),
    ClusteredNB(),
    ClusteredNB(inference="exact"),
    ClusteredNB(inference="gibbs", **SAMPLING),
]
X = pd.DataFrame({"colour": ["red", "blue", "red", "blue"], "size": [0.5, 1.5, 2.5, 3.5]})
Y = ["no", "yes", "no", "yes"]
TASK = ["ann", "ann", "bob", "bob"]


@pytest.fixture(params=EVERY, ids=repr)
def model(request):
    return clone(request.param)


def assert_refused(call, *parts, error=ValueError):
    """The call fails with one sentence, on one line, that holds all the parts."""
    with pytest.raises(error) as refusal:
        call()
    sentence = str(refusal.value)
    assert "\n" not in sentence
    assert len(sentence) < 250, sentence
    for part in parts:
        assert part in sentence, sentence


# What is unusual but has a meaning.


def assert_sound(model, rows, task=None):
    proba = model.predict_proba(rows, task=task)
    assert np.isfinite(proba).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, atol=1e-12)
    assert np.isfinite(model.log_evidence_)
    return proba


def test_one_class_is_always_predicted(model):
    model.fit(X, ["yes"] * 4, task=TASK)
    np.testing.assert_array_equal(assert_sound(model, X, TASK), np.ones((4, 1)))
    assert model.predict(X, task=TASK).tolist() == ["yes"] * 4
    assert model.explain(X, task=TASK).log_odds().tolist() == [0.0] * 4


def test_one_task_is_a_team_of_one(model):
    model.fit(X, Y, task=["ann"] * 4)
    assert_sound(model, X, ["ann"] * 4)
    assert model.tasks_.tolist() == ["ann"]
    assert model.similarity_.tolist() == [[1.0]]
    assert model.partition_.tolist() == [0]


def test_a_task_with_one_row_is_a_task(model):
    model.fit(X, Y, task=["ann", "ann", "ann", "bob"])
    assert_sound(model, X, ["bob"] * 4)
    assert model.tasks_.tolist() == ["ann", "bob"]


def test_one_row_alone_is_a_table(model):
    assert_sound(model.fit(X[:1], Y[:1]), X)


def test_a_constant_feature_changes_nothing(model):
    expected = assert_sound(model.fit(X, Y, task=TASK), X, TASK)
    for constant in ("same", 1, 2.5, True):
        wider = X.assign(constant=constant)
        np.testing.assert_allclose(model.fit(wider, Y, task=TASK).predict_proba(wider, task=TASK), expected, atol=1e-12)


@pytest.mark.parametrize("missing", [None, NAN, pd.NA], ids=str)
def test_a_column_of_missing_values_changes_nothing(model, missing):
    expected = assert_sound(model.fit(X, Y, task=TASK), X, TASK)
    wider = X.assign(empty=pd.Series([missing] * 4, dtype=object))
    model.fit(wider, Y, task=TASK)
    np.testing.assert_allclose(assert_sound(model, wider, TASK), expected, atol=1e-12)
    later = X.assign(empty=["suddenly", "there", "is", "something"])
    np.testing.assert_allclose(model.predict_proba(later, task=TASK), expected, atol=1e-12)


def test_a_table_of_missing_values_leaves_the_label_rates(model):
    empty = pd.DataFrame({"a": [None] * 4, "b": [NAN] * 4})
    proba = assert_sound(model.fit(empty, Y, task=TASK), empty, TASK)
    np.testing.assert_allclose(proba, 0.5, atol=1e-12)


def test_a_task_without_labelled_rows_is_a_task():
    model = ClusteredNB(inference="exact").fit(X, ["no", "yes", None, None], task=TASK)
    assert model.tasks_.tolist() == ["ann", "bob"]
    assert_sound(model, X, ["bob"] * 4)


def test_numbers_of_any_size_are_binned():
    values = pd.DataFrame({"v": np.r_[-1e308, -1e-308, 0.5, 1e-308, 1e308]})
    assert_sound(NoSharingNB(bins=3).fit(values, [0, 1, 0, 1, 0]), values)


# Many categories.


def test_as_many_categories_as_fit_are_learnt_and_more_are_refused_by_column():
    limit = 65_536
    names = np.char.add("id", np.arange(limit + 1).astype(str)).astype(object)
    y = np.arange(limit + 1) % 2
    at_limit = pd.DataFrame({"fine": names[:limit]})
    named = NoSharingNB(categorical_features=["fine"])
    assert named.fit(at_limit, y[:limit]).predict(at_limit[:4]).tolist() == [0, 1, 0, 1]
    beyond = pd.DataFrame({"fine": 1, "customer": names})
    assert_refused(lambda: NoSharingNB().fit(beyond, y), "column 'customer'", "more than 65,536 different values")
    declared = pd.DataFrame({"customer": pd.Categorical(names[:2], categories=names)})
    assert_refused(lambda: NoSharingNB().fit(declared, [0, 1]), "column 'customer'", "65,537 categories")
    numbers = pd.DataFrame({"customer": np.arange(limit + 1)})
    assert_refused(
        lambda: NoSharingNB(categorical_features=["customer"]).fit(numbers, y), "column 'customer'", "65,536"
    )


def test_a_million_different_values_are_refused_in_no_time():
    n = 1_000_000
    ids = np.arange(n).astype(object)
    ids[0] = "an id"
    rows = pd.DataFrame({"customer": ids})
    start = time.perf_counter()
    assert_refused(lambda: NoSharingNB().fit(rows, np.arange(n) % 2), "column 'customer'")
    assert time.perf_counter() - start < 10.0


def test_a_million_different_whole_numbers_are_binned():
    n = 1_000_000
    rows = pd.DataFrame({"customer": np.random.default_rng(0).permutation(n)})
    model = NoSharingNB().fit(rows, np.arange(n) % 2)
    assert len(model.feature_rates()) == 2 * 8


def test_too_many_tasks_times_categories_are_refused_before_memory_is_asked_for():
    n = 60_000
    rows = pd.DataFrame({"word": np.char.add("w", np.arange(n).astype(str))})
    named = NoSharingNB(categorical_features=["word"])
    assert_refused(lambda: named.fit(rows, np.arange(n) % 2, task=np.arange(n)), "60,000 tasks", "too many")


def test_unseen_values_by_the_thousand_are_left_out():
    model = NoSharingNB().fit(X, Y)
    strange = pd.DataFrame({"colour": [f"c{i}" for i in range(5000)], "size": [NAN] * 5000})
    with pytest.warns(UnseenWarning, match="column 'colour' has no value that the model knows"):
        np.testing.assert_allclose(model.predict_proba(strange), 0.5)


# What is refused. Each case: what fit is given in place of the good arguments, and what the sentence must say.

REFUSED = {
    "no rows": ({"X": X[:0], "y": []}, "0 sample(s)"),
    "no rows, polars": ({"X": pl.DataFrame(X)[:0], "y": []}, "0 sample(s)"),
    "no rows, numpy": ({"X": np.empty((0, 2)), "y": []}, "0 sample(s)"),
    "no columns": ({"X": pd.DataFrame(index=range(4))}, "0 feature(s)"),
    "no labels at all": ({"y": [None] * 4}, "no row has a label"),
    "label is a feature": ({"X": X.assign(answer=Y), "y": pd.Series(Y, name="answer")}, "column 'answer'", "feature"),
    "label is a feature, polars": (
        {"X": pl.DataFrame(X.assign(answer=Y)), "y": pl.Series("answer", Y)},
        "column 'answer'",
        "feature",
    ),
    "label is a feature, some missing": (
        {"X": X.assign(answer=["no", None, "no", "yes"]), "y": pd.Series(["no", None, "no", "yes"], name="answer")},
        "column 'answer'",
        "feature",
    ),
    "infinite": ({"X": X.assign(size=[0.5, INF, 1.5, 2.5])}, "column 'size'", "row 1", "infinity"),
    "minus infinite": ({"X": X.assign(size=[0.5, 1.5, 2.5, -INF])}, "column 'size'", "row 3", "infinity"),
    "infinite, numpy": ({"X": np.array([[0.5, INF], [1.5, 2.5], [0.5, 1.5], [1.5, 2.5]])}, "column 1", "row 0"),
    "infinite among objects": (
        {"X": X.assign(size=pd.Series([0.5, None, INF, 2.5], dtype=object))},
        "column 'size'",
        "row 2",
    ),
    "task NaN": ({"task": np.array([1.0, NAN, 2.0, 2.0])}, "task", "row 1", "missing"),
    "task None": ({"task": ["ann", "ann", None, "bob"]}, "task", "row 2", "missing"),
    "task pandas.NA": ({"task": pd.Series(["ann", "ann", "bob", pd.NA])}, "task", "row 3", "missing"),
    "task infinite": ({"task": np.array([1.0, INF, 2.0, 2.0])}, "task", "row 1", "infinity"),
    "too few tasks": ({"task": ["ann", "bob"]}, "task", "2 entries for 4 rows"),
    "one task for all": ({"task": "ann"}, "task='ann' is a name", "task_column='ann'"),
    "tasks in a table": ({"task": np.array([TASK]).T}, "task must hold one value per row", "(4, 1)"),
    "negative weight": ({"sample_weight": [1, 1, -2, 1]}, "sample_weight, row 2", "-2.0"),
    "NaN weight": ({"sample_weight": [1, NAN, 1, 1]}, "sample_weight, row 1", "nan"),
    "missing weight": ({"sample_weight": [1, None, 1, 1]}, "sample_weight, row 1"),
    "infinite weight": ({"sample_weight": [1, 1, 1, INF]}, "sample_weight, row 3", "inf"),
    "a weight that no other counts beside": ({"sample_weight": [1, 1, 1e16, 1]}, "sample_weight, row 2", "1e+16"),
    "complex weights": ({"sample_weight": np.array([1j, 1, 1, 1])}, "sample_weight", "complex"),
    "all weights zero": ({"sample_weight": [0, 0, 0, 0]}, "sample_weight is zero in every row"),
    "too few weights": ({"sample_weight": [1, 1]}, "sample_weight", "(2,)", "(4,)"),
    "weights in a table": ({"sample_weight": np.ones((4, 1))}, "weights", "1D", "2D"),
    "only unlabelled rows weigh": ({"y": ["no", "yes", None, None], "sample_weight": [0, 0, 1, 1]}, "no row", "label"),
    "too few labels": ({"y": Y[:3]}, "[4, 3]"),
    "labels in a table": ({"y": np.array([Y, Y]).T}, "y must hold one value per row", "(4, 2)"),
    "no y": ({"y": None}, "requires y"),
    "dates as labels": ({"y": np.array(["2020-01-01"] * 4, dtype="M8[D]")}, "y", "dates or times"),
    "complex labels": ({"y": np.array([1j, 2, 3, 4])}, "y", "complex"),
    "infinite label": ({"y": np.array([0.0, 1.0, INF, 1.0])}, "y", "infinity", "row 2"),
    "one dimension": ({"X": X["colour"]}, "Expected 2D array, got 1D array instead"),
    "a number": ({"X": 3}, "Expected 2D array"),
    "three dimensions": ({"X": np.zeros((4, 2, 2))}, "dim 3"),
    "lazy": ({"X": pl.DataFrame(X).lazy()}, "lazy", ".collect()"),
    "dates": ({"X": X.assign(day=pd.to_datetime(["2020-01-01"] * 4))}, "column 'day'", "dates or times"),
    "dates, polars": (
        {"X": pl.DataFrame(X).with_columns(day=pl.Series([datetime.date(2020, 1, 1)] * 4))},
        "column 'day'",
        "dates or times",
    ),
    "durations": ({"X": X.assign(lasts=pd.to_timedelta([1, 2, 3, 4], unit="h"))}, "column 'lasts'", "dates or times"),
    "complex": ({"X": X.assign(wave=np.array([1j, 2, 3, 4]))}, "column 'wave'", "omplex"),
    "columns of different lengths": ({"X": {"a": [1, 2, 3, 4], "b": [1, 2]}}, "columns differ in length", "[2, 4]"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_rows_are_refused_in_one_sentence(case):
    changes, *parts = REFUSED[case]
    arguments = {"X": X, "y": Y, "task": TASK} | changes
    rows, y = arguments.pop("X"), arguments.pop("y")
    if case.startswith(("no rows", "no columns")):
        del arguments["task"]
    for model in (NoSharingNB(), ClusteredNB()):
        assert_refused(lambda model=model: model.fit(rows, y, **arguments), *parts)


@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.csc_array], ids=["matrix", "array"])
def test_a_sparse_table_is_refused(kind):
    assert_refused(lambda: NoSharingNB().fit(kind(np.eye(4)), Y), "sparse", "X.toarray()", error=TypeError)


def test_lists_in_cells_are_refused_by_column_in_training_and_later():
    rows = X.assign(tags=pd.Series([["a"], ["b"], ["a"], ["b"]], dtype=object))
    model = NoSharingNB().fit(X.assign(tags=["a", "b", "a", "b"]), Y)
    for call in (lambda: NoSharingNB().fit(rows, Y), lambda: model.predict_proba(rows)):
        assert_refused(call, "column 'tags'", "every cell must be one value")


@pytest.mark.parametrize("values", [[{"a": 1}] * 4, [{1}, {2}, {1}, {2}]], ids=["dicts", "sets"])
def test_nested_values_are_refused_by_column(values):
    rows = X.assign(tags=pd.Series(values, dtype=object))
    assert_refused(lambda: NoSharingNB().fit(rows, Y), "column 'tags'", "cannot be a category", error=TypeError)
    # Later they are only values that were never seen.
    model = NoSharingNB().fit(X.assign(tags=["a", "b", "a", "b"]), Y)
    np.testing.assert_allclose(model.predict_proba(rows), model.predict_proba(X.assign(tags=None)), atol=1e-12)


@pytest.mark.parametrize(
    "rows",
    [
        X.assign(tags=pd.Series([np.arange(2)] * 4, dtype=object)),
        pl.DataFrame(X).with_columns(tags=pl.Series([["a"], ["b", "c"], [], ["a"]])),
        pl.DataFrame(X).with_columns(tags=pl.Series([{"a": 1, "b": 2}] * 4)),
        pl.DataFrame(X).with_columns(tags=pl.Series([[1, 2]] * 4, dtype=pl.Array(pl.Int64, 2))),
    ],
    ids=["arrays", "polars lists", "polars struct", "polars arrays"],
)
def test_arrays_as_values_are_refused_by_column(rows):
    assert_refused(lambda: NoSharingNB().fit(rows, Y), "column 'tags'", error=(TypeError, ValueError))


@pytest.mark.parametrize(
    "values",
    [
        pd.to_datetime(["2020-01-01"] * 4).tz_localize("UTC"),
        [datetime.date(2020, 1, day) for day in (1, 2, 3, 4)],
        [datetime.datetime(2020, 1, day) for day in (1, 2, 3, 4)],
        [datetime.timedelta(day) for day in (1, 2, 3, 4)],
    ],
    ids=["with a time zone", "date objects", "datetime objects", "durations"],
)
def test_dates_in_any_guise_are_refused_by_column(values):
    rows = X.assign(day=pd.Series(values) if not isinstance(values, list) else pd.Series(values, dtype=object))
    assert_refused(lambda: NoSharingNB().fit(rows, Y), "column 'day'", "dates or times")


def test_dates_as_tasks_are_refused_whichever_way_they_come():
    days = np.array(["2020-01-01", "2020-01-02"] * 2, dtype="M8[ns]")
    assert_refused(lambda: NoSharingNB().fit(X, Y, task=days), "task", "dates or times")
    assert_refused(lambda: NoSharingNB(task_column="day").fit(X.assign(day=days), Y), "'day'", "dates or times")


@pytest.mark.parametrize("part", ["task", "y"])
def test_infinity_in_a_list_of_tasks_or_labels_is_refused(part):
    arguments = {"y": Y, "task": TASK} | {part: [1.0, 2.0, INF, 2.0]}
    assert_refused(lambda: NoSharingNB().fit(X, **arguments), part, "infinity", "row 2")


def test_weights_of_text_are_refused_by_name():
    assert_refused(lambda: NoSharingNB().fit(X, Y, sample_weight=["heavy", "light", "heavy", "light"]), "sample_weight")


def test_a_column_name_that_stands_twice_is_refused():
    twice = pd.DataFrame(np.ones((4, 2)), columns=["size", "size"])
    assert_refused(lambda: NoSharingNB().fit(twice, Y), "column 'size'", "twice")


@pytest.mark.parametrize("as_row", [list, tuple, np.array, pd.Series, pl.Series])
def test_rows_of_different_lengths_are_refused(as_row):
    rows = [as_row(row) for row in ([1, 1], [2], [1, 2], [2, 3])]
    assert_refused(lambda: NoSharingNB().fit(rows, Y), "row 1 has 1 values where row 0 has 2")


@pytest.mark.parametrize("parts", [[np.ones((2, 2)), np.ones(2)], [[1, 2], 3]])
def test_lists_of_different_things_are_refused_in_our_words(parts):
    assert_refused(lambda: NoSharingNB().fit(parts, [0, 1]), "the 2 parts of X differ in shape")


# A task column.

HELD = X.assign(who=TASK)


@pytest.mark.parametrize(
    ("column", "rows", "parts"),
    [
        ("whose", HELD, ("column 'whose'", "colour, size, who")),
        (3, HELD, ("column 3",)),
        (-4, HELD, ("column -4",)),
        ("who", HELD.to_numpy(), ("column 'who'", "no column names")),
        (1.5, HELD, ("column 1.5",)),
        (["who"], HELD, ("['who']",)),
        ("who", HELD[["who"]], ("0 feature(s)",)),
        ("who", HELD.assign(who=["ann", None, "bob", "bob"]), ("task column 'who'", "row 1", "missing")),
        ("who", HELD.assign(who=[1.0, 2.0, NAN, 1.0]), ("task column 'who'", "row 2", "missing")),
        ("who", HELD.assign(who=[1.0, 2.0, 3.0, INF]), ("column 'who'", "row 3", "infinity")),
    ],
    ids=str,
)
def test_a_task_column_that_cannot_be_is_refused(column, rows, parts):
    assert_refused(lambda: ClusteredNB(task_column=column).fit(rows, Y), *parts)


def test_a_task_given_twice_is_refused(model):
    model.set_params(task_column="who")
    assert_refused(lambda: model.fit(HELD, Y, task=TASK), "task=", "task_column='who'", "both given")
    model.fit(HELD, Y)
    assert_refused(lambda: model.predict(HELD, task=TASK), "both given")


# Parameters.

PARAMETERS = [
    ({"temper": 1.5}, "temper=1.5"),
    ({"temper": -0.1}, "temper=-0.1"),
    ({"temper": NAN}, "temper=nan"),
    ({"temper": "hot"}, "temper='hot'"),
    ({"temper": None}, "temper=None"),
    ({"bins": 0}, "bins=0"),
    ({"bins": -3}, "bins=-3"),
    ({"bins": 2.5}, "bins=2.5"),
    ({"bins": "many"}, "bins='many'"),
    ({"bins": None}, "bins=None"),
    ({"bins": [1.0, 2.0]}, "bins=[1.0, 2.0]"),
    ({"bins": {"size": 0}}, "column 'size'"),
    ({"bins": {"size": [2.0, 1.0]}}, "column 'size'"),
    ({"bins": {"size": [1.0, 1.0]}}, "column 'size'"),
    ({"bins": {"size": [1.0, NAN]}}, "column 'size'"),
    ({"bins": {"size": [1.0, INF]}}, "column 'size'"),
    ({"bins": {"size": [[1.0, 2.0]]}}, "column 'size'"),
    ({"bins": {"size": 2.5}}, "column 'size'"),
    ({"bins": {"size": None}}, "column 'size'"),
    ({"bins": {"size": "many"}}, "column 'size'"),
    ({"bins": {"weight": 3}}, "column 'weight'"),
    ({"bins": {"colour": 3}}, "column 'colour'"),
    ({"categorical_features": ["colour", "weight"]}, "column 'weight'"),
    ({"categorical_features": ["size"]}, "column 'colour'"),
    ({"categorical_features": [7]}, "column 7"),
    ({"categorical_features": [True]}, "categorical_features has 1 flags for 2 columns"),
    ({"categorical_features": "colour"}, "categorical_features='colour'"),
    ({"categorical_features": None}, "categorical_features=None"),
    ({"categorical_features": 1}, "categorical_features=1"),
    ({"label_prior": 0}, "label_prior=0"),
    ({"label_prior": -1.0}, "label_prior=-1.0"),
    ({"label_prior": NAN}, "label_prior=nan"),
    ({"label_prior": INF}, "label_prior=inf"),
    ({"label_prior": "flat"}, "label_prior='flat'"),
    ({"label_prior": [1, 2, 3]}, "label_prior has shape (3,) for 2 labels"),
    ({"label_prior": {"maybe": 1}}, "label_prior names 'maybe'"),
    ({"label_prior": {"yes": 0}}, "label_prior"),
    ({"feature_prior": 0}, "feature_prior=0"),
    ({"feature_prior": -1.0}, "feature_prior=-1.0"),
    ({"feature_prior": NAN}, "feature_prior=nan"),
    ({"feature_prior": "flat"}, "feature_prior='flat'"),
    ({"feature_prior": [1.0]}, "feature_prior has 1 items for 2 features"),
    ({"feature_prior": {"weight": 1.0}}, "column 'weight'"),
    ({"feature_prior": {"size": -1.0}}, "column 'size'"),
    ({"feature_prior": {"size": "flat"}}, "column 'size'"),
    ({"feature_prior": {"colour": [1.0, 2.0, 3.0]}}, "column 'colour'"),
    ({"n_chains": 0}, "n_chains=0"),
    ({"n_chains": 1.5}, "n_chains=1.5"),
    ({"n_chains": "four"}, "n_chains='four'"),
    ({"n_burn_in": -1}, "n_burn_in=-1"),
    ({"n_draws": 0}, "n_draws=0"),
    ({"n_draws": None}, "n_draws=None"),
    ({"random_state": "seed"}, "'seed'"),
]


@pytest.mark.parametrize(("parameters", "part"), PARAMETERS, ids=str)
def test_a_parameter_that_cannot_be_is_refused_by_name_and_value(parameters, part):
    for model in (NoSharingNB(), CompleteSharingNB(), ClusteredNB(inference="gibbs", **SAMPLING)):
        model.set_params(**parameters)
        assert_refused(lambda model=model: model.fit(X, Y, task=TASK), part)


@pytest.mark.parametrize(
    ("parameters", "part"),
    [
        ({"concentration": 0}, "concentration=0"),
        ({"concentration": -1.0}, "concentration=-1.0"),
        ({"concentration": NAN}, "concentration=nan"),
        ({"concentration": INF}, "concentration=inf"),
        ({"concentration": "large"}, "concentration='large'"),
        ({"concentration": None}, "concentration=None"),
        ({"inference": "magic"}, "inference='magic'"),
        ({"inference": None}, "inference=None"),
        ({"predictive": "best"}, "predictive='best'"),
    ],
    ids=str,
)
def test_a_parameter_of_clustering_that_cannot_be_is_refused_by_name_and_value(parameters, part):
    assert_refused(lambda: ClusteredNB(**parameters).fit(X, Y, task=TASK), part)


def test_exact_inference_is_for_ten_tasks_at_most():
    rows, y, task = np.tile([["a"], ["b"]], (11, 1)), [0, 1] * 11, np.repeat(np.arange(11), 2)
    model = ClusteredNB(inference="exact")
    model.fit(rows[:20], y[:20], task=task[:20])
    assert len(model.tasks_) == 10
    assert_refused(lambda: model.fit(rows, y, task=task), "at most 10 tasks, not 11", '"bhc" or "gibbs"')


def test_exact_inference_is_for_few_unlabelled_rows():
    rows, y = np.tile([["a"], ["b"]], (10, 1)), [0, 1] * 3 + [None] * 14
    model = ClusteredNB(inference="exact")
    assert_refused(lambda: model.fit(rows, y), "4,096 labellings", "14 unlabelled rows", '"gibbs"')
    model.fit(rows[:11], y[:11])
    assert model.label_distributions_.shape == (11, 2)


# Predicting.


@pytest.mark.parametrize(
    ("rows", "task", "parts"),
    [
        (X, None, ("2 tasks", "task=")),
        (X[["colour"]], TASK, ("size",)),
        (X.rename(columns={"size": "weight"}), TASK, ("weight",)),
        (X.assign(size=INF), TASK, ("column 'size'", "row 0", "infinity")),
        (X, TASK[:2], ("task has 2 entries for 4 rows",)),
        (X, ["ann", None, "bob", "bob"], ("task, row 1", "missing")),
        (X.assign(size=pd.to_datetime("2020-01-01")), TASK, ("column 'size'", "dates or times")),
        (X["colour"], TASK, ("Expected 2D array",)),
    ],
    ids=[
        "no task",
        "too few columns",
        "another name",
        "infinite",
        "few tasks",
        "no task id",
        "dates",
        "1-d",
    ],
)
def test_bad_rows_to_predict_are_refused(rows, task, parts, model):
    model.fit(X, Y, task=TASK)
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - the sentence is checked below
        model.predict(rows, task=task)
    assert all(part in str(refusal.value) for part in parts), str(refusal.value)


def test_no_rows_are_answered_by_no_rows(model):
    model.fit(X, Y, task=TASK)
    assert model.predict(X[:0], task=[]).tolist() == []
    assert model.predict_proba(X[:0], task=[]).shape == (0, 2)
