"""Sequences as a user gives them: a table with lengths, a long table with a column that tells them apart, or a list.

Only numpy is imported here: a saved model answers without anything else installed.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.tasks.table import Table, as_column, frame_names, is_missing, plain_column, take_tasks


def check_lengths(lengths: Any, n_rows: int) -> NDArray[np.int64]:
    """Whole numbers from 1 that add up to the number of rows; one sequence of all rows if they are not given.

    Examples
    --------
    >>> check_lengths([3, 1], 4).tolist(), check_lengths(None, 4).tolist(), check_lengths(None, 0).tolist()
    ([3, 1], [4], [])
    """
    if lengths is None:
        return np.array([n_rows] if n_rows else [], dtype=np.int64)
    given = as_column(lengths, "lengths")
    numbers = plain_column(given, "lengths") if len(given) else np.zeros(0)
    if numbers.dtype.kind not in "iuf" or not np.isfinite(numbers).all() or (numbers != np.floor(numbers)).any():
        raise ValueError(f"lengths={lengths!r}: a whole number for each sequence is needed")
    too_short = numbers < 1
    if too_short.any():
        which = int(np.argmax(too_short))
        raise ValueError(f"sequence {which} has length {int(numbers[which])}: every sequence needs at least one step")
    total = int(numbers.sum())
    if total != n_rows:
        raise ValueError(f"lengths add up to {total} steps, but X has {n_rows} rows: they must be the same")
    return numbers.astype(np.int64)


def join_sequences(X: Any, lengths: Any = None) -> tuple[Any, Any]:
    """One table of a list of sequences, each an array, a column or a frame, and their lengths; all else as it came.

    A list of lists is a table, row by row, and so is one of flat arrays that comes with lengths.

    Examples
    --------
    >>> join_sequences([np.array([1, 2]), np.array([3])])
    (array([1, 2, 3]), [2, 1])
    """
    if not isinstance(X, list | tuple) or not any(_is_sequence(one) for one in X):
        return X, lengths
    flat = [len(getattr(one, "shape", (0, 0))) == 1 for one in X]
    if lengths is not None:
        if all(flat):
            return X, lengths
        raise ValueError("X is a list of sequences, which says how long each is, and lengths= was given too")
    for i, one in enumerate(X):
        if type(one) is not type(X[0]):
            raise ValueError(
                f"X is a list of sequences, of which number 0 is a {type(X[0]).__name__} and number {i} a "
                f"{type(one).__name__}: all need to be of one kind"
            )
        if len(one) == 0:
            raise ValueError(f"sequence {i} has no steps: every sequence needs at least one")
        if _columns_of(one) != _columns_of(X[0]):
            raise ValueError(
                f"sequence {i} has {_told(_columns_of(one))}, and sequence 0 has {_told(_columns_of(X[0]))}: all "
                "sequences need the same columns, in the same order"
            )
    return _end_to_end(list(X)), [len(one) for one in X]


def _is_sequence(one: Any) -> bool:
    """Whether an entry of a list is a sequence of its own, and not a row or a value."""
    return (isinstance(one, np.ndarray) and one.ndim > 0) or frame_names(one) is not None or hasattr(one, "to_numpy")


def _columns_of(one: Any) -> Any:
    """What a frame calls its columns; of an array, how many it has."""
    names = frame_names(one)
    if names is not None:
        return names
    shape = np.shape(one)
    if len(shape) > 2:
        raise ValueError(f"a sequence has {len(shape)} dimensions, and needs steps and columns alone")
    return shape[1] if len(shape) == 2 else 1


def _told(columns: Any) -> str:
    return f"{columns} column{'s' * (columns != 1)}" if isinstance(columns, int) else f"columns {columns}"


def _end_to_end(parts: list[Any]) -> Any:
    """Arrays, columns or frames of one kind under each other."""
    if isinstance(parts[0], np.ma.MaskedArray):
        return np.ma.concatenate(parts)  # type: ignore[no-untyped-call]
    if isinstance(parts[0], np.ndarray):
        parts = [part if part.ndim == parts[0].ndim else part.reshape(len(part), -1) for part in parts]
        parts = [part.reshape(len(part), -1) for part in parts] if any(part.ndim == 2 for part in parts) else parts
        # Numbers next to text stay numbers.
        mixed = len({part.dtype.kind in "biuf" for part in parts}) > 1
        return np.concatenate([part.astype(object) for part in parts] if mixed else parts)
    library = sys.modules[type(parts[0]).__module__.partition(".")[0]]
    if hasattr(library, "concat_tables"):
        return library.concat_tables(parts)
    return library.concat(parts, **({"ignore_index": True} if hasattr(parts[0], "iloc") else {}))


def take_sequences(
    table: Table,
    lengths: Any,
    sequence_column: str | int | None,
    task: Any,
    task_column: str | int | None,
) -> tuple[Table, NDArray[np.int64], NDArray[Any] | None]:
    """The features of a table of sequences, the steps of each sequence, and its task, None where none is given.

    Examples
    --------
    >>> from kinfolk.tasks.table import read_table
    >>> table = read_table({"clip": ["x", "x", "y"], "who": ["ann", "ann", "bob"], "tone": [1, 2, 3]})
    >>> features, steps, tasks = take_sequences(table, None, "clip", None, "who")
    >>> features.names, steps.tolist(), tasks.tolist()
    (['tone'], [2, 1], ['ann', 'bob'])
    """
    aside = []
    if sequence_column is None:
        steps = check_lengths(lengths, table.n_rows)
    elif lengths is not None:
        raise ValueError(f"lengths= and sequence_column={sequence_column!r} were both given: one of them is needed")
    else:
        aside.append(table.position(sequence_column))
        steps = _runs(table.columns[aside[0]], sequence_column)
    _, tasks = take_tasks(table, task, task_column, steps)
    if task_column is not None and tasks is not None:
        aside.append(table.position(task_column))
        begins = np.cumsum(steps) - steps
        strange = np.flatnonzero(np.repeat(tasks[begins], steps) != tasks)
        if len(strange):
            which = int(np.searchsorted(begins, strange[0], side="right")) - 1
            both = tasks[begins].tolist()[which], tasks.tolist()[strange[0]]
            raise ValueError(
                f"sequence {which} has rows of task {both[0]!r} and of task {both[1]!r}, and is of one task alone: say "
                "where sequences end, by lengths= or by sequence_column="
            )
        tasks = tasks[begins]
    return table.take([i for i in range(len(table.columns)) if i not in aside]), steps, tasks


def _runs(values: NDArray[Any], column: str | int) -> NDArray[np.int64]:
    """How many rows each sequence has, whose rows follow each other."""
    missing = is_missing(values)
    if missing.any():
        raise ValueError(f"sequence column {column!r}, row {int(np.argmax(missing))}: a sequence is missing")
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    begins = np.append(0, np.flatnonzero(values[1:] != values[:-1]) + 1)
    met: set[Any] = set()
    for value in values[begins].tolist():
        if value in met:
            raise ValueError(
                f"rows of sequence {value!r} do not follow each other: sort the table by its column {column!r} first, "
                "those of a sequence in their order"
            )
        met.add(value)
    return np.diff(np.append(begins, len(values)))
