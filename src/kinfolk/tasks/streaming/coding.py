"""Codes for the values of a column that comes in batches, numbered as they turn up.

polars numbers text itself, while it reads; numbers are looked up in a hash table of the values known so far.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.tasks.schema import Column

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
            names = self._pool.to_series().to_list()
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
        self._label, self._most, self._whole = label, most, whole
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
            self.many = self._n_known >= self._most
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
