"""Users' tables as the rows of all tasks, coded; and what networks cannot be learnt from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.answers.by_task import encode_part, is_by_task, learn_tasks_and_schema, read_parts, states_of
from kinfolk.networks.model.data import MOST_STATES, Data
from kinfolk.tasks.answering import Known, tell
from kinfolk.tasks.columns import learn_schema
from kinfolk.tasks.schema import Schema, rows_of_tasks
from kinfolk.tasks.table import Backend, backend_of, declared_categories
from kinfolk.tasks.training import receive_table


class Columns(NamedTuple):
    """How an estimator wants tables read.

    ``model`` is the estimator's name, and ``called`` what messages call a task, which needs ``fewest_rows``. Columns
    that are the same in every row are told of unless ``constant`` ones are expected; none may be without a value. Tasks
    must have variables in common where they are to share structures (``sharing``), and all of them where rows are
    pooled.
    """

    task_column: str | int | None = None
    new_tasks: str = "warn"
    categorical_features: str | Sequence[Any] = "auto"
    bins: Any = 8
    model: str = "BayesNets"
    called: str = "task"
    fewest_rows: int = 2
    constant: bool = False
    sharing: str = "none"


class Received(NamedTuple):
    """The rows of all tasks, what to remember of tables, and where the first value is missing, None if none is.

    ``data`` has its variables in the order of their names, so that where columns stand decides nothing; tables without
    names keep their order. ``constant`` tells which of them are the same in every row.
    """

    data: Data
    known: Known
    schema: Schema
    backend: Backend
    gap: str | None
    constant: NDArray[np.bool_]


def receive_data(X: Any, task: Any = None, columns: Columns = Columns()) -> Received:  # noqa: B008 - a frozen value
    """Read a table of all tasks, or one for each, and code it over the variables of all tasks."""
    if is_by_task(X):
        if task is not None or columns.task_column is not None:
            raise ValueError("tables came one for each task, by name: task= and task_column= say it a second time")
        backend = backend_of(next(iter(X.values())))
        parts = read_parts(X)
        tasks, schema = learn_tasks_and_schema(X, parts, columns.categorical_features, columns.bins)
        coded = [encode_part(parts[name], schema) for name in tasks.tolist()]
        codes, present = tuple(its for its, _ in coded), np.stack([here for _, here in coded])
        rows = [np.arange(len(its)) for its in codes]
        named = any(part.table.names is not None for part in parts.values())
        known = Known(columns.model, tuple(schema.names), len(schema.names), None, tasks, columns.new_tasks)
    else:
        arrival = receive_table(
            X,
            model=columns.model,
            task=task,
            task_column=columns.task_column,
            new_tasks=columns.new_tasks,
            shares=columns.sharing in ("joint", "identical"),
        )
        known, backend = arrival.known, arrival.backend
        schema = learn_schema(arrival.table, None, columns.categorical_features, columns.bins, declared_categories(X))
        everything, named = schema.encode(arrival.table), arrival.table.names is not None
        rows = rows_of_tasks(arrival.place, len(known.tasks))
        codes = (everything,) if len(rows) == 1 else tuple(np.asfortranarray(everything[its]) for its in rows)
        present = np.ones((len(codes), len(schema.columns)), dtype=bool)
    _check_sizes(codes, schema, known.tasks, columns)
    _check_overlap(present, schema, known.tasks, columns.sharing)
    gap = _first_gap(codes, present, rows, schema, known.tasks, columns.called)
    constant = _constant(codes, schema, columns)
    order = np.argsort(np.array(schema.names, dtype=object), kind="stable") if named else np.arange(len(schema.names))
    if (np.diff(order) < 0).any():
        codes, present = tuple(np.asfortranarray(its[:, order]) for its in codes), present[:, order]
    data = Data(
        variables=tuple(schema.names[v] for v in order),
        states=tuple(states_of(schema.columns[v]) for v in order),
        cards=schema.n_values[order],
        codes=codes,
        present=present,
        complete=gap is None,
    )
    return Received(data, known, schema, backend, gap, constant[order])


def _check_sizes(codes: tuple[NDArray[np.int32], ...], schema: Schema, tasks: NDArray[Any], columns: Columns) -> None:
    for t, its in enumerate(codes):
        if len(its) < columns.fewest_rows:
            many = "no rows" if not len(its) else "1 sample (row)"
            raise ValueError(f"task {tasks.tolist()[t]!r} has {many}: a network needs at least 2")
    for column, n_values in zip(schema.columns, schema.n_values.tolist(), strict=True):
        if n_values > MOST_STATES:
            raise ValueError(
                f"column {column.name!r} has {n_values} states: at most {MOST_STATES} fit, group them or leave it out"
            )


def _constant(codes: tuple[NDArray[np.int32], ...], schema: Schema, columns: Columns) -> NDArray[np.bool_]:
    """Tell which columns hold one value in all rows of all tasks, missing ones aside, and warn of them."""
    # A missing value, −1, is the largest of all where signs do not count.
    low = np.min([its.view(np.uint32).min(axis=0) for its in codes], axis=0)
    high = np.max([its.max(axis=0) for its in codes], axis=0)
    empty = np.flatnonzero(high < 0)
    if len(empty):
        raise ValueError(f"column {schema.names[empty[0]]!r} has no value in any row: leave it out, it tells nothing")
    constant = np.asarray(high <= low.astype(np.int64))
    if constant.any() and not columns.constant:
        names = ", ".join(repr(schema.names[v]) for v in np.flatnonzero(constant))
        one = constant.sum() == 1
        tell(
            f"{'column' if one else 'columns'} {names} {'holds' if one else 'hold'} the same value in every row: "
            f"{'it becomes a variable' if one else 'they become variables'} without arcs",
            UserWarning,
        )
    return constant


def _first_gap(
    codes: tuple[NDArray[np.int32], ...],
    present: NDArray[np.bool_],
    rows: list[NDArray[np.int64]],
    schema: Schema,
    tasks: NDArray[Any],
    called: str,
) -> str | None:
    """Say where a value is missing, by its row in the table that was given; None where none is."""
    for t, its in enumerate(codes):
        gaps = (its.min(axis=0, initial=0) < 0) & present[t]
        if gaps.any():
            v = int(np.argmax(gaps))
            row = int(rows[t][np.argmax(its[:, v] < 0)])
            return f"column {schema.names[v]!r}, row {row} ({called} {tasks.tolist()[t]!r})"
    return None


def _check_overlap(present: NDArray[np.bool_], schema: Schema, tasks: NDArray[Any], sharing: str) -> None:
    if sharing == "pooled" and not present.all():
        t, v = np.argwhere(~present)[0]
        name = tasks.tolist()[t]
        raise ValueError(f"task {name!r} has no variable {schema.names[v]!r}: pooled rows need all of them")
    common = present.astype(int) @ present.T.astype(int)
    np.fill_diagonal(common, 0)
    alone = np.flatnonzero(common.max(axis=1) == 0)
    if sharing in ("joint", "identical") and len(tasks) > 1 and len(alone):
        name = tasks.tolist()[alone[0]]
        raise ValueError(f"task {name!r} has no variable in common with any other task: leave it out")
