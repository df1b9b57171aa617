"""How much each of several models is to be believed (thesis eq. 3.4–3.8).

By evidence, p(m | D) ∝ p(m) p(D | m): right if one of the models is. By stacking, the weights with which the average of
the models' predictions gives rows that they have not seen the highest probability: right also if none is (Wolpert 1992;
Yao, Vehtari, Simpson and Gelman 2018).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Floats = NDArray[np.float64]

# With few rows no model is ruled out by chance: for each model one row is added on which it alone was right. Such a
# row says more than a hundred on which models differ as little as these do, so the added ones fade as rows come in.
_PSEUDO_ROWS, _FADED_BY = 1.0, 100.0
_MAX_STEPS = 2_000
_SETTLED = 1e-7


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
        The maximum of Σ_i log Σ_m w_m p_mi + Σ_m a_m log w_m, a concave function, where a are the rows added for the
        models: as many as there are models, divided by 1 + n/100 for n rows. By EM, each step of which raises it.

    Examples
    --------
    >>> right, wrong = np.log(0.9), np.log(0.1)
    >>> by_stacking(np.array([[right, wrong]] * 30 + [[wrong, right]] * 10), np.ones(40)).round(2).tolist()
    [0.79, 0.21]
    """
    relative = np.exp(log_probability - log_probability.max(axis=1, keepdims=True))
    n_models = relative.shape[1]
    believed = np.full(n_models, 1.0 / n_models) if shares is None else shares
    added = _PSEUDO_ROWS * n_models * believed / (1.0 + weights.sum() / _FADED_BY)
    total = weights.sum() + added.sum()
    for _ in range(_MAX_STEPS):
        share = relative * believed
        share *= (weights / share.sum(axis=1))[:, None]
        step = (share.sum(axis=0) + added) / total
        settled = np.abs(step - believed).max() < _SETTLED
        believed = step
        if settled:
            break
    return believed
