"""The two entrances: what is refused, what is left aside, and what a model remembers of a table."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from kinfolk import CompleteSharingNB, NoSharingNB
from kinfolk.tasks.answering import Known, receive_rows, receive_sequences
from kinfolk.tasks.schema import as_matrix, places_of, rows_of_tasks
from kinfolk.tasks.training import receive_labels, receive_numbers, receive_table, receive_training

NAN = float("nan")
X = pd.DataFrame({"colour": ["red", "blue", "red"], "who": ["ann", "bob", "ann"], "size": [1.5, 2.5, NAN]})
BESIDE = Known("SomeNB", ("colour", "size"), 2, None, np.array(["ann", "bob"]))
WITHIN = Known("SomeNB", ("colour", "who", "size"), 3, "who", np.array(["ann", "bob"]))
ARRAY = Known("SomeNB", None, 2, None, np.array([0]))


def test_columns_that_the_model_does_not_know_are_left_aside():
    asked = receive_rows(X.assign(more=1), BESIDE, task=X["who"])
    assert asked.table.names == ["colour", "size"]
    assert asked.place.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["size", "colour"], "in the same order as they were in fit"),
        (["colour"], "seen at fit time, yet now missing:\n- size\n"),
        (
            ["colour", "weight"],
            "unseen at fit time:\n- weight\nFeature names seen at fit time, yet now missing:\n- size",
        ),
    ],
)
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, dict])
def test_columns_that_are_not_those_of_fit_are_refused_by_name(columns, message, library):
    table = library({name: [1.0, 2.0] for name in columns})
    with pytest.raises(ValueError, match=message):
        receive_rows(table, BESIDE, task=["ann", "bob"])


def test_many_names_that_differ_are_not_all_listed():
    table = {f"new {i}": [1] for i in range(7)}
    with pytest.raises(ValueError, match="new 4\n- \\.\\.\\.") as refusal:
        receive_rows(table, BESIDE, task=["ann"])
    assert "new 5" not in str(refusal.value)


def test_a_table_without_names_is_known_by_its_width():
    rows = X[["colour", "size"]].to_numpy()
    with pytest.warns(UserWarning, match="X does not have valid feature names, but SomeNB was fitted with"):
        asked = receive_rows(rows, BESIDE, task=X["who"])
    assert asked.table.values(0).tolist() == ["red", "blue", "red"]
    with pytest.raises(ValueError, match="X has 3 features, but SomeNB is expecting 2 features as input"):
        receive_rows(X.to_numpy(), ARRAY)
    with pytest.warns(UserWarning, match="X has feature names, but SomeNB was fitted without"):
        receive_rows(X[["colour", "size"]], ARRAY)


def test_a_table_without_rows_is_answered_by_none():
    asked = receive_rows(X[:0], WITHIN)
    assert asked.table.n_rows == 0
    assert asked.place.tolist() == []
    sequences = receive_sequences(np.zeros((0, 2)), ARRAY)
    assert sequences.lengths.tolist() == sequences.place.tolist() == []


def test_the_task_comes_from_its_column_or_from_beside_the_table():
    assert receive_rows(X, WITHIN).place.tolist() == [0, 1, 0]
    without = X.drop(columns="who")
    assert receive_rows(without, WITHIN, task=["bob", "zoe", "ann"]).place.tolist() == [1, 2, 0]
    with pytest.raises(ValueError, match="task= and task_column='who' were both given"):
        receive_rows(X, WITHIN, task=X["who"])
    array = Known("SomeNB", None, 3, 1, np.array(["ann", "bob"]))
    assert receive_rows(X.to_numpy(), array).place.tolist() == [0, 1, 0]
    assert receive_rows(without.to_numpy(), array, task=X["who"]).place.tolist() == [0, 1, 0]


def test_several_tasks_and_none_named_is_an_error_unless_all_are_answered():
    rows = X[["colour", "size"]]
    with pytest.raises(ValueError, match="fitted to 2 tasks: say which task each row belongs to"):
        receive_rows(rows, BESIDE)
    assert receive_rows(rows, BESIDE, needs_task=False).place is None


def test_the_name_of_a_column_is_not_the_tasks_of_rows():
    with pytest.raises(ValueError, match="task='who' is a name and not a task for each row: say task_column='who'"):
        receive_table(X, model="SomeNB", task="who")


@pytest.mark.parametrize(
    ("given", "known", "places"),
    [
        (["7", "8", "x", "7.0"], [7, 8], [0, 1, 2, 0]),
        ([7, 8.0, 9], ["7", "8"], [0, 1, 2]),
        (["True", "false", "no"], [False, True], [1, 0, 2]),
        ([True, False], ["true", "other"], [0, 2]),
        (["1", 1], ["1", 1], [0, 1]),
        ([NAN, "nan", "1e0"], [1, 2], [2, 2, 2]),
    ],
)
def test_tasks_of_another_type_are_known_by_how_they_are_written(given, known, places):
    ids = np.array(known, dtype=object) if len({type(v) for v in known}) > 1 else np.array(known)
    assert places_of(np.fromiter(given, dtype=object, count=len(given)), ids).tolist() == places


def test_rows_of_tasks_are_those_of_a_loop():
    place = np.random.default_rng(0).integers(0, 6, 50)
    for task, rows in enumerate(rows_of_tasks(place, 5)):
        assert rows.tolist() == np.flatnonzero(place == task).tolist()


def test_a_training_table_needs_rows_and_columns():
    with pytest.raises(ValueError, match=r"0 sample\(s\) \(shape=\(0, 2\)\) while a minimum of 1 is required"):
        receive_table(X[:0], model="SomeNB", task_column="who")
    with pytest.raises(ValueError, match=r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required"):
        receive_table(X[["who"]], model="SomeNB", task_column="who")


def test_rows_are_added_to_what_was_known_and_held_to_it():
    first = receive_training(X, ["no", "yes", "no"], model="SomeNB", task_column="who")
    assert (first.known.columns, first.known.tasks.tolist()) == (("colour", "who", "size"), ["ann", "bob"])
    more = X.assign(who=["zoe", "bob", "bob"], colour=["green", "red", "red"], extra=0)
    second = receive_training(more, ["no", None, "no"], model="SomeNB", task_column="who", before=first)
    assert second.known.tasks.tolist() == ["ann", "bob", "zoe"]
    assert second.rows.task.tolist() == [2, 1, 1]
    assert second.rows.labels.tolist() == [0, -1, 0]
    assert second.rows.codes[:, 0].tolist() == [-1, 1, 1]
    assert second.schema is first.schema
    with pytest.raises(ValueError, match=r"label 'maybe' is not among the classes \['no', 'yes'\]"):
        receive_training(X, ["maybe"] * 3, model="SomeNB", task_column="who", before=first)


def test_rows_of_weight_zero_make_neither_tasks_nor_labels_nor_categories_known():
    found = receive_training(X, ["no", "yes", "no"], model="SomeNB", task_column="who", sample_weight=[1.0, 0.0, 2.0])
    assert found.known.tasks.tolist() == ["ann"]
    assert found.classes.tolist() == ["no"]
    assert found.schema.columns[0].categories == ("red",)
    assert found.rows.task.tolist() == [0, 1, 0]
    assert found.counted.tolist() == [True, False, True]


def test_labels_are_not_also_a_feature():
    with pytest.raises(ValueError, match="column 'colour' is the label and also a feature"):
        receive_labels(X, X["colour"], 3, model="SomeNB")


def test_masked_values_are_missing():
    masked = np.ma.MaskedArray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], mask=[[1, 0], [0, 0], [0, 1]])
    columns = receive_table(masked, model="SomeNB").table.columns
    np.testing.assert_array_equal(np.column_stack(columns), [[NAN, 2.0], [3.0, 4.0], [5.0, NAN]])
    labels = receive_labels(None, np.ma.MaskedArray([1, 2, 1], mask=[0, 0, 1]), 3, model="SomeNB")
    assert (labels.classes.tolist(), labels.codes.tolist()) == ([1, 2], [0, 1, -1])


@pytest.mark.parametrize(
    "y",
    [
        pl.Series([1, None, 2]),
        pd.Series([1, None, 2], dtype="Int64"),
        pd.array([1, None, 2], dtype="Int64"),
        pd.Series([1, None, 2], dtype="int64[pyarrow]"),
        pd.Categorical([1, None, 2]),
        pa.array([1, None, 2]),
        pa.chunked_array([[1, None], [2]]),
    ],
    ids=["polars", "pandas", "pandas array", "pandas of pyarrow", "pandas categorical", "pyarrow", "pyarrow chunks"],
)
def test_whole_numbers_with_gaps_stay_whole_numbers_as_labels(y):
    labels = receive_labels(None, y, 3, model="SomeNB")
    assert labels.classes.dtype.kind == "i"
    assert labels.codes.tolist() == [0, -1, 1]


def test_a_sparse_table_is_taken_where_it_is_wanted_alone():
    matrix = scipy.sparse.csr_matrix([[0.0, 1.0], [2.0, 0.0]])
    found = as_matrix(receive_table(matrix, model="SomeNB", sparse=True).table)
    np.testing.assert_array_equal(found.toarray(), matrix.toarray())
    with pytest.raises(TypeError, match="sparse"):
        receive_table(matrix, model="SomeNB")
    with pytest.raises(ValueError, match="a sparse table has no task column"):
        receive_table(matrix, model="SomeNB", sparse=True, task_column=0)


def test_columns_named_by_text_and_by_numbers_are_refused():
    with pytest.raises(TypeError, match="the name of column 1 is not text"):
        receive_table(pd.DataFrame({"a": [1], 1: [2]}), model="SomeNB")


SITES = np.repeat(["north", "west", "south"], 10)
SORTED = {
    "text": (pd.DataFrame({"size": np.tile([1, 2], 15), "site": SITES}), "task_column='site'"),
    "text of polars": (pl.DataFrame({"size": np.tile([1, 2], 15), "site": SITES}), "task_column='site'"),
    "whole numbers": (
        pd.DataFrame({"size": np.tile([1, 2], 15), "site": np.repeat([7, 3, 5], 10)}),
        "task_column='site'",
    ),
    "an array": (np.column_stack([np.tile([1, 2], 15), np.repeat([7, 3, 5], 10)]), "task_column=1"),
}


@pytest.mark.parametrize("name", SORTED)
def test_a_column_that_repeats_as_groups_do_is_told_where_no_task_is_given(name):
    table, advice = SORTED[name]
    with pytest.warns(UserWarning, match="no task was given") as caught:
        receive_table(table, model="ClusteredNB")
    assert len(caught) == 1
    assert advice in str(caught[0].message)


SILENT = {
    "a task is given": (SORTED["text"][0], {"task": np.zeros(30, dtype=int)}),
    "the column is named": (SORTED["text"][0], {"task_column": "site"}),
    "nothing is shared": (SORTED["text"][0], {"shares": False}),
    "rows of a value stand apart": (SORTED["text"][0].sample(frac=1.0, random_state=0), {}),
    "two values alone": (pd.DataFrame({"site": np.repeat(["north", "west"], 15)}), {}),
    "few rows of each value": (pd.DataFrame({"site": np.repeat(list("abcdefghij"), 3)}), {}),
    "a value is missing": (pd.DataFrame({"site": np.repeat(np.array(["a", None, "b"], dtype=object), 10)}), {}),
    "fractions": (pd.DataFrame({"site": np.repeat([0.5, 1.5, 2.5], 10)}), {}),
}


@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_told_of_groups_where(name):
    table, how = SILENT[name]
    receive_table(table, model="ClusteredNB", **how)


def test_a_model_that_shares_nothing_is_silent_and_others_tell():
    table, y = SORTED["text"][0], np.tile(["no", "yes"], 15)
    NoSharingNB().fit(table, y)
    with pytest.warns(UserWarning, match="say task_column='site'"):
        CompleteSharingNB().fit(table, y)


def test_targets_that_are_numbers_come_as_floats_and_gaps_as_nan():
    assert np.isnan(receive_numbers(None, [1, None, "2.5"], 3, model="M")[1])
    assert receive_numbers(None, pl.Series([1, 2]), 2, model="M").tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        ([1.0, "big"], "Input y contains 'big' in row 1: every target must be a finite number"),
        ([1.0, np.inf], "Input y contains infinity in row 1"),
        ([None, np.nan], "no row has a label"),
        ([1.0], "inconsistent numbers of samples"),
    ],
)
def test_targets_that_are_no_numbers_are_refused_with_their_row(y, sentence):
    with pytest.raises(ValueError, match=sentence):
        receive_numbers(None, y, 2, model="M")
