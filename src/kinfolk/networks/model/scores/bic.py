"""BIC: the likelihood under the best tables, less half the log of the number of rows for each free parameter.

It has no prior with which tables could be learnt, and the most probable tables of a sample rule out what it did not
hold, so that a new row may have probability zero: tables get BDeu's prior, which says least.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.model.kernels import inner
from kinfolk.networks.model.scores.criterion import Criterion


class BIC(NamedTuple):
    """Natural log of the number of rows of every task."""

    log_rows: NDArray[np.float64]


@inner
def bic(
    counts: NDArray[np.float64], shape: tuple[int, int, int], q: float, score: BIC, task: int, whole: bool
) -> float:
    """Score a table of counts; a configuration that never occurs adds its free parameters."""
    n_numbers, n_values, card = shape
    fit = 0.0
    for u in range(n_numbers):
        for v in range(card):
            total = 0.0
            for x in range(n_values):
                n = counts[(u * n_values + x) * card + v]
                if n > 0:
                    fit += n * math.log(n)
                    total += n
            if total > 0:
                fit -= total * math.log(total)
    return float(fit - 0.5 * score.log_rows[task] * q * (n_values - 1))


CRITERION = Criterion(
    name="bic",
    kind=BIC,
    kernel=bic,
    make=lambda ess, n_rows, n_parts: BIC(np.log(np.maximum(n_rows, 1.0))),
    cell_prior=lambda ess, n_cells: ess / n_cells,
    equivalent=True,
)
