"""A user's table as plain numpy columns, from pandas, polars, pyarrow, a mapping or an array.

Only numpy is imported here: a saved model predicts without anything else installed. What a frame knows beyond its
values, the declared categories of a categorical column, is asked for at fit time, by :func:`declared_categories`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.tasks.values import as_column, plain_column, unmasked

Backend = Literal["pandas", "polars", "pyarrow"]


class Coded(NamedTuple):
    """A column of text as its frame holds it: every row's place among the categories, −1 where it is missing."""

    codes: NDArray[np.int32]
    categories: tuple[str, ...]

    def values(self) -> NDArray[Any]:
        """The text itself, None where it is missing."""
        return np.array([*self.categories, None], dtype=object)[self.codes]

    def used(self) -> list[str]:
        """Categories that some row has."""
        seen = np.zeros(len(self.categories) + 1, dtype=bool)
        seen[self.codes] = True
        return [category for category, here in zip(self.categories, seen, strict=False) if here]


class Table(NamedTuple):
    """Columns of equal length, each of numbers (NaN where missing) or of objects (None where missing).

    ``names`` is None for arrays, which have no names; ``places`` are the columns' places among the ``width`` columns of
    the table that was given, which may have had a task column too. ``coded`` has, for columns of text that their frame
    keeps as codes, these codes as well: going through text value by value takes a hundred times longer. A scipy sparse
    matrix stays as it is, in ``sparse``, and then ``columns`` is empty.
    """

    names: list[str] | None
    columns: list[NDArray[Any]]
    places: list[int]
    width: int
    n_rows: int
    coded: tuple[Coded | None, ...] = ()
    sparse: Any = None

    @property
    def n_features(self) -> int:
        """Number of columns, of a sparse matrix too."""
        return len(self.columns) if self.sparse is None else self.width

    def label(self, index: int) -> str:
        """What to call a column when speaking to its owner."""
        return f"column {self.places[index]}" if self.names is None else f"column {self.names[index]!r}"

    def position(self, column: str | int) -> int:
        """Position of a column given by its name, or by its place in the table that was given."""
        if isinstance(column, str) and self.names is not None and column in self.names:
            return self.names.index(column)
        if isinstance(column, int | np.integer) and not isinstance(column, bool):
            place = int(column) if column >= 0 else int(column) + self.width
            if place in self.places:
                return self.places.index(place)
        raise ValueError(no_such_column(column, self.names))

    def without(self, index: int) -> Table:
        """The table less one column."""
        return self.take([i for i in range(len(self.columns)) if i != index])

    def take(self, indices: Sequence[int]) -> Table:
        """Some of the columns, in a given order."""
        return self._replace(
            names=None if self.names is None else [self.names[i] for i in indices],
            columns=[self.columns[i] for i in indices],
            places=[self.places[i] for i in indices],
            coded=tuple(self.codes_of(i) for i in indices),
        )

    def rows(self, keep: NDArray[np.bool_]) -> Table:
        """The table with some of its rows."""
        coded = tuple(None if own is None else own._replace(codes=own.codes[keep]) for own in self.coded)
        columns = [column[keep] for column in self.columns]
        return self._replace(columns=columns, n_rows=int(keep.sum()), coded=coded)

    def codes_of(self, index: int) -> Coded | None:
        """The codes of a column, where it came with some."""
        return self.coded[index] if index < len(self.coded) else None


def no_such_column(column: Any, names: Collection[str] | None, where: str = "the table") -> str:
    """The sentence about a column that a table does not have.

    Examples
    --------
    >>> no_such_column("lable", ["task", "label"])
    "column 'lable' is not in the table (did you mean 'label'?): its columns are task, label"
    """
    if names is None:
        return f"column {column!r} is not in {where}: it has no column names"
    alike = get_close_matches(str(column), names, n=1)
    hint = f" (did you mean {alike[0]!r}?)" if alike else ""
    return f"column {column!r} is not in {where}{hint}: its columns are {', '.join(names)}"


def column_names(X: Any) -> list[str] | None:
    """Names of the columns of a frame or mapping; None for anything without names."""
    if isinstance(X, Mapping):
        return [str(name) for name in X]
    names = _frame_names(X)
    if names is None or not any(isinstance(name, str) for name in names):
        return None
    odd = next((name for name in names if not isinstance(name, str)), None)
    if odd is not None:
        raise TypeError(f"the name of column {odd!r} is not text, those of others are: give all of them text for names")
    return names


def _frame_names(X: Any) -> list[Any] | None:
    """What a frame calls its columns, which may be numbers; None for anything that is not a frame."""
    for attribute in ("column_names", "columns"):  # pyarrow; pandas and polars
        names = getattr(X, attribute, None)
        if names is not None and hasattr(X, "__getitem__") and not isinstance(X, np.ndarray):
            return list(names)
    return None


def read_table(X: Any, *, flat: bool = False, sparse: bool = False, only: Collection[str] | None = None) -> Table:
    """Read any supported table into plain columns.

    Parameters
    ----------
    X : frame of pandas, polars or pyarrow, 2-d array, list of rows, mapping from names to columns, or sparse matrix
    flat : bool, default=False
        Whether a single column may come without a table around it.
    sparse : bool, default=False
        Whether a sparse matrix is taken, as it is.
    only : collection of str, optional
        Names of columns to look into, where columns have names; others stay as they came, whatever they hold.

    Returns
    -------
    Table

    Examples
    --------
    >>> table = read_table({"colour": ["red", None], "size": [1.5, 2.0]})
    >>> table.names, table.columns[0].tolist(), table.columns[1].tolist()
    (['colour', 'size'], ['red', None], [1.5, 2.0])
    """
    if hasattr(X, "collect_schema") and hasattr(X, "collect") and not hasattr(X, "to_numpy"):
        raise ValueError("the table is lazy: call .collect() on it first")
    if hasattr(X, "toarray"):
        if not sparse:
            raise TypeError("a sparse table is not supported: pass a dense one, X.toarray()")
        return _sparse_table(X)
    if flat and is_flat(X):
        column = plain_column(as_column(X, "X"), "X")
        return Table(None, [column], [0], 1, len(column))
    names = column_names(X)
    if names is not None and len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"column {twice!r} stands twice in the table: every column needs a name of its own")
    coded: list[Coded | None] = []
    if isinstance(X, Mapping):
        raw = [as_column(X[name], f"column {name!r}") for name in X]
    elif (called := _frame_names(X)) is not None:
        # In turn where a frame can, since names may be numbers.
        taken = [column for _, column in X.items()] if hasattr(X, "iloc") else [X[name] for name in called]
        coded = [_coded(column) for column in taken]
        raw = [
            as_column(column, f"column {name!r}") if own is None else own.values()
            for column, name, own in zip(taken, called, coded, strict=True)
        ]
    else:
        raw = list(np.ascontiguousarray(_two_dimensional(X).T))
    table = Table(names, raw, list(range(len(raw))), len(raw), len(raw[0]) if raw else 0, tuple(coded))
    lengths = {len(column) for column in raw}
    if len(lengths) > 1:
        raise ValueError(f"the table's columns differ in length: {sorted(lengths)}")
    seen = [only is None or names is None or names[i] in only for i in range(len(raw))]
    plain = [
        plain_column(column, table.label(i)) if seen[i] and table.codes_of(i) is None else column
        for i, column in enumerate(raw)
    ]
    return table._replace(columns=plain)


def is_flat(X: Any) -> bool:
    """Whether a column came without a table around it."""
    if isinstance(X, list | tuple):
        return not X or not isinstance(X[0], list | tuple | np.ndarray)
    # Of the type, since a lazy frame would have to find out its columns.
    return not hasattr(type(X), "columns") and not hasattr(X, "toarray") and len(getattr(X, "shape", ())) == 1


def _sparse_table(X: Any) -> Table:
    """A scipy sparse matrix, by its own methods, so that nobody needs scipy who does not have such a matrix."""
    if np.issubdtype(X.dtype, np.complexfloating):
        raise ValueError("Complex data not supported: the sparse table holds complex numbers")
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got a sparse table with {X.ndim} dimension(s) instead")
    n_rows, width = X.shape
    return Table(None, [], list(range(width)), width, n_rows, sparse=X.tocsr())


def _coded(column: Any) -> Coded | None:
    """The codes of a pandas or polars column of text; None for any other."""
    kind = str(getattr(column, "dtype", ""))
    if hasattr(column, "to_physical"):  # polars
        if kind.startswith(("String", "Categorical")):
            import polars as pl

            text = column.cast(pl.String)
            column = text.cast(pl.Enum(text.drop_nulls().unique().sort()))
        elif not kind.startswith("Enum"):
            return None
        categories = column.dtype.categories.to_list()
        codes = column.to_physical().to_numpy()
        if codes.dtype.kind == "f":  # with gaps
            codes = np.where(np.isnan(codes), -1, codes)
    elif kind == "category" and hasattr(column, "cat"):  # pandas
        categories = column.dtype.categories.tolist()
        codes = np.asarray(column.array.codes)
    elif kind in ("str", "string") and hasattr(column, "factorize"):
        codes, found = column.factorize()
        categories = found.tolist()
    else:
        return None
    if not all(isinstance(category, str) for category in categories):
        return None
    return Coded(codes.astype(np.int32), tuple(categories))


def _two_dimensional(X: Any) -> NDArray[Any]:
    """Rows of values as an array that keeps text and numbers apart."""
    if isinstance(X, list | tuple) and X and all(isinstance(row, list | tuple) for row in X):
        odd = next((i for i, row in enumerate(X) if len(row) != len(X[0])), None)
        if odd is not None:
            raise ValueError(f"row {odd} has {len(X[odd])} values where row 0 has {len(X[0])}")
    array = unmasked(X) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
    if array.dtype.kind in "US" and not isinstance(X, np.ndarray):
        # numpy alone would turn ["yes", nan] into the two strings "yes" and "nan".
        array = np.array(X, dtype=object)
    if array.ndim == 0:
        raise ValueError(f"Expected 2D array, got scalar array instead: {X!r}")
    if array.ndim == 1:
        raise ValueError("Expected 2D array, got 1D array instead. Reshape your data: X.reshape(-1, 1) for one feature")
    if array.ndim > 2:
        raise ValueError(f"Found array with dim {array.ndim}, while dim <= 2 is required")
    return array


def declared_categories(X: Any) -> dict[int, list[Any]]:
    """Categories that a frame's categorical columns declare, whether or not a row has them, by the columns' places.

    polars shares one pool of text among all columns of its type Categorical: only its Enum declares anything.
    """
    called = None if isinstance(X, Mapping) else _frame_names(X)
    if called is None:
        return {}
    if hasattr(X, "iloc"):
        categories = [getattr(dtype, "categories", None) for dtype in X.dtypes]
    elif hasattr(X, "schema") and hasattr(X, "get_column"):
        categories = [getattr(dtype, "categories", None) for dtype in X.schema.values()]
        categories = [found if hasattr(found, "to_list") else None for found in categories]
    else:
        return {}
    return {
        i: found.to_list() if hasattr(found, "to_list") else list(found)
        for i, found in enumerate(categories)
        if found is not None
    }


def backend_of(X: Any) -> Backend:
    """Name of the library that a table came from; polars for arrays, which have no tables of their own."""
    library = type(X).__module__.partition(".")[0]
    return library if library in ("pandas", "pyarrow") else "polars"  # type: ignore[return-value]
