"""Rows of all tasks, in blocks of tasks of like size that are worked on at once.

A block is padded to its longest task by rows of weight zero. Sizes within a block differ by a factor of √2 at most, so
that padding costs less than half of the work, and there are as many blocks as sizes have half powers of two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats


class Block(NamedTuple):
    """Tasks of like size: their places, and features (tasks, rows, columns), targets and weights (tasks, rows)."""

    tasks: NDArray[np.int64]
    X: Floats
    y: Floats
    weights: Floats

    def of_tasks(self, values: Floats) -> Floats:
        """Values that all tasks have, of those here."""
        return np.asarray(values[self.tasks])


class LinearRows(NamedTuple):
    """The rows of all tasks.

    The first column of a block's features is a constant one, and those of which each task has weights of its own stand
    before the others; ``own_group`` tells which of these share a standard deviation, the constant being group 0.
    ``bends`` tells which columns are values beside a number, whose common weights have a scale of their own.
    """

    blocks: tuple[Block, ...]
    n_tasks: int
    n_columns: int
    own_group: NDArray[np.int64]
    bends: NDArray[np.bool_] | None = None

    @property
    def n_own(self) -> int:
        """Columns of which tasks have weights of their own."""
        return len(self.own_group)

    @property
    def n_rows(self) -> float:
        """Rows of all tasks, by their weights."""
        return sum(float(block.weights.sum()) for block in self.blocks)

    def every(self, step: int) -> LinearRows:
        """The rows of one task in so many, counted from 0 anew."""
        blocks = []
        for block in self.blocks:
            kept = block.tasks % step == 0
            if kept.any():
                blocks.append(Block(block.tasks[kept] // step, block.X[kept], block.y[kept], block.weights[kept]))
        return self._replace(blocks=tuple(blocks), n_tasks=-(-self.n_tasks // step))


def lay_out_rows(
    X: Floats, y: Floats, weights: Floats | None, place: NDArray[np.int64], n_tasks: int, own_group: NDArray[np.int64]
) -> LinearRows:
    """Lay out rows by task.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Without the constant column; those of which tasks have weights of their own come first.
    y : ndarray of shape (n_rows,)
    weights : ndarray of shape (n_rows,), optional
    place : ndarray of shape (n_rows,)
        The task of each row.
    n_tasks : int
    own_group : ndarray of shape (n_own,)
        Groups of the columns that tasks have weights of their own of, the constant one's, 0, first.

    Returns
    -------
    LinearRows

    Examples
    --------
    >>> rows = lay_out_rows(np.array([[1.0], [2.0], [3.0]]), np.zeros(3), None, np.array([0, 1, 1]), 2, np.array([0]))
    >>> [block.X[..., 1].tolist() for block in rows.blocks]
    [[[1.0]], [[2.0, 3.0]]]
    """
    table = np.column_stack([np.ones(len(X)), X])
    mass = np.ones(len(X)) if weights is None else weights
    blocks = []
    for tasks, rows, there in lay_out_tasks(place, n_tasks):
        own = np.where(there[..., None], table[rows], 0.0)
        blocks.append(Block(tasks, own, np.where(there, y[rows], 0.0), np.where(there, mass[rows], 0.0)))
    return LinearRows(tuple(blocks), n_tasks, table.shape[1], own_group)


def lay_out_tasks(
    place: NDArray[np.int64], n_tasks: int
) -> list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]]:
    """Tasks of every block, their rows (tasks, rows), and which of these are there rather than padding."""
    if not len(place):
        return []
    size = np.bincount(place, minlength=n_tasks)
    order, start = np.argsort(place, kind="stable"), np.cumsum(size) - size
    kind = np.ceil(2.0 * np.log2(np.maximum(size, 1))).astype(np.int64)
    blocks = []
    for k in np.unique(kind):
        tasks = np.flatnonzero(kind == k)
        column = np.arange(max(1, int(size[tasks].max())))
        there = column < size[tasks][:, None]
        rows = order[np.where(there, start[tasks][:, None] + column, 0)]
        blocks.append((tasks, rows, there))
    return blocks
