"""The structures of all tasks as one array, and what a structure may never or must always have."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Which variable (second axis) is a parent of which (third axis), in each task (first axis).
Structures = NDArray[np.bool_]


class Constraints(NamedTuple):
    """What a structure may never or must always have; ``most_parents`` is the number of variables where any may be."""

    allowed: NDArray[np.bool_]
    required: NDArray[np.bool_]
    most_parents: int
