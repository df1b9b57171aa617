"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model that 'kinfolk fit' wrote.")]
NewTable = Annotated[
    Path,
    typer.Argument(metavar="TABLE", help="The rows: .csv, .csv.gz, .tsv or .parquet, or - for CSV on standard input."),
]
TaskColumn = Annotated[
    str | None,
    typer.Option(
        "--task", metavar="COL", help="Column that tells which task a row belongs to; by default, the one used at fit."
    ),
]
ResultFile = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Write to a .csv, .tsv, .parquet or .json file, not to standard output."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, for programs to read.")]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of all that is random: same seed, same numbers.", min=0)]
Quick = Annotated[bool, typer.Option("--quick", help="A smaller run, to see that all works.")]
