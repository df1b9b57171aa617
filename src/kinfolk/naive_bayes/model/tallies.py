"""How often each count occurs among many tasks: what is left of their data under one Dirichlet prior, compiled.

The marginal of counts n_u of tasks u under a Dirichlet with pseudo-counts a is made of sums over tasks of log a↑n_u,
with a↑n = Γ(a + n) / Γ(a), cell by cell and for the totals. Where counts are whole numbers,

    Σ_u log a↑n_u = Σ_j c_j log(a + j),        c_j the number of tasks whose count is above j,

so that the sum costs no more for a million tasks than for a hundred.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled
from kinfolk.maths.digamma import digamma
from kinfolk.maths.rising import log_rising

# Points of log a in tables: from one to the next, cubics are right to about 1e−9 of what is summed.
_FIRST_POINT, _STEP, _N_POINTS = -12.0, 0.05, 481
# A product of factors is turned into a logarithm once it is this large.
_LARGE = 1e100
# Levels are used up to this many times as many of them as tasks: a logarithm costs a third of an lgamma.
_LEVELS_PER_COUNT = 3


class Tallies(NamedTuple):
    """How often each count occurs among the tasks: a row of terms for every cluster's cells, then for groups' totals.

    Terms ``start[k]:start[k + 1]`` of row k add up to Σ_u log a↑n_u: term i is ``weight[i]`` times log(a + ``at[i]``)
    if it is a level, else times log a↑``at[i]``. ``table``, where there is one, holds every row's sum
    and its slope at points of log a (rows, points, 2).
    """

    start: NDArray[np.int64]
    at: Floats
    weight: Floats
    is_level: NDArray[np.bool_]
    table: Floats = np.zeros((0, 0, 2))

    def blended(self, other: Tallies, share: float) -> Tallies:
        """Tallies whose log likelihood is (1 − share) times this one's plus share times the other's."""
        row = [np.repeat(np.arange(len(part.start) - 1), np.diff(part.start)) for part in (self, other)]
        order = np.argsort(np.concatenate(row), kind="stable")
        return Tallies(
            self.start + other.start,
            np.concatenate([self.at, other.at])[order],
            np.concatenate([(1.0 - share) * self.weight, share * other.weight])[order],
            np.concatenate([self.is_level, other.is_level])[order],
        )

    def of_rows(self, rows: NDArray[np.int64]) -> Tallies:
        """Some of the rows, with a table, which pays where sums are asked for many times."""
        lengths = np.diff(self.start)[rows]
        terms = np.repeat(self.start[rows] - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
        some = Tallies(np.append(0, np.cumsum(lengths)), self.at[terms], self.weight[terms], self.is_level[terms])
        table = np.empty((len(rows), _N_POINTS, 2))
        _tabulate(some, table)
        return some._replace(table=table)

    def seen(self, n_groups: int) -> NDArray[np.bool_]:
        """Which groups have any data."""
        return np.diff(self.start)[-n_groups:] > 0


def tally(counts: NDArray[Any], group_start: NDArray[np.int64]) -> Tallies:
    """Tally counts (tasks, cells) of one cluster, group by group of cells. O(tasks · cells).

    Examples
    --------
    >>> tallies = tally(np.array([[2, 0], [1, 1], [3, 0]]), np.array([0, 2]))
    >>> tallies.at[:3].tolist(), tallies.weight[:3].tolist()  # the first cell: three tasks above 0, two above 1, …
    ([0.0, 1.0, 2.0], [3.0, 2.0, 1.0])
    """
    one_cluster = np.zeros(len(counts), dtype=np.int64)
    start, at, weight, is_level, _ = tally_by_cluster(counts, group_start, one_cluster, 1)
    if is_level.all():
        return Tallies(start, at, weight, is_level)
    rows = []
    for first, last in pairwise(start.tolist()):
        if first < last and not is_level[first]:
            # Sorted, so that sums come out the same to the last digit whatever the order of the tasks.
            values, times = np.unique(at[first:last], return_counts=True)
            rows.append((values, times.astype(np.float64), np.zeros(len(values), dtype=bool)))
        else:
            rows.append((at[first:last], weight[first:last], is_level[first:last]))
    ends = np.cumsum([len(values) for values, _, _ in rows])
    return Tallies(np.append(0, ends), *(np.concatenate(part) for part in zip(*rows, strict=True)))


def tally_by_cluster(
    counts: NDArray[Any], group_start: NDArray[np.int64], cluster: NDArray[np.int64], n_clusters: int
) -> Tallies:
    """Tally counts (tasks, cells), the cells of each cluster of tasks by themselves, the totals of all tasks together.

    Sums depend on the order of the tasks in their last digits where counts are too different to be tallied by levels.
    """
    whole = counts.dtype.kind in "iu"
    return Tallies(*_tally(np.ascontiguousarray(counts), group_start, cluster, n_clusters, whole))


@compiled
def _tally(counts, group_start, cluster, n_clusters, whole):  # type: ignore[no-untyped-def]
    """Terms of all rows: levels where they are few, else the counts one by one. Goes along memory, task by task."""
    n_cells, n_groups = counts.shape[1], len(group_start) - 1
    n_before = n_clusters * n_cells
    highest = np.zeros(n_before + n_groups)
    present = np.zeros(n_before + n_groups, dtype=np.int64)
    for u in range(len(counts)):
        first = cluster[u] * n_cells
        for g in range(n_groups):
            total = 0.0
            for c in range(group_start[g], group_start[g + 1]):
                highest[first + c] = max(highest[first + c], counts[u, c])
                present[first + c] += counts[u, c] > 0
                total += counts[u, c]
            highest[n_before + g] = max(highest[n_before + g], total)
            present[n_before + g] += total > 0
    start = np.zeros(n_before + n_groups + 1, dtype=np.int64)
    by_level = np.zeros(n_before + n_groups, dtype=np.bool_)
    for row in range(len(present)):
        by_level[row] = whole and highest[row] <= _LEVELS_PER_COUNT * present[row]
        start[row + 1] = start[row] + (int(highest[row]) if by_level[row] else present[row])
    at, weight, is_level = np.zeros(start[-1]), np.zeros(start[-1]), np.zeros(start[-1], dtype=np.bool_)
    filled = start.copy()
    for u in range(len(counts)):
        for g in range(n_groups):
            total = 0.0
            for c in range(group_start[g], group_start[g + 1] + 1):
                # The total of a group's cells has its turn after the last of them.
                row = cluster[u] * n_cells + c if c < group_start[g + 1] else n_before + g
                count = float(counts[u, c]) if c < group_start[g + 1] else total
                total += count
                if count > 0.0 and by_level[row]:
                    weight[start[row] + int(count) - 1] += 1.0
                elif count > 0.0:
                    at[filled[row]] = count
                    weight[filled[row]] = 1.0
                    filled[row] += 1
    for row in range(len(by_level)):
        if by_level[row]:
            for i in range(start[row + 1] - 1, start[row] - 1, -1):
                is_level[i] = True
                at[i] = i - start[row]
                if i + 1 < start[row + 1]:
                    weight[i] += weight[i + 1]
    return start, at, weight, is_level


@compiled
def _tabulate(tallies, table):  # type: ignore[no-untyped-def]
    """Sums of all rows and their slopes by log a, times the step, at points so close that cubics fit in between."""
    for point in range(table.shape[1]):
        log_a = _FIRST_POINT + _STEP * point
        a = np.exp(log_a)
        at_zero = digamma(a)
        for row in range(len(table)):
            table[row, point, 0] = log_risings(tallies, row, log_a)
            slope = 0.0
            for i in range(tallies.start[row], tallies.start[row + 1]):
                if tallies.is_level[i]:
                    slope += tallies.weight[i] * a / (a + tallies.at[i])
                else:
                    slope += tallies.weight[i] * a * (digamma(a + tallies.at[i]) - at_zero)
            table[row, point, 1] = slope * _STEP


# Inlined by force: a call hands all arrays of the tallies on and counts a reference for each.
@compiled(forceinline=True)
def log_risings(tallies, row, log_a):  # type: ignore[no-untyped-def]
    """Σ_u log a↑n_u of one row of tallies, from the table where that reaches."""
    first, last = tallies.start[row], tallies.start[row + 1]
    if first == last:
        return 0.0
    table, place = tallies.table, (log_a - _FIRST_POINT) / _STEP
    if 0.0 <= place < table.shape[1] - 1.0:
        point = int(place)
        t = place - point
        left, slope, right, next_slope = (
            table[row, point, 0],
            table[row, point, 1],
            table[row, point + 1, 0],
            table[row, point + 1, 1],
        )
        rise = right - left
        # Hermite's cubic.
        bent = (slope + next_slope - 2.0 * rise) * t + 3.0 * rise - 2.0 * slope - next_slope
        return left + t * (slope + t * bent)
    a = np.exp(log_a)
    total = 0.0
    # By names of their own, because taking an array out of a tuple in a loop counts a reference each time.
    ats, weights, is_level = tallies.at, tallies.weight, tallies.is_level
    # Levels that weigh the same are multiplied first, and have one logarithm together.
    factors, power = 1.0, 0.0
    for i in range(first, last):
        at, weight = ats[i], weights[i]
        if not is_level[i]:
            total += weight * log_rising(a, log_a, at)
        elif at > 0.0:
            if weight != power or factors > _LARGE:
                total += power * np.log(factors)
                factors, power = 1.0, weight
            factors *= a + at
        else:
            total += weight * log_a
    return total + power * np.log(factors)
