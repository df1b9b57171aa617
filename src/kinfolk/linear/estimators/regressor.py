"""HierarchicalRegressor: partially pooled linear regression."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from kinfolk.estimator import TaskRegressor
from kinfolk.explanation import NumberExplanation
from kinfolk.interrupts import stops_safely
from kinfolk.linear.answers.archive import FittedModel
from kinfolk.linear.answers.hierarchical import HierarchicalRegressionPredictor
from kinfolk.linear.estimators.base import PartiallyPooled
from kinfolk.linear.inference.hierarchical_regression import infer
from kinfolk.maths.arrays import Floats
from kinfolk.tasks.training import Labelled, receive_measured


class HierarchicalRegressor(TaskRegressor, RegressorMixin, PartiallyPooled):
    """Partially pooled linear regression: intercepts, slopes and noise vary between tasks as far as the data suggest.

    The weights of a task are drawn from a Gaussian around common weights, and the variance of its noise from a
    distribution of variances; how far tasks differ is learnt column by column. Standard deviations and quantiles allow
    for the uncertainty of the weights and of the noise. The scales themselves are treated as known: with five tasks of
    two rows, 90% intervals covered 85% in simulations, and 82% for a new task.

    Parameters
    ----------
    slopes, categorical_features, max_iter, tol, task_column, new_tasks, checkpoint
        As for :class:`~kinfolk.HierarchicalClassifier`.

    Attributes
    ----------
    tasks_ : ndarray
        Ids of the tasks.
    hyper_, posterior_ : tuple of one
        Standard deviations, and what is known of weights and noise, in standard units of the target.
    log_evidence_ : float
        A lower bound of the log probability density of the training targets, in standard units, given their features.
    n_iter_, converged_
        Iterations, and whether the bound settled.
    interrupted_ : bool
        Whether Ctrl-C ended the fit early, after an iteration.

    Notes
    -----
    Time is O(rows × columns²), and for each iteration and task O(own columns × columns²); a fit of 1,000 tasks × 100
    rows × 15 numbers took 0.4 s of processor time, one of 4,544 tasks × 5 rows × 53 columns 1.5 s.

    References
    ----------
    A. Gelman and J. Hill, "Data Analysis Using Regression and Multilevel/Hierarchical Models", 2007.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(60, 1)), np.repeat(["a", "b", "c"], 20)
    >>> y = np.repeat([1.0, 2.0, -1.0], 20) * X[:, 0] + 0.1 * rng.normal(size=60)
    >>> model = HierarchicalRegressor().fit(X, y, task=task)
    >>> model.predict([[1.0], [1.0]], task=["b", "c"]).round(1).tolist()
    [1.9, -1.0]
    >>> model.predict_quantiles([[1.0]], [0.05, 0.95], task=["b"]).round(1).tolist()
    [[1.8, 2.1]]
    """

    def __init__(
        self,
        *,
        slopes: str | Sequence[Any] = "auto",
        categorical_features: str | Sequence[Any] = "auto",
        max_iter: int = 300,
        tol: float = 1e-2,
        task_column: str | int | None = None,
        new_tasks: str = "warn",
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.slopes = slopes
        self.categorical_features = categorical_features
        self.max_iter = max_iter
        self.tol = tol
        self.task_column = task_column
        self.new_tasks = new_tasks
        self.checkpoint = checkpoint

    def fit(self, X: Any, y: Any, *, task: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows of all tasks.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
            Text, categories, numbers and missing values; pandas, polars, pyarrow or numpy.
        y : array-like of shape (n_rows,)
            Numbers; ``None`` or NaN where there is none.
        task : array-like of shape (n_rows,), optional
            The task that each row belongs to. Without it, and without ``task_column``, all rows are one task.
        sample_weight : array-like of shape (n_rows,), optional
            A row of weight 2 counts as two rows, one of weight 0 not at all.

        Returns
        -------
        self

        See Also
        --------
        predict_quantiles : What targets of rows of known and of new tasks lie between.
        kinfolk.save : Keep what was learnt in a file.
        """
        self._check_parameters()
        told = {"task_column": self.task_column, "sample_weight": sample_weight, "new_tasks": self.new_tasks}
        return self._learn_table(receive_measured(X, y, model=type(self).__name__, task=task, **told))

    def _learn_table(self, table: Labelled) -> Self:
        """Learn from a table that has come through the door."""
        arrival, targets = table.arrival, table.numbers
        assert targets is not None
        known, has_target = arrival.known._replace(model=type(self).__name__), ~np.isnan(targets)
        prepared = self._prepare(arrival, has_target, targets)
        kept = targets[arrival.counted & has_target]
        centre, unit = _units(kept, prepared.weights)
        with stops_safely() as stop:
            hyper, fitted = infer(prepared.rows((kept - centre) / unit), None, self._options())
        words = None, centre, unit, arrival.backend, None, stop.asked()
        self._keep_read(
            FittedModel(known, prepared.design, prepared.order, prepared.groups, (hyper,), (fitted,), *words)
        )
        return self._tell_of_the_end()

    def _keep_read(self, model: FittedModel) -> Self:
        return self._keep(model, HierarchicalRegressionPredictor(model))

    def _predictor(self) -> HierarchicalRegressionPredictor:
        found: HierarchicalRegressionPredictor = self._fitted_predictor()
        return found

    def explain(self, X: Any, *, task: Any = None) -> NumberExplanation:
        """Why numbers are expected: what each feature adds, and whose data stand behind it.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
        task : array-like of shape (n_rows,), optional
            The task of each row.

        Returns
        -------
        NumberExplanation
            What the task's own rows settled of a weight is its own share, what all rows settled of the common weight is
            everybody's.

        See Also
        --------
        weights : All weights as a table.
        """
        found: NumberExplanation = self._predictor().explain(X, task=task)
        return found


def _units(targets: Floats, weights: Floats | None) -> tuple[float, float]:
    """Mean and standard deviation of targets, one where they do not differ."""
    mass = np.ones(len(targets)) if weights is None else weights
    largest = float(np.abs(targets).max()) or 1.0
    share, parts = mass / mass.sum(), targets / largest
    centre = float(share @ parts)
    spread = float(np.sqrt(share @ (parts - centre) ** 2))
    return largest * centre, largest * spread if spread > 1e-12 else largest
