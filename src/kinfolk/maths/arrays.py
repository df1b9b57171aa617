"""The kinds of arrays that functions of the package take and give, and a type that sums of counts fit in."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


def wide_enough(counts: NDArray[Any]) -> NDArray[Any]:
    """Counts in a type that the sums of all rows fit in.

    Examples
    --------
    >>> wide_enough(np.array([[200], [100]], dtype=np.uint8)).sum(axis=0).tolist()
    [300]
    >>> wide_enough(np.full((2, 1), 2**30, dtype=np.uint32)).dtype
    dtype('int64')
    """
    if counts.dtype.kind not in "iu":
        return counts.astype(np.float64, copy=False)
    return counts.astype(np.int32 if int(counts.sum(dtype=np.int64)) < 1 << 31 else np.int64, copy=False)


# Above this, what rounding takes from a matrix is more than a hundredth of a millionth of the one that is added to it.
_LARGE = 1e8


def one_plus(matrix: Floats) -> Floats:
    """1 + B for symmetric B (..., n, n) without negative eigenvalues, as far above zero as rounding leaves room for.

    Where weights of rows are very large, rounding errors of B exceed one, and 1 + B alone may be singular. There, and
    there alone, as much is added to the diagonal as rounding may have taken from it. The matrix is written over.

    Examples
    --------
    >>> one_plus(np.array([[2.0]])).tolist()
    [[3.0]]
    >>> bool(np.isfinite(np.linalg.inv(one_plus(np.full((2, 2), 1e20)))).all())
    True
    """
    places = np.arange(matrix.shape[-1])
    largest = matrix[..., places, places].max(axis=-1, initial=0.0)
    lost = np.where(largest > _LARGE, 4.0 * len(places) * np.finfo(float).eps * largest, 0.0)
    matrix[..., places, places] += 1.0 + lost[..., None]
    return matrix
