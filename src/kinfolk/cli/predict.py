"""``kinfolk predict``: labels for the rows of a table, or how probable the rows are.

A model of labels gives their probabilities, Bayes nets the log probability of the row as a whole. The table is read
here, for ``kinfolk decide`` too, and checked where every table is that a model is asked about
(:mod:`kinfolk.tasks.answering`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kinfolk.cli.options import AsJson, ModelFile, NewTable, ResultFile, TaskColumn
from kinfolk.cli.tables import check_table_target, read_table, series, shown, write_rows

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from kinfolk.tasks.answering import Known

EXAMPLE = """\b
Example:
  kinfolk predict team.kin invitations.csv
  kinfolk predict team.kin invitations.parquet -o answers.parquet
  cat invitations.csv | kinfolk predict team.kin - --json"""


def predict(
    model: ModelFile, table: NewTable, task: TaskColumn = None, output: ResultFile = None, as_json: AsJson = False
) -> None:
    """Predict the label of every row of a table; with Bayes nets, tell how probable it is.

    Gives a table with the task, the most probable label, and the probability of each label, in the order of the rows;
    with Bayes nets, with the task and the natural log of the row's probability. Columns that the model does not know
    are left aside; its own must stand in the order of the table that it was fitted to. A task never seen before is
    predicted as a new one, from what is known of all others.
    """
    import kinfolk

    check_table_target(output, as_json)
    predictor = kinfolk.load(model)
    if hasattr(predictor, "networks_") and not has_labels(predictor):
        write_rows(rate(predictor, table, task), {}, output, as_json)
        return
    answers = ask(predictor, model, table, task)
    best = [answers.classes[place] for place in answers.probabilities.argmax(axis=1)]
    write_rows(as_table(answers, {"predicted": best}), {"labels": answers.classes}, output, as_json)


class Rows(NamedTuple):
    """A table as a model takes it; ``tasks`` as the table has them, ``task`` where the model is to be told them."""

    table: pl.DataFrame
    tasks: pl.Series | None
    task: pl.Series | None


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
        The saved model, and a table, or ``-`` for standard input.
    task : str, optional
        The table's task column, if it is not called as it was at fit.
    """
    if not has_labels(predictor):
        what = "Bayes nets, which have" if hasattr(predictor, "networks_") else "a model that has"
        raise ValueError(f"{model} holds {what} no label to predict or to decide about")
    rows = read_rows(predictor, table, task)
    probabilities = predictor.predict_proba(rows.table, **_told(rows))
    return Answers(rows.tasks, predictor.classes_.tolist(), probabilities)


def rate(predictor: Any, table: Path, task: str | None) -> pl.DataFrame:
    """Tell how probable Bayes nets find every row of a table: its task, and the natural log of its probability."""
    import polars as pl

    rows = read_rows(predictor, table, task)
    scores = pl.Series("log_probability", predictor.score_samples(rows.table, **_told(rows)))
    return pl.DataFrame([scores] if rows.tasks is None else [rows.tasks.alias("task"), scores])


def _told(rows: Rows) -> dict[str, Any]:
    """The tasks as an argument, where the model does not find them in the table."""
    return {} if rows.task is None else {"task": rows.task}


def read_rows(predictor: Any, table: Path, task: str | None) -> Rows:
    """Read a table, with text where the model was fitted to text: task 07 and task 7 are not the same."""
    from kinfolk.tasks.table import no_such_column

    known: Known = predictor.known
    own = known.task_column
    column = own if task is None else task
    columns = predictor._schema.columns if hasattr(predictor, "_schema") else ()
    text = {feature.name for feature in columns if _is_text(feature.categories or ())}
    if isinstance(column, str) and _is_text(predictor.tasks_.tolist()):
        text.add(column)
    frame = read_table(table, text)
    if task is not None and task != own:
        if task not in frame.columns:
            raise ValueError(no_such_column(task, frame.columns, str(table)))
        # Told beside the table, the task stands in it only where it is a feature as well.
        features = [name for name in known.columns or () if name != own]
        others = [name for name in frame.columns if name in features or name not in (task, own)]
        return Rows(frame.select(others), frame[task], frame[task])
    if isinstance(column, int) and -frame.width <= column < frame.width:  # fitted to an array, which has no names
        column = frame.columns[column]
    return Rows(frame, frame[column] if column in frame.columns else None, None)


def _is_text(values: Sequence[Any]) -> bool:
    return bool(values) and all(isinstance(value, str) for value in values)


def as_table(answers: Answers, columns: Mapping[str, list[Any]]) -> pl.DataFrame:
    """A row for every row: the task, columns of a command's own, and the probability of each label."""
    import polars as pl

    parts = [] if answers.tasks is None else [answers.tasks.alias("task")]
    parts += [series(name, values) for name, values in columns.items()]
    for label, values in zip(answers.classes, answers.probabilities.T, strict=True):
        parts.append(pl.Series(f"probability_{shown(label)}", values))
    return pl.DataFrame(parts)
