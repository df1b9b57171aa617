"""Columns of a table that is counted: codes for their values while batches come in, and what becomes of them.

polars numbers text itself, while it reads; numbers are looked up in a hash table of the values known so far. What the
values turn out to be, categories or bins, is settled by the rules of ``tasks.schema``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.tasks.columns import (
    DEFAULT_BINS,
    MAX_CATEGORIES,
    MAX_INTEGER_CATEGORIES,
    check_listed,
    learn_schema,
    sort_values,
    too_many,
)
from kinfolk.tasks.schema import Column
from kinfolk.tasks.table import plain_table

Codes = NDArray[np.int32]
_ALL_BITS = 2**32 - 1  # with a sign, it reads −1
# The golden ratio's fraction in 64 bits: multiplied by it, neighbouring keys land far from each other.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class NamedValues:
    """A column of text, of true and false, or of declared categories: its codes come from polars."""

    many = False

    def __init__(self, kind: pl.DataType) -> None:
        self._kind = kind
        self._pool = pl.Categories.random() if kind in (pl.String, pl.Categorical) else None
        # polars forgets the numbers of a pool that no series has: an empty one keeps them from batch to batch.
        self._keeper = None if self._pool is None else pl.Series(dtype=pl.Categorical(self._pool))

    def query(self, values: pl.Expr) -> pl.Expr:
        """The codes of values."""
        if self._pool is not None:
            values = values.cast(pl.String).cast(pl.Categorical(self._pool))
        return (values if self._kind == pl.Boolean else values.to_physical()).cast(pl.UInt32)

    def encode(self, batch: pl.Series, first_row: int, counted: NDArray[np.bool_] | None = None) -> Codes:
        """Codes of a batch, −1 where values are missing."""
        return (batch.fill_null(_ALL_BITS) if batch.null_count() else batch).to_numpy().view(np.int32)

    def plain(self, codes: NDArray[np.intp]) -> NDArray[Any]:
        """Values of some codes, as a table's column has them."""
        if self._pool is not None:
            # polars before 2 has another name for it, which polars 2 no longer has.
            old: Any = None if hasattr(self._pool, "to_series") or self._keeper is None else self._keeper.cat
            names = (self._pool.to_series() if old is None else old.get_categories()).to_list()
        else:
            names = [False, True] if self._kind == pl.Boolean else self.declared or []
        return np.fromiter((names[code] for code in codes.tolist()), dtype=object, count=len(codes))

    @property
    def declared(self) -> list[str] | None:
        """All categories, where the type of the column says them."""
        return self._kind.categories.to_list() if isinstance(self._kind, pl.Enum) else None


class NumberValues:
    """A column of numbers: its codes come from a hash table; past ``most`` different values, it gives up."""

    declared = None

    def __init__(self, label: str, kind: pl.DataType, most: int, whole: bool = False) -> None:
        self.many = False
        self.most = most
        self._label, self._whole = label, whole
        self._kind: type[pl.DataType] = pl.Float64 if kind.is_float() or kind == pl.Null else pl.Int64
        if kind == pl.UInt64:
            self._kind = pl.UInt64
        self._n_known = 0
        self._known = np.zeros(64, dtype=np.int64)
        self._slots = np.full(256, -1, dtype=np.int32)

    def query(self, values: pl.Expr) -> pl.Expr:
        """The values, in 64 bits."""
        return values.cast(self._kind)

    def encode(self, batch: pl.Series, first_row: int, counted: NDArray[np.bool_] | None = None) -> Codes:
        """Codes of a batch; −1 where a value is missing or its row does not count."""
        missing = batch.is_null().to_numpy() if batch.null_count() else np.zeros(0, dtype=bool)
        if self._kind == pl.Float64:
            numbers = finite(batch, first_row, self._label)
            missing = np.isnan(numbers)
            if self._whole and (fractions := (numbers != np.floor(numbers)) & ~missing).any():
                found = numbers[fractions][0]
                raise ValueError(f"{self._label} holds {found}: labels are text, true/false or whole numbers")
            keys = (numbers + 0.0).view(np.int64)  # a zero below zero would differ from the other in its bits
        else:
            keys = batch.fill_null(0).to_numpy().view(np.int64)
        if counted is not None:
            missing = missing | ~counted if len(missing) else ~counted
        codes = np.full(len(keys), -1, dtype=np.int32)
        row = 0
        while not self.many:
            row, self._n_known = _look_up(keys, missing, row, self._slots, self._known, self._n_known, codes)
            if row == len(keys):
                break
            self.many = self._n_known >= self.most
            self._grow()
        return codes

    def plain(self, codes: NDArray[np.intp]) -> NDArray[Any]:
        """Values of some codes, as a table's column has them."""
        dtype = np.float64 if self._kind == pl.Float64 else np.uint64 if self._kind == pl.UInt64 else np.int64
        return np.asarray(self._known.view(dtype)[codes])

    def _grow(self) -> None:
        before = self._known[: self._n_known]
        self._known = np.zeros(2 * len(self._known), dtype=np.int64)
        self._slots = np.full(4 * len(self._known), -1, dtype=np.int32)
        codes = np.empty(len(before), dtype=np.int32)
        _look_up(before, np.zeros(0, dtype=bool), 0, self._slots, self._known, 0, codes)


class BinnedValues:
    """A column of numbers whose bins are known."""

    many, declared = False, None

    def __init__(self, label: str, column: Column) -> None:
        self._label, self.column = label, column

    def query(self, values: pl.Expr) -> pl.Expr:
        """The values, in 64 bits."""
        return values.cast(pl.Float64)

    def encode(self, batch: pl.Series, first_row: int, counted: NDArray[np.bool_] | None = None) -> Codes:
        """Bins of a batch, −1 where values are missing."""
        return self.column.encode(finite(batch, first_row, self._label))


Values = NamedValues | NumberValues | BinnedValues


def finite(batch: pl.Series, first_row: int, label: str) -> NDArray[np.float64]:
    """Floats, NaN where they are missing; infinite ones are refused."""
    numbers = batch.to_numpy()
    infinite = np.isinf(numbers)
    if infinite.any():
        raise ValueError(f"{label}, row {first_row + int(infinite.argmax())}: infinity is not a value to learn from")
    return numbers


@compiled
def _look_up(keys, missing, start, slots, known, n_known, codes):  # type: ignore[no-untyped-def]
    """Code keys from ``start`` on, adding new ones to ``known`` until it is full; gives where it ended."""
    mask = len(slots) - 1
    gaps = len(missing) > 0
    for i in range(start, len(keys)):
        if gaps and missing[i]:
            continue
        key = keys[i]
        slot = np.int64((np.uint64(key) * _SPREAD) >> np.uint64(32)) & mask
        while slots[slot] >= 0 and known[slots[slot]] != key:
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            if n_known == len(known):
                return i, n_known
            known[n_known] = key
            slots[slot] = n_known
            n_known += 1
        codes[i] = slots[slot]
    return len(keys), n_known


class Settled(NamedTuple):
    """A column, and for every code given while counting its final one: its category or bin, −1 for none."""

    column: Column
    codes: NDArray[np.int32]


class Choices:
    """Which features are categories, and the bins of the others; the rules are those of ``learn_schema``."""

    def __init__(
        self,
        names: Sequence[str],
        categories: Mapping[str, Sequence[Any]],
        categorical_features: str | Sequence[str],
        bins: int | Mapping[str, Any],
    ) -> None:
        auto = isinstance(categorical_features, str) and categorical_features == "auto"
        if not auto:
            check_listed(categorical_features)
        own = bins if isinstance(bins, Mapping) else {}
        self._chosen = None if auto else set(categorical_features)
        for what, given in (("categories", categories), ("categorical_features", self._chosen or ()), ("bins", own)):
            for name in given:
                if name not in names:
                    raise ValueError(f"{what} names column {name!r}, which is not a feature")
        for name in categories:
            if name in own:
                raise ValueError(f"column {name!r} has both categories and bins: it can have one of them")
        self._categories = {name: _distinct(name, given) for name, given in categories.items()}
        self._own_bins = own
        self._default_bins = DEFAULT_BINS if isinstance(bins, Mapping) else bins

    def values(self, name: str, kind: pl.DataType) -> Values:
        """How a column is coded while rows come in."""
        if not (kind.is_numeric() or kind == pl.Null):
            return NamedValues(kind)
        label = f"column {name!r}"
        if name in self._categories or (
            name not in self._own_bins and self._chosen is not None and name in self._chosen
        ):
            return NumberValues(label, kind, MAX_CATEGORIES)
        column = self._learn(name, np.empty(0), None, None, binned=True)
        if name in self._own_bins and np.ndim(self._own_bins[name]):
            return BinnedValues(label, column)
        return NumberValues(label, kind, MAX_INTEGER_CATEGORIES)

    def settle(self, name: str, values: Values, weights: NDArray[np.float64], by_label: NDArray[np.float64]) -> Settled:
        """The column that values turned out to be, given the weight of all rows with each, and of those of a label."""
        if isinstance(values, BinnedValues):
            return Settled(values.column, np.arange(values.column.n_values, dtype=np.int32))
        used = np.flatnonzero(weights > 0)
        plain = values.plain(used)
        if name in self._categories:
            column = Column(name, self._categories[name], None)
        else:
            column = self._learn(name, plain, weights[used], values.declared, by_label[:, used])
        codes = np.full(len(weights), -1, dtype=np.int32)
        codes[used] = column.encode(plain)
        if name in self._categories and (codes[used] < 0).any():
            strange = sort_values(plain[codes[used] < 0].tolist())[0]
            raise ValueError(f"column {name!r} holds {strange!r}, which is not among the categories given for it")
        return Settled(column, codes)

    def n_bins(self, name: str) -> int:
        """Number of bins of a column of many different numbers."""
        if self._is_category(name):
            raise ValueError(too_many(f"column {name!r}"))
        return int(self._own_bins.get(name, self._default_bins))

    def _is_category(self, name: str) -> bool:
        """Whether a column is one of categories by the user's own choice."""
        chosen = self._chosen is not None and name in self._chosen and name not in self._own_bins
        return chosen or name in self._categories

    def _learn(
        self,
        name: str,
        plain: NDArray[Any],
        weights: NDArray[np.float64] | None,
        declared: Sequence[Any] | None,
        by_label: NDArray[np.float64] | None = None,
        binned: bool = False,
    ) -> Column:
        """One column's schema, from its different values, the weight of each and of each with a label."""
        labels = None
        if by_label is not None and weights is not None:
            # A row for each value and label, the last ones without any.
            unlabelled = np.maximum(weights - by_label.sum(axis=0), 0.0)
            labels = np.repeat(np.append(np.arange(len(by_label)), -1), len(plain)).astype(np.int32)
            plain, weights = np.tile(plain, len(by_label) + 1), np.append(by_label.ravel(), unlabelled)
            plain, weights, labels = plain[weights > 0], weights[weights > 0], labels[weights > 0]
        table = plain_table([name], [plain])
        chosen: str | list[str] = "auto"
        if binned or self._chosen is not None:
            chosen = [name] if not binned and self._chosen is not None and name in self._chosen else []
        bins = {name: self._own_bins[name]} if name in self._own_bins else self._default_bins
        schema = learn_schema(table, weights, chosen, bins, {} if declared is None else {0: declared}, labels=labels)
        return schema.columns[0]


def _distinct(name: str, given: Sequence[Any]) -> tuple[Any, ...]:
    """Categories that a user lists, each once."""
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise ValueError(f"categories of column {name!r} must be a list of values, not {given!r}")
    found = [value.item() if isinstance(value, np.generic) else value for value in given]
    if not 0 < len(set(found)) == len(found) <= MAX_CATEGORIES:
        raise ValueError(f"categories of column {name!r} must be from 1 to {MAX_CATEGORIES:,} different values")
    return tuple(found)
