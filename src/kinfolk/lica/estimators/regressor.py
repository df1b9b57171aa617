"""LICARegressor: linear regression of many tasks with latent independent sources."""

from __future__ import annotations

from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from kinfolk.lica.estimators.base import SharedWeights


class LICARegressor(RegressorMixin, SharedWeights):
    """Linear regression of many tasks, whose weights are sparse mixtures of a few sources that are learnt.

    Parameters
    ----------
    n_sources, inference, sharing, noise, source_prior, loading_variance, shared_mean, intercept_variance, max_iter, \
tol, warm_start, weight_variances, scale, task_column, new_tasks, random_state, n_jobs, verbose, checkpoint
        As for :class:`~kinfolk.LICAClassifier`.

    Attributes
    ----------
    tasks_, coef_, intercept_, sources_, components_, common_weights_, source_similarity_, scaling_, n_sources_, \
objective_, n_iter_, converged_, interrupted_
        As for :class:`~kinfolk.LICAClassifier`.

    References
    ----------
    J. Zhang, Z. Ghahramani and Y. Yang, "Learning Multiple Related Tasks using Latent Independent Component Analysis",
    NIPS 2005.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(90, 4)), np.repeat(["a", "b", "c"], 30)
    >>> size = np.repeat([1.0, -2.0, 0.5], 30)
    >>> y = size * (X @ [1.0, 0.0, -1.0, 0.5]) + 0.1 * rng.normal(size=90)
    >>> model = LICARegressor(n_sources=1).fit(X, y, task=task)
    >>> round(model.score(X, y, task=task), 2) > 0.95
    True
    """

    _classification: ClassVar[bool] = False

    def __init__(
        self,
        n_sources: int | None = None,
        *,
        inference: str = "eb",
        sharing: str = "sources",
        noise: str = "diagonal",
        source_prior: str = "laplace",
        loading_variance: float | None = None,
        shared_mean: bool = True,
        intercept_variance: float | None = None,
        max_iter: int = 100,
        tol: float = 1e-4,
        warm_start: bool = False,
        weight_variances: bool = False,
        scale: str | bool = "auto",
        task_column: str | int | None = None,
        new_tasks: str = "warn",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.n_sources = n_sources
        self.inference = inference
        self.sharing = sharing
        self.noise = noise
        self.source_prior = source_prior
        self.loading_variance = loading_variance
        self.shared_mean = shared_mean
        self.intercept_variance = intercept_variance
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.weight_variances = weight_variances
        self.scale = scale
        self.task_column = task_column
        self.new_tasks = new_tasks
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.checkpoint = checkpoint

    class_weight = None
    link = "gaussian"

    def predict(self, X: Any, *, task: Any = None, return_std: bool = False) -> Any:
        """Expected targets.

        Parameters
        ----------
        X : frame, array or scipy sparse matrix
        task : array-like of shape (n_rows,), optional
            A task never seen gets what the prior says of one.
        return_std : bool, default=False
            Whether to give the standard deviation of each target, noise included, as well.

        Returns
        -------
        ndarray of shape (n_rows,), or (n_rows, n_tasks) where ``y`` was a matrix; or a pair of them

        See Also
        --------
        score : How much of the targets' variance is explained.
        """
        return self._fitted_predictor().predict(X, task=task, return_std=return_std)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, task: Any = None) -> float:
        """Share of the targets' variance that is explained.

        Parameters
        ----------
        X : frame, array or scipy sparse matrix
        y : array-like of shape (n_rows,) or (n_rows, n_tasks)
            The targets; those that are unknown do not count.
        sample_weight : array-like of shape (n_rows,), optional
        task : array-like of shape (n_rows,), optional

        Returns
        -------
        float
            The mean over tasks where ``y`` is a matrix.

        See Also
        --------
        predict : What is compared with ``y``.
        """
        pairs = self._compare(self.predict(X, task=task), y, sample_weight)
        return float(np.mean([r2_score(truth, guess, sample_weight=weight) for truth, guess, weight in pairs]))
