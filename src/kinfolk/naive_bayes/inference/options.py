"""How inference is to go about it: what a user chose beside the data and the hyper-parameters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.checkpoints import Checkpoint
from kinfolk.evidence import Annealed, Evidence, annealed_evidence


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
    share_labels: bool = False
    batch_size: int | None = None
    device: str | None = None
    n_jobs: int | None = None
    verbose: bool | None = False
    checkpoint: Checkpoint = Checkpoint()


class Effort(NamedTuple):
    """How hard to try: annealed runs, the error to aim at, the most powers of a run, seed, runs side by side."""

    n_runs: int = 32
    target_error: float = 0.1
    max_powers: int = 500
    seed: int = 0
    n_jobs: int | None = None

    def log_features(self, states: list[Annealed]) -> Evidence:
        """Log p(X) from one run of each state, whose normalising constant is one at the start."""
        seeds = np.random.SeedSequence([self.seed, 3]).spawn(len(states))
        return annealed_evidence(
            states, 0.0, seeds, n_jobs=self.n_jobs, target_error=self.target_error, max_powers=self.max_powers
        )
