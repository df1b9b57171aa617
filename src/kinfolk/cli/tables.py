"""Tables in, tables and JSON out, and names of labels, tasks and columns as people write and read them."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from kinfolk.files import check_target, whole_file

if TYPE_CHECKING:
    import polars as pl

    from kinfolk.tasks.streaming.scanning import Roles, Scan

STANDARD_INPUT = "-"
ENDINGS = (".csv", ".tsv", ".parquet", ".json")
_LONGEST_LIST = 40
_CSV = "CSV files"


NoEscape = Annotated[
    bool,
    typer.Option(
        "--no-escape",
        rich_help_panel=_CSV,
        help="Write and read text unchanged. Otherwise text that begins with = + - @ and is not a number is written "
        "with an apostrophe in front, which prevents spreadsheets from running it, and is removed again when read.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class CsvOptions:
    """How CSV files are written that a command reads."""

    sep: Annotated[
        str | None,
        typer.Option(
            metavar="SIGN", rich_help_panel=_CSV, help="Field separator, such as ';' or tab; a comma by default."
        ),
    ] = None
    decimal: Annotated[
        str, typer.Option(metavar="SIGN", rich_help_panel=_CSV, help="Decimal separator of numbers.")
    ] = "."
    missing: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOKEN",
            rich_help_panel=_CSV,
            help="A further token for missing values, besides empty fields, NA, NaN, N/A, null and all others that "
            "pandas recognises; repeatable.",
        ),
    ] = None
    keep_na: Annotated[
        bool,
        typer.Option("--keep-na", rich_help_panel=_CSV, help="Treat NA, null and the like as values, not as missing."),
    ] = False
    no_escape: NoEscape = False


@dataclass(frozen=True, kw_only=True)
class TableOptions(CsvOptions):
    """A table to learn from, and which of its columns is what."""

    PANEL: ClassVar[str] = "Table"

    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE",
            help="Rows to learn from: .csv, .csv.gz, .tsv or .parquet, a folder of .parquet files, or - for CSV on "
            "standard input.",
        ),
    ]
    task: Annotated[str, typer.Option(metavar="COL", help="Column with the task of each row.")]
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Column to be predicted; empty where it is unknown. Not used by Bayesian networks and hidden Markov "
            "models.",
        ),
    ] = None
    feature: Annotated[
        list[str] | None, typer.Option(metavar="COL", help="A column to learn from; repeatable. Default: all others.")
    ] = None
    drop: Annotated[list[str] | None, typer.Option(metavar="COL", help="A column to leave out; repeatable.")] = None


def open_table(path: Path, csv: CsvOptions, text: Collection[str] = ()) -> Scan:
    """A file, or CSV on standard input where that is what the path stands for, ready to be read."""
    from kinfolk.tasks.streaming.scanning import MISSING, Csv, scan

    separator = "\t" if csv.sep in ("tab", "\\t") else csv.sep
    missing = (*([""] if csv.keep_na else MISSING), *(csv.missing or ()))
    source = sys.stdin.buffer if str(path) == STANDARD_INPUT else path
    return scan(source, text, Csv(separator, csv.decimal, missing, not csv.no_escape))


def open_training(
    table: TableOptions, label: str | None = None, weight: str | None = None, beside: Mapping[str, str] | None = None
) -> tuple[Scan, Roles]:
    """A table to learn from, and which of its columns is what, features in the order in which they stand there.

    ``beside`` names columns by other uses, which a model takes together with the task and the features.
    """
    from kinfolk.tasks.streaming.scanning import assign_roles

    if table.feature and table.drop:
        raise ValueError("--feature and --drop were both given: name the features, or those to leave out")
    source = open_table(table.table, table)
    columns = list(source.schema)
    chosen = sorted(table.feature or (), key=lambda name: columns.index(name) if name in columns else -1)
    uses: dict[str, Any] = {"task": table.task, "label": label, "weight": weight, "beside": beside}
    roles = assign_roles(columns, source.where, features=chosen or None, drop=table.drop, **uses)
    source.warn_of_text(roles.features)
    return source, roles


def listed(names: Sequence[Any]) -> str:
    """Names as they stand in a sentence.

    Examples
    --------
    >>> listed(["task", "size"])
    "'task', 'size'"
    """
    shown = ", ".join(repr(name) for name in names[:_LONGEST_LIST])
    return shown if len(names) <= _LONGEST_LIST else f"{shown} and {len(names) - _LONGEST_LIST} more"


def shown(value: Any) -> str:
    """A label or task as tables show it.

    Examples
    --------
    >>> shown(True), shown(3), shown("yes")
    ('true', '3', 'yes')
    """
    return str(value).lower() if isinstance(value, bool) else str(value)


def named(given: str, known: Sequence[Any], what: str) -> Any:
    """Find the label or task that a user wrote out among those known.

    Examples
    --------
    >>> named("3", [1, 2, 3], "task")
    3
    """
    for value in known:
        if shown(value) == given:
            return value
    raise ValueError(f"{what} {given!r} is not one of {listed(known)}")


def series(name: str, values: list[Any]) -> pl.Series:
    """A column; of text where values differ in type, as labels 0 and 1 do from "ask"."""
    import polars as pl

    if len({type(value) for value in values if value is not None}) > 1:
        values = [None if value is None else shown(value) for value in values]
    return pl.Series(name, values)


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


def write_rows(
    frame: pl.DataFrame, about: dict[str, Any], path: Path | None, as_json: bool, no_escape: bool = False
) -> None:
    """Write rows as a table, or, with what is known about all of them, as a JSON document."""
    ending = ".json" if as_json else ".csv" if path is None else path.suffix.lower()
    if path is None:
        sys.stdout.write(_text(frame, about, ending, no_escape))
        return
    with whole_file(path) as file:
        if ending == ".parquet":
            frame.write_parquet(file)
        else:
            file.write(_text(frame, about, ending, no_escape).encode())


def _text(frame: pl.DataFrame, about: dict[str, Any], ending: str, no_escape: bool) -> str:
    from kinfolk.tasks.streaming.escaping import escape

    if ending == ".json":
        return json_text({**about, "rows": frame.to_dicts()})
    return (frame if no_escape else escape(frame)).write_csv(separator="\t" if ending == ".tsv" else ",")


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
