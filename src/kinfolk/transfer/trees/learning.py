"""Boosted trees learnt from rows: effects of rows held out of them, the number of rounds, and the trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.tasks.design import MAX_LEVELS
from kinfolk.transfer.trees.boosting import LOGISTIC, SOFTMAX, SQUARED, Growth, boost
from kinfolk.transfer.trees.crossed import Groups
from kinfolk.transfer.trees.effects import Effects, label_effects, number_effects, rates_of
from kinfolk.transfer.trees.forest import ABOVE, BELOW, OF_TASKS, Forest, codes_of, seen_by_trees, size_of, sizes_of
from kinfolk.transfer.trees.growing import cells_of

_N_PARTS = 5
# Parts that the number of rounds is chosen on are fewer where rows are many.
_ENOUGH_ROWS = 5_000
# From so many rows on, trees are deeper, or deeper still where that helps on these parts, and rounds go on for as long
# as they help.
_MANY_ROWS, _DEEPER = 10_000, (5, 7)
_MOST_ROUNDS, _PATIENCE = 1_000, 30
# A column is cut in as many places, and more where there are as many rows for each.
_CUTS, _MOST_CUTS, _ROWS_A_CUT = 47, 200, 100
# Categories of more values have intercepts beside the trees, as tasks have, those of the most in so many columns.
_FEW_VALUES, _MOST_CROSSED = MAX_LEVELS, 3


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
        had told its own label would be believed too far. Beside these they see how many rows a row's task has, and
        its categories where these are many, itself not counted: how much there is of something often tells what it
        is like (Seaman, Pavlou and Copas 2014, on clusters whose size is informative).
    """
    part = np.random.default_rng(seed).permutation(np.arange(len(target)) % _N_PARTS)
    grown_on = [part != p for p in range(_N_PARTS)]
    codes = {j: codes_of(ordinals[:, j]) for j in n_levels}
    # Intercepts learnt with the trees are for one output; several labels have rates of tasks, held out, before them.
    is_crossed = n_labels <= 2

    def effects_of(codes: NDArray[np.int64], n_known: int, rows: NDArray[np.bool_]) -> Effects:
        kept = rows & (codes >= 0)
        if not n_labels:
            return number_effects(codes[kept], target[kept], weights[kept], n_known)
        counts = rates_of(codes[kept], target[kept].astype(np.int64), weights[kept], n_known, n_labels)
        return label_effects(counts)

    every = np.ones(len(target), dtype=bool)
    of_columns = {j: effects_of(own, n_levels[j], every) for j, own in codes.items()}
    grouped = {OF_TASKS: (place, n_tasks)} | {j: (codes[j], n_levels[j]) for j in _of_many_values(n_levels)}
    sizes = {j: sizes_of(own, weights, n_known) for j, (own, n_known) in grouped.items()}
    others = [size_of(sizes[j], own, itself=1.0) for j, (own, _) in grouped.items()]
    offset = np.zeros((len(target), 1 if is_crossed else n_labels))
    seen = np.zeros((len(target), _width(ordinals, n_levels, offset) + len(sizes)))
    for rows in grown_on:
        out = ~rows
        if not out.any() or not rows.any():
            continue
        if not is_crossed:
            offset[out] = effects_of(place, n_tasks, rows).of(place[out])
        columns = {j: effects_of(own, n_levels[j], rows) for j, own in codes.items()}
        seen[out] = seen_by_trees(ordinals[out], columns, offset[out], [each[out] for each in others])
    kind = SQUARED if not n_labels else LOGISTIC if n_labels == 2 else SOFTMAX
    cuts = [_cuts(column, int(np.clip(len(target) // _ROWS_A_CUT, _CUTS, _MOST_CUTS))) for column in seen.T]
    bins = np.column_stack(
        [np.searchsorted(cut, np.nan_to_num(x, nan=BELOW)) for cut, x in zip(cuts, seen.T, strict=True)]
    )
    del seen
    groups = Groups.of(list(grouped.values()), len(target)) if is_crossed else None
    grow = (cells_of(bins.astype(np.uint8)), target.astype(np.float64), offset)
    n_parts = min(_N_PARTS, max(1, -(-_ENOUGH_ROWS // len(target)))) if len(target) >= 2 * _N_PARTS else 0

    def tried(growth: Growth) -> list[Floats]:
        apart = [np.where(rows, weights, -weights) for rows in grown_on[:n_parts]]
        return [boost(*grow, each, kind, growth, growth.most_trees, groups).loss for each in apart]

    growth, losses = _chosen(growth, tried, is_large=len(target) >= _MANY_ROWS)
    n_rounds, noise = int(np.argmin(_together(losses))) if losses else 0, 1.0
    if not n_labels:
        measured = sum(float(weights[~rows].sum()) for rows in grown_on[:n_parts])
        total = sum(float(loss[min(n_rounds, len(loss) - 1)]) for loss in losses)
        noise = float(np.sqrt(total / measured)) if measured else float(np.std(target))
    grown = boost(*grow, weights, kind, growth, n_rounds, groups)
    if groups is None:
        whole, crossed = effects_of(place, n_tasks, every), dict[int, Effects]()
    else:
        ends = zip(grouped, groups.first[:-1], groups.first[1:], strict=True)
        crossed = {j: Effects(np.append(grown.effects[lo:hi], 0.0)[:, None]) for j, lo, hi in ends}
        whole = Effects(crossed.pop(OF_TASKS).values + grown.effects[-1])
    filled = np.full((len(cuts), 256), ABOVE)
    for j, cut in enumerate(cuts):
        filled[j, : len(cut)] = cut
    threshold = filled[grown.column, grown.bin]
    name = "numbers" if not n_labels else "two labels" if n_labels == 2 else "labels"
    # Numbers that are all alike leave nothing over, which no density has room for.
    noise = max(noise, 1e-9 * (1.0 + float(np.abs(target).max())))
    return Forest(name, whole, of_columns, grown.column, threshold, grown.leaf, noise, crossed, sizes)


def _of_many_values(n_levels: dict[int, int]) -> list[int]:
    """Columns whose categories have intercepts of their own, in order."""
    many = sorted((j for j in n_levels if n_levels[j] > _FEW_VALUES), key=lambda j: -n_levels[j])
    return sorted(many[:_MOST_CROSSED])


def _chosen(growth: Growth, tried: Callable[[Growth], list[Floats]], is_large: bool) -> tuple[Growth, list[Floats]]:
    """How trees grow, deeper where rows are many, and the losses of the parts held out."""
    if not is_large:
        return growth, tried(growth)
    candidates = [growth._replace(depth=d, most_trees=_MOST_ROUNDS, patience=_PATIENCE) for d in _DEEPER]
    return min(((each, tried(each)) for each in candidates), key=lambda found: _least(found[1]))


def _width(ordinals: Floats, n_levels: dict[int, int], offset: Floats) -> int:
    n_outputs = int(offset.shape[1])
    return int(ordinals.shape[1]) + len(n_levels) * (n_outputs - 1) + n_outputs


def _cuts(values: Floats, most: int) -> Floats:
    """Where a column may be divided: between its values, or as many quantiles; first, what is not known from the rest.

    Examples
    --------
    >>> _cuts(np.array([1.0, 2.0, 2.0, 4.0]), 47).tolist()
    [1.5, 3.0]
    """
    known = values[~np.isnan(values)]
    distinct = np.unique(known)
    if len(distinct) > most + 1:
        distinct = np.unique(np.quantile(known, np.linspace(0.0, 1.0, most + 1)))
    between = 0.5 * distinct[1:] + 0.5 * distinct[:-1]
    return np.append(BELOW, between) if len(known) < len(values) else between


def _together(losses: list[Floats]) -> Floats:
    """The loss of all parts together after every round; a part that ended stays as it is."""
    longest = max(map(len, losses))
    return np.asarray(np.sum([np.pad(loss, (0, longest - len(loss)), mode="edge") for loss in losses], axis=0))


def _least(losses: list[Floats]) -> float:
    return float(_together(losses).min())
