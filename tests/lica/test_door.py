"""The way in: every form of features and targets comes to the same arrays."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from kinfolk.lica.answers.features import receive_features
from kinfolk.lica.estimators.targets import lay_out, receive_targets

X = np.array([[1.0, 0.0], [2.0, 3.0], [0.0, 4.0], [5.0, 0.0]])
TASK = ["b", "a", "b", "a"]


def targets_of(y, task=None, classification=True):
    return receive_targets(receive_features(X, task, None), y, classification)


@pytest.mark.parametrize(
    "table",
    [
        X,
        X.tolist(),
        X.astype(int),
        X.astype(object),
        pd.DataFrame(X, columns=["p", "q"]),
        pl.DataFrame(X, schema=["p", "q"]),
        {"p": X[:, 0], "q": X[:, 1].tolist()},
    ],
    ids=lambda table: type(table).__module__ + "." + type(table).__name__,
)
def test_a_dense_table_of_any_kind_becomes_the_same_numbers(table):
    features = receive_features(table, TASK, None)
    np.testing.assert_array_equal(features.X, X)
    assert features.names in (None, ["p", "q"])
    assert features.task.tolist() == TASK


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("container", ["matrix", "array"])
def test_a_sparse_table_of_any_kind_stays_sparse(kind, container):
    features = receive_features(getattr(sparse, f"{kind}_{container}")(X), TASK, None)
    assert features.X.format == "csr"
    np.testing.assert_array_equal(features.X.toarray(), X)


def test_a_task_column_is_taken_out_by_name_or_by_place():
    frame = pd.DataFrame({"p": X[:, 0], "who": TASK, "q": X[:, 1]})
    for features in (receive_features(frame, None, "who"), receive_features(frame, None, 1)):
        np.testing.assert_array_equal(features.X, X)
        assert features.names == ["p", "q"]
        assert features.task.tolist() == TASK


def test_rows_go_to_their_tasks_in_the_order_of_the_tasks_names():
    targets = targets_of(["yes", "no", None, "yes"], TASK)
    assert targets.tasks.tolist() == ["a", "b"]
    assert targets.classes.tolist() == ["no", "yes"]
    assert [rows.tolist() for rows in targets.rows] == [[1, 3], [0]]
    assert [values.tolist() for values in targets.values] == [[0.0, 1.0], [1.0]]
    assert not targets.is_matrix


MATRIX = np.array([[0.0, 1.0], [1.0, np.nan], [0.0, 0.0], [np.nan, 1.0]])


@pytest.mark.parametrize(
    ("y", "names"),
    [
        (MATRIX, [0, 1]),
        ([[0, 1], [1, None], [0, 0], [None, 1]], [0, 1]),
        (pd.DataFrame(MATRIX, columns=["s", "t"]), ["s", "t"]),
        (pl.DataFrame(MATRIX, schema=["s", "t"]), ["s", "t"]),
        ({"s": [0, 1, 0, None], "t": [1, None, 0, 1]}, ["s", "t"]),
    ],
    ids=["array", "lists", "pandas", "polars", "mapping"],
)
def test_a_matrix_of_labels_leaves_unknown_ones_out(y, names):
    targets = targets_of(y)
    assert targets.is_matrix
    assert targets.tasks.tolist() == names
    assert [rows.tolist() for rows in targets.rows] == [[0, 1, 2], [0, 2, 3]]
    assert [values.tolist() for values in targets.values] == [[0, 1, 0], [1, 0, 1]]


def test_a_sparse_matrix_of_labels_knows_every_one():
    targets = targets_of(sparse.csr_matrix([[0, 1], [1, 0], [0, 0], [0, 1]]))
    assert [rows.tolist() for rows in targets.rows] == [[0, 1, 2, 3]] * 2
    assert [values.tolist() for values in targets.values] == [[0, 1, 0, 0], [1, 0, 0, 1]]


def test_one_column_of_targets_is_one_target_a_row():
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        targets = targets_of(np.array([[0], [1], [1], [0]]), TASK)
    assert [values.tolist() for values in targets.values] == [[1, 0], [0, 1]]


def test_weights_of_rows_and_of_labels_multiply_and_rows_of_none_go():
    features = receive_features(X, TASK, None)
    problem = lay_out(features, receive_targets(features, [1, 0, 0, 1], True), [1.0, 2.0, 0.0, 3.0], {1: 5.0})
    assert [y.tolist() for y in problem.y] == [[-1.0, 1.0], [1.0]]
    assert [weights.tolist() for weights in problem.weights] == [[2.0, 15.0], [5.0]]
    np.testing.assert_array_equal(problem.X, X[[0, 1, 3]])
    assert [rows.tolist() for rows in problem.rows] == [[1, 2], [0]]
