"""Cholesky factors of one matrix or of a stack of them, and what is done with the factors, with numpy alone.

numpy has neither an inverse of a triangle nor a solver for one. Products of blocks do both, as fast as LAPACK does.
"""

from __future__ import annotations

import numpy as np

from kinfolk.maths.arrays import Floats

_LEAF, _LEAF_OF_STACK = 32, 8  # size of a triangle that is inverted as any matrix: alone, and where there are many
_BLOCK = 64  # rows of a triangle that are solved for at once


def factorise(matrix: Floats) -> tuple[Floats, Floats]:
    """The lower Cholesky factor L of I + matrix, and log|I + matrix|; the matrix is written over."""
    places = np.arange(matrix.shape[-1])
    matrix[..., places, places] += 1.0
    lower = np.asarray(np.linalg.cholesky(matrix), dtype=np.float64)
    return lower, np.asarray(2.0 * np.sum(np.log(lower[..., places, places]), axis=-1))


def solve_lower(lower: Floats, known: Floats) -> Floats:
    """L⁻¹ times a matrix, for one L.

    Examples
    --------
    >>> import numpy as np
    >>> solve_lower(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([[4.0], [5.0]]))
    array([[2.],
           [3.]])
    """
    solved = np.empty_like(known)
    for first in range(0, len(lower), _BLOCK):
        block = slice(first, first + _BLOCK)
        left = known[block] - lower[block, :first] @ solved[:first]
        solved[block] = invert_lower(lower[block, block]) @ left
    return solved


def invert_lower(lower: Floats) -> Floats:
    """L⁻¹.

    Examples
    --------
    >>> import numpy as np
    >>> invert_lower(np.array([[2.0, 0.0], [1.0, 1.0]]))
    array([[ 0.5,  0. ],
           [-0.5,  1. ]])
    """
    size = lower.shape[-1]
    if size <= (_LEAF_OF_STACK if lower.ndim > 2 and len(lower) > _LEAF_OF_STACK else _LEAF):
        return np.asarray(np.linalg.inv(lower), dtype=np.float64)
    half = size // 2
    first, last = invert_lower(lower[..., :half, :half]), invert_lower(lower[..., half:, half:])
    inverse = np.zeros_like(lower)
    inverse[..., :half, :half], inverse[..., half:, half:] = first, last
    inverse[..., half:, :half] = -last @ (lower[..., half:, :half] @ first)
    return inverse
