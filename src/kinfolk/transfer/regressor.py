"""TransferRegressor: one regression for people who do not want to choose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Self

from sklearn.base import RegressorMixin

from kinfolk.estimator import TaskRegressor
from kinfolk.explanation import NumberExplanation
from kinfolk.tasks.answering import receive_rows
from kinfolk.tasks.training import receive_measured
from kinfolk.transfer.averaging import Average, ModelAverage
from kinfolk.transfer.explaining import averaged_parts
from kinfolk.transfer.members import REGRESSOR_KINDS, REGRESSORS, Chosen, Sizes, chosen_members
from kinfolk.transfer.predictor import AveragedRegressionPredictor


class TransferRegressor(TaskRegressor, RegressorMixin, ModelAverage):
    """The regression to take if you do not want to choose: several kinds of models, weighted by how well they predict.

    Linear models that share in several ways, and boosted trees, learn from any table. They are weighted by the density
    that each gives to held-out numbers of tasks, and of whole tasks that are held out; the weights depend on how many
    rows a task has. The prediction is a distribution, whose width is that of the errors on held-out rows.

    Parameters
    ----------
    members : sequence of str, mapping or sequence of estimators, optional
        Which models to weigh: some of the names in ``kinfolk.transfer.members.REGRESSORS``, or estimators of kinfolk,
        by names of your own if given as a mapping. All of the former by default.
    n_folds : int, default=5
        Parts of the rows that are held out in turn; where rows are many, fewer are enough.
    task_column : str or int, optional
        The column of the table that holds the task.
    new_tasks : {"warn", "expected"}, default="warn"
        Whether to warn where most rows to be answered are of tasks never seen (:class:`~kinfolk.UnseenWarning`).
    random_state : int, RandomState or None
        Seed of what is held out.
    n_jobs : int or None
        Fits run side by side (threads, through joblib); the result does not depend on it.
    verbose : bool, optional
        Show progress on standard error; by default on a terminal, once it takes more than a second.
    checkpoint : path, optional
        A folder in which a fit keeps what members said of rows held out, and what those that sample have reached: one
        that was stopped, by ``kill -9`` even, goes on when it is started again, and ends with the same result to the
        last bit. It needs a whole number as ``random_state``.

    Attributes
    ----------
    members_ : dict
        The members with a weight, fitted to all rows, by name.
    weights_ : dict
        The weight of each, averaged over tasks; the weights add up to one.
    weights_by_rows_ : frame
        The weight of each by how many rows a task has, 0 for new tasks: rows, member, weight.
    tasks_ : array
        Tasks, sorted.

    See Also
    --------
    TransferClassifier : The same for labels.

    References
    ----------
    Y. Yao, A. Vehtari, D. Simpson and A. Gelman, "Using Stacking to Average Bayesian Predictive Distributions",
    Bayesian Analysis 13, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from kinfolk import TransferRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(200, 2)), np.repeat(["a", "b", "c", "d", "e"], 40)
    >>> y = np.repeat([1.0, 2.0, -1.0, 0.5, 1.5], 40) * X[:, 0] + 0.1 * rng.normal(size=200)
    >>> model = TransferRegressor(random_state=0).fit(X, y, task=task)
    >>> model.predict([[1.0, 0.0], [1.0, 0.0]], task=["b", "c"]).round().tolist()
    [2.0, -1.0]
    """

    # What default members are told beside, and numbers have no use for.
    unlabelled = None
    categorical_features = "auto"
    bins = 8
    numeric = "bin"

    def __init__(
        self,
        members: Sequence[Any] | Mapping[str, Any] | None = None,
        *,
        n_folds: int = 5,
        task_column: str | int | None = None,
        new_tasks: str = "warn",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | None = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.members = members
        self.n_folds = n_folds
        self.task_column = task_column
        self.new_tasks = new_tasks
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any, *, task: Any = None, sample_weight: Any = None) -> Self:
        """Weight the members by held-out rows and tasks, and fit those with a weight to all rows.

        Parameters
        ----------
        X : frame, array or mapping from columns to values
            Text, categories, truth values and numbers, with gaps where values are missing.
        y : array-like of shape (n_rows,)
            Numbers; ``None`` or NaN where there is none: such rows are left out.
        task : array-like of shape (n_rows,), optional
            The task that each row belongs to. Without it, and without ``task_column``, all rows are one task.
        sample_weight : array-like of shape (n_rows,), optional
            A row of weight 2 counts as two rows, one of weight 0 not at all.

        Returns
        -------
        self

        See Also
        --------
        weights_by_rows_ : The weights.
        explain : What each feature, and whose data, stood behind a prediction.
        """
        self._check_parameters()
        told = {"task_column": self.task_column, "new_tasks": self.new_tasks, "sample_weight": sample_weight}
        self._transfer(receive_measured(X, y, model=type(self).__name__, task=task, **told))
        return self

    def _choose(self, seed: int, sizes: Sizes) -> Chosen:
        return chosen_members(self.members, REGRESSORS, REGRESSOR_KINDS, self, seed, sizes)

    def _make_predictor(self, average: Average) -> AveragedRegressionPredictor:
        assert average.scales is not None
        members = [member.answers() for member in average.members.values()]
        return AveragedRegressionPredictor(members, average.weights, average.n_rows, average.known, average.scales)

    def _predictor(self) -> AveragedRegressionPredictor:
        found: AveragedRegressionPredictor = ModelAverage._predictor(self)
        return found

    def explain(self, X: Any, *, task: Any = None) -> NumberExplanation:
        """What each feature adds to the expected number of each row, members' explanations averaged by their weights.

        What trees see in several features at once is one line, "interactions".

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
        task : array-like of shape (n_rows,), optional
            The task of each row; it may be left out where there is only one, or a column holds it.

        Returns
        -------
        NumberExplanation
            Its ``weights`` has the weight of each member for each row.

        See Also
        --------
        members_ : The models that are averaged.
        """
        predictor, average = self._predictor(), self._average
        assert average.scales is not None
        parts = averaged_parts(average.members, predictor, receive_rows(X, predictor.known, task=task))
        centre, size = average.scales.unit
        level, added = centre + size * parts.label_part[:, 0], size * parts.feature_part[..., 0]
        return NumberExplanation(parts.names, parts.values, level, added, *parts.shares, average.backend, parts.weights)
