"""Targets: every form of them comes to the same arrays."""

from time import process_time

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from kinfolk.lica.estimators.targets import lay_out, receive_targets
from kinfolk.tasks.training import receive_table

X = np.array([[1.0, 0.0], [2.0, 3.0], [0.0, 4.0], [5.0, 0.0]])
TASK = ["b", "a", "b", "a"]


def targets_of(y, task=None, classification=True):
    arrival = receive_table(X, model="LICAClassifier", task=task)
    return receive_targets(y, arrival.place, arrival.known.tasks, classification=classification, named=task is not None)


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
    problem = lay_out(X, targets_of([1, 0, 0, 1], TASK), np.array([1.0, 2.0, 0.0, 3.0]), {1: 5.0})
    assert [y.tolist() for y in problem.y] == [[-1.0, 1.0], [1.0]]
    assert [weights.tolist() for weights in problem.weights] == [[2.0, 15.0], [5.0]]
    np.testing.assert_array_equal(problem.X, X[[0, 1, 3]])
    assert [rows.tolist() for rows in problem.rows] == [[1, 2], [0]]


def test_rows_are_split_by_task_in_one_sort_however_many_tasks_there_are():
    n_tasks = 100_000
    place = np.random.default_rng(0).permutation(np.repeat(np.arange(n_tasks), 2))
    start = process_time()
    targets = receive_targets(place % 2, place, np.arange(n_tasks), classification=True)
    # A look at every row for every task would be 20 billion looks.
    assert process_time() - start < 10.0
    assert all(len(rows) == 2 and (place[rows] == k).all() for k, rows in enumerate(targets.rows))
