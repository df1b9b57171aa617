"""What all loaded models are, what a classifier answers from log probabilities of labels, and a regression from a
predictive distribution; with numpy alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.tasks.answering import Known, some_names
from kinfolk.tasks.keywords import task_by_keyword


class Predictor:
    """Base class of everything that :func:`kinfolk.load` gives; it says what it is."""

    known: Known

    def __repr__(self) -> str:
        known = self.known
        columns = f"{known.n_columns} column{'s' * (known.n_columns != 1)}"
        columns += "" if known.columns is None else f" ({some_names(known.columns)})"
        labels = getattr(self, "classes_", None)
        of_labels = "" if labels is None else f", labels {some_names(labels.tolist())}"
        tasks = f"{len(known.tasks)} task{'s' * (len(known.tasks) != 1)} ({some_names(known.tasks.tolist())})"
        return f"<{known.model}, ready to answer: {tasks}, {columns}{of_labels}>"


def check_quantiles(quantiles: Any) -> NDArray[np.float64]:
    """Levels of quantiles, if they are numbers between 0 and 1."""
    levels = np.atleast_1d(np.asarray(quantiles, dtype=np.float64))
    if levels.ndim != 1 or not ((levels > 0.0) & (levels < 1.0)).all():
        raise ValueError(f"quantiles={quantiles!r}: numbers between 0 and 1 are needed")
    return levels


class LabelAnswers:
    """What a classifier answers, loaded or not; a subclass says how probable each label is, by ``_log_proba``."""

    classes_: NDArray[Any]

    def _log_proba(self, X: Any, task: Any) -> NDArray[np.float64]:
        raise NotImplementedError  # abstract

    @task_by_keyword
    def predict_log_proba(self, X: Any, *, task: Any = None) -> NDArray[np.float64]:
        """Log probability of each label.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
        task : array-like of shape (n_rows,), optional
            The task of each row; it may be left out where there is only one, or a column holds it.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)

        See Also
        --------
        predict_proba : The probabilities themselves.
        """
        return self._log_proba(X, task)

    @task_by_keyword
    def predict_proba(self, X: Any, *, task: Any = None) -> NDArray[np.float64]:
        """Probability of each label, in the order of ``classes_``.

        A task never seen gets the model's prediction for a new one; a category never seen, or a missing value, is left
        out.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
        task : array-like of shape (n_rows,), optional
            The task of each row; it may be left out where there is only one, or a column holds it.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)

        See Also
        --------
        predict : The most probable label alone.
        """
        return np.asarray(np.exp(self._log_proba(X, task)))

    @task_by_keyword
    def predict(self, X: Any, *, task: Any = None) -> NDArray[Any]:
        """The most probable label of each row.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
        task : array-like of shape (n_rows,), optional
            The task of each row; it may be left out where there is only one, or a column holds it.

        Returns
        -------
        ndarray of shape (n_rows,)

        See Also
        --------
        predict_proba : How probable each label is.
        """
        log_proba = self._log_proba(X, task)
        return np.asarray(self.classes_[log_proba.argmax(axis=1)])


class LabelPredictor(LabelAnswers, Predictor):
    """Base class of loaded classifiers."""


class NumberAnswers:
    """What a regression with a predictive distribution answers, loaded or not.

    A subclass gives means and standard deviations by ``_expected``, and quantiles at levels by ``_quantiles``.
    """

    def _expected(self, X: Any, task: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        raise NotImplementedError  # abstract

    def _quantiles(self, X: Any, task: Any, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        raise NotImplementedError  # abstract

    @task_by_keyword
    def predict(self, X: Any, *, task: Any = None, return_std: bool = False) -> Any:
        """Expected numbers.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
        task : array-like of shape (n_rows,), optional
            The task of each row; a task never seen gets the prediction for a new one.
        return_std : bool, default=False
            Whether to give the standard deviation of each number, noise included, as well.

        Returns
        -------
        ndarray of shape (n_rows,), or a pair of them

        See Also
        --------
        predict_quantiles : Intervals, which hold what they promise where noise is uneven too.
        """
        expected, deviation = self._expected(X, task)
        return (expected, deviation) if return_std else expected

    def predict_quantiles(self, X: Any, quantiles: Any = (0.05, 0.5, 0.95), *, task: Any = None) -> NDArray[np.float64]:
        """Quantiles of each number, noise included: 90 % of numbers lie between those of 0.05 and 0.95.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
        quantiles : array-like of shape (n_quantiles,), default=(0.05, 0.5, 0.95)
            Each between 0 and 1.
        task : array-like of shape (n_rows,), optional
            The task of each row.

        Returns
        -------
        ndarray of shape (n_rows, n_quantiles)

        See Also
        --------
        predict : Means and standard deviations.
        """
        return self._quantiles(X, task, check_quantiles(quantiles))


class NumberPredictor(NumberAnswers, Predictor):
    """Base class of loaded regressions with a predictive distribution."""
