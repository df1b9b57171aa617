"""HierarchicalClassifier: partially pooled logistic regression."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from kinfolk.checkpoints import Checkpoint
from kinfolk.estimator import TaskClassifier
from kinfolk.explanation import Explanation
from kinfolk.interrupts import stops_safely
from kinfolk.linear.answers.archive import FittedModel
from kinfolk.linear.answers.hierarchical import HierarchicalPredictor
from kinfolk.linear.estimators.base import PartiallyPooled
from kinfolk.linear.inference.hierarchical import infer
from kinfolk.tasks.keywords import task_by_keyword
from kinfolk.tasks.training import Labelled, receive_labelled


class HierarchicalClassifier(TaskClassifier, ClassifierMixin, PartiallyPooled):
    """Partially pooled logistic regression: intercepts and slopes vary between tasks as far as the data suggest.

    The weights of a task are drawn from a Gaussian around common weights; how far tasks differ is learnt column by
    column, so that tasks with few rows are nearly pooled and large ones are nearly separate. Probabilities are averaged
    over the posterior of the weights. With more than two labels there is a model for each, against all others, and
    their probabilities are divided by their sum: each then has its own scales and the exact averages that two labels
    have, which a softmax of Gaussians would not have.

    Parameters
    ----------
    slopes : {"auto", "all", "none"} or list of columns, default="auto"
        Of which columns tasks have weights of their own. "auto" takes the 24 columns of the design matrix in which
        tasks differ most, all where there are fewer; "none" leaves intercepts alone.
    categorical_features : "auto" or list of columns, default="auto"
        Columns that are categories: text, truth values and what a frame declares, or those named.
    max_iter : int, default=300
        Iterations at most.
    tol : float, default=1e-2
        Gain of the bound, in nats a thousand rows, that is not worth another iteration.
    task_column : str or int, optional
        The column of the table that holds the task.
    new_tasks : {"warn", "expected"}, default="warn"
        Whether to warn where most rows to be answered are of tasks never seen (:class:`~kinfolk.UnseenWarning`).
    unlabelled : optional
        A label that marks a row without one; ``None`` and NaN always do. Such rows are left out, with a warning.
    checkpoint : path, optional
        A folder in which the fit keeps how far it got: one that was killed and is started again, with the same data and
        parameters, goes on there and ends as if nothing had happened.

    Attributes
    ----------
    classes_, tasks_ : ndarray
        The labels, and ids of the tasks.
    hyper_, posterior_ : tuple
        Standard deviations, and what is known of the weights: one for two labels, else one for each label.
    log_evidence_ : float
        A lower bound of the log probability of the training labels given their features; of more than two labels, the
        sum over their models.
    n_iter_, converged_
        Iterations, and whether the bound settled.
    interrupted_ : bool
        Whether Ctrl-C ended the fit early, after an iteration.

    Notes
    -----
    Time is O(iterations × rows × columns²), and for each task O(own columns³); a fit of 1,000 tasks × 100 rows × 15
    numbers took 0.8 s of processor time, and rows are answered at two million a second.

    References
    ----------
    M. Opper and C. Archambeau, "The variational Gaussian approximation revisited", Neural Computation 21, 2009.

    A. Gelman and J. Hill, "Data Analysis Using Regression and Multilevel/Hierarchical Models", 2007.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, task = rng.normal(size=(200, 2)), np.repeat(["a", "b", "c", "d"], 50)
    >>> slope = np.repeat([2.0, 1.0, 1.5, -1.0], 50)
    >>> y = np.where(slope * X[:, 0] + rng.logistic(size=200) > 0, "yes", "no")
    >>> model = HierarchicalClassifier().fit(X, y, task=task)
    >>> model.predict_proba([[1.0, 0.0]], task=["d"]).round(1).tolist()
    [[0.8, 0.2]]
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
        unlabelled: Any = None,
        checkpoint: str | PathLike[str] | None = None,
    ) -> None:
        self.slopes = slopes
        self.categorical_features = categorical_features
        self.max_iter = max_iter
        self.tol = tol
        self.task_column = task_column
        self.new_tasks = new_tasks
        self.checkpoint = checkpoint
        self.unlabelled = unlabelled

    def fit(self, X: Any, y: Any, *, task: Any = None, sample_weight: Any = None) -> Self:
        """Learn from rows of all tasks.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
            Text, categories, numbers and missing values; pandas, polars, pyarrow or numpy.
        y : array-like of shape (n_rows,)
            Labels of any type; ``None`` or NaN (or the value of ``unlabelled``) where there is none.
        task : array-like of shape (n_rows,), optional
            The task that each row belongs to. Without it, and without ``task_column``, all rows are one task.
        sample_weight : array-like of shape (n_rows,), optional
            A row of weight 2 counts as two rows, one of weight 0 not at all.

        Returns
        -------
        self

        See Also
        --------
        predict_proba : Probabilities for rows of known and of new tasks.
        kinfolk.save : Keep what was learnt in a file.
        """
        self._check_parameters()
        labelled = receive_labelled(
            X,
            y,
            model=type(self).__name__,
            task=task,
            task_column=self.task_column,
            sample_weight=sample_weight,
            unlabelled=self.unlabelled,
            new_tasks=self.new_tasks,
        )
        return self._learn_table(labelled)

    def _learn_table(self, table: Labelled) -> Self:
        """Learn from a table that has come through the door."""
        arrival, (classes, codes) = table.arrival, table.labels
        known = arrival.known._replace(model=type(self).__name__)
        prepared = self._prepare(arrival, codes >= 0, codes.astype(np.float64))
        kept = codes[arrival.counted & (codes >= 0)]
        own_labels = range(len(classes)) if len(classes) > 2 else [len(classes) - 1]
        rows = [prepared.rows((kept == label).astype(np.float64)) for label in own_labels]
        options = self._options()
        with stops_safely() as stop:
            hypers, fits = zip(*(infer(its, None, options) for its in rows), strict=True)
            fits, clusters = self._learn(rows, hypers, fits, options.checkpoint)
        design, order, groups = prepared.design, prepared.order, prepared.groups
        words = classes, 0.0, 1.0, arrival.backend, clusters, stop.asked()
        self._keep_read(FittedModel(known, design, order, groups, hypers, fits, *words))
        return self._tell_of_the_end()

    def _learn(self, rows: Any, hypers: Any, fits: Any, checkpoint: Checkpoint) -> Any:
        """What becomes of the partially pooled fits of the labels: themselves, and no clusters."""
        return fits, None

    def _keep_read(self, model: FittedModel) -> Self:
        assert model.classes is not None
        self.classes_ = model.classes
        return self._keep(model, HierarchicalPredictor(model))

    def _predictor(self) -> HierarchicalPredictor:
        found: HierarchicalPredictor = self._fitted_predictor()
        return found

    @task_by_keyword
    def explain(self, X: Any, *, task: Any = None) -> Explanation:
        """Why rows get their labels: what each feature adds to the log odds, and whose data this rests on.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
        task : array-like of shape (n_rows,), optional
            The task of each row.

        Returns
        -------
        Explanation
            What the task's own rows settled of a weight is its own share, what all rows settled of the common weight is
            everybody's. "(rest)" is what averaging over unknown weights takes.

        See Also
        --------
        weights : All weights as a table.
        """
        found: Explanation = self._predictor().explain(X, task=task)
        return found
