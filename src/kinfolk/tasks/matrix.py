"""Features of a table as one matrix of finite numbers, dense or sparse; with numpy alone.

A scipy sparse matrix is used by its own methods, so that a saved model needs no scipy to be asked about a dense table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.tasks.schema import is_number
from kinfolk.tasks.table import Table


def as_matrix(table: Table) -> Any:
    """All columns as floats (rows, features), a sparse table as a sparse matrix; what is no finite number is refused.

    Examples
    --------
    >>> from kinfolk.tasks.table import read_table
    >>> as_matrix(read_table({"a": [1, 2], "b": ["3", 0.5]})).tolist()
    [[1.0, 3.0], [2.0, 0.5]]
    """
    if table.sparse is not None:
        return _sparse_floats(table.sparse)
    values = np.empty((table.n_rows, len(table.columns)))
    for i, column in enumerate(table.columns):
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
        if not isinstance(values[row], str):
            raise TypeError(
                f"{label}, row {row}: {values[row]!r} is not a number; argument must be a string or a real number"
            ) from None
        raise ValueError(
            f"{label}, row {row}: {values[row]!r} is not a number; turn categories into columns of 0 and 1 first"
        ) from None
    wrong = ~np.isfinite(numbers)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(_not_finite(float(numbers[row]), row, label))
    return numbers


def _not_finite(value: float, row: int, label: str) -> str:
    what = "NaN" if np.isnan(value) else "infinity"
    return f"Input X contains {what} in {label}, row {row}: every feature must be a finite number"
