"""The rows of all tasks end to end, and tasks of about the same number of rows side by side.

A sweep of the E-step goes through tasks side by side in single calls of numpy: with eight rows, a call for each task
costs a hundred times its arithmetic. A layout is made before the first sweep and never changes: threads may share it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from kinfolk.lica.model.data import LinearTasks
from kinfolk.lica.model.row_products import row_products
from kinfolk.maths.arrays import Floats

_MAX_KERNEL = 1 << 28  # cells of row kernels kept in memory (2 GiB)
_MAX_FEATURES = 1 << 26  # cells of tasks' features kept side by side (half a GiB)
_CELLS = 1 << 17  # of the largest table of tasks side by side
_TINY, _SMALL = 16, 64  # rows up to which tasks are filled up to the next power of two, and to half of one
_LARGE = 512  # rows beyond which a task is not filled up to the size of others


class Batch(NamedTuple):
    """Tasks side by side, those of fewer rows filled up by rows that are not ``here``.

    Parameters
    ----------
    tasks : int ndarray of shape (n_tasks,)
    at : int ndarray of shape (n_tasks, n_rows)
        Places among the rows of all tasks end to end.
    here : bool ndarray of shape (n_tasks, n_rows)
    by_features : bool
        Whether they are handled by features rather than by rows.
    tables, columns : tuples of scipy.sparse.csr_matrix and csc_matrix, or None
        Features of each task, where the table is sparse; by columns where the variance of each weight is needed.
    gram : ndarray of shape (n_tasks, n_rows, n_rows) or None
        XXᵀ of each task, where it is worth keeping.
    features : ndarray of shape (n_tasks, n_rows, n_features) or None
        Features of each task with all their zeros, where sweeps need them and they are few enough to keep.
    """

    tasks: NDArray[np.int64]
    at: NDArray[np.int64]
    here: NDArray[np.bool_]
    by_features: bool
    tables: tuple[Any, ...] | None = None
    columns: tuple[Any, ...] | None = None
    gram: Floats | None = None
    features: Floats | None = None


class Layout(NamedTuple):
    """Data of tasks as sweeps need them.

    Parameters
    ----------
    data : LinearTasks
        Without rows of weight zero.
    isotropic : bool
        Whether all features have the same noise variance, whatever it is.
    places, y, weights : ndarrays of shape (n_rows,)
        Of all tasks' rows end to end.
    ends : int ndarray of shape (n_tasks + 1,)
        Where each task's rows begin and end.
    batches : tuple of Batch
    shares_kernel : bool
        Whether one kernel over all rows of the table serves every task, because tasks share rows.
    gram : ndarray or None
        That kernel without noise, XXᵀ, where noise is isotropic.
    """

    data: LinearTasks
    isotropic: bool
    places: NDArray[np.int64]
    y: Floats
    weights: Floats
    ends: NDArray[np.int64]
    batches: tuple[Batch, ...]
    shares_kernel: bool
    gram: Floats | None

    def kernel_of_all(self, noise: Floats) -> Floats:
        """XΨXᵀ over all rows of the table, where tasks share it."""
        return row_products(self.data.X, noise, self.data.X) if self.gram is None else self.gram * noise[0]

    def kernel(self, batch: Batch, noise: Floats, of_all: Floats | None) -> Floats:
        """XΨXᵀ of every task of a batch."""
        if of_all is not None:
            places = self.places[batch.at]
            if places.shape[1] == len(of_all) and (places == np.arange(len(of_all))).all():
                return np.broadcast_to(of_all, (len(places), *of_all.shape))
            return np.asarray(of_all[places[:, :, None], places[:, None, :]])
        if batch.gram is not None:
            return np.asarray(batch.gram * noise[0])
        if batch.tables is not None:
            return np.array([row_products(table, noise, table) for table in batch.tables])
        features = self.features(batch)
        return np.asarray((features * noise) @ np.swapaxes(features, 1, 2))

    def features(self, batch: Batch) -> Floats:
        """Features of every task of a batch, with all their zeros."""
        if batch.features is not None:
            return batch.features
        if batch.tables is not None:
            return np.array([table.toarray() for table in batch.tables])
        return np.asarray(self.data.X[self.places[batch.at]])


def lay_out(data: LinearTasks, isotropic: bool) -> Layout:
    """Lay tasks out for sweeps.

    Examples
    --------
    >>> from kinfolk.lica.model.data import make_linear_tasks
    >>> data = make_linear_tasks([[0.0], [1.0], [2.0]], rows=[[0, 1], [2], [1, 2]], y=[[1, -1], [1], [-1, 1]])
    >>> [batch.tasks.tolist() for batch in lay_out(data, True).batches]
    [[1], [0, 2]]
    """
    n_all, n_features = data.X.shape
    sizes = np.array([len(rows) for rows in data.rows], dtype=np.int64)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    of_features = sizes > n_features + 1
    cells = int(np.sum(sizes[~of_features] ** 2))
    shares_kernel = 0 < n_all**2 <= min(2 * cells, _MAX_KERNEL)
    layout = Layout(
        data,
        isotropic,
        np.concatenate(data.rows),
        np.concatenate(data.y),
        np.concatenate(data.weights),
        ends,
        (),
        shares_kernel,
        row_products(data.X, np.ones(n_features), data.X) if shares_kernel and isotropic else None,
    )
    batches = [_batch(tasks, ends, bool(of_features[tasks[0]])) for tasks in _alike(sizes, of_features, n_features)]
    if sparse.issparse(data.X):
        batches = _with_tables(layout, batches)
    if n_features * len(layout.y) <= _MAX_FEATURES:
        # By rows, sparse features never have to be spread out, and dense ones only where each has its own noise.
        spread = [batch.by_features or not (isotropic or batch.tables) for batch in batches]
        batches = [
            batch._replace(features=layout.features(batch)) if needed else batch
            for batch, needed in zip(batches, spread, strict=True)
        ]
    if isotropic and not shares_kernel and cells <= _MAX_KERNEL:
        ones = np.ones(n_features)
        batches = [
            batch if batch.by_features else batch._replace(gram=layout.kernel(batch, ones, None)) for batch in batches
        ]
    return layout._replace(batches=tuple(batches))


def _alike(sizes: NDArray[np.int64], of_features: NDArray[np.bool_], n_features: int) -> list[NDArray[np.int64]]:
    """Tasks in parts of about the same size, and whose tables stay within some number of cells."""
    filled = np.array([_filled_up(int(size)) for size in sizes], dtype=np.int64)
    order = np.lexsort([filled, of_features])
    changes = np.flatnonzero((np.diff(filled[order]) != 0) | np.diff(of_features[order]))
    parts = []
    for tasks in np.split(order, changes + 1):
        largest = max(int(filled[tasks[0]]), 1)
        at_once = max(_CELLS // (largest * max(largest, n_features + 1)), 1)
        parts += [tasks[first : first + at_once] for first in range(0, len(tasks), at_once)]
    return parts


def _filled_up(size: int) -> int:
    """The size of the batch that a task of some size is in: few sizes of small ones, where calls cost most."""
    if size > _LARGE:
        return size
    steps_an_octave = 1 if size <= _TINY else 2 if size <= _SMALL else 8
    step = max((1 << size.bit_length() - 1) // steps_an_octave, 1) if size else 1
    return -(-size // step) * step


def _batch(tasks: NDArray[np.int64], ends: NDArray[np.int64], of_features: bool) -> Batch:
    sizes = ends[tasks + 1] - ends[tasks]
    number = np.arange(int(sizes.max()))
    here = number < sizes[:, None]
    return Batch(tasks, ends[tasks][:, None] + np.where(here, number, 0), here, of_features)


def _with_tables(layout: Layout, batches: list[Batch]) -> list[Batch]:
    """Batches with the sparse features of their tasks; one table for all tasks that have the same rows."""
    data = layout.data
    same, columns = None, None
    if data.shares_rows:
        same = data.X[data.rows[0]]
        columns = None if layout.isotropic else same.tocsc()
    found = []
    for batch in batches:
        tables = tuple(data.X[its] if same is None else same for its in layout.places[batch.at])
        found.append(batch._replace(tables=tables))
        if not (layout.isotropic or batch.by_features):
            by_column = tuple(table.tocsc() if columns is None else columns for table in tables)
            found[-1] = found[-1]._replace(columns=by_column)
    return found
