"""One long sequence cut into pieces, each a task or a sequence of one, for models of sequences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.tasks.table import as_column, frame_names, is_missing, read_table


class Cut(NamedTuple):
    """A long sequence in pieces: its rows as they came, the length of each piece, and its task."""

    X: Any
    lengths: NDArray[np.int64]
    task: NDArray[Any]


def cut_sequence(X: Any, length: int | None = None, *, by: Any = None) -> Cut:
    """Cut one long sequence into pieces, each of which is a task.

    A sequence that changes over time, such as a day's recording of a sensor, becomes many related tasks: pieces that
    are alike share their hidden states, others do not. No piece knows how the one before it ended.

    Parameters
    ----------
    X : frame, or array-like of shape (n_steps,) or (n_steps, n_columns)
        The steps of the sequence, in their order.
    length : int, optional
        How many steps each task has, the last one as many as are left; tasks are numbered from 0.
    by : str, int or array-like of shape (n_steps,), optional
        Instead of a length: a column of ``X``, which is then left out of it, or a value for each step. A task is all
        steps with one value, such as a weekday; where they do not follow each other, each run of them is a sequence.

    Returns
    -------
    Cut
        ``X``, ``lengths`` and ``task``, as ``fit`` takes them.

    See Also
    --------
    kinfolk.NestedIHMM.fit : Learn from the pieces.

    Examples
    --------
    >>> import kinfolk
    >>> cut = kinfolk.cut_sequence([3, 1, 4, 1, 5, 9, 2, 6], length=3)
    >>> cut.lengths.tolist(), cut.task.tolist()
    ([3, 3, 2], [0, 1, 2])
    >>> tones = {"tone": list("abcabd"), "day": ["mon", "mon", "tue", "mon", "mon", "mon"]}
    >>> cut = kinfolk.cut_sequence(tones, by="day")
    >>> list(cut.X), cut.lengths.tolist(), cut.task.tolist()
    (['tone'], [2, 1, 3], ['mon', 'tue', 'mon'])

    Learn from them by ``model.fit(cut.X, cut.lengths, task=cut.task)``.
    """
    if (length is None) == (by is None):
        raise ValueError("give length=, how many steps a task has, or by=, a column or a value for each step")
    n_steps = read_table(X, flat=True).n_rows
    if length is not None:
        if isinstance(length, bool) or not isinstance(length, int | np.integer) or length < 1:
            raise ValueError(f"length={length!r}: a whole number of at least 1 is needed")
        starts = np.arange(0, n_steps, length)
        return Cut(X, np.diff(np.append(starts, n_steps)), np.arange(len(starts)))
    rest, values = _taken_out(X, by) if isinstance(by, str | int) else (X, as_column(by, "by"))
    if len(values) != n_steps:
        raise ValueError(f"by has {len(values)} entries for {n_steps} steps: one for each is needed")
    missing = is_missing(values)
    if missing.any():
        raise ValueError(f"by, row {int(np.argmax(missing))}: a value is missing, which tells the task of the step")
    starts = np.append(0, np.flatnonzero(values[1:] != values[:-1]) + 1) if n_steps else np.zeros(0, dtype=np.int64)
    return Cut(rest, np.diff(np.append(starts, n_steps)), values[starts])


def _taken_out(X: Any, column: str | int) -> tuple[Any, NDArray[Any]]:
    """A table without a column, and the column."""
    table = read_table(X)
    place = table.position(column)
    if isinstance(X, Mapping):
        return {name: values for name, values in X.items() if name != column}, table.values(place)
    if frame_names(X) is not None:
        import narwhals.stable.v2 as nw

        assert table.names is not None
        return nw.from_native(X, eager_only=True).drop(table.names[place]).to_native(), table.values(place)
    return np.delete(np.asarray(X), place, axis=1), table.values(place)
