"""Tables that another engine holds (DuckDB, Dask, Spark): it groups and adds up where the data is, and sums travel.

All of them are asked the same questions, through narwhals. Rows that are alike in task, label and one feature are an
entry with a weight, so counting goes on as it does with rows (``counting``). Quantiles are exact, too: a histogram
tells in which cell each of them is, and the least and the greatest value there bound the next histogram, until they
are the same; every histogram of more than one value has two cells or more.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from kinfolk.progress import progress_bar
from kinfolk.tasks.columns import MAX_CATEGORIES, too_many
from kinfolk.tasks.schema import Schema
from kinfolk.tasks.statistics import Layout, Rows, no_rows
from kinfolk.tasks.streaming.columns import NumberValues, Values
from kinfolk.tasks.streaming.growing import CodedBatch
from kinfolk.tasks.streaming.quantiles import quantile_ranks
from kinfolk.tasks.streaming.reading import NamedColumn, coded_rows, sample_columns
from kinfolk.tasks.streaming.scanning import plain_types
from kinfolk.tasks.training import MOST_WEIGHT, wrong_weight

_ENGINES = {
    nw.Implementation.DUCKDB: "DuckDB relation",
    nw.Implementation.DASK: "Dask DataFrame",
    nw.Implementation.PYSPARK: "Spark DataFrame",
    nw.Implementation.PYSPARK_CONNECT: "Spark DataFrame",
}
_N_CELLS = 4_096
_SEED = 0


class Groups(NamedTuple):
    """Rows that are alike in some columns: these columns, and for each group its number of rows and their weight."""

    keys: pl.DataFrame
    n_rows: NDArray[np.int64]
    weights: NDArray[Any]


class Elsewhere(NamedTuple):
    """A table in another engine, and what to call both."""

    frame: nw.LazyFrame[Any]
    where: str
    n_rows: None = None

    @property
    def schema(self) -> pl.Schema:
        """Names and types of the columns, as polars has them."""
        kinds = self.frame.collect_schema()
        strange = {name: pl.Object() for name, kind in kinds.items() if kind == nw.Unknown}
        known = nw.Schema({name: kind for name, kind in kinds.items() if name not in strange}).to_polars()
        plain = plain_types(pl.LazyFrame(schema=known)).collect_schema()
        return pl.Schema({name: plain.get(name) or strange[name] for name in kinds if name in plain or name in strange})

    def groups(self, columns: Sequence[str], weight: str | None) -> Groups:
        """The rows, grouped by some columns."""
        keys = {f"key {i}": name for i, name in enumerate(columns)}
        asked = [nw.col(name).alias(key) for key, name in keys.items()]
        if weight is not None:
            asked.append(nw.col(weight).cast(nw.Float64).alias("weight"))
        sums = [nw.len().alias("rows"), *([] if weight is None else [nw.col("weight").sum()])]
        found = self._collect(self.frame.select(asked).group_by(*keys, drop_null_keys=False).agg(*sums))
        n_rows = found["rows"].cast(pl.Int64).to_numpy()
        return Groups(
            self._typed(found.select(*keys).rename(keys)),
            n_rows,
            n_rows if weight is None else found["weight"].to_numpy(),
        )

    def distinct(self, column: str, weight: str | None, most: int) -> pl.Series:
        """Different values of a column in rows that count, missing ones left out, no more of them than asked for."""
        counted = self.frame if weight is None else self.frame.filter(nw.col(weight) > 0)
        value = nw.col(column).alias("value")
        found = self._collect(counted.select(value).filter(~nw.col("value").is_null()).unique().head(most))
        return self._typed(found.rename({"value": column}))[column]

    def check_weights(self, weight: str) -> None:
        """Refuse weights that are missing, infinite or negative, or too large to add up."""
        value = nw.col("weight")
        wrong = value.is_null() | value.is_nan() | (value < 0) | (value > MOST_WEIGHT)
        given = self.frame.select(nw.col(weight).cast(nw.Float64).alias("weight"))
        found = self._collect(given.filter(wrong).head(1))["weight"]
        if len(found):
            said = "None is not a weight" if found[0] is None else wrong_weight(found[0])
            raise ValueError(f"weight column {weight!r}: {said}")

    def histogram(self, column: str, weight: str | None, bounds: tuple[float, float] | None) -> pl.DataFrame:
        """Cells of the values within bounds, in order: the least and the greatest value of each, and its weight."""
        value, asked = nw.col("value"), [nw.col(column).cast(nw.Float64).alias("value")]
        asked += [] if weight is None else [nw.col(weight).cast(nw.Float64).alias("weight")]
        rows = self.frame.select(asked).filter(~value.is_null(), ~value.is_nan())
        cell = value * 0.0
        if weight is not None:
            rows = rows.filter(nw.col("weight") > 0)
        if bounds is not None:
            low, high = bounds
            rows = rows.filter(value >= low, value <= high)
            # By halves, whose difference no two floats make infinite.
            width = high / 2 - low / 2
            cell = value if width == 0 else ((value / 2 - low / 2) / width * _N_CELLS).floor()
        sums = nw.len().alias("weight") if weight is None else nw.col("weight").sum()
        cells = rows.with_columns(cell.alias("cell"), value.alias("low"), value.alias("high"))
        found = cells.group_by("cell").agg(nw.col("low").min(), nw.col("high").max(), sums)
        return self._collect(found).sort("low")

    def sample(self, columns: Sequence[str], n_kept: int, n_rows: int) -> pl.DataFrame:
        """Some columns of some rows at random."""
        native: Any = self.frame.select(*columns).to_native()
        share = min(1.0, (1.1 * n_kept + 100) / n_rows)
        if self.frame.implementation.is_duckdb():
            native = native.query("rows", f"SELECT * FROM rows USING SAMPLE {n_kept} ROWS (reservoir, {_SEED})")
        elif self.frame.implementation.is_dask():
            native = native.sample(frac=share, random_state=_SEED)
        else:
            native = native.sample(fraction=share, seed=_SEED)
        return self._typed(self._collect(nw.from_native(native)).head(n_kept))

    def _typed(self, found: pl.DataFrame) -> pl.DataFrame:
        """Columns of an answer with the types that the table has."""
        kinds = self.schema
        return plain_types(found.lazy()).collect().cast({name: kinds[name] for name in found.columns})

    def _collect(self, query: nw.LazyFrame[Any]) -> pl.DataFrame:
        """The answer to a query; what the engine has to say against it in one sentence."""
        try:
            with warnings.catch_warnings():
                # What libraries will have to change among themselves is nothing that a user can act on.
                warnings.simplefilter("ignore", DeprecationWarning)
                warnings.simplefilter("ignore", FutureWarning)
                found: pl.DataFrame = query.collect("polars").to_native()
                return found
        except (MemoryError, ImportError):
            raise
        except Exception as error:  # every engine has errors of its own
            reason = str(error).strip().partition("\n")[0]
            raise ValueError(f"{self.where} cannot be counted: {reason}") from error


def held_elsewhere(source: Any) -> Elsewhere | None:
    """A table of another engine; None where it is none."""
    frame = nw.from_native(source, pass_through=True)
    kind = _ENGINES.get(frame.implementation) if isinstance(frame, nw.LazyFrame) else None
    return None if kind is None else Elsewhere(frame, f"the {kind}")


class GroupReader(NamedTuple):
    """The way through a table that another engine groups: what ``reading.Reader`` is for one that is read."""

    table: Elsewhere
    names: list[str]
    task: NamedColumn
    label: NamedColumn
    weight: str | None

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of counts."""
        return np.dtype(np.int64 if self.weight is None else np.float64)

    def batches(self, values: Mapping[int, Values]) -> Iterator[CodedBatch]:
        """Counts of rows first, then of each feature; columns of too many different numbers are told so, and left."""
        if self.weight is not None:
            self.table.check_weights(self.weight)
        yield self._coded(None, None)
        for f, own in values.items():
            if isinstance(own, NumberValues):
                # One more than are taken, and a second zero.
                found = self.table.distinct(self.names[f], self.weight, own.most + 2)
                self._refuse_infinity(found, f)
                own.encode(found.to_frame("v").select(own.query(pl.col("v")))["v"], 0)
                if own.many:
                    continue
            elif own.declared is None:
                n_found = len(self.table.distinct(self.names[f], self.weight, MAX_CATEGORIES + 1))
                if n_found > MAX_CATEGORIES:
                    raise ValueError(too_many(f"column {self.names[f]!r}"))
            yield self._coded(f, own)

    def edges(self, n_bins: Mapping[int, int], verbose: bool) -> dict[int, NDArray[np.float64]]:
        """Inner edges of bins of equal weight, for columns of many different numbers."""
        with progress_bar("Finding bins", len(n_bins), verbose) as advance:
            found = {}
            for f, n in n_bins.items():
                found[f] = self._edges(self.names[f], f, n)
                advance(1)
        return found

    def sample(self, schema: Schema, tasks: NDArray[Any], classes: NDArray[Any], n_kept: int, n_rows: int) -> Rows:
        """Some rows, coded; those among them that have no label or no weight are left out."""
        if not n_kept:
            return no_rows(Layout(len(classes), schema.n_values))
        asked = [self.task.name, self.label.name, *self.names, *([] if self.weight is None else [self.weight])]
        found = self.table.sample(asked, n_kept, n_rows)
        weights = None if self.weight is None else found[self.weight].cast(pl.Float64).to_numpy()
        frame = found.select(sample_columns(self.task, self.label, self.names))
        return coded_rows(frame, schema, tasks, classes, weights)

    def _coded(self, f: int | None, own: Values | None) -> CodedBatch:
        """Groups of rows by task, label and one feature, or by task and label alone."""
        asked_for = [self.task.name, self.label.name, *([] if f is None else [self.names[f]])]
        keys, n_rows, weights = self.table.groups(asked_for, self.weight)
        asked = [self.task.values.query(self.task.query).alias("task")]
        asked.append(self.label.values.query(self.label.query).alias("label"))
        if f is not None and own is not None:
            self._refuse_infinity(keys[self.names[f]], f)
            asked.append(own.query(pl.col(self.names[f])).alias("feature"))
        batch = keys.select(asked)
        tasks = self.task.values.encode(batch["task"], 0)
        if (tasks < 0).any():
            raise ValueError(f"{self.task.label}: a task is missing, every row needs one")
        labels = self.label.values.encode(batch["label"], 0)
        if f is None or own is None:
            return CodedBatch(tasks, labels, {}, weights, n_rows)
        return CodedBatch(tasks, labels, {f: own.encode(batch["feature"], 0, weights > 0)}, weights, n_rows[:0])

    def _refuse_infinity(self, values: pl.Series, f: int) -> None:
        if values.dtype.is_float() and values.is_infinite().any():
            raise ValueError(f"column {self.names[f]!r}: infinity is not a value to learn from")

    def _edges(self, name: str, f: int, n_bins: int) -> NDArray[np.float64]:
        """Quantiles of one column, each once, without the highest value, above which there is none."""
        all_rows = self.table.histogram(name, self.weight, None)
        lowest, highest, total = (all_rows[column][0] for column in ("low", "high", "weight"))
        self._refuse_infinity(pl.Series([lowest, highest]), f)
        # Quantiles between the same bounds, with the weight below them, are looked for together.
        open_, edges = [(lowest, highest, 0.0, quantile_ranks(total, n_bins))], set()
        while open_:
            low, high, below, ranks = open_.pop()
            if low == high:
                edges.add(low)
                continue
            cells = self.table.histogram(name, self.weight, (low, high))
            reached = below + np.cumsum(cells["weight"].to_numpy())
            own = np.minimum(np.searchsorted(reached, ranks), len(cells) - 1)
            for cell in np.unique(own).tolist():
                before = float(reached[cell - 1]) if cell else below
                open_.append((cells["low"][cell], cells["high"][cell], before, ranks[own == cell]))
        found = np.array(sorted(edge + 0.0 for edge in edges))
        return np.asarray(found[found < highest])
