"""Where empirical Bayes starts: sources read off the weights of tasks that were fitted one by one.

The weights' singular vectors span the space of the sources; a varimax rotation (Kaiser 1958) of the tasks' scores then
gives each task few large sources, as a Laplace prior would. From Λ = 0 or E[s] = 0 the EM algorithm would never move.
"""

from __future__ import annotations

import numpy as np

from kinfolk.lica.inference.rotation import varimax
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
