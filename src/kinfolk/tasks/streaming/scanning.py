"""Tables in files: their rows, batch by batch or all at once, and which of their columns is what."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kinfolk.tasks.table import no_such_column

_SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}
_SCANNED = {".parquet": "Parquet", ".arrow": "Arrow IPC", ".feather": "Arrow IPC", ".ipc": "Arrow IPC"}


class Scan(NamedTuple):
    """A query for a table's rows, what to call the table, and its number of rows where that is known at once."""

    query: pl.LazyFrame
    where: str
    kind: str
    n_rows: int | None

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

    def take(self, columns: list[pl.Expr], rows: NDArray[np.int64]) -> pl.DataFrame:
        """Some columns of some rows."""
        wanted = pl.Series(rows, dtype=pl.get_index_type())
        with one_sentence(self.where, self.kind):
            numbered = self.query.select(columns).with_row_index("number of row")
            found = numbered.filter(pl.col("number of row").is_in(wanted.implode())).drop("number of row")
            return found.collect(engine="streaming")


def read_file(source: Any, text: Collection[str] = ()) -> pl.DataFrame:
    r"""Read a table whole.

    Types of CSV columns are inferred from the whole file, empty fields are missing values, blank lines are no rows, and
    columns without a name, such as the index that pandas writes, are left out.

    Parameters
    ----------
    source : path or binary stream
        As :func:`scan` takes it.
    text : collection of str
        Columns of a CSV file to be kept as text, whatever they look like.

    Returns
    -------
    polars.DataFrame

    Examples
    --------
    >>> table = b"task,size\n01,3\n02,\n"
    >>> read_file(io.BytesIO(table)).rows()
    [(1, 3), (2, None)]
    >>> read_file(io.BytesIO(table), text=["task"]).rows()
    [('01', 3), ('02', None)]
    """
    return scan(source, text).whole()


def scan(source: Any, text: Collection[str] = ()) -> Scan:
    """Make a query of a file's path, of a stream of CSV, of a lazy frame or of a frame.

    Examples
    --------
    >>> scan(pl.DataFrame({"size": [1, 2]})).n_rows
    2
    """
    if isinstance(source, pl.LazyFrame):
        return Scan(_plain(source), "the query", "table", None)
    if isinstance(source, pl.DataFrame):
        return Scan(_plain(source.lazy()), "the table", "table", source.height)
    if isinstance(source, io.IOBase):
        stream, where = io.BytesIO(source.read()), "standard input"
        with one_sentence(where, "CSV"):
            return Scan(_plain(_scan_csv(stream, where, ",", text)), where, "CSV", None)
    if not isinstance(source, str | os.PathLike):
        raise TypeError(f"rows are counted in a file, a polars frame or a query, not in {type(source).__name__}")
    path = Path(source)
    ending = _ending(path)
    # Opened once to learn what is wrong with it in the system's own words.
    with path.open("rb"):
        pass
    kind = _SCANNED.get(ending, "CSV")
    with one_sentence(str(path), kind):
        if kind == "CSV":
            return Scan(_plain(_scan_csv(path, str(path), _SEPARATORS[ending], text)), str(path), kind, None)
        query = pl.scan_parquet(path, glob=False) if kind == "Parquet" else pl.scan_ipc(path, glob=False)
        # Both formats say in a few bytes how many rows they hold.
        return Scan(_plain(query), str(path), kind, int(query.select(pl.len()).collect().item()))


@contextmanager
def one_sentence(where: str, kind: str) -> Iterator[None]:
    """Say what polars cannot read in one sentence."""
    try:
        yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise ValueError(f"{where} cannot be read as a {kind} table: {reason}") from None


def _ending(path: Path) -> str:
    for ending in (*_SEPARATORS, *_SCANNED):
        if path.name.lower().endswith(ending):
            return ending
    *others, last = _SEPARATORS | _SCANNED
    raise ValueError(f"{path} is not a kind of table that is known: {', '.join(others)} and {last} are read")


def _scan_csv(source: Path | io.BytesIO, where: str, separator: str, text: Collection[str]) -> pl.LazyFrame:
    """A query in which empty fields are missing, blank lines are no rows, and columns without a name are left out."""
    header = pl.read_csv(source, separator=separator, has_header=False, n_rows=1, infer_schema=False, glob=False)
    names = ["" if name is None else name for name in header.row(0)]
    for name, times in Counter(filter(None, names)).items():
        if times > 1:
            raise ValueError(f"{where} has {times} columns named {name!r}: every column needs a name of its own")
    if len(names) == 1 and separator == "," and (";" in names[0] or "\t" in names[0]):
        raise ValueError(f"{where} has one column, {names[0]!r}: its columns must be separated by commas")
    how: dict[str, Any] = {"separator": separator, "null_values": [""], "glob": False}
    # Types come from the whole file, since a column may look like numbers for a million rows; asked for once, they are
    # not looked for in every pass.
    inferred = pl.scan_csv(_anew(source), infer_schema_length=None, **how)
    kinds = inferred.collect_schema()
    # By their places, since polars has names of its own for columns whose names hold quotes, or which have none.
    chosen = {
        own: pl.String() if name in text else kind for (own, kind), name in zip(kinds.items(), names, strict=True)
    }
    query = pl.scan_csv(_anew(source), schema=chosen, **how)
    query = query.select(pl.nth(i).alias(name) for i, name in enumerate(names) if name)
    return query.filter(~pl.all_horizontal(pl.all().is_null()))


def _anew(source: Path | io.BytesIO) -> Path | io.BytesIO:
    """The source from its start, which a stream has left once it has been read."""
    return io.BytesIO(source.getvalue()) if isinstance(source, io.BytesIO) else source


def _plain(query: pl.LazyFrame) -> pl.LazyFrame:
    """Numbers of unusual types as usual ones; too long for 64 bits, they are names of things and stay exact as text."""
    return query.with_columns(
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

    Returns
    -------
    Roles

    Examples
    --------
    >>> assign_roles(["who", "sky", "wind", "ok"], "rows.csv", task="who", label="ok", drop=["wind"]).features
    ['sky']
    """
    uses = [(use, name) for use, name in (("task", task), ("label", label), ("weight", weight)) if name is not None]
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
    learnt = [name for name in columns if name == task or name in chosen]
    in_order = [name for name in learnt if name != task] == chosen
    return Roles(task, label, weight, chosen, learnt if in_order else [task, *chosen])


def check_mark(unlabelled: Any, label: str, kind: pl.DataType) -> None:
    """Refuse a mark of unlabelled rows that a column of labels cannot hold."""
    own = str if kind == pl.String else bool if kind == pl.Boolean else int | float | np.number
    if not isinstance(unlabelled, own) or (isinstance(unlabelled, bool) and kind != pl.Boolean):
        raise ValueError(f"unlabelled={unlabelled!r} cannot stand in label column {label!r}, of type {kind}")
