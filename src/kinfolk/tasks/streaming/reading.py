"""The way through a table that is never read whole: coded rows, batch by batch, and a sample of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kinfolk.progress import progress_bar
from kinfolk.tasks.schema import Schema, encode
from kinfolk.tasks.statistics import Layout, Rows, no_rows
from kinfolk.tasks.streaming.columns import NamedValues, NumberValues, Values
from kinfolk.tasks.streaming.growing import CodedBatch
from kinfolk.tasks.streaming.quantiles import N_PASSES, QuantileSearch
from kinfolk.tasks.streaming.scanning import Scan, check_mark
from kinfolk.tasks.table import no_task, read_table
from kinfolk.tasks.training import refuse_wrong_weights

MOST_NAMES = 2**31 - 1


class NamedColumn(NamedTuple):
    """A column of names, of tasks or of labels: its own name, what to call it, how to ask for it, and its codes."""

    name: str
    label: str
    query: pl.Expr
    values: NamedValues | NumberValues


class Reader(NamedTuple):
    """The way through a table, batch by batch."""

    table: Scan
    names: list[str]
    task: NamedColumn
    label: NamedColumn
    weight: str | None
    batch_rows: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of counts."""
        return np.dtype(np.int32 if self.weight is None else np.float64)

    def batches(self, values: Mapping[int, Values]) -> Iterator[CodedBatch]:
        """Coded rows with some of the features."""
        asked = [self.task.values.query(self.task.query).alias("task")]
        asked.append(self.label.values.query(self.label.query).alias("label"))
        asked += [own.query(pl.col(self.names[f])).alias(f"feature {f}") for f, own in values.items()]
        first_row = 0
        for batch in self.table.batches([*asked, *self._weight_query()], self.batch_rows):
            weights = self._weights(batch, first_row)
            counted = None if self.weight is None else weights > 0
            tasks = self.task.values.encode(batch["task"], first_row)
            if (tasks < 0).any():
                raise ValueError(no_task(self.task.label, first_row + int((tasks < 0).argmax())))
            labels = self.label.values.encode(batch["label"], first_row)
            features = {f: own.encode(batch[f"feature {f}"], first_row, counted) for f, own in values.items()}
            yield CodedBatch(tasks, labels, features, weights)
            first_row += batch.height

    def edges(self, n_bins: Mapping[int, int], verbose: bool) -> dict[int, NDArray[np.float64]]:
        """Inner edges of bins of equal weight, for columns of many different numbers."""
        searches = {f: QuantileSearch(n) for f, n in n_bins.items()}
        total = None if self.table.n_rows is None else N_PASSES * self.table.n_rows
        with progress_bar("Finding bins", total, verbose) as advance:
            for _ in range(N_PASSES):
                for columns, weights in self._numbers(list(searches)):
                    for numbers, search in zip(columns, searches.values(), strict=True):
                        search.add(numbers, weights)
                    advance(len(columns[0]))
                for search in searches.values():
                    search.narrow()
        return {f: search.edges for f, search in searches.items()}

    def _numbers(self, features: Sequence[int]) -> Iterator[tuple[list[NDArray[np.float64]], NDArray[np.float64]]]:
        """Features as they are, NaN where they are missing, and weights."""
        asked = [pl.col(self.names[f]).cast(pl.Float64) for f in features]
        for batch in self.table.batches([*asked, *self._weight_query()], self.batch_rows):
            yield [batch[self.names[f]].to_numpy() for f in features], self._weights(batch, 0)

    def _weight_query(self) -> list[pl.Expr]:
        return [] if self.weight is None else [pl.col(self.weight).cast(pl.Float64).alias("weight of row")]

    def _weights(self, batch: pl.DataFrame, first_row: int) -> NDArray[np.float64]:
        if self.weight is None:
            return np.empty(0)
        weights = batch["weight of row"].to_numpy()
        refuse_wrong_weights(weights, f"weight column {self.weight!r}", first_row)
        return weights

    def sample(self, schema: Schema, tasks: NDArray[Any], classes: NDArray[Any], n_kept: int, n_rows: int) -> Rows:
        """Some rows, coded; those among them that have no label or no weight are left out."""
        if not n_kept:
            return no_rows(Layout(len(classes), schema.n_values))
        chosen = np.random.default_rng(0).choice(n_rows, n_kept, replace=False)
        asked = sample_columns(self.task, self.label, self.names)
        frame = self.table.take([*asked, *self._weight_query()], chosen, self.batch_rows)
        return coded_rows(frame, schema, tasks, classes, None if self.weight is None else self._weights(frame, 0))


def sample_columns(task: NamedColumn, label: NamedColumn, names: Sequence[str]) -> list[pl.Expr]:
    """What `coded_rows` takes, asked of a table."""
    features = [pl.col(name).alias(f"feature {f}") for f, name in enumerate(names)]
    return [task.query.alias("task"), label.query.alias("label"), *features]


def coded_rows(
    frame: pl.DataFrame,
    schema: Schema,
    tasks: NDArray[Any],
    classes: NDArray[Any],
    weights: NDArray[np.float64] | None,
) -> Rows:
    """Rows of columns "task", "label" and "feature 0" onwards, coded, without those that have no label or no weight."""
    named = read_table(frame.select("task", "label"))
    features = read_table(frame.select(f"feature {f}" for f in range(len(schema.columns))))
    rows = Rows(
        np.ascontiguousarray(schema.encode(features)),
        encode(named.values(1), classes.tolist()),
        encode(named.values(0), tasks.tolist()).astype(np.int64),
        weights,
    )
    return rows.take((rows.labels >= 0) & (rows.task >= 0) & (rows.weights is None or rows.weights > 0))


def task_column(name: str, kind: pl.DataType) -> NamedColumn:
    """The tasks."""
    what = f"task column {name!r}"
    return NamedColumn(name, what, pl.col(name), _values_of_names(what, kind, False))


def label_column(name: str, kind: pl.DataType, unlabelled: Any) -> NamedColumn:
    """The labels, missing where they are the mark of a row without one."""
    what = f"label column {name!r}"
    query = pl.col(name)
    if kind in (pl.Categorical, pl.Enum):
        query, kind = query.cast(pl.String), pl.String()
    if unlabelled is not None:
        check_mark(unlabelled, name, kind)
        query = pl.when(query != unlabelled).then(query)
    return NamedColumn(name, what, query, _values_of_names(what, kind, True))


def _values_of_names(what: str, kind: pl.DataType, whole: bool) -> NamedValues | NumberValues:
    numeric = kind.is_numeric() or kind == pl.Null
    return NumberValues(what, kind, MOST_NAMES, whole) if numeric else NamedValues(kind)
