"""Tables that came one for each task, by name, and need not have the same columns; with numpy alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.model.network import Codes
from kinfolk.tasks.answering import tell_of_unseen
from kinfolk.tasks.columns import learn_schema, task_ids, used_categories
from kinfolk.tasks.schema import Column, Schema
from kinfolk.tasks.table import Coded, Table, as_column, declared_categories, plain_table, read_table


class Part(NamedTuple):
    """One task's own table, and the names of its columns; their places where they have none."""

    table: Table
    names: list[str]


def is_by_task(X: Any) -> bool:
    """Tell whether data came as one table for each task, in a mapping."""
    # A mapping may be of columns, and one kind of sparse matrix is a mapping too.
    if not isinstance(X, Mapping) or hasattr(X, "toarray") or not X:
        return False
    return all(isinstance(table, Mapping) or len(getattr(table, "shape", ())) == 2 for table in X.values())


def read_parts(X: Mapping[Any, Any], schema: Schema | None = None) -> dict[Any, Part]:
    """Read every task's own table; a column that a schema lacks is refused."""
    parts = {}
    for task, own in X.items():
        table = read_table(own)
        names = [str(place) for place in table.places] if table.names is None else table.names
        unknown = [] if schema is None else [name for name in names if name not in schema.names]
        if unknown:
            raise ValueError(f"task {task!r}: column {unknown[0]!r} was not there in training")
        parts[task] = Part(table, names)
    return parts


def encode_part(part: Part, schema: Schema) -> tuple[Codes, NDArray[np.bool_]]:
    """Code a table over all variables of a schema, −1 where it has none; also tell which of them it has."""
    place = {name: v for v, name in enumerate(schema.names)}
    codes = np.full((part.table.n_rows, len(schema.columns)), -1, dtype=np.int32, order="F")
    here = np.zeros(len(schema.columns), dtype=bool)
    for i, name in enumerate(part.names):
        v = place[name]
        column = schema.columns[v]
        codes[:, v] = column.encode(part.table.columns[i], part.table.labels[i])
        here[v] = True
        unknown = codes[:, v] < 0
        if column.categories and unknown.any():
            tell_of_unseen(part.table.values(i), unknown, column.categories, part.table.labels[i])
    return codes, here


def states_of(column: Column) -> tuple[Any, ...]:
    """What the codes of a column stand for: its categories, or the names of its bins."""
    return tuple(column.value_names) if column.categories is None else column.categories


def learn_tasks_and_schema(
    X: Mapping[Any, Any], parts: Mapping[Any, Part], categorical_features: str | Sequence[Any], bins: Any
) -> tuple[NDArray[Any], Schema]:
    """The ids of the tasks in order, and the states of every variable, learnt from all tasks that have it."""
    union = _union(parts)
    declared = _declared(X, parts, union)
    tasks = task_ids(as_column(list(parts), "task"))
    return tasks, learn_schema(union, None, categorical_features, bins, declared)


def _union(parts: Mapping[Any, Part]) -> Table:
    """All rows of all tables under each other, a value missing where a table has no such column."""
    place: dict[str, int] = {}
    for name, (table, names) in parts.items():
        if table.n_rows == 0:
            raise ValueError(f"task {name!r} has no rows: a network needs at least 2")
        for column in names:
            place.setdefault(column, len(place))
    pieces: list[list[NDArray[Any]]] = [[] for _ in place]
    for table, names in parts.values():
        for i, column in enumerate(names):
            held = table.columns[i]
            # Of text only the different values matter here, of numbers all of them: bins are quantiles.
            pieces[place[column]].append(
                np.array(used_categories(held), dtype=object) if isinstance(held, Coded) else held
            )
    n_rows = sum(table.n_rows for table, _ in parts.values())
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


def _declared(X: Mapping[Any, Any], parts: Mapping[Any, Part], union: Table) -> dict[int, list[Any]]:
    """Categories that any task's categorical columns declare, each once, in order of appearance."""
    assert union.names is not None
    found: dict[int, list[Any]] = {}
    for name, (_, names) in parts.items():
        for own, categories in declared_categories(X[name]).items():
            known = found.setdefault(union.names.index(names[own]), [])
            known += [category for category in categories if category not in known]
    for v, known in found.items():
        # A task may hold plain text where another declares categories.
        seen = {value for value in union.values(v).tolist() if value is not None and value == value}
        found[v] = known + sorted((value for value in seen if value not in known), key=str)
    return found
