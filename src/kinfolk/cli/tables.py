"""Reading tables: CSV, gzipped CSV, TSV and Parquet, from files or standard input."""

from __future__ import annotations

import io
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import polars as pl

STANDARD_INPUT = "-"
_SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
_LONGEST_LIST = 40


def read_table(path: Path, text: Collection[str] = ()) -> pl.DataFrame:
    r"""Read a table that has rows.

    Types of CSV columns are inferred from the whole file, empty fields are missing values, blank lines are no rows, and
    columns without a name, such as the index that pandas writes, are left out.

    Parameters
    ----------
    path : Path
        The file; ``-`` stands for CSV on standard input.
    text : collection of str
        Columns of a CSV file to be kept as text, whatever they look like.

    Returns
    -------
    polars.DataFrame

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "table.csv"
    >>> _ = path.write_text("task,size\n01,3\n02,\n")
    >>> read_table(path).rows()
    [(1, 3), (2, None)]
    >>> read_table(path, text=["task"]).rows()
    [('01', 3), ('02', None)]
    """
    source: Any
    if str(path) == STANDARD_INPUT:
        source, where, ending = io.BytesIO(sys.stdin.buffer.read()), "standard input", ".csv"
    else:
        # Opened once to learn what is wrong with it in the system's own words.
        with path.open("rb"):
            source, where, ending = path, str(path), _ending(path)
    try:
        frame = _read_parquet(source) if ending == ".parquet" else _read_csv(source, _SEPARATORS[ending], text, where)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = str(error).partition("\n")[0]
        kind = "Parquet" if ending == ".parquet" else "CSV"
        raise ValueError(f"{where} cannot be read as a {kind} table: {reason}") from None
    if not frame.width:
        raise ValueError(f"{where} has no columns")
    if not frame.height:
        raise ValueError(f"{where} has no rows")
    return frame


def _ending(path: Path) -> str:
    for ending in (*_SEPARATORS, ".parquet"):
        if path.name.lower().endswith(ending):
            return ending
    raise ValueError(f"{path} is not a kind of table that is known: .csv, .csv.gz, .tsv and .parquet are read")


def _read_csv(source: Any, separator: str, text: Collection[str], where: str) -> pl.DataFrame:
    header = pl.read_csv(source, separator=separator, has_header=False, n_rows=1, infer_schema=False, glob=False)
    names = ["" if name is None else name for name in header.row(0)]
    _check_names(names, separator, where)
    if isinstance(source, io.BytesIO):
        source.seek(0)
    frame = pl.read_csv(
        source,
        separator=separator,
        infer_schema_length=None,
        schema_overrides={name: pl.String for name in names if name in text},
        null_values=[""],
        glob=False,
    )
    frame = frame.select(pl.nth(i).alias(name) for i, name in enumerate(names) if name)
    # Numbers too long for 64 bits are names of things; as text they stay exact.
    frame = frame.with_columns(pl.col(pl.Int128).cast(pl.String))
    return frame.filter(~pl.all_horizontal(pl.all().is_null()))


def _check_names(names: Sequence[str], separator: str, where: str) -> None:
    for name, times in Counter(filter(None, names)).items():
        if times > 1:
            raise ValueError(f"{where} has {times} columns named {name!r}: every column needs a name of its own")
    if len(names) == 1 and separator == "," and (";" in names[0] or "\t" in names[0]):
        raise ValueError(f"{where} has one column, {names[0]!r}: its columns must be separated by commas")


def _read_parquet(source: Any) -> pl.DataFrame:
    frame = pl.read_parquet(source, glob=False)
    return frame.with_columns(pl.selectors.decimal().cast(pl.Float64), pl.col(pl.Int128).cast(pl.String))


def need_columns(frame: pl.DataFrame, wanted: Iterable[str], where: Path) -> None:
    """Refuse a table that lacks a column, saying which ones it has."""
    for name in wanted:
        if name not in frame.columns:
            alike = get_close_matches(name, frame.columns, n=1)
            hint = f" (did you mean {alike[0]!r}?)" if alike else ""
            raise ValueError(f"column {name!r} is not in {where}{hint}: its columns are {listed(frame.columns)}")


def need_plain_types(frame: pl.DataFrame, where: Path) -> None:
    """Refuse columns of dates, lists and whatever else no model takes."""
    for name in frame.columns:
        kind = frame[name].dtype
        if kind.is_nested() or kind.is_temporal() or kind in (pl.Binary, pl.Object):
            raise ValueError(f"column {name!r} of {where} holds {kind}: turn it into text, numbers or true/false first")


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


def present(values: pl.Series) -> pl.Series:
    """Tell which values are there, NaN being as missing as null."""
    return values.is_not_null() & values.is_not_nan() if values.dtype.is_float() else values.is_not_null()
