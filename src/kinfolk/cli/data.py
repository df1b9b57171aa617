"""``kinfolk data check``: which real data sets are there, and where to get the others."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from kinfolk.cli.options import AsJson
from kinfolk.cli.tables import json_text, text_table

EXAMPLE = """\b
Example:
  kinfolk data check
  kinfolk data check --folder /data/kinfolk --json"""


def data(
    what: Annotated[Literal["check"], typer.Argument(metavar="check", help="List which data sets are there.")],
    folder: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="The folder to look into; by default, the one that KINFOLK_DATA names."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List which real data sets are there, and where they come from.

    None of them is part of the package: studies and tests find them in the folder that KINFOLK_DATA names, and are
    left out without them. Exit status 1 says that something is missing.
    """
    import os

    from kinfolk.datasets.catalogue import CATALOGUE, missing_files
    from kinfolk.datasets.real import VARIABLE

    if folder is not None and not folder.is_dir():
        raise ValueError(f"--folder {folder}: there is no such folder")
    missing = missing_files(folder)
    rows: list[dict[str, Any]] = [
        {
            "folder": known.name,
            "there": not missing[known.name],
            "missing": list(missing[known.name]),
            "loader": known.loader,
            "studies": list(known.studies),
            "source": known.source,
        }
        for known in CATALOGUE
    ]
    if as_json:
        typer.echo(json_text(rows), nl=False)
    else:
        if folder is None and not os.environ.get(VARIABLE):
            typer.echo(f"{VARIABLE} is not set: it names a folder with one folder for each data set.\n")
        lines = [
            [row["folder"], "there" if row["there"] else f"missing: {', '.join(row['missing'])}", row["loader"]]
            for row in rows
        ]
        typer.echo(text_table(["folder", "files", "read by"], lines), nl=False)
        absent = [row for row in rows if not row["there"]]
        for row in absent:
            needed = f" Needed by {', '.join(row['studies'])}." if row["studies"] else ""
            typer.echo(f"\n{row['folder']}: {row['source'].replace('`', '')}.{needed}")
    if any(missing.values()):
        raise typer.Exit(1)
