"""Features of many tasks' rows as numbers, dense or sparse, and each row's task; with numpy alone.

A scipy sparse matrix is used by its own methods, so that a saved model needs no scipy to be asked about a dense table.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.tasks.table import read_table
from kinfolk.tasks.values import as_column, is_missing, plain_column


class Features(NamedTuple):
    """Numbers of every row, dense or sparse, the columns' names where they have any, and each row's task."""

    X: Any
    names: list[str] | None
    task: NDArray[Any] | None


def receive_features(X: Any, task: Any, task_column: str | int | None) -> Features:
    """Read a table of numbers and each row's task; refuse what is not a finite number, with its place."""
    if hasattr(X, "tocsr"):
        if task_column is not None:
            raise ValueError("a sparse table has no task column: give task= instead")
        values, names = _sparse(X), None
        tasks = None if task is None else as_column(task, "task")
    else:
        values, names, tasks = _dense(X, task, task_column)
    if tasks is not None:
        if len(tasks) != values.shape[0]:
            raise ValueError(f"task has {len(tasks)} entries for {values.shape[0]} rows")
        missing = is_missing(tasks)
        if missing.any():
            raise ValueError(f"task, row {int(np.argmax(missing))}: a task is missing, every row needs one")
    return Features(values, names, tasks)


def _sparse(X: Any) -> Any:
    if np.issubdtype(X.dtype, np.complexfloating):
        raise ValueError("Complex data not supported: the sparse table holds complex numbers")
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got a sparse table with {X.ndim} dimension(s) instead")
    _check_size(*X.shape)
    values = X.tocsr().astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(values.data))
    if len(wrong):
        row = int(np.searchsorted(values.indptr, wrong[0], side="right")) - 1
        column = int(values.indices[wrong[0]])
        raise ValueError(_not_finite(values.data[wrong[0]], row, f"column {column}"))
    return values


def _dense(X: Any, task: Any, task_column: str | int | None) -> tuple[Floats, list[str] | None, NDArray[Any] | None]:
    table = read_table(X)
    tasks: NDArray[Any] | None
    if task_column is not None:
        if task is not None:
            raise ValueError(f"task= and task_column={task_column!r} were both given: one of them is needed")
        index = table.position(task_column)
        tasks, table = table.columns[index], table.without(index)
    else:
        tasks = None if task is None else plain_column(as_column(task, "task"), "task")
    _check_size(np.shape(X)[0] if isinstance(X, np.ndarray) else table.n_rows, len(table.columns))
    values = np.empty((table.n_rows, len(table.columns)))
    for i, column in enumerate(table.columns):
        values[:, i] = _numbers(column, table.label(i))
    return values, table.names, tasks


def _check_size(n_rows: int, n_features: int) -> None:
    for found, what in ((n_rows, "sample"), (n_features, "feature")):
        if not found:
            raise ValueError(
                f"Found array with 0 {what}(s) (shape=({n_rows}, {n_features})) while a minimum of 1 is required."
            )


def _numbers(column: NDArray[Any], label: str) -> Floats:
    """A column as finite floats."""
    try:
        numbers = column.astype(np.float64)
    except (TypeError, ValueError):
        values = column.tolist()
        row = next(i for i, value in enumerate(values) if not is_number(value))
        if not isinstance(values[row], str):
            raise TypeError(
                f"{label}, row {row}: {values[row]!r} is not a number; argument must be a string or a real number"
            ) from None
        raise ValueError(
            f"{label}, row {row}: {values[row]!r} is not a number; turn categories into columns of 0 and 1 first"
        ) from None
    wrong = ~np.isfinite(numbers)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(_not_finite(float(numbers[row]), row, label))
    return numbers


def is_number(value: Any) -> bool:
    """Whether a value is a number, or text that reads as one."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _not_finite(value: float, row: int, label: str) -> str:
    what = "NaN" if np.isnan(value) else "infinity"
    return f"Input X contains {what} in {label}, row {row}: every feature must be a finite number"
