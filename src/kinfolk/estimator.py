"""What every estimator of kinfolk is to scikit-learn: who routes tasks, what answers, and how answers are scored.

An estimator answers through a predictor, ``_predictor()``: the very object that :func:`kinfolk.load` gives.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from kinfolk.predictor import LabelAnswers, NumberAnswers
from kinfolk.tasks.answering import Known, divided_tables, expect_new
from kinfolk.tasks.schema import encode
from kinfolk.tasks.training import check_labels, check_weights, flat_labels, receive_numbers

_ROUTED = ("fit", "partial_fit", "predict", "predict_proba", "predict_log_proba", "decision_function", "score")
_PASSED_ON = ("task", "lengths")
# What tables were divided by tasks, in the pickle of an estimator that is not fitted.
_DIVIDED = "tables divided by tasks"


class TaskRouting:
    """Routes ``task``, and ``lengths`` of sequences, to every method that takes them, without further requests.

    It stands before ``BaseEstimator`` among the bases, which reads the requests when a class is made.
    """

    n_features_in_: int
    feature_names_in_: NDArray[Any]

    def __init_subclass__(cls, **options: Any) -> None:
        for method in _ROUTED:
            given = inspect.signature(getattr(cls, method)).parameters if hasattr(cls, method) else ()
            passed_on = {name: True for name in _PASSED_ON if name in given}
            if passed_on:
                setattr(cls, f"__metadata_request__{method}", passed_on)
        super().__init_subclass__(**options)

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        # On its way to a worker that fits it: what a splitter said in this process holds there too.
        if not any(name.endswith("_") for name in state):
            state = {**state, _DIVIDED: divided_tables()}
        return state

    def __setstate__(self, state: Any) -> None:
        for tasks in state.pop(_DIVIDED, ()):
            expect_new(tasks)
        super().__setstate__(state)  # type: ignore[misc]  # BaseEstimator stands behind

    def report(
        self,
        path: Any = None,
        data: Any = None,
        *,
        y: Any = None,
        task: Any = None,
        ignore: Any = (),
        examples: bool = True,
        n_folds: int = 5,
        random_state: int = 0,
    ) -> Any:
        """One self-contained HTML page about the fitted model.

        Parameters
        ----------
        path : str or path, optional
            Where to write it.
        data : table, optional
            Rows on which the model is compared with models that do not share. They may be those that it was fitted to:
            copies of it learn without the rows that they are asked about. Of sequences, a table with the columns of
            the fit, a list of sequences with ``task``, or a tuple of table, lengths and tasks.
        y, task : array-like or str, optional
            What is to be predicted, and each row's task: arrays, or names of columns of ``data``.
        ignore : sequence of str, default=()
            Checks to leave out, such as ``["KF003"]``.
        examples : bool, default=True
            Whether rows of ``data`` may be shown.
        n_folds : int, default=5
            Parts of the rows that are held out in turn.
        random_state : int, default=0
            Seed of the folds.

        Returns
        -------
        kinfolk.reporting.Report
            With ``save(path)``, ``open()``, ``html`` and ``document``; notebooks show it.

        See Also
        --------
        checks : What to look at, as a table.
        """
        return self._reporting().report(
            self,
            path,
            data,
            y=y,
            task=task,
            ignore=ignore,
            examples=examples,
            n_folds=n_folds,
            random_state=random_state,
        )

    def checks(
        self,
        data: Any = None,
        *,
        y: Any = None,
        task: Any = None,
        ignore: Any = (),
        n_folds: int = 5,
        random_state: int = 0,
    ) -> Any:
        """Findings of the numbered checks in the fitted model and in rows, as a table.

        Parameters
        ----------
        data, y, task, ignore, n_folds, random_state
            As in :meth:`report`.

        Returns
        -------
        frame
            Columns code, title, severity (3 is gravest), where, seen, why, advice.

        See Also
        --------
        report : The same with all that was found, as a page.
        """
        return self._reporting().checks(
            self, data, y=y, task=task, ignore=ignore, n_folds=n_folds, random_state=random_state
        )

    def to_arviz(self) -> Any:
        """The draws of a model that was fitted by sampling, for ArviZ's plots and diagnostics.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            Which of the two depends on ArviZ's version. Group ``posterior`` has ``cluster`` (chain, draw, task),
            ``n_clusters`` and the hyper-parameters that were drawn, group ``sample_stats`` the log joint density
            ``lp``. Where chains are of several models, as those of ``AveragedIHMM``, the coordinate ``chain`` names
            the models.

        See Also
        --------
        report : A page of all that was found, chains among it.
        """
        check_is_fitted(self)
        found: Any = import_module("kinfolk.arviz_data").to_arviz(self)
        return found

    def _reporting(self) -> Any:
        # Reports know all models, and no model knows of reports before it is asked for one.
        check_is_fitted(self)
        return import_module("kinfolk.reporting")

    def _html_repr(self) -> str:
        """What notebooks show: a few sentences once the model is fitted, and scikit-learn's picture of parameters."""
        drawn: str = estimator_html_repr(self)
        if not hasattr(self, "tasks_"):
            return drawn
        summary: str = import_module("kinfolk.reporting").notebook_summary(self)
        return summary + drawn

    def _remember_columns(self, known: Known) -> None:
        """Set what scikit-learn asks estimators to say of the columns that they were fitted to."""
        self.n_features_in_ = known.n_columns
        self.__dict__.pop("feature_names_in_", None)
        if known.columns is not None:
            self.feature_names_in_ = np.array(known.columns, dtype=object)


class TaskClassifier(TaskRouting, LabelAnswers):
    """A classifier, whose answers are its predictor's, and its score."""

    unlabelled: Any = None

    def _predictor(self) -> Any:
        """The object that answers; an error where the estimator is not fitted."""
        raise NotImplementedError  # abstract

    def _log_proba(self, X: Any, task: Any) -> NDArray[np.float64]:
        found: NDArray[np.float64] = self._predictor().predict_log_proba(X, task=task)
        return found

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, task: Any = None) -> float:
        """Share of labelled rows whose label is predicted correctly.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            True labels; rows without one are left out.
        sample_weight : array-like of shape (n_rows,), optional
            How much each row counts.
        task : array-like of shape (n_rows,), optional
            The task of each row.

        Returns
        -------
        float

        See Also
        --------
        kinfolk.task_scorer : Any other score of scikit-learn, over all rows or task by task.
        """
        predicted = self.predict(X, task=task)
        return label_accuracy(self.classes_, predicted, y, self.unlabelled, sample_weight)


class TaskRegressor(TaskRouting, NumberAnswers):
    """A regression, whose answers are its predictor's, and its score."""

    def _predictor(self) -> Any:
        """The object that answers; an error where the estimator is not fitted."""
        raise NotImplementedError  # abstract

    def _expected(self, X: Any, task: Any) -> Any:
        return self._predictor()._expected(X, task)

    def _quantiles(self, X: Any, task: Any, levels: NDArray[np.float64]) -> Any:
        return self._predictor()._quantiles(X, task, levels)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, task: Any = None) -> float:
        """Share of the numbers' variance that is explained.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            The numbers; rows without one are left out.
        sample_weight : array-like of shape (n_rows,), optional
            How much each row counts.
        task : array-like of shape (n_rows,), optional
            The task of each row.

        Returns
        -------
        float

        See Also
        --------
        predict : What is compared with ``y``.
        """
        predicted = self.predict(X, task=task)
        truth = receive_numbers(None, y, len(predicted), model=type(self).__name__)
        weights, known = check_weights(sample_weight, len(predicted)), ~np.isnan(truth)
        return float(
            r2_score(truth[known], predicted[known], sample_weight=None if weights is None else weights[known])
        )


def label_accuracy(
    classes: NDArray[Any], predicted: NDArray[Any], y: Any, unlabelled: Any = None, sample_weight: Any = None
) -> float:
    """Weighted share of labelled rows whose label was predicted."""
    labels, missing = check_labels(None, flat_labels(y), len(predicted), unlabelled)
    weights = check_weights(sample_weight, len(predicted))
    # Compared as codes, since labels may be of types that scikit-learn does not mix.
    known = classes.tolist()
    truth, guess = encode(labels[~missing], known), encode(predicted[~missing], known)
    return float(accuracy_score(truth, guess, sample_weight=None if weights is None else weights[~missing]))
