"""What a score of families consists of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Criterion(NamedTuple):
    """A score of families by the name that users type.

    ``kernel(counts, shape, q, score, task, whole)`` scores a table of counts, where ``score`` is the NamedTuple of type
    ``kind`` that ``make(ess, n_rows, n_parts)`` gives, ``n_rows`` counting the rows of every task and ``n_parts`` the
    parts that they are counted by. ``cell_prior(ess, n_cells)`` is the pseudo-count of each cell with which probability
    tables are learnt. ``equivalent`` tells whether structures that imply the same independences have the same score,
    ``hierarchical`` whether it is a score of the rows of all tasks together, each of which is a part.
    """

    name: str
    kind: type
    kernel: Any
    make: Callable[[float, NDArray[np.float64], int], Any]
    cell_prior: Callable[[float, int], float]
    equivalent: bool
    hierarchical: bool = False
