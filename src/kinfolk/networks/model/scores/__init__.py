"""Scores of a family given its task's rows (eq. 2): each in a file of its own, and in one line of the table.

A score is a kind of NamedTuple, which is also what the kernel that counts is compiled for: its fields are what its
kernel needs, and only the score that is asked for is compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from kinfolk.networks.model.scores import bdeu, bhd, bic, k2

# By the names that users type.
CRITERIA = {criterion.name: criterion for criterion in (bdeu.CRITERION, k2.CRITERION, bic.CRITERION, bhd.CRITERION)}


def score_table(
    counts: NDArray[np.float64], shape: tuple[int, int, int], q: float, score: Any, task: int, whole: bool
) -> float:
    """Score a family from its counts by configuration of the parents, own value, and value of one more parent.

    ``shape`` are the numbers of the three; ``q`` is the number of configurations that can be, whether or not they
    occur; ``whole`` tells that all counts are whole numbers.
    """
    kernel = next(criterion.kernel for criterion in CRITERIA.values() if isinstance(score, criterion.kind))
    return float(kernel(counts, shape, q, score, task, whole))


@overload(score_table)
def _score_table(counts: Any, shape: Any, q: Any, score: Any, task: Any, whole: Any) -> Any:
    kernel = next(criterion.kernel for criterion in CRITERIA.values() if score.instance_class is criterion.kind)

    def by_kind(counts: Any, shape: Any, q: Any, score: Any, task: Any, whole: Any) -> Any:
        return kernel(counts, shape, q, score, task, whole)

    return by_kind
