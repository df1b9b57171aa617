"""Scores of families, a variable with its parents (eq. 2, with closed forms), all candidates at once.

A search asks for a whole column of gains: for one child and its parents, what the score gains by adding each other
variable as a parent, or by removing each that is one. A small family is counted by bitmaps alone, all of which are
conjunctions of those of single values; rows of others are numbered by their parents' configuration once. A candidate
then costs either one popcount for each word, configuration and value, or one step for each row, whichever is less. The
cost of a column is O(n_variables · n_rows) at worst and up to 64 times less where configurations are few.

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

# Up to this many popcounts a word, bitmaps beat stepping through the 64 rows of the word (1,000 to 100,000 rows tried);
# up to this many cells, making the bitmaps of all beats numbering rows, since those without rows are then passed over.
_MOST_POPCOUNTS, _MOST_BITMAPS = 320, 512
# Most cells of a family's table (8 MB): noise in many bins would otherwise ask for tables that no memory holds.
MOST_CELLS = 1 << 20


class Room(NamedTuple):
    """Arrays that counting writes into, as long as any family asks for: kernels that make none compile sooner.

    By row: ``own`` value of the child, ``number`` of its parents' configuration, ``cell`` of both, ``joint`` with one
    more parent. By configuration: ``first_row`` that has it, ``merged`` number without one parent, ``codes`` of
    another. ``bitmaps`` tell the rows of each cell; ``counts`` are the family's, ``table`` those of the next to be
    scored, and ``places`` the numbers given so far.
    """

    own: NDArray[np.int32]
    number: NDArray[np.int32]
    cell: NDArray[np.int32]
    joint: NDArray[np.int32]
    first_row: NDArray[np.int32]
    merged: NDArray[np.int32]
    codes: NDArray[np.uint8]
    bitmaps: NDArray[np.uint64]
    counts: NDArray[np.float64]
    table: NDArray[np.float64]
    places: NDArray[np.int32]


def room_to_count(cases: Cases) -> Room:
    """Make room for counting the rows of any task, one family at a time.

    Configurations that do not occur are not numbered, so that no table has more cells than there are rows, times the
    states of one variable and the parts that they are counted in. Memory that is not written to is not taken.
    """
    n_rows, card = int(cases.n_rows.max(initial=0)), int(cases.cards.max(initial=1))
    most = max(4 * n_rows + 1024, (n_rows + cases.n_strata) * card * cases.n_parts)
    longest = n_rows + cases.n_strata
    return Room(
        own=np.empty(longest, dtype=np.int32),
        number=np.empty(longest, dtype=np.int32),
        cell=np.empty(longest, dtype=np.int32),
        joint=np.empty(longest, dtype=np.int32),
        first_row=np.empty(longest, dtype=np.int32),
        merged=np.empty(longest, dtype=np.int32),
        codes=np.empty(longest, dtype=np.uint8),
        bitmaps=np.empty((_MOST_BITMAPS, int(cases.n_words.max(initial=0))), dtype=np.uint64),
        counts=np.empty(most),
        table=np.empty(most),
        places=np.empty(most, dtype=np.int32),
    )


@intrinsic
def _count_ones(typing_context: Any, word: Any) -> Any:
    """Number of set bits of a word, as one machine instruction."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), codegen


@inner
def _refine(
    number: NDArray[np.int32],
    n: int,
    n_numbers: int,
    codes: NDArray[np.uint8],
    card: int,
    places: NDArray[np.int32],
    out: NDArray[np.int32],
) -> int:
    """Number the pairs (number, code) that occur in the first n, in order of appearance; return how many there are."""
    for key in range(n_numbers * card):
        places[key] = -1
    found = 0
    for row in range(n):
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
    room: Room,
    out: NDArray[np.float64],
) -> float:
    """Score a family, and write what adding each candidate, or removing each parent, would gain (−inf elsewhere)."""
    n_rows, n_words = cases.n_rows[task], cases.n_words[task]
    start, n_values = cases.code_start[task], cases.cards[child] * cases.n_parts
    whole = len(cases.weights) == 0
    weights = cases.weights[cases.weight_start[task] : cases.weight_start[task] + n_rows]
    # Taken out of their tuple once: in inner loops each look at a field would count references.
    own, number, cell, joint, table, places = room.own, room.number, room.cell, room.joint, room.table, room.places

    bitmaps, counts, one = room.bitmaps, room.counts, int64(1)
    q = float(cases.n_strata)
    for p in parents:
        q *= cases.cards[p]
    small = whole and cases.n_strata * cases.n_parts == 1 and q <= n_rows and q * n_values <= _MOST_BITMAPS
    if small:
        n_numbers = int64(q)
        _conjoin(cases, task, child, parents, bitmaps, counts)
    else:
        n_numbers = _number_rows(cases, task, child, parents, room)
        _tally(cell, n_rows, weights, whole, n_numbers * n_values, counts)
    n_cells = n_numbers * n_values
    n_filled = _filled(counts, n_cells)
    has_bitmaps, has_numbers = small, not small
    here = score_table(counts, (n_numbers, n_values, one), q, score, task, whole)

    for p in range(len(out)):
        out[p] = -np.inf
    if len(parents) and small:
        _gains_of_merging(cases, score, task, parents, n_values, q, here, room, out)
    elif len(parents):
        _gains_of_removing(cases, score, task, parents, (n_numbers, n_values), q, here, room, out)
    for p in range(len(candidates)):
        if not candidates[p]:
            continue
        card = cases.cards[p]
        shape, fits = (n_numbers, n_values, card), n_cells * card <= 4 * n_rows + 1024
        if whole and fits and n_cells <= _MOST_BITMAPS and n_filled * max(card - 1, 1) <= _MOST_POPCOUNTS:
            if not has_bitmaps:
                for place in range(n_cells):
                    for w in range(n_words):
                        bitmaps[place, w] = np.uint64(0)
                for row in range(n_rows):
                    bitmaps[cell[row], row >> 6] |= np.uint64(1) << np.uint64(row & 63)
                has_bitmaps = True
            first = cases.bit_start[task, p]
            _count_bits(cases.bits[first : first + card * n_words], n_words, card, bitmaps, n_cells, counts, table)
        else:
            if not has_numbers:
                n_numbers = _number_rows(cases, task, child, parents, room)
                n_cells, has_bitmaps, has_numbers = n_numbers * n_values, False, True
                _tally(cell, n_rows, weights, whole, n_cells, counts)
                shape, fits = (n_numbers, n_values, card), n_cells * card <= 4 * n_rows + 1024
            codes = cases.codes[start + p * n_rows : start + (p + 1) * n_rows]
            if fits:
                for row in range(n_rows):
                    joint[row] = cell[row] * card + codes[row]
            else:
                # Most configurations are empty: number those that occur, so that the table stays within rows × values.
                shape = (_refine(number, n_rows, n_numbers, codes, card, places, joint), n_values, one)
                for row in range(n_rows):
                    joint[row] = joint[row] * n_values + own[row]
            _tally(joint, n_rows, weights, whole, shape[0] * shape[1] * shape[2], table)
        out[p] = score_table(table, shape, q * card, score, task, whole) - here
    return float(here)


@inner
def _filled(counts: NDArray[np.float64], n_cells: int) -> int:
    """Tell how many cells have rows."""
    n = 0
    for cell in range(n_cells):
        n += counts[cell] > 0.0
    return n


@inner
def _number_rows(cases: Cases, task: int, child: int, parents: NDArray[np.int64], room: Room) -> int:
    """Give every row its own value, the number of its parents' configuration, and the cell of both."""
    own, number, cell = room.own, room.number, room.cell
    n_rows, start, n_values = cases.n_rows[task], cases.code_start[task], cases.cards[child] * cases.n_parts
    for row in range(n_rows):
        own[row] = cases.codes[start + child * n_rows + row]
        if len(cases.parts):
            own[row] += cases.parts[cases.weight_start[task] + row] * cases.cards[child]
    n_numbers = cases.n_strata
    for row in range(n_rows):
        number[row] = cases.strata[cases.weight_start[task] + row] if len(cases.strata) else 0
    for p in parents:
        codes = cases.codes[start + p * n_rows : start + (p + 1) * n_rows]
        n_numbers = _refine(number, n_rows, n_numbers, codes, cases.cards[p], room.places, number)
    for row in range(n_rows):
        cell[row] = number[row] * n_values + own[row]
    return int(n_numbers)


@inner
def _conjoin(
    cases: Cases,
    task: int,
    child: int,
    parents: NDArray[np.int64],
    bitmaps: NDArray[np.uint64],
    counts: NDArray[np.float64],
) -> None:
    """Make bitmaps of all configurations of the parents and values of the child, and count the rows of each."""
    n_words, n_values = cases.n_words[task], cases.cards[child]
    bits, first = cases.bits, cases.bit_start[task, child]
    for x in range(n_values):
        for w in range(n_words):
            bitmaps[x, w] = bits[first + x * n_words + w]
    n_cells = n_values
    for p in parents:
        card, first = cases.cards[p], cases.bit_start[task, p]
        # From the last to the first, so that a bitmap is overwritten when all that follow from it are made.
        for u in range(n_cells // n_values - 1, -1, -1):
            for v in range(card - 1, -1, -1):
                for x in range(n_values):
                    source, target = u * n_values + x, (u * card + v) * n_values + x
                    for w in range(n_words):
                        bitmaps[target, w] = bitmaps[source, w] & bits[first + v * n_words + w]
        n_cells *= card
    for place in range(n_cells):
        ones = np.uint64(0)
        for w in range(n_words):
            ones += _count_ones(bitmaps[place, w])  # type: ignore[call-arg]
        counts[place] = ones


@inner
def _gains_of_merging(
    cases: Cases,
    score: Any,
    task: int,
    parents: NDArray[np.int64],
    n_values: int,
    q: float,
    here: float,
    room: Room,
    out: NDArray[np.float64],
) -> None:
    """Add up counts over each parent's values, where all configurations stand in order, by the last parent first."""
    counts, fewer = room.counts, room.table
    n_numbers, inner_size = int64(q), int64(1)
    for place in range(len(parents) - 1, -1, -1):
        removed = parents[place]
        card = cases.cards[removed]
        n_merged = n_numbers // card
        for u in range(n_merged):
            first = (u // inner_size * card * inner_size + u % inner_size) * n_values
            for x in range(n_values):
                total = 0.0
                for v in range(card):
                    total += counts[first + v * inner_size * n_values + x]
                fewer[u * n_values + x] = total
        shape = (n_merged, n_values, int64(1))
        out[removed] = score_table(fewer, shape, q / card, score, task, True) - here
        inner_size *= card


@inner
def _tally(
    cell: NDArray[np.int32],
    n_rows: int,
    weights: NDArray[np.float64],
    whole: bool,
    n_cells: int,
    counts: NDArray[np.float64],
) -> None:
    """Add up rows, or their weights, by cell."""
    for place in range(n_cells):
        counts[place] = 0.0
    for row in range(n_rows):
        counts[cell[row]] += 1.0 if whole else weights[row]


@inner
def _count_bits(
    bits: NDArray[np.uint64],
    n_words: int,
    card: int,
    bitmaps: NDArray[np.uint64],
    n_cells: int,
    counts: NDArray[np.float64],
    table: NDArray[np.float64],
) -> None:
    """Split the counts of every cell by the value of one more variable; the last value gets what is left over."""
    for cell in range(n_cells):
        left = counts[cell]
        if left == 0.0:
            for value in range(card):
                table[cell * card + value] = 0.0
            continue
        for value in range(card - 1):
            ones = np.uint64(0)
            for w in range(n_words):
                ones += _count_ones(bitmaps[cell, w] & bits[value * n_words + w])  # type: ignore[call-arg]
            table[cell * card + value] = ones
            left -= ones
        table[cell * card + card - 1] = left


@inner
def _gains_of_removing(
    cases: Cases,
    score: Any,
    task: int,
    parents: NDArray[np.int64],
    sizes: tuple[int, int],
    q: float,
    here: float,
    room: Room,
    out: NDArray[np.float64],
) -> None:
    """Add up counts over each parent's values: one row of every configuration tells what it merges with."""
    n_rows, start, whole = cases.n_rows[task], cases.code_start[task], len(cases.weights) == 0
    number, first_row, merged, codes = room.number, room.first_row, room.merged, room.codes
    counts, fewer = room.counts, room.table
    n_numbers, n_values = sizes
    for row in range(n_rows - 1, -1, -1):
        first_row[number[row]] = row
    for removed in parents:
        n_merged = cases.n_strata
        for u in range(n_numbers):
            merged[u] = cases.strata[cases.weight_start[task] + first_row[u]] if len(cases.strata) else 0
        for p in parents:
            if p != removed:
                for u in range(n_numbers):
                    codes[u] = cases.codes[start + p * n_rows + first_row[u]]
                n_merged = _refine(merged, n_numbers, n_merged, codes, cases.cards[p], room.places, merged)
        for place in range(n_merged * n_values):
            fewer[place] = 0.0
        for u in range(n_numbers):
            for x in range(n_values):
                fewer[merged[u] * n_values + x] += counts[u * n_values + x]
        shape = (n_merged, n_values, int64(1))
        out[removed] = score_table(fewer, shape, q / cases.cards[removed], score, task, whole) - here
