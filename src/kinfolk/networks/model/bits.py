"""Sets of variables as bits: a row of an array for each set, 64 variables a word."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled

Bits = NDArray[np.uint64]


# Sets are rows of arrays that are handed over whole: slicing a row out costs more than what is done with it.
@compiled
def among(sets: Bits, row: int, v: int) -> bool:
    """Tell whether one of many sets has a variable."""
    return bool((sets[row, v >> 6] >> np.uint64(v & 63)) & np.uint64(1))


@compiled
def include(sets: Bits, row: int, v: int) -> None:
    """Put a variable into one of many sets."""
    sets[row, v >> 6] |= np.uint64(1) << np.uint64(v & 63)
