"""Writing results: tables and JSON on standard output or in files, which are written whole or not at all."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kinfolk.files import whole_file

if TYPE_CHECKING:
    import polars as pl

ENDINGS = (".csv", ".tsv", ".parquet", ".json")


def check_target(path: Path) -> None:
    """Refuse a place that cannot be written to, before any work is done for it."""
    folder = path.parent
    if not folder.is_dir():
        raise ValueError(f"{path} cannot be written: there is no folder {folder}")
    if path.is_dir():
        raise ValueError(f"{path} cannot be written: it is a folder")
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} cannot be written: it is a device or a pipe, not a file")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ValueError(f"{path} cannot be written: permission denied in folder {folder}")


def check_table_target(path: Path | None, as_json: bool) -> None:
    """Refuse a file for results whose ending says nothing, or something else than ``--json``."""
    if path is None:
        return
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise ValueError(f"{path} cannot be written: its name must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    if as_json and ending != ".json":
        raise ValueError(f"{path} cannot hold what --json asks for: give it the ending .json, or leave --json out")
    check_target(path)


def write_rows(frame: pl.DataFrame, about: dict[str, Any], path: Path | None, as_json: bool) -> None:
    """Write rows as a table, or, with what is known about all of them, as a JSON document."""
    ending = ".json" if as_json else ".csv" if path is None else path.suffix.lower()
    if path is None:
        sys.stdout.write(_text(frame, about, ending))
        return
    with whole_file(path) as file:
        if ending == ".parquet":
            frame.write_parquet(file)
        else:
            file.write(_text(frame, about, ending).encode())


def _text(frame: pl.DataFrame, about: dict[str, Any], ending: str) -> str:
    if ending == ".json":
        return json_text({**about, "rows": frame.to_dicts()})
    return frame.write_csv(separator="\t" if ending == ".tsv" else ",")


def json_text(document: Any) -> str:
    """One JSON document, readable for people too."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def text_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A table for reading: columns side by side, numbers to the right, nothing cut off.

    Examples
    --------
    >>> print(text_table(["task", "rows"], [["ann", 12], ["bob", 7]]), end="")
    task  rows
    ann     12
    bob      7
    """
    from rich.cells import cell_len

    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(header, *cells, strict=True)]
    to_right = [bool(rows) and all(isinstance(row[i], int | float) for row in rows) for i in range(len(header))]

    def line(texts: Sequence[str]) -> str:
        padded = []
        for text, width, right in zip(texts, widths, to_right, strict=True):
            space = " " * (width - cell_len(text))
            padded.append(space + text if right else text + space)
        return "  ".join(padded).rstrip() + "\n"

    return "".join(line(texts) for texts in [list(header), *cells])


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.3f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    # A line break or tab within a name would break the table.
    return " ".join(str(value).split()) if isinstance(value, str) else str(value)


def fact_lines(facts: Sequence[tuple[str, str]]) -> str:
    """Facts with their names, one a line.

    Examples
    --------
    >>> print(fact_lines([("rows", "12"), ("tasks", "3")]), end="")
    rows   12
    tasks  3
    """
    width = max(len(name) for name, _ in facts)
    return "".join(f"{name:<{width}}  {' '.join(fact.split())}\n" for name, fact in facts)
