"""How inference is to go about it: what a user chose beside the data and the hyper-parameters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Schedule(NamedTuple):
    """How long to sample: chains, sweeps thrown away at the start of each, and draws kept of each."""

    n_chains: int
    n_burn_in: int
    n_draws: int

    @property
    def n_sweeps(self) -> int:
        """Sweeps of all chains together."""
        return self.n_chains * (self.n_burn_in + self.n_draws)


# Of the draws, predictions use at most this many, and no more cells than this (128 MiB).
_MOST_KEPT = 100
_MOST_KEPT_CELLS = 1 << 24
_FEWEST_KEPT = 10


def kept_draws(schedule: Schedule, n_tasks: int, n_cells: int) -> NDArray[np.int64]:
    """Which draws of a chain predictions use, evenly spaced, where each holds the cells of every task and of a new one.

    Their error beside all draws' is that of a mean over a hundred nearly independent draws: a tenth of the spread of
    one draw's prediction around their mean.
    """
    most = int(np.clip(_MOST_KEPT_CELLS // ((n_tasks + 1) * n_cells), _FEWEST_KEPT, _MOST_KEPT))
    per_chain = max(1, most // schedule.n_chains)
    return np.unique(np.linspace(0, schedule.n_draws - 1, per_chain).round().astype(np.int64))


class Options(NamedTuple):
    """Choices that every algorithm takes as one value and looks into for what concerns it.

    ``inference`` names the algorithm that clusters tasks; ``share_labels`` says of complete sharing whether label rates
    are shared too; ``strength_prior`` holds shape and rate of the Gamma prior of noisy copies' strengths.
    """

    inference: str = "bhc"
    schedule: Schedule = Schedule(4, 100, 100)
    strength_prior: tuple[float, float] = (1.0, 0.01)
    share_labels: bool = True
    batch_size: int | None = None
    device: str | None = None
    n_jobs: int | None = None
    verbose: bool = False
