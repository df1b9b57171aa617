"""What a partially pooled linear model answers, fitted or loaded, with numpy alone."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kinfolk.explanation import Explanation, NumberExplanation
from kinfolk.linear.answers.archive import FittedModel, read
from kinfolk.linear.answers.explanation import LinearParts, Shares, explain_labels, explain_numbers, linear_parts
from kinfolk.linear.model.logistic import average_rate
from kinfolk.linear.model.predictive import noise_variance
from kinfolk.linear.model.predictive import quantiles as quantiles_of
from kinfolk.maths.arrays import Floats
from kinfolk.posterior import Archive
from kinfolk.predictor import LabelPredictor, NumberPredictor
from kinfolk.tasks.answering import Asked, receive_rows
from kinfolk.tasks.design import design_rows
from kinfolk.tasks.table import Table

# Probabilities are not taken below this, so that their logs are finite.
_SMALLEST = 1e-300


class _Rows(NamedTuple):
    """Rows to be answered: the table, its design matrix with a constant column, and the place of each row's task."""

    table: Table
    X: Floats
    place: NDArray[np.int64]


class _HierarchicalAnswers:
    """What loaded classifiers and regressions have in common."""

    def __init__(self, model: FittedModel) -> None:
        self._model, self.known = model, model.known
        self.tasks_ = model.known.tasks
        # The last place is that of any task never seen.
        if model.clusters is None:
            pairs = zip(model.fits, model.hypers, strict=True)
            self._weights = [fit.weights.with_new_task(hyper.spread(model.groups)) for fit, hyper in pairs]
        else:
            new = zip(model.fits, model.clusters.new_mean, model.clusters.new_covariance, strict=True)
            self._weights = [fit.weights.with_clustered_task(mean, covariance) for fit, mean, covariance in new]

    @classmethod
    def from_archive(cls, archive: Archive) -> Self:
        """Rebuild from plain data, checking that its parts fit together."""
        return cls(read(archive))

    def _receive(self, X: Any, task: Any) -> _Rows:
        return self.code(receive_rows(X, self.known, task=task))

    def code(self, asked: Asked) -> _Rows:
        """Rows that have come through the door, as the model knows them."""
        assert asked.place is not None
        matrix = design_rows(asked.table, self._model.design)[:, self._model.order]
        return _Rows(asked.table, np.column_stack([np.ones(len(matrix)), matrix]), asked.place)

    def _parts(self, rows: _Rows) -> LinearParts:
        """What linear predictors are made of."""
        model = self._model
        spreads, own_share = [hyper.spread(model.groups) for hyper in model.hypers], None
        if model.clusters is not None:
            spreads, own_share = list(model.clusters.base_scale), model.clusters.own_share
        scales = [hyper.scale(rows.X.shape[1], model.groups) for hyper in model.hypers]
        shares = Shares(self._weights, spreads, scales, own_share)
        return linear_parts(rows.X, rows.place, shares, model.design, model.order)

    def _values(self, rows: _Rows) -> list[list[str]]:
        return self._model.design.read_back(rows.table)

    def _names(self) -> list[str]:
        return [term.name for term in self._model.design.terms]


class HierarchicalPredictor(_HierarchicalAnswers, LabelPredictor):
    """A partially pooled classifier reduced to what prediction needs.

    Attributes
    ----------
    tasks_, classes_ : ndarray
        Ids of the tasks, and the labels.
    """

    def __init__(self, model: FittedModel) -> None:
        super().__init__(model)
        assert model.classes is not None
        self.classes_ = model.classes

    def _log_proba(self, X: Any, task: Any) -> Floats:
        return self.log_predictive(self._receive(X, task))

    def log_predictive(self, rows: _Rows) -> Floats:
        """Log probability of each label (rows, labels)."""
        if len(self.classes_) == 1:
            return np.zeros((len(rows.place), 1))
        rates = [average_rate(*weights.linear_predictors(rows.X, rows.place)) for weights in self._weights]
        found = np.stack([1.0 - rates[0], rates[0]] if len(rates) == 1 else rates, axis=1)
        found = np.maximum(found, _SMALLEST)
        return np.asarray(np.log(found) - np.log(found.sum(axis=1, keepdims=True)))

    def explain(self, X: Any, *, task: Any = None) -> Explanation:
        """Why rows get their labels: what each feature adds to the log odds, and whose data this rests on.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
        task : array-like of shape (n_rows,), optional

        Returns
        -------
        Explanation
        """
        return self.explain_rows(self._receive(X, task))

    def explain_rows(self, rows: _Rows) -> Explanation:
        """The same of rows that are coded."""
        said = self._values(rows), self._names(), self.classes_, self._model.backend
        return explain_labels(self._parts(rows), self.log_predictive(rows), *said)


class HierarchicalRegressionPredictor(_HierarchicalAnswers, NumberPredictor):
    """A partially pooled regression reduced to what prediction needs.

    Attributes
    ----------
    tasks_ : ndarray
        Ids of the tasks.
    """

    def _expected(self, X: Any, task: Any) -> tuple[Floats, Floats]:
        return self.moments(self._receive(X, task))

    def moments(self, rows: _Rows) -> tuple[Floats, Floats]:
        """Mean and standard deviation of each target, noise included."""
        model = self._model
        mean, variance, shape, rate = self._moments(rows)
        return model.centre + model.unit * mean, model.unit * np.sqrt(variance + noise_variance(shape, rate))

    def _quantiles(self, X: Any, task: Any, levels: Floats) -> Floats:
        model = self._model
        found = quantiles_of(*self._moments(self._receive(X, task)), levels)
        return np.asarray(model.centre + model.unit * found)

    def _moments(self, rows: _Rows) -> tuple[Floats, Floats, Floats, Floats]:
        """Mean and variance of the linear predictor of each row, shape and rate of its noise, in standard units."""
        noise = self._model.fits[0].noise
        assert noise is not None
        shape, rate = np.append(noise.shape, noise.new_shape), np.append(noise.rate, noise.new_rate)
        moments = self._weights[0].linear_predictors(rows.X, rows.place)
        return *moments, shape[rows.place], rate[rows.place]

    def explain(self, X: Any, *, task: Any = None) -> NumberExplanation:
        """Why numbers are expected: what each feature adds, and whose data stand behind it.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
        task : array-like of shape (n_rows,), optional

        Returns
        -------
        NumberExplanation
        """
        return self.explain_rows(self._receive(X, task))

    def explain_rows(self, rows: _Rows) -> NumberExplanation:
        """The same of rows that are coded."""
        model = self._model
        said = self._values(rows), self._names(), model.backend
        return explain_numbers(self._parts(rows), model.centre, model.unit, *said)
