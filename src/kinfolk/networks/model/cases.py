"""The cases (rows) of all tasks, laid out for counting: a byte for each code, and a bit for each row and value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled

MOST_STATES = 255
WORD = 64


class Cases(NamedTuple):
    """Coded rows of every task, end to end in flat arrays so that one kernel can work on all tasks.

    Task t's column of variable v is ``codes[code_start[t] + v · n_rows[t] :][: n_rows[t]]``; its rows with value x are
    the set bits of ``bits[bit_start[t, v] + x · n_words[t] :][: n_words[t]]``. ``weights`` is empty where every row
    counts once. ``strata``, where not empty, numbers the part that each row belongs to: all families are then counted
    part by part, as if the part were a parent of every variable.
    """

    cards: NDArray[np.int64]
    present: NDArray[np.bool_]
    n_rows: NDArray[np.int64]
    codes: NDArray[np.uint8]
    code_start: NDArray[np.int64]
    bits: NDArray[np.uint64]
    bit_start: NDArray[np.int64]
    n_words: NDArray[np.int64]
    weights: NDArray[np.float64]
    weight_start: NDArray[np.int64]
    strata: NDArray[np.int32]
    n_strata: int

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.n_rows)

    @property
    def n_variables(self) -> int:
        """Number of variables, over all tasks."""
        return len(self.cards)

    @property
    def total_weight(self) -> NDArray[np.float64]:
        """Number of rows of every task, weights counted."""
        if not len(self.weights):
            return self.n_rows.astype(np.float64)
        return np.add.reduceat(self.weights, self.weight_start)


def lay_out(
    codes: Sequence[NDArray[np.integer[Any]]],
    cards: NDArray[np.int64],
    present: NDArray[np.bool_] | None = None,
    weights: Sequence[NDArray[np.float64]] | None = None,
    strata: Sequence[NDArray[np.int32]] | None = None,
) -> Cases:
    """Lay out complete coded tables, one for each task, each with a column for every variable.

    Parameters
    ----------
    codes : sequence of int arrays of shape (n_rows, n_variables)
        Codes 0, 1, …; the column of a variable that the task lacks is not looked at.
    cards : int array of shape (n_variables,)
        Number of states of each variable, at most 255.
    present : bool array of shape (n_tasks, n_variables), optional
        Which variables each task has; all by default.
    weights : sequence of float arrays, optional
        How much each row counts; once by default.
    strata : sequence of int arrays, optional
        Part 0, 1, … that each row belongs to; one part by default.
    """
    n_tasks, n = len(codes), len(cards)
    if present is None:
        present = np.ones((n_tasks, n), dtype=bool)
    n_rows = np.array([len(table) for table in codes], dtype=np.int64)
    n_words = -(-n_rows // WORD)
    flat = [np.where(here, table, 0).astype(np.uint8).T.ravel() for table, here in zip(codes, present, strict=True)]
    value_start = np.concatenate([[0], np.cumsum(cards)])
    task_bits = n_words * value_start[-1]
    bit_start = (np.cumsum(task_bits) - task_bits)[:, None] + n_words[:, None] * value_start[None, :-1]
    cases = Cases(
        cards=cards.astype(np.int64),
        present=present,
        n_rows=n_rows,
        codes=np.concatenate(flat),
        code_start=np.cumsum(n_rows * n) - n_rows * n,
        bits=np.zeros(int(task_bits.sum()), dtype=np.uint64),
        bit_start=bit_start,
        n_words=n_words,
        weights=np.zeros(0) if weights is None else np.concatenate(weights).astype(np.float64),
        weight_start=np.cumsum(n_rows) - n_rows,
        strata=np.zeros(0, dtype=np.int32) if strata is None else np.concatenate(strata).astype(np.int32),
        n_strata=1 if strata is None else 1 + max(int(own.max()) for own in strata),
    )
    _set_bits(cases)
    return cases


@compiled
def _set_bits(cases: Cases) -> None:
    for t in range(len(cases.n_rows)):
        n_rows, n_words = cases.n_rows[t], cases.n_words[t]
        for v in range(len(cases.cards)):
            codes = cases.codes[cases.code_start[t] + v * n_rows :]
            bits = cases.bits[cases.bit_start[t, v] :]
            for row in range(n_rows):
                bits[codes[row] * n_words + (row >> 6)] |= np.uint64(1) << np.uint64(row & 63)
