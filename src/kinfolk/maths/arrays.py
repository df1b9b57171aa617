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
