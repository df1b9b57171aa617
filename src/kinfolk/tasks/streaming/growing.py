"""Tables of counts that grow while rows come in: tasks, labels and values are numbered as they turn up."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.tasks.statistics import MAX_CELLS


class CodedBatch(NamedTuple):
    """A batch of rows: codes of tasks, of labels (−1 for none), of features (−1 for missing), and weights, or none.

    ``n_rows`` are the rows that each entry stands for, where entries are groups of rows; they are empty where the rows
    have come before, with other features.
    """

    task: NDArray[np.int32]
    label: NDArray[np.int32]
    features: dict[int, NDArray[np.int32]]
    weights: NDArray[Any]
    n_rows: NDArray[np.int64] | None = None

    @property
    def again(self) -> bool:
        """Whether these rows have come before."""
        return self.n_rows is not None and len(self.n_rows) < len(self.task)


class GrowingTables:
    """Counts per (task, label) of every feature's values, and of the rows.

    Features' tables have one row more, the first, for all rows without a label: those have a say in what values a
    column has. Counts are whole where rows have no weights, else floats.

    Attributes
    ----------
    features : list of arrays of shape (1 + n_tasks · n_labels, values)
        Counts of values.
    rows : array of shape (n_tasks, 1 + n_labels)
        Counts of rows, those without a label first.
    """

    def __init__(self, n_features: int, dtype: np.dtype[Any]) -> None:
        self.n_tasks = self.n_labels = 0
        self.features: list[NDArray[Any]] = [np.zeros((1, 1), dtype=dtype) for _ in range(n_features)]
        self.rows: NDArray[Any] = np.zeros((0, 1), dtype=dtype)

    def add(self, batch: CodedBatch, again: bool = False) -> None:
        """Count the features that a batch has, and its rows, unless they come again with other features."""
        self._make_room(batch)
        whose = _table_rows(batch.task, batch.label, self.n_labels)
        for f, codes in batch.features.items():
            _add(self.features[f], whose, codes, batch.weights)
        if not (again or batch.again):
            _add(self.rows, batch.task.astype(np.int64), batch.label + np.int32(1), batch.weights)

    def of_feature(self, f: int) -> NDArray[Any]:
        """Counts of the labelled rows: (tasks, labels, values)."""
        return self.features[f][1:].reshape(self.n_tasks, self.n_labels, -1)

    def of_values(self, f: int) -> NDArray[Any]:
        """Weight of all rows with each value, labelled or not."""
        return np.asarray(self.features[f].sum(axis=0, dtype=np.float64))

    def widen(self) -> None:
        """Make room for more rows than 32 bits can count."""
        self.features = [table.astype(np.int64, copy=False) for table in self.features]
        self.rows = self.rows.astype(np.int64, copy=False)

    def _make_room(self, batch: CodedBatch) -> None:
        n_tasks = max(self.n_tasks, _n_codes(batch.task))
        n_labels = max(self.n_labels, _n_codes(batch.label))
        sizes = [table.shape[1] for table in self.features]
        for f, codes in batch.features.items():
            sizes[f] = max(sizes[f], _n_codes(codes))
        if n_tasks * n_labels * sum(sizes) > MAX_CELLS:
            raise ValueError(
                f"{n_tasks:,} tasks times {n_labels * sum(sizes):,} counts each are too many to hold: fewer bins or "
                "categories, or fewer tasks at a time, are needed"
            )
        if n_tasks > self.n_tasks:
            # Half as many again, so that tables which grow with every batch are not copied every time.
            n_tasks = max(n_tasks, self.n_tasks * 3 // 2)
        old, new = (self.n_tasks, self.n_labels), (n_tasks, n_labels)
        for f, size in enumerate(sizes):
            self.features[f] = _grown(self.features[f], old, new, size)
        if old != new:
            rows = np.zeros((n_tasks, 1 + n_labels), dtype=self.rows.dtype)
            rows[: old[0], : 1 + old[1]] = self.rows
            self.rows, self.n_tasks, self.n_labels = rows, n_tasks, n_labels


def _n_codes(codes: NDArray[np.int32]) -> int:
    return int(codes.max()) + 1 if len(codes) else 0


def _grown(table: NDArray[Any], old: tuple[int, int], new: tuple[int, int], n_values: int) -> NDArray[Any]:
    """A table with room for more tasks, labels and values, or the same one where it has the room."""
    width = table.shape[1]
    if old == new and width == n_values:
        return table
    grown = np.zeros((1 + new[0] * new[1], n_values), dtype=table.dtype)
    grown[0, :width] = table[0]
    grown[1:].reshape(*new, n_values)[: old[0], : old[1], :width] = table[1:].reshape(*old, width)
    return grown


@compiled
def _table_rows(task, label, n_labels):  # type: ignore[no-untyped-def]
    rows = np.empty(len(task), dtype=np.int64)
    for i in range(len(task)):
        rows[i] = 0 if label[i] < 0 else 1 + np.int64(task[i]) * n_labels + label[i]
    return rows


@compiled
def _add(table, rows, codes, weights):  # type: ignore[no-untyped-def]
    if len(weights) == 0:
        for i in range(len(rows)):
            if codes[i] >= 0:
                table[rows[i], codes[i]] += 1
    else:
        for i in range(len(rows)):
            if codes[i] >= 0:
                table[rows[i], codes[i]] += weights[i]
