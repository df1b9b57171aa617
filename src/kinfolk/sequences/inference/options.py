"""What inference is told beside the data and the priors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.checkpoints import Checkpoint


class Schedule(NamedTuple):
    """How long to sample: chains, sweeps thrown away at the start of each, draws of each, and sweeps for a draw."""

    n_chains: int
    n_burn_in: int
    n_draws: int
    thin: int = 1


class Options(NamedTuple):
    """How to infer, with either algorithm.

    Attributes
    ----------
    n_states : int
        L, the most states of a cluster.
    n_clusters : int or None
        K, the most clusters; None where every task is on its own.
    partition : ndarray of shape (n_tasks,) or None
        Clusters to start from; None where they are to be found.
    schedule : Schedule
        Of the sampler; the variational posterior gives as many draws as one chain.
    n_jobs : int or None
    verbose : bool
    checkpoint : Checkpoint
        Where chains keep how far they got.
    """

    n_states: int
    n_clusters: int | None
    partition: NDArray[np.int64] | None
    schedule: Schedule
    n_jobs: int | None = None
    verbose: bool = False
    checkpoint: Checkpoint = Checkpoint()
