"""Weights of models that depend on how many rows a task has; with numpy alone.

They are known at a few numbers of rows, and in between as a straight line over the logarithm: weights at each that add
up to one add up to one everywhere. A task without rows, a new one, is a size of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kinfolk.maths.arrays import Floats

# Sizes are a factor of four apart, so that many tasks tell of each, and at most so many.
_APART = 4.0
_MOST_SIZES = 5


class SizeWeights(NamedTuple):
    """How far each model is believed by the number of a task's rows.

    Attributes
    ----------
    sizes : array of shape (n_sizes,)
        Numbers of rows, in order; zero is first where new tasks are weighed by themselves.
    weights : array of shape (n_sizes, n_models)
    """

    sizes: Floats
    weights: Floats

    def of(self, n_rows: Floats) -> Floats:
        """Weights (tasks, models) for tasks with so many rows."""
        return np.asarray(hats(n_rows, self.sizes) @ self.weights)


def hats(n_rows: Floats, sizes: Floats) -> Floats:
    """How much of each size tasks have, adding up to one; beyond the ends, all of the last.

    Examples
    --------
    >>> hats(np.array([0.0, 4.0, 8.0, 99.0]), np.array([0.0, 4.0, 16.0])).round(3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]]
    """
    if len(sizes) == 1:
        return np.ones((len(n_rows), 1))
    n_rows = np.asarray(n_rows, dtype=np.float64)
    known, some = np.flatnonzero(sizes > 0.0), n_rows > 0.0
    found = np.zeros((len(n_rows), len(sizes)))
    ends = np.log(sizes[known])
    where = np.interp(np.log(np.where(some, n_rows, 1.0)), ends, np.arange(len(known)))
    low = np.minimum(where.astype(np.int64), max(len(known) - 2, 0))
    every = np.arange(len(n_rows))
    found[every, known[low]] = 1.0 - (where - low)
    found[every, known[np.minimum(low + 1, len(known) - 1)]] += where - low
    if len(known) < len(sizes):
        found[~some] = sizes == 0.0
    return found


def choose_sizes(n_rows: Floats) -> Floats:
    """Sizes at which weights are learnt from rows whose tasks have so many others: that of new tasks, and some beyond.

    Examples
    --------
    >>> choose_sizes(np.array([0, 7, 8, 8, 9])).tolist(), choose_sizes(np.geomspace(2, 40, 50)).round().tolist()
    ([0.0, 8.0], [0.0, 2.0, 9.0, 38.0])
    """
    some = np.asarray(n_rows, dtype=np.float64)[n_rows > 0]
    if not len(some):
        return np.zeros(1)
    low, middle, high = np.quantile(np.maximum(some, 1.0), [0.02, 0.5, 0.98])
    n_sizes = min(int(np.log(high / low) / np.log(_APART)) + 1, _MOST_SIZES)
    return np.append(0.0, np.geomspace(low, high, n_sizes) if n_sizes > 1 else middle)
