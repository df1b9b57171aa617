"""LICAClassifier: logistic or probit regression of many tasks with latent independent sources."""

from __future__ import annotations

from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from kinfolk.estimator import TaskClassifier
from kinfolk.lica.answers.predictor import LICAPredictor
from kinfolk.lica.estimators.base import SharedWeights
from kinfolk.maths.arrays import Floats
from kinfolk.tasks.keywords import task_by_keyword


class LICAClassifier(TaskClassifier, ClassifierMixin, SharedWeights):
    """Linear classifier of many tasks, whose weights are sparse mixtures of a few sources that are learnt.

    The weights of task k are θ_k = μ + Λ s_k + e_k: a common part μ; a mixture of the columns of Λ by the sources s_k,
    most of which are near zero (Laplace prior); and a part e_k of the task's own. The paper has no μ.

    Parameters
    ----------
    n_sources : int, optional
        Number of sources; chosen by rows held out where None. With as many as there are tasks, nothing is shared.
    inference : {"eb", "map"}, default="eb"
        Empirical Bayes, which keeps posterior distributions of weights and sources; or point estimates of both, faster
        and with exactly sparse sources.
    sharing : {"sources", "individual", "pooled", "hierarchical"}, default="sources"
        LICA; or for comparison every task for itself, all rows as one task's, or a Gaussian prior whose mean and
        variances are learnt from all tasks.
    link : {"logistic", "probit"}, default="logistic"
        How a linear predictor becomes a probability.
    noise : {"diagonal", "isotropic"}, default="diagonal"
        Whether each feature has its own variance of what sources leave to the tasks, or all have the same. One each
        tells features that matter in no task from those that do, which predicts better where features are many.
    source_prior : {"laplace", "gaussian"}, default="laplace"
        Prior of the sources; Gaussian ones leave rotations of them open ("eb" alone).
    loading_variance : float, optional
        Prior variance of the basic classifiers' weights; that of weights fitted task by task by default.
    shared_mean : bool, default=True
        Whether the weights of all tasks have a mean beside their sources, learnt too. The paper has none, and then
        cannot have what all tasks agree on but for a source that is the same in all. It stays zero where rows held out
        are predicted better without it.
    intercept_variance : float, optional
        Prior variance of the tasks' intercepts. By default 100 about zero, which leaves each task its own; but "eb"
        learns mean and variance of the intercepts where tasks have rows of their own. Where tasks are labels of the
        same rows, rates differ by orders of magnitude, and learnt variances lowered F1.
    class_weight : None, "balanced" or mapping, optional
        Weights of the labels; balanced task by task.
    max_iter, tol : int and float
        Iterations at most, and the gain in nats per row under which they end.
    warm_start : bool, default=False
        Whether ``fit`` begins with what the last one learnt.
    weight_variances : bool, default=False
        Whether ``weight_variances_`` is computed: tasks × features numbers ("eb" alone).
    scale : {"auto", True, False}, default="auto"
        Whether columns are brought to mean zero and deviation one inside, so that it does not matter in which units
        they come; all that is shown of weights is in the units of the table. By default they are, but for tables that
        are mostly zeros, dense or sparse, which keep their scale. True divides the columns of those by their deviation
        too, and centres columns that are hardly ever zero; False leaves every table as it is. Prior variances that are
        given are those of weights per deviation, and of the linear predictor at the columns' means.
    task_column : str or int, optional
        The column of the table that holds the task.
    new_tasks : {"warn", "expected"}, default="warn"
        Whether to warn where most rows to be answered are of tasks never seen (:class:`~kinfolk.UnseenWarning`).
    random_state : int, RandomState or None
        Seed of the starts, the best of which is kept; without one, two fits may end in other sources.
    n_jobs : int, optional
        Threads over tasks; results do not depend on it.
    verbose : bool, optional
        Show progress on standard error; by default on a terminal, once it takes more than a second.
    checkpoint : path, optional
        A folder in which a fit keeps the iteration that it has reached, and how each number of sources, or each
        variance of weights, predicted: one that was stopped, by ``kill -9`` even, goes on when it is started again,
        and ends with the same result to the last bit. It needs a whole number as ``random_state``.

    Attributes
    ----------
    tasks_, classes_ : ndarray
        Ids of the tasks, and the two labels.
    coef_, intercept_ : ndarray
        Weights (tasks, features) and intercepts, in the units of the table.
    sources_, components_ : ndarray
        Sources of every task (tasks, sources), and the basic classifiers (sources, features).
    common_weights_ : ndarray of shape (n_features,)
        What all tasks have in common beside their sources.
    source_similarity_ : ndarray of shape (n_tasks, n_tasks)
        Cosine between tasks' sources; not a probability.
    scaling_ : Scaling or None
        Centre and unit of every column, where columns were brought to one scale: ``(X - centre) / unit`` is what the
        model works with, and what ``prior_`` and ``posteriors_``, in which all that was learnt lies, speak of.
    n_sources_, n_sources_curve_
        Number of sources, and what choosing it was based on.
    objective_, n_iter_, converged_
        The bound on the log evidence ("eb") or the log posterior ("map") after each iteration, and how it ended.
    interrupted_ : bool
        Whether Ctrl-C ended the fit early; what is here is then of the last iteration.

    References
    ----------
    J. Zhang, Z. Ghahramani and Y. Yang, "Learning Multiple Related Tasks using Latent Independent Component Analysis",
    NIPS 2005.

    Examples
    --------
    >>> from kinfolk.datasets import make_lica_tasks
    >>> data = make_lica_tasks(n_tasks=12, n_features=20, n_rows=40, n_sources=2, random_state=0)
    >>> model = LICAClassifier(n_sources=2, random_state=0).fit(data.X, data.y, task=data.task)
    >>> model.sources_.shape, model.components_.shape
    ((12, 2), (2, 20))
    """

    _classification: ClassVar[bool] = True

    def __init__(
        self,
        n_sources: int | None = None,
        *,
        inference: str = "eb",
        sharing: str = "sources",
        link: str = "logistic",
        noise: str = "diagonal",
        source_prior: str = "laplace",
        loading_variance: float | None = None,
        shared_mean: bool = True,
        intercept_variance: float | None = None,
        class_weight: Any = None,
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
        self.link = link
        self.noise = noise
        self.source_prior = source_prior
        self.loading_variance = loading_variance
        self.shared_mean = shared_mean
        self.intercept_variance = intercept_variance
        self.class_weight = class_weight
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

    def _predictor(self) -> LICAPredictor:
        return self._fitted_predictor()

    def decision_function(self, X: Any, *, task: Any = None) -> Floats:
        """Expected linear predictors.

        Parameters
        ----------
        X : frame, array or scipy sparse matrix
        task : array-like of shape (n_rows,), optional

        Returns
        -------
        ndarray of shape (n_rows,), or (n_rows, n_tasks) where ``y`` was a matrix

        See Also
        --------
        predict_proba : Probabilities, averaged over what is not known of the weights.
        """
        return self._predictor().decision_function(X, task=task)

    def predict_proba(self, X: Any, *, task: Any = None) -> Floats:
        """Probabilities of the labels, averaged over the posterior of the weights.

        Parameters
        ----------
        X : frame, array or scipy sparse matrix
        task : array-like of shape (n_rows,), optional
            A task never seen gets what the prior says of one.

        Returns
        -------
        ndarray of shape (n_rows, 2), or (n_rows, n_tasks) of the second label's where ``y`` was a matrix

        See Also
        --------
        predict : The more probable label.
        """
        return self._predictor().predict_proba(X, task=task)

    @task_by_keyword
    def predict(self, X: Any, *, task: Any = None) -> NDArray[Any]:
        """The more probable label.

        Parameters
        ----------
        X : frame, array or scipy sparse matrix
        task : array-like of shape (n_rows,), optional
            A task never seen gets what the prior says of one.

        Returns
        -------
        ndarray of shape (n_rows,), or (n_rows, n_tasks) where ``y`` was a matrix

        See Also
        --------
        predict_proba : Probabilities of the labels.
        """
        found: NDArray[Any] = self._predictor().predict(X, task=task)
        return found

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, task: Any = None) -> float:
        """Share of labels that are predicted correctly.

        Parameters
        ----------
        X : frame, array or scipy sparse matrix
        y : array-like of shape (n_rows,) or (n_rows, n_tasks)
            The labels; those that are unknown do not count.
        sample_weight : array-like of shape (n_rows,), optional
        task : array-like of shape (n_rows,), optional

        Returns
        -------
        float
            In multi-label form over the labels of all tasks.

        See Also
        --------
        predict : What is compared with ``y``.
        """
        pairs = self._compare(self.predict(X, task=task), y, sample_weight)
        right = np.concatenate([truth == guess for truth, guess, _ in pairs])
        weights = None if sample_weight is None else np.concatenate([weight for _, _, weight in pairs])
        return float(np.average(right, weights=weights))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
