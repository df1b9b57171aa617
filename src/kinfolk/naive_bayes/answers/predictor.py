"""Predictions from a saved naive Bayes model with numpy alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.naive_bayes.model.densities import Densities
from kinfolk.naive_bayes.model.mixture import MAX_TEMPER, Mixture
from kinfolk.posterior import Archive, names_from, schema_from
from kinfolk.tasks.schema import Schema
from kinfolk.tasks.table import read_table
from kinfolk.tasks.values import as_column, as_ids, encode, is_missing


class NaiveBayesPredictor:
    """A fitted model reduced to what prediction needs; made by :func:`kinfolk.load`.

    Attributes
    ----------
    classes_, tasks_ : arrays
        Labels and tasks, sorted.
    feature_names_in_ : list of str
        Features, in order, the task column left out.
    """

    def __init__(
        self,
        schema: Schema,
        classes: list[Any],
        tasks: list[Any],
        mixture: Mixture,
        temper: NDArray[np.float64],
        averaged: bool,
        task_column: str | int | None,
    ) -> None:
        self._schema = schema
        self._mixture = mixture
        self._temper = temper
        self._averaged = averaged
        self._task_column = task_column
        self.classes_ = as_ids(classes)
        self.tasks_ = as_ids(tasks)
        self.feature_names_in_ = schema.names

    @classmethod
    def from_archive(cls, archive: Archive) -> NaiveBayesPredictor:
        """Rebuild from plain data, checking that its parts fit together."""
        about = archive.about
        return cls(
            schema_from(archive),
            names_from(about["classes"], "labels"),
            names_from(about["tasks"], "tasks"),
            mixture_from(archive),
            temper_from(archive),
            bool(about["averaged"]),
            about["params"]["task_column"],
        )

    def predict_log_proba(self, X: Any, task: Any = None) -> NDArray[np.float64]:
        """Log probability of each label (rows, classes)."""
        table = read_table(X)
        column = self._task_column
        if column is not None and task is not None and table.names is not None and column in table.names:
            raise ValueError(f"task= and task_column={column!r} were both given: one of them is needed")
        if column is not None and task is None:
            index = table.position(column)
            task, table = table.columns[index], table.without(index)
        if table.names is not None and set(self._schema.names) <= set(table.names):
            order = [table.names.index(name) for name in self._schema.names]
            table = table.take(order)._replace(names=self._schema.names)
        elif table.names is not None and not _nameless(self._schema):
            absent = [name for name in self._schema.names if name not in table.names]
            raise ValueError(f"column {absent[0]!r} is not in the table, and the model needs it")
        if len(table.columns) != len(self._schema.columns):
            raise ValueError(
                f"the table has {len(table.columns)} features, the model knows {len(self._schema.columns)}"
            )
        return self._mixture.log_predictive(
            self._schema.encode(table),
            self._places(task, table.n_rows),
            self._temper[self._schema.coded_first],
            self._averaged,
            self._schema.encode_numbers(table),
        )

    def _places(self, task: Any, n_rows: int) -> NDArray[np.int64]:
        n_tasks = len(self.tasks_)
        if task is None:
            if n_tasks > 1:
                raise ValueError(
                    f"the model was fitted to {n_tasks} tasks: say which task each row belongs to, task=..."
                )
            return np.zeros(n_rows, dtype=np.int64)
        tasks = as_column(task, "task")
        missing = is_missing(tasks)
        if len(tasks) != n_rows:
            raise ValueError(f"task has {len(tasks)} entries for {n_rows} rows")
        if missing.any():
            raise ValueError(f"task, row {int(np.argmax(missing))}: a task is missing, every row needs one")
        place = encode(tasks, self.tasks_.tolist()).astype(np.int64)
        return np.where(place < 0, n_tasks, place)

    def predict_proba(self, X: Any, task: Any = None) -> NDArray[np.float64]:
        """Probability of each label (rows, classes)."""
        return np.asarray(np.exp(self.predict_log_proba(X, task)))

    def predict(self, X: Any, task: Any = None) -> NDArray[Any]:
        """The most probable label of each row."""
        return np.asarray(self.classes_[self.predict_log_proba(X, task).argmax(axis=1)])


def _nameless(schema: Schema) -> bool:
    return all(name.isdecimal() for name in schema.names)


def temper_from(archive: Archive) -> NDArray[np.float64]:
    """The powers of a saved model's features; files of earlier versions have one for all."""
    n_features = len(schema_from(archive).columns)
    try:
        temper = np.asarray(archive.about["temper"], dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"its temper is {archive.about['temper']!r}") from None
    if temper.shape not in ((), (n_features,)) or not ((temper >= 0.0) & (temper <= MAX_TEMPER)).all():
        raise ValueError(f"its temper is {temper.tolist()}")
    return np.broadcast_to(temper, (n_features,))


def mixture_arrays(mixture: Mixture) -> dict[str, NDArray[Any]]:
    """The arrays of a mixture, by the names that they are saved under."""
    plain = mixture._asdict()
    densities = plain.pop("densities")
    arrays = {f"mixture.{name}": array for name, array in plain.items()}
    if densities is not None:
        arrays |= {f"densities.{name}": array for name, array in densities._asdict().items()}
    return arrays


def mixture_from(archive: Archive) -> Mixture:
    """The mixture of a saved model, if its arrays fit its schema, labels and tasks."""
    n_labels, n_tasks = len(archive.about["classes"]), len(archive.about["tasks"])
    schema = schema_from(archive)
    n_values = schema.n_values
    width = int(n_values.sum())
    offsets = archive.array("mixture.offsets", "i", (len(n_values) + 1,))
    log_theta = archive.array("mixture.log_theta", "f", (None, width + 1, n_labels))
    start = archive.array("mixture.start", "i", (n_tasks + 2,))
    block = archive.array("mixture.block", "i", (None,))
    log_weight = archive.array("mixture.log_weight", "f", (len(block),))
    log_rates = archive.array("mixture.log_rates", "f", (len(block), n_labels))
    if not np.array_equal(offsets, np.concatenate([[0], np.cumsum(n_values)])):
        raise ValueError("its features do not fit its categories")
    if start[0] != 0 or start[-1] != len(block) or (np.diff(start) < 1).any():
        raise ValueError("its tasks do not fit its blocks")
    if len(block) and not (block.min() >= 0 and block.max() < len(log_theta)):
        raise ValueError("it names blocks that it does not have")
    densities = _densities_from(archive, schema, len(log_theta), n_labels) if schema.numbers else None
    return Mixture(offsets, log_theta, start, block, log_weight, log_rates, densities)


def _densities_from(archive: Archive, schema: Schema, n_blocks: int, n_labels: int) -> Densities:
    n_numbers = len(schema.numbers)
    family = archive.array("densities.family", "i", (n_numbers,))
    if not np.array_equal(family, [number.family == "count" for number in schema.numbers]):
        raise ValueError("its numbers do not fit its columns")
    reach = archive.array("densities.reach", "f", (n_numbers,))
    return Densities(family, reach, archive.array("densities.parameters", "f", (n_blocks, n_numbers, n_labels, 4)))
