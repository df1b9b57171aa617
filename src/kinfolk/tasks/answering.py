"""The door for rows to be answered: every estimator, loaded predictor and command takes a table through it.

The policy, the same for all of them:

- Columns are known by their names where both the model's table and this one have some. The model's columns must all be
  there, in the order of ``fit``; columns that it does not know are left aside. Without names their number must agree.
- A table without rows is answered by no rows, in the right shape.
- A task that was never seen is a new one, a category that was never seen is missing; a value of another type is matched
  by how it is written. Text in a column that was fitted as numbers is an error.
- An :class:`UnseenWarning` is given where types differ and could not be matched and, for tables of at least 20 rows,
  where a column has no known value or more than half of the rows belong to tasks never seen.
- A model of several tasks must be told which one each row belongs to.

Only numpy is imported here: a saved model answers without anything else installed.
"""

from __future__ import annotations

import sys
import warnings
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.tasks.schema import Codes, Schema, first_of_another_kind, places_of
from kinfolk.tasks.sequences import join_sequences, take_sequences
from kinfolk.tasks.table import Table, is_missing, read_table, take_tasks

_MOST_NAMES_SHOWN = 5
# Tables with fewer rows are too short to say that something must be wrong with them.
_FEWEST_ROWS = 20
# What an estimator's ``new_tasks`` may be.
NEW_TASKS = ("warn", "expected")
# The tasks of tables that a splitter has lately divided by tasks: a model of some is asked about others on purpose.
_divided: deque[frozenset[Any]] = deque(maxlen=16)


class UnseenWarning(UserWarning):
    """Much of a table is unknown to the model: its values or tasks may have other types than in the fit."""


class Known(NamedTuple):
    """What a model remembers of the tables and tasks that it was fitted to.

    ``model`` is the estimator's name, for sentences; ``columns`` are all columns of the table, the task column among
    them, None where they had no names; ``new_tasks`` is "expected" where nothing is to be said of many new tasks;
    ``sequence_column`` tells rows of one sequence from those of another, and ``order_column`` their order, where the
    model is one of sequences.
    """

    model: str
    columns: tuple[str, ...] | None
    n_columns: int
    task_column: str | int | None
    tasks: NDArray[Any]
    new_tasks: str = "warn"
    sequence_column: str | int | None = None
    order_column: str | int | None = None


class Asked(NamedTuple):
    """Rows to be answered: their features, as ``fit`` saw them, and the place of each row's task among those known.

    The place of a task never seen is the number of known ones; ``place`` is None where none was given or needed.
    Where the model is one of sequences, ``lengths`` are those of the sequences that the rows make, ``task`` and
    ``sequence`` their tasks and names as they were given, and ``rows`` says which row each step is, None where they
    stand in that order.
    """

    table: Table
    place: NDArray[np.int64] | None
    lengths: NDArray[np.int64] | None = None
    task: NDArray[Any] | None = None
    sequence: NDArray[Any] | None = None
    rows: NDArray[np.int64] | None = None


def receive_rows(X: Any, known: Known, *, task: Any = None, needs_task: bool = True, sparse: bool = False) -> Asked:
    """Rows that a fitted model is asked about, held to what it knows.

    Parameters
    ----------
    X : frame, array, mapping from columns to values, or scipy sparse matrix
    known : Known
    task : array-like of shape (n_rows,), optional
        The task of each row; it may be left out where the model knows but one, or has a column for it.
    needs_task : bool, default=True
        False for a model that answers for all of its tasks at once.
    sparse : bool, default=False
        Whether a sparse matrix is taken.

    Returns
    -------
    Asked

    Examples
    --------
    >>> known = Known("NoSharingNB", ("colour", "size"), 2, None, np.array(["ann", "bob"]))
    >>> asked = receive_rows({"colour": ["red"], "size": [3], "more": [0]}, known, task=["zoe"])
    >>> asked.table.names, asked.place.tolist()
    (['colour', 'size'], [2])
    """
    table, given = _features_and_tasks(read_table(X, sparse=sparse, only=known.columns), known, task)
    return Asked(table, _places(given, known, table.n_rows, "row", needs_task))


def receive_names(names: Sequence[Any], n_rows: Sequence[int], known: Known) -> list[Any]:
    """The tasks that tables came under, each with so many rows, as the model writes them; one never seen as it came.

    Parameters
    ----------
    names : sequence
        A task for each table.
    n_rows : sequence of int
        How many rows each table has.
    known : Known

    Returns
    -------
    list

    Examples
    --------
    >>> receive_names(["7", "x"], [1, 1], Known("BayesNets", None, 2, None, np.array([7, 8]), "expected"))
    [7, 'x']
    """
    given: NDArray[Any] = np.fromiter(names, dtype=object, count=len(names))
    place = places_of(given, known.tasks)
    if known.new_tasks != "expected":
        _tell_of_new_tasks(np.repeat(given, n_rows), np.repeat(place, n_rows), known.tasks, "row")
    tasks = known.tasks.tolist()
    return [tasks[at] if at < len(tasks) else name for name, at in zip(names, place.tolist(), strict=True)]


def receive_sequences(X: Any, known: Known, *, lengths: Any = None, task: Any = None, needs_task: bool = True) -> Asked:
    """Sequences that a fitted model is asked about: as :func:`receive_rows`, with a task for each sequence.

    They come in a table with ``lengths`` or with the model's sequence column, or as a list (:func:`join_sequences`). A
    column without a table around it is taken by a model of one column alone.
    """
    X, lengths = join_sequences(X, lengths)
    told = [known.task_column] * (task is not None)
    told += [known.sequence_column, known.order_column] * (lengths is not None)
    n_beside = len({column for column in told if column is not None})
    table = read_table(X, flat=known.n_columns - n_beside == 1, only=known.columns, times=known.order_column)
    held = _without_told(known, table, task=task if needs_task else True, lengths=lengths)
    given = lengths, held.sequence_column, task, held.task_column, held.order_column
    taken = take_sequences(hold_columns(table, held), *given)
    place = _places(taken.task, known, len(taken.lengths), "sequence", needs_task)
    return Asked(taken.table, place, *taken[1:])


def _features_and_tasks(table: Table, known: Known, task: Any) -> tuple[Table, NDArray[Any] | None]:
    held = _without_told(known, table, task=task)
    return take_tasks(hold_columns(table, held), task, held.task_column)


def _without_told(known: Known, table: Table, *, task: Any, lengths: Any = None) -> Known:
    """What a model knows less the columns that hold what was told beside the table; these need not stand in it."""
    # Where sequences come with their lengths, their steps may well stand in their order without a column that tells it.
    told = {"task_column": task, "sequence_column": lengths, "order_column": lengths}
    columns = {name: getattr(known, name) for name, value in told.items() if value is not None}
    here = table.names if table.names is not None else columns.values() if table.n_features >= known.n_columns else ()
    beside: dict[str, Any] = {
        name: None for name, column in columns.items() if column is not None and column not in here
    }
    gone = {columns[name] for name in beside}
    names = None if known.columns is None else tuple(name for name in known.columns if name not in gone)
    return known._replace(columns=names, n_columns=known.n_columns - len(gone), **beside)


def _places(given: NDArray[Any] | None, known: Known, n: int, each: str, needs_task: bool) -> NDArray[np.int64] | None:
    if given is not None:
        place = places_of(given, known.tasks)
        if known.new_tasks != "expected":
            _tell_of_new_tasks(given, place, known.tasks, each)
        return place
    if not needs_task:
        return None
    if len(known.tasks) > 1:
        raise ValueError(
            f"the model was fitted to {len(known.tasks)} tasks: say which task each {each} belongs to, task=..."
        )
    return np.zeros(n, dtype=np.int64)


def _tell_of_new_tasks(given: NDArray[Any], place: NDArray[np.int64], tasks: NDArray[Any], each: str) -> None:
    new = np.flatnonzero(place == len(tasks))
    if not len(new) or any(all_tasks.issuperset(tasks.tolist() + given[new].tolist()) for all_tasks in _divided):
        return
    known, advice = tasks.tolist(), 'if that is meant, fit or load the model with new_tasks="expected"'
    odd = first_of_another_kind(given[new], known)
    if odd is not None:
        tell(
            f"task {given.tolist()[new[odd]]!r} of {each} {new[odd]} is of another type than the model's tasks "
            f"({some_names(known)}), and like none of them: it is answered as a new task; {advice}"
        )
    elif len(given) >= _FEWEST_ROWS and 2 * len(new) > len(given):
        strangers = some_names(dict.fromkeys(given[new].tolist()))
        tell(
            f"{len(new)} of {len(given)} {each}s are of tasks that the model has never seen ({strangers}; it knows "
            f"{some_names(known)}): they are answered as new tasks; {advice}"
        )


def expect_new(tasks: Iterable[Any]) -> None:
    """Say nothing where a model of some of these tasks is asked about others of them: they were left out on purpose."""
    all_tasks = frozenset(tasks)
    if all_tasks not in _divided:
        _divided.append(all_tasks)


def divided_tables() -> tuple[frozenset[Any], ...]:
    """The tasks of each table that :func:`expect_new` was told of, for another process to be told of them."""
    return tuple(_divided)


def encode_rows(table: Table, schema: Schema) -> Codes:
    """Codes of rows to be answered, with a warning where nothing, or nothing of its type, is known of a column."""
    codes = schema.encode(table)
    for place, i in enumerate(schema.coded_first[: codes.shape[1]]):
        known = schema.columns[i].categories
        # Of a column whose values the model was not to know, a warning came when it was fitted.
        unknown = codes[:, place] < 0
        if known and unknown.any():
            tell_of_unseen(table.values(i), unknown, known, table.labels[i])
    return codes


def tell_of_unseen(values: NDArray[Any], unknown: NDArray[np.bool_], known: Sequence[Any], label: str) -> None:
    """Warn where ``unknown`` values of a column are of another type than those known, or are all that it has."""
    rows = np.flatnonzero(unknown)
    if not len(rows):
        return
    odd = first_of_another_kind(values[rows], known)
    if odd is not None:
        tell(
            f"{label}, row {rows[odd]}: {values.tolist()[rows[odd]]!r} is of another type than what the model knows "
            f"({some_names(known)}), and like none of it: nothing was learnt about it"
        )
    elif len(rows) == len(values) >= _FEWEST_ROWS and not is_missing(values).all():
        strangers = some_names(dict.fromkeys(values.tolist()))
        tell(
            f"{label} has no value that the model knows ({some_names(known)}), but {strangers}: nothing was "
            "learnt about these"
        )


def some_names(names: Any) -> str:
    """The first few of some names, for sentences."""
    shown = [repr(name) for name in names if name is not None]
    return ", ".join(shown[:_MOST_NAMES_SHOWN]) + (", …" if len(shown) > _MOST_NAMES_SHOWN else "") or "nothing"


def tell(message: str, category: type[Warning] = UnseenWarning) -> None:
    """Warn, at the line outside kinfolk that called it."""
    depth, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "kinfolk":
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, category, stacklevel=depth)


def hold_columns(table: Table, known: Known) -> Table:
    """The columns that a model knows, in its order; an error where the table does not have them so.

    The sentences are those of scikit-learn, whose contract asks for them.
    """
    if known.columns is not None and table.names is not None:
        wanted = set(known.columns)
        kept = [i for i, name in enumerate(table.names) if name in wanted]
        if tuple(table.names[i] for i in kept) != known.columns:
            raise ValueError(_names_differ(table.names, list(known.columns)))
        return table if len(kept) == len(table.names) else table.take(kept)
    if table.n_features != known.n_columns:
        raise ValueError(
            f"X has {table.n_features} features, but {known.model} is expecting {known.n_columns} features as input."
        )
    if known.columns is not None:
        tell(f"X does not have valid feature names, but {known.model} was fitted with feature names", UserWarning)
    elif table.names is not None:
        tell(f"X has feature names, but {known.model} was fitted without feature names", UserWarning)
    return table


def _names_differ(given: list[str], known: list[str]) -> str:
    message = "The feature names should match those that were passed during fit.\n"
    unseen, missing = sorted(set(given) - set(known)), sorted(set(known) - set(given))
    if not missing:
        return message + "Feature names must be in the same order as they were in fit.\n"
    for what, names in (("unseen at fit time", unseen), ("seen at fit time, yet now missing", missing)):
        if names:
            shown = "".join(f"- {name}\n" for name in names[:_MOST_NAMES_SHOWN])
            message += f"Feature names {what}:\n{shown}{'- ...' if len(names) > _MOST_NAMES_SHOWN else ''}"
    return message
