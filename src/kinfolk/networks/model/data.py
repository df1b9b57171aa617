"""The rows of several tasks, which need not have the same variables, as codes over all variables."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.tasks.schema import Codes, Column, Schema


class Data(NamedTuple):
    """Coded rows of every task over the variables of all of them; −1 stands for a missing value.

    ``present[t, v]`` tells whether task t has variable v at all; ``rows[t]`` are the places of its rows in the table
    that was given, or in its own where each task came with one. ``called`` is what messages call a task.
    """

    tasks: NDArray[Any]
    schema: Schema
    codes: list[Codes]
    present: NDArray[np.bool_]
    rows: list[NDArray[np.int64]]
    called: str = "task"

    @property
    def variables(self) -> list[str]:
        """Names of all variables."""
        return self.schema.names

    @property
    def cards(self) -> NDArray[np.int64]:
        """Number of states of each variable."""
        return self.schema.n_values


def states_of(column: Column) -> tuple[Any, ...]:
    """What the codes of a column stand for: its categories, or the names of its bins."""
    return tuple(column.value_names) if column.categories is None else column.categories


def check_overlap(tables: Data) -> None:
    """Refuse a task that has no variable in common with any other: nothing can be shared with it."""
    common = tables.present.astype(int) @ tables.present.T.astype(int)
    np.fill_diagonal(common, 0)
    alone = np.flatnonzero(common.max(axis=1) == 0)
    if len(tables.tasks) > 1 and len(alone):
        name = tables.tasks.tolist()[alone[0]]
        raise ValueError(f"task {name!r} has no variable in common with any other task: leave it out")


def first_missing(tables: Data) -> str | None:
    """Say where a value is missing; None where none is."""
    for t, codes in enumerate(tables.codes):
        gaps = (codes < 0) & tables.present[t]
        if gaps.any():
            v = int(np.argmax(gaps.any(axis=0)))
            row = int(tables.rows[t][np.argmax(gaps[:, v])])
            return f"column {tables.variables[v]!r}, row {row} ({tables.called} {tables.tasks.tolist()[t]!r})"
    return None
