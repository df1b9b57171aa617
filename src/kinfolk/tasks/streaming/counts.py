"""The rows of a table as counts, with the user's own names of tasks, labels, features and values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from kinfolk.tasks.schema import Schema
from kinfolk.tasks.statistics import Rows, Statistics


@dataclass(frozen=True, repr=False, eq=False)
class Counts:
    """What :func:`kinfolk.count_rows` found in a table: all that a naive Bayes model learns from.

    Parameters
    ----------
    statistics : Statistics
        Counts of the labelled rows, per task.
    schema : Schema
        Categories or bin edges of every feature.
    classes : array
        The labels, sorted.
    columns : tuple of str
        The task column and the features, in the order of the table.
    task_column, label_column : str
        What these columns are called.
    n_rows, n_unlabelled : int
        Number of rows that the table has, and of those among them that have no label and were left out.
    rows : Rows
        A sample of the labelled rows, coded: what cannot be learnt from counts, such as how far to trust the features,
        is learnt from these.
    """

    statistics: Statistics
    schema: Schema
    classes: NDArray[Any]
    columns: tuple[str, ...]
    task_column: str
    label_column: str
    n_rows: int
    n_unlabelled: int
    rows: Rows

    @property
    def tasks(self) -> NDArray[Any]:
        """The tasks, sorted."""
        return self.statistics.tasks

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        return self.schema.names

    def __repr__(self) -> str:
        without = f" ({self.n_unlabelled:,} without a label)" if self.n_unlabelled else ""
        sizes = {"task": len(self.tasks), "label": len(self.classes), "feature": len(self.features)}
        shown = [f"{_many(self.n_rows, 'row')}{without}", *(_many(n, what) for what, n in sizes.items())]
        return f"Counts({', '.join(shown)})"


def _many(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
