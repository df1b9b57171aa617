"""Trees grown one after another, each to what those before it leave (Friedman 2001; second order, Chen, Guestrin 2016).

A tree is a heap: node k has the children 2k + 1 and 2k + 2, all leaves are equally deep, and a node that nothing is
gained by dividing sends every row to the left. Columns come as bins of few values, so that one pass over the rows finds
the best cut of every node of a level. Nothing is drawn: the same rows grow the same trees. scikit-learn's histogram
boosting does the same, but has no random intercepts beside its trees, and keeps these in private fields, which no file
should depend on.
"""

from __future__ import annotations

from math import exp, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled
from kinfolk.transfer.trees.crossed import Groups, settle
from kinfolk.transfer.trees.growing import Cells, grow

SQUARED, LOGISTIC, SOFTMAX = 0, 1, 2
# Steps towards effects of groups before the first tree, and sweeps over groupings in each of these and after each tree.
_FIRST_STEPS, _SWEEPS, _SETTLED = 40, 5, 1e-4


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

    ``loss`` is that of the rows not learnt from after every round, before the first too; ``effects`` is what each group
    has beside the trees and the mean of all, which comes last, where groupings were given.
    """

    column: NDArray[np.int32]
    bin: NDArray[np.int32]
    leaf: Floats
    loss: Floats
    effects: Floats


def boost(
    cells: Cells,
    target: Floats,
    offset: Floats,
    weights: Floats,
    kind: int,
    growth: Growth,
    most_rounds: int,
    groups: Groups | None = None,
) -> Grown:
    """Grow trees on rows of positive weight; those of weight below zero are what the loss is measured on.

    Parameters
    ----------
    cells : Cells
        The rows in bins.
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
    groups : Groups, optional
        Of numbers, or of two labels: what each group has beside the trees is learnt anew after every round, as crossed
        random intercepts given the trees so far (Sigrist 2022), so that trees do not explain what is a group's own. Of
        labels, by penalised quasi-likelihood (Breslow and Clayton 1993).

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
    effects = np.zeros(0 if groups is None else groups.first[-1] + 1)
    groups = Groups.of([], len(target)) if groups is None else groups
    rounds = _boost(
        cells, target, offset.copy(), weights, kind, column, cut, leaf, loss, growth.rate, growth.ridge, growth.least,
        growth.patience, groups, effects,
    )  # fmt: skip
    return Grown(column[:rounds], cut[:rounds], leaf[:rounds], loss[: rounds + 1], effects)


@compiled
def _boost(  # type: ignore[no-untyped-def]
    cells,
    target,
    score,
    weights,
    kind,
    column,
    cut,
    leaf,
    loss,
    rate,
    ridge,
    least,
    patience,
    groups,
    effects,
):
    n_rows, n_outputs = score.shape
    measured = False
    for i in range(n_rows):
        measured = measured or weights[i] < 0.0
    gradient, curvature = np.empty((n_outputs, n_rows)), np.empty((n_outputs, n_rows))
    place = np.empty(n_rows, np.int32)
    sums = np.empty((2, max(leaf.shape[2] // 2, 1), cells.first[-1], 2))
    n_grouped, n_groupings = n_rows if len(effects) else 0, groups.place.shape[1]
    # Beside groups' effects, what is known of rows; working numbers, their weights, and what is left of them.
    fixed, work, room = score[:n_grouped, 0].copy(), np.empty((4, n_grouped)), np.empty((2, max(len(effects), 1)))
    variances = np.zeros(n_groupings + 1)
    for _ in range(_FIRST_STEPS if n_grouped else 0):
        before = variances.sum() + effects[-1]
        _learn_effects(target, score, weights, kind, groups, fixed, effects, variances, work, room)
        if abs(variances.sum() + effects[-1] - before) <= _SETTLED * variances.sum():
            break
    best, loss[0] = 0, _measure(target, score, weights, kind)
    for t in range(len(column)):
        _derive(target, score, weights, kind, gradient, curvature)
        for c in range(n_outputs):
            grow(cells, gradient[c], curvature[c], column[t, c], cut[t, c], leaf[t, c], place, sums[0], sums[1], rate,
                 ridge, least)  # fmt: skip
            for i in range(n_rows):
                score[i, c] += leaf[t, c, place[i]]
            for i in range(n_grouped):
                fixed[i] += leaf[t, c, place[i]]
        if n_grouped:
            _learn_effects(target, score, weights, kind, groups, fixed, effects, variances, work, room)
        if measured:
            loss[t + 1] = _measure(target, score, weights, kind)
            if loss[t + 1] < loss[best]:
                best = t + 1
            elif t + 1 - best >= patience:
                return t + 1
    return len(column)


@compiled
def _learn_effects(target, score, weights, kind, groups, fixed, effects, variances, work, room):  # type: ignore[no-untyped-def]
    """What groups have beside the trees: of labels, by one step of Newton's from where they are."""
    number, weight, left_over, rest = work
    for i in range(len(fixed)):
        number[i], weight[i] = target[i], weights[i]
        if kind == 1:
            p = 1.0 / (1.0 + exp(-score[i, 0]))
            curve = max(p * (1.0 - p), 1e-6)
            number[i] = score[i, 0] + ((target[i] - p) / curve if weights[i] > 0.0 else 0.0)
            weight[i] *= curve
        left_over[i] = number[i] - fixed[i]
    settle(groups, left_over, weight, effects, variances, rest, room, _SWEEPS, _SETTLED, kind == 1)
    for i in range(len(fixed)):
        score[i, 0] = number[i] - rest[i]


@compiled
def _derive(target, score, weights, kind, gradient, curvature):  # type: ignore[no-untyped-def]
    """Slope and curvature of the loss of every row that is learnt from; zero for the others."""
    n_rows, n_outputs = score.shape
    for i in range(n_rows):
        w = max(weights[i], 0.0)
        if kind == 0:
            gradient[0, i], curvature[0, i] = w * (score[i, 0] - target[i]), w
        elif kind == 1:
            p = 1.0 / (1.0 + exp(-score[i, 0]))
            gradient[0, i], curvature[0, i] = w * (p - target[i]), w * max(p * (1.0 - p), 1e-12)
        else:
            top = score[i].max()
            total = 0.0
            for c in range(n_outputs):
                total += exp(score[i, c] - top)
            for c in range(n_outputs):
                p = exp(score[i, c] - top) / total
                gradient[c, i] = w * (p - (target[i] == c))
                curvature[c, i] = w * max(p * (1.0 - p), 1e-12)


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
