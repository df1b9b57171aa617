"""A training table, taken apart into what an estimator wants: features with the task, labels and weights.

What is wrong with a column is said here, where its name is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kinfolk.cli.tables import need_columns, need_plain_types, present, read_table


class Roles(NamedTuple):
    """Which column of a table is what; ``features`` or ``drop`` may be empty, meaning all others and none.

    A table to learn Bayes nets from has neither labels nor weights.
    """

    task: str
    label: str | None
    weight: str | None
    features: Sequence[str]
    drop: Sequence[str]


class Training(NamedTuple):
    """What an estimator is fitted to; ``unlabelled`` is the mark of a row without a label, in the labels' own type."""

    table: pl.DataFrame
    labels: list[Any]
    weights: NDArray[np.float64] | None
    unlabelled: Any

    @property
    def n_unlabelled(self) -> int:
        """Number of rows without a label."""
        return sum(label is None or label == self.unlabelled for label in self.labels)


def read_variables(path: Path, roles: Roles) -> pl.DataFrame:
    """Read a table that has no label: its task and its features."""
    frame = read_table(path)
    frame = frame.select(roles.task, *features_of(frame, roles, path))
    need_plain_types(frame, path)
    _need_tasks(frame[roles.task])
    return frame


def read_training(path: Path, roles: Roles, unlabelled: str | None) -> Training:
    """Read a table and take it apart."""
    assert roles.label is not None
    frame = read_table(path)
    features = features_of(frame, roles, path)
    need_plain_types(frame.select(roles.task, roles.label, *features), path)
    labels = labels_of(frame[roles.label])
    mark = None if unlabelled is None else mark_of(unlabelled, labels)
    known = present(labels) if mark is None else present(labels) & (labels != mark)
    if not known.any():
        raise ValueError(f"label column {roles.label!r} has no label in any row: there is nothing to learn from")
    weights = None if roles.weight is None else _weights(frame[roles.weight])
    if weights is not None and not weights[known.to_numpy()].any():
        raise ValueError(f"weight column {roles.weight!r} is zero in every row with a label: at least one must count")
    _need_tasks(frame[roles.task])
    return Training(frame.select(roles.task, *features), labels.to_list(), weights, mark)


def _need_tasks(tasks: pl.Series) -> None:
    missing = ~present(tasks)
    if missing.any():
        raise ValueError(f"task column {tasks.name!r}, row {missing.arg_max()}: a task is missing, every row needs one")


def features_of(frame: pl.DataFrame, roles: Roles, path: Path) -> list[str]:
    """Names of the features, in the order of the table."""
    taken = {"task": roles.task, "label": roles.label, "weight": roles.weight}
    columns = [column for column in taken.values() if column is not None]
    need_columns(frame, [*columns, *roles.features, *roles.drop], path)
    if len(set(columns)) < len(columns):
        twice = next(column for column in columns if columns.count(column) > 1)
        uses = " and ".join(use for use, column in taken.items() if column == twice)
        raise ValueError(f"column {twice!r} was given as {uses}: each needs a column of its own")
    if roles.features and roles.drop:
        raise ValueError("--feature and --drop were both given: name the features, or those to leave out")
    for use, column in taken.items():
        if column in roles.features:
            raise ValueError(f"column {column!r} is the {use} and also a feature: it can be only one of them")
        if column in roles.drop:
            raise ValueError(f"column {column!r} is the {use}: --drop cannot leave it out")
    wanted = roles.features or [name for name in frame.columns if name not in roles.drop]
    features = [name for name in frame.columns if name in wanted and name not in columns]
    if not features:
        raise ValueError(
            f"{path} has no feature: beside {', '.join(map(repr, columns))} it needs a column to learn from"
        )
    return features


def labels_of(values: pl.Series) -> pl.Series:
    """Labels as text, whole numbers or booleans, null where there is none."""
    kind = values.dtype
    if kind in (pl.Categorical, pl.Enum):
        return values.cast(pl.String)
    if kind.is_float():
        # Whole numbers with gaps are floats in many a file.
        values = values.fill_nan(None)
        fractions = values.filter(values.is_infinite() | (values != values.floor()))
        if len(fractions):
            raise ValueError(f"label column {values.name!r} holds {fractions[0]}: labels are text or whole numbers")
        return values.cast(pl.Int64)
    return values


def mark_of(given: str, labels: pl.Series) -> Any:
    """The mark of rows without a label, in the type of the labels."""
    if labels.dtype == pl.String:
        return given
    read = pl.Series([given]).cast(labels.dtype, strict=False) if labels.dtype.is_integer() else None
    if read is None or read[0] is None:
        raise ValueError(f"--unlabelled {given!r} cannot stand in label column {labels.name!r}, of type {labels.dtype}")
    return read[0]


def _weights(values: pl.Series) -> NDArray[np.float64]:
    """Weights as floats, all finite and none negative."""
    if not values.dtype.is_numeric():
        raise ValueError(f"weight column {values.name!r} holds {values.dtype} values: weights are numbers")
    weights = values.cast(pl.Float64).to_numpy()
    wrong = ~np.isfinite(weights) | (weights < 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        given = "missing" if np.isnan(weights[row]) else weights[row]
        raise ValueError(
            f"weight column {values.name!r}, row {row}: {given} is no weight, it must be finite and not negative"
        )
    return weights
