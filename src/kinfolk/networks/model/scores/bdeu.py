"""BDeu: a uniform Dirichlet prior worth ``ess`` rows in every family (Buntine 1991; Heckerman et al. 1995)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.model.kernels import spliced
from kinfolk.networks.model.scores.criterion import Criterion
from kinfolk.networks.model.scores.dirichlet import Rises, log_marginal, no_rises


class BDeu(NamedTuple):
    """The equivalent sample size, and look-up tables."""

    ess: float
    rises: Rises


@spliced
def bdeu(
    counts: NDArray[np.float64], shape: tuple[int, int, int], q: float, score: BDeu, task: int, whole: bool
) -> float:
    """Score a table of counts; a configuration that never occurs adds nothing."""
    return float(log_marginal(counts, shape, score.ess / (q * shape[1]), score.rises, task, whole))


CRITERION = Criterion(
    name="bdeu",
    kind=BDeu,
    kernel=bdeu,
    make=lambda ess, n_rows, n_parts: BDeu(float(ess), no_rises(len(n_rows))),
    cell_prior=lambda ess, n_cells: ess / n_cells,
    equivalent=True,
)
