"""Counts of features and labels per task: all that the naive Bayes models need to know of labelled rows.

Statistics add up: those of two shards of rows, added, are those of both. Of a column of numbers they are three sums for
each label (see ``maths.conjugate``).

In the papers: Roy (2006), eq. 2.1–2.7, A.1–A.2.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.maths.conjugate import COUNT, GAUSSIAN, N_CELLS, NumberGroups, number_groups, third_cell
from kinfolk.tasks.columns import as_ids, sort_values
from kinfolk.tasks.schema import Number, Schema

# 4 GiB of 4-byte counts; beyond it a dense table of counts is the wrong tool.
MAX_CELLS = 1 << 30


class Layout:
    """Where the count of (label y, feature f, value x) stands in a flat row of cells.

    Cell y·W + offset_f + x, with W = Σ_f n_values_f the width of one label's part. Groups, the cells of one (y, f),
    follow each other in the same order. Columns of numbers come after all counts: those of label y and number j have
    the three cells from n_counts + 3(y·J + j) on, J being how many there are. ``order`` says where each column of the
    table stands among features with codes and, after them, columns of numbers.

    Attributes
    ----------
    offsets : array
        First cell of every feature within a label's part, and the width at the end.
    width, n_counts, n_cells : int
        Number of counts of one label, of counts of all labels, and of cells: all counts, then the sums of numbers.
    group_start : array
        First cell of every group of counts, and the number of counts at the end.
    families : array
        Family of every column of numbers, by the names of ``maths.conjugate``.
    """

    def __init__(
        self,
        n_labels: int,
        n_values: NDArray[np.int64],
        numbers: tuple[Number, ...] = (),
        order: NDArray[np.int64] | None = None,
    ) -> None:
        self.n_labels = n_labels
        self.n_values = np.asarray(n_values, dtype=np.int64)
        self.numbers = numbers
        self.order = np.arange(len(self.n_values) + len(numbers)) if order is None else order
        self.offsets = np.concatenate([[0], np.cumsum(self.n_values)]).astype(np.int64)
        self.width = int(self.offsets[-1])
        self.n_counts = n_labels * self.width
        self.n_cells = self.n_counts + n_labels * len(numbers) * N_CELLS
        starts = (np.arange(n_labels)[:, None] * self.width + self.offsets[:-1]).ravel()
        self.group_start = np.concatenate([starts, [self.n_counts]]).astype(np.int64)
        families = [GAUSSIAN if number.family == "gaussian" else COUNT for number in numbers]
        self.families = np.array(families, dtype=np.int64)

    @cached_property
    def number_groups(self) -> NumberGroups:
        """The groups of the columns of numbers, with their priors."""
        prior = np.array([number.prior for number in self.numbers], dtype=np.float64).reshape(-1, 4)
        return number_groups(self.n_counts, np.tile(self.families, self.n_labels), np.tile(prior, (self.n_labels, 1)))

    def sums_of_numbers(self, statistics: NDArray[Any]) -> NDArray[np.float64]:
        """The sums of numbers out of rows of cells (rows, labels, columns of numbers, 3)."""
        sums = statistics[:, self.n_counts :].astype(np.float64, copy=False)
        return sums.reshape(len(statistics), self.n_labels, len(self.numbers), N_CELLS)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Layout)
            and self.n_labels == other.n_labels
            and np.array_equal(self.n_values, other.n_values)
            and self.numbers == other.numbers
        )

    __hash__ = None  # type: ignore[assignment]


def layout_of(schema: Schema, n_labels: int) -> Layout:
    """Where the cells of a table's columns stand."""
    return Layout(n_labels, schema.n_values, schema.numbers, schema.order)


class Values(NamedTuple):
    """What rows hold: codes (−1 missing) of columns of categories or bins, and the columns of numbers (NaN missing).

    Numbers are as ``Number.standardised`` gives them; None where there are no such columns.
    """

    codes: NDArray[np.int32]
    numbers: NDArray[np.float64] | None


class Rows(NamedTuple):
    """Coded rows: feature codes (−1 missing), label codes (−1 unlabelled), task index and weight of each.

    ``numbers`` are columns of numbers beside the codes, as in :class:`Values`.
    """

    codes: NDArray[np.int32]
    labels: NDArray[np.int32]
    task: NDArray[np.int64]
    weights: NDArray[np.float64] | None
    numbers: NDArray[np.float64] | None = None

    @property
    def values(self) -> Values:
        """The rows without what is known about them."""
        return Values(self.codes, self.numbers)

    def take(self, keep: NDArray[Any]) -> Rows:
        """Some of the rows, by flags or places."""
        weights = None if self.weights is None else self.weights[keep]
        numbers = None if self.numbers is None else self.numbers[keep]
        return Rows(self.codes[keep], self.labels[keep], self.task[keep], weights, numbers)

    def moved(self, place: NDArray[np.int64]) -> Rows:
        """The same rows where task t is now called ``place[t]``."""
        return self._replace(task=place[self.task])

    def followed_by(self, more: Rows) -> Rows:
        """These rows, then others."""
        weights = None
        if self.weights is not None or more.weights is not None:
            both = [np.ones(len(r.labels)) if r.weights is None else r.weights for r in (self, more)]
            weights = np.concatenate(both)
        numbers = None
        if self.numbers is not None and more.numbers is not None:
            numbers = np.concatenate([self.numbers, more.numbers])
        return Rows(
            np.concatenate([self.codes, more.codes]),
            np.concatenate([self.labels, more.labels]),
            np.concatenate([self.task, more.task]),
            weights,
            numbers,
        )

    def described(self) -> NDArray[np.float64]:
        """What the rows hold and weigh, a column for each; missing numbers are equal to each other."""
        weights = np.ones(len(self.labels)) if self.weights is None else self.weights
        nothing = np.zeros((len(weights), 0))
        numbers = nothing if self.numbers is None else np.where(np.isnan(self.numbers), np.inf, self.numbers)
        return np.column_stack([self.codes.astype(np.float64), numbers, weights])


class Statistics(NamedTuple):
    """Feature counts (tasks, cells of ``layout``) and label counts (tasks, labels), a row per id in ``tasks``.

    Whole counts are held as integers, fractional ones (from sample weights) as floats; so are all cells where there are
    columns of numbers.
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
        wide = _whole_type(float(self.label_counts.sum()) + float(other.label_counts.sum()))
        dtype = np.result_type(self.feature_counts, other.feature_counts, wide)
        features = np.zeros((len(tasks), self.layout.n_cells), dtype=dtype)
        dtype = np.result_type(self.label_counts, other.label_counts, wide) if self.layout.numbers else dtype
        labels = np.zeros((len(tasks), self.layout.n_labels), dtype=dtype)
        for part in (self, other):
            place = positions(part.tasks, tasks)
            features[place] += part.feature_counts
            labels[place] += part.label_counts
        return Statistics(self.layout, tasks, features, labels)

    def widened(self) -> Statistics:
        """The same counts in a type that their sums fit in."""
        features, labels = self._wide_types()
        return self._replace(
            feature_counts=self.feature_counts.astype(features, copy=False),
            label_counts=self.label_counts.astype(labels, copy=False),
        )

    def _wide_types(self) -> tuple[Any, Any]:
        """Types that the sums of all tasks fit in; label counts stay whole beside numbers."""
        wide = _whole_type(float(self.label_counts.sum()))
        features = np.result_type(self.feature_counts, wide)
        return features, np.result_type(self.label_counts, wide) if self.layout.numbers else features

    @property
    def whole(self) -> bool:
        """Whether all counts are whole numbers, in whatever type they are held."""
        counts = self.label_counts if self.layout.numbers else self.feature_counts
        return counts.dtype.kind in "iu"

    def pooled(self) -> Statistics:
        """All tasks as one."""
        features, labels = self.feature_counts.sum(axis=0), self.label_counts.sum(axis=0)
        of_features, of_labels = self._wide_types()
        return Statistics(
            self.layout, self.tasks[:1], features[None].astype(of_features), labels[None].astype(of_labels)
        )


def _whole_type(total: float) -> Any:
    """An integer type that no sum of counts leaves; floats where even 64 bits are too few."""
    return np.int32 if total < 2**31 else np.int64 if total < 2**62 else np.float64


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
    numbers = np.zeros((0, len(layout.numbers))) if layout.numbers else None
    return Rows(np.zeros((0, len(layout.n_values)), dtype=np.int32), nothing, nothing.astype(np.int64), None, numbers)


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
    _check_sums(features, labels, ids)
    return Statistics(layout, ids, flat, labels)


def _check_sums(features: NDArray[Any], labels: NDArray[Any], tasks: NDArray[Any]) -> None:
    """Refuse a feature that was seen more often than its label."""
    task, label, feature = _seen_too_often(features, labels)
    if task >= 0:
        seen, rows = float(features[task, label, feature].sum(dtype=np.float64)), float(labels[task, label])
        raise ValueError(
            f"feature {feature} of task {tasks.tolist()[task]!r} was seen {seen:g} times with label {label}, which has "
            f"{rows:g} rows: counts of a feature cannot exceed the label's"
        )


@compiled
def _seen_too_often(features, labels):  # type: ignore[no-untyped-def]
    """Task, label and feature of the first group of counts that exceeds its label's, or −1 for each. O(cells)."""
    for u in range(features.shape[0]):
        for y in range(features.shape[1]):
            # Weights that were added up in another order differ by rounding.
            most = labels[u, y] + 1e-6 * (1.0 + labels[u, y])
            for f in range(features.shape[2]):
                seen = features[u, y, f, 0] * 0
                for x in range(features.shape[3]):
                    seen += features[u, y, f, x]
                if seen > most:
                    return u, y, f
    return -1, -1, -1


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
    features = np.zeros((len(tasks), layout.n_cells), dtype=np.float64 if layout.numbers else dtype)
    labels = np.zeros((len(tasks), layout.n_labels), dtype=dtype)
    weights = np.ones(1) if rows.weights is None else rows.weights
    _count(np.asfortranarray(rows.codes), rows.labels, rows.task, weights, layout.offsets, features, labels)
    if rows.numbers is not None:
        add_numbers(features, rows, layout, rows.labels, weights)
    return Statistics(layout, tasks, features, labels)


def add_expected(features: NDArray[np.float64], rows: Rows, layout: Layout, probability: NDArray[np.float64]) -> None:
    """Add rows to tasks' cells, under each label in part, by its probability (rows, labels)."""
    weights = np.ones(len(rows.labels)) if rows.weights is None else rows.weights
    nobody, codes = np.zeros((len(features), layout.n_labels)), np.asfortranarray(rows.codes)
    for y in range(layout.n_labels):
        labels = np.full(len(rows.labels), y, dtype=np.int32)
        _count(codes, labels, rows.task, probability[:, y] * weights, layout.offsets, features, nobody)
        if rows.numbers is not None:
            add_numbers(features, rows, layout, labels, probability[:, y] * weights)


def add_numbers(
    features: NDArray[np.float64],
    rows: Rows,
    layout: Layout,
    labels: NDArray[np.int32],
    weights: NDArray[np.float64],
) -> None:
    """Add the numbers of labelled rows to their tasks' sums, smallest first: the order of rows changes no last bit."""
    assert rows.numbers is not None
    for j, family in enumerate(layout.families.tolist()):
        order = np.argsort(rows.numbers[:, j], kind="stable")
        first = layout.n_counts + N_CELLS * j
        step = N_CELLS * len(layout.families)
        _add_numbers(rows.numbers[:, j], order, labels, rows.task, weights, family, first, step, features)


@compiled
def _add_numbers(numbers, order, labels, task, weights, family, first, step, features):  # type: ignore[no-untyped-def]
    same = len(weights) == 1
    for i in order:
        x, y = numbers[i], labels[i]
        if y >= 0 and not np.isnan(x):
            cell, weight = first + y * step, weights[0 if same else i]
            features[task[i], cell] += weight
            features[task[i], cell + 1] += weight * x
            features[task[i], cell + 2] += weight * third_cell(x, family)


@compiled
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
