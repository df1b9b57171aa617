"""A user's table as plain numpy columns, from pandas, polars, pyarrow, a mapping or an array.

Only numpy is imported here: a saved model predicts without anything else installed. What a frame knows beyond its
values, the declared categories of a categorical column, is asked for at fit time, by :func:`declared_categories`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.tasks.labels import is_missing


class Table(NamedTuple):
    """Columns of equal length; a column is either of floats (NaN where missing) or of objects (None where missing).

    ``names`` is None for arrays, which have no names; ``frame`` says whether the input was one.
    """

    names: list[str] | None
    columns: list[NDArray[Any]]
    n_rows: int

    def label(self, index: int) -> str:
        """What to call a column when speaking to its owner."""
        return f"column {index}" if self.names is None else f"column {self.names[index]!r}"

    def position(self, column: str | int) -> int:
        """Position of a column given by name or index."""
        if isinstance(column, str) and self.names is not None and column in self.names:
            return self.names.index(column)
        if isinstance(column, int | np.integer) and -len(self.columns) <= column < len(self.columns):
            return int(column) % len(self.columns)
        known = "it has no column names" if self.names is None else f"its columns are {', '.join(self.names)}"
        raise ValueError(f"column {column!r} is not in the table: {known}")

    def without(self, index: int) -> Table:
        """The table less one column."""
        names = None if self.names is None else self.names[:index] + self.names[index + 1 :]
        return Table(names, self.columns[:index] + self.columns[index + 1 :], self.n_rows)

    def rows(self, keep: NDArray[np.bool_]) -> Table:
        """The table with some of its rows."""
        return Table(self.names, [column[keep] for column in self.columns], int(keep.sum()))


def column_names(X: Any) -> list[str] | None:
    """Names of the columns of a frame or mapping; None for anything without names."""
    if isinstance(X, Mapping):
        return [str(name) for name in X]
    for attribute in ("column_names", "columns"):  # pyarrow; pandas and polars
        names = getattr(X, attribute, None)
        if names is not None and hasattr(X, "__getitem__") and not isinstance(X, np.ndarray):
            listed = list(names)
            if all(isinstance(name, str) for name in listed):
                return listed
    return None


def read_table(X: Any) -> Table:
    """Read any supported table into plain columns.

    Examples
    --------
    >>> table = read_table({"colour": ["red", None], "size": [1.5, 2.0]})
    >>> table.names, table.columns[0].tolist(), table.columns[1].tolist()
    (['colour', 'size'], ['red', None], [1.5, 2.0])
    """
    if hasattr(X, "collect_schema") and hasattr(X, "collect") and not hasattr(X, "to_numpy"):
        raise ValueError("the table is lazy: call .collect() on it first")
    if hasattr(X, "toarray"):
        raise TypeError("a sparse table is not supported: pass a dense one, X.toarray()")
    names = column_names(X)
    if names is not None:
        raw = [np.asarray(X[name]) for name in names]
    else:
        array = np.asarray(X)
        if array.ndim == 0:
            raise ValueError(f"Expected 2D array, got scalar array instead: {X!r}")
        if array.ndim == 1:
            raise ValueError(
                "Expected 2D array, got 1D array instead. Reshape your data: X.reshape(-1, 1) for one feature"
            )
        if array.ndim > 2:
            raise ValueError(f"Found array with dim {array.ndim}, while dim <= 2 is required")
        raw = list(np.ascontiguousarray(array.T))
    table = Table(names, raw, len(raw[0]) if raw else 0)
    lengths = {len(column) for column in raw}
    if len(lengths) > 1:
        raise ValueError(f"the table's columns differ in length: {sorted(lengths)}")
    return table._replace(columns=[_plain(column, table.label(i)) for i, column in enumerate(raw)])


def _plain(column: NDArray[Any], label: str) -> NDArray[Any]:
    """Floats or integers where the values are numbers, else objects with None for missing."""
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
    present = column[~missing]
    if len(present) and all(type(value) in _NUMBERS or isinstance(value, np.number) for value in present):
        numbers = np.full(len(column), np.nan)
        numbers[~missing] = present.astype(np.float64)
        return numbers
    if not missing.any():
        return column
    objects = column.copy()
    objects[missing] = None
    return objects


_NUMBERS = (int, float)


def declared_categories(X: Any) -> dict[str, list[Any]]:
    """Categories that a frame's categorical columns declare, whether or not a row has them."""
    if column_names(X) is None or isinstance(X, Mapping):
        return {}
    import narwhals.stable.v2 as nw

    try:
        frame = nw.from_native(X, eager_only=True)
    except TypeError:
        return {}
    declared = {}
    for name, dtype in frame.schema.items():
        if dtype in (nw.Categorical, nw.Enum):
            # polars shares one pool of strings among all categorical columns: only those seen belong to this one.
            categories = frame[name].cat.get_categories().to_list()
            if dtype == nw.Categorical and nw.get_native_namespace(frame).__name__ == "polars":
                seen = set(frame[name].drop_nulls().unique().to_list())
                categories = [category for category in categories if category in seen]
            declared[name] = categories
    return declared
