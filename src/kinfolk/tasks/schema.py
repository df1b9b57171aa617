"""What a model remembers of a table: the categories, bin edges or units of every column, in the user's names.

From then on a schema turns tables into codes, −1 standing for a missing value or one never seen, and into numbers, NaN
where missing: the models leave both out of their products. Only numpy is imported here: a saved model answers without
anything else installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.tasks.table import Coded, Held, Table, check_finite

Codes = NDArray[np.int32]

# Whole numbers that span no more are looked up in a table.
MAX_SPAN = 1 << 20

FAMILIES = ("gaussian", "count")

# A standardised number is cut here, so that sums of squares stay finite whatever a later row holds.
_FARTHEST = 1e100

# Counts above this are not told apart by whole steps in floating point.
_LARGEST_COUNT = 2.0**53

# Pseudo-rows behind the prior of a Gaussian's mean (κ), half those behind its variance (a), and a prior variance b/a in
# standard units; pseudo-events behind the prior of a count's rate.
_MEAN_ROWS = 2.0

_VARIANCE_SHAPE = 2.0

_VARIANCE = 1.0

_RATE_EVENTS = 1.0


class Number(NamedTuple):
    """What a column is as a number: its family, and the centre and scale of its training rows.

    A "gaussian" column is standardised by them; of a "count" column the scale is the mean, and values stay as they are.
    """

    family: str
    centre: float
    scale: float

    def standardised(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Numbers in standard units, NaN where missing, or nothing that the family can hold."""
        if self.family == "count":
            return np.where(is_count(numbers), numbers, np.nan)
        half = 0.5 * numbers - 0.5 * self.centre
        with np.errstate(over="ignore"):
            return np.clip(half / self.scale * 2.0, -_FARTHEST, _FARTHEST)

    def raw(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Standardised values in the column's own units."""
        return numbers if self.family == "count" else self.centre + self.scale * numbers

    @property
    def prior(self) -> tuple[float, float, float, float]:
        """The prior of ``maths.conjugate`` in the column's units: weak, and centred where the training rows are."""
        if self.family == "count":
            return _RATE_EVENTS, _RATE_EVENTS / self.scale, 0.0, 0.0
        return _MEAN_ROWS, _VARIANCE_SHAPE, _VARIANCE_SHAPE * _VARIANCE, float(np.log(self.scale))


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
    def kind(self) -> str:
        """What the column was taken for: "category", "bin", or the family of a number."""
        if self.number is not None:
            return self.number.family
        return "bin" if self.categories is None else "category"

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

    def encode(self, values: Held, label: str | None = None) -> Codes:
        """Codes of a column's values; ``label`` is what to call it where its name is not.

        Values that came coded are looked up category by category, others one by one.
        """
        if self.categories is not None and isinstance(values, Coded):
            if values.categories == tuple(self.categories):
                return values.codes
            places = encode_alike(np.array(values.categories, dtype=object), self.categories)
            return np.append(places, np.int32(-1))[values.codes]
        plain = values.values if isinstance(values, Coded) else values
        if self.categories is not None:
            return encode_alike(plain, self.categories)
        assert self.edges is not None
        numbers = as_numbers(plain, label or f"column {self.name!r}")
        codes = np.searchsorted(self.edges, numbers, side="left").astype(np.int32)
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
        for i, column in enumerate(self.columns):
            if column.number is None:
                codes[:, place] = column.encode(table.columns[i], table.labels[i])
                place += 1
        return codes

    def encode_numbers(self, table: Table) -> NDArray[np.float64] | None:
        """The columns of numbers, standardised, in column-major order; None where there are none."""
        if not self.numbers:
            return None
        kept = [(column.number, i) for i, column in enumerate(self.columns) if column.number is not None]
        read = [number.standardised(as_numbers(table.values(i), table.labels[i])) for number, i in kept]
        return np.asfortranarray(np.column_stack(read))

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


def first_of_another_kind(values: NDArray[Any], known: Sequence[Any]) -> int | None:
    """The first of some values that is text where all that are known are numbers, or the other way round."""
    kind = _one_kind(known)
    if kind is None or (kind != "text" and values.dtype != object):
        return None
    strange = (int, float) if kind == "text" else str
    return next((i for i, value in enumerate(values.tolist()) if isinstance(value, strange) and value == value), None)


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


def in_short(value: Any) -> str:
    """A value as it stands in a sentence, which a long one would drown.

    Examples
    --------
    >>> in_short("much"), in_short("x" * 1_000)
    ("'much'", "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…xxxxxxxxxxxxxxxxxxxxxxxxxxxxx' (1,002 characters)")
    """
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:31]}…{text[-30:]} ({len(text):,} characters)"


def as_numbers(values: NDArray[Any], label: str) -> NDArray[np.float64]:
    """A column as numbers, NaN where it is missing; numbers that are written as text are read, other text is refused.

    Examples
    --------
    >>> as_numbers(np.array(["1.5", None, 2], dtype=object), "column 'size'").tolist()
    [1.5, nan, 2.0]
    """
    if values.dtype != object:
        return values.astype(np.float64, copy=False)
    for row, value in enumerate(values.tolist()):
        if value is not None and not is_number(value):
            raise ValueError(
                f"{label}, row {row}: {in_short(value)} is not a number, which is what the model was fitted to"
            )
    numbers = np.array([np.nan if value is None else float(value) for value in values.tolist()], dtype=np.float64)
    check_finite(numbers, label)
    return numbers


def as_matrix(table: Table) -> Any:
    """All columns as floats (rows, features), a sparse table as a sparse matrix; what is no finite number is refused.

    A sparse matrix is used by its own methods, so that a saved model needs no scipy to be asked about a dense table.

    Examples
    --------
    >>> from kinfolk.tasks.table import read_table
    >>> as_matrix(read_table({"a": [1, 2], "b": ["3", 0.5]})).tolist()
    [[1.0, 3.0], [2.0, 0.5]]
    """
    if table.sparse is not None:
        return _sparse_floats(table.sparse)
    values = np.empty((table.n_rows, len(table.columns)))
    for i, column in enumerate(table.all_values()):
        values[:, i] = _finite(column, table.labels[i])
    return values


def _sparse_floats(matrix: Any) -> Any:
    values = matrix.astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(values.data))
    if len(wrong):
        row = int(np.searchsorted(values.indptr, wrong[0], side="right")) - 1
        raise ValueError(_not_finite(values.data[wrong[0]], row, f"column {int(values.indices[wrong[0]])}"))
    return values


def _finite(column: NDArray[Any], label: str) -> NDArray[np.float64]:
    try:
        numbers = column.astype(np.float64)
    except (TypeError, ValueError):
        values = column.tolist()
        row = next(i for i, value in enumerate(values) if not is_number(value))
        said = f"{label}, row {row}: {in_short(values[row])} is not a number"
        if not isinstance(values[row], str):
            raise TypeError(f"{said}; argument must be a string or a real number") from None
        raise ValueError(f"{said}; turn categories into columns of 0 and 1 first") from None
    wrong = ~np.isfinite(numbers)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(_not_finite(float(numbers[row]), row, label))
    return numbers


def _not_finite(value: float, row: int, label: str) -> str:
    what = "NaN" if np.isnan(value) else "infinity"
    return f"Input X contains {what} in {label}, row {row}: every feature must be a finite number"


def is_number(value: Any) -> bool:
    """Whether a value is a number, or text that reads as one."""
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def is_count(numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each number is one that a count can be."""
    with np.errstate(invalid="ignore"):
        return np.asarray((numbers >= 0.0) & (numbers == np.floor(numbers)) & (numbers <= _LARGEST_COUNT))


def places_of(task: NDArray[Any], tasks: NDArray[Any]) -> NDArray[np.int64]:
    """Place of each row's task among known ones, the number of these for one never seen.

    A task that is written in another type is found all the same: "7" where tasks were numbers, 7 where they were text.

    Examples
    --------
    >>> places_of(np.array(["7", "8", "x"], dtype=object), np.array([7, 8])).tolist()
    [0, 1, 2]
    """
    known = tasks.tolist()
    place = encode_alike(task, known).astype(np.int64)
    return np.where(place < 0, len(known), place)


def rows_of_tasks(place: NDArray[np.int64], n_tasks: int) -> list[NDArray[np.int64]]:
    """Rows of every task, in their order, a new task's left out. O(rows log rows), whatever the number of tasks.

    Examples
    --------
    >>> [rows.tolist() for rows in rows_of_tasks(np.array([1, 0, 1, 3]), 3)]
    [[1], [0, 2], []]
    """
    order = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[order], np.arange(n_tasks + 1))
    return [order[start:end] for start, end in pairwise(ends)]
