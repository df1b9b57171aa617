"""States of the E-step task by task, for tests that look at one."""

from __future__ import annotations

from typing import Any

from kinfolk.lica.inference.expectation import PER_ROW, TaskStates
from kinfolk.lica.inference.layout import Layout


def each(layout: Layout, states: TaskStates) -> list[Any]:
    """The states of every task, their rows cut out."""
    found = []
    for k in range(layout.data.n_tasks):
        rows = slice(layout.ends[k], layout.ends[k + 1])
        found.append(TaskStates(*(f[rows] for f in states[:PER_ROW]), *(f[k] for f in states[PER_ROW:])))
    return found
