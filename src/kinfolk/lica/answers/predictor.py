"""What a linear model of many tasks answers, fitted or loaded, with numpy alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.lica.answers.archive import FittedModel, read
from kinfolk.lica.answers.moments import moments_of_rows, moments_of_tasks
from kinfolk.maths.arrays import Floats
from kinfolk.posterior import Archive
from kinfolk.predictor import Predictor
from kinfolk.tasks.answering import receive_rows
from kinfolk.tasks.schema import as_matrix


class LICAPredictor(Predictor):
    """A fitted linear model of many tasks reduced to what prediction needs.

    An estimator makes one after ``fit``, and :func:`kinfolk.load` from a file: both answer by this code.

    Attributes
    ----------
    tasks_ : ndarray
        Ids of the tasks.
    classes_ : ndarray or None
        The labels; None in a regression.
    coef_, intercept_ : ndarray
        Weights (tasks, features) and intercepts, in the units of the table.
    feature_names_in_ : list of str or None
        Names of the features, where they had any.
    """

    def __init__(self, model: FittedModel) -> None:
        self._model, self.known = model, model.known
        self.tasks_, self.classes_, self.feature_names_in_ = model.known.tasks, model.classes, model.features
        self.coef_ = np.array([task.weights for task in model.fitted.tasks])
        self.intercept_ = np.array([task.intercept for task in model.fitted.tasks])
        if model.scaling is not None:
            # θ = θ̃/d and b = b̃ − Σθc: see scaling.
            self.coef_ = self.coef_ / model.scaling.unit
            self.intercept_ = self.intercept_ - self.coef_ @ model.scaling.centre

    @classmethod
    def from_archive(cls, archive: Archive) -> LICAPredictor:
        """Rebuild from plain data, checking that its parts fit together."""
        return cls(read(archive))

    def decision_function(self, X: Any, *, task: Any = None) -> Floats:
        """Expected linear predictors.

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
        predict_proba : Probabilities, averaged over what is not known of the weights.
        """
        return self._moments(X, task)[0]

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
        positive = self._positive(X, task)
        if self._model.is_matrix:
            return positive
        if self.classes_ is not None and len(self.classes_) == 1:
            return np.ones((len(positive), 1))
        return np.stack([1.0 - positive, positive], axis=1)

    def predict_log_proba(self, X: Any, *, task: Any = None) -> Floats:
        """Natural logs of the labels' probabilities.

        Parameters
        ----------
        X : frame, array or scipy sparse matrix
        task : array-like of shape (n_rows,), optional
            A task never seen gets what the prior says of one.

        Returns
        -------
        ndarray of the shape of ``predict_proba``

        See Also
        --------
        predict_proba : The probabilities.
        """
        with np.errstate(divide="ignore"):  # a probability may round to zero
            return np.asarray(np.log(self.predict_proba(X, task=task)))

    def predict(self, X: Any, *, task: Any = None, return_std: bool = False) -> Any:
        """The likelier label, or the expected target of a regression.

        Parameters
        ----------
        X : frame, array or scipy sparse matrix
        task : array-like of shape (n_rows,), optional
            A task never seen gets what the prior says of one.
        return_std : bool, default=False
            Whether to give the standard deviation of each target of a regression, noise included, as well.

        Returns
        -------
        ndarray of shape (n_rows,), or (n_rows, n_tasks) where ``y`` was a matrix; or a pair of them

        See Also
        --------
        predict_proba : Probabilities of the labels.
        """
        if self.classes_ is not None:
            if return_std:
                raise ValueError("return_std=True is for a regression: a classifier has predict_proba")
            return self._likelier(self.classes_, X, task)
        mean, variance = self._moments(X, task)
        return (mean, np.sqrt(variance + self._model.prior.residual_variance)) if return_std else mean

    def _likelier(self, classes: NDArray[Any], X: Any, task: Any) -> NDArray[Any]:
        second = (self._positive(X, task) > 0.5) & (len(classes) == 2)
        return np.asarray(classes[second.astype(np.int64)])

    def _positive(self, X: Any, task: Any) -> Floats:
        if self.classes_ is None:
            raise ValueError("the model is a regression: it has no probabilities of labels")
        mean, variance = self._moments(X, task)
        if self._model.link == "probit":
            scaled = -mean / np.sqrt(2.0 + 2.0 * variance)
            return 0.5 * np.array([math.erfc(value) for value in scaled.ravel().tolist()]).reshape(scaled.shape)
        # A logistic function averaged over a normal distribution, to about 0.02 (MacKay 1992).
        scaled = mean / np.sqrt(1.0 + np.pi * variance / 8.0)
        small = np.exp(-np.abs(scaled))
        return np.asarray(np.where(scaled >= 0.0, 1.0, small) / (1.0 + small))

    def _moments(self, X: Any, task: Any) -> tuple[Floats, Floats]:
        """Mean and variance of the linear predictor: of each row's task, or of every task (rows, tasks)."""
        model = self._model
        asked = receive_rows(X, model.known, task=task, needs_task=not model.is_matrix, sparse=True)
        features = as_matrix(asked.table)
        if model.scaling is not None:
            features = model.scaling.apply(features)
        if asked.place is None:
            return moments_of_tasks(model.prior, model.fitted.tasks, features)
        return moments_of_rows(model.prior, model.fitted.tasks, features, asked.place)
