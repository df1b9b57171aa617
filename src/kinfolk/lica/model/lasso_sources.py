"""The most probable sources of a task given its weights, a lasso (Zhang, Ghahramani and Yang 2005, section 3.2).

The paper's 2‖m‖₁ + mᵀGm − 2hᵀm is twice the negative log posterior of Laplace sources of scale 1; here the scale b₀ is
any.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from kinfolk.lica.model.prior import TaskPrior
from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled

TOLERANCE = 1e-10
MAX_SWEEPS = 10_000


def fit_lasso_sources(prior: TaskPrior, weights: Floats, *, start: Floats | None = None) -> Floats:
    """Find the most probable sources of each task, exactly sparse.

    Minimises (1/b₀)‖m‖₁ + ½ mᵀGm − hᵀm, where G = ΛᵀΨ⁻¹Λ and h = ΛᵀΨ⁻¹θ.

    Parameters
    ----------
    prior : TaskPrior
        Its loadings, noise and source scale.
    weights : ndarray of shape (n_features, n_tasks)
        θ of each task, less the prior's mean where it has one.
    start : ndarray of shape (n_tasks, n_sources), optional
        Where to start; at zero by default.

    Returns
    -------
    ndarray of shape (n_tasks, n_sources)

    Examples
    --------
    >>> import numpy as np
    >>> from kinfolk.lica.model.lasso_sources import fit_lasso_sources
    >>> from kinfolk.lica.model.prior import TaskPrior
    >>> prior = TaskPrior(loadings=np.eye(2), noise=np.ones(2), source_scale=1.0)
    >>> fit_lasso_sources(prior, np.array([[3.0], [0.5]]))
    array([[2., 0.]])
    """
    precise = prior.loadings / prior.noise[:, None]
    gram = prior.loadings.T @ precise
    targets = np.ascontiguousarray(weights.T @ precise)
    sources = np.zeros(targets.shape) if start is None else np.array(start, dtype=np.float64)
    return np.asarray(_descend(gram, targets, 1.0 / prior.source_scale, sources, TOLERANCE, MAX_SWEEPS))


@compiled
def _descend(
    gram: Floats, targets: Floats, penalty: float, sources: Floats, tolerance: float, max_sweeps: int
) -> Floats:
    """Coordinate descent for each task, until no move of a sweep is longer than ``tolerance`` (moves as weights/√ψ).

    Sweeps over the nonzero sources alternate with sweeps over all, which are the dearer and change little.
    """
    n_tasks, n_sources = sources.shape
    slope = np.empty(n_sources)
    for k in range(n_tasks):
        for h in range(n_sources):
            slope[h] = targets[k, h]
        for h in range(n_sources):
            if sources[k, h] != 0.0:
                for other in range(n_sources):
                    slope[other] -= sources[k, h] * gram[h, other]
        everything = True
        for _ in range(max_sweeps):
            longest = 0.0
            for h in range(n_sources):
                old = sources[k, h]
                if gram[h, h] <= 0.0:
                    sources[k, h] = 0.0  # a source without loadings explains nothing and only costs
                    continue
                if not everything and old == 0.0:
                    continue
                pull = slope[h] + gram[h, h] * old
                new = 0.0
                if pull > penalty:
                    new = (pull - penalty) / gram[h, h]
                elif pull < -penalty:
                    new = (pull + penalty) / gram[h, h]
                if new != old:
                    sources[k, h] = new
                    for other in range(n_sources):
                        slope[other] -= (new - old) * gram[h, other]
                    longest = max(longest, abs(new - old) * sqrt(gram[h, h]))
            if longest <= tolerance:
                if everything:
                    break
                everything = True
            else:
                everything = False
    return sources
