"""Counting the rows of a table that is too large to read: one pass over it, and a few more for binned columns.

A table that another engine holds is counted there (``elsewhere``); what becomes of the counts is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kinfolk.parameters import check_whole
from kinfolk.progress import progress_bar
from kinfolk.tasks.columns import DEFAULT_BINS, MAX_CATEGORIES, as_ids, distinct, too_many
from kinfolk.tasks.schema import Column, Schema
from kinfolk.tasks.statistics import Layout, Statistics
from kinfolk.tasks.streaming.columns import BinnedValues, Choices, NamedValues, Settled, Values
from kinfolk.tasks.streaming.counts import Counts
from kinfolk.tasks.streaming.elsewhere import Elsewhere, GroupReader, held_elsewhere
from kinfolk.tasks.streaming.growing import GrowingTables
from kinfolk.tasks.streaming.reading import MOST_NAMES, NamedColumn, Reader, label_column, task_column
from kinfolk.tasks.streaming.scanning import Scan, assign_roles, scan

_MOST_32_BIT_ROWS = 2**31 - 1
_TASKS_AT_ONCE = 1 << 14


def count_rows(
    source: Any,
    *,
    label: str,
    task: str,
    features: Sequence[str] | None = None,
    weight: str | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
    categorical_features: str | Sequence[str] = "auto",
    bins: int | Mapping[str, Any] = DEFAULT_BINS,
    unlabelled: Any = None,
    batch_rows: int = 1 << 18,
    sample_rows: int = 4_096,
    verbose: bool = False,
) -> Counts:
    """Count the rows of a table of any length, which is never in memory as a whole.

    The counts are those that an estimator's ``fit`` makes of the same table; ``fit_statistics`` takes them. Memory goes
    to a few batches of rows, to what polars reads ahead, and to the counts. Text and whole numbers of few different
    values take one pass over the table, columns that need bins five more over these columns: their edges are exact
    quantiles, as in ``fit``.

    Parameters
    ----------
    source : path, polars.LazyFrame, polars.DataFrame, DuckDB relation, Dask DataFrame or Spark DataFrame
        A .parquet, .arrow, .feather, .ipc, .csv, .csv.gz, .tsv or .tsv.gz file, a folder of Parquet files, or a query,
        such as ``polars.scan_parquet("rows-*.parquet")``. A relation of DuckDB, a Dask DataFrame or a Spark DataFrame
        is grouped by its own engine, wherever that runs, and nothing but sums comes here; the counts are the same.
    label, task : str
        Columns of the label and of the task. Rows without a label are counted in ``n_unlabelled`` and left out.
    features : sequence of str, optional
        Columns to learn from; by default, all others.
    weight : str, optional
        Column of weights: a row of weight 2 counts as two rows.
    categories : mapping from columns to sequences, optional
        All values that a column can have, in order, whether or not a row has them.
    categorical_features : "auto" or sequence of str, default="auto"
        Columns to treat as categories. "auto" takes text, booleans, categoricals, and whole numbers with at most 64
        different values; other numbers are binned. Whole numbers with more values than ``bins`` are binned, too, where
        that makes the labels of the training rows more probable.
    bins : int or mapping, default=8
        Number of quantile bins of numeric columns, or for named columns a number or the inner edges.
    unlabelled : optional
        A label that marks a row without one, beside missing values.
    batch_rows : int, default=262144
        Rows to hold at a time.
    sample_rows : int, default=4096
        Rows, drawn at random, that the counts keep besides: ``temper="learn"`` needs some. They take one more pass.
        Another engine draws by its own generator, with a fixed seed.
    verbose : bool, default=False
        Show progress on standard error.

    Returns
    -------
    Counts

    Examples
    --------
    >>> import polars as pl
    >>> from kinfolk import NoSharingNB, count_rows
    >>> rows = pl.LazyFrame({"who": ["ann", "bob"] * 4, "sky": ["red", "red", "blue", None] * 2, "ok": [1, 0] * 4})
    >>> counts = count_rows(rows, label="ok", task="who")
    >>> counts
    Counts(8 rows, 2 tasks, 2 labels, 1 feature)
    >>> counts.statistics.feature_counts.tolist()
    [[0, 0, 2, 2], [0, 2, 0, 0]]
    >>> NoSharingNB().fit_statistics(counts).predict({"sky": ["red", "red"]}, task=["ann", "bob"]).tolist()
    [1, 0]
    """
    check_whole("batch_rows", batch_rows, 1)
    check_whole("sample_rows", sample_rows, 0)
    table = held_elsewhere(source) or scan(source)
    kinds = table.schema
    roles = assign_roles(list(kinds), table.where, task=task, label=label, weight=weight, features=features)
    names = roles.features
    _check_types(table, [task, label, *names], weight)
    choices = Choices(names, categories or {}, categorical_features, bins)
    values = {f: choices.values(name, kinds[name]) for f, name in enumerate(names)}
    named = task_column(task, kinds[task]), label_column(label, kinds[label], unlabelled)
    reader: Reader | GroupReader
    if isinstance(table, Elsewhere):
        reader = GroupReader(table, names, *named, weight)
    else:
        reader = Reader(table, names, *named, weight, batch_rows)
    tables = GrowingTables(len(names), reader.dtype)
    tally = _count(reader, values, tables, verbose)
    _check_tally(tally, table.where, label, weight)
    settled = {
        f: choices.settle(names[f], own, tables.of_values(f), tables.of_feature(f).sum(axis=0, dtype=np.float64))
        for f, own in values.items()
        if not own.many
    }
    crowded = {f: choices.n_bins(names[f]) for f, own in values.items() if own.many}
    if crowded:
        edges = reader.edges(crowded, verbose)
        binned = {f: BinnedValues(f"column {names[f]!r}", Column(names[f], None, edges[f])) for f in crowded}
        for f, own in binned.items():
            tables.features[f] = np.zeros_like(tables.features[f][:, :1])
            settled[f] = Settled(own.column, np.arange(own.column.n_values, dtype=np.int32))
        _count(reader, binned, tables, verbose, again=True)
    statistics, classes = _conclude(reader, tables, [settled[f] for f in range(len(names))], tally.whole)
    schema = Schema(tuple(settled[f].column for f in range(len(names))))
    rows = reader.sample(schema, statistics.tasks, classes, min(sample_rows, tally.n_rows), tally.n_rows)
    return Counts(statistics, schema, classes, tuple(roles.learnt), task, label, tally.n_rows, tally.n_unlabelled, rows)


class _Tally(NamedTuple):
    """Rows seen, those without a label, the weight of those with one, and whether all weights are whole."""

    n_rows: int = 0
    n_unlabelled: int = 0
    labelled_weight: float = 0.0
    whole: bool = True


def _count(
    reader: Reader | GroupReader,
    values: Mapping[int, Values],
    tables: GrowingTables,
    verbose: bool,
    again: bool = False,
) -> _Tally:
    """Go through the table once and count some features."""
    tally = _Tally()
    with progress_bar("Counting rows", reader.table.n_rows, verbose) as advance:
        for batch in reader.batches(values):
            n_new = len(batch.task) if batch.n_rows is None else int(batch.n_rows.sum())
            n_rows = tally.n_rows + n_new
            if n_rows > _MOST_32_BIT_ROWS and reader.weight is None:
                tables.widen()
            tables.add(batch, again)
            for f, own in values.items():
                if isinstance(own, NamedValues) and tables.features[f].shape[1] > MAX_CATEGORIES:
                    raise ValueError(too_many(f"column {reader.names[f]!r}"))
            if batch.again:
                continue
            unlabelled = batch.label < 0
            n_unlabelled = unlabelled.sum() if batch.n_rows is None else batch.n_rows[unlabelled].sum()
            weight = float(batch.weights[~unlabelled].sum()) if len(batch.weights) else float((~unlabelled).sum())
            tally = _Tally(
                n_rows,
                tally.n_unlabelled + int(n_unlabelled),
                tally.labelled_weight + weight,
                tally.whole and bool((batch.weights == np.floor(batch.weights)).all()),
            )
            advance(n_new)
    return tally


def _conclude(
    reader: Reader | GroupReader, tables: GrowingTables, settled: Sequence[Settled], whole: bool
) -> tuple[Statistics, NDArray[Any]]:
    """Bring counts into the order of sorted tasks, labels and values; empties the tables."""
    tasks, ids = _sorted(reader.task, tables.rows.sum(axis=1, dtype=np.float64))
    labels, classes = _sorted(reader.label, tables.rows[:, 1:].sum(axis=0, dtype=np.float64))
    layout = Layout(len(classes), np.array([own.column.n_values for own in settled]))
    dtype = tables.rows.dtype if tables.rows.dtype.kind == "i" or not whole else np.dtype(np.int64)
    features = np.zeros((len(ids), layout.n_cells), dtype=dtype)
    cells = features.reshape(len(ids), len(classes), layout.width)
    for f, own in enumerate(settled):
        counts = tables.of_feature(f)
        # The last bins of a column may have no row, and then no place in the table.
        final = own.codes[: counts.shape[2]]
        found = np.flatnonzero(final >= 0)
        found = found[np.argsort(final[found], kind="stable")]
        codes, starts = np.unique(final[found], return_index=True)
        for start in range(0, len(ids) if len(found) else 0, _TASKS_AT_ONCE):
            rows = slice(start, start + _TASKS_AT_ONCE)
            part = counts[np.ix_(tasks[rows], labels, found)]
            cells[rows, :, layout.offsets[f] + codes] = np.add.reduceat(part, starts, axis=2)
        tables.features[f] = tables.features[f][:1]
    label_counts = np.ascontiguousarray(tables.rows[:, 1:][np.ix_(tasks, labels)]).astype(dtype, copy=False)
    return Statistics(layout, ids, features, label_counts), classes


def _sorted(named: NamedColumn, weights: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Codes of the names that some row has, in the order of the names, and these names."""
    codes = np.flatnonzero(weights > 0)
    values = named.values.plain(codes)
    plain = values.tolist()
    order = np.array(sorted(range(len(plain)), key=plain.__getitem__), dtype=np.intp)
    return codes[order], as_ids(list(distinct(values, named.label, limit=MOST_NAMES)))


def _check_types(table: Scan | Elsewhere, columns: Sequence[str], weight: str | None) -> None:
    """Columns must be of types that can be counted."""
    kinds = table.schema
    for name in columns:
        kind = kinds[name]
        if kind.is_nested() or kind.is_temporal() or kind in (pl.Binary, pl.Object):
            raise ValueError(
                f"column {name!r} of {table.where} holds {kind}: turn it into text, numbers or true/false first"
            )
    if weight is not None and not kinds[weight].is_numeric():
        raise ValueError(f"weight column {weight!r} holds {kinds[weight]} values: weights are numbers")


def _check_tally(tally: _Tally, where: str, label: str, weight: str | None) -> None:
    if not tally.n_rows:
        raise ValueError(f"{where} has no rows")
    if tally.n_unlabelled == tally.n_rows:
        raise ValueError(f"label column {label!r} has no label in any row: there is nothing to learn from")
    if not tally.labelled_weight:
        raise ValueError(f"weight column {weight!r} is zero in every row with a label: at least one must count")
