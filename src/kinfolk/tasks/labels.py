"""Values that rows carry, one each: missing ones, labels or none, and their codes in sorted order."""

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


def n_rows(X: Any) -> int:
    """Count the rows of a frame, an array, a sparse matrix or a list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


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
