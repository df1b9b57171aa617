"""Weights under which averaged predictions give what was not seen the highest probability.

Stacking is right also if none of what is averaged is (D. H. Wolpert, Neural Networks 5, 1992; Y. Yao, A. Vehtari, D.
Simpson and A. Gelman, Bayesian Analysis 13, 2018).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kinfolk.maths.arrays import Floats

_MAX_STEPS = 200
# What another step would still gain, in nats.
_SETTLED = 1e-10


def by_stacking(log_probability: Floats, weights: Floats, shares: Floats | None = None) -> Floats:
    """Weights under which the averaged models give rows their labels with the highest probability.

    Parameters
    ----------
    log_probability : array of shape (n_rows, n_models)
        What each model, not having seen the row, gave its label.
    weights : array of shape (n_rows,)
        How often each row counts.
    shares : array of shape (n_models,), optional
        How far each model is believed before any row is seen; by default all alike.

    Returns
    -------
    array of shape (n_models,)
        The maximum of Σ_i log Σ_m w_m p_mi − Σ_m w_m log(w_m/q_m), a concave function, with the shares q. O(n_rows) a
        step, of which there are some ten.

    Notes
    -----
    Without the divergence from q, chance would decide between models that hardly differ: four weights learnt from n
    rows cost about 3/(2n) nats a row. Next to q the weights are w ∝ q exp(gain), with the gain in log probability over
    all rows, as by evidence. Rows that each model is thought to have got right beforehand, a Dirichlet prior, would do
    the same for models that hardly differ, but could not be rid of a model that is far off.

    Examples
    --------
    >>> right, wrong = np.log(0.9), np.log(0.1)
    >>> by_stacking(np.array([[right, wrong]] * 30 + [[wrong, right]] * 10), np.ones(40)).round(2).tolist()
    [0.8, 0.2]
    """
    relative = np.exp(log_probability - log_probability.max(axis=1, keepdims=True))
    n_models = relative.shape[1]
    shares = np.full(n_models, 1.0 / n_models) if shares is None else shares

    def value(w: Floats) -> float:
        return float(weights @ np.log(relative @ w) - w @ np.log(w / shares))

    def derivatives(w: Floats) -> tuple[Floats, Floats]:
        ratio = relative / (relative @ w)[:, None]
        slope = weights @ ratio - np.log(w / shares)
        return slope, (ratio * weights[:, None]).T @ ratio + np.diag(1.0 / w)

    return climb(shares / shares.sum(), np.ones((1, n_models)), value, derivatives)


def climb(
    start: Floats, blocks: Floats, value: Callable[[Floats], float], derivatives: Callable[[Floats], Any]
) -> Floats:
    """The maximum of a concave function of weights that add up to one in every block, by Newton's steps.

    ``derivatives`` gives the slope and the curvature with its sign turned.
    """
    believed = start
    for _ in range(_MAX_STEPS):
        slope, curvature = derivatives(believed)
        # In units of √w: there the divergence, whose curvature is 1/w, is as well behaved for a model that is nearly
        # out as for the others.
        unit = np.sqrt(believed)
        held = blocks * unit
        solved = np.linalg.solve(curvature * np.outer(unit, unit), np.column_stack([unit * slope, held.T]))
        free, along = solved[:, 0], solved[:, 1:]
        step = unit * (free - along @ np.linalg.solve(held @ along, held @ free))
        gain = float(slope @ step)
        if gain < _SETTLED:
            break
        # Not beyond nine tenths of the way to where a weight would be zero.
        length = min(1.0, 0.9 / float((-step / believed).max()))
        before = value(believed)
        while length > _SETTLED and value(believed + length * step) < before + 0.1 * length * gain:
            length /= 2.0
        believed = believed + length * step
        believed = believed / (blocks.T @ (blocks @ believed))
    return np.asarray(believed)
