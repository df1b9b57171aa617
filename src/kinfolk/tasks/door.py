"""Through this door a user's table, labels, tasks and weights come in, checked once; code behind it trusts them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.tasks.labels import as_column, is_missing, unlabelled_rows
from kinfolk.tasks.schema import check_finite, distinct
from kinfolk.tasks.statistics import as_ids
from kinfolk.tasks.table import Table, column_names, plain_column, read_table

ONE_TASK = 0


class Arrival(NamedTuple):
    """A user's rows: features, and per row a task (None where none was given)."""

    table: Table
    task: NDArray[Any] | None


def receive(X: Any, task: Any, task_column: str | int | None) -> Arrival:
    """Read a table and each row's task, from ``task`` or from one of the table's columns."""
    table = read_table(X)
    if task_column is not None:
        if task is not None:
            raise ValueError(f"task= and task_column={task_column!r} were both given: one of them is needed")
        index = table.position(task_column)
        tasks = table.columns[index]
        table = table.without(index)
        label = f"task column {task_column!r}"
    elif task is not None:
        tasks, label = plain_column(as_column(task, "task"), "task"), "task"
        if len(tasks) != table.n_rows:
            raise ValueError(f"task has {len(tasks)} entries for {table.n_rows} rows")
    else:
        tasks = None
    if not table.columns:
        raise ValueError(f"Found array with 0 feature(s) (shape=({table.n_rows}, 0)) while a minimum of 1 is required.")
    if table.n_rows == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape=(0, {len(table.columns)})) while a minimum of 1 is required."
        )
    if tasks is not None:
        missing = is_missing(tasks)
        if missing.any():
            raise ValueError(f"{label}, row {int(np.argmax(missing))}: a task is missing, every row needs one")
        tasks = _whole(tasks)
        check_finite(tasks, label)
    return Arrival(table, tasks)


def _whole(values: NDArray[Any]) -> NDArray[Any]:
    """Floats that are whole numbers as integers, so that 3.0 and 3 name the same task."""
    if values.dtype.kind == "f" and (values == np.floor(values)).all() and (np.abs(values) < 2**53).all():
        return values.astype(np.int64)
    return values


def task_ids(task: NDArray[Any] | None) -> NDArray[Any]:
    """The distinct tasks, sorted; one task where none was named."""
    if task is None:
        return np.array([ONE_TASK])
    return as_ids(list(distinct(task, "task", limit=1 << 30)))


def check_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64] | None:
    """Weights as finite, non-negative floats, not all zero."""
    if sample_weight is None:
        return None
    if np.isscalar(sample_weight):
        sample_weight = np.full(n_rows, sample_weight)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight must hold one number per row") from None
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar, got {weights.ndim}D array")
    if len(weights) != n_rows:
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}!")
    wrong = ~np.isfinite(weights) | (weights < 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"sample_weight, row {row}: {weights[row]} is not a weight, it must be finite and not negative"
        )
    if not weights.any():
        raise ValueError("sample_weight is zero in every row: at least one row must count")
    return weights


def check_labels(X: Any, y: Any, n_rows: int, unlabelled: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Labels as a plain column, and which rows have none."""
    name = getattr(y, "name", None)
    names = column_names(X)
    if isinstance(name, str) and names is not None and name in names:
        column, labels = np.asarray(X[name]), np.asarray(y)
        if len(column) == len(labels) and bool(np.all((column == labels) | (is_missing(column) & is_missing(labels)))):
            raise ValueError(f"column {name!r} is the label and also a feature: drop it from the table")
    labels = as_column(y, "y")
    numbers = plain_column(labels, "y")
    if len(labels) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: {[n_rows, len(labels)]} (rows and labels)"
        )
    if numbers.dtype.kind == "f" and np.isinf(numbers).any():
        raise ValueError(f"Input y contains infinity in row {int(np.argmax(np.isinf(numbers)))}")
    missing = unlabelled_rows(labels, unlabelled)
    if missing.all():
        raise ValueError("Input y contains NaN, None or the mark of an unlabelled row everywhere: no row has a label")
    return labels, missing
