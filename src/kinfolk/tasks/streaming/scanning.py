"""Tables in files: their rows, batch by batch or all at once, and which of their columns is what."""

from __future__ import annotations

import io
import os
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kinfolk.tasks.streaming.escaping import unescape
from kinfolk.tasks.streaming.pages import Damaged, check_pages
from kinfolk.tasks.table import no_such_column

_SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
_SCANNED = {".parquet": "Parquet", ".arrow": "Arrow IPC", ".feather": "Arrow IPC", ".ipc": "Arrow IPC"}
# What pandas reads as missing, whose files these mostly are.
MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"),
    *("NULL", "NaN", "None", "n/a", "nan", "null"),
)
_DATE = r"^\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2}(\d{2})?)([T ].*)?$"
# The index that pandas writes into files of its frames.
_PANDAS_INDEX = r"^__index_level_\d+__$"


class Csv(NamedTuple):
    """How CSV is written: between fields (None: by the file's ending), in numbers, where a value is missing, and
    whether text that looks like a formula has an apostrophe in front, which is taken away (``escaping``).
    """

    separator: str | None = None
    decimal: str = "."
    missing: tuple[str, ...] = MISSING
    escaped: bool = True


USUAL_CSV = Csv()


class Scan(NamedTuple):
    """A query for a table's rows, what to call the table, and its number of rows where that is known at once."""

    query: pl.LazyFrame
    where: str
    kind: str
    n_rows: int | None
    csv: Csv = USUAL_CSV

    @property
    def schema(self) -> pl.Schema:
        """Names and types of the columns."""
        with one_sentence(self.where, self.kind):
            return self.query.collect_schema()

    def batches(self, columns: list[pl.Expr], n_rows: int) -> Iterator[pl.DataFrame]:
        """Some columns, batch by batch, in the order of the rows."""
        with one_sentence(self.where, self.kind):
            yield from self.query.select(columns).collect_batches(chunk_size=n_rows, engine="streaming", lazy=True)

    def whole(self) -> pl.DataFrame:
        """All rows and columns."""
        with one_sentence(self.where, self.kind):
            return self.query.collect()

    def warn_of_text(self, columns: Collection[str]) -> None:
        """Warn of columns of CSV that are text, and become categories, where that is probably not meant."""
        kinds = self.schema if self.kind == "CSV" else pl.Schema()
        text = [name for name in columns if kinds.get(name) == pl.String]
        if not text:
            return
        asked = []
        for name in text:
            value = pl.col(name)
            number = value.str.replace_all(self.csv.decimal, ".", literal=True).str.strip_chars()
            odd = value.filter(number.cast(pl.Float64, strict=False).is_null() & value.is_not_null())
            parts = [
                value.count(),
                odd.count(),
                odd.n_unique(),
                odd.first(),
                value.drop_nulls().str.contains(_DATE).all(),
            ]
            asked += [part.alias(f"{name} {i}") for i, part in enumerate(parts)]
        with one_sentence(self.where, self.kind):
            found = list(self.query.select(asked).collect(engine="streaming").row(0))
        for place, name in enumerate(text):
            n_values, n_odd, n_tokens, token, dates = found[5 * place : 5 * place + 5]
            column = f"column {name!r} of {self.where}"
            if n_tokens == 1 and n_odd < n_values:
                rows = f"{n_odd:,} row{'' if n_odd == 1 else 's'}"
                warnings.warn(
                    f"{column} holds numbers but for {token!r} in {rows}, and becomes categories: if {token!r} means "
                    f"that a value is missing, say so (--missing {token!r})",
                    stacklevel=3,
                )
            elif dates and n_values:
                warnings.warn(
                    f"{column} holds dates, and every date becomes a category of its own: leave the column out, or "
                    "turn it into numbers such as the year, the month or the weekday first",
                    stacklevel=3,
                )

    def take(self, columns: list[pl.Expr], rows: NDArray[np.int64], n_rows: int) -> pl.DataFrame:
        """Some columns of some rows, in the order of the table, of which so many rows are held at a time.

        A filter by the numbers of rows would say the same, but a row found alone keeps its whole batch in memory.
        """
        wanted, first, kept = np.sort(rows), 0, []
        for batch in self.batches(columns, n_rows):
            start, end = np.searchsorted(wanted, [first, first + batch.height])
            kept.append(batch[wanted[start:end] - first])
            first += batch.height
        return pl.concat(kept)


def read_file(source: Any, text: Collection[str] = (), csv: Csv = USUAL_CSV) -> pl.DataFrame:
    r"""Read a table whole.

    Types of CSV columns are inferred from the whole file; empty fields and what pandas reads as missing (NA, NaN, null)
    are missing values, blank lines are no rows, lines that are too short are warned of, and columns without a name,
    such as the index that pandas writes, are left out.

    Parameters
    ----------
    source : path or binary stream
        As :func:`scan` takes it.
    text : collection of str
        Columns of a CSV file to be kept as text, whatever they look like.
    csv : Csv
        How CSV is written.

    Returns
    -------
    polars.DataFrame

    Examples
    --------
    >>> table = b"task,size\n01,3\n02,NA\n"
    >>> read_file(io.BytesIO(table)).rows()
    [(1, 3), (2, None)]
    >>> read_file(io.BytesIO(table), text=["task"]).rows()
    [('01', 3), ('02', None)]
    """
    return scan(source, text, csv).whole()


def scan(source: Any, text: Collection[str] = (), csv: Csv = USUAL_CSV) -> Scan:
    """Make a query of a file's path, of a stream of CSV, of a lazy frame or of a frame.

    Examples
    --------
    >>> scan(pl.DataFrame({"size": [1, 2]})).n_rows
    2
    """
    if isinstance(source, Scan):
        return source
    if isinstance(source, pl.LazyFrame):
        return Scan(plain_types(source), "the query", "table", None)
    if isinstance(source, pl.DataFrame):
        return Scan(plain_types(source.lazy()), "the table", "table", source.height)
    if isinstance(source, io.IOBase):
        return _scan_csv(io.BytesIO(source.read()), "standard input", csv, text)
    if not isinstance(source, str | os.PathLike):
        raise TypeError(
            "rows are counted in a file, a folder of Parquet files, a frame or query of polars, a DuckDB relation, a "
            f"Dask or a Spark DataFrame, not in {type(source).__name__}"
        )
    path = Path(source)
    if path.is_dir():
        return _scan_folder(path)
    ending = _ending(path, csv)
    # Opened once to learn what is wrong with it in the system's own words.
    with path.open("rb"):
        pass
    kind = _SCANNED.get(ending, "CSV")
    if kind == "CSV":
        separator = csv.separator or _SEPARATORS[ending]
        return _scan_csv(path, str(path), csv._replace(separator=separator), text)
    with one_sentence(str(path), kind):
        if kind == "Parquet":
            check_pages(path)
        query = pl.scan_parquet(path, glob=False) if kind == "Parquet" else pl.scan_ipc(path, glob=False)
        # Both formats say in a few bytes how many rows they hold.
        return Scan(plain_types(query), str(path), kind, int(query.select(pl.len()).collect().item()))


def _scan_folder(path: Path) -> Scan:
    """All Parquet files of a folder and of those in it; a folder called ``column=value`` is a column."""
    files = [file for file in path.rglob("*.parquet") if file.is_file()]
    if not files:
        raise ValueError(f"{path} is a folder without a .parquet file")
    for file in files:
        with one_sentence(str(file), "Parquet"):
            check_pages(file)
    with one_sentence(str(path), "Parquet"):
        query = pl.scan_parquet(path / "**" / "*.parquet", hive_partitioning=True)
        return Scan(plain_types(query), str(path), "Parquet", int(query.select(pl.len()).collect().item()))


@contextmanager
def one_sentence(where: str, kind: str) -> Iterator[None]:
    """Say what polars cannot read in one sentence."""
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, Damaged) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{where} cannot be read as a {kind} table: {reason}") from None


def _ending(path: Path, csv: Csv) -> str:
    for ending in (*_SEPARATORS, *_SCANNED):
        if path.name.lower().endswith(ending):
            return ending
    if csv.separator is not None:
        return ".csv"
    *others, last = _SEPARATORS | _SCANNED
    raise ValueError(f"{path} is not a kind of table that is known: {', '.join(others)} and {last} are read")


def _scan_csv(source: Path | io.BytesIO, where: str, csv: Csv, text: Collection[str]) -> Scan:
    """A query in which blank lines are no rows, and columns without a name are left out."""
    separator = csv.separator or ","
    if len(separator) != 1 or separator in '"\r\n':
        raise ValueError(f"the separator {separator!r} is not one character that can stand between fields")
    if csv.decimal not in (".", ",") or csv.decimal == separator:
        raise ValueError(f"numbers cannot have the decimal sign {csv.decimal!r} where fields end with {separator!r}")
    with one_sentence(where, "CSV"):
        # Lines below may have more fields where the separator is not the one of the file.
        first: dict[str, Any] = {"has_header": False, "n_rows": 1, "infer_schema": False, "truncate_ragged_lines": True}
        header = pl.read_csv(source, separator=separator, glob=False, **first)
        given = pl.Series(header.row(0), dtype=pl.String).fill_null("").to_frame("name")
        names = given.select(unescape(pl.col("name")) if csv.escaped else "name").to_series().to_list()
        for name, times in Counter(filter(None, names)).items():
            if times > 1:
                raise ValueError(f"{where} has {times} columns named {name!r}: every column needs a name of its own")
        if len(names) == 1 and (other := next((sign for sign in ";\t,|" if sign in names[0]), None)):
            sign = "tab" if other == "\t" else other
            raise ValueError(
                f"{where} has one column, {names[0]!r}: if its columns are not separated by {separator!r}, say by what "
                f"(--sep {sign!r})"
            )
        how: dict[str, Any] = {"separator": separator, "null_values": list(csv.missing), "glob": False}
        how["decimal_comma"] = csv.decimal == ","
        # Types come from the whole file, since a column may look like numbers for a million rows; asked for once, they
        # are not looked for in every pass.
        inferred = pl.scan_csv(_anew(source), infer_schema_length=None, **how)
        kinds = inferred.collect_schema()
        # By their places, since polars has names of its own for columns whose names hold quotes, or which have none.
        chosen = {
            own: pl.String() if name in text else kind for (own, kind), name in zip(kinds.items(), names, strict=True)
        }
        query = pl.scan_csv(_anew(source), schema=chosen, **how)
        query = query.select(pl.nth(i).alias(name) for i, name in enumerate(names) if name)
        if csv.escaped:
            query = query.with_columns(unescape(pl.selectors.string()))
        _warn_of_short_lines(source, where, separator, len(names))
        return Scan(plain_types(query.filter(~pl.all_horizontal(pl.all().is_null()))), where, "CSV", None, csv)


def _warn_of_short_lines(source: Path | io.BytesIO, where: str, separator: str, n_columns: int) -> None:
    """Warn of lines with fewer fields than the header, whose last fields polars takes as missing."""
    if n_columns == 1:
        return
    # A line as one field: the separator is a sign that no text file has.
    lines = pl.scan_csv(
        _anew(source), separator="\x1f", has_header=False, schema={"line": pl.String}, quote_char=None, glob=False
    ).with_row_index("number", offset=1)
    line = pl.col("line").str.replace_all('"[^"]*"', "")
    # A quoted field that goes on in the next line leaves a quote behind; what is short there cannot be told.
    goes_on = line.str.contains('"', literal=True)
    short = (line.str.strip_chars() != "") & (line.str.count_matches(separator, literal=True) < n_columns - 1)
    told = lines.select(short.sum(), pl.col("number").filter(short).first(), goes_on.any().alias("goes on"))
    n_short, first, any_goes_on = told.collect(engine="streaming").row(0)
    if n_short and not any_goes_on:
        what = "1 line is" if n_short == 1 else f"{n_short:,} lines are"
        warnings.warn(
            f"{what} shorter than the header of {where} (the first is line {first}): the fields at the end are taken "
            "as missing",
            stacklevel=4,
        )


def _anew(source: Path | io.BytesIO) -> Path | io.BytesIO:
    """The source from its start, which a stream has left once it has been read."""
    return io.BytesIO(source.getvalue()) if isinstance(source, io.BytesIO) else source


def plain_types(query: pl.LazyFrame) -> pl.LazyFrame:
    """Numbers of unusual types as usual ones; too long for 64 bits, they are names of things and stay exact as text."""
    return query.select(~pl.selectors.matches(_PANDAS_INDEX)).with_columns(
        pl.selectors.decimal().cast(pl.Float64), pl.selectors.by_dtype(pl.Int128, pl.UInt128).cast(pl.String)
    )


class Roles(NamedTuple):
    """Names of columns; of a table without labels or weights, these are None.

    ``learnt`` are the task and the features, as they stand in the table where features keep its order: a model that is
    fitted to these columns knows such tables again.
    """

    task: str
    label: str | None
    weight: str | None
    features: list[str]
    learnt: list[str]


def assign_roles(
    columns: Sequence[str],
    where: str,
    *,
    task: str,
    label: str | None = None,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
    beside: Mapping[str, str] | None = None,
) -> Roles:
    """Give each column the use that was asked for; every column must be there, and have one use.

    Parameters
    ----------
    columns : sequence of str
        All columns of the table.
    where : str
        What the table is called, for sentences.
    task, label, weight : str
        Columns; the last two are optional.
    features : sequence of str, optional
        Columns to learn from; all others by default, in the order of the table.
    drop : sequence of str, optional
        Columns to leave out.
    beside : mapping, optional
        Columns by other uses, which are learnt from with the task.

    Returns
    -------
    Roles

    Examples
    --------
    >>> assign_roles(["who", "sky", "wind", "ok"], "rows.csv", task="who", label="ok", drop=["wind"]).features
    ['sky']
    """
    others = dict(beside or {})
    named = {"task": task, "label": label, "weight": weight, **others}
    uses = [(use, name) for use, name in named.items() if name is not None]
    taken = [name for _, name in uses]
    uses += [("feature", name) for name in features or ()]
    uses += [("one to leave out", name) for name in drop or ()]
    first: dict[str, str] = {}
    for use, name in uses:
        if name not in columns:
            raise ValueError(no_such_column(name, columns, where))
        if name in first:
            raise ValueError(f"column {name!r} was given as {first[name]} and as {use}: each needs a column of its own")
        first[name] = use
    chosen = [name for name in columns if name not in first] if features is None else list(features)
    if not chosen:
        raise ValueError(f"{where} has no feature beside {', '.join(map(repr, taken))}: one is needed")
    held = [task, *others.values()]
    learnt = [name for name in columns if name in held or name in chosen]
    in_order = [name for name in learnt if name not in held] == chosen
    return Roles(task, label, weight, chosen, learnt if in_order else [*held, *chosen])


def check_mark(unlabelled: Any, label: str, kind: pl.DataType) -> None:
    """Refuse a mark of unlabelled rows that a column of labels cannot hold."""
    own = str if kind == pl.String else bool if kind == pl.Boolean else int | float | np.number
    if not isinstance(unlabelled, own) or (isinstance(unlabelled, bool) and kind != pl.Boolean):
        raise ValueError(f"unlabelled={unlabelled!r} cannot stand in label column {label!r}, of type {kind}")
