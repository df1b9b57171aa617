"""A user's table, tasks and labels as plain numpy columns, from pandas, polars, pyarrow, a mapping or an array.

Only numpy is imported here: a saved model answers without anything else installed. What a frame knows beyond its
values, the declared categories of a categorical column, is asked for at fit time, by :func:`declared_categories`.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Backend = Literal["pandas", "polars", "pyarrow"]

_WHOLE_NUMBERS = (int, np.integer)
_NUMBERS = (*_WHOLE_NUMBERS, float, np.floating)
_TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


@dataclass(frozen=True)
class Coded:
    """A column of text as its frame holds it: every row's place among the categories, −1 where it is missing.

    Going through text value by value takes a hundred times longer.
    """

    codes: NDArray[np.int32]
    categories: tuple[str, ...]

    @cached_property
    def values(self) -> NDArray[Any]:
        """The text itself, None where it is missing; written out when somebody asks for it, and not before."""
        return np.array([*self.categories, None], dtype=object)[self.codes]

    def __getitem__(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> Coded:
        return Coded(self.codes[rows], self.categories)


Held = NDArray[Any] | Coded


class Table(NamedTuple):
    """Columns of equal length, each of numbers (NaN where missing), of objects (None where missing), or coded text.

    ``names`` is None for arrays, which have no names; ``labels`` are what to call columns when speaking to their owner;
    ``places`` are the columns' places among the ``width`` columns of the table that was given, which may have had a
    task column too. A scipy sparse matrix stays as it is, in ``sparse``, and then ``columns`` is empty.
    """

    names: list[str] | None
    labels: list[str]
    columns: Sequence[Held]
    places: list[int]
    width: int
    n_rows: int
    sparse: Any = None

    @property
    def n_features(self) -> int:
        """Number of columns, of a sparse matrix too."""
        return len(self.columns) if self.sparse is None else self.width

    def values(self, index: int) -> NDArray[Any]:
        """A column, text written out."""
        column = self.columns[index]
        return column.values if isinstance(column, Coded) else column

    def all_values(self) -> list[NDArray[Any]]:
        """All columns, text written out."""
        return [self.values(index) for index in range(len(self.columns))]

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
            labels=[self.labels[i] for i in indices],
            columns=[self.columns[i] for i in indices],
            places=[self.places[i] for i in indices],
        )

    def rows(self, keep: NDArray[np.bool_] | NDArray[np.int64]) -> Table:
        """The table with some of its rows: those that are marked, or those at places, in their order."""
        n_rows = int(keep.sum()) if keep.dtype == bool else len(keep)
        return self._replace(columns=[column[keep] for column in self.columns], n_rows=n_rows)


def plain_table(names: list[str] | None, columns: list[NDArray[Any]]) -> Table:
    """A table of columns that are plain already."""
    labels = _labels(names, len(columns))
    return Table(names, labels, columns, list(range(len(columns))), len(columns), len(columns[0]) if columns else 0)


def _labels(names: list[str] | None, width: int) -> list[str]:
    return [f"column {place}" if names is None else f"column {names[place]!r}" for place in range(width)]


def read_table(
    X: Any,
    *,
    flat: bool = False,
    sparse: bool = False,
    only: Collection[str] | None = None,
    times: str | int | None = None,
) -> Table:
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
    times : str or int, optional
        A column that may hold dates or times, and stays as it came.

    Returns
    -------
    Table

    Examples
    --------
    >>> table = read_table({"colour": ["red", None], "size": [1.5, 2.0]})
    >>> table.names, table.values(0).tolist(), table.values(1).tolist()
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
        check_finite(column, "column 0")
        return plain_table(None, [column])
    names = column_names(X)
    if names is not None and len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"column {twice!r} stands twice in the table: every column needs a name of its own")
    raw: list[Held]
    if isinstance(X, Mapping):
        raw = [as_column(X[name], f"column {name!r}") for name in X]
    elif (called := frame_names(X)) is not None:
        # In turn where a frame can, since names may be numbers.
        taken = [column for _, column in X.items()] if hasattr(X, "iloc") else [X[name] for name in called]
        raw = [
            as_column(column, f"column {name!r}") if (own := _coded(column)) is None else own
            for column, name in zip(taken, called, strict=True)
        ]
    else:
        raw = list(np.ascontiguousarray(_two_dimensional(X).T))
    lengths = {len(column.codes) if isinstance(column, Coded) else len(column) for column in raw}
    if len(lengths) > 1:
        raise ValueError(f"the table's columns differ in length: {sorted(lengths)}")
    labels = _labels(names, len(raw))
    for i, held in enumerate(raw):
        is_time = times is not None and times in (i, names and names[i])
        wanted = (only is None or names is None or names[i] in only) and not is_time
        if wanted and not isinstance(held, Coded):
            raw[i] = plain = plain_column(held, labels[i])
            check_finite(plain, labels[i])
    return Table(names, labels, raw, list(range(len(raw))), len(raw), max(lengths, default=0))


def is_flat(X: Any) -> bool:
    """Whether a column came without a table around it."""
    if isinstance(X, list | tuple):
        return not X or not isinstance(X[0], list | tuple | np.ndarray)
    # Of the type, since a lazy frame would have to find out its columns.
    return not hasattr(type(X), "columns") and not hasattr(X, "toarray") and len(getattr(X, "shape", ())) == 1


def column_names(X: Any) -> list[str] | None:
    """Names of the columns of a frame or mapping; None for anything without names."""
    if isinstance(X, Mapping):
        return [str(name) for name in X]
    names = frame_names(X)
    if names is None or not any(isinstance(name, str) for name in names):
        return None
    odd = next((name for name in names if not isinstance(name, str)), None)
    if odd is not None:
        raise TypeError(f"the name of column {odd!r} is not text, those of others are: give all of them text for names")
    return names


def frame_names(X: Any) -> list[Any] | None:
    """What a frame calls its columns, which may be numbers; None for anything that is not a frame."""
    for attribute in ("column_names", "columns"):  # pyarrow; pandas and polars
        names = getattr(X, attribute, None)
        if names is not None and hasattr(X, "__getitem__") and not isinstance(X, np.ndarray):
            return list(names)
    return None


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


def _sparse_table(X: Any) -> Table:
    """A scipy sparse matrix, by its own methods, so that nobody needs scipy who does not have such a matrix."""
    if np.issubdtype(X.dtype, np.complexfloating):
        raise ValueError("Complex data not supported: the sparse table holds complex numbers")
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got a sparse table with {X.ndim} dimension(s) instead")
    n_rows, width = X.shape
    return Table(None, [], [], list(range(width)), width, n_rows, X.tocsr())


def _coded(column: Any) -> Coded | None:
    """The codes of a pandas or polars column of text; None for any other."""
    kind = str(getattr(column, "dtype", ""))
    # Of the type: pandas looks for what a column lacks among the names of its rows, too.
    if hasattr(type(column), "to_physical"):  # polars
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
    elif kind == "category" and hasattr(type(column), "cat"):  # pandas
        categories = column.dtype.categories.tolist()
        codes = np.asarray(column.array.codes)
    elif kind in ("str", "string") and hasattr(type(column), "factorize"):
        codes, found = column.factorize()
        categories = found.tolist()
    else:
        return None
    if not all(isinstance(category, str) for category in categories):
        return None
    return Coded(codes.astype(np.int32), tuple(categories))


def _two_dimensional(X: Any) -> NDArray[Any]:
    """Rows of values as an array that keeps text and numbers apart."""
    if isinstance(X, list | tuple) and X and all(len(getattr(part, "shape", ())) == 2 for part in X):
        raise ValueError(
            f"X is a list of {len(X)} tables: put them under each other, pandas.concat(X) or numpy.vstack(X), and "
            "say by task= which of them each row is from"
        )
    if isinstance(X, list | tuple) and X and all(_is_row(row) for row in X):
        odd = next((i for i, row in enumerate(X) if len(row) != len(X[0])), None)
        if odd is not None:
            raise ValueError(f"row {odd} has {len(X[odd])} values where row 0 has {len(X[0])}")
    try:
        array = unmasked(X) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
    except ValueError:
        raise ValueError(f"the {len(X)} parts of X differ in shape: a table has rows of as many values each") from None
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


def _is_row(row: Any) -> bool:
    return isinstance(row, list | tuple) or len(getattr(row, "shape", ())) == 1


def declared_categories(X: Any) -> dict[int, list[Any]]:
    """Categories that a frame's categorical columns declare, whether or not a row has them, by the columns' places.

    polars shares one pool of text among all columns of its type Categorical: only its Enum declares anything.
    """
    called = None if isinstance(X, Mapping) else frame_names(X)
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
    if any(issubclass(each, list | np.ndarray) for each in kinds):
        raise ValueError(f"{label} holds lists or arrays: every cell must be one value")
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


def check_finite(values: NDArray[Any], label: str) -> None:
    """Refuse infinite numbers, with their place."""
    if values.dtype.kind == "f":
        infinite = np.isinf(values)
        if infinite.any():
            raise ValueError(f"{label}, row {int(np.argmax(infinite))}: infinity is not a value to learn from")


def n_rows(X: Any) -> int:
    """Count the rows of a frame, an array, a sparse matrix or a list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_tasks(
    table: Table, task: Any, task_column: str | int | None, lengths: NDArray[np.int64] | None = None
) -> tuple[Table, NDArray[Any] | None]:
    """The features of a table, and the task of each row, or of each sequence where ``lengths`` are given; else None.

    Examples
    --------
    >>> features, task = take_tasks(read_table({"who": ["ann", "bob"], "size": [1, 2]}), None, "who")
    >>> features.names, task.tolist()
    (['size'], ['ann', 'bob'])
    """
    if task_column is None:
        return table, None if task is None else check_tasks(task, "task", table.n_rows, lengths)
    if task is not None:
        raise ValueError(f"task= and task_column={task_column!r} were both given: one of them is needed")
    index = table.position(task_column)
    return table.without(index), check_tasks(table.values(index), f"task column {task_column!r}", table.n_rows)


def check_tasks(task: Any, label: str, n_of_rows: int, lengths: NDArray[np.int64] | None = None) -> NDArray[Any]:
    """One task for each row or sequence: none missing, and floats that are whole numbers as integers."""
    if isinstance(task, str):
        raise ValueError(f"task={task!r} is a name and not a task for each row: say task_column={task!r} for a column")
    tasks = plain_column(as_column(task, label), label)
    each, n = ("row", n_of_rows) if lengths is None else ("sequence", len(lengths))
    if len(tasks) != n:
        hint = (
            ": give one for each sequence, not for each row" if lengths is not None and len(tasks) == n_of_rows else ""
        )
        raise ValueError(f"{label} has {len(tasks)} entries for {n} {each}s{hint}")
    missing = is_missing(tasks)
    if missing.any():
        raise ValueError(no_task(label, int(np.argmax(missing)), each))
    check_finite(tasks, label)
    whole = tasks.dtype.kind == "f" and (tasks == np.floor(tasks)).all() and (np.abs(tasks) < 2**53).all()
    # So that 3.0 and 3 name the same task.
    return tasks.astype(np.int64) if whole else tasks


def no_task(label: str, place: int, each: str = "row") -> str:
    """What to say of a row or a sequence without a task."""
    return f"{label}, {each} {place}: a task is missing, every {each} needs one"
