"""What tasks have in common, and what is known of one task (LICA, Zhang, Ghahramani and Yang 2005, eq. 1).

The weights of task k are θ_k = μ + Λ s_k + e_k, with independent sources s_kh ~ Laplace(0, b₀) and noise e_k ~ N(0, Ψ),
Ψ diagonal; μ, which the paper lacks, is zero unless asked for. Each task has an intercept of its own, N(m₀, v₀), which
the sources never reach.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats

UNIT_SCALE = 1.0 / sqrt(2.0)  # of a Laplace distribution with unit variance
INTERCEPT_VARIANCE = 100.0  # of an intercept that no task shares


class TaskPrior(NamedTuple):
    """What tasks have in common.

    Parameters
    ----------
    loadings : ndarray of shape (n_features, n_sources)
        Λ, whose columns are the basic classifiers.
    noise : ndarray of shape (n_features,)
        ψ, the variance of each weight about its mixture of basic classifiers.
    source_scale : float
        b₀ of the sources' Laplace prior; 1/√2 gives them unit variance.
    intercept_variance : float
        v₀.
    residual_variance : float
        σ² of a regression; 1 for a classifier.
    mean : ndarray of shape (n_features,) or None
        A mean that the weights of all tasks share beside their sources; None for zero, as in the paper.
    intercept_mean : float
        Mean of the tasks' intercepts.

    Examples
    --------
    >>> import numpy as np
    >>> from kinfolk.lica.model.prior import TaskPrior
    >>> prior = TaskPrior(loadings=np.array([[1.0], [-2.0], [0.0]]), noise=np.full(3, 0.1))
    >>> prior.n_features, prior.n_sources
    (3, 1)
    """

    loadings: Floats
    noise: Floats
    source_scale: float = UNIT_SCALE
    intercept_variance: float = INTERCEPT_VARIANCE
    residual_variance: float = 1.0
    mean: Floats | None = None
    intercept_mean: float = 0.0

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.loadings.shape[0])

    @property
    def n_sources(self) -> int:
        """Number of sources."""
        return int(self.loadings.shape[1])


class Reach(NamedTuple):
    """What the variance of a task's predictions is made from: a number for each of its training rows.

    Parameters
    ----------
    X : scipy.sparse.csr_matrix or ndarray of shape (n_all_rows, n_features)
        The table of features, the same object for every task of a fit.
    rows : int ndarray of shape (n_rows,)
        The task's places in it.
    precision : ndarray of shape (n_rows,)
        Precision of each row's Gaussian site.
    """

    X: Any
    rows: NDArray[np.int64]
    precision: Floats


class TaskPosterior(NamedTuple):
    """What is known of one task after its rows were seen.

    Parameters
    ----------
    weights : ndarray of shape (n_features,)
        E[θ], or the point estimate.
    intercept : float
        Its mean, or the point estimate.
    sources : ndarray of shape (n_sources,)
        E[s], or the point estimate.
    source_spread : ndarray of shape (n_sources,)
        Scale b of each source's Laplace posterior; zeros for a point estimate.
    weight_variance : ndarray of shape (n_features,) or None
        Posterior variances of the weights, where they were asked for.
    reach : Reach or None
        What predictive variances are made from; None for a point estimate.
    """

    weights: Floats
    intercept: float
    sources: Floats
    source_spread: Floats
    weight_variance: Floats | None = None
    reach: Reach | None = None
