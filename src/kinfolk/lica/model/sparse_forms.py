"""Quadratic forms of the columns of a sparse table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled


def sparse_column_forms(columns: Any, root: Floats) -> Floats:
    """x_jᵀMx_j of every column of a CSC matrix, for M = rootᵀ root; as ``task_posterior.column_forms``."""
    return np.asarray(_forms(columns.data, columns.indices, columns.indptr, root.T @ root))


@compiled
def _forms(data: Floats, indices: NDArray[np.int32], indptr: NDArray[np.int32], matrix: Floats) -> Floats:
    n_columns = len(indptr) - 1
    forms = np.zeros(n_columns)
    for j in range(n_columns):
        total = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            row = matrix[indices[p]]
            within = 0.5 * data[p] * row[indices[p]]
            for q in range(indptr[j], p):
                within += data[q] * row[indices[q]]
            total += 2.0 * data[p] * within
        forms[j] = total
    return forms
