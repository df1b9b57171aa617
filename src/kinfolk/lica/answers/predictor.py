"""What a saved linear model of many tasks predicts, with numpy alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.lica.answers.features import receive_features
from kinfolk.lica.answers.new_task import moments_of_rows
from kinfolk.lica.model.prior import Reach, TaskPosterior, TaskPrior
from kinfolk.lica.model.row_products import SparseRows, dense, row_products, take
from kinfolk.maths.arrays import Floats
from kinfolk.posterior import Archive, names_from
from kinfolk.tasks.values import as_ids, encode

_LINKS = ("logistic", "probit", "gaussian")


class LICAPredictor:
    """A fitted linear model of many tasks reduced to what prediction needs; made by :func:`kinfolk.load`.

    Attributes
    ----------
    tasks_ : ndarray
        Ids of the tasks.
    classes_ : ndarray or None
        The labels; None in a regression.
    coef_, intercept_ : ndarray
        Weights (tasks, features) and intercepts.
    feature_names_in_ : list of str or None
        Names of the features, where they had any.
    """

    def __init__(self, prior: TaskPrior, posteriors: list[TaskPosterior], archive: Archive) -> None:
        about = archive.about
        self._prior, self._posteriors = prior, posteriors
        self._link, self._is_matrix = about["link"], bool(about["is_matrix"])
        self._task_column = about["params"]["task_column"]
        self.tasks_ = as_ids(tasks_from(archive))
        self.classes_ = classes_from(archive)
        self.feature_names_in_ = features_from(archive, prior.n_features)
        self.coef_ = np.array([posterior.weights for posterior in posteriors])
        self.intercept_ = np.array([posterior.intercept for posterior in posteriors])

    @classmethod
    def from_archive(cls, archive: Archive) -> LICAPredictor:
        """Rebuild from plain data, checking that its parts fit together."""
        prior = prior_from(archive)
        return cls(prior, posteriors_from(archive, prior), archive)

    def decision_function(self, X: Any, *, task: Any = None) -> Floats:
        """Expected linear predictor of each row (rows,), or of each row and task where ``y`` was a matrix."""
        return self._moments(X, task)[0]

    def predict_proba(self, X: Any, *, task: Any = None) -> Floats:
        """Probabilities of the labels, as the estimator gives them."""
        positive = self._positive(X, task)
        if self._is_matrix:
            return positive
        if self.classes_ is not None and len(self.classes_) == 1:
            return np.ones((len(positive), 1))
        return np.stack([1.0 - positive, positive], axis=1)

    def predict(self, X: Any, *, task: Any = None, return_std: bool = False) -> Any:
        """The likelier label; in a regression the expected target, and its standard deviation where asked for."""
        if self.classes_ is not None:
            if return_std:
                raise ValueError("return_std=True is for a regression: a classifier has predict_proba")
            second = (self._positive(X, task) > 0.5) & (len(self.classes_) == 2)
            return self.classes_[second.astype(np.int64)]
        mean, variance = self._moments(X, task)
        return (mean, np.sqrt(variance + self._prior.residual_variance)) if return_std else mean

    def _positive(self, X: Any, task: Any) -> Floats:
        if self.classes_ is None:
            raise ValueError("the model is a regression: it has no probabilities of labels")
        mean, variance = self._moments(X, task)
        if self._link == "probit":
            scaled = -mean / np.sqrt(2.0 + 2.0 * variance)
            return 0.5 * np.array([math.erfc(value) for value in scaled.ravel().tolist()]).reshape(scaled.shape)
        scaled = mean / np.sqrt(1.0 + np.pi * variance / 8.0)
        small = np.exp(-np.abs(scaled))
        return np.asarray(np.where(scaled >= 0.0, 1.0, small) / (1.0 + small))

    def _moments(self, X: Any, task: Any) -> tuple[Floats, Floats]:
        features = receive_features(X, task, self._task_column)
        self._check_columns(features.X.shape[1], features.names)
        known = self.tasks_.tolist()
        products = _Products(self._prior)
        if features.task is not None:
            place = encode(features.task, known)
            return moments_of_rows(self._prior, self._posteriors, features.X, place, products.moments)
        if not self._is_matrix and len(known) > 1:
            raise ValueError("the model knows several tasks: say with task= which one each row belongs to")
        pairs = [products.moments(self._prior, posterior, features.X) for posterior in self._posteriors]
        if not self._is_matrix:
            return pairs[0]
        return np.stack([mean for mean, _ in pairs], axis=1), np.stack([variance for _, variance in pairs], axis=1)

    def _check_columns(self, width: int, names: list[str] | None) -> None:
        if width != self._prior.n_features:
            raise ValueError(f"the table has {width} features, and the model {self._prior.n_features}")
        for given, fitted in zip(names or (), self.feature_names_in_ or (), strict=False):
            if given != fitted:
                raise ValueError(f"column {given!r} stands where the model was fitted to column {fitted!r}")


class _Products:
    """Linear predictors of fitted tasks; products with training rows are kept for the next task with the same rows."""

    def __init__(self, prior: TaskPrior) -> None:
        self._prior = prior
        self._asked: tuple[Any, Any, NDArray[np.int64]] | None = None
        self._kernel = self._cross = np.zeros((0, 0))

    def moments(self, prior: TaskPrior, task: TaskPosterior, X: Any) -> tuple[Floats, Floats]:
        """Mean and variance; the algebra is that of ``task_posterior``."""
        mean = np.asarray(X @ task.weights).ravel() + task.intercept
        reach = task.reach
        if reach is None:
            return mean, np.zeros(len(mean))
        noise, intercept_variance = prior.noise, prior.intercept_variance
        if prior.n_features + 1 < len(reach.rows):
            root = _in_prior_units(dense(take(reach.X, reach.rows)), prior)
            lower = np.linalg.cholesky((root.T * reach.precision) @ root + np.eye(root.shape[1]))
            spread = np.linalg.solve(lower, _in_prior_units(dense(X), prior).T)
            return mean, np.einsum("ij,ij->j", spread, spread)
        squares = X.multiply(X) if hasattr(X, "multiply") else X**2
        variance = np.asarray(squares @ noise).ravel() + intercept_variance
        self._multiply(X, reach)
        scale = np.sqrt(reach.precision)
        scaled = (self._kernel + intercept_variance) * scale * scale[:, None]
        lower = np.linalg.cholesky(scaled + np.eye(len(scale)))
        spread = np.linalg.solve(lower, ((self._cross + intercept_variance) * scale).T)
        return mean, np.maximum(variance - np.einsum("ij,ij->j", spread, spread), 0.0)

    def _multiply(self, X: Any, reach: Reach) -> None:
        last = self._asked
        if last is None or last[0] is not X or last[1] is not reach.X or not np.array_equal(last[2], reach.rows):
            rows = take(reach.X, reach.rows)
            self._kernel = row_products(rows, self._prior.noise, rows)
            self._cross = row_products(X, self._prior.noise, rows)
            self._asked = (X, reach.X, reach.rows)


def _in_prior_units(features: Floats, prior: TaskPrior) -> Floats:
    """Features times the prior deviation of their weights, the intercept last."""
    last = np.full((len(features), 1), math.sqrt(prior.intercept_variance))
    return np.hstack([features * np.sqrt(prior.noise), last])


def tasks_from(archive: Archive) -> list[Any]:
    """The tasks of a saved model."""
    tasks = names_from(archive.about["tasks"], "tasks")
    if not tasks:
        raise ValueError("it has no tasks")
    return tasks


def classes_from(archive: Archive) -> NDArray[Any] | None:
    """The labels of a saved classifier; None for a regression."""
    link, classes = archive.about["link"], archive.about.get("classes")
    if link not in _LINKS or (link == "gaussian") != (classes is None):
        raise ValueError(f"its link {link!r} does not go with its labels")
    if classes is None:
        return None
    labels = names_from(classes, "labels")
    if not 1 <= len(labels) <= 2:
        raise ValueError(f"it has {len(labels)} labels: 1 or 2 can be")
    return as_ids(labels)


def features_from(archive: Archive, n_features: int) -> list[str] | None:
    """Names of the features, where there are any."""
    names = archive.about.get("features")
    if names is not None and (len(names) != n_features or not all(isinstance(name, str) for name in names)):
        raise ValueError("the names of its features are not text, or not one for each")
    return names if names is None else list(names)


def prior_from(archive: Archive) -> TaskPrior:
    """What the tasks of a saved model have in common."""
    loadings = _floats(archive, "loadings", (None, None))
    n_features = len(loadings)
    scale, intercept, residual = (
        float(archive.about[name]) for name in ("source_scale", "intercept_variance", "residual_variance")
    )
    noise = _floats(archive, "noise", (n_features,))
    if not (n_features and (noise > 0).all() and all(0 < value < math.inf for value in (scale, intercept, residual))):
        raise ValueError("it has no features, or variances that are not positive")
    mean = _floats(archive, "mean", (n_features,)) if "mean" in archive.arrays else None
    centre = float(archive.about["intercept_mean"])
    if not math.isfinite(centre):
        raise ValueError("the mean of its intercepts is not a number")
    return TaskPrior(loadings, noise, scale, intercept, residual, mean, centre)


def posteriors_from(archive: Archive, prior: TaskPrior) -> list[TaskPosterior]:
    """What is known of each task of a saved model; sparse training rows as :class:`SparseRows`."""
    n_tasks, n_features, n_sources = len(tasks_from(archive)), prior.n_features, prior.n_sources
    weights = _floats(archive, "weights", (n_tasks, n_features))
    intercepts = _floats(archive, "intercepts", (n_tasks,))
    sources = _floats(archive, "sources", (n_tasks, n_sources))
    spreads = _floats(archive, "source_spreads", (n_tasks, n_sources))
    variances: Any = [None] * n_tasks
    if "weight_variances" in archive.arrays:
        variances = _floats(archive, "weight_variances", (n_tasks, n_features))
    return [
        TaskPosterior(weights[k], float(intercepts[k]), sources[k], spreads[k], variances[k], reach)
        for k, reach in enumerate(_reaches(archive, n_tasks, n_features))
    ]


def _reaches(archive: Archive, n_tasks: int, n_features: int) -> list[Reach | None]:
    of_task = archive.array("reach.table", "i", (n_tasks,)).tolist()
    ends = archive.array("reach.ends", "i", (n_tasks,)).astype(np.int64)
    starts = np.concatenate([[0], ends[:-1]])
    rows = archive.array("reach.rows", "i", (int(ends[-1]),)).astype(np.int64)
    precision = _floats(archive, "reach.precision", (len(rows),))
    if (starts > ends).any() or (precision < 0).any():
        raise ValueError("its training rows are not in order, or have precisions below zero")
    tables = {t: _table(archive, t, n_features) for t in sorted(set(of_task)) if t >= 0}
    reaches: list[Reach | None] = []
    for t, start, end in zip(of_task, starts, ends, strict=True):
        its = rows[start:end]
        if t < 0:
            reaches.append(None)
        elif len(its) and not 0 <= its.min() <= its.max() < tables[t].shape[0]:
            raise ValueError("its tasks name training rows that it does not have")
        else:
            reaches.append(Reach(tables[t], its, precision[start:end]))
    return reaches


def _table(archive: Archive, place: int, n_features: int) -> Any:
    name = f"table.{place}"
    if name in archive.arrays:
        return _floats(archive, name, (None, n_features))
    data = _floats(archive, f"{name}.data", (None,))
    indices = archive.array(f"{name}.indices", "i", (len(data),))
    ends = archive.array(f"{name}.ends", "i", (None,)).astype(np.int64)
    if (len(data) and not 0 <= indices.min() <= indices.max() < n_features) or len(ends) < 2:
        raise ValueError("its training rows name features that it does not have")
    if ends[0] != 0 or ends[-1] != len(data) or (np.diff(ends) < 0).any():
        raise ValueError("its training rows are not in order")
    return SparseRows(data, indices.astype(np.int64), ends, n_features)


def _floats(archive: Archive, name: str, shape: tuple[int | None, ...]) -> Floats:
    return np.array(archive.array(name, "f", shape), dtype=np.float64)
