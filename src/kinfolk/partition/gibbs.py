"""Collapsed Gibbs sampling over partitions of tasks (thesis eq. A.43–A.44, in the corrected form).

Task u, taken out of its cluster, sits down again at cluster c with probability proportional to

    n_c · p(D_u | D_c)    or, at a new one,    a · p(D_u),

n_c counting the other tasks there. Parameters are integrated out; whatever is local to a task (labels of unlabelled
rows, say) is held by the caller, which may change tasks' counts between sweeps and then calls ``refresh``, and may
change the concentration at any time. Seats, counts, concentration and the state of a generator of random numbers are
all of a chain: ``place`` goes on from seats that were written down as if it had never stopped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.maths.dirichlet import DirichletProduct, log_marginal_of_sum, log_marginals
from kinfolk.maths.draws import draw_index
from kinfolk.partition.crp import log_prior_of_sizes


class Seats(NamedTuple):
    """A seating as kernels take it; they move tasks in place.

    All arrays have one row per task; a cluster is a row of ``cluster_counts`` whose ``cluster_size`` is above zero.
    """

    seat: NDArray[np.int64]
    counts: NDArray[np.generic]
    task_log_marginal: NDArray[np.float64]
    cluster_counts: NDArray[np.generic]
    cluster_size: NDArray[np.int64]
    cluster_log_marginal: NDArray[np.float64]
    product: DirichletProduct
    log_concentration: float


class Seating:
    """A partition in motion: who sits where, with the added counts and log marginal of every cluster (see `Seats`)."""

    def __init__(self, counts: NDArray[np.generic], product: DirichletProduct, concentration: float) -> None:
        n_tasks = len(counts)
        self.counts = np.array(counts, order="C")
        self.product = product
        self.log_concentration = float(np.log(concentration))
        self.seat = np.full(n_tasks, -1, dtype=np.int64)
        self.cluster_counts = np.zeros_like(self.counts)
        self.cluster_size = np.zeros(n_tasks, dtype=np.int64)
        self.cluster_log_marginal = np.zeros(n_tasks)
        self.task_log_marginal = log_marginals(self.counts, product)

    @property
    def seats(self) -> Seats:
        """What kernels take; the arrays are this seating's own."""
        return Seats(
            self.seat,
            self.counts,
            self.task_log_marginal,
            self.cluster_counts,
            self.cluster_size,
            self.cluster_log_marginal,
            self.product,
            self.log_concentration,
        )

    def place(self, partition: NDArray[np.int64]) -> None:
        """Seat everybody as a partition says."""
        self.seat[:] = partition
        self.refresh()

    def refresh(self) -> None:
        """Recompute what follows from the seats and the tasks' counts."""
        self.cluster_counts[:] = 0
        np.add.at(self.cluster_counts, self.seat, self.counts)
        self.cluster_size[:] = np.bincount(self.seat, minlength=len(self.seat))
        self.cluster_log_marginal[:] = log_marginals(self.cluster_counts, self.product)
        self.task_log_marginal[:] = log_marginals(self.counts, self.product)

    def sweep(self, uniforms: NDArray[np.float64], temper: float = 1.0) -> None:
        """Reseat every task once, those that have no seat yet included. O(tasks · clusters · cells).

        ``uniforms`` holds one number in [0, 1) per task; ``temper`` is the power on the likelihood.
        """
        _reseat(self.seats, temper, uniforms)
        if temper == 0.0:
            # Nothing was asked of the data on the way.
            self.refresh()

    def clear(self) -> None:
        """Ask everybody to stand up."""
        self.seat[:] = -1
        self.cluster_counts[:] = 0
        self.cluster_size[:] = 0
        self.cluster_log_marginal[:] = 0.0

    def draw_from_prior(self, uniforms: NDArray[np.float64]) -> None:
        """Seat everybody by the Chinese restaurant process alone."""
        self.clear()
        self.sweep(uniforms, temper=0.0)

    @property
    def concentration(self) -> float:
        """Readiness to start new clusters."""
        return float(np.exp(self.log_concentration))

    @concentration.setter
    def concentration(self, value: float) -> None:
        self.log_concentration = float(np.log(value))

    @property
    def n_clusters(self) -> int:
        """Number of clusters that somebody sits at."""
        return int(np.count_nonzero(self.cluster_size))

    @property
    def log_likelihood(self) -> float:
        """Log probability of the data given the partition."""
        return float(self.cluster_log_marginal[self.cluster_size > 0].sum())

    @property
    def log_prior(self) -> float:
        """Log probability of the partition."""
        return log_prior_of_sizes(self.cluster_size[self.cluster_size > 0], self.concentration)


@compiled(inline="always")
def n_places(seats):  # type: ignore[no-untyped-def]
    """The number of rows up to the last cluster that somebody sits at."""
    for k in range(len(seats.cluster_size), 0, -1):
        if seats.cluster_size[k - 1] > 0:
            return k
    return 0


@compiled(inline="always")
def stand_up(seats, u, nothing):  # type: ignore[no-untyped-def]
    """Take task u out of its cluster; ``nothing`` is a row of zeros like its counts."""
    k, own = seats.seat[u], seats.counts[u]
    cluster = seats.cluster_counts[k]
    seats.cluster_size[k] -= 1
    for c in range(len(own)):
        cluster[c] -= own[c]
    if seats.cluster_size[k] > 0:
        seats.cluster_log_marginal[k] = log_marginal_of_sum(cluster, nothing, seats.product)
    else:
        # Fractional weights may leave rounding dust in an empty cluster.
        for c in range(len(own)):
            cluster[c] = 0
        seats.cluster_log_marginal[k] = 0.0


@compiled(inline="always")
def sit_down(seats, u, k, log_marginal):  # type: ignore[no-untyped-def]
    """Let task u join cluster k, whose log marginal with it is given."""
    cluster, own = seats.cluster_counts[k], seats.counts[u]
    seats.seat[u] = k
    seats.cluster_size[k] += 1
    for c in range(len(own)):
        cluster[c] += own[c]
    seats.cluster_log_marginal[k] = log_marginal


@compiled
def _reseat(seats, temper, uniforms):  # type: ignore[no-untyped-def]
    """Draw the seat of every task in turn; where the likelihood has no power, log marginals are left as they are."""
    # By names of their own, because taking an array out of a tuple in a loop counts a reference each time.
    counts, cluster_counts, product = seats.counts, seats.cluster_counts, seats.product
    cluster_size, cluster_log_marginal = seats.cluster_size, seats.cluster_log_marginal
    n, cells = counts.shape
    nothing = np.zeros(cells, dtype=counts.dtype)
    scores, joined = np.empty(n + 1), np.zeros(n + 1)
    in_use = n_places(seats)
    for u in range(n):
        if seats.seat[u] >= 0:
            stand_up(seats, u, nothing)
        free = False
        for k in range(in_use + 1):
            scores[k] = -np.inf
            if k < in_use and cluster_size[k] > 0:
                scores[k] = np.log(cluster_size[k])
                if temper != 0.0:
                    joined[k] = log_marginal_of_sum(cluster_counts[k], counts[u], product)
                    scores[k] += temper * (joined[k] - cluster_log_marginal[k])
            elif not free:
                free = True
                joined[k] = seats.task_log_marginal[u]
                scores[k] = seats.log_concentration + temper * joined[k]
        k = draw_index(scores, in_use + 1, uniforms[u])
        in_use = max(in_use, k + 1)
        sit_down(seats, u, k, joined[k])
