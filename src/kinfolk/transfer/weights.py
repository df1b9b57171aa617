"""How much each of several models is to be believed (thesis eq. 3.4–3.8).

By evidence, p(m | D) ∝ p(m) p(D | m): right if one of the models is. By stacking, the weights with which the average of
the models' predictions gives rows that they have not seen the highest probability: right also if none is (Wolpert 1992;
Yao, Vehtari, Simpson and Gelman 2018).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from kinfolk.maths.arrays import Floats
from kinfolk.maths.stacking import by_stacking, climb

__all__ = ["by_evidence", "by_sizes", "by_stacking", "make_folds"]


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
    in_common, of_sizes = parts(climb(start, blocks, value, derivatives))
    return of_sizes, in_common


def make_folds(code: NDArray[Any], counts: Floats, n_folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The part that holds each row out, the labels spread evenly; −1 for rows that have no label or do not count."""
    fold = np.full(len(code), -1)
    for label in np.unique(code[code >= 0]):
        rows = rng.permutation(np.flatnonzero((code == label) & (counts > 0)))
        fold[rows] = (np.arange(len(rows)) + rng.integers(n_folds)) % n_folds
    return fold
