"""``kinfolk predict``: labels for the rows of a table, or how probable the rows are.

A model of labels gives their probabilities, Bayes nets the log probability of the row as a whole, hidden Markov models
the state of every row, or what else is asked of sequences (``predict_sequences``). The table is read here, for
``kinfolk decide`` too, and checked where every table is that a model is asked about
(:mod:`kinfolk.tasks.answering`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

from kinfolk.cli.commands import with_options
from kinfolk.cli.options import AskOptions
from kinfolk.cli.predict_sequences import SequenceQuestions, of_sequences
from kinfolk.cli.tables import check_table_target, open_table, series, shown, write_rows

if TYPE_CHECKING:
    import numpy as np
    import polars as pl
    from numpy.typing import NDArray

    from kinfolk.tasks.answering import Known

EXAMPLE = """\b
Example:
  kinfolk predict team.kin invitations.csv
  kinfolk predict team.kin invitations.parquet -o answers.parquet
  cat invitations.csv | kinfolk predict team.kin - --json
  kinfolk predict walks.kin walks.csv --what segments"""


@with_options(asked=AskOptions, sequences=SequenceQuestions)
def predict(asked: AskOptions, sequences: SequenceQuestions) -> None:
    """Predict labels or numbers; hidden states of sequences.

    The result is a table with a line for each row, in the same order. It has the task and, for labels, the most
    probable label and the probability of each; for numbers, the mean, the standard deviation and the quantiles 0.05 and
    0.95; for Bayesian networks, the natural log of the row's probability; for hidden Markov models, the hidden state,
    or what --what asks for. Columns that the model does not know are ignored; the others must be in the order of the
    table that it was fitted to. A task that the model has never seen is predicted as a new one, from what is known
    about all others.
    """
    check_table_target(asked.output, asked.as_json)
    predictor = asked.load()
    if hasattr(predictor, "decode"):
        write_rows(of_sequences(predictor, asked, sequences), {}, asked.output, asked.as_json, asked.no_escape)
        return
    for field in fields(sequences):
        if getattr(sequences, field.name) is not None:
            model = predictor.known.model
            raise ValueError(f"--{field.name} belongs to hidden Markov models, and {asked.model} holds {model}")
    if hasattr(predictor, "networks_") and not has_labels(predictor):
        rows = read_rows(predictor, asked)
        columns = {"log_probability": predictor.score_samples(rows.table, **rows.told).tolist()}
        write_rows(as_table(rows, columns), {}, asked.output, asked.as_json, asked.no_escape)
        return
    if hasattr(predictor, "predict_quantiles"):
        rows = read_rows(predictor, asked)
        write_rows(as_table(rows, _numbers(predictor, rows)), {}, asked.output, asked.as_json, asked.no_escape)
        return
    rows, classes, probabilities = ask(predictor, asked)
    best = [classes[place] for place in probabilities.argmax(axis=1)]
    answers = as_table(rows, {"predicted": best}, classes, probabilities)
    write_rows(answers, {"labels": classes}, asked.output, asked.as_json, asked.no_escape)


def _numbers(predictor: Any, rows: Rows) -> dict[str, list[Any]]:
    """Numbers that are expected, their standard deviations, and what nine in ten lie between."""
    expected, deviation = predictor.predict(rows.table, **rows.told, return_std=True)
    low, high = predictor.predict_quantiles(rows.table, (0.05, 0.95), **rows.told).T
    columns = {"predicted": expected, "standard_deviation": deviation, "quantile_0.05": low, "quantile_0.95": high}
    return {name: values.tolist() for name, values in columns.items()}


class Rows(NamedTuple):
    """A table as a model takes it; what it is told beside; the tasks and kept columns as they go into the answer."""

    table: pl.DataFrame
    told: dict[str, Any]
    shown: list[pl.Series]


class Answers(NamedTuple):
    """Rows, and the probabilities of labels."""

    rows: Rows
    classes: list[Any]
    probabilities: NDArray[np.float64]


def has_labels(predictor: Any) -> bool:
    """Whether a model gives probabilities of labels."""
    return hasattr(predictor, "predict_proba") and getattr(predictor, "classes_", None) is not None


def ask(predictor: Any, asked: AskOptions) -> Answers:
    """Predict the label of every row of a table."""
    if not has_labels(predictor):
        what = "Bayes nets, which have" if hasattr(predictor, "networks_") else "a model that has"
        raise ValueError(f"{asked.model} holds {what} no label to predict or to decide about")
    rows = read_rows(predictor, asked)
    return Answers(rows, predictor.classes_.tolist(), predictor.predict_proba(rows.table, **rows.told))


def read_rows(predictor: Any, asked: AskOptions) -> Rows:
    """Read a table, with text where the model was fitted to text: task 07 and task 7 are not the same."""
    from kinfolk.tasks.table import no_such_column

    known: Known = predictor.known
    own = known.task_column
    column = own if asked.task is None else asked.task
    features = {
        feature.name: feature for feature in (predictor._schema.columns if hasattr(predictor, "_schema") else ())
    }
    text = {name for name, feature in features.items() if is_text(feature.categories or ())}
    if isinstance(column, str) and is_text(predictor.tasks_.tolist()):
        text.add(column)
    kept = dict.fromkeys(asked.keep or ())
    # What is only repeated stays as it is written.
    source = open_table(asked.table, asked, text | {name for name in kept if name != column and name not in features})
    frame = source.whole()
    for name in (*kept, *([] if asked.task is None else [asked.task])):
        if name not in frame.columns:
            raise ValueError(no_such_column(name, frame.columns, str(asked.table)))
    source.warn_of_text([name for name in frame.columns if name in features and name not in text])
    beside = [frame[name] for name in kept]
    if asked.task is not None and asked.task != own:
        tasks = frame[asked.task]
        # Told beside the table, the task stands in it only where it is a feature as well.
        ours = [name for name in known.columns or () if name != own]
        others = [name for name in frame.columns if name in ours or name not in (asked.task, own)]
        return Rows(frame.select(others), {"task": tasks}, [tasks.alias("task"), *beside])
    if isinstance(column, int) and -frame.width <= column < frame.width:  # fitted to an array, which has no names
        column = frame.columns[column]
    return Rows(frame, {}, [*([frame[column].alias("task")] if column in frame.columns else []), *beside])


def is_text(values: Sequence[Any]) -> bool:
    """Whether there are values, and all of them are text."""
    return bool(values) and all(isinstance(value, str) for value in values)


def as_table(
    rows: Rows, columns: Mapping[str, list[Any]], classes: Sequence[Any] = (), probabilities: Any = None
) -> pl.DataFrame:
    """A row for every row: the task, kept columns, columns of a command's own, and the probability of each label."""
    import polars as pl

    parts = [*rows.shown, *(series(name, values) for name, values in columns.items())]
    for place, label in enumerate(classes):
        parts.append(pl.Series(f"probability_{shown(label)}", probabilities[:, place]))
    names = [part.name for part in parts]
    for part in rows.shown:
        if names.count(part.name) > 1:
            raise ValueError(f"--keep {part.name!r}: the answers have a column of that name, rename the table's")
    return pl.DataFrame(parts)
