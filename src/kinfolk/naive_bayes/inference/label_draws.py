"""Gibbs draws of the labels of unlabelled rows (thesis eq. A.45–A.47, in the corrected form).

Row i of task u, whose cluster is z, takes label y with probability proportional to

    (m_{u,y} + α_y) ∏_f (n_{z,y,f,x} + β_{y,f,x}) / Σ_x (n_{z,y,f,x} + β_{y,f,x}),

all counts without the row. Label rates belong to the task, never to the cluster, and the denominator is the number of
rows in which the feature was seen, not the number of rows. A column of numbers adds its predictive density as a factor.
Where every task is a noisy copy of a prototype it is a cluster of its own, and β is K θ̄.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.maths.conjugate import N_CELLS, NumberGroups, log_marginal_of_number, prior_of, third_cell
from kinfolk.maths.draws import draw_label
from kinfolk.maths.rising import rising
from kinfolk.partition.gibbs import Seating
from kinfolk.tasks.statistics import Layout, Rows


class LabelledRows(NamedTuple):
    """Rows with the labels that they have at the moment, −1 where none was drawn yet; labels change in place."""

    codes: NDArray[np.int32]
    labels: NDArray[np.int32]
    task: NDArray[np.int64]
    weights: NDArray[np.float64]
    numbers: NDArray[np.float64]


class TaskCounts(NamedTuple):
    """Counts of labels and of cells of every task, its cluster, and the labels' prior; counts change in place."""

    label_counts: NDArray[Any]
    counts: NDArray[Any]
    seat: NDArray[np.int64]
    label_prior: NDArray[np.float64]


class ClusterRates(NamedTuple):
    """Counts of every cluster, which change in place, and the pseudo-counts of cells and of groups of cells."""

    counts: NDArray[Any]
    prior: NDArray[np.float64]
    group_prior: NDArray[np.float64]
    group_start: NDArray[np.int64]
    offsets: NDArray[np.int64]
    numbers: NumberGroups


def unlabelled_rows(rows: Rows) -> LabelledRows:
    """Rows whose labels are to be drawn, none of which has one yet."""
    n = len(rows.labels)
    return LabelledRows(
        rows.codes,
        np.full(n, -1, dtype=np.int32),
        rows.task,
        np.ones(n) if rows.weights is None else rows.weights,
        np.zeros((n, 0)) if rows.numbers is None else np.ascontiguousarray(rows.numbers),
    )


class LabelDraws(NamedTuple):
    """Unlabelled rows with the labels that they have at the moment, counted in their tasks."""

    rows: LabelledRows
    label_counts: NDArray[np.generic]
    label_prior: NDArray[np.float64]
    layout: Layout

    def initialise(self, seating: Seating, uniforms: NDArray[np.float64]) -> None:
        """Draw every label from its task's rates (Pólya's urn) and count it in the task; seats must follow."""
        tasks = TaskCounts(self.label_counts, seating.counts, seating.seat, self.label_prior)
        _initialise(self.rows, tasks, self.layout.offsets, seating.product.numbers, uniforms)

    def sweep(self, seating: Seating, uniforms: NDArray[np.float64], temper: float = 1.0) -> NDArray[np.float64]:
        """Redraw every label once; returns the probabilities that each was drawn with (rows, labels)."""
        product = seating.product
        tasks = TaskCounts(self.label_counts, seating.counts, seating.seat, self.label_prior)
        rates = ClusterRates(
            seating.cluster_counts,
            product.prior,
            product.group_prior,
            product.group_start,
            self.layout.offsets,
            product.numbers,
        )
        probability = redraw_labels(self.rows, tasks, rates, temper, uniforms)
        seating.refresh()
        return probability


def redraw_labels(
    rows: LabelledRows, tasks: TaskCounts, rates: ClusterRates, power: float, uniforms: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Redraw every label once, or draw it first; returns the probabilities that each was drawn with (rows, labels)."""
    probability = np.empty((len(rows.labels), len(tasks.label_prior)))
    _redraw(rows, tasks, rates, power, uniforms, probability)
    return probability


@compiled(inline="always")
def log_grow(base, weight):  # type: ignore[no-untyped-def]
    """Log of Γ(base + weight)/Γ(base); for a plain row, weight one, just log base."""
    if weight == 1.0:
        return np.log(base)
    return rising(base, weight)


@compiled
def _count_numbers(cells, x, y, step, numbers):  # type: ignore[no-untyped-def]
    """Add a row's numbers to the sums of a label ``step`` times."""
    for j in range(len(x)):
        if not np.isnan(x[j]):
            g = y * len(x) + j
            c = numbers.first + N_CELLS * g
            cells[c] += step
            cells[c + 1] += step * x[j]
            cells[c + 2] += step * third_cell(x[j], numbers.family[g])


@compiled
def _fit_of_numbers(cells, x, y, weight, numbers):  # type: ignore[no-untyped-def]
    """Log density of a row's numbers under a label, given the sums without the row."""
    fit = 0.0
    for j in range(len(x)):
        if not np.isnan(x[j]):
            g = y * len(x) + j
            c, family, prior = numbers.first + N_CELLS * g, numbers.family[g], prior_of(numbers, g)
            n, total, third = cells[c], cells[c + 1], cells[c + 2]
            more = third + weight * third_cell(x[j], family)
            fit += log_marginal_of_number(n + weight, total + weight * x[j], more, family, prior)
            fit -= log_marginal_of_number(n, total, third, family, prior)
    return fit


@compiled
def _initialise(rows, tasks, offsets, numbers, uniforms):  # type: ignore[no-untyped-def]
    width = offsets[-1]
    p = np.empty(len(tasks.label_prior))
    for i in range(len(rows.labels)):
        u, w = rows.task[i], rows.weights[i]
        for y in range(len(p)):
            p[y] = log_grow(tasks.label_counts[u, y] + tasks.label_prior[y], w)
        y = draw_label(p, uniforms[i])
        rows.labels[i] = y
        tasks.label_counts[u, y] += w
        for f in range(rows.codes.shape[1]):
            if rows.codes[i, f] >= 0:
                tasks.counts[u, y * width + offsets[f] + rows.codes[i, f]] += w
        _count_numbers(tasks.counts[u], rows.numbers[i], y, w, numbers)


@compiled
def _redraw(rows, tasks, rates, power, uniforms, probability):  # type: ignore[no-untyped-def]
    width = rates.offsets[-1]
    n_features = rows.codes.shape[1]
    n_labels = len(tasks.label_prior)
    # Totals per (cluster, label, feature), kept up to date row by row.
    totals = np.zeros((len(rates.counts), n_labels * n_features))
    for k in range(len(rates.counts)):
        for g in range(n_labels * n_features):
            for c in range(rates.group_start[g], rates.group_start[g + 1]):
                totals[k, g] += rates.counts[k, c]
    for i in range(len(rows.labels)):
        u, k, w = rows.task[i], tasks.seat[rows.task[i]], rows.weights[i]
        for turn in range(2):
            # First take the row out, if it has a label, then, its label drawn, put it back.
            step = -w if turn == 0 else w
            y = rows.labels[i]
            if y >= 0:
                tasks.label_counts[u, y] += step
                for f in range(n_features):
                    if rows.codes[i, f] >= 0:
                        c = y * width + rates.offsets[f] + rows.codes[i, f]
                        tasks.counts[u, c] += step
                        rates.counts[k, c] += step
                        totals[k, y * n_features + f] += step
                _count_numbers(tasks.counts[u], rows.numbers[i], y, step, rates.numbers)
                _count_numbers(rates.counts[k], rows.numbers[i], y, step, rates.numbers)
            if turn == 0:
                for y in range(n_labels):
                    fit = 0.0
                    for f in range(n_features):
                        if rows.codes[i, f] >= 0:
                            c = y * width + rates.offsets[f] + rows.codes[i, f]
                            g = y * n_features + f
                            fit += log_grow(rates.counts[k, c] + rates.prior[c], w)
                            fit -= log_grow(totals[k, g] + rates.group_prior[g], w)
                    fit += _fit_of_numbers(rates.counts[k], rows.numbers[i], y, w, rates.numbers)
                    probability[i, y] = log_grow(tasks.label_counts[u, y] + tasks.label_prior[y], w) + power * fit
                rows.labels[i] = draw_label(probability[i], uniforms[i])
