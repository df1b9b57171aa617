"""Lengths of the sequences that lie end to end in a table, as hmmlearn takes them; with numpy alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.tasks.values import as_column, plain_column


def check_lengths(lengths: Any, n_rows: int) -> NDArray[np.int64]:
    """Whole numbers from 1 that add up to the number of rows; one sequence of all rows if they are not given.

    Examples
    --------
    >>> check_lengths([3, 1], 4).tolist(), check_lengths(None, 4).tolist(), check_lengths(None, 0).tolist()
    ([3, 1], [4], [])
    """
    if lengths is None:
        return np.array([n_rows] if n_rows else [], dtype=np.int64)
    given = as_column(lengths, "lengths")
    numbers = plain_column(given, "lengths") if len(given) else np.zeros(0)
    if numbers.dtype.kind not in "iuf" or not np.isfinite(numbers).all() or (numbers != np.floor(numbers)).any():
        raise ValueError(f"lengths={lengths!r}: a whole number for each sequence is needed")
    too_short = numbers < 1
    if too_short.any():
        which = int(np.argmax(too_short))
        raise ValueError(f"sequence {which} has length {int(numbers[which])}: every sequence needs at least one step")
    total = int(numbers.sum())
    if total != n_rows:
        raise ValueError(f"lengths add up to {total} steps, but X has {n_rows} rows: they must be the same")
    return numbers.astype(np.int64)
