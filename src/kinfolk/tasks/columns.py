"""What the columns of a training table are: categories, bins or numbers, and which values they have.

Only numpy is imported here: a saved model names its labels and tasks without anything else installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.tasks.answering import tell
from kinfolk.tasks.schema import MAX_SPAN, Codes, Column, Number, Schema, as_numbers, encode, is_count
from kinfolk.tasks.table import Coded, Table, is_missing

MAX_CATEGORIES = 65_536

# Tasks may be many more than categories of a column.
_MOST_TASKS = 1 << 30

MAX_INTEGER_CATEGORIES = 64

# Whole numbers of at most so many values are never weighed against Gaussians, whose density between so few points says
# nothing about probabilities.
FEW_CATEGORIES = 16

DEFAULT_BINS = 8

NUMERIC = ("bin", "gaussian", "count", "auto")

# Share of its rows that a column has different values of, at least, where it looks like an identifier.
_SHARE_OF_AN_IDENTIFIER = 0.9

# What the task is called where none was named.
ONE_TASK = 0


def learn_schema(
    table: Table,
    weights: NDArray[np.float64] | None,
    categorical_features: str | Sequence[Any],
    bins: int | Mapping[Any, Any],
    declared: Mapping[int, Sequence[Any]],
    numeric: str | Mapping[Any, str] = "bin",
    labels: NDArray[np.int32] | None = None,
    densities: bool = True,
    weighs: bool = True,
) -> Schema:
    """Learn categories, bin edges and units from a table whose rows of weight zero are already gone.

    ``declared`` holds the categories that categorical columns declare, by the columns' places; ``numeric`` says what to
    do with numbers. ``labels`` (codes, −1 unlabelled) help where it says "auto", which takes none of the ``densities``
    of numbers where a model has none; and, if ``weighs``, they decide whether whole numbers of more values than there
    are bins are categories; otherwise, these are.
    """
    chosen = _chosen_columns(table, categorical_features)
    own_bins = {table.position(key): value for key, value in bins.items()} if isinstance(bins, Mapping) else {}
    default_bins = DEFAULT_BINS if isinstance(bins, Mapping) else bins
    if not _is_number_of_bins(default_bins):
        raise ValueError(f"bins={bins!r}: a whole number of at least 1 is needed, or a mapping from columns to bins")
    _check_numeric(numeric)
    named = {table.position(key): value for key, value in numeric.items()} if isinstance(numeric, Mapping) else {}
    columns = []
    for i, held in enumerate(table.columns):
        # Text that came coded is known to be text without being written out.
        values = _text_like(held) if isinstance(held, Coded) else held
        place = table.places[i]
        name = str(place) if table.names is None else table.names[i]
        label = table.labels[i]
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
            kinds = _kinds(values, categorical, certain, wanted, i in named, densities)
            weighed = weighs and not certain and wanted == "bin" and i not in named and values.dtype.kind in "iuf"
            if kinds == ["category"] and weighed and labels is not None:
                kinds = _category_or_bins(values, weights, labels, its_bins, label)
        if kinds != ["category"] and values.dtype == object and any(value is not None for value in values):
            wish = "it has no bins" if kinds == ["bin"] else f"numeric={wanted!r} is for numbers"
            raise ValueError(f"{label} holds text: {wish}, name it in categorical_features")
        kind = kinds[0]
        if len(kinds) > 1:
            # Weighing families takes scipy, which a saved model does without.
            from kinfolk.tasks.choosing import choose_family

            kind = choose_family(values, weights, labels, _bin_edges(values, weights, its_bins, label), kinds)
        if kind == "category":
            if place in declared:
                categories = tuple(declared[place])
            else:
                found = used_categories(held) if isinstance(held, Coded) else distinct(values, label)
                categories = _few_enough(found, label, MAX_CATEGORIES)
            if len(categories) > MAX_CATEGORIES:
                raise ValueError(f"{label} declares {len(categories):,} categories: at most {MAX_CATEGORIES:,} fit")
            columns.append(Column(name, categories, None))
        elif kind == "bin":
            columns.append(Column(name, None, _bin_edges(values, weights, its_bins, label)))
        else:
            columns.append(Column(name, None, None, learn_number(table.values(i), weights, kind, label)))
    return Schema(tuple(columns))


def without_identifiers(schema: Schema, table: Table, declared: Mapping[int, Sequence[Any]]) -> Schema:
    """The schema without the values of columns that look like identifiers, which are told of.

    A column does that has more categories than whole numbers may have, declared by nobody, and so many that hardly two
    rows are alike: a value that no other row has tells nothing about any, and each takes room in every task.
    """
    found = list(schema.columns)
    for i, column in enumerate(found):
        n_values = len(column.categories or ())
        if n_values > MAX_INTEGER_CATEGORIES and table.places[i] not in declared:
            n_rows = int((~is_missing(table.values(i))).sum())
            if n_values >= _SHARE_OF_AN_IDENTIFIER * n_rows:
                found[i] = column._replace(categories=())
                tell(
                    f"{table.labels[i]} looks like an identifier: {n_values:,} different values in {n_rows:,} rows, at "
                    f"least {_SHARE_OF_AN_IDENTIFIER:.0%} of them; its values are left out, since hardly any tells of "
                    "another row: leave the column out, or name it in categorical_features to have them counted",
                    UserWarning,
                )
    return Schema(tuple(found))


def _check_numeric(numeric: Any) -> None:
    """Hold ``numeric`` to what it may be."""
    for value in numeric.values() if isinstance(numeric, Mapping) else [numeric]:
        if not isinstance(value, str) or value not in NUMERIC:
            known = ", ".join(f'"{kind}"' for kind in NUMERIC)
            raise ValueError(f"numeric={numeric!r}: give one of {known}, or a mapping from columns to these")


def _kinds(
    values: NDArray[Any], categorical: bool, certain: bool, wanted: str, named: bool, densities: bool
) -> list[str]:
    """What a column may be taken as, of which the most probable will be chosen.

    ``certain`` says that the user, not the values, made it categorical or not; ``named`` that ``wanted`` was asked for
    this very column.
    """
    if wanted == "auto" and values.dtype.kind in "iuf":
        kinds = ["bin", "gaussian", "count"] if densities else ["bin"]
        if not categorical:
            return kinds
        if not certain and _n_distinct(values) > FEW_CATEGORIES:
            return ["category", *kinds]
    if categorical and (not named or wanted == "auto"):
        return ["category"]
    return ["bin" if wanted == "auto" else wanted]


def _category_or_bins(
    values: NDArray[Any], weights: NDArray[np.float64] | None, labels: NDArray[np.int32], bins: int, label: str
) -> list[str]:
    """What whole numbers that nobody called categories are taken for."""
    if not 1 < bins < _n_distinct(values):
        return ["category"]
    # Weighing takes scipy, which a saved model does without.
    from kinfolk.tasks.choosing import choose_coding

    return [choose_coding(values, weights, labels, _bin_edges(values, weights, bins, label))]


def _n_distinct(values: NDArray[Any]) -> int:
    """How many different numbers there are; counted, where they span little, which is faster than sorting them out."""
    if values.dtype.kind == "f":
        return len(np.unique(values[~np.isnan(values)]))
    if len(values) and int(values.max()) - int(values.min()) < MAX_SPAN:
        return int(np.count_nonzero(np.bincount(from_zero(values))))
    return len(np.unique(values))


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
    return span < MAX_INTEGER_CATEGORIES or _n_distinct(values) <= MAX_INTEGER_CATEGORIES


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


def learn_number(values: NDArray[Any], weights: NDArray[np.float64] | None, family: str, label: str) -> Number:
    """Centre and scale of a column's training rows; an error where the family cannot hold one of them.

    Examples
    --------
    >>> learn_number(np.array([1.0, 3.0, np.nan]), None, "gaussian", "column 'size'")
    Number(family='gaussian', centre=2.0, scale=1.0)
    """
    numbers = as_numbers(values, label)
    present = ~np.isnan(numbers)
    if family == "count" and not is_count(numbers[present]).all():
        row = int(np.flatnonzero(present)[np.argmin(is_count(numbers[present]))])
        raise ValueError(f"{label}, row {row}: {numbers[row]:g} is not a count, which is a whole number from 0 to 2^53")
    kept, mass = numbers[present], np.ones(int(present.sum())) if weights is None else weights[present]
    # In the order of their sizes, so that the order of the rows changes no last bit.
    order = np.lexsort([mass, kept])
    kept, mass = kept[order], mass[order]
    if not len(kept):
        return Number(family, 0.0, 1.0)
    largest = float(np.abs(kept).max()) or 1.0
    share = mass / mass.sum()
    centre = float(share @ (kept / largest))
    if family == "count":
        # Half an event more keeps the prior proper where nothing was ever counted.
        return Number(family, 0.0, (largest * centre * mass.sum() + 0.5) / float(mass.sum()))
    spread = float(np.sqrt(share @ (kept / largest - centre) ** 2))
    # What is left of a constant column after rounding is no spread.
    rounding = 8.0 * np.finfo(np.float64).eps
    if spread <= rounding or largest * spread < np.finfo(np.float64).tiny:
        return Number(family, float(kept[len(kept) // 2]), max(1.0, rounding * largest))
    return Number(family, largest * centre, largest * spread)


def _text_like(coded: Coded) -> NDArray[Any]:
    """One value of a column of text, which is missing if all are."""
    return np.array(["" if (coded.codes >= 0).any() else None], dtype=object)


def used_categories(coded: Coded) -> tuple[str, ...]:
    """The distinct values of a column that came coded, sorted."""
    used = np.unique(coded.codes[coded.codes >= 0]).tolist()
    return tuple(sorted(coded.categories[code] for code in used))


def distinct(values: NDArray[Any], label: str, limit: int = MAX_CATEGORIES) -> tuple[Any, ...]:
    """The distinct values of a plain column, sorted, None and NaN left out; an error where there are too many."""
    if values.dtype.kind in "iu" and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low < MAX_SPAN:
            steps = np.flatnonzero(np.bincount(from_zero(values)))
            found: list[Any] = [low + step for step in steps.tolist()]
        else:
            found = np.unique(values).tolist()
    elif values.dtype.kind == "f":
        present = np.unique(values[~np.isnan(values)])
        # Integers with missing values arrive as floats, and are called 1, not 1.0.
        whole = (present == np.floor(present)).all() and (np.abs(present) < 2**53).all()
        found = (present.astype(np.int64) if whole else present).tolist()
    else:
        seen: set[Any] = set()
        try:
            for start in range(0, len(values), 1 << 16):
                seen.update(values[start : start + (1 << 16)].tolist())
                if len(seen) > limit + 1:
                    break
        except TypeError as error:
            raise TypeError(
                f"{label} holds a value that cannot be a category: argument must be a string or a number ({error})"
            ) from None
        found = list(seen - {None})
        if len(found) <= limit:
            found = sort_values(found)
    return _few_enough(found, label, limit)


def _few_enough(found: Sequence[Any], label: str, limit: int) -> tuple[Any, ...]:
    if len(found) > limit:
        raise ValueError(too_many(label, limit))
    return tuple(found)


def too_many(label: str, limit: int = MAX_CATEGORIES) -> str:
    """What to say of a column with more values than categories can be."""
    return (
        f"{label} has more than {limit:,} different values: too many to be categories; leave it out, group it, "
        "or make it numeric so that it is binned"
    )


def from_zero(values: NDArray[Any]) -> NDArray[np.int64]:
    """Whole numbers less their lowest, in a type that the difference fits in."""
    wide = values if values.dtype.kind == "u" else values.astype(np.int64)
    return np.asarray(wide - wide.min(), dtype=np.int64)


def as_ids(values: list[Any]) -> NDArray[Any]:
    """A plain array of ids: numbers or text where all are, else objects."""
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and kinds <= {int, bool, float, str}:
        array = np.array(values)
        if array.dtype.kind in "iubfU":
            return array
    return np.fromiter(values, dtype=object, count=len(values))


def sort_values(values: list[Any]) -> list[Any]:
    """Sort values of any types: by value where they compare, else by the name of their type first."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=lambda value: (type(value).__name__, str(value)))


def in_order(values: NDArray[Any]) -> tuple[list[Any], Codes]:
    """The distinct values, sorted, and the place of each entry among them, −1 where it is missing.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)

    Returns
    -------
    names : list
    codes : ndarray of int of shape (n_rows,)

    Examples
    --------
    >>> names, codes = in_order(np.array(["b", 1, "a", "b"], dtype=object))
    >>> names, codes.tolist()
    ([1, 'a', 'b'], [2, 0, 1, 2])
    """
    names = list(distinct(values[~is_missing(values)], "the column", limit=_MOST_TASKS))
    return names, encode(values, names)


def task_ids(task: NDArray[Any] | None) -> NDArray[Any]:
    """The distinct tasks, sorted; one task where none was named."""
    return np.array([ONE_TASK]) if task is None else as_ids(list(distinct(task, "task", limit=_MOST_TASKS)))
