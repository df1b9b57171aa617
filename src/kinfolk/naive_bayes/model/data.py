"""What inference learns from: counts of the labelled rows, task by task, and the rows without a label."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.tasks.statistics import Rows, Statistics, no_rows


class TrainingData(NamedTuple):
    """Counts of the labelled rows of every task, and the coded rows that have no label."""

    statistics: Statistics
    unlabelled: Rows

    @property
    def n_unlabelled(self) -> int:
        """Number of rows without a label."""
        return len(self.unlabelled.labels)

    def labelled_only(self) -> TrainingData:
        """The same tasks without their unlabelled rows."""
        return self._replace(unlabelled=no_rows(self.statistics.layout))

    def pooled(self) -> TrainingData:
        """All tasks as one."""
        rows = self.unlabelled
        return TrainingData(self.statistics.pooled(), rows._replace(task=np.zeros_like(rows.task)))

    def refuse_numbers(self) -> None:
        """Say so where there are columns of numbers, for the models of clusters that know counts alone."""
        if self.statistics.layout.numbers:
            raise ValueError(
                'partition_per="feature" and within="noisy" take no columns of numbers: give numeric="bin"'
            )

    def canonical_order(self) -> NDArray[np.int64]:
        """Tasks in an order that depends on what they hold, so that results depend on neither names nor order."""
        statistics, unlabelled = self.statistics, self.unlabelled
        rows_of: dict[int, list[bytes]] = {}
        if len(unlabelled.task):
            for task, described in zip(unlabelled.task.tolist(), unlabelled.described(), strict=True):
                rows_of.setdefault(task, []).append(described.tobytes())
        keys = [
            (labels.tobytes(), features.tobytes(), sorted(rows_of.get(task, [])))
            for task, (labels, features) in enumerate(
                zip(statistics.label_counts, statistics.feature_counts, strict=True)
            )
        ]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)

    def arranged(self, order: NDArray[np.int64]) -> tuple[TrainingData, NDArray[np.int64]]:
        """The same data with tasks in the given order and unlabelled rows in one of their own, which is returned."""
        statistics, rows = self.statistics, self.unlabelled
        task = np.argsort(order)[rows.task] if len(rows.task) else rows.task
        row_order = np.lexsort([*rows.described().T[::-1], task])
        arranged_rows = rows._replace(task=task).take(row_order)
        arranged_rows = arranged_rows._replace(codes=np.ascontiguousarray(arranged_rows.codes))
        arranged = statistics._replace(
            tasks=statistics.tasks[order],
            feature_counts=statistics.feature_counts[order],
            label_counts=statistics.label_counts[order],
        )
        return TrainingData(arranged, arranged_rows), row_order
