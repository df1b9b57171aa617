"""Trees grown one after another, each to what those before it leave (Friedman 2001; second order, Chen, Guestrin 2016).

A tree is a heap: node k has the children 2k + 1 and 2k + 2, all leaves are equally deep, and a node that nothing is
gained by dividing sends every row to the left. Columns come as bins of few values, so that one pass over the rows finds
the best cut of every node of a level. Nothing is drawn: the same rows grow the same trees. scikit-learn's histogram
boosting does the same, but takes no offset for each row, which the effect of its task is here, and keeps its trees in
private fields, which no file should depend on.
"""

from __future__ import annotations

from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled
from kinfolk.transfer.trees.means import draw_means

SQUARED, LOGISTIC, SOFTMAX = 0, 1, 2


class Growth(NamedTuple):
    """How trees grow: their depth, how far each goes, the pull of leaves to zero, and what a leaf needs at least.

    ``ridge`` and ``least`` are in units of curvature: rows, in a regression; about four rows for one, with labels.
    """

    depth: int = 3
    rate: float = 0.1
    ridge: float = 10.0
    least: float = 3.0
    most_trees: int = 200
    patience: int = 10


class Grown(NamedTuple):
    """Trees (rounds, outputs): the column and the bin that every node divides by, the value of every leaf.

    ``loss`` is that of the rows not learnt from after every round, before the first too; ``of_tasks`` is what each task
    has beside the trees, and last what a new one has, where tasks were given.
    """

    column: NDArray[np.int32]
    bin: NDArray[np.int32]
    leaf: Floats
    loss: Floats
    of_tasks: Floats


def boost(
    bins: NDArray[np.uint8],
    target: Floats,
    offset: Floats,
    weights: Floats,
    kind: int,
    growth: Growth,
    most_rounds: int,
    task: NDArray[np.int64] | None = None,
    n_tasks: int = 0,
) -> Grown:
    """Grow trees on rows of positive weight; those of weight below zero are what the loss is measured on.

    Parameters
    ----------
    bins : ndarray of shape (n_rows, n_columns)
    target : ndarray of shape (n_rows,)
        Numbers; or 0 and 1; or places among the labels.
    offset : ndarray of shape (n_rows, n_outputs)
        What is known before the first tree, in units of the linear predictor: one output, or one for each label.
    weights : ndarray of shape (n_rows,)
        How much a row counts; of negative ones the rows are not learnt from, and count in the loss.
    kind : int
        ``SQUARED``, ``LOGISTIC`` or ``SOFTMAX``.
    growth : Growth
    most_rounds : int
        Rounds at most; where there are rows to measure the loss on, fewer if it has not fallen for a while.
    task : ndarray of shape (n_rows,), optional
        Places of tasks, with numbers: what each has beside the trees is learnt anew after every round, as a random
        intercept given the trees so far (Sigrist 2022), so that trees do not explain what is a task's own.
    n_tasks : int

    Returns
    -------
    Grown
    """
    n_outputs = offset.shape[1]
    nodes, leaves = 2**growth.depth - 1, 2**growth.depth
    column = np.zeros((most_rounds, n_outputs, nodes), dtype=np.int32)
    cut = np.full((most_rounds, n_outputs, nodes), 255, dtype=np.int32)
    leaf = np.zeros((most_rounds, n_outputs, leaves))
    loss = np.zeros(most_rounds + 1)
    n_bins = int(bins.max(initial=0)) + 1
    of_tasks = np.zeros(0 if task is None else n_tasks + 1)
    rounds = _boost(
        np.ascontiguousarray(bins), target, offset.copy(), weights, kind, column, cut, leaf, loss, n_bins,
        growth.depth, growth.rate, growth.ridge, growth.least, growth.patience,
        np.zeros(0, dtype=np.int64) if task is None else task, of_tasks,
    )  # fmt: skip
    return Grown(column[:rounds], cut[:rounds], leaf[:rounds], loss[: rounds + 1], of_tasks)


@compiled
def _boost(  # type: ignore[no-untyped-def]
    bins,
    target,
    score,
    weights,
    kind,
    column,
    cut,
    leaf,
    loss,
    n_bins,
    depth,
    rate,
    ridge,
    least,
    patience,
    task,
    of_tasks,
):
    n_rows, n_outputs = score.shape
    measured = False
    for i in range(n_rows):
        measured = measured or weights[i] < 0.0
    gradient, curvature = np.empty((n_rows, n_outputs)), np.empty((n_rows, n_outputs))
    place = np.empty(n_rows, np.int32)
    counts, left_over = np.empty(len(of_tasks)), np.zeros(n_rows if len(of_tasks) else 0)
    for i in range(len(left_over)):
        left_over[i] = target[i] - score[i, 0]
    if len(of_tasks):
        _settle(target, score, weights, task, left_over, counts, of_tasks)
    best, loss[0] = 0, _measure(target, score, weights, kind)
    for t in range(len(column)):
        _derive(target, score, weights, kind, gradient, curvature)
        for c in range(n_outputs):
            _grow(bins, gradient[:, c], curvature[:, c], column[t, c], cut[t, c], leaf[t, c], place, n_bins, depth,
                  rate, ridge, least)  # fmt: skip
            for i in range(n_rows):
                score[i, c] += leaf[t, c, place[i]]
            for i in range(len(left_over)):
                left_over[i] -= leaf[t, c, place[i]]
        if len(of_tasks):
            _settle(target, score, weights, task, left_over, counts, of_tasks)
        if measured:
            loss[t + 1] = _measure(target, score, weights, kind)
            if loss[t + 1] < loss[best]:
                best = t + 1
            elif t + 1 - best >= patience:
                return t + 1
    return len(column)


@compiled
def _settle(target, score, weights, task, left_over, counts, of_tasks):  # type: ignore[no-untyped-def]
    """What tasks have beside the trees, given what these leave of every row."""
    draw_means(task, left_over, weights, counts, of_tasks)
    for i in range(len(left_over)):
        score[i, 0] = target[i] - left_over[i] + of_tasks[task[i]]


@compiled
def _derive(target, score, weights, kind, gradient, curvature):  # type: ignore[no-untyped-def]
    """Slope and curvature of the loss of every row that is learnt from; zero for the others."""
    n_rows, n_outputs = score.shape
    for i in range(n_rows):
        w = max(weights[i], 0.0)
        if kind == 0:
            gradient[i, 0], curvature[i, 0] = w * (score[i, 0] - target[i]), w
        elif kind == 1:
            p = 1.0 / (1.0 + exp(-score[i, 0]))
            gradient[i, 0], curvature[i, 0] = w * (p - target[i]), w * max(p * (1.0 - p), 1e-12)
        else:
            top = score[i].max()
            total = 0.0
            for c in range(n_outputs):
                total += exp(score[i, c] - top)
            for c in range(n_outputs):
                p = exp(score[i, c] - top) / total
                gradient[i, c] = w * (p - (target[i] == c))
                curvature[i, c] = w * max(p * (1.0 - p), 1e-12)


@compiled
def _measure(target, score, weights, kind):  # type: ignore[no-untyped-def]
    """Loss of the rows that are not learnt from."""
    n_rows, n_outputs = score.shape
    total = 0.0
    for i in range(n_rows):
        if weights[i] >= 0.0:
            continue
        if kind == 0:
            total -= weights[i] * (score[i, 0] - target[i]) ** 2
        elif kind == 1:
            z = score[i, 0] if target[i] == 0.0 else -score[i, 0]
            total -= weights[i] * (max(z, 0.0) + log(1.0 + exp(-abs(z))))
        else:
            top = score[i].max()
            sum_of = 0.0
            for c in range(n_outputs):
                sum_of += exp(score[i, c] - top)
            total -= weights[i] * (top + log(sum_of) - score[i, int(target[i])])
    return total


@compiled
def _grow(bins, gradient, curvature, column, cut, leaf, place, n_bins, depth, rate, ridge, least):  # type: ignore[no-untyped-def]
    """Grow one tree, level by level; ``place`` becomes the leaf of every row."""
    n_rows, n_columns = bins.shape
    place[:] = 0
    for level in range(depth):
        n_nodes, first = 1 << level, (1 << level) - 1
        slope, curve = np.zeros((n_nodes, n_columns, n_bins)), np.zeros((n_nodes, n_columns, n_bins))
        for i in range(n_rows):
            if curvature[i] > 0.0:
                k = place[i]
                for j in range(n_columns):
                    slope[k, j, bins[i, j]] += gradient[i]
                    curve[k, j, bins[i, j]] += curvature[i]
        for k in range(n_nodes):
            whole, mass = slope[k, 0].sum(), curve[k, 0].sum()
            most = 1e-9 + whole**2 / (mass + ridge)
            for j in range(n_columns):
                left, left_mass = 0.0, 0.0
                for b in range(n_bins - 1):
                    left += slope[k, j, b]
                    left_mass += curve[k, j, b]
                    right, right_mass = whole - left, mass - left_mass
                    if left_mass < least or right_mass < least:
                        continue
                    gain = left**2 / (left_mass + ridge) + right**2 / (right_mass + ridge)
                    if gain > most * (1.0 + 1e-12):
                        most = gain
                        column[first + k], cut[first + k] = j, b
        for i in range(n_rows):
            k = place[i]
            place[i] = 2 * k + (bins[i, column[first + k]] > cut[first + k])
    whole_of, mass_of = np.zeros(len(leaf)), np.zeros(len(leaf))
    for i in range(n_rows):
        whole_of[place[i]] += gradient[i]
        mass_of[place[i]] += curvature[i]
    for k in range(len(leaf)):
        leaf[k] = -rate * whole_of[k] / (mass_of[k] + ridge)
