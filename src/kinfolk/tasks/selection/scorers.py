"""Scores that know the tasks: any scikit-learn scorer, with the task passed on and averages over tasks."""

import copy
import inspect
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import get_routing_for_object

from kinfolk.tasks.columns import in_order
from kinfolk.tasks.schema import Codes
from kinfolk.tasks.selection.splitting import tasks_of_rows
from kinfolk.tasks.table import as_column, n_rows, unlabelled_rows

_RESPONSES = ("predict", "predict_proba", "predict_log_proba", "decision_function")

# By name, because not every scikit-learn that we support has them all.
_NEED_EVERY_CLASS = {"roc_auc_score", "average_precision_score", "d2_log_loss_score", "d2_brier_score"}


def task_scorer(
    scoring: str | Callable[..., float],
    *,
    per_task: bool = False,
    min_rows: int = 1,
    task_column: int | str | None = None,
    unlabelled: int | str | None = None,
) -> "TaskScorer":
    """Make a scorer that hands each row's task on to the estimator.

    The result goes where scikit-learn takes ``scoring=``. It asks for ``task`` by itself, so that with metadata
    routing enabled ``cross_validate(..., params={"task": task})`` is enough; it can also be called directly,
    ``scorer(estimator, X, y, task=task)``. Rows without a label are left out of the score.

    Parameters
    ----------
    scoring : str or scorer
        A name such as ``"roc_auc"`` or ``"neg_log_loss"``, or a scorer from ``sklearn.metrics.make_scorer``.
    per_task : bool
        Whether to score each task by itself and give the plain mean, in which every task counts the same.
        Tasks where the score does not exist are left out of it: the area under a curve (``roc_auc``,
        ``average_precision``) and the ``d2`` scores need every class of the estimator among the task's
        labels, the two of them if there are two; for a score of your own, NaN says that it does not exist.
        If no task is left, the score is NaN, with a warning.
    min_rows : int
        With `per_task`, leave out tasks with fewer labelled rows.
    task_column : str or int, optional
        Name or position of the column of `X` that holds the task, for an estimator that has it from there.
    unlabelled : int or str, optional
        A label that means "no label", besides ``None`` and NaN.

    Returns
    -------
    TaskScorer

    Notes
    -----
    An estimator whose methods take no task is scored without it, so that a pooled baseline can stand in the
    same comparison. A fitted search, such as ``GridSearchCV``, is scored by its best estimator, because its own
    ``predict`` cannot pass a task on. The log loss and its like are told the estimator's classes, so that a
    test set that lacks one is no error.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> from kinfolk.tasks.selection.scorers import task_scorer
    >>> X, y = np.zeros((4, 1)), np.array([1, 1, 1, 0])
    >>> majority = DummyClassifier().fit(X, y)
    >>> task_scorer("accuracy")(majority, X, y)
    0.75
    >>> task_scorer("accuracy", per_task=True)(majority, X, y, task=["ann", "ann", "ann", "bob"])
    0.5
    """
    if not isinstance(scoring, str) and not callable(scoring):
        raise ValueError(f"scoring must be the name of a score or a scorer, not {scoring!r}.")
    if min_rows < 1:
        raise ValueError(f"min_rows must be at least 1, not {min_rows!r}.")
    return TaskScorer(scoring, per_task, min_rows, task_column, unlabelled)


class TaskScorer:
    """What `task_scorer` returns: a scorer that takes the task of each row."""

    def __init__(
        self,
        scoring: str | Callable[..., float],
        per_task: bool,
        min_rows: int,
        task_column: int | str | None,
        unlabelled: int | str | None,
    ) -> None:
        self._scoring = scoring
        self._scorer = check_scoring(scoring=scoring)
        self._per_task = per_task
        self._min_rows = min_rows
        self._task_column = task_column
        self._unlabelled = unlabelled

    def __call__(self, estimator: Any, X: Any, y: Any, *, task: Any = None, **metadata: Any) -> float:
        """Score a fitted estimator.

        Parameters
        ----------
        estimator : estimator
            Fitted, with ``predict(X, task=...)`` and whatever else the score looks at.
        X : table of shape (n_rows, n_features)
            Rows to predict.
        y : array-like of shape (n_rows,)
            Their true labels.
        task : array-like of shape (n_rows,), optional
            Their tasks.
        **metadata : array-like of shape (n_rows,)
            What else the inner scorer takes for each row, such as ``sample_weight``.

        Returns
        -------
        float
        """
        labels = as_column(y)
        if len(labels) != n_rows(X):
            raise ValueError(f"y must have a label for each of the {n_rows(X)} rows of X, not {len(labels)}.")
        if self._per_task and task is None and self._task_column is None:
            raise ValueError(f"{self!r} needs the task of each row, as task= or from a task_column.")
        tasks = None
        if task is not None or self._task_column is not None:
            tasks = tasks_of_rows(X, task, task_column=self._task_column)
        rows = np.flatnonzero(~unlabelled_rows(labels, self._unlabelled))
        if len(rows) == 0:
            raise ValueError(f"There is nothing to score, because none of the {len(labels)} rows has a label.")
        labels = labels[rows]
        if labels.dtype == object:
            # An array that once held None keeps its type, of which scikit-learn's metrics know nothing.
            labels = np.array(labels.tolist())
        test = _TestRows(
            getattr(estimator, "best_estimator_", estimator),
            _safe_indexing(X, rows),
            labels,
            None if tasks is None or task is None else tasks[rows],
            {name: _safe_indexing(value, rows) for name, value in metadata.items() if value is not None},
        )
        scorer = _told_the_classes(self._scorer, test.estimator)
        if self._per_task and tasks is not None:
            return self._mean_over_tasks(scorer, test, in_order(tasks[rows])[1])
        return float(test.score(scorer, np.arange(len(rows))))

    def _mean_over_tasks(self, scorer: Any, test: "_TestRows", codes: Codes) -> float:
        scores = [test.score(scorer, rows) for rows in self._scorable(test, codes)]
        defined = [score for score in scores if not np.isnan(score)]
        if not defined:
            warnings.warn(
                f"{self!r} is not defined, because it exists for none of the {codes.max() + 1} tasks.",
                UndefinedMetricWarning,
                stacklevel=3,
            )
            return float("nan")
        return float(np.mean(defined))

    def _scorable(self, test: "_TestRows", codes: Codes) -> Iterator[NDArray[np.intp]]:
        n_classes = 1
        if _metric_name(self._scorer) in _NEED_EVERY_CLASS:
            n_classes = max(2, len(getattr(test.estimator, "classes_", ())))
        by_task = np.argsort(codes, kind="stable")
        for rows in np.split(by_task, np.cumsum(np.bincount(codes))[:-1]):
            if len(rows) >= self._min_rows and len(np.unique(test.y[rows])) >= n_classes:
                yield rows

    def __repr__(self) -> str:
        given = {
            "per_task": (self._per_task, False),
            "min_rows": (self._min_rows, 1),
            "task_column": (self._task_column, None),
            "unlabelled": (self._unlabelled, None),
        }
        changed = [f", {name}={value!r}" for name, (value, default) in given.items() if value != default]
        return f"task_scorer({self._scoring!r}{''.join(changed)})"

    def get_metadata_routing(self) -> Any:
        """Say which metadata the scorer wants: what the inner one does, and the task.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRequest
        """
        request = get_routing_for_object(self._scorer)
        request.score.add_request(param="task", alias=self._task_column is None)
        return request

    def _accept_sample_weight(self) -> bool:
        # scikit-learn asks every scorer by this name where metadata routing is off.
        asked = getattr(self._scorer, "_accept_sample_weight", None)
        return bool(asked()) if asked is not None else False


class _TestRows:
    """Labelled rows and an estimator that answers for them; each of its methods is asked once at most."""

    def __init__(
        self, estimator: Any, X: Any, y: NDArray[Any], task: NDArray[Any] | None, metadata: dict[str, Any]
    ) -> None:
        self.estimator = estimator
        self.X = X
        self.y = y
        self.task = task
        self.metadata = metadata
        self._answers: dict[str, NDArray[Any]] = {}

    def score(self, scorer: Callable[..., Any], rows: NDArray[np.intp]) -> Any:
        X = _safe_indexing(self.X, rows)
        metadata = {name: _safe_indexing(value, rows) for name, value in self.metadata.items()}
        return scorer(self._stand_in(X, rows), X, self.y[rows], **metadata)

    def _stand_in(self, X: Any, rows: NDArray[np.intp]) -> Any:
        """Copy the estimator, for a scorer to find all it may look at, with the task known to its methods."""
        stand_in = object.__new__(type(self.estimator))
        vars(stand_in).update(vars(self.estimator))
        for method in _RESPONSES:
            if hasattr(self.estimator, method):
                answer = partial(self._answer, method, X, rows)
                answer.__name__ = method  # type: ignore[attr-defined]  # scikit-learn reads it
                vars(stand_in)[method] = answer
        return stand_in

    def _answer(self, method: str, expected: Any, rows: NDArray[np.intp], X: Any, task: None = None) -> Any:
        if X is not expected:
            raise ValueError(f"A scorer inside task_scorer must call {method} on the very X that it was given.")
        if method not in self._answers:
            ask = getattr(self.estimator, method)
            takes_task = self.task is not None and _takes_task(self.estimator, method)
            self._answers[method] = ask(self.X, task=self.task) if takes_task else ask(self.X)
        return self._answers[method][rows]


def _takes_task(estimator: Any, method: str) -> bool:
    if "task" in inspect.signature(getattr(estimator, method)).parameters:
        return True
    # A pipeline takes anything; what its steps take, only its routing tells.
    return bool(get_routing_for_object(estimator).consumes(method, ["task"]))


def _metric_name(scorer: Any) -> str:
    metric = getattr(scorer, "_score_func", scorer)
    return getattr(metric.func if isinstance(metric, partial) else metric, "__name__", "")


def _told_the_classes(scorer: Any, estimator: Any) -> Any:
    """Let a metric that takes ``labels`` to read probabilities by have the estimator's classes for it."""
    metric = getattr(scorer, "_score_func", None)
    reads_probabilities = getattr(scorer, "_response_method", "predict") != "predict"
    if not reads_probabilities or not inspect.isfunction(metric) or not hasattr(estimator, "classes_"):
        return scorer
    if "labels" not in inspect.signature(metric).parameters:
        return scorer
    told = copy.copy(scorer)
    told._kwargs = {"labels": estimator.classes_, **scorer._kwargs}
    return told
