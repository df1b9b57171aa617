"""The rows of all tasks as codes, and laid out for counting: a byte for each code, a bit for each row and value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.model.network import Codes

MOST_STATES = 255
WORD = 64


class Data(NamedTuple):
    """Coded rows of every task over the variables of all of them; −1 stands for a missing value.

    ``present[t, v]`` tells whether task t has variable v at all; ``states`` are what the codes of each variable stand
    for, ``cards`` how many they are; ``complete`` tells that no value of what is present is missing. Rows that complete
    others have ``weights``; without, every row counts once.
    """

    variables: tuple[str, ...]
    states: tuple[tuple[Any, ...], ...]
    cards: NDArray[np.int64]
    codes: tuple[Codes, ...]
    present: NDArray[np.bool_]
    complete: bool
    weights: tuple[NDArray[np.float64], ...] | None = None


class Cases(NamedTuple):
    """Coded rows of every task, end to end in flat arrays so that one kernel can work on all tasks.

    Task t's column of variable v is ``codes[code_start[t] + v · n_rows[t] :][: n_rows[t]]``; its rows with value x are
    the set bits of ``bits[bit_start[t, v] + x · n_words[t] :][: n_words[t]]``. ``weights`` is empty where every row
    counts once. ``strata``, where not empty, numbers the part that each row belongs to: all families are then counted
    part by part, as if the part were a parent of every variable. ``parts``, where not empty, does so for scores of all
    parts together: the values of a child are counted as those in the first part, those in the second, and so on.
    ``total_weight`` is the number of every task's rows,
    weights counted.
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
    parts: NDArray[np.int32]
    n_parts: int
    total_weight: NDArray[np.float64]


def lay_out(
    codes: Sequence[NDArray[np.integer[Any]]],
    cards: NDArray[np.int64],
    present: NDArray[np.bool_] | None = None,
    weights: Sequence[NDArray[np.float64]] | None = None,
    strata: Sequence[NDArray[np.int32]] | None = None,
    parts: Sequence[NDArray[np.int32]] | None = None,
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
    strata, parts : sequence of int arrays, optional
        Part 0, 1, … that each row belongs to; one part by default.
    """
    n_tasks, n = len(codes), len(cards)
    if present is None:
        present = np.ones((n_tasks, n), dtype=bool)
    n_rows = np.array([len(table) for table in codes], dtype=np.int64)
    n_words = -(-n_rows // WORD)
    columns = [table.astype(np.uint8).T for table in codes]
    for own, here in zip(columns, present, strict=True):
        own[~here] = 0
    value_start = np.concatenate([[0], np.cumsum(cards)])
    task_bits = n_words * value_start[-1]
    bit_start = (np.cumsum(task_bits) - task_bits)[:, None] + n_words[:, None] * value_start[None, :-1]
    weight = np.zeros(0) if weights is None else np.concatenate(weights).astype(np.float64)
    weight_start = np.cumsum(n_rows) - n_rows
    return Cases(
        cards=cards.astype(np.int64),
        present=present,
        n_rows=n_rows,
        codes=np.concatenate([own.ravel() for own in columns]),
        code_start=np.cumsum(n_rows * n) - n_rows * n,
        bits=np.concatenate([_as_bits(own, cards) for own in columns]),
        bit_start=bit_start,
        n_words=n_words,
        weights=weight,
        weight_start=weight_start,
        strata=_end_to_end(strata),
        n_strata=1 if strata is None else 1 + max(int(own.max()) for own in strata),
        parts=_end_to_end(parts),
        n_parts=1 if parts is None else 1 + max(int(own.max()) for own in parts),
        total_weight=np.add.reduceat(weight, weight_start) if len(weight) else n_rows.astype(np.float64),
    )


def _end_to_end(numbers: Sequence[NDArray[np.int32]] | None) -> NDArray[np.int32]:
    return np.zeros(0, dtype=np.int32) if numbers is None else np.concatenate(numbers).astype(np.int32)


def _as_bits(columns: NDArray[np.uint8], cards: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A row of words for each value of each variable, in order, whose bits tell which rows have the value."""
    value = (np.arange(cards.sum()) - np.repeat(np.cumsum(cards) - cards, cards)).astype(np.uint8)
    has_it = np.zeros((len(value), -(-columns.shape[1] // WORD) * WORD), dtype=bool)
    np.equal(columns[np.repeat(np.arange(len(cards)), cards)], value[:, None], out=has_it[:, : columns.shape[1]])
    return np.packbits(has_it, axis=1, bitorder="little").view(np.uint64).ravel()
