"""Gibbs draws of the labels of unlabelled rows (thesis eq. A.45–A.47, in the corrected form).

Row i of task u, whose cluster is z, takes label y with probability proportional to

    (m_{u,y} + α_y) ∏_f (n_{z,y,f,x} + β_{y,f,x}) / Σ_x (n_{z,y,f,x} + β_{y,f,x}),

all counts without the row. Label rates belong to the task, never to the cluster, and the denominator is the number of
rows in which the feature was seen, not the number of rows. A column of numbers adds its predictive density as a factor.
"""

from __future__ import annotations

from math import lgamma
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.maths.conjugate import N_CELLS, log_marginal_of_number, prior_of, third_cell
from kinfolk.partition.gibbs import Seating
from kinfolk.tasks.statistics import Layout, Rows


class LabelDraws(NamedTuple):
    """Unlabelled rows with the labels that they have at the moment, counted in their tasks."""

    rows: Rows
    label_counts: NDArray[np.generic]
    label_prior: NDArray[np.float64]
    layout: Layout

    def initialise(self, seating: Seating, uniforms: NDArray[np.float64]) -> None:
        """Draw every label from its task's rates (Pólya's urn) and count it in the task; seats must follow."""
        _initialise(
            self.rows.codes,
            self.rows.labels,
            self.rows.task,
            _weights(self.rows),
            self.label_counts,
            self.label_prior,
            self.layout.offsets,
            _numbers(self.rows),
            seating.product.numbers,
            seating.counts,
            uniforms,
        )

    def sweep(self, seating: Seating, uniforms: NDArray[np.float64], temper: float = 1.0) -> NDArray[np.float64]:
        """Redraw every label once; returns the probabilities that each was drawn with (rows, labels)."""
        probability = np.empty((len(self.rows.labels), self.layout.n_labels))
        _redraw(
            self.rows.codes,
            self.rows.labels,
            self.rows.task,
            _weights(self.rows),
            self.label_counts,
            self.label_prior,
            self.layout.offsets,
            _numbers(self.rows),
            seating.seat,
            seating.counts,
            seating.cluster_counts,
            seating.product,
            temper,
            uniforms,
            probability,
        )
        seating.refresh()
        return probability


def _weights(rows: Rows) -> NDArray[np.float64]:
    return np.ones(len(rows.labels)) if rows.weights is None else rows.weights


def _numbers(rows: Rows) -> NDArray[np.float64]:
    return np.zeros((len(rows.labels), 0)) if rows.numbers is None else np.ascontiguousarray(rows.numbers)


@compiled(inline="always")
def log_grow(base, weight):  # type: ignore[no-untyped-def]
    """Log of Γ(base + weight)/Γ(base); for a plain row, weight one, just log base."""
    if weight == 1.0:
        return np.log(base)
    return lgamma(base + weight) - lgamma(base)


@compiled
def draw_label(log_p, uniform):  # type: ignore[no-untyped-def]
    """Normalise log probabilities in place to probabilities and draw an index."""
    highest = np.max(log_p)
    total = 0.0
    for y in range(len(log_p)):
        log_p[y] = np.exp(log_p[y] - highest)
        total += log_p[y]
    left = uniform
    chosen = len(log_p) - 1
    for y in range(len(log_p)):
        log_p[y] /= total
        left -= log_p[y]
        if left < 0.0 and chosen == len(log_p) - 1 and log_p[y] > 0.0:
            chosen = y
            left = np.inf
    return chosen


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
def _initialise(  # type: ignore[no-untyped-def]
    codes, labels, task, weights, label_counts, label_prior, offsets, number_values, numbers, counts, uniforms
):
    width = offsets[-1]
    p = np.empty(len(label_prior))
    for i in range(len(labels)):
        u = task[i]
        for y in range(len(p)):
            p[y] = log_grow(label_counts[u, y] + label_prior[y], weights[i])
        y = draw_label(p, uniforms[i])
        labels[i] = y
        label_counts[u, y] += weights[i]
        for f in range(codes.shape[1]):
            if codes[i, f] >= 0:
                counts[u, y * width + offsets[f] + codes[i, f]] += weights[i]
        _count_numbers(counts[u], number_values[i], y, weights[i], numbers)


@compiled
def _redraw(  # type: ignore[no-untyped-def]
    codes,
    labels,
    task,
    weights,
    label_counts,
    label_prior,
    offsets,
    number_values,
    seat,
    counts,
    cluster_counts,
    product,
    temper,
    uniforms,
    probability,
):
    width = offsets[-1]
    n_features = codes.shape[1]
    n_labels = len(label_prior)
    # Totals per (cluster, label, feature), kept up to date row by row.
    totals = np.zeros((len(cluster_counts), n_labels * n_features))
    for k in range(len(cluster_counts)):
        for g in range(n_labels * n_features):
            for c in range(product.group_start[g], product.group_start[g + 1]):
                totals[k, g] += cluster_counts[k, c]
    for i in range(len(labels)):
        u, k, w = task[i], seat[task[i]], weights[i]
        for turn in range(2):
            # First take the row out, then, its label drawn, put it back.
            step = -w if turn == 0 else w
            y = labels[i]
            label_counts[u, y] += step
            for f in range(n_features):
                if codes[i, f] >= 0:
                    c = y * width + offsets[f] + codes[i, f]
                    counts[u, c] += step
                    cluster_counts[k, c] += step
                    totals[k, y * n_features + f] += step
            _count_numbers(counts[u], number_values[i], y, step, product.numbers)
            _count_numbers(cluster_counts[k], number_values[i], y, step, product.numbers)
            if turn == 0:
                for y in range(n_labels):
                    fit = 0.0
                    for f in range(n_features):
                        if codes[i, f] >= 0:
                            c = y * width + offsets[f] + codes[i, f]
                            g = y * n_features + f
                            fit += log_grow(cluster_counts[k, c] + product.prior[c], w)
                            fit -= log_grow(totals[k, g] + product.group_prior[g], w)
                    fit += _fit_of_numbers(cluster_counts[k], number_values[i], y, w, product.numbers)
                    probability[i, y] = log_grow(label_counts[u, y] + label_prior[y], w) + temper * fit
                labels[i] = draw_label(probability[i], uniforms[i])
