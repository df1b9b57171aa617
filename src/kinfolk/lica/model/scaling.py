"""Columns brought to one scale before they are learnt from, and weights back in the user's units; with numpy alone.

The prior speaks of all weights in one voice: τ² is one number, ψ one number or drawn towards one, and both are set from
the size of whole rows. That is a statement about units. Weights per standard deviation of their column may well be of
one size, weights per euro and per year are not: one column of 60,000 beside five of size one made ψ so small that
nothing was learnt of any. So z_j = (x_j − c_j)/d_j is what the model sees, with c_j and d_j the mean and the deviation
of the column over the rows learnt from, and

    f = b̃ + Σ_j θ̃_j z_j = b + Σ_j θ_j x_j   with   θ_j = θ̃_j/d_j,   b = b̃ − Σ_j θ_j c_j.

In the user's units the prior is then θ_j ~ N((μ̃_j + Λ̃_j s)/d_j, ψ̃_j/d_j²), and the intercept's is that of the linear
predictor at the columns' means, not at zero. Multiplying a column by a constant, or adding one, changes nothing.

Where most cells are zero, as in tables of words, how often a column is not zero is what tells columns apart, and zeros
must stay zeros: such a table keeps its scale. Told to scale it all the same, each column is divided by its deviation,
and those that are hardly ever zero are centred.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kinfolk.maths.arrays import Floats

if TYPE_CHECKING:
    from kinfolk.lica.model.data import LinearTasks  # which needs scipy

_MOSTLY = 0.5  # share of cells that are not zero, below which a table or a column is mostly zeros
_ROUNDING = 1e-13  # of the largest value of a column: a smaller deviation is none
_UNEVEN = 100.0  # times the size of most columns, from which a column that keeps its scale drowns them


class Scaling(NamedTuple):
    """What columns are measured from and in.

    Parameters
    ----------
    centre : ndarray of shape (n_features,)
        c; zero for a column that is not moved.
    unit : ndarray of shape (n_features,)
        d; infinite for a column that is the same in all rows, which has no weight then.
    """

    centre: Floats
    unit: Floats

    def apply(self, X: Any) -> Any:
        """(X − c)/d; a scipy sparse matrix stays sparse where few columns are moved.

        Examples
        --------
        >>> import numpy as np
        >>> Scaling(np.array([3.0, 0.0]), np.array([2.0, np.inf])).apply(np.array([[5.0, 7.0]]))
        array([[1., 0.]])
        """
        if not hasattr(X, "tocsr"):
            return (X - self.centre) / self.unit
        moved = np.flatnonzero(self.centre)
        if len(moved) > _MOSTLY * X.shape[1]:
            return self.apply(X.toarray())
        scaled = X.multiply(1.0 / self.unit).tocsr()
        if len(moved):
            n_rows = X.shape[0]
            shift = np.tile((self.centre / self.unit)[moved], n_rows)
            places = np.tile(moved, n_rows), len(moved) * np.arange(n_rows + 1)
            scaled = scaled - type(scaled)((shift, *places), shape=X.shape)
        return scaled


def measure(data: LinearTasks, scale: str | bool) -> tuple[Scaling | None, int | None]:
    """How columns are brought to one scale, None where they keep their own; and then a column that drowns the others.

    The same table gives the same answer, dense or sparse.

    Parameters
    ----------
    data : LinearTasks
        Each row counts by what it weighs in all tasks together.
    scale : {"auto", True, False}

    Returns
    -------
    Scaling or None
    int or None
        With ``scale="auto"``, a column more than a hundred times as large as most of those that keep their scale.

    Examples
    --------
    >>> from kinfolk.lica.model.data import make_linear_tasks
    >>> measure(make_linear_tasks([[1.0, 300.0], [3.0, 500.0]], [[0, 1]], [[1, -1]]), "auto")
    (Scaling(centre=array([  2., 400.]), unit=array([  1., 100.])), None)
    >>> measure(make_linear_tasks([[1.0, 0, 0], [0, 2.0, 0], [0, 0, 6e4]], [[0, 1, 2]], [[1, -1, 1]]), "auto")
    (None, 2)
    """
    X = data.X
    shares = np.bincount(np.concatenate(data.rows), np.concatenate(data.weights), minlength=X.shape[0])
    if not scale or not shares.sum() > 0.0:
        return None, None
    shares = shares / shares.sum()
    filled = np.asarray(shares @ (X != 0)).ravel()
    mostly_zeros = float(np.mean(filled)) < _MOSTLY
    if mostly_zeros and scale == "auto":
        return None, _drowning_column(X, shares, filled)
    if hasattr(X, "tocsr") and mostly_zeros:
        mean, deviation, largest = _sparse_moments(X, shares)
    else:
        mean, deviation, largest = _moments(X.toarray() if hasattr(X, "tocsr") else X, shares)
    unit = np.where(deviation > _ROUNDING * largest, deviation, np.inf)
    return Scaling(np.where(filled < _MOSTLY, 0.0, mean) if mostly_zeros else mean, unit), None


def _drowning_column(X: Any, shares: Floats, filled: Floats) -> int | None:
    """A column so large where it is not zero that the others hardly count; None where there is none."""
    squares = X.multiply(X) if hasattr(X, "tocsr") else X**2
    used = filled > 0.0
    sizes = np.sqrt(np.asarray(shares @ squares).ravel() / np.where(used, filled, 1.0))
    largest = int(np.argmax(sizes))
    return largest if used.any() and sizes[largest] > _UNEVEN * np.median(sizes[used]) else None


def _moments(X: Floats, shares: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, deviation and largest size of each column, rows counted by their shares."""
    largest = np.max(np.abs(X), axis=0)
    # Sizes are taken out first: squares of very large or very small numbers would be lost.
    size = np.where(largest > 0.0, largest, 1.0)
    parts = X / size
    mean = shares @ parts
    mean = mean + shares @ (parts - mean)  # what rounding left
    deviation = np.sqrt(shares @ (parts - mean) ** 2)
    return size * mean, size * deviation, largest


def _sparse_moments(X: Any, shares: Floats) -> tuple[Floats, Floats, Floats]:
    """The same of a sparse matrix by rows, whose zeros are not gone through."""
    values, columns = X.data, X.indices
    share = np.repeat(shares, np.diff(X.indptr))

    def total(parts: Floats) -> Floats:
        return np.asarray(np.bincount(columns, weights=share * parts, minlength=X.shape[1]), dtype=np.float64)

    mean = total(values)
    empty = 1.0 - total(np.ones(len(values)))
    deviation = np.sqrt(total((values - mean[columns]) ** 2) + np.maximum(empty, 0.0) * mean**2)
    largest = np.zeros(X.shape[1])
    np.maximum.at(largest, columns, np.abs(values))
    return mean, deviation, largest
