"""Tasks drawn from LICA's own model, their loadings, sources and weights known (Zhang et al. 2005, eqs. 1 and 2)."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr
from sklearn.utils import check_random_state


class LicaTasks(NamedTuple):
    """Tasks in long form, and what they were made from.

    Parameters
    ----------
    X : ndarray of shape (n_tasks * n_rows, n_features)
        Standard normal features.
    y : ndarray of shape (n_tasks * n_rows,)
        0 or 1; real numbers where the link is Gaussian.
    task : int ndarray of shape (n_tasks * n_rows,)
        The task of each row.
    loadings : ndarray of shape (n_features, n_sources)
        Λ.
    sources : ndarray of shape (n_tasks, n_sources)
        s.
    weights : ndarray of shape (n_tasks, n_features)
        θ = Λs + e.
    """

    X: NDArray[np.float64]
    y: NDArray[np.float64] | NDArray[np.int64]
    task: NDArray[np.int64]
    loadings: NDArray[np.float64]
    sources: NDArray[np.float64]
    weights: NDArray[np.float64]


def make_lica_tasks(
    n_tasks: int,
    n_features: int,
    n_rows: int,
    n_sources: int,
    *,
    sparsity: float = 0.0,
    noise: float = 0.1,
    signal: float = 3.0,
    source: Literal["laplace", "gaussian"] = "laplace",
    link: Literal["logistic", "probit", "gaussian"] = "logistic",
    random_state: int | np.random.RandomState | None = None,
) -> LicaTasks:
    """Draw tasks whose weights mix a few latent sources.

    Parameters
    ----------
    n_tasks, n_features, n_rows, n_sources : int
        Rows are those of each task.
    sparsity : float
        Probability that a source is exactly zero for a task; the others keep unit variance.
    noise : float
        Share of the weights' variance that no source explains, from 0 to 1.
    signal : float
        Standard deviation of the linear predictor.
    source : {"laplace", "gaussian"}
        Distribution of the sources; Gaussian ones are known up to a rotation only.
    link : {"logistic", "probit", "gaussian"}
        How the predictor becomes a target; Gaussian adds a standard normal residual.
    random_state : int, RandomState or None

    Returns
    -------
    LicaTasks

    Raises
    ------
    ValueError
        Where a number is out of its range.

    References
    ----------
    .. [1] J. Zhang, Z. Ghahramani and Y. Yang, "Learning Multiple Related Tasks using Latent Independent Component
       Analysis", NIPS 18, 2005.

    Examples
    --------
    >>> from kinfolk.datasets import make_lica_tasks
    >>> made = make_lica_tasks(5, 20, 30, 2, random_state=0)
    >>> made.X.shape, made.sources.shape, made.weights.shape
    ((150, 20), (5, 2), (5, 20))
    """
    sizes = {"n_tasks": n_tasks, "n_features": n_features, "n_rows": n_rows, "n_sources": n_sources}
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} is {size}; it needs to be 1 or more.")
    if not 0.0 <= sparsity < 1.0:
        raise ValueError(f"sparsity is {sparsity}; it needs to be at least 0 and below 1.")
    if not 0.0 <= noise <= 1.0:
        raise ValueError(f"noise is {noise}; it needs to be from 0 to 1.")
    for name, value, known in (
        ("source", source, ("laplace", "gaussian")),
        ("link", link, ("logistic", "probit", "gaussian")),
    ):
        if value not in known:
            raise ValueError(f"{name} is {value!r}; it needs to be one of {', '.join(known)}.")
    rng = check_random_state(random_state)
    variance = signal**2 / n_features
    drawn = (n_tasks, n_sources)
    sources = rng.laplace(scale=0.5**0.5, size=drawn) if source == "laplace" else rng.normal(size=drawn)
    sources *= rng.uniform(size=drawn) >= sparsity
    per_source = (1.0 - noise) * variance / (n_sources * (1.0 - sparsity))
    loadings = rng.normal(scale=per_source**0.5, size=(n_features, n_sources))
    weights = sources @ loadings.T + rng.normal(scale=(noise * variance) ** 0.5, size=(n_tasks, n_features))
    X = rng.normal(size=(n_tasks * n_rows, n_features))
    task = np.repeat(np.arange(n_tasks), n_rows)
    predictor = np.einsum("ij,ij->i", X, weights[task])
    y: NDArray[np.float64] | NDArray[np.int64]
    if link == "gaussian":
        y = predictor + rng.normal(size=predictor.size)
    else:
        probability = expit(predictor) if link == "logistic" else ndtr(predictor)
        y = (rng.uniform(size=predictor.size) < probability).astype(np.int64)
    return LicaTasks(X, y, task, loadings, sources, weights)
