"""Boosted trees learnt from rows: effects of rows held out of them, the number of rounds, and the trees."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.transfer.trees.boosting import LOGISTIC, SOFTMAX, SQUARED, Growth, boost
from kinfolk.transfer.trees.effects import Effects, label_effects, number_effects, rates_of
from kinfolk.transfer.trees.forest import ABOVE, BELOW, Forest, seen_by_trees

_N_PARTS = 5
# Parts that the number of rounds is chosen on are fewer where rows are many.
_ENOUGH_ROWS = 5_000
# From so many rows on, deeper trees are tried on these parts too.
_MANY_ROWS, _DEEPER = 20_000, 5
_MOST_CUTS = 47


def learn_forest(
    ordinals: Floats,
    place: NDArray[np.int64],
    target: NDArray[Any],
    weights: Floats,
    *,
    n_tasks: int,
    n_labels: int,
    n_levels: dict[int, int],
    seed: int,
    growth: Growth = Growth(),  # noqa: B008 - a frozen value
) -> Forest:
    """Learn trees from rows that all count.

    Parameters
    ----------
    ordinals : ndarray of shape (n_rows, n_columns)
        Numbers, or places of categories; NaN where nothing is known.
    place : ndarray of shape (n_rows,)
        Places of tasks.
    target : ndarray of shape (n_rows,)
        Places among the labels, or numbers.
    weights : ndarray of shape (n_rows,)
    n_tasks, n_labels : int
        No labels: numbers.
    n_levels : mapping from int to int
        Of each column with categories, how many there are.
    seed : int
        Of the parts that are held out.
    growth : Growth

    Returns
    -------
    Forest
        The trees have learnt on effects of tasks and categories from which a row's own part was held out: a row that
        had told its own label would be believed too far.
    """
    part = np.random.default_rng(seed).permutation(np.arange(len(target)) % _N_PARTS)
    grown_on = [part != p for p in range(_N_PARTS)]

    def effects_of(codes: NDArray[np.int64], n_known: int, rows: NDArray[np.bool_]) -> Effects:
        kept = rows & (codes >= 0)
        if not n_labels:
            return number_effects(codes[kept], target[kept], weights[kept], n_known)
        counts = rates_of(codes[kept], target[kept].astype(np.int64), weights[kept], n_known, n_labels)
        return label_effects(counts)

    every = np.ones(len(target), dtype=bool)
    levels = {j: np.where(np.isnan(ordinals[:, j]), -1, ordinals[:, j]).astype(np.int64) for j in n_levels}
    of_columns = {j: effects_of(codes, n_levels[j], every) for j, codes in levels.items()}
    offset = np.zeros((len(target), 1 if n_labels <= 2 else n_labels))
    seen = np.empty((len(target), _width(ordinals, n_levels, offset)))
    for rows in grown_on:
        out = ~rows
        if not out.any() or not rows.any():
            continue
        if n_labels:
            offset[out] = effects_of(place, n_tasks, rows).of(place[out])
        columns = {j: effects_of(codes, n_levels[j], rows) for j, codes in levels.items()}
        seen[out] = seen_by_trees(ordinals[out], columns, offset[out])
    kind = SQUARED if not n_labels else LOGISTIC if n_labels == 2 else SOFTMAX
    cuts = [_cuts(seen[:, j]) for j in range(seen.shape[1])]
    bins = np.column_stack(
        [np.searchsorted(cut, np.nan_to_num(x, nan=BELOW)) for cut, x in zip(cuts, seen.T, strict=True)]
    )
    grow = (bins.astype(np.uint8), target.astype(np.float64), offset)
    its_task = () if n_labels else (place, n_tasks)
    n_parts = min(_N_PARTS, max(1, -(-_ENOUGH_ROWS // len(target)))) if len(target) >= 2 * _N_PARTS else 0

    def tried(growth: Growth) -> list[Floats]:
        apart = [np.where(rows, weights, -weights) for rows in grown_on[:n_parts]]
        return [boost(*grow, each, kind, growth, growth.most_trees, *its_task).loss for each in apart]

    losses, noise = tried(growth), 1.0
    if len(target) >= _MANY_ROWS and growth.depth < _DEEPER:
        of_deeper = tried(growth._replace(depth=_DEEPER))
        if _least(of_deeper) < _least(losses):
            growth, losses = growth._replace(depth=_DEEPER), of_deeper
    n_rounds = int(np.argmin(_together(losses))) if losses else 0
    if not n_labels:
        measured = sum(float(weights[~rows].sum()) for rows in grown_on[:n_parts])
        total = sum(float(loss[min(n_rounds, len(loss) - 1)]) for loss in losses)
        noise = float(np.sqrt(total / measured)) if measured else float(np.std(target))
    grown = boost(*grow, weights, kind, growth, n_rounds, *its_task)
    whole = effects_of(place, n_tasks, every) if n_labels else Effects(grown.of_tasks[:, None])
    filled = np.full((len(cuts), 256), ABOVE)
    for j, cut in enumerate(cuts):
        filled[j, : len(cut)] = cut
    threshold = filled[grown.column, grown.bin]
    name = "numbers" if not n_labels else "two labels" if n_labels == 2 else "labels"
    # Numbers that are all alike leave nothing over, which no density has room for.
    noise = max(noise, 1e-9 * (1.0 + float(np.abs(target).max())))
    return Forest(name, whole, of_columns, grown.column, threshold, grown.leaf, noise)


def _width(ordinals: Floats, n_levels: dict[int, int], offset: Floats) -> int:
    n_outputs = int(offset.shape[1])
    return int(ordinals.shape[1]) + len(n_levels) * (n_outputs - 1) + n_outputs


def _cuts(values: Floats) -> Floats:
    """Where a column may be divided: between its values, or as many quantiles; first, what is not known from the rest.

    Examples
    --------
    >>> _cuts(np.array([1.0, 2.0, 2.0, 4.0])).tolist()
    [1.5, 3.0]
    """
    known = values[~np.isnan(values)]
    distinct = np.unique(known)
    if len(distinct) > _MOST_CUTS + 1:
        distinct = np.unique(np.quantile(known, np.linspace(0.0, 1.0, _MOST_CUTS + 1)))
    between = 0.5 * distinct[1:] + 0.5 * distinct[:-1]
    return np.append(BELOW, between) if len(known) < len(values) else between


def _together(losses: list[Floats]) -> Floats:
    """The loss of all parts together after every round; a part that ended stays as it is."""
    longest = max(map(len, losses))
    return np.asarray(np.sum([np.pad(loss, (0, longest - len(loss)), mode="edge") for loss in losses], axis=0))


def _least(losses: list[Floats]) -> float:
    return float(_together(losses).min())
