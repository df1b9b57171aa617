"""Which task each row, or each sequence, belongs to: read from beside a table or out of it, and checked once.

Only numpy is imported here: a saved model answers without anything else installed.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.tasks.table import Table, column_names
from kinfolk.tasks.values import (
    as_column,
    as_ids,
    check_finite,
    distinct,
    encode_alike,
    is_missing,
    n_rows,
    plain_column,
)

# What the task is called where none was named.
ONE_TASK = 0
# Tasks may be many more than categories of a column.
_MOST_TASKS = 1 << 30


def take_tasks(
    table: Table, task: Any, task_column: str | int | None, lengths: NDArray[np.int64] | None = None
) -> tuple[Table, NDArray[Any] | None]:
    """The features of a table, and the task of each row, or of each sequence where ``lengths`` are given; else None.

    Examples
    --------
    >>> from kinfolk.tasks.table import read_table
    >>> features, task = take_tasks(read_table({"who": ["ann", "bob"], "size": [1, 2]}), None, "who")
    >>> features.names, task.tolist()
    (['size'], ['ann', 'bob'])
    """
    if task_column is None:
        return table, None if task is None else check_tasks(task, "task", table.n_rows, lengths)
    if task is not None:
        raise ValueError(f"task= and task_column={task_column!r} were both given: one of them is needed")
    index = table.position(task_column)
    return table.without(index), check_tasks(table.columns[index], f"task column {task_column!r}", table.n_rows)


def tasks_of_rows(X: Any, task: Any = None, groups: Any = None, task_column: int | str | None = None) -> NDArray[Any]:
    """The task of each row, which must be given in exactly one of three ways; no other column is looked at.

    Parameters
    ----------
    X : table
        Looked into only for `task_column`: a frame or a 2-d array. None where it is not at hand.
    task, groups : array-like of shape (n_rows,), optional
        The task of each row; `groups` is scikit-learn's word for it.
    task_column : str or int, optional
        Name or place of the column of `X` that holds the task.

    Returns
    -------
    ndarray of shape (n_rows,)

    Examples
    --------
    >>> tasks_of_rows([["ann", 3], ["bob", 4]], task_column=0)
    array(['ann', 'bob'], dtype=object)
    """
    ways = {"task": task, "groups": groups, "task_column": task_column}
    given = [way for way, value in ways.items() if value is not None]
    if len(given) != 1:
        came = " and ".join(f"{way}=" for way in given) or "none of them"
        raise ValueError(f"the task of each row must be given once, as task=, groups= or task_column=, but {came} came")
    if task_column is not None:
        return check_tasks(_one_column(X, task_column), f"task column {task_column!r}", n_rows(X))
    values = as_column(ways[given[0]], given[0])
    return check_tasks(values, given[0], len(values) if X is None else n_rows(X))


def _one_column(X: Any, column: int | str) -> Any:
    """A column of a frame or a 2-d array, the others left alone."""
    names = column_names(X)
    frame = X if hasattr(X, "shape") or names is not None else np.array(X, dtype=object)
    if len(getattr(frame, "shape", ())) != 2 or hasattr(X, "toarray"):
        raise ValueError(f"task_column={column!r} needs X to be a data frame or a 2-d array")
    width = frame.shape[1]
    place = Table(names, [], list(range(width)), width, 0).position(column)
    return frame.iloc[:, place] if hasattr(frame, "iloc") else frame[:, place]


def check_tasks(task: Any, label: str, n_of_rows: int, lengths: NDArray[np.int64] | None = None) -> NDArray[Any]:
    """One task for each row or sequence: none missing, and floats that are whole numbers as integers."""
    if isinstance(task, str):
        raise ValueError(f"task={task!r} is a name and not a task for each row: say task_column={task!r} for a column")
    tasks = plain_column(as_column(task, label), label)
    each, n = ("row", n_of_rows) if lengths is None else ("sequence", len(lengths))
    if len(tasks) != n:
        hint = (
            ": give one for each sequence, not for each row" if lengths is not None and len(tasks) == n_of_rows else ""
        )
        raise ValueError(f"{label} has {len(tasks)} entries for {n} {each}s{hint}")
    missing = is_missing(tasks)
    if missing.any():
        raise ValueError(no_task(label, int(np.argmax(missing)), each))
    check_finite(tasks, label)
    whole = tasks.dtype.kind == "f" and (tasks == np.floor(tasks)).all() and (np.abs(tasks) < 2**53).all()
    # So that 3.0 and 3 name the same task.
    return tasks.astype(np.int64) if whole else tasks


def no_task(label: str, place: int, each: str = "row") -> str:
    """What to say of a row or a sequence without a task."""
    return f"{label}, {each} {place}: a task is missing, every {each} needs one"


def task_ids(task: NDArray[Any] | None) -> NDArray[Any]:
    """The distinct tasks, sorted; one task where none was named."""
    return np.array([ONE_TASK]) if task is None else as_ids(list(distinct(task, "task", limit=_MOST_TASKS)))


def places_of(task: NDArray[Any], tasks: NDArray[Any]) -> NDArray[np.int64]:
    """Place of each row's task among known ones, the number of these for one never seen.

    A task that is written in another type is found all the same: "7" where tasks were numbers, 7 where they were text.

    Examples
    --------
    >>> places_of(np.array(["7", "8", "x"], dtype=object), np.array([7, 8])).tolist()
    [0, 1, 2]
    """
    known = tasks.tolist()
    place = encode_alike(task, known).astype(np.int64)
    return np.where(place < 0, len(known), place)


def rows_of_tasks(place: NDArray[np.int64], n_tasks: int) -> list[NDArray[np.int64]]:
    """Rows of every task, in their order, a new task's left out. O(rows log rows), whatever the number of tasks.

    Examples
    --------
    >>> [rows.tolist() for rows in rows_of_tasks(np.array([1, 0, 1, 3]), 3)]
    [[1], [0, 2], []]
    """
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(n_tasks + 1))
    return [order[start:end] for start, end in pairwise(ends)]
