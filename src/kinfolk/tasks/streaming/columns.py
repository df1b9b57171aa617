"""What becomes of the columns of a table that is counted: the choices that a user may make, and how they turn out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kinfolk.tasks.schema import DEFAULT_BINS, MAX_INTEGER_CATEGORIES, Column, check_listed, learn_schema
from kinfolk.tasks.streaming.coding import BinnedValues, NamedValues, NumberValues, Values
from kinfolk.tasks.table import Table
from kinfolk.tasks.values import MAX_CATEGORIES, sort_values, too_many


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

    def settle(self, name: str, values: Values, weights: NDArray[np.float64]) -> Settled:
        """The column that values turned out to be, given the weight of all rows with each."""
        if isinstance(values, BinnedValues):
            return Settled(values.column, np.arange(values.column.n_values, dtype=np.int32))
        used = np.flatnonzero(weights > 0)
        plain = values.plain(used)
        if name in self._categories:
            column = Column(name, self._categories[name], None)
        else:
            column = self._learn(name, plain, weights[used], values.declared)
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
        binned: bool = False,
    ) -> Column:
        """One column's schema, from its different values and the weight of each."""
        table = Table([name], [plain], [0], 1, len(plain))
        chosen: str | list[str] = "auto"
        if binned or self._chosen is not None:
            chosen = [name] if not binned and self._chosen is not None and name in self._chosen else []
        bins = {name: self._own_bins[name]} if name in self._own_bins else self._default_bins
        schema = learn_schema(table, weights, chosen, bins, {} if declared is None else {0: declared})
        return schema.columns[0]


def _distinct(name: str, given: Sequence[Any]) -> tuple[Any, ...]:
    """Categories that a user lists, each once."""
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise ValueError(f"categories of column {name!r} must be a list of values, not {given!r}")
    found = [value.item() if isinstance(value, np.generic) else value for value in given]
    if not 0 < len(set(found)) == len(found) <= MAX_CATEGORIES:
        raise ValueError(f"categories of column {name!r} must be from 1 to {MAX_CATEGORIES:,} different values")
    return tuple(found)
