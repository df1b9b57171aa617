"""Which way sources point: read off tasks' weights at the start, and turned into one another as EM goes on.

The weights' singular vectors span the space of the sources; a varimax rotation (Kaiser 1958) of the tasks' scores then
gives each task few large sources, as a Laplace prior would. From Λ = 0 or E[s] = 0 the EM algorithm would never move.

Turning sources leaves every task's mixture ΛE[s] as it is. An M-step moves Λ to where the sources already are, so that
EM hardly turns them when the noise is small: the E-step has them pinned by Λ. A step over all invertible R with s → Rs,
Λ → ΛR⁻¹ (parameter expansion: Liu, Rubin and Wu 1998) finds the directions that independent Laplace sources would have,
as ICA does, at no cost in tasks or features.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from kinfolk.maths.arrays import Floats

_FAINT = 1e-2  # size of loadings that no direction of the weights is left for, relative to the others


def sources_of_weights(weights: Floats, n_sources: int, seed: int, rotate: bool = True) -> tuple[Floats, Floats]:
    """Split a table of weights into loadings and sources of unit mean square.

    Parameters
    ----------
    weights : ndarray of shape (n_tasks, n_features)
        Weights of tasks fitted one by one.
    n_sources : int
        Number of sources; those beyond the rank of the weights are faint and random.
    seed : int
        Of those.
    rotate : bool
        Turn the singular vectors by varimax; Gaussian sources have no use for it.

    Returns
    -------
    loadings, means : ndarrays of shapes (n_features, n_sources) and (n_tasks, n_sources)
        weights ≈ means loadingsᵀ.

    Examples
    --------
    >>> import numpy as np
    >>> weights = np.outer([1.0, -1.0, 2.0], [3.0, 0.0])
    >>> loadings, means = sources_of_weights(weights, n_sources=1, seed=0)
    >>> np.allclose(means @ loadings.T, weights)
    True
    """
    n_tasks, n_features = weights.shape
    values, vectors = np.linalg.eigh(weights @ weights.T)
    found = [int(i) for i in np.argsort(-values)[:n_sources] if values[i] > 1e-12 * max(values[-1], 0.0)]
    directions = vectors[:, found]
    rotation = varimax(directions) if rotate else np.eye(len(found))
    means = directions @ rotation * np.sqrt(n_tasks)
    means *= np.where(np.sum(means**3, axis=0) < 0.0, -1.0, 1.0)
    loadings = weights.T @ means / n_tasks
    missing = n_sources - len(found)
    if missing:
        rng = np.random.default_rng(seed)
        size = _FAINT * np.sqrt(np.mean(weights**2) or 1.0)
        means = np.hstack([means, rng.standard_normal((n_tasks, missing))])
        loadings = np.hstack([loadings, size * rng.standard_normal((n_features, missing))])
    return loadings, means


def varimax(scores: Floats, max_iter: int = 500) -> Floats:
    """The rotation of orthonormal scores whose squares vary most down the columns (Kaiser 1958)."""
    rotation = np.eye(scores.shape[1])
    last = 0.0
    for _ in range(max_iter if scores.shape[1] > 1 else 0):
        rotated = scores @ rotation
        gradient = scores.T @ (rotated**3 - rotated * np.mean(rotated**2, axis=0))
        left, singular, right = np.linalg.svd(gradient)
        rotation = left @ right
        total = float(np.sum(singular))
        if total <= last * (1.0 + 1e-10):
            break
        last = total
    return rotation


def unmix(means: Floats, spread: float, loadings: Floats, source_scale: float, loading_variance: float) -> Floats:
    """The R for which sources R E[s_k] are likeliest under their Laplace prior and ΛR⁻¹ under its Gaussian one.

    It minimises Σ_kh (|z| + b e^{−|z|/b})/b₀ − K log|det R| + ½‖ΛR⁻¹‖²/τ² over R, z = R E[s_k]; one spread b for all
    sources smooths |z| as it does in the bound.

    Parameters
    ----------
    means : ndarray of shape (n_tasks, n_sources)
        E[s_k].
    spread : float
        b.
    loadings : ndarray of shape (n_features, n_sources)
        Λ.
    source_scale, loading_variance : float
        b₀ and τ².

    Examples
    --------
    >>> import numpy as np
    >>> sources = np.random.default_rng(0).laplace(scale=0.5**0.5, size=(2_000, 2))
    >>> mixing = np.array([[1.0, 0.6], [-0.6, 1.0]])
    >>> found = unmix(sources @ mixing.T, 0.01, np.eye(2), 0.5**0.5, 1e6) @ mixing
    >>> np.abs(found).round(1)
    array([[1., 0.],
           [0., 1.]])
    """
    n_tasks, n_sources = means.shape
    gram = loadings.T @ loadings / loading_variance

    def objective(flat: Floats) -> tuple[float, Floats]:
        turn = flat.reshape(n_sources, n_sources)
        sign, log_det = np.linalg.slogdet(turn)
        if sign <= 0.0:
            return np.inf, np.zeros_like(flat)
        inverse = np.linalg.inv(turn)
        turned = means @ turn.T
        size = np.abs(turned)
        decay = np.exp(-size / spread)
        drawn = inverse.T @ gram @ inverse
        value = np.sum(size + spread * decay) / source_scale - n_tasks * log_det + 0.5 * np.trace(drawn)
        slope = (np.sign(turned) * (1.0 - decay)).T @ means / source_scale
        return float(value), (slope - n_tasks * inverse.T - drawn @ inverse.T).ravel()

    start = np.eye(n_sources).ravel()
    best = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return np.asarray(best.x).reshape(n_sources, n_sources) if np.isfinite(best.fun) else np.eye(n_sources)
