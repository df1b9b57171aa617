"""Scores of families, a variable with its parents: BDeu, K2 and BIC (eq. 2, with closed forms), all candidates at once.

A search asks for a whole column of gains: for one child and its parents, what the score gains by adding each other
variable as a parent, or by removing each that is one. Rows are numbered by their parents' configuration once; a
candidate then costs either one popcount for each word, configuration and value, or one step for each row, whichever is
less. The cost of a column is O(n_variables · n_rows) at worst and up to 64 times less where configurations are few.

In the papers: Niculescu-Mizil and Caruana (2012), eq. (2).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.networks.model.cases import Cases
from kinfolk.networks.model.kernels import inner

BDEU, K2, BIC = 0, 1, 2
SCORES = {"bdeu": BDEU, "k2": K2, "bic": BIC}

# Up to this many popcounts a word, bitmaps beat stepping through the 64 rows of the word (1,000 and 10,000 rows tried).
_BITMAP_LIMIT = 160
_SMALL = 256
_SLOTS = 61
_HALF_LOG_2_PI = 0.9189385332046727


class Rule(NamedTuple):
    """How a family is scored: the kind of score, the equivalent sample size of BDeu, and BIC's log n of every task.

    ``rises[t, level, slot]`` holds log Γ(prior + n) − log Γ(prior) for small n, and last log Γ(prior) itself, of the
    prior that ``priors[t, level, slot]`` names, each in the one slot that its hash names; priors of cells and of rows
    are two levels. Every task has slots of its own, so that threads may search different tasks.
    """

    kind: int
    ess: float
    log_rows: NDArray[np.float64]
    priors: NDArray[np.float64]
    rises: NDArray[np.float64]


def make_rule(score: str, ess: float, cases: Cases) -> Rule:
    """Set up a score by name."""
    return Rule(
        SCORES[score],
        float(ess),
        np.log(np.maximum(cases.total_weight, 1.0)),
        np.full((cases.n_tasks, 2, _SLOTS), -1.0),
        np.empty((cases.n_tasks, 2, _SLOTS, _SMALL + 1)),
    )


@intrinsic
def _count_ones(typing_context: Any, word: Any) -> Any:
    """Number of set bits of a word, as one machine instruction."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), codegen


@inner
def _log_gamma(x: float) -> float:
    """Natural log of the gamma function: Stirling's series where it is exact to the last digits."""
    if x < 16.0:
        return math.lgamma(x)
    inverse = 1.0 / x
    square = inverse * inverse
    series = inverse * (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680)))
    return (x - 0.5) * math.log(x) - x + _HALF_LOG_2_PI + series


@inner
def _slot_of(rule: Rule, task: int, level: int, prior: float) -> int:
    """Find the slot of log Γ(prior + n) − log Γ(prior), filled anew if another prior is there."""
    slot = int(1e6 / prior) % _SLOTS
    if rule.priors[task, level, slot] != prior:
        rule.priors[task, level, slot] = prior
        rule.rises[task, level, slot, 0] = 0.0
        for n in range(1, _SMALL):
            rule.rises[task, level, slot, n] = rule.rises[task, level, slot, n - 1] + math.log(prior + (n - 1))
        rule.rises[task, level, slot, _SMALL] = math.lgamma(prior)
    return slot


@inner
def _bayesian_score(
    counts: NDArray[np.float64],
    shape: tuple[int, int, int],
    cell: float,
    row: float,
    cell_rises: NDArray[np.float64],
    row_rises: NDArray[np.float64],
    whole: bool,
) -> float:
    """Log marginal likelihood of counts under Dirichlet priors of ``cell`` for each value, ``row`` for all of them."""
    n_numbers, n_values, card = shape
    base_cell, base_row = cell_rises[_SMALL], row_rises[_SMALL]
    score = 0.0
    for u in range(n_numbers):
        for v in range(card):
            total = 0.0
            for x in range(n_values):
                n = counts[(u * n_values + x) * card + v]
                if n > 0:
                    total += n
                    score += cell_rises[int(n)] if whole and n < _SMALL else _log_gamma(cell + n) - base_cell
            if total > 0:
                score -= row_rises[int(total)] if whole and total < _SMALL else _log_gamma(row + total) - base_row
    return score


@inner
def _maximum_likelihood(counts: NDArray[np.float64], shape: tuple[int, int, int]) -> float:
    """Log likelihood of counts under the tables that make it largest."""
    n_numbers, n_values, card = shape
    fit = 0.0
    for u in range(n_numbers):
        for v in range(card):
            total = 0.0
            for x in range(n_values):
                n = counts[(u * n_values + x) * card + v]
                if n > 0:
                    fit += n * math.log(n)
                    total += n
            if total > 0:
                fit -= total * math.log(total)
    return fit


@inner
def _table_score(
    counts: NDArray[np.float64], shape: tuple[int, int, int], q: float, rule: Rule, task: int, whole: bool
) -> float:
    """Score a family from its counts by configuration of the parents, own value, and value of one more parent.

    ``shape`` are the numbers of the three; ``q`` is the number of configurations that can be, whether or not they
    occur: one that never does adds nothing but, with BIC, its free parameters.
    """
    n_values = shape[1]
    if rule.kind == BIC:
        return float(_maximum_likelihood(counts, shape) - 0.5 * rule.log_rows[task] * q * (n_values - 1))
    cell = rule.ess / (q * n_values) if rule.kind == BDEU else 1.0
    row = cell * n_values
    cell_rises = rule.rises[task, 0, _slot_of(rule, task, 0, cell)]
    row_rises = rule.rises[task, 1, _slot_of(rule, task, 1, row)]
    return float(_bayesian_score(counts, shape, cell, row, cell_rises, row_rises, whole))


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


@compiled
def family_gains(
    cases: Cases,
    rule: Rule,
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
        number[:] = cases.strata[cases.weight_start[task] : cases.weight_start[task] + n_rows]
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
    score = _table_score(counts, (n_numbers, n_values, 1), q, rule, task, whole)

    out[:] = -np.inf
    if len(parents):
        _gains_of_removing(cases, rule, task, parents, number, counts, n_values, q, score, whole, out)
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
                shape = (_refine(number, n_numbers, codes, card, joint), n_values, 1)
                for row in range(n_rows):
                    joint[row] = joint[row] * n_values + own[row]
        size = shape[0] * shape[1] * shape[2]
        if len(table) < size:
            table = np.empty(size)
        if by_bits:
            first = cases.bit_start[task, p]
            _count_bits(cases.bits[first : first + card * n_words], n_words, card, bitmaps, counts, table)
        else:
            table[:size] = 0.0
            _tally(joint, weights, whole, table)
        out[p] = _table_score(table, shape, q * card, rule, task, whole) - score
    return float(score)


@inner
def _tally(cell: NDArray[np.int32], weights: NDArray[np.float64], whole: bool, counts: NDArray[np.float64]) -> None:
    """Add up rows, or their weights, by cell."""
    for row in range(len(cell)):
        counts[cell[row]] += 1.0 if whole else weights[row]


@inner
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


@inner
def _gains_of_removing(
    cases: Cases,
    rule: Rule,
    task: int,
    parents: NDArray[np.int64],
    number: NDArray[np.int32],
    counts: NDArray[np.float64],
    n_values: int,
    q: float,
    score: float,
    whole: bool,
    out: NDArray[np.float64],
) -> None:
    """Add up counts over each parent's values: one row of every configuration tells what it merges with."""
    n_rows, start = cases.n_rows[task], cases.code_start[task]
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
        shape = (n_merged, n_values, 1)
        out[removed] = _table_score(fewer, shape, q / cases.cards[removed], rule, task, whole) - score
