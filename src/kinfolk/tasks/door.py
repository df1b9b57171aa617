"""What rooms still take from the old door; they come to ``training`` and ``answering`` one by one."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from kinfolk.tasks.membership import ONE_TASK, take_tasks, task_ids
from kinfolk.tasks.table import Table, read_table
from kinfolk.tasks.training import check_labels, check_weights, need_some

__all__ = ["ONE_TASK", "Arrival", "check_labels", "check_weights", "receive", "task_ids"]


class Arrival(NamedTuple):
    """A user's rows: features, and per row a task (None where none was given)."""

    table: Table
    task: NDArray[Any] | None


def receive(X: Any, task: Any, task_column: str | int | None) -> Arrival:
    """Read a table and each row's task, from ``task`` or from one of the table's columns."""
    table, tasks = take_tasks(read_table(X), task, task_column)
    need_some(table)
    return Arrival(table, tasks)
