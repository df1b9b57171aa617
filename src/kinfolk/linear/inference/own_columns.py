"""Of which columns tasks get weights of their own, where all of them would cost too much.

The work grows with the cube of their number, and what is kept of every task with that of own times all columns. A
column's claim is the score test of a variance between tasks at zero
(D. Commenges and H. Jacqmin-Gadda, "Generalized score test of homogeneity based on correlated random effects models",
J. R. Statist. Soc. B 59, 1997): with residuals r of a least-squares fit with an intercept for each task,

    z = Σ_t ((x_tᵀr_t)² − s² x_tᵀx_t) / (s² √(2 Σ_t (x_tᵀx_t)²)),

about standard normal where tasks do not differ in it. Labels count as numbers here, which is enough for a choice.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats

# Columns that tasks have weights of their own of, at most, and numbers that all tasks together keep of them: 240 MB,
# and a few times as much while learning.
MAX_OWN = 24
MAX_KEPT = 3e7
_RIDGE = 1e-3


def choose_own_columns(
    X: Floats,
    y: Floats,
    weights: Floats | None,
    place: NDArray[np.int64],
    n_tasks: int,
    group: NDArray[np.int64],
    may: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """Columns with the largest claims, whole groups together; all that may have weights where there is room for them.

    Parameters
    ----------
    X, y, weights, place, n_tasks
        Design matrix, targets, weights and tasks of the rows.
    group : ndarray of shape (n_columns,)
    may : ndarray of bool of shape (n_columns,)
        Those to choose among.

    Returns
    -------
    ndarray of bool of shape (n_columns,)
    """
    most = room_for(n_tasks, X.shape[1])
    if may.sum() <= most:
        return may
    mass = np.ones(len(y)) if weights is None else weights
    within = np.column_stack([X, y])
    totals = np.maximum(np.bincount(place, mass, minlength=n_tasks), 1e-300)
    means = np.stack([np.bincount(place, mass * column, minlength=n_tasks) / totals for column in within.T], axis=1)
    within = within - means[place]
    weighted = mass[:, None] * within[:, :-1]
    ridge = _RIDGE * mass.sum() * np.eye(X.shape[1])
    residual = within[:, -1] - within[:, :-1] @ np.linalg.solve(
        within[:, :-1].T @ weighted + ridge, weighted.T @ within[:, -1]
    )
    variance = max(float((mass * residual**2).sum() / mass.sum()), 1e-300)
    claims = np.full(int(group.max()) + 1, -np.inf)
    sizes = np.bincount(group, minlength=len(claims))
    for g in np.unique(group[may]):
        scores = np.stack([np.bincount(place, w * residual, minlength=n_tasks) for w in weighted[:, group == g].T])
        own = np.stack(
            [
                np.bincount(place, w * x, minlength=n_tasks)
                for w, x in zip(weighted[:, group == g].T, within[:, :-1][:, group == g].T, strict=True)
            ]
        )
        spread = variance * np.sqrt(2.0 * (own**2).sum())
        claims[g] = (scores**2 - variance * own).sum() / max(spread, 1e-300)
    chosen, room = np.zeros(len(group), dtype=bool), most
    for g in np.argsort(-claims, kind="stable"):
        if claims[g] > -np.inf and sizes[g] <= room:
            chosen |= group == g
            room -= int(sizes[g])
    return chosen & may


def room_for(n_tasks: int, n_columns: int) -> int:
    """Of how many columns so many tasks may have weights of their own, beside their intercepts.

    Examples
    --------
    >>> room_for(1_000, 20), room_for(30_000, 199), room_for(10_000_000, 20)
    (24, 4, 0)
    """
    return int(min(MAX_OWN, max(MAX_KEPT // (n_tasks * (n_columns + 1)) - 1, 0)))
