"""Counts of features and labels per task: all that the naive Bayes models need to know of labelled rows.

Statistics add up: those of two shards of rows, added, are those of both.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from kinfolk.tasks.schema import sort_values

# 4 GiB of 4-byte counts; beyond it a dense table of counts is the wrong tool.
MAX_CELLS = 1 << 30


class Layout:
    """Where the count of (label y, feature f, value x) stands in a flat row of cells.

    Cell y·W + offset_f + x, with W = Σ_f n_values_f the width of one label's part. Groups, the cells of one (y, f),
    follow each other in the same order.
    """

    def __init__(self, n_labels: int, n_values: NDArray[np.int64]) -> None:
        self.n_labels = n_labels
        self.n_values = np.asarray(n_values, dtype=np.int64)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """First cell of every feature within a label's part, and the width at the end."""
        return np.concatenate([[0], np.cumsum(self.n_values)]).astype(np.int64)

    @property
    def width(self) -> int:
        """Number of cells of one label."""
        return int(self.offsets[-1])

    @property
    def n_cells(self) -> int:
        """Number of cells of all labels."""
        return self.n_labels * self.width

    @cached_property
    def group_start(self) -> NDArray[np.int64]:
        """First cell of every group, and the number of cells at the end."""
        starts = (np.arange(self.n_labels)[:, None] * self.width + self.offsets[:-1]).ravel()
        return np.concatenate([starts, [self.n_cells]]).astype(np.int64)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Layout)
            and self.n_labels == other.n_labels
            and np.array_equal(self.n_values, other.n_values)
        )

    __hash__ = None  # type: ignore[assignment]


class Rows(NamedTuple):
    """Coded rows: feature codes (−1 missing), label codes (−1 unlabelled), task index and weight of each."""

    codes: NDArray[np.int32]
    labels: NDArray[np.int32]
    task: NDArray[np.int64]
    weights: NDArray[np.float64] | None

    def take(self, keep: NDArray[np.bool_]) -> Rows:
        """Some of the rows."""
        weights = None if self.weights is None else self.weights[keep]
        return Rows(self.codes[keep], self.labels[keep], self.task[keep], weights)

    def followed_by(self, more: Rows) -> Rows:
        """These rows, then others."""
        weights = None
        if self.weights is not None or more.weights is not None:
            both = [np.ones(len(r.labels)) if r.weights is None else r.weights for r in (self, more)]
            weights = np.concatenate(both)
        return Rows(
            np.concatenate([self.codes, more.codes]),
            np.concatenate([self.labels, more.labels]),
            np.concatenate([self.task, more.task]),
            weights,
        )


class Statistics(NamedTuple):
    """Feature counts (tasks, cells of ``layout``) and label counts (tasks, labels), a row per id in ``tasks``.

    Whole counts are held as integers, fractional ones (from sample weights) as floats.
    """

    layout: Layout
    tasks: NDArray[Any]
    feature_counts: NDArray[Any]
    label_counts: NDArray[Any]

    def __add__(self, other: object) -> Statistics:
        """Join two statistics task by task; tasks that only one of them has are kept."""
        if not isinstance(other, Statistics):
            return NotImplemented
        if self.layout != other.layout:
            raise ValueError("statistics of different schemas do not add up")
        tasks = union(self.tasks, other.tasks)
        total = float(self.label_counts.sum()) + float(other.label_counts.sum())
        dtype = np.result_type(self.feature_counts, other.feature_counts, _whole_type(total))
        features = np.zeros((len(tasks), self.layout.n_cells), dtype=dtype)
        labels = np.zeros((len(tasks), self.layout.n_labels), dtype=dtype)
        for part in (self, other):
            place = positions(part.tasks, tasks)
            features[place] += part.feature_counts
            labels[place] += part.label_counts
        return Statistics(self.layout, tasks, features, labels)

    def widened(self) -> Statistics:
        """The same counts in a type that their sums fit in."""
        dtype = np.result_type(self.feature_counts, _whole_type(float(self.label_counts.sum())))
        return self._replace(
            feature_counts=self.feature_counts.astype(dtype, copy=False),
            label_counts=self.label_counts.astype(dtype, copy=False),
        )

    def pooled(self) -> Statistics:
        """All tasks as one."""
        features, labels = self.feature_counts.sum(axis=0), self.label_counts.sum(axis=0)
        dtype = np.result_type(self.feature_counts, _whole_type(float(labels.sum())))
        return Statistics(self.layout, self.tasks[:1], features[None].astype(dtype), labels[None].astype(dtype))


def _whole_type(total: float) -> Any:
    """An integer type that no sum of counts leaves; floats where even 64 bits are too few."""
    return np.int32 if total < 2**31 else np.int64 if total < 2**62 else np.float64


def as_ids(values: list[Any]) -> NDArray[Any]:
    """A plain array of ids: numbers or text where all are, else objects."""
    kinds = {type(value) for value in values}
    if len(kinds) == 1 and kinds <= {int, bool, float, str}:
        array = np.array(values)
        if array.dtype.kind in "iubfU":
            return array
    return np.fromiter(values, dtype=object, count=len(values))


def union(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Sorted ids of both."""
    return as_ids(sort_values(list(dict.fromkeys([*a.tolist(), *b.tolist()]))))


def positions(ids: NDArray[Any], among: NDArray[Any]) -> NDArray[np.int64]:
    """Where each id stands among others that hold it."""
    place = {value: i for i, value in enumerate(among.tolist())}
    return np.array([place[value] for value in ids.tolist()], dtype=np.int64)


def no_rows(layout: Layout) -> Rows:
    """No coded rows at all."""
    nothing = np.zeros(0, dtype=np.int32)
    return Rows(np.zeros((0, len(layout.n_values)), dtype=np.int32), nothing, nothing.astype(np.int64), None)


def statistics_from_counts(feature_counts: Any, label_counts: Any, tasks: Any, n_values: Any) -> Statistics:
    """Statistics from arrays of counts, checked; whole counts keep their type and, where nothing is cut, their place.

    Examples
    --------
    >>> counts = np.array([[[[3, 1]], [[0, 2]]]], dtype=np.uint8)
    >>> statistics_from_counts(counts, [[4, 2]], None, None).feature_counts.tolist()
    [[3, 1, 0, 2]]
    """
    features, labels = _checked_counts(feature_counts, "feature_counts"), _checked_counts(label_counts, "label_counts")
    if features.ndim != 4 or labels.shape != features.shape[:2]:
        raise ValueError(
            f"feature_counts has shape {features.shape} and label_counts {labels.shape}: (tasks, labels, features, "
            "values) and (tasks, labels) are needed"
        )
    n_tasks, n_labels, n_features, room = features.shape
    if min(features.shape) == 0:
        raise ValueError(f"feature_counts has shape {features.shape}: there is nothing to learn from")
    sizes = np.full(n_features, room) if n_values is None else np.asarray(n_values)
    if sizes.shape != (n_features,) or sizes.dtype.kind not in "iu" or not ((sizes >= 1) & (sizes <= room)).all():
        raise ValueError(f"n_values must hold a number from 1 to {room} for each of the {n_features} features")
    layout = Layout(n_labels, sizes)
    flat = features.reshape(n_tasks, -1)
    used = np.tile((np.arange(room) < sizes[:, None]).ravel(), n_labels)
    if not used.all():
        if flat[:, ~used].any():
            raise ValueError("feature_counts counts values past those that n_values allows")
        flat = flat[:, used]
    ids = np.arange(n_tasks) if tasks is None else as_ids(np.asarray(tasks).tolist())
    if ids.shape != (n_tasks,) or len(set(ids.tolist())) != n_tasks:
        raise ValueError(f"tasks must name each of the {n_tasks} tasks once")
    return Statistics(layout, ids, flat, labels)


def _checked_counts(given: Any, what: str) -> NDArray[Any]:
    """Counts as an array of integers or floats, none negative, in blocks so that nothing is copied."""
    counts = np.asarray(given)
    if counts.dtype.kind not in "iuf":
        raise ValueError(f"{what} holds {counts.dtype} values: counts are numbers")
    for start in range(0, len(counts) if counts.dtype.kind != "u" else 0, 1 << 16):
        block = counts[start : start + (1 << 16)]
        if not np.isfinite(block).all() or (block < 0).any():
            raise ValueError(f"{what} holds a negative number, NaN or infinity: counts are none of these")
    return counts


def count(rows: Rows, layout: Layout, tasks: NDArray[Any]) -> Statistics:
    """Count the labelled rows. O(rows · features) time, O(tasks · cells) memory."""
    if len(tasks) * layout.n_cells > MAX_CELLS:
        raise ValueError(
            f"{len(tasks):,} tasks times {layout.n_cells:,} counts each are too many to hold: fewer bins or "
            "categories, or fewer tasks at a time, are needed"
        )
    whole = rows.weights is None or bool((rows.weights == np.floor(rows.weights)).all())
    total = float(len(rows.labels) if rows.weights is None else rows.weights.sum())
    dtype = _whole_type(total) if whole else np.float64
    features = np.zeros((len(tasks), layout.n_cells), dtype=dtype)
    labels = np.zeros((len(tasks), layout.n_labels), dtype=dtype)
    weights = np.ones(1) if rows.weights is None else rows.weights
    _count(rows.codes, rows.labels, rows.task, weights, layout.offsets, features, labels)
    return Statistics(layout, tasks, features, labels)


@numba.njit(cache=True, nogil=True)
def _count(codes, labels, task, weights, offsets, features, label_counts):  # type: ignore[no-untyped-def]
    width = offsets[-1]
    same = len(weights) == 1
    for i in range(len(labels)):
        if labels[i] >= 0:
            label_counts[task[i], labels[i]] += weights[0 if same else i]
    for f in range(codes.shape[1]):
        for i in range(len(labels)):
            if labels[i] >= 0 and codes[i, f] >= 0:
                features[task[i], labels[i] * width + offsets[f] + codes[i, f]] += weights[0 if same else i]
