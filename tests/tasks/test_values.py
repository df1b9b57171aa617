"""Missing labels in every guise that numpy, pandas and polars give them, and tasks from every kind of table."""

import datetime
import decimal
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinfolk.tasks.columns import in_order, learn_schema
from kinfolk.tasks.selection.splitting import tasks_of_rows
from kinfolk.tasks.table import Coded, as_column, declared_categories, is_missing, n_rows, read_table, unlabelled_rows

NAN = float("nan")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([1, 2]), [False, False]),
        (np.array([True, False]), [False, False]),
        (np.array([1.5, NAN]), [False, True]),
        (np.array([1j, complex(NAN, 0)]), [False, True]),
        (np.array(["a", "nan"]), [False, False]),
        (np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"), [False, True]),
        (np.array([3, "NaT"], dtype="timedelta64[s]"), [False, True]),
        (np.array(["a", NAN], dtype=np.dtypes.StringDType(na_object=NAN)), [False, True]),
        (np.array([0, "a", None, NAN, pd.NA, pd.NaT], dtype=object), [False, False, True, True, True, True]),
        (["yes", NAN], [False, True]),
        (("yes", None), [False, True]),
        ([1, pd.NA, 2.0], [False, True, False]),
        ([decimal.Decimal("NaN"), decimal.Decimal(1)], [True, False]),
        ([datetime.date(2020, 1, 1), None], [False, True]),
        (pd.Series([1, None], dtype="Int64"), [False, True]),
        (pd.Series([True, None], dtype="boolean"), [False, True]),
        (pd.Series(["a", None], dtype="string"), [False, True]),
        (pd.Series(["a", None]), [False, True]),
        (pd.Series(["a", None], dtype="category"), [False, True]),
        (pd.Series([1, None], dtype="int64[pyarrow]"), [False, True]),
        (pd.to_datetime(pd.Series(["2020-01-01", None])), [False, True]),
        (pl.Series([1, None]), [False, True]),
        (pl.Series([True, None]), [False, True]),
        (pl.Series(["a", None]), [False, True]),
        (pl.Series(["a", None], dtype=pl.Categorical), [False, True]),
        (pl.Series([1.0, NAN, None]), [False, True, True]),
        ([], []),
    ],
    ids=lambda value: type(value).__name__,
)
def test_missing_values_of_every_type_are_found(values, expected):
    found = is_missing(values)
    assert found.dtype == bool
    assert found.tolist() == expected


@given(st.lists(st.one_of(st.none(), st.floats(), st.integers(), st.text(), st.booleans())))
def test_missing_agrees_with_pandas(values):
    assert is_missing(values).tolist() == [bool(pd.isna(value)) for value in values]


def test_minus_one_is_a_label_until_it_is_named():
    y = np.array([-1, 1, -1])
    assert unlabelled_rows(y).tolist() == [False, False, False]
    assert unlabelled_rows(y, unlabelled=-1).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("y", "unlabelled", "expected"),
    [
        (["?", "yes", None], "?", [True, False, True]),
        ([1.0, NAN, -1.0], -1, [False, True, True]),
        (pd.Series([1, None, -1], dtype="Int64"), -1, [False, True, True]),
        ([1, pd.NA, -1], -1, [False, True, True]),
        (np.array(["a", "b"]), -1, [False, False]),
        (np.array([1, 2]), "?", [False, False]),
        ([0, "a", -1, "-1"], -1, [False, False, True, False]),
        (pl.Series(["?", None]), "?", [True, True]),
    ],
)
def test_named_and_missing_labels_count_alike_as_unlabelled(y, unlabelled, expected):
    assert unlabelled_rows(y, unlabelled=unlabelled).tolist() == expected


def test_asking_which_rows_are_unlabelled_leaves_the_labels_alone():
    y = np.array([1.0, NAN, -1.0])
    unlabelled_rows(y, unlabelled=-1)
    np.testing.assert_array_equal(y, [1.0, NAN, -1.0])


@pytest.mark.parametrize("y", [np.zeros((2, 1)), "yes", 3])
def test_labels_that_are_not_one_per_row_are_refused(y):
    with pytest.raises(ValueError, match="one value per row"):
        unlabelled_rows(y)


def test_a_list_of_tuples_stays_one_value_per_row():
    assert as_column([(1, 2), (3, 4)]).tolist() == [(1, 2), (3, 4)]


TABLES = {
    "pandas": pd.DataFrame({"x": [1.0, 2.0, 3.0], "user": ["b", "a", "b"]}),
    "polars": pl.DataFrame({"x": [1.0, 2.0, 3.0], "user": ["b", "a", "b"]}),
    "array": np.array([[1.0, "b"], [2.0, "a"], [3.0, "b"]], dtype=object),
    "list": [[1.0, "b"], [2.0, "a"], [3.0, "b"]],
}


@pytest.mark.parametrize("column", [1, -1])
@pytest.mark.parametrize("kind", TABLES)
def test_a_task_column_is_found_by_position_in_every_table(kind, column):
    assert tasks_of_rows(TABLES[kind], task_column=column).tolist() == ["b", "a", "b"]


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_task_column_is_found_by_name_in_every_frame(kind):
    assert tasks_of_rows(TABLES[kind], task_column="user").tolist() == ["b", "a", "b"]


def test_a_number_is_a_place_even_where_columns_have_numbers_for_names():
    frame = pd.DataFrame({1: ["first"], 0: ["second"]})
    assert tasks_of_rows(frame, task_column=1).tolist() == ["second"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "given once.*none of them"),
        ({"task": ["a", "b", "a"], "groups": ["a", "b", "a"]}, "task= and groups="),
        ({"task": ["a", "b", "a"], "task_column": 1}, "task= and task_column="),
        ({"task": ["a", None, "a"]}, "task, row 1: a task is missing"),
        ({"groups": ["a", "b"]}, "groups has 2 entries for 3 rows"),
        ({"task": np.zeros((3, 2))}, r"task must hold one value per row, but its shape is \(3, 2\)"),
        ({"task_column": "nobody"}, "column 'nobody' is not in the table: its columns are x, user"),
        ({"task_column": 2}, "column 2 is not in the table"),
    ],
)
def test_tasks_given_badly_are_refused_in_a_sentence_that_names_the_fault(arguments, message):
    with pytest.raises(ValueError, match=message):
        tasks_of_rows(TABLES["pandas"], **arguments)


def test_a_column_name_for_an_array_without_names_is_refused():
    with pytest.raises(ValueError, match="it has no column names"):
        tasks_of_rows(TABLES["array"], task_column="user")


def test_a_task_column_of_something_that_is_no_table_is_refused():
    with pytest.raises(ValueError, match="data frame or a 2-d array"):
        tasks_of_rows(np.zeros(3), task_column=0)


@pytest.mark.parametrize("kind", TABLES)
def test_the_rows_of_every_table_are_counted(kind):
    assert n_rows(TABLES[kind]) == 3


@given(st.lists(st.one_of(st.integers(-3, 3), st.sampled_from("abc")), min_size=1))
def test_codes_lead_back_to_the_values_and_do_not_depend_on_their_order(values):
    names, codes = in_order(as_column(values))
    assert [names[code] for code in codes] == values
    assert in_order(as_column(values[::-1]))[0] == names


def test_values_of_one_type_come_in_their_own_order():
    assert in_order(as_column([10, 9, 10]))[0] == [9, 10]


def test_rows_to_be_answered_need_numpy_alone():
    code = "import sys, kinfolk.tasks.answering; print({'sklearn', 'scipy', 'numba', 'polars'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def frames_of_text():
    text = ["b", None, "a", "b"]
    return {
        "categories": pd.DataFrame({"x": pd.Categorical(text), "n": [1, 2, 3, 4]}),
        "strings": pd.DataFrame({"x": pd.array(text, dtype="string"), "n": [1, 2, 3, 4]}),
        "polars": pl.DataFrame({"x": text, "n": [1, 2, 3, 4]}),
    }


@pytest.mark.parametrize("kind", ["categories", "strings", "polars"])
def test_text_that_a_frame_keeps_as_codes_is_learnt_and_coded_without_being_written_out(kind):
    frame = frames_of_text()[kind]
    table = read_table(frame)
    schema = learn_schema(table, None, "auto", 8, declared_categories(frame))
    assert schema.encode(table)[:, 0].tolist() == [1, -1, 0, 1]
    assert "values" not in vars(table.columns[0])
    some = table.rows(np.array([False, True, True, True])).take([0])
    assert isinstance(some.columns[0], Coded)
    assert some.values(0).tolist() == [None, "a", "b"]
    assert [column.tolist() for column in table.all_values()] == [["b", None, "a", "b"], [1, 2, 3, 4]]


def test_a_column_of_text_for_which_bins_are_asked_is_refused_by_name_though_it_came_coded():
    for frame in frames_of_text().values():
        with pytest.raises(ValueError, match="column 'x' holds text: it has no bins"):
            learn_schema(read_table(frame), None, "auto", {"x": 3}, {})
