"""The data of many related linear models: one table of features, and for each task its rows, targets and weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from kinfolk.maths.arrays import Floats

# How a linear predictor f becomes a target: y ∈ {−1, 1} with p(y) = g(yf) or Φ(yf), or y ~ N(f, σ²).
Link: TypeAlias = Literal["logistic", "probit", "gaussian"]


class LinearTasks(NamedTuple):
    """Related tasks over one table of features.

    Parameters
    ----------
    X : scipy.sparse.csr_matrix or ndarray of shape (n_all_rows, n_features)
        Features of every row that some task has, without a column for the intercept.
    rows : tuple of int arrays
        The places in ``X`` of each task's rows; tasks may share rows (multi-label form) or not (long form).
    y : tuple of float arrays
        Targets of those rows: −1 and 1 for classification, real numbers for regression.
    weights : tuple of float arrays
        The power to which each row's likelihood is raised, ≥ 0.
    shares_rows : bool
        Whether all tasks are known to have the same rows, in the same order.
    """

    X: Any
    rows: tuple[NDArray[np.int64], ...]
    y: tuple[Floats, ...]
    weights: tuple[Floats, ...]
    shares_rows: bool

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.rows)

    @property
    def n_features(self) -> int:
        """Number of features, the intercept not among them."""
        return int(self.X.shape[1])

    def compact(self) -> LinearTasks:
        """Leave out rows of weight zero, and rows of ``X`` that no task has."""
        kept = [weights > 0.0 for weights in self.weights]
        rows = [place[keep] for place, keep in zip(self.rows, kept, strict=True)]
        used = np.unique(np.concatenate(rows))
        if len(used) == self.X.shape[0]:
            features, places = self.X, tuple(rows)
        else:
            features, places = self.X[used], tuple(np.searchsorted(used, place) for place in rows)
        return LinearTasks(
            features,
            places,
            tuple(y[keep] for y, keep in zip(self.y, kept, strict=True)),
            tuple(weights[keep] for weights, keep in zip(self.weights, kept, strict=True)),
            all(place is places[0] or np.array_equal(place, places[0]) for place in places[1:]),
        )

    def of_tasks(self, tasks: Sequence[int]) -> LinearTasks:
        """Keep some tasks, over the same table of features."""
        return self._replace(
            rows=tuple(self.rows[k] for k in tasks),
            y=tuple(self.y[k] for k in tasks),
            weights=tuple(self.weights[k] for k in tasks),
        )


def make_linear_tasks(
    X: Any, rows: Sequence[ArrayLike], y: Sequence[ArrayLike], weights: Sequence[ArrayLike] | None = None
) -> LinearTasks:
    """Lay out the data of related tasks; rows of weight zero, and rows of ``X`` that no task has, are left out.

    Parameters
    ----------
    X : array or scipy sparse matrix of shape (n_all_rows, n_features)
        Features; sparse ones stay sparse.
    rows, y : sequences with one array per task
        Places in ``X`` and targets.
    weights : sequence with one array per task, optional
        Weights of the rows; all one by default.

    Returns
    -------
    LinearTasks
        The same data with the types that inference expects.

    Examples
    --------
    >>> from kinfolk.lica.model.data import make_linear_tasks
    >>> data = make_linear_tasks([[0.0, 1.0], [2.0, 0.0], [1.0, 1.0]], rows=[[0, 1], [1, 2]], y=[[1, -1], [-1, 1]])
    >>> data.n_tasks, data.n_features, data.shares_rows
    (2, 2, False)
    """
    if sparse.issparse(X):
        features = sparse.csr_matrix(X, dtype=np.float64)
        features.sum_duplicates()
    else:
        features = np.ascontiguousarray(X, dtype=np.float64)
    places = tuple(np.asarray(task, dtype=np.int64) for task in rows)
    targets = tuple(np.asarray(task, dtype=np.float64) for task in y)
    if weights is None:
        powers = tuple(np.ones(len(task)) for task in places)
    else:
        powers = tuple(np.asarray(task, dtype=np.float64) for task in weights)
    if not len(places) == len(targets) == len(powers):
        raise ValueError(
            f"rows, y and weights need one array per task; got {len(places)}, {len(targets)} and {len(powers)}."
        )
    for k, (place, target, power) in enumerate(zip(places, targets, powers, strict=True)):
        if not place.shape == target.shape == power.shape:
            raise ValueError(
                f"Task {k} has {place.size} rows, {target.size} targets and {power.size} weights; "
                "it needs as many of each."
            )
    return LinearTasks(features, places, targets, powers, shares_rows=False).compact()
