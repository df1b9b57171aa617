"""A column of values, one for each row: which are missing, which are different, and their codes.

Only numpy is imported here: a saved model answers without anything else installed.
"""

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_CATEGORIES = 65_536
# Whole numbers that span no more are looked up in a table.
MAX_SPAN = 1 << 20

Codes = NDArray[np.int32]


def as_column(values: Any, what: str = "y") -> NDArray[Any]:
    """Give one value per row as a 1-d array, without letting numpy blur mixed types.

    Parameters
    ----------
    values : array-like of shape (n_rows,)
        A list, an array, a pandas or a polars Series.
    what : str
        How the error message calls it.

    Returns
    -------
    ndarray of shape (n_rows,)

    Examples
    --------
    >>> as_column(["yes", float("nan")])
    array(['yes', nan], dtype=object)
    """
    if hasattr(values, "to_pylist") and str(values.type).startswith("dictionary"):
        # pyarrow's own conversion reads a null as the last entry of the dictionary.
        values = values.to_pylist()
    if isinstance(values, np.ma.MaskedArray):
        values = unmasked(values)
    if isinstance(values, list | tuple):
        # numpy alone would turn ["yes", nan] into the two strings "yes" and "nan".
        return np.fromiter(values, dtype=object, count=len(values))
    column = np.asarray(values)
    if column.ndim != 1:
        raise ValueError(f"{what} must hold one value per row, but its shape is {column.shape}.")
    return column


def unmasked(values: np.ma.MaskedArray[Any, Any]) -> NDArray[Any]:
    """A masked array with None where it is masked."""
    if not np.ma.is_masked(values):
        return np.asarray(values.data)
    plain = values.data.astype(object)
    plain[np.ma.getmaskarray(values)] = None
    return plain


def is_missing(values: Any) -> NDArray[np.bool_]:
    """Tell which entries are missing: ``None``, NaN, NaT or ``pandas.NA``.

    Parameters
    ----------
    values : array-like of shape (n_rows,)
        Of any type, mixed types included.

    Returns
    -------
    ndarray of bool of shape (n_rows,)

    Examples
    --------
    >>> is_missing(["yes", None, "no", float("nan")])
    array([False,  True, False,  True])
    """
    column = as_column(values, "values")
    kind = column.dtype.kind
    missing: NDArray[np.bool_]
    if kind in "biuUS":
        missing = np.zeros(len(column), dtype=bool)
    elif kind in "fc":
        missing = np.isnan(column)
    elif kind in "mM":
        missing = np.isnat(column)
    else:
        missing = np.fromiter(map(_is_missing_entry, column.tolist()), dtype=bool, count=len(column))
    return missing


def _is_missing_entry(entry: Any) -> bool:
    if entry is None or type(entry).__name__ == "NAType":  # pandas.NA, which compares to nothing
        return True
    try:
        return not entry == entry  # noqa: SIM201 - NaN alone differs from itself
    except (TypeError, ValueError):  # a list or an array: odd, but there
        return False


def unlabelled_rows(y: Any, unlabelled: int | str | None = None) -> NDArray[np.bool_]:
    """Tell which rows carry no label.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels; a missing one is ``None``, NaN or ``pandas.NA``.
    unlabelled : int or str, optional
        A label that also means "none". It must be named: −1 is a label like any other until then.

    Returns
    -------
    ndarray of bool of shape (n_rows,)

    Examples
    --------
    >>> unlabelled_rows([1, -1, None])
    array([False, False,  True])
    >>> unlabelled_rows([1, -1, None], unlabelled=-1)
    array([False,  True,  True])
    """
    labels = as_column(y)
    without = is_missing(labels)
    if unlabelled is not None:
        present = ~without
        without[present] = labels[present] == unlabelled
    return without


def n_rows(X: Any) -> int:
    """Count the rows of a frame, an array, a sparse matrix or a list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def plain_column(column: NDArray[Any], label: str) -> NDArray[Any]:
    """Numbers where all values are numbers, else objects with None for missing."""
    kind = column.dtype.kind
    if kind in "iuf":
        return column
    if kind == "c":
        raise ValueError(f"Complex data not supported: {label} holds complex numbers")
    if kind in "mM":
        raise ValueError(f"{label} holds dates or times: turn it into numbers or categories first")
    if kind in "bUS":
        return column.astype(object)
    missing = is_missing(column)
    objects = column.astype(object)
    present = objects[~missing]
    kinds = {type(value) for value in present.tolist()}
    if any(issubclass(each, _TIMES) for each in kinds):
        raise ValueError(f"{label} holds dates or times: turn it into numbers or categories first")
    if kinds and all(issubclass(each, _NUMBERS) and each is not bool for each in kinds):
        whole = all(issubclass(each, _WHOLE_NUMBERS) for each in kinds)
        numbers = np.full(len(column), np.nan)
        try:
            if whole and not missing.any():
                return objects.astype(np.int64)
            numbers[~missing] = present.astype(np.float64)
        except OverflowError:  # whole numbers beyond 64 bits are names of things
            return objects
        return numbers
    if missing.any():
        objects = objects.copy()
        objects[missing] = None
    return objects


_WHOLE_NUMBERS = (int, np.integer)
_NUMBERS = (*_WHOLE_NUMBERS, float, np.floating)
_TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


def check_finite(values: NDArray[Any], label: str) -> None:
    """Refuse infinite numbers, with their place."""
    if values.dtype.kind == "f":
        infinite = np.isinf(values)
        if infinite.any():
            raise ValueError(f"{label}, row {int(np.argmax(infinite))}: infinity is not a value to learn from")


def refuse_wrong_weights(weights: NDArray[np.float64], label: str, first_row: int = 0) -> None:
    """Refuse weights that are missing, infinite or negative, with their place."""
    wrong = ~np.isfinite(weights) | (weights < 0)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{label}, row {first_row + row}: {weights[row]} is not a weight, it must be finite and not negative"
        )


def encode(values: NDArray[Any], categories: Sequence[Any]) -> Codes:
    """Position of every value among the categories; −1 where it is missing or not one of them.

    Examples
    --------
    >>> encode(np.array(["b", None, "z"], dtype=object), ("a", "b")).tolist()
    [1, -1, -1]
    """
    if not len(categories):
        return np.full(len(values), -1, dtype=np.int32)
    if values.dtype.kind in "iuf" and all(isinstance(c, int | float) for c in categories):
        known = np.asarray(categories)
        return _encode_numbers(values, known.astype(np.int64) if known.dtype == bool else known)
    place = {category: code for code, category in enumerate(categories)}
    try:
        return np.array([place.get(value, -1) for value in values.tolist()], dtype=np.int32)
    except TypeError:  # an unhashable value
        return np.array([place.get(value, -1) if _hashable(value) else -1 for value in values], dtype=np.int32)


def encode_alike(values: NDArray[Any], categories: Sequence[Any]) -> Codes:
    """Positions as by :func:`encode`; a value of another type than all categories is known by how it is written.

    Examples
    --------
    >>> encode_alike(np.array([2, 3]), ("1", "2")).tolist()
    [1, -1]
    >>> encode_alike(np.array(["2", "two"], dtype=object), (1, 2)).tolist()
    [1, -1]
    """
    codes = encode(values, categories)
    lost = codes < 0
    kind = _one_kind(categories) if lost.any() else None
    if kind is None:
        return codes
    place = {category: code for code, category in enumerate(categories)}
    strange = [value if _hashable(value) else None for value in values[lost].tolist()]
    found = {value: place.get(_written_as(kind, value), -1) for value in set(strange)}
    codes[lost] = [found[value] for value in strange]
    return codes


def _one_kind(categories: Sequence[Any]) -> str | None:
    """What all categories are: text, truth values or numbers; None where they differ."""
    for kind, types in (("text", str), ("truth", bool), ("number", int | float)):
        if categories and all(isinstance(category, types) for category in categories):
            return kind
    return None


def _written_as(kind: str, value: Any) -> Any:
    """A value of another type as one of a kind; None where it cannot be written so, or is of that kind already."""
    if kind == "text" and isinstance(value, int | float):
        if isinstance(value, bool):
            return str(value).lower()
        return str(int(value)) if value == np.floor(value) and abs(value) < 2**53 else str(value)
    if kind == "truth" and isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    if kind == "number" and isinstance(value, str) and value.strip().lstrip("+-").replace(".", "", 1).isdecimal():
        return float(value)
    return None


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _encode_numbers(values: NDArray[Any], known: NDArray[Any]) -> Codes:
    order = np.argsort(known, kind="stable")
    ordered = known[order]
    whole = values.dtype.kind in "iu" and ordered.dtype.kind in "iu"
    span = int(ordered[-1]) - int(ordered[0]) + 1 if whole else MAX_SPAN + 1
    if span <= MAX_SPAN:
        # A table of all integers in range is several times faster than a binary search.
        low, high = ordered[0], ordered[-1]
        table = np.full(span, -1, dtype=np.int32)
        table[(ordered - low).astype(np.int64)] = order
        inside = (values >= low) & (values <= high)
        codes = table[(np.where(inside, values, low) - low).astype(np.int64)]
        return np.where(inside, codes, np.int32(-1))
    place = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return np.where(ordered[place] == values, order[place], -1).astype(np.int32)


def distinct(values: NDArray[Any], label: str, limit: int = MAX_CATEGORIES) -> tuple[Any, ...]:
    """The distinct values of a column, sorted, missing ones left out; an error where there are too many."""
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
        found = list(seen)
        if len(found) <= limit + 1:
            missing = is_missing(found)
            found = sort_values([value for value, gone in zip(found, missing, strict=True) if not gone])
    return few_enough(found, label, limit)


def few_enough(found: list[Any], label: str, limit: int = MAX_CATEGORIES) -> tuple[Any, ...]:
    """Categories of a column, unless they are too many."""
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
    >>> names, codes = in_order(as_column(["b", 1, "a", "b"]))
    >>> names, codes.tolist()
    ([1, 'a', 'b'], [2, 0, 1, 2])
    """
    names = list(distinct(values, "the column", limit=1 << 30))
    return names, encode(values, names)
