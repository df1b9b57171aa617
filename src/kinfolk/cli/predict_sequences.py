"""What ``kinfolk predict`` tells of sequences: hidden states, segments, how probable they are, and what comes next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from kinfolk.cli.options import AskOptions
from kinfolk.cli.tables import open_table, series

if TYPE_CHECKING:
    import polars as pl

    from kinfolk.cli.predict import Rows
    from kinfolk.tasks.answering import Known


class What(StrEnum):
    """What is told of sequences."""

    states = "states"
    segments = "segments"
    scores = "scores"
    forecast = "forecast"


class Decoding(StrEnum):
    """How hidden states are told."""

    viterbi = "viterbi"
    marginal = "marginal"


@dataclass(frozen=True, kw_only=True)
class SequenceQuestions:
    """What is asked of hidden Markov models; None where nothing was said."""

    PANEL: ClassVar[str] = "Options of hidden Markov models"

    what: Annotated[
        What | None,
        typer.Option(
            help="The hidden state of every row, the runs of rows in one state, how probable each sequence is, or what "
            "comes after it.  [default: states]"
        ),
    ] = None
    decoding: Annotated[
        Decoding | None,
        typer.Option(help="The most probable path of a sequence, or the most probable state of each row by itself.  "
                     "[default: viterbi]"),
    ] = None  # fmt: skip
    ahead: Annotated[int | None, typer.Option(metavar="N", help="How many steps to forecast.  [default: 1]", min=1)] = (
        None
    )
    seed: Annotated[int | None, typer.Option(metavar="N", help="Seed of a forecast's draws.  [default: 0]", min=0)] = (
        None
    )


def of_sequences(predictor: Any, asked: AskOptions, questions: SequenceQuestions) -> pl.DataFrame:
    """States of rows, segments, scores of sequences, or what comes after them."""
    import polars as pl

    from kinfolk.cli.predict import as_table
    from kinfolk.cli.sequence_answers import forecast_table, scores_table, segments_table, steps_table

    what = questions.what or What.states
    _refuse_questions(what, asked, questions)
    rows = read_sequences(predictor, asked)
    decoding = str(questions.decoding or Decoding.viterbi)
    if what == What.states:
        return as_table(rows, steps_table(predictor, rows.table, decoding))
    if what == What.segments:
        found = segments_table(predictor, rows.table, decoding)
    elif what == What.scores:
        found = scores_table(predictor, rows.table)
    else:
        found = forecast_table(predictor, rows.table, questions.ahead or 1, questions.seed or 0)
    return pl.DataFrame([series(name, values) for name, values in found.items()])


def _refuse_questions(what: What, asked: AskOptions, questions: SequenceQuestions) -> None:
    if asked.keep and what != What.states:
        raise ValueError(f"--keep repeats columns beside the state of every row, and --what is {what}")
    if questions.decoding is not None and what not in (What.states, What.segments):
        raise ValueError(f"--decoding belongs to --what states or segments, and --what is {what}")
    for name in ("ahead", "seed"):
        if getattr(questions, name) is not None and what != What.forecast:
            raise ValueError(f"--{name} belongs to --what forecast, and --what is {what}")


def read_sequences(predictor: Any, asked: AskOptions) -> Rows:
    """Read a table of sequences, with the columns that the model was fitted to, and text where it knew text."""
    from kinfolk.cli.predict import Rows, is_text
    from kinfolk.tasks.table import no_such_column

    known: Known = predictor.known
    own = known.task_column
    if not isinstance(own, str):
        raise ValueError(f"{asked.model} was not fitted to a table with a column of tasks: ask it in Python")
    column = asked.task or own
    names = predictor.layout.names
    text = {names[channel.columns[0]] for channel in predictor.layout.channels if is_text(channel.symbols or ())}
    text |= {column} if is_text(predictor.tasks_.tolist()) else set()
    kept = dict.fromkeys(asked.keep or ())
    numbers = {name for name in names if name not in text}
    # What is only repeated stays as it is written; a column that tells the order may be repeated too.
    source = open_table(asked.table, asked, text | (set(kept) - {*(known.columns or ()), column}))
    frame = source.whole()
    for name in (*kept, column):
        if name not in frame.columns:
            raise ValueError(no_such_column(name, frame.columns, str(asked.table)))
    source.warn_of_text([name for name in frame.columns if name in numbers])
    told = [frame[column].alias("task"), *(frame[name] for name in kept)]
    if isinstance(known.sequence_column, str) and known.sequence_column in frame.columns:
        told.insert(1, frame[known.sequence_column].alias("sequence"))
    if column != own:
        frame = frame.with_columns(frame[column].alias(own)).select(
            [name for name in known.columns or () if name in frame.columns or name == own]
        )
    return Rows(frame, {}, told)
