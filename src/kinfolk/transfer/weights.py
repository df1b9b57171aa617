"""How much each of several models is to be believed (thesis eq. 3.4–3.8).

By evidence, p(m | D) ∝ p(m) p(D | m): right if one of the models is. By stacking, the weights with which the average of
the models' predictions gives rows that they have not seen the highest probability: right also if none is (Wolpert 1992;
Yao, Vehtari, Simpson and Gelman 2018).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from kinfolk.maths.arrays import Floats

_MAX_STEPS = 200
# What another step would still gain, in nats.
_SETTLED = 1e-10


def by_evidence(log_evidence: Floats, log_prior: Floats | None = None) -> Floats:
    """Posterior probabilities of models from the logs of their evidence and prior.

    Examples
    --------
    >>> by_evidence(np.log([0.2, 0.6])).round(2).tolist()
    [0.25, 0.75]
    """
    log_joint = log_evidence if log_prior is None else log_evidence + log_prior
    if not np.isfinite(log_joint.max()):
        raise ValueError(f"the models' log evidence is {log_evidence.tolist()}: at least one finite number is needed")
    return np.asarray(np.exp(log_joint - logsumexp(log_joint)))


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

    return _climb(shares / shares.sum(), np.ones((1, n_models)), value, derivatives)


def by_sizes(
    log_probability: Floats, weights: Floats, hats: Floats, shares: Floats, strength: float = 10.0
) -> tuple[Floats, Floats]:
    """Weights by stacking that may differ between tasks of few rows and of many.

    Parameters
    ----------
    log_probability : array of shape (n_rows, n_models)
        What each model, not having seen the row, gave its label.
    weights : array of shape (n_rows,)
        How often each row counts.
    hats : array of shape (n_rows, n_sizes)
        How much of each size a row's task has, adding up to one (:func:`kinfolk.transfer.sizes.hats`).
    shares : array of shape (n_models,)
        How far each model is believed before any row is seen.
    strength : float, default=10
        How strongly sizes are drawn to each other.

    Returns
    -------
    of_sizes : array of shape (n_sizes, n_models)
        With what all sizes have in common, v, the maximum of

            Σ_i log Σ_s h_is Σ_m w_sm p_mi − λ Σ_s Σ_m w_sm log(w_sm/v_m) − Σ_m v_m log(v_m/q_m),

        a concave function of all weights together. A size without rows has w_s = v.
    in_common : array of shape (n_models,)

    Examples
    --------
    >>> right, wrong = np.log(0.9), np.log(0.1)
    >>> log_p = np.array([[right, wrong]] * 40 + [[wrong, right]] * 40)  # the first is right of small tasks alone
    >>> hats = np.repeat([[1.0, 0.0], [0.0, 1.0]], 40, axis=0)
    >>> by_sizes(log_p, np.ones(80), hats, np.array([0.5, 0.5]))[0].round(1).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    relative = np.exp(log_probability - log_probability.max(axis=1, keepdims=True))
    (_, n_models), n_sizes = relative.shape, hats.shape[1]
    design = (hats[:, :, None] * relative[:, None, :]).reshape(len(relative), -1)
    blocks = np.repeat(np.eye(n_sizes + 1), n_models, axis=1)

    def parts(z: Floats) -> tuple[Floats, Floats]:
        return z[:n_models], z[n_models:].reshape(n_sizes, n_models)

    def value(z: Floats) -> float:
        v, w = parts(z)
        apart = strength * (w * np.log(w / v)).sum() + v @ np.log(v / shares)
        return float(weights @ np.log(design @ w.ravel()) - apart)

    def derivatives(z: Floats) -> tuple[Floats, Floats]:
        v, w = parts(z)
        ratio = design / (design @ w.ravel())[:, None]
        of_sizes = weights @ ratio - strength * (np.log(w / v) + 1.0).ravel()
        in_common = strength * w.sum(axis=0) / v - np.log(v / shares)
        curvature = np.zeros((len(z), len(z)))
        curvature[:n_models, :n_models] = np.diag(1.0 / v + strength * w.sum(axis=0) / v**2)
        across = -strength * np.tile(np.diag(1.0 / v), n_sizes)
        curvature[:n_models, n_models:], curvature[n_models:, :n_models] = across, across.T
        curvature[n_models:, n_models:] = (ratio * weights[:, None]).T @ ratio + np.diag(strength / w.ravel())
        return np.concatenate([in_common, of_sizes]), curvature

    start = np.tile(shares / shares.sum(), n_sizes + 1)
    in_common, of_sizes = parts(_climb(start, blocks, value, derivatives))
    return of_sizes, in_common


def _climb(
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


def make_folds(code: NDArray[Any], counts: Floats, n_folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The part that holds each row out, the labels spread evenly; −1 for rows that have no label or do not count."""
    fold = np.full(len(code), -1)
    for label in np.unique(code[code >= 0]):
        rows = rng.permutation(np.flatnonzero((code == label) & (counts > 0)))
        fold[rows] = (np.arange(len(rows)) + rng.integers(n_folds)) % n_folds
    return fold
