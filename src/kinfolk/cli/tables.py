"""Names of labels, tasks and columns as people write and read them; tables from files or standard input."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from kinfolk.cli.fit import TableOptions
    from kinfolk.tasks.streaming.roles import Roles

STANDARD_INPUT = "-"
_LONGEST_LIST = 40


def read_table(path: Path, text: Collection[str] = ()) -> pl.DataFrame:
    """Read a file, or CSV on standard input where that is what the path stands for, as `read_file` does."""
    from kinfolk.tasks.streaming.scanning import read_file

    return read_file(sys.stdin.buffer if str(path) == STANDARD_INPUT else path, text)


def read_training(
    table: TableOptions, label: str | None = None, weight: str | None = None
) -> tuple[pl.DataFrame, Roles]:
    """Read a table to learn from, and tell which of its columns is what."""
    frame = read_table(table.table)
    return frame, roles_of(frame.columns, table, label, weight)


def roles_of(columns: Sequence[str], table: TableOptions, label: str | None, weight: str | None) -> Roles:
    """Which of these columns is what, features in the order in which they stand there."""
    from kinfolk.tasks.streaming.roles import assign_roles

    if table.feature and table.drop:
        raise ValueError("--feature and --drop were both given: name the features, or those to leave out")
    chosen = sorted(table.feature or (), key=lambda name: columns.index(name) if name in columns else -1)
    where = "standard input" if str(table.table) == STANDARD_INPUT else str(table.table)
    return assign_roles(
        columns, where, task=table.task, label=label, weight=weight, features=chosen or None, drop=table.drop
    )


def listed(names: Sequence[Any]) -> str:
    """Names as they stand in a sentence.

    Examples
    --------
    >>> listed(["task", "size"])
    "'task', 'size'"
    """
    shown = ", ".join(repr(name) for name in names[:_LONGEST_LIST])
    return shown if len(names) <= _LONGEST_LIST else f"{shown} and {len(names) - _LONGEST_LIST} more"


def shown(value: Any) -> str:
    """A label or task as tables show it.

    Examples
    --------
    >>> shown(True), shown(3), shown("yes")
    ('true', '3', 'yes')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def named(given: str, known: Sequence[Any], what: str) -> Any:
    """Find the label or task that a user wrote out among those known.

    Examples
    --------
    >>> named("3", [1, 2, 3], "task")
    3
    """
    for value in known:
        if shown(value) == given:
            return value
    raise ValueError(f"{what} {given!r} is not one of {listed(known)}")
