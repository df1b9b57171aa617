"""How large variances of a prior should be, judged on rows held out.

A point estimate cannot tell by itself: the density of weights grows without bound as their variance goes to zero, and
the evidence from Laplace's method, which does not collapse, comes out several times too small where most tasks have few
positive rows (RCV1, 1,000 rows: 3 where 30 predicts best). Rows held out say it directly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.lica.model.data import LinearTasks, Link
from kinfolk.lica.model.links import LINK_CODES, losses
from kinfolk.maths.arrays import Floats

FACTOR = 10**0.5  # between neighbouring candidates
N_FOLDS = 4
MANY_ROWS = 20_000  # rows, summed over tasks, beyond which one fold judges well enough


class Fold(NamedTuple):
    """Two parts of the rows: those to fit, those to judge by."""

    fitted: LinearTasks
    judged: LinearTasks


def make_folds(data: LinearTasks, seed: int) -> list[Fold]:
    """Split rows at random into four parts, each judged by a fit of the others; of many rows, one part suffices.

    A row that several tasks have is on the same side for all of them. With fewer than two rows there is no fold.
    """
    used = np.unique(np.concatenate(data.rows)) if data.n_tasks else np.zeros(0, dtype=np.int64)
    if used.size < 2:
        return []
    part = np.full(data.X.shape[0], -1)
    part[used] = np.random.default_rng(seed).permutation(np.arange(used.size) % N_FOLDS)
    total = sum(rows.size for rows in data.rows)
    n_folds = int(np.clip(MANY_ROWS // total, 1, min(N_FOLDS, used.size)))
    return [
        Fold(
            _keep(data, [part[rows] != fold for rows in data.rows]),
            _keep(data, [part[rows] == fold for rows in data.rows]),
        )
        for fold in range(n_folds)
    ]


def judge(data: LinearTasks, weights: Floats, intercepts: Floats, link: Link, residual_variance: float) -> float:
    """Negative log likelihood of all tasks' rows, without constants."""
    shared = np.asarray(data.X[data.rows[0]] @ weights + intercepts) if data.shares_rows else None
    total = 0.0
    for k, rows in enumerate(data.rows):
        predictors = data.X[rows] @ weights[:, k] + intercepts[k] if shared is None else shared[:, k]
        one = (data.y[k][None], np.reshape(predictors, (1, -1)), data.weights[k][None])
        total += float(losses(LINK_CODES[link], *one, residual_variance)[0][0])
    return total


def search_levels(evaluate: Callable[[float], float], start: float, lowest: float, highest: float) -> float:
    """The value with the least ``evaluate``: upwards from ``start`` or, where that is no better, downwards."""
    best, least = start, evaluate(start)
    for factor in (FACTOR, 1.0 / FACTOR):
        value = best
        while lowest <= value * factor <= highest:
            value *= factor
            loss = evaluate(value)
            if not loss < least:
                break
            best, least = value, loss
        if best != start:
            break
    return best


def _keep(data: LinearTasks, kept: list[NDArray[np.bool_]]) -> LinearTasks:
    return LinearTasks(
        data.X,
        tuple(rows[keep] for rows, keep in zip(data.rows, kept, strict=True)),
        tuple(y[keep] for y, keep in zip(data.y, kept, strict=True)),
        tuple(weights[keep] for weights, keep in zip(data.weights, kept, strict=True)),
    )


def thin(data: LinearTasks, most_rows: int, seed: int) -> LinearTasks:
    """Leave out rows at random until no task has many; a row stays for all tasks or for none."""
    largest = max(len(rows) for rows in data.rows)
    if largest <= most_rows:
        return data
    kept = np.random.default_rng(seed).random(data.X.shape[0]) < most_rows / largest
    weights = tuple(np.where(kept[rows], weight, 0.0) for rows, weight in zip(data.rows, data.weights, strict=True))
    return data._replace(weights=weights).compact()
