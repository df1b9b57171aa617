"""What all loaded models are, and what a classifier answers from log probabilities of labels; with numpy alone."""

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
        columns = f"{known.n_columns} columns" + ("" if known.columns is None else f" ({some_names(known.columns)})")
        labels = getattr(self, "classes_", None)
        of_labels = "" if labels is None else f", labels {some_names(labels.tolist())}"
        tasks = f"{len(known.tasks)} task{'s' * (len(known.tasks) != 1)} ({some_names(known.tasks.tolist())})"
        return f"<{known.model}, ready to answer: {tasks}, {columns}{of_labels}>"


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
