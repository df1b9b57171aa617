"""What each row carries besides its features: a label, or none, and the task it belongs to."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


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
    if isinstance(values, list | tuple):
        # numpy alone would turn ["yes", nan] into the two strings "yes" and "nan".
        return np.fromiter(values, dtype=object, count=len(values))
    column = np.asarray(values)
    if column.ndim != 1:
        raise ValueError(f"{what} must hold one value per row, but its shape is {column.shape}.")
    return column


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


def tasks_of_rows(X: Any, task: Any = None, groups: Any = None, task_column: int | str | None = None) -> NDArray[Any]:
    """Find the task of each row, which must be given in exactly one of three ways.

    Parameters
    ----------
    X : table
        Looked into only for `task_column`: a pandas or polars frame, or a 2-d array.
    task, groups : array-like of shape (n_rows,), optional
        The task of each row; `groups` is scikit-learn's word for it.
    task_column : str or int, optional
        Name or position of the column of `X` that holds the task. A name wins over a position.

    Returns
    -------
    ndarray of shape (n_rows,)

    Examples
    --------
    >>> tasks_of_rows([["ann", 3], ["bob", 4]], task_column=0)
    array(['ann', 'bob'], dtype=object)
    """
    ways = {"task=": task, "groups=": groups, "task_column=": task_column}
    given = [way for way, value in ways.items() if value is not None]
    if len(given) != 1:
        raise ValueError(
            f"The task of each row must be given once, as task=, groups= or task_column=, "
            f"but {' and '.join(given) or 'none of them'} came."
        )
    what = given[0].removesuffix("=")
    tasks = as_column(_column(X, task_column) if task_column is not None else ways[given[0]], what)
    without = is_missing(tasks)
    if without.any():
        raise ValueError(f"Every row needs a task, but {what} has none for row {int(without.argmax())}.")
    if X is not None and n_rows(X) != len(tasks):
        raise ValueError(f"{what} must name a task for each of the {n_rows(X)} rows of X, not {len(tasks)}.")
    return tasks


def n_rows(X: Any) -> int:
    """Count the rows of a frame, an array, a sparse matrix or a list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _column(X: Any, name: int | str) -> Any:
    columns = getattr(X, "columns", None)
    if columns is None:
        table = X if hasattr(X, "shape") else np.array(X, dtype=object)
        if not isinstance(table, np.ndarray) or table.ndim != 2:
            raise ValueError(f"task_column={name!r} needs X to be a data frame or a 2-d array.")
        if isinstance(name, str):
            raise ValueError(f"task_column={name!r} is a name, but X is an array without column names.")
        names = list(range(table.shape[1]))
    else:
        names = list(columns)
    position = names.index(name) if name in names else name
    if isinstance(position, str) or not -len(names) <= position < len(names):
        raise ValueError(f"task_column={name!r} is no column of X, whose columns are {names}.")
    if columns is None:
        return table[:, position]
    return X.iloc[:, position] if hasattr(X, "iloc") else X[:, position]


def in_order(values: NDArray[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    """Sort the distinct values and code each entry by its place among them.

    Values of types that do not compare, such as ``"a"`` and ``1``, are sorted by type first, so that the
    order depends on the values alone and never on a hash.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)

    Returns
    -------
    names : list
        The distinct values.
    codes : ndarray of int of shape (n_rows,)

    Examples
    --------
    >>> in_order(as_column(["b", 1, "a", "b"]))
    ([1, 'a', 'b'], array([2, 0, 1, 2]))
    """
    try:
        names, codes = np.unique(values, return_inverse=True)
        return names.tolist(), codes
    except TypeError:
        distinct = sorted(dict.fromkeys(values.tolist()), key=lambda v: (type(v).__name__, repr(v)))
        place = {name: code for code, name in enumerate(distinct)}
        return distinct, np.array([place[value] for value in values.tolist()], dtype=np.intp)
