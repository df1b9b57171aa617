"""Sequences as a user gives them: a table with lengths, a long table with a column that tells them apart, or a list.

Only numpy is imported here: a saved model answers without anything else installed.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any, NamedTuple

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
        _refuse_ragged_lists(X)
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


def _refuse_ragged_lists(X: Any) -> None:
    """Refuse lists of lists that cannot be the rows of a table: as sequences they are written otherwise."""
    if isinstance(X, list | tuple) and X and all(isinstance(row, list | tuple) for row in X):
        odd = next((i for i, row in enumerate(X) if len(row) != len(X[0])), None)
        if odd is not None:
            raise ValueError(
                f"X is a list of lists, number 0 of {len(X[0])} and number {odd} of {len(X[odd])} values: the rows of "
                "a table have as many each; if each is a sequence, say so, [numpy.array(one) for one in X]"
            )


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


class Taken(NamedTuple):
    """The features of a table of sequences, the steps of each sequence, and its task, None where none is given.

    ``sequence`` is what a column of the table calls each sequence, None where there is none. The table's rows stand as
    they came, so that sentences about them number them so; ``rows`` says which of them each step is, sequence by
    sequence, None where they stand in that order.
    """

    table: Table
    lengths: NDArray[np.int64]
    task: NDArray[Any] | None
    sequence: NDArray[Any] | None = None
    rows: NDArray[np.int64] | None = None


def take_sequences(
    table: Table,
    lengths: Any,
    sequence_column: str | int | None,
    task: Any,
    task_column: str | int | None,
    order_column: str | int | None = None,
) -> Taken:
    """Tell the sequences of a table apart, by ``lengths``, or by the columns of sequences and of tasks.

    Rows of a task that have the same value in the sequence column are one sequence; without such a column, all rows of
    a task. They follow each other, unless a column tells their order.

    Examples
    --------
    >>> from kinfolk.tasks.table import read_table
    >>> table = read_table({"clip": ["x", "y", "x"], "who": ["ann", "bob", "ann"], "tone": [1, 2, 3], "at": [8, 1, 7]})
    >>> taken = take_sequences(table, None, "clip", None, "who", "at")
    >>> taken.table.names, taken.lengths.tolist(), taken.task.tolist(), taken.rows.tolist()
    (['tone'], [2, 1], ['ann', 'bob'], [2, 0, 1])
    """
    if sequence_column is not None and lengths is not None:
        raise ValueError(f"lengths= and sequence_column={sequence_column!r} were both given: one of them is needed")
    places = {column: table.position(column) for column in (sequence_column, task_column, order_column)
              if column is not None}  # fmt: skip
    features = table.take([i for i in range(len(table.columns)) if i not in places.values()])
    of_rows = None if task_column is None else take_tasks(table, task, task_column)[1]
    ids = None if sequence_column is None else table.values(places[sequence_column])
    if ids is None and (lengths is not None or of_rows is None):
        steps = check_lengths(lengths, table.n_rows)
        sequence = np.repeat(np.arange(len(steps)), steps)
    else:
        sequence = _numbered(ids, sequence_column, of_rows)
        steps = np.bincount(sequence)
    rows = None
    if order_column is not None:
        rows = _in_order(table.values(places[order_column]), order_column, sequence)
    elif (np.diff(sequence) < 0).any():
        _refuse_scattered(table, sequence, sequence_column, task_column)
    firsts = np.unique(sequence, return_index=True)[1]
    if of_rows is None:
        tasks = take_tasks(table, task, None, steps)[1]
    else:
        tasks = of_rows[firsts]
        strange = np.flatnonzero(tasks[sequence] != of_rows)
        if len(strange):
            which, row = int(sequence[strange[0]]), int(strange[0])
            raise ValueError(
                f"sequence {which} has rows of task {tasks.tolist()[which]!r} and of task {of_rows.tolist()[row]!r}, "
                "and is of one task alone: say where sequences end, by lengths= or by sequence_column="
            )
    named = None if ids is None else ids[firsts]
    return Taken(features, steps, tasks, named, rows)


def _numbered(values: NDArray[Any] | None, column: str | int | None, tasks: NDArray[Any] | None) -> NDArray[np.int64]:
    """The sequence of each row, numbered as they are met: that of its task and of its value, of which one may be."""
    if values is not None and (missing := is_missing(values)).any():
        raise ValueError(f"sequence column {column!r}, row {int(np.argmax(missing))}: a sequence is missing")
    met: dict[Any, int] = {}
    keys = zip(*(part.tolist() for part in (tasks, values) if part is not None), strict=True)
    return np.array([met.setdefault(key, len(met)) for key in keys], dtype=np.int64)


def _refuse_scattered(
    table: Table, sequence: NDArray[np.int64], sequence_column: str | int | None, task_column: str | int | None
) -> None:
    row = int(np.argmax(np.diff(sequence) < 0)) + 1
    of, column = ("sequence", sequence_column) if sequence_column is not None else ("task", task_column)
    assert column is not None
    value = table.values(table.position(column)).tolist()[row]
    raise ValueError(
        f"rows of {of} {value!r} do not follow each other (row {row}): sort the table by its column {column!r} first, "
        "those of a sequence in their order, or name the column that tells it (order_column=, or --order)"
    )


def _in_order(values: NDArray[Any], column: str | int, sequence: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows sequence by sequence, those of each by what a column has; equal ones as they came, which is told."""
    missing = np.isnat(values) if values.dtype.kind in "mM" else is_missing(values)
    if missing.any():
        raise ValueError(f"order column {column!r}, row {int(np.argmax(missing))}: a place in its sequence is missing")
    try:
        place = np.unique(values, return_inverse=True)[1].ravel()
    except TypeError:
        kinds = " and ".join(sorted({type(value).__name__ for value in values.tolist()}))
        raise ValueError(
            f"order column {column!r} has {kinds}, which have no order: values of one kind are needed"
        ) from None
    rows = np.lexsort((place, sequence))
    same = (np.diff(sequence[rows]) == 0) & (np.diff(place[rows]) == 0)
    if same.any():
        first, second = sorted(rows[int(np.argmax(same)) :][:2].tolist())
        n_pairs = int(same.sum())
        of_more = f", the first of {n_pairs:,} such pairs" if n_pairs > 1 else ""
        warnings.warn(
            f"order column {column!r}: rows {first} and {second} are of one sequence and both have "
            f"{values.tolist()[first]!r}{of_more}: such rows stay in the order of the table",
            UserWarning,
            stacklevel=2,
        )
    return rows
