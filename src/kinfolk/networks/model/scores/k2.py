"""K2: a Dirichlet prior of one row for every cell (Cooper and Herskovits 1992)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.model.kernels import spliced
from kinfolk.networks.model.scores.criterion import Criterion
from kinfolk.networks.model.scores.dirichlet import Rises, log_marginal, no_rises


class K2(NamedTuple):
    """Look-up tables."""

    rises: Rises


@spliced
def k2(counts: NDArray[np.float64], shape: tuple[int, int, int], q: float, score: K2, task: int, whole: bool) -> float:
    """Score a table of counts."""
    return float(log_marginal(counts, shape, 1.0, score.rises, task, whole))


CRITERION = Criterion(
    name="k2",
    kind=K2,
    kernel=k2,
    make=lambda ess, n_rows, n_parts: K2(no_rises(len(n_rows))),
    cell_prior=lambda ess, n_cells: 1.0,
    equivalent=False,
)
