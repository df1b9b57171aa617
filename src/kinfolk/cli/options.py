"""Arguments and options that several commands share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from kinfolk.cli.tables import CsvOptions

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model that 'kinfolk fit' wrote.")]
ResultFile = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write to a .csv, .tsv, .parquet or .json file, not to standard output."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs to read.")]
Seed = Annotated[
    int, typer.Option(metavar="N", help="Seed of the random numbers: the same seed gives the same results.", min=0)
]
Quick = Annotated[bool, typer.Option("--quick", help="A smaller run, to see that everything works.")]


class NewTasks(StrEnum):
    """Whether rows of tasks that a model has never seen are worth a word."""

    warn = "warn"
    expected = "expected"


@dataclass(frozen=True, kw_only=True)
class AskOptions(CsvOptions):
    """A saved model, a table to ask it about, and where the answers go."""

    model: ModelFile
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE", help="The rows: .csv, .csv.gz, .tsv or .parquet, or - for CSV on standard input."
        ),
    ]
    task: Annotated[
        str | None,
        typer.Option(
            "--task",
            metavar="COL",
            help="Column with the task of each row; by default, the one used at fit.",
        ),
    ] = None
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COL", help="A column of the table to copy to the output, such as an id; repeatable."),
    ] = None
    new_tasks: Annotated[
        NewTasks | None,
        typer.Option(
            help="Whether to warn if most rows belong to tasks that the model has never seen (warn) or not (expected); "
            "by default, as set when the model was fitted."
        ),
    ] = None
    output: ResultFile = None
    as_json: AsJson = False

    def load(self) -> Any:
        """The model."""
        import kinfolk

        return kinfolk.load(self.model, new_tasks=self.new_tasks and self.new_tasks.value)
