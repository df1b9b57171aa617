"""The tables of several tasks, which need not have the same columns, as codes over all variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.answers.rows import by_task, encode_part, names_of
from kinfolk.networks.model.cases import MOST_STATES
from kinfolk.networks.model.data import Data
from kinfolk.tasks.answering import Known
from kinfolk.tasks.columns import learn_schema, task_ids, used_categories
from kinfolk.tasks.schema import rows_of_tasks
from kinfolk.tasks.table import Table, as_column, declared_categories, plain_table, read_table
from kinfolk.tasks.training import receive_table


def learn_tables_of(
    X: Any,
    task: Any,
    task_column: str | int | None,
    categorical_features: str | Sequence[Any],
    bins: Any,
    fewest_rows: int = 2,
    called: str = "task",
    constant: bool = False,
    model: str = "BayesNets",
    new_tasks: str = "warn",
) -> tuple[Data, Known]:
    """Read tables and learn the states of every variable from all tasks that have it; and what to remember of tables.

    A task needs ``fewest_rows``; a column that is the same in every row is refused unless ``constant`` ones may be.
    """
    if by_task(X):
        if task is not None or task_column is not None:
            raise ValueError("tables came one for each task, by name: task= and task_column= say it a second time")
        parts = {name: read_table(table) for name, table in X.items()}
        union = _union(parts)
        declared = _declared(X, parts, union)
        schema = learn_schema(union, None, categorical_features, bins, declared)
        tasks = task_ids(as_column(list(parts), "task"))
        present = np.zeros((len(tasks), len(schema.columns)), dtype=bool)
        codes, rows = [], []
        for t, name in enumerate(tasks.tolist()):
            coded, here = encode_part(parts[name], schema)
            codes.append(coded)
            present[t] = here
            rows.append(np.arange(len(coded)))
        known = Known(model, tuple(schema.names), len(schema.names), None, tasks, new_tasks)
    else:
        arrival = receive_table(X, model=model, task=task, task_column=task_column, new_tasks=new_tasks)
        schema = learn_schema(arrival.table, None, categorical_features, bins, declared_categories(X))
        known, tasks = arrival.known, arrival.known.tasks
        everything = schema.encode(arrival.table)
        rows = rows_of_tasks(arrival.place, len(tasks))
        codes = [np.asfortranarray(everything[its]) for its in rows]
        present = np.ones((len(tasks), len(schema.columns)), dtype=bool)
    tables = Data(tasks, schema, codes, present, rows, called)
    _check_sizes(tables, fewest_rows, constant)
    return tables, known


def _union(parts: Mapping[Any, Table]) -> Table:
    """All rows of all tables under each other, a value missing where a table has no such column."""
    place: dict[str, int] = {}
    for name, table in parts.items():
        if table.n_rows == 0:
            raise ValueError(f"task {name!r} has no rows: a network needs at least 2")
        for column in names_of(table):
            place.setdefault(column, len(place))
    pieces: list[list[NDArray[Any]]] = [[] for _ in place]
    for table in parts.values():
        for i, column in enumerate(names_of(table)):
            coded = table.coded[i]
            # Of text only the different values matter here, of numbers all of them: bins are quantiles.
            pieces[place[column]].append(
                table.columns[i] if coded is None else np.array(used_categories(coded), dtype=object)
            )
    n_rows = sum(table.n_rows for table in parts.values())
    columns = []
    for own in pieces:
        text = any(piece.dtype == object for piece in own)
        joined = np.concatenate([piece.astype(object) for piece in own] if text else own)
        if len(joined) < n_rows:
            # Where the missing ones stand does not matter: this table is for learning states alone.
            gap: NDArray[Any] = np.full(n_rows - len(joined), None if text else np.nan, dtype=object if text else float)
            joined = np.concatenate([joined, gap])
        columns.append(joined)
    return plain_table(list(place), columns)


def _declared(X: Mapping[Any, Any], parts: Mapping[Any, Table], union: Table) -> dict[int, list[Any]]:
    """Categories that any task's categorical columns declare, each once, in order of appearance."""
    assert union.names is not None
    found: dict[int, list[Any]] = {}
    for name, table in parts.items():
        for own, categories in declared_categories(X[name]).items():
            known = found.setdefault(union.names.index(names_of(table)[own]), [])
            known += [category for category in categories if category not in known]
    for v, known in found.items():
        # A task may hold plain text where another declares categories.
        seen = {value for value in union.columns[v].tolist() if value is not None and value == value}
        found[v] = known + sorted((value for value in seen if value not in known), key=str)
    return found


def _check_sizes(tables: Data, fewest_rows: int, constant: bool) -> None:
    for t, codes in enumerate(tables.codes):
        if len(codes) < fewest_rows:
            many = "no rows" if not len(codes) else "1 sample (row)"
            raise ValueError(f"task {tables.tasks.tolist()[t]!r} has {many}: a network needs at least 2")
    for v, column in enumerate(tables.schema.columns):
        if column.n_values > MOST_STATES:
            raise ValueError(
                f"column {column.name!r} has {column.n_values} states: at most {MOST_STATES} fit, group them or leave "
                "it out"
            )
        # Missing values, −1, are counted first and left out.
        counts = [np.bincount(codes[:, v] + 1, minlength=column.n_values + 1)[1:] for codes in tables.codes]
        seen = np.sum(counts, axis=0) > 0
        if seen.sum() < 2 and not constant:
            shown = column.value_names[int(np.argmax(seen))] if seen.any() else "nothing"
            raise ValueError(f"column {column.name!r} holds {shown!r} in every row: leave it out, it tells nothing")
