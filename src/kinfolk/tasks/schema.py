"""What a model remembers of a table: the categories, bin edges or units of every column, in the user's names.

Only numpy is imported here (see ``table``). A schema is learnt once, at fit; from then on it turns tables into codes,
−1 standing for a missing value or one never seen, and into numbers, NaN where missing: the models leave both out of
their products.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.tasks.numbers import Number, as_numbers, learn_number
from kinfolk.tasks.table import Coded, Table
from kinfolk.tasks.values import (
    MAX_CATEGORIES,
    MAX_SPAN,
    Codes,
    check_finite,
    distinct,
    encode_alike,
    few_enough,
    from_zero,
    is_missing,
)

MAX_INTEGER_CATEGORIES = 64
# Whole numbers of at most so many values are never weighed against Gaussians, whose density between so few points says
# nothing about probabilities.
FEW_CATEGORIES = 16


class Column(NamedTuple):
    """One column: its categories, or the inner edges of its bins, or what it is as a number; the other two are None.

    Bin b holds the values v with edges[b − 1] < v ≤ edges[b].
    """

    name: str
    categories: tuple[Any, ...] | None
    edges: NDArray[np.float64] | None
    number: Number | None = None

    @property
    def n_values(self) -> int:
        """Number of codes, at least one so that a column of missing values has a place; none of a number."""
        if self.number is not None:
            return 0
        if self.categories is not None:
            return max(1, len(self.categories))
        assert self.edges is not None
        return len(self.edges) + 1

    @property
    def value_names(self) -> list[str]:
        """What each code stands for, readable."""
        if self.number is not None:
            return []
        if self.categories is not None:
            return [str(category) for category in self.categories] or ["(none seen)"]
        assert self.edges is not None
        if not len(self.edges):
            return ["any"]
        shown = [f"{edge:.6g}" for edge in self.edges]
        inner = [f"{low} to {high}" for low, high in pairwise(shown)]
        return [f"up to {shown[0]}", *inner, f"over {shown[-1]}"]

    def encode(self, values: NDArray[Any]) -> Codes:
        """Codes of a column's values."""
        if self.categories is not None:
            return encode_alike(values, self.categories)
        assert self.edges is not None
        numbers = as_numbers(values)
        codes = np.searchsorted(self.edges, numbers, side="left").astype(np.int32)
        if numbers.dtype.kind == "f":
            codes[np.isnan(numbers)] = -1
        return codes


class Schema:
    """The columns of a table, in order; those with codes stand first wherever values are laid out, numbers after them.

    Attributes
    ----------
    columns : tuple of Column
    names : list of str
    n_values : ndarray of int
        Number of codes of every column that has codes.
    numbers : tuple of Number
        The columns that are numbers.
    coded_first, order : ndarray of int
        Places of the columns, those with codes first; and where each column stands among these.
    """

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self.columns = columns
        self.names = [column.name for column in columns]
        self.n_values = np.array([column.n_values for column in columns if column.number is None], dtype=np.int64)
        self.numbers = tuple(column.number for column in columns if column.number is not None)
        self.coded_first = np.argsort([column.number is not None for column in columns], kind="stable")
        self.order = np.argsort(self.coded_first)

    def encode(self, table: Table) -> Codes:
        """Codes of the columns that have some, in column-major order: prediction and counting go column by column."""
        codes = np.empty((table.n_rows, len(self.n_values)), dtype=np.int32, order="F")
        place = 0
        for i, (column, values) in enumerate(zip(self.columns, table.columns, strict=True)):
            check_finite(values, table.label(i))
            if column.number is None:
                codes[:, place] = encode_column(column, values, table.codes_of(i))
                place += 1
        return codes

    def encode_numbers(self, table: Table) -> NDArray[np.float64] | None:
        """The columns of numbers, standardised, in column-major order; None where there are none."""
        if not self.numbers:
            return None
        kept = [(column.number, i) for i, column in enumerate(self.columns) if column.number is not None]
        return np.asfortranarray(np.column_stack([number.standardised(table.columns[i]) for number, i in kept]))

    def read_back(self, codes: NDArray[Any], numbers: NDArray[np.float64] | None) -> list[list[str]]:
        """The values of coded rows, readable, in the order of the columns."""
        shown = np.empty((len(codes), len(self.columns)), dtype=object)
        for i, (column, place) in enumerate(zip(self.columns, self.order, strict=True)):
            if column.number is None:
                names = [*column.value_names, "(unknown)"]
                shown[:, i] = [names[code] for code in codes[:, place]]
            else:
                assert numbers is not None
                raw = column.number.raw(numbers[:, place - codes.shape[1]])
                shown[:, i] = ["(unknown)" if np.isnan(value) else f"{value:.6g}" for value in raw]
        result: list[list[str]] = shown.tolist()
        return result


def encode_column(column: Column, values: NDArray[Any], coded: Coded | None) -> Codes:
    """Codes of a column's values: looked up category by category where they came coded, else value by value."""
    if coded is None or column.categories is None:
        return column.encode(values)
    places = encode_alike(np.array(coded.categories, dtype=object), column.categories)
    return np.append(places, np.int32(-1))[coded.codes]


def learn_schema(
    table: Table,
    weights: NDArray[np.float64] | None,
    categorical_features: str | Sequence[Any],
    bins: int | Mapping[Any, Any],
    declared: Mapping[int, Sequence[Any]],
    numeric: str | Mapping[Any, str] = "bin",
    labels: NDArray[np.int32] | None = None,
) -> Schema:
    """Learn categories, bin edges and units from a table whose rows of weight zero are already gone.

    ``declared`` holds the categories that categorical columns declare, by the columns' places; ``numeric`` says what to
    do with numbers, and ``labels`` (codes, −1 unlabelled) help where it says "auto".
    """
    chosen = _chosen_columns(table, categorical_features)
    own_bins = {table.position(key): value for key, value in bins.items()} if isinstance(bins, Mapping) else {}
    default_bins = DEFAULT_BINS if isinstance(bins, Mapping) else bins
    if not _is_number_of_bins(default_bins):
        raise ValueError(f"bins={bins!r}: a whole number of at least 1 is needed, or a mapping from columns to bins")
    named = {table.position(key): value for key, value in numeric.items()} if isinstance(numeric, Mapping) else {}
    columns = []
    for i, values in enumerate(table.columns):
        place = table.places[i]
        name = str(place) if table.names is None else table.names[i]
        label = table.label(i)
        check_finite(values, label)
        its_bins = own_bins.get(i, default_bins)
        if i in own_bins and named.get(i, "bin") != "bin":
            raise ValueError(f"{label} has bins= of its own and numeric={named[i]!r}: one of them is needed")
        if i in named and chosen is not None and i in chosen:
            raise ValueError(f"{label} is named in categorical_features and in numeric=: one of them is needed")
        wanted = named.get(i, numeric if isinstance(numeric, str) else "bin")
        kinds = ["bin"]
        if i not in own_bins:
            categorical = _is_categorical(i, values, place in declared, chosen)
            certain = place in declared or chosen is not None
            kinds = _kinds(values, categorical, certain, wanted, i in named)
        if kinds != ["category"] and values.dtype == object and not is_missing(values).all():
            wish = "it has no bins" if kinds == ["bin"] else f"numeric={wanted!r} is for numbers"
            raise ValueError(f"{label} holds text: {wish}, name it in categorical_features")
        kind = kinds[0]
        if len(kinds) > 1:
            # Weighing families takes scipy, which a saved model does without.
            from kinfolk.tasks.choosing import choose_family

            kind = choose_family(values, weights, labels, _bin_edges(values, weights, its_bins, label), kinds)
        if kind == "category":
            coded = table.codes_of(i)
            if place in declared:
                categories = tuple(declared[place])
            else:
                categories = distinct(values, label) if coded is None else few_enough(sorted(coded.used()), label)
            if len(categories) > MAX_CATEGORIES:
                raise ValueError(f"{label} declares {len(categories):,} categories: at most {MAX_CATEGORIES:,} fit")
            columns.append(Column(name, categories, None))
        elif kind == "bin":
            columns.append(Column(name, None, _bin_edges(values, weights, its_bins, label)))
        else:
            columns.append(Column(name, None, None, learn_number(values, weights, kind, label)))
    return Schema(tuple(columns))


NUMERIC = ("bin", "gaussian", "count", "auto")


def check_numeric(numeric: Any) -> None:
    """Hold ``numeric`` to what it may be."""
    for value in numeric.values() if isinstance(numeric, Mapping) else [numeric]:
        if not isinstance(value, str) or value not in NUMERIC:
            known = ", ".join(f'"{kind}"' for kind in NUMERIC)
            raise ValueError(f"numeric={numeric!r}: give one of {known}, or a mapping from columns to these")


def _kinds(values: NDArray[Any], categorical: bool, certain: bool, wanted: str, named: bool) -> list[str]:
    """What a column may be taken as, of which the most probable will be chosen.

    ``certain`` says that the user, not the values, made it categorical or not; ``named`` that ``wanted`` was asked for
    this very column.
    """
    if wanted == "auto" and values.dtype.kind in "iuf":
        if not categorical:
            return ["bin", "gaussian", "count"]
        if not certain and _n_distinct(values) > FEW_CATEGORIES:
            return ["category", "bin", "gaussian", "count"]
    if categorical and (not named or wanted == "auto"):
        return ["category"]
    return ["bin" if wanted == "auto" else wanted]


def _n_distinct(values: NDArray[Any]) -> int:
    return len(np.unique(values[~np.isnan(values)] if values.dtype.kind == "f" else values))


DEFAULT_BINS = 8


def _is_number_of_bins(bins: Any) -> bool:
    return isinstance(bins, int | np.integer) and not isinstance(bins, bool) and int(bins) >= 1


def _chosen_columns(table: Table, categorical_features: str | Sequence[Any]) -> set[int] | None:
    """Indices of the columns that the user calls categorical; None for "auto"."""
    if isinstance(categorical_features, str) and categorical_features == "auto":
        return None
    check_listed(categorical_features)
    given = list(categorical_features)
    if given and all(isinstance(flag, bool | np.bool_) for flag in given):
        if len(given) != table.width:
            raise ValueError(f"categorical_features has {len(given)} flags for {table.width} columns")
        return {i for i, place in enumerate(table.places) if given[place]}
    return {table.position(column) for column in given}


def check_listed(categorical_features: Any) -> None:
    """Refuse what is no list of columns."""
    if isinstance(categorical_features, str) or not hasattr(categorical_features, "__iter__"):
        raise ValueError(f'categorical_features={categorical_features!r}: give "auto" or a list of columns')


def _is_categorical(index: int, values: NDArray[Any], declares: bool, chosen: set[int] | None) -> bool:
    if chosen is not None:
        return index in chosen
    if declares or values.dtype == object:
        return True
    if values.dtype.kind == "f":
        # Integers with missing values arrive as floats.
        present = values[~np.isnan(values)]
        if not bool((present == np.floor(present)).all()):
            return False
        # Halves, because the whole span of the largest floats overflows.
        if len(present) and present.max() / 2 - present.min() / 2 >= MAX_SPAN / 2:
            return len(np.unique(present)) <= MAX_INTEGER_CATEGORIES
        values = present.astype(np.int64)
    if not len(values):
        return True
    span = int(values.max()) - int(values.min())
    if span < MAX_INTEGER_CATEGORIES:
        return True
    if span < MAX_SPAN:
        found = np.count_nonzero(np.bincount(from_zero(values)))
        return int(found) <= MAX_INTEGER_CATEGORIES
    return len(np.unique(values)) <= MAX_INTEGER_CATEGORIES


def _bin_edges(values: NDArray[Any], weights: NDArray[np.float64] | None, bins: Any, label: str) -> NDArray[np.float64]:
    """Inner edges: the user's own, or weighted quantiles, in which a row of weight 2 counts as two rows."""
    if not _is_number_of_bins(bins):
        try:
            edges = np.asarray(bins, dtype=np.float64)
        except (TypeError, ValueError):
            edges = np.array(np.nan)
        if edges.ndim != 1 or not np.isfinite(edges).all() or (np.diff(edges) <= 0).any():
            raise ValueError(f"{label}: bins={bins!r} is neither a number of at least 1 nor edges, finite and rising")
        return edges
    if values.dtype == object:
        return np.empty(0)
    present = ~np.isnan(values) if values.dtype.kind == "f" else np.ones(len(values), dtype=bool)
    if not present.any():
        return np.empty(0)
    kept = values[present].astype(np.float64)
    order = np.argsort(kept, kind="stable")
    ordered = kept[order]
    mass = np.cumsum(np.ones(len(kept)) if weights is None else weights[present][order])
    wanted = mass[-1] * np.arange(1, int(bins)) / int(bins)
    # A hair of slack keeps ties at a quantile on the same side whether weights are sums of ones or one number.
    place = np.searchsorted(mass, wanted * (1.0 - 1e-12), side="left")
    edges = np.unique(ordered[np.minimum(place, len(ordered) - 1)])
    return np.asarray(edges[edges < ordered[-1]])
