"""One tree, level by level, from sums of slopes and curvatures by node, column and bin.

Two things make the sums cheap (Ke and others 2017, LightGBM). The commonest bin of a column is not written down: what
is there is the node's sum less those of the other bins, so that a column that is mostly zero costs what its other rows
do. And of two nodes with one parent, rows of the smaller are gone through; the larger has what is left of the parent's.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled


class Cells(NamedTuple):
    """Rows in bins, and their cells (a bin of a column) but for those of the commonest bins.

    Column j has the cells from ``first[j]`` to ``first[j + 1]``, the commonest of which is ``usual[j]``; those of row i
    are ``cell[start[i] : start[i + 1]]``.
    """

    bins: NDArray[np.uint8]
    first: NDArray[np.int64]
    usual: NDArray[np.int64]
    start: NDArray[np.int64]
    cell: NDArray[np.int32]


def cells_of(bins: NDArray[np.uint8]) -> Cells:
    """The cells of rows in bins (n_rows, n_columns).

    Examples
    --------
    >>> cells = cells_of(np.array([[0, 1], [0, 0], [2, 1]], dtype=np.uint8))
    >>> cells.first.tolist(), cells.usual.tolist(), cells.start.tolist(), cells.cell.tolist()
    ([0, 3, 5], [0, 4], [0, 0, 1, 2], [3, 2])
    """
    bins = np.ascontiguousarray(bins)
    first = np.concatenate([[0], np.cumsum(bins.max(axis=0, initial=0).astype(np.int64) + 1)])
    common = np.array([np.bincount(column).argmax() if len(column) else 0 for column in bins.T], dtype=np.int64)
    unusual = bins != common
    start = np.concatenate([[0], np.cumsum(unusual.sum(axis=1))]).astype(np.int64)
    cell = (bins + first[:-1].astype(np.int32))[unusual]
    return Cells(bins, first, first[:-1] + common, start, cell.astype(np.int32))


@compiled
def grow(cells, gradient, curvature, column, cut, leaf, place, now, before, rate, ridge, least):  # type: ignore[no-untyped-def]
    """Grow one tree in a heap of ``column`` and ``cut``; ``place`` becomes the leaf of every row.

    ``now`` and ``before`` (nodes of the last level, cells, 2) are room to work in.
    """
    n_rows, depth = len(place), 0
    while (1 << depth) < len(leaf):
        depth += 1
    place[:] = 0
    is_open = np.ones(1, np.bool_)
    for level in range(depth):
        n_nodes, first = 1 << level, (1 << level) - 1
        _sum_up(cells, gradient, curvature, place, n_nodes, is_open, now, before)
        divided = np.zeros(n_nodes, np.bool_)
        for k in range(n_nodes):
            if is_open[k]:
                divided[k] = _divide(cells, now[k], column, cut, first + k, ridge, least)
        for i in range(n_rows):
            k = place[i]
            place[i] = 2 * k + (divided[k] and cells.bins[i, column[first + k]] > cut[first + k])
        # What nothing is gained by dividing stays whole.
        is_open = np.repeat(divided, 2)
        now, before = before, now
    whole, mass = np.zeros(len(leaf)), np.zeros(len(leaf))
    for i in range(n_rows):
        whole[place[i]] += gradient[i]
        mass[place[i]] += curvature[i]
    for k in range(len(leaf)):
        leaf[k] = -rate * whole[k] / (mass[k] + ridge) if mass[k] > 0.0 else 0.0


@compiled
def _sum_up(cells, gradient, curvature, place, n_nodes, is_open, now, before):  # type: ignore[no-untyped-def]
    """Sums of slopes and curvatures of all cells of the open nodes of a level."""
    n_rows, n_columns = cells.bins.shape
    n_learnt, whole = np.zeros(n_nodes, np.int64), np.zeros((n_nodes, 2))
    for i in range(n_rows):
        if curvature[i] > 0.0:
            n_learnt[place[i]] += 1
            whole[place[i], 0] += gradient[i]
            whole[place[i], 1] += curvature[i]
    summed = is_open.copy()
    for k in range(0, n_nodes - 1, 2):
        if is_open[k]:
            summed[k], summed[k + 1] = n_learnt[k] <= n_learnt[k + 1], n_learnt[k] > n_learnt[k + 1]
    for k in range(n_nodes):
        if summed[k]:
            now[k] = 0.0
    for i in range(n_rows):
        k = place[i]
        if summed[k] and curvature[i] > 0.0:
            own, g, h = now[k], gradient[i], curvature[i]
            for at in range(cells.start[i], cells.start[i + 1]):
                own[cells.cell[at], 0] += g
                own[cells.cell[at], 1] += h
    for k in range(n_nodes):
        if not summed[k]:
            continue
        for j in range(n_columns):
            slope, curve = whole[k, 0], whole[k, 1]
            for at in range(cells.first[j], cells.first[j + 1]):
                slope -= now[k, at, 0]
                curve -= now[k, at, 1]
            now[k, cells.usual[j], 0], now[k, cells.usual[j], 1] = slope, curve
        if n_nodes > 1:
            other = k ^ 1
            for at in range(now.shape[1]):
                now[other, at, 0] = before[k >> 1, at, 0] - now[k, at, 0]
                now[other, at, 1] = before[k >> 1, at, 1] - now[k, at, 1]


@compiled
def _divide(cells, sums, column, cut, node, ridge, least):  # type: ignore[no-untyped-def]
    """Find the best cut of a node, and say whether anything is gained by it."""
    whole, mass = 0.0, 0.0
    for at in range(cells.first[0], cells.first[1]):
        whole += sums[at, 0]
        mass += sums[at, 1]
    most, found = 1e-9 + whole**2 / (mass + ridge), False
    for j in range(len(cells.usual)):
        left, left_mass = 0.0, 0.0
        for at in range(cells.first[j], cells.first[j + 1] - 1):
            left += sums[at, 0]
            left_mass += sums[at, 1]
            right, right_mass = whole - left, mass - left_mass
            if left_mass < least or right_mass < least:
                continue
            gain = left**2 / (left_mass + ridge) + right**2 / (right_mass + ridge)
            # Sums that differ by rounding alone are no gain.
            if gain > most * (1.0 + 1e-10):
                most, found = gain, True
                column[node], cut[node] = j, at - cells.first[j]
    return found
