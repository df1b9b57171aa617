"""Products of rows, XΨZᵀ, with numpy alone; Z may be sparse rows as a file holds them.

A scipy sparse matrix is used by its own methods, so that a saved model needs no scipy to be asked about a dense table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats

_AT_ONCE = 4_000_000  # numbers that a block of rows is spread out to


@dataclass(frozen=True, eq=False)
class SparseRows:
    """Rows of which most numbers are zero: values and columns of the others, row after row, as in scipy's CSR form.

    Some of its rows, and all of it with its zeros, are had as of a scipy sparse matrix.
    """

    data: Floats
    indices: NDArray[np.int64]
    ends: NDArray[np.int64]
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return len(self.ends) - 1, self.width

    def __getitem__(self, rows: NDArray[np.int64]) -> SparseRows:
        lengths = np.diff(self.ends)[rows]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        places = np.arange(ends[-1]) + np.repeat(self.ends[rows] - ends[:-1], lengths)
        return SparseRows(self.data[places], self.indices[places], ends, self.width)

    def toarray(self) -> Floats:
        """The rows with all their zeros."""
        full = np.zeros(self.shape)
        full[np.repeat(np.arange(len(full)), np.diff(self.ends)), self.indices] = self.data
        return full


def _dense(table: Any) -> Floats:
    return np.asarray(table.toarray() if hasattr(table, "toarray") else table, dtype=np.float64)


def row_products(X: Any, noise: Floats, others: Any) -> Floats:
    """XΨZᵀ: of dense rows, of a scipy sparse matrix or of sparse rows, with dense or sparse rows Z.

    Examples
    --------
    >>> import numpy as np
    >>> sparse = SparseRows(np.array([2.0, 3.0]), np.array([1, 0]), np.array([0, 1, 1, 2]), 2)
    >>> row_products(np.array([[1.0, 10.0]]), np.ones(2), sparse)
    array([[20.,  0.,  3.]])
    """
    if hasattr(X, "tocsr"):
        scaled = X.multiply(noise).tocsr()
        if isinstance(others, SparseRows):
            others = type(scaled)((others.data, others.indices, others.ends), shape=others.shape)
        return _dense(scaled @ others.T)
    if not isinstance(others, SparseRows):
        return np.asarray((_dense(X) * noise) @ others.T)
    products = np.zeros((X.shape[0], others.shape[0]))
    filled = np.flatnonzero(np.diff(others.ends))
    factors = others.data * noise[others.indices]
    step = max(_AT_ONCE // max(len(factors), others.width), 1)
    for first in range(0, len(products) if len(filled) else 0, step):
        block = np.arange(first, min(first + step, len(products)))
        spread = _dense(X[block])[:, others.indices] * factors
        products[np.ix_(block, filled)] = np.add.reduceat(spread, others.ends[filled], axis=1)
    return products
