"""What a saved model says about the rows of a new table.

A model of labels gives their probabilities, Bayes nets the log probability of the row as a whole.

A column may look different in a new file: task 7 is a number where all tasks are, and text beside a task "seven". The
model remembers the types that it was fitted to, and the new table is brought to those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kinfolk.cli.tables import need_columns, need_plain_types, present, read_table, shown

if TYPE_CHECKING:
    from kinfolk.naive_bayes.answers.predictor import NaiveBayesPredictor
    from kinfolk.networks.answers.predictor import NetworksPredictor
    from kinfolk.tasks.schema import Column

    Predictor = NaiveBayesPredictor | NetworksPredictor


class Rows(NamedTuple):
    """Rows of a table: their tasks as it has them and as the model knows them, None where that has but one."""

    tasks: pl.Series | None
    known_tasks: list[Any] | None
    features: pl.DataFrame


class Answers(NamedTuple):
    """The tasks of rows, as their table has them, and the probabilities of labels."""

    tasks: pl.Series | None
    classes: list[Any]
    probabilities: NDArray[np.float64]


def has_labels(predictor: Any) -> bool:
    """Whether a model gives probabilities of labels."""
    return hasattr(predictor, "predict_proba") and getattr(predictor, "classes_", None) is not None


def ask(predictor: Any, model: Path, table: Path, task: str | None) -> Answers:
    """Predict the label of every row of a table.

    Parameters
    ----------
    predictor : predictor
        What was loaded from the file ``model``.
    model, table : Path
        The saved model, and a file that :func:`kinfolk.cli.tables.read_table` reads.
    task : str, optional
        The table's task column, if it is not called as it was at fit.
    """
    if not has_labels(predictor):
        what = "Bayes nets, which have" if hasattr(predictor, "networks_") else "a model that has"
        raise ValueError(f"{model} holds {what} no label to predict or to decide about")
    rows = read_rows(predictor, model, table, task)
    probabilities = predictor.predict_proba(rows.features, task=rows.known_tasks)
    return Answers(rows.tasks, predictor.classes_.tolist(), probabilities)


def rate(predictor: NetworksPredictor, model: Path, table: Path, task: str | None) -> pl.DataFrame:
    """Tell how probable Bayes nets find every row of a table: its task, and the natural log of its probability."""
    rows = read_rows(predictor, model, table, task)
    scores = pl.Series("log_probability", predictor.score_samples(rows.features, rows.known_tasks))
    return pl.DataFrame([scores] if rows.tasks is None else [rows.tasks.alias("task"), scores])


def read_rows(predictor: Predictor, model: Path, table: Path, task: str | None) -> Rows:
    """Read a table and bring it to the types that a model was fitted to."""
    columns = predictor._schema.columns
    known = predictor.tasks_.tolist()
    task_column = predictor._task_column if task is None else task
    text = {column.name for column in columns if _all_of(str, column.categories)}
    if isinstance(task_column, str) and _all_of(str, known):
        text.add(task_column)
    frame = read_table(table, text)
    tasks = _tasks(frame, task_column, known, model, table)
    features = _features(frame, tasks, columns, table)
    return Rows(tasks, None if tasks is None else _as_known(tasks, known), features)


def as_table(answers: Answers, columns: Mapping[str, list[Any]]) -> pl.DataFrame:
    """A row for every row: the task, columns of a command's own, and the probability of each label."""
    parts = [] if answers.tasks is None else [answers.tasks.alias("task")]
    parts += [series(name, values) for name, values in columns.items()]
    for label, values in zip(answers.classes, answers.probabilities.T, strict=True):
        parts.append(pl.Series(f"probability_{shown(label)}", values))
    return pl.DataFrame(parts)


def series(name: str, values: list[Any]) -> pl.Series:
    """A column; of text where values differ in type, as labels 0 and 1 do from "ask"."""
    if len({type(value) for value in values}) > 1:
        values = [shown(value) for value in values]
    return pl.Series(name, values)


def _tasks(
    frame: pl.DataFrame, column: str | int | None, known: list[Any], model: Path, table: Path
) -> pl.Series | None:
    """The column of tasks; None where the model knows only one task, and that has no name."""
    if column is None:
        if len(known) > 1:
            raise ValueError(f"{model} knows {len(known)} tasks: say which column of {table} holds them with --task")
        return None
    if isinstance(column, int):  # fitted to an array, whose columns have numbers
        column = frame.columns[column] if -frame.width <= column < frame.width else str(column)
    need_columns(frame, [column], table)
    need_plain_types(frame.select(column), table)
    tasks = frame[column]
    missing = ~present(tasks)
    if missing.any():
        raise ValueError(f"task column {column!r}, row {missing.arg_max()}: a task is missing, every row needs one")
    return tasks


def _as_known(tasks: pl.Series, known: Sequence[Any]) -> list[Any]:
    """Tasks as the model knows them, those that it does not know as they are."""
    by_text = {shown(task): task for task in known}
    whole = _all_of(int, known)
    translated = {}
    for task in tasks.unique().to_list():
        name = shown(task)
        if whole and isinstance(task, str) and task.strip().lstrip("+-").isdecimal():
            name = shown(int(task))
        translated[task] = by_text.get(name, task)
    return [translated[task] for task in tasks.to_list()]


def _features(frame: pl.DataFrame, tasks: pl.Series | None, columns: Sequence[Column], table: Path) -> pl.DataFrame:
    """The features of a model, in its order and types."""
    names = [column.name for column in columns]
    others = [name for name in frame.columns if tasks is None or name != tasks.name]
    if names == [str(i) for i in range(len(names))] and len(others) == len(names):
        # Fitted to an array, which has no names: columns are known by their order.
        frame = frame.select(pl.col(name).alias(number) for name, number in zip(others, names, strict=True))
    need_columns(frame, names, table)
    need_plain_types(frame.select(names), table)
    return pl.DataFrame([_as_fitted(frame[column.name], column) for column in columns])


def _as_fitted(values: pl.Series, column: Column) -> pl.Series:
    """Values in the type that a column had at fit; what cannot be brought to it is unknown, thus missing."""
    if _all_of(str, column.categories):
        plain = values.dtype.is_numeric() or values.dtype == pl.Boolean
        return values.cast(pl.String) if plain else values
    if values.dtype != pl.String:
        return values
    if _all_of(bool, column.categories):
        truths = {"true": True, "false": False}
        return values.str.to_lowercase().replace_strict(truths, default=None, return_dtype=pl.Boolean)
    return values.cast(pl.Float64, strict=False)


def _all_of(kind: type, values: Sequence[Any] | None) -> bool:
    return bool(values) and all(type(value) is kind for value in values or ())
