"""The door: the same rows give the same model, whichever library, type or form they come in."""

import functools

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from kinfolk import ClusteredNB, CompleteSharingNB, NoSharingNB

NAN = float("nan")
RNG = np.random.default_rng(3)
N_ROWS = 150
TASK = RNG.choice(["ann", "bob", "eve"], N_ROWS)
LABEL = RNG.choice(["no", "yes"], N_ROWS)
SHIFT = (LABEL == "yes").astype(int) + (TASK == "eve")


def some_missing(values):
    return [None if gone else value for value, gone in zip(values.tolist(), RNG.random(len(values)) < 0.1, strict=True)]


COLUMNS = {
    "colour": some_missing(RNG.choice(["red", "green", "blue"], N_ROWS)),
    "count": some_missing(RNG.integers(0, 4, N_ROWS) + SHIFT),
    "number": (RNG.permutation(2 * N_ROWS)[:N_ROWS] + 40 * SHIFT).tolist(),
    "flag": some_missing(RNG.random(N_ROWS) < 0.3 + 0.2 * SHIFT),
    "size": some_missing(RNG.normal(SHIFT, 1.0)),
}
ARROW_TYPES = {
    "colour": pa.string(),
    "count": pa.int64(),
    "number": pa.int64(),
    "flag": pa.bool_(),
    "size": pa.float64(),
}
PANDAS_TYPES = {"colour": "string", "count": "Int64", "number": "Int64", "flag": "boolean", "size": "Float64"}


def as_objects():
    table = np.empty((N_ROWS, len(COLUMNS)), dtype=object)
    for f, values in enumerate(COLUMNS.values()):
        table[:, f] = values
    return table


def with_nan():
    """Plain pandas columns: missing text is NaN, whole numbers with missing ones are floats."""
    return pd.DataFrame({name: [NAN if value is None else value for value in COLUMNS[name]] for name in COLUMNS})


FORMS = {
    "pandas": pd.DataFrame(COLUMNS),
    "pandas objects": pd.DataFrame(COLUMNS, dtype=object),
    "pandas with NaN": with_nan(),
    "pandas nullable": pd.DataFrame(COLUMNS).astype(PANDAS_TYPES),
    "pandas arrow": pa.table(COLUMNS).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.DataFrame(COLUMNS),
    "pyarrow": pa.table(COLUMNS, schema=pa.schema(ARROW_TYPES)),
    "mapping": {name: np.array(values, dtype=object) for name, values in COLUMNS.items()},
    "numpy objects": as_objects(),
}
MODELS = [
    NoSharingNB(),
    CompleteSharingNB(),
    ClusteredNB(),
    ClusteredNB(inference="exact"),
    ClusteredNB(inference="gibbs", n_chains=1, n_burn_in=5, n_draws=5, random_state=0),
]


def proba(model, X, y=LABEL, task=TASK, **options):
    return model.fit(X, y, task=task, **options).predict_proba(X, task=task)


@functools.cache
def expected():
    return proba(NoSharingNB(), FORMS["polars"])


def test_the_example_has_categories_bins_and_something_to_find():
    rates = NoSharingNB().fit(FORMS["polars"], LABEL, task=TASK).feature_rates()
    values = rates.group_by("feature").agg(pl.col("value").n_unique())
    n_values = dict(zip(values["feature"], values["value"], strict=True))
    assert n_values == {"colour": 3, "count": 6, "number": 8, "flag": 2, "size": 8}
    assert expected()[np.arange(N_ROWS), (LABEL == "yes").astype(int)].mean() > 0.6


@pytest.mark.parametrize("form", FORMS)
def test_every_kind_of_table_gives_the_same_predictions(form):
    np.testing.assert_allclose(proba(NoSharingNB(), FORMS[form]), expected(), rtol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_a_model_fitted_to_one_kind_of_table_predicts_another(form):
    model = NoSharingNB().fit(FORMS["pandas"], LABEL, task=TASK)
    if form == "numpy objects":
        with pytest.warns(UserWarning, match="X does not have valid feature names"):
            found = model.predict_proba(FORMS[form], task=TASK)
    else:
        found = model.predict_proba(FORMS[form], task=TASK)
    np.testing.assert_allclose(found, expected(), rtol=1e-12)


@pytest.mark.parametrize("names", ["ba", "az"])
def test_columns_of_a_mapping_are_held_to_the_names_and_order_seen_at_fit(names):
    X = {"a": ["p", "q", "p", "q"], "b": ["q", "q", "p", "p"]}
    model = NoSharingNB().fit(X, ["no", "yes", "no", "yes"])
    with pytest.raises(ValueError, match=r"(?i)feature names|column"):
        model.predict(dict(zip(names, X.values(), strict=True)))


def test_numpy_arrays_of_numbers_and_of_text_are_tables_too():
    numbers = RNG.normal(size=(N_ROWS, 2)) + SHIFT[:, None]
    as_frame = pd.DataFrame(numbers, columns=["a", "b"])
    np.testing.assert_allclose(proba(NoSharingNB(), numbers), proba(NoSharingNB(), as_frame), rtol=1e-12)
    text = RNG.choice(["x", "y", "zz"], (N_ROWS, 2))
    expected = proba(NoSharingNB(), pl.DataFrame({"a": text[:, 0], "b": text[:, 1]}))
    for form in (text, text.astype(object), text.tolist()):
        np.testing.assert_allclose(proba(NoSharingNB(), form), expected, rtol=1e-12)


@pytest.mark.parametrize("missing", [None, NAN], ids=str)
def test_numpys_own_strings_are_text_with_missing_values(missing):
    text = np.array([["x"], ["y"], [missing], ["y"]], dtype=np.dtypes.StringDType(na_object=missing))
    rates = NoSharingNB(feature_prior=1.0).fit(text, [0, 1, 0, 1]).feature_rates()
    assert rates["value"].to_list() == ["x", "y"] * 2
    assert rates["probability"].to_list() == pytest.approx([2 / 3, 1 / 3, 1 / 4, 3 / 4])


@pytest.mark.parametrize(
    "make",
    [
        lambda values: pd.DataFrame({"grade": pd.Categorical(values, categories=["low", "mid", "high", "never"])}),
        lambda values: pl.DataFrame({"grade": pl.Series(values, dtype=pl.Enum(["low", "mid", "high", "never"]))}),
    ],
    ids=["pandas Categorical", "polars Enum"],
)
def test_a_declared_category_that_no_row_has_takes_its_share_of_the_prior(make):
    X = make(["low", "mid", "low", "high"])
    rates = NoSharingNB(feature_prior=1.0).fit(X, [0, 0, 0, 1]).feature_rates()
    found = dict(zip(zip(rates["label"], rates["value"], strict=True), rates["probability"], strict=True))
    # Dirichlet(1, 1, 1, 1) and counts (2, 1, 0, 0) or (0, 0, 1, 0): posterior means (n + 1) / (N + 4).
    assert found[0, "low"] == pytest.approx(3 / 7)
    assert found[0, "never"] == pytest.approx(1 / 7)
    assert found[1, "high"] == pytest.approx(2 / 5)
    assert found[1, "never"] == pytest.approx(1 / 5)


def test_polars_categoricals_give_what_plain_text_gives():
    text = pl.DataFrame({"colour": COLUMNS["colour"]})
    declared = text.with_columns(pl.col("colour").cast(pl.Categorical))
    np.testing.assert_allclose(proba(NoSharingNB(), declared), proba(NoSharingNB(), text), rtol=1e-12)


def test_missing_values_of_pyarrow_dictionaries_are_missing():
    text = pa.table({"colour": COLUMNS["colour"]})
    coded = pa.table({"colour": text["colour"].dictionary_encode()})
    np.testing.assert_allclose(proba(NoSharingNB(), coded), proba(NoSharingNB(), text), rtol=1e-12)


def test_missing_labels_in_pyarrow_dictionaries_are_missing():
    labels = pa.chunked_array([["no", "yes", None, "yes"]]).dictionary_encode()
    model = ClusteredNB(inference="exact").fit([["a"], ["b"], ["a"], ["b"]], labels)
    assert model.label_rates("ml")["probability"].to_list() == pytest.approx([1 / 3, 2 / 3])


@pytest.mark.parametrize(
    ("form", "library"),
    [("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("pyarrow", pa.Table), ("numpy objects", pl.DataFrame)],
)
def test_tables_come_out_in_the_library_and_the_names_that_went_in(form, library):
    model = ClusteredNB().fit(FORMS[form], LABEL, task=TASK)
    tables = [
        model.label_rates(),
        model.feature_rates(),
        model.feature_rates(by="task"),
        model.log_ratios(),
        model.explain(FORMS[form], task=TASK).table(0),
    ]
    assert [type(table) for table in tables] == [library] * 5
    labels, clusters, tasks, ratios, explained = (
        pl.DataFrame(t.to_dict("list") if library is pd.DataFrame else t, strict=False) for t in tables
    )
    names = [str(f) for f in range(5)] if form == "numpy objects" else list(COLUMNS)
    assert labels.columns == ["task", "label", "probability"]
    assert labels["task"].unique().sort().to_list() == ["ann", "bob", "eve"]
    assert labels["label"].unique().sort().to_list() == ["no", "yes"]
    assert clusters.columns == ["cluster", "label", "feature", "value", "probability"]
    assert clusters["feature"].unique(maintain_order=True).to_list() == names
    assert tasks["task"].unique(maintain_order=True).to_list() == ["ann", "bob", "eve"]
    assert {"blue", "green", "red", "True", "False"} <= set(tasks["value"])
    assert ratios.columns == ["cluster", "feature", "value", "log_ratio"]
    assert sorted(explained["feature"][:-3]) == sorted(names)
    assert explained["feature"][-3:].to_list() == ["(label rates)", "(rest)", "(total)"]


LABELS = {
    "text": ["no", "yes"],
    "whole numbers": [3, 7],
    "negative numbers": [-1, 1],
    "booleans": [False, True],
    "mixed": [1, "yes"],
    "text like numbers": ["0", "1"],
    "tuples": [(1, 2), (3, 4)],
}


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_labels_of_any_type_come_back_as_they_went_in(kind, model):
    first, second = LABELS[kind]
    y = [first, second] * 10
    X, task = [["a"], ["b"]] * 10, [0] * 10 + [1] * 10
    model.fit(X, y, task=task)
    assert model.classes_.tolist() == [first, second]
    predicted = model.predict(X, task=task).tolist()
    assert predicted == y
    assert {type(label) for label in predicted} == {type(first), type(second)}
    assert model.score(X, y, task=task) == 1.0


def test_labels_may_come_from_a_series_of_any_library():
    X, y = [["a"], ["b"]] * 4, ["no", "yes"] * 4
    for labels in (pd.Series(y), pd.Series(y, dtype="category"), pl.Series(y), pa.array(y), np.array(y), tuple(y)):
        model = NoSharingNB().fit(X, labels)
        assert model.classes_.tolist() == ["no", "yes"]
        assert model.predict(X).tolist() == y


@pytest.mark.parametrize("y", [np.array([0.0, 1.0]), np.array([0.0, 1.0, NAN]), [0.5, 1.5]], ids=str)
def test_float_labels_come_back_as_numbers_that_equal_them(y):
    model = ClusteredNB(inference="exact").fit([["a"], ["b"], ["b"]][: len(y)], y)
    assert model.classes_.tolist() == list(y)[:2]
    assert model.predict([["b"]]).dtype.kind in "if"


UNLABELLED = {
    "None": ([None, "no", "yes"], None),
    "NaN": ([NAN, "no", "yes"], None),
    "pandas.NA": ([pd.NA, "no", "yes"], None),
    "a mark": (["?", "no", "yes"], "?"),
    "NaN among floats": (np.array([NAN, 0.0, 1.0]), None),
    "a number": (np.array([-1, 0, 1]), -1),
    "a number among objects": ([-1, 0, 1], -1),
}


@pytest.mark.parametrize("kind", UNLABELLED)
def test_unlabelled_rows_count_alike_however_they_are_marked(kind):
    marks, unlabelled = UNLABELLED[kind]
    which = RNG.integers(1, 3, 24)
    which[::6] = 0
    X = pd.DataFrame({"a": np.where(which == 2, "p", "q"), "b": np.arange(24) % 3})
    task = np.arange(24) % 3

    def fitted(marks, unlabelled):
        y = marks[which] if isinstance(marks, np.ndarray) else [marks[w] for w in which]
        return ClusteredNB(inference="exact", unlabelled=unlabelled).fit(X, y, task=task)

    model, expected = fitted(marks, unlabelled), fitted([None, "no", "yes"], None)
    assert model.log_evidence_ == pytest.approx(expected.log_evidence_, abs=1e-12)
    np.testing.assert_allclose(model.label_distributions_, expected.label_distributions_, atol=1e-14)
    assert (np.abs(model.label_distributions_[::6] - 0.5) < 0.5).all()
    assert np.isin(model.label_distributions_[which > 0], [0.0, 1.0]).all()
    expected_label = [list(marks)[1:][c] for c in expected.label_distributions_.argmax(axis=1)]
    assert model.transduction_.tolist() == expected_label


def test_minus_one_is_a_label_until_it_is_named():
    X, y = [["a"], ["b"], ["a"], ["b"]], [-1, 1, -1, 1]
    assert NoSharingNB().fit(X, y).classes_.tolist() == [-1, 1]
    model = ClusteredNB(inference="exact", unlabelled=-1).fit(X, y)
    assert model.classes_.tolist() == [1]


TASKS = {
    "whole numbers": [5, 10, 7],
    "text": ["u", "v", "w"],
    "mixed": [3, "v", "w"],
    "booleans and text": [True, "v", "w"],
    "fractions": [0.5, 1.5, 2.5],
    "tuples": [("a", 1), ("a", 2), ("b", 1)],
}


@pytest.mark.parametrize("kind", TASKS)
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_task_ids_of_any_type_name_the_same_tasks(kind, model):
    names = TASKS[kind]
    task = [names[i] for i in np.unique(TASK, return_inverse=True)[1]]
    np.testing.assert_allclose(proba(model, FORMS["pandas"], task=task), proba(model, FORMS["pandas"]), rtol=1e-11)
    model.fit(FORMS["pandas"], LABEL, task=task)
    assert sorted(model.tasks_.tolist(), key=repr) == sorted(names, key=repr)


@pytest.mark.parametrize(
    "make",
    [
        list,
        np.array,
        pd.Series,
        lambda t: pd.Series(t, dtype="category"),
        lambda t: pl.Series(t, dtype=pl.Categorical),
        pa.array,
        pd.Index,
    ],
    ids=["list", "array", "pandas", "pandas categories", "polars categories", "pyarrow", "index"],
)
def test_tasks_may_come_from_a_series_of_any_library(make):
    task = make(TASK.tolist())
    np.testing.assert_allclose(proba(NoSharingNB(), FORMS["pandas"], task=task), expected(), rtol=1e-12)


def test_whole_number_float_tasks_are_the_integers_they_equal():
    number = np.unique(TASK, return_inverse=True)[1] + 1
    ways = [number, number.astype(float), number.astype(float).tolist(), pd.Series(number, dtype="Int64")]
    for fitted_with in ways:
        model = NoSharingNB().fit(FORMS["pandas"], LABEL, task=fitted_with)
        assert model.tasks_.tolist() == [1, 2, 3]
        for asked_with in ways:
            np.testing.assert_allclose(model.predict_proba(FORMS["pandas"], task=asked_with), expected(), rtol=1e-12)


@pytest.mark.parametrize(
    "task",
    [
        np.array([1.0, 2.0]),
        pd.Series([1.0, 2.0]),
        [1.0, 2.0],
    ],
    ids=["array", "series", "list"],
)
def test_whole_number_float_tasks_are_reported_as_integers(task):
    model = NoSharingNB().fit([["a"], ["b"]], [0, 1], task=task)
    assert [type(task) for task in model.tasks_.tolist()] == [int, int]


@pytest.mark.parametrize("form", ["pandas", "polars", "pyarrow", "mapping", "numpy objects"])
def test_a_task_column_equals_the_same_tasks_given_by_hand(form):
    X = FORMS[form]
    if form == "numpy objects":
        held, column = np.column_stack([X[:, :2], TASK.astype(object), X[:, 2:]]), 2
    elif form == "pyarrow":
        held, column = X.append_column("who", pa.array(TASK)), "who"
    elif form == "polars":
        held, column = X.with_columns(pl.Series("who", TASK)), "who"
    elif form == "pandas":
        held, column = X.assign(who=TASK), "who"
    else:
        held, column = {"who": TASK, **X}, "who"
    model = NoSharingNB(task_column=column).fit(held, LABEL)
    np.testing.assert_allclose(model.predict_proba(held), expected(), rtol=1e-12)
    assert model.tasks_.tolist() == ["ann", "bob", "eve"]


def test_a_task_column_can_be_given_by_its_position_in_a_frame():
    held = FORMS["pandas"].assign(who=TASK)
    np.testing.assert_allclose(NoSharingNB(task_column=-1).fit(held, LABEL).predict_proba(held), expected(), rtol=1e-12)


@pytest.mark.parametrize("way", [[2], [False, False, True]], ids=["position", "flags"])
def test_positions_of_columns_are_those_of_the_table_with_its_task_column(way):
    X = np.column_stack([np.arange(200) % 2, np.arange(200), np.arange(200)])
    model = NoSharingNB(task_column=0, categorical_features=way).fit(X, np.arange(200) % 3)
    rates = model.feature_rates()
    assert rates.filter(pl.col("feature") == "1")["value"].n_unique() == 8
    assert rates.filter(pl.col("feature") == "2")["value"].n_unique() == 200


WEIGHTS = np.random.default_rng(5).integers(0, 4, N_ROWS)


@pytest.mark.parametrize("model", [*MODELS[:-1], CompleteSharingNB(share_labels=False)], ids=repr)
def test_a_row_of_weight_w_counts_as_w_rows(model):
    X, rows = FORMS["pandas"], np.repeat(np.arange(N_ROWS), WEIGHTS)
    model.fit(X, LABEL, task=TASK, sample_weight=WEIGHTS)
    weighted = model.predict_proba(X, task=TASK), model.log_evidence_, model.feature_rates()["value"].tolist()
    model.fit(X.iloc[rows], LABEL[rows], task=TASK[rows])
    np.testing.assert_allclose(weighted[0], model.predict_proba(X, task=TASK), rtol=1e-11)
    assert weighted[1] == pytest.approx(model.log_evidence_, abs=1e-9)
    assert weighted[2] == model.feature_rates()["value"].tolist()


def with_strange_rows(form):
    """The table with rows of weight zero in front, behind and between, that have everything otherwise unseen."""
    strange = {"colour": ["mauve"], "count": [99], "number": [-(10**6)], "flag": [None], "size": [1e9]}
    keep, columns = np.insert(np.arange(N_ROWS), [0, 70, N_ROWS], -1), {}
    for name, values in COLUMNS.items():
        column = np.array([*values, *strange[name]], dtype=object)[keep].tolist()
        columns[name] = column
    label, task = np.append(LABEL, "maybe")[keep], np.append(TASK, "zoe")[keep]
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table, "mapping": dict}[form]
    if form == "mapping":
        columns = {name: np.array(column, dtype=object) for name, column in columns.items()}
    return make(columns), label, task, (keep >= 0).astype(float)


@pytest.mark.parametrize("form", ["pandas", "polars", "pyarrow", "mapping"])
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_rows_of_weight_zero_have_no_effect_at_all(form, model):
    X, label, task, weights = with_strange_rows(form)
    model.fit(X, label, task=task, sample_weight=weights)
    found = model.predict_proba(FORMS[form], task=TASK), model.log_evidence_
    names = list(model.feature_rates()["value"])
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.tasks_.tolist() == ["ann", "bob", "eve"]
    assert len(model.label_distributions_) == len(label)
    model.fit(FORMS[form], LABEL, task=TASK)
    np.testing.assert_allclose(found[0], model.predict_proba(FORMS[form], task=TASK), rtol=1e-11)
    assert found[1] == pytest.approx(model.log_evidence_, abs=1e-9)
    assert names == list(model.feature_rates()["value"])


def test_rows_of_weight_zero_have_no_effect_on_polars_categoricals():
    X = pl.DataFrame({"colour": pl.Series(["red", "blue", "mauve"], dtype=pl.Categorical)})
    model = NoSharingNB().fit(X, [0, 1, 1], sample_weight=[1, 1, 0])
    assert sorted(set(model.feature_rates()["value"])) == ["blue", "red"]


@pytest.mark.parametrize("model", [NoSharingNB(), CompleteSharingNB(), ClusteredNB(inference="exact")], ids=repr)
def test_an_unlabelled_row_of_weight_zero_is_left_out_but_gets_a_prediction(model):
    X, y, task = [["a"], ["b"], ["a"]], ["no", "yes", None], ["u", "u", "u"]
    model.fit(X, y, task=task, sample_weight=[1, 1, 0])
    alone = model.log_evidence_
    expected = model.predict_proba([["a"]], task=["u"])
    np.testing.assert_allclose(model.label_distributions_[2:], expected, atol=1e-14)
    assert model.fit(X[:2], y[:2], task=task[:2]).log_evidence_ == pytest.approx(alone, abs=1e-12)


def test_one_number_as_sample_weight_serves_every_row():
    X = FORMS["pandas"]
    np.testing.assert_allclose(
        proba(NoSharingNB(), X, sample_weight=2.0),
        proba(NoSharingNB(), X, sample_weight=np.full(N_ROWS, 2)),
        rtol=1e-12,
    )


def test_zeros_and_ones_are_taken_for_the_booleans_seen_in_training():
    model = NoSharingNB().fit(pd.DataFrame({"flag": [True, False, True, False]}), ["t", "f", "t", "f"])
    assert model.predict(pd.DataFrame({"flag": [1, 0]})).tolist() == ["t", "f"]
    assert model.predict(pd.DataFrame({"flag": [1.0, 0.0]})).tolist() == ["t", "f"]


def test_an_integer_column_with_missing_values_only_at_prediction_has_the_same_categories():
    X = pd.DataFrame({"n": [1, 2, 1, 2]})
    model = NoSharingNB().fit(X, ["a", "b", "a", "b"])
    later = pd.DataFrame({"n": [1.0, NAN, 2.0]})
    np.testing.assert_allclose(model.predict_proba(later)[[0, 2]], model.predict_proba(X)[:2], atol=1e-15)
    np.testing.assert_allclose(model.predict_proba(later)[1], [0.5, 0.5], atol=1e-15)
