"""Scores of families, a variable with its parents (eq. 2, with closed forms), all candidates at once.

A search asks for a whole column of gains: for one child and its parents, what the score gains by adding each other
variable as a parent, or by removing each that is one. Rows are numbered by their parents' configuration once; a
candidate then costs either one popcount for each word, configuration and value, or one step for each row, whichever is
less. The cost of a column is O(n_variables · n_rows) at worst and up to 64 times less where configurations are few.

In the papers: Niculescu-Mizil and Caruana (2012), eq. (2).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from kinfolk.networks.model.data import Cases
from kinfolk.networks.model.kernels import inner, int64, spliced
from kinfolk.networks.model.scores import score_table

# Up to this many popcounts a word, bitmaps beat stepping through the 64 rows of the word (1,000 and 10,000 rows tried).
_BITMAP_LIMIT = 160


class Family(NamedTuple):
    """A variable with its parents: each row's number of their configuration, counts of the variable's values by number.

    ``q`` is the number of configurations that can be, ``score`` the family's own.
    """

    number: NDArray[np.int32]
    counts: NDArray[np.float64]
    n_values: int
    q: float
    score: float


@intrinsic
def _count_ones(typing_context: Any, word: Any) -> Any:
    """Number of set bits of a word, as one machine instruction."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), codegen


@inner
def _refine(
    number: NDArray[np.int32], n_numbers: int, codes: NDArray[np.uint8], card: int, out: NDArray[np.int32]
) -> int:
    """Number the pairs (number, code) that occur, in order of appearance; return how many there are."""
    places = np.full(n_numbers * card, -1, dtype=np.int32)
    found = 0
    for row in range(len(number)):
        key = number[row] * card + codes[row]
        place = places[key]
        if place < 0:
            place = places[key] = found
            found += 1
        out[row] = place
    return found


@spliced
def family_gains(
    cases: Cases,
    score: Any,
    task: int,
    child: int,
    parents: NDArray[np.int64],
    candidates: NDArray[np.bool_],
    out: NDArray[np.float64],
) -> float:
    """Score a family, and write what adding each candidate, or removing each parent, would gain (−inf elsewhere)."""
    n_rows, n_words = cases.n_rows[task], cases.n_words[task]
    start, n_values = cases.code_start[task], cases.cards[child]
    own = cases.codes[start + child * n_rows : start + (child + 1) * n_rows]
    whole = len(cases.weights) == 0
    weights = cases.weights[cases.weight_start[task] : cases.weight_start[task] + n_rows]

    number = np.zeros(n_rows, dtype=np.int32)
    n_numbers, q = cases.n_strata, float(cases.n_strata)
    if len(cases.strata):
        for row in range(n_rows):
            number[row] = cases.strata[cases.weight_start[task] + row]
    for p in parents:
        codes = cases.codes[start + p * n_rows : start + (p + 1) * n_rows]
        n_numbers = _refine(number, n_numbers, codes, cases.cards[p], number)
        q *= cases.cards[p]
    n_cells = n_numbers * n_values
    cell = np.empty(n_rows, dtype=np.int32)
    for row in range(n_rows):
        cell[row] = number[row] * n_values + own[row]
    counts = np.zeros(n_cells)
    _tally(cell, weights, whole, counts)
    one = int64(1)
    here = score_table(counts, (n_numbers, n_values, one), q, score, task, whole)

    for p in range(len(out)):
        out[p] = -np.inf
    if len(parents):
        family = Family(number, counts, n_values, q, here)
        _gains_of_removing(cases, score, task, parents, family, out)
    bitmaps = np.zeros((0, n_words), dtype=np.uint64)
    table = np.zeros(0)
    joint = np.zeros(0, dtype=np.int32)
    for p in range(len(candidates)):
        if not candidates[p]:
            continue
        card = cases.cards[p]
        shape = (n_numbers, n_values, card)
        by_bits = whole and n_cells * (card - 1) <= _BITMAP_LIMIT
        if by_bits and not len(bitmaps):
            bitmaps = np.zeros((n_cells, n_words), dtype=np.uint64)
            for row in range(n_rows):
                bitmaps[cell[row], row >> 6] |= np.uint64(1) << np.uint64(row & 63)
        if not by_bits:
            if not len(joint):
                joint = np.empty(n_rows, dtype=np.int32)
            codes = cases.codes[start + p * n_rows : start + (p + 1) * n_rows]
            if n_cells * card <= 4 * n_rows + 1024:
                for row in range(n_rows):
                    joint[row] = cell[row] * card + codes[row]
            else:
                # Most configurations are empty: number those that occur, so that the table stays within rows × values.
                shape = (_refine(number, n_numbers, codes, card, joint), n_values, one)
                for row in range(n_rows):
                    joint[row] = joint[row] * n_values + own[row]
        size = shape[0] * shape[1] * shape[2]
        if len(table) < size:
            table = np.empty(size)
        if by_bits:
            first = cases.bit_start[task, p]
            _count_bits(cases.bits[first : first + card * n_words], n_words, card, bitmaps, counts, table)
        else:
            for place in range(size):
                table[place] = 0.0
            _tally(joint, weights, whole, table)
        out[p] = score_table(table, shape, q * card, score, task, whole) - here
    return float(here)


@spliced
def _tally(cell: NDArray[np.int32], weights: NDArray[np.float64], whole: bool, counts: NDArray[np.float64]) -> None:
    """Add up rows, or their weights, by cell."""
    for row in range(len(cell)):
        counts[cell[row]] += 1.0 if whole else weights[row]


@spliced
def _count_bits(
    bits: NDArray[np.uint64],
    n_words: int,
    card: int,
    bitmaps: NDArray[np.uint64],
    counts: NDArray[np.float64],
    table: NDArray[np.float64],
) -> None:
    """Split the counts of every cell by the value of one more variable; the last value gets what is left over."""
    for cell in range(len(counts)):
        left = counts[cell]
        for value in range(card - 1):
            ones = np.uint64(0)
            for w in range(n_words):
                ones += _count_ones(bitmaps[cell, w] & bits[value * n_words + w])  # type: ignore[call-arg]
            table[cell * card + value] = ones
            left -= ones
        table[cell * card + card - 1] = left


@spliced
def _gains_of_removing(
    cases: Cases,
    score: Any,
    task: int,
    parents: NDArray[np.int64],
    family: Family,
    out: NDArray[np.float64],
) -> None:
    """Add up counts over each parent's values: one row of every configuration tells what it merges with."""
    n_rows, start, whole = cases.n_rows[task], cases.code_start[task], len(cases.weights) == 0
    number, counts, n_values = family.number, family.counts, family.n_values
    n_numbers = len(counts) // n_values
    first_row = np.full(n_numbers, -1, dtype=np.int64)
    for row in range(n_rows - 1, -1, -1):
        first_row[number[row]] = row
    codes = np.empty(n_numbers, dtype=np.uint8)
    for removed in parents:
        merged = np.zeros(n_numbers, dtype=np.int32)
        n_merged = cases.n_strata
        if len(cases.strata):
            for u in range(n_numbers):
                merged[u] = cases.strata[cases.weight_start[task] + first_row[u]]
        for p in parents:
            if p != removed:
                for u in range(n_numbers):
                    codes[u] = cases.codes[start + p * n_rows + first_row[u]]
                n_merged = _refine(merged, n_merged, codes, cases.cards[p], merged)
        fewer = np.zeros(n_merged * n_values)
        for u in range(n_numbers):
            for x in range(n_values):
                fewer[merged[u] * n_values + x] += counts[u * n_values + x]
        shape = (n_merged, n_values, int64(1))
        q = family.q / cases.cards[removed]
        out[removed] = score_table(fewer, shape, q, score, task, whole) - family.score
