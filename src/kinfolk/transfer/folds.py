"""Rows as users hand them over, and parts of them that are held out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from kinfolk.maths.arrays import Floats
from kinfolk.naive_bayes.estimators.base import SharingNB


def make_folds(code: NDArray[Any], counts: Floats, n_folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The part that holds each row out, the labels spread evenly; −1 for rows that have no label or do not count."""
    fold = np.full(len(code), -1)
    for label in np.unique(code[code >= 0]):
        rows = rng.permutation(np.flatnonzero((code == label) & (counts > 0)))
        fold[rows] = (np.arange(len(rows)) + rng.integers(n_folds)) % n_folds
    return fold


class UserRows:
    """A user's rows as they came, and any part of them, whatever they came in."""

    def __init__(self, X: Any, y: Any, task: Any, sample_weight: Any) -> None:
        self.parts = X, y, task, sample_weight

    def take(self, rows: NDArray[np.bool_]) -> UserRows:
        """Some of the rows."""
        where = np.flatnonzero(rows)
        return UserRows(*(None if part is None else _take(part, where) for part in self.parts))

    def fit(self, model: SharingNB) -> SharingNB:
        """Fit a model to the rows."""
        X, y, task, weights = self.parts
        return model.fit(X, y, task=task, sample_weight=weights)

    def predicted_by(self, model: SharingNB) -> Floats:
        """What a fitted model says of the rows: log probabilities (rows, classes)."""
        X, _, task, _ = self.parts
        return model.predict_log_proba(X, task=task)


def as_indexable(part: Any) -> Any:
    """Something rows can be taken from: what can be nothing but turned into an array is."""
    if part is None or isinstance(part, Mapping) or hasattr(part, "iloc") or hasattr(part, "__getitem__"):
        return part
    return np.asarray(part)


def _take(part: Any, where: NDArray[np.int64]) -> Any:
    if isinstance(part, Mapping):
        return {name: _take(column, where) for name, column in part.items()}
    return _safe_indexing(part, where)
