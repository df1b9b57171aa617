"""Collapsed Gibbs sampling over partitions of tasks (thesis eq. A.43–A.44, in the corrected form).

Task u, taken out of its cluster, sits down again at cluster c with probability proportional to

    n_c · p(D_u | D_c)    or, at a new one,    a · p(D_u),

n_c counting the other tasks there. Parameters are integrated out; whatever is local to a task (labels of unlabelled
rows, say) is held by the caller, which may change tasks' counts between sweeps and then calls ``refresh``, and may
change the concentration at any time.
"""

from __future__ import annotations

from math import lgamma

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.maths.dirichlet import DirichletProduct, log_marginal_of_sum, log_marginals


class Seating:
    """A partition in motion: who sits where, with the added counts and log marginal of every cluster.

    All arrays have one row per task; a cluster is a row of ``cluster_counts`` whose ``cluster_size`` is above zero.
    """

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
        self._scores = np.empty(n_tasks + 1)

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
        _reseat(
            self.seat,
            self.cluster_counts,
            self.cluster_size,
            self.cluster_log_marginal,
            self.counts,
            self.task_log_marginal,
            self.product,
            self.log_concentration,
            temper,
            uniforms,
            self._scores,
        )

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
        self.refresh()

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
        sizes = self.cluster_size[self.cluster_size > 0]
        a = self.concentration
        blocks = sum(self.log_concentration + lgamma(size) for size in sizes)
        return float(blocks + lgamma(a) - lgamma(a + len(self.seat)))


@compiled
def _reseat(  # type: ignore[no-untyped-def]
    seat,
    cluster_counts,
    cluster_size,
    cluster_log_marginal,
    counts,
    task_log_marginal,
    product,
    log_concentration,
    temper,
    uniforms,
    scores,
):
    n, cells = counts.shape
    nothing = np.zeros(cells, dtype=counts.dtype)
    in_use = 0
    for k in range(n):
        if cluster_size[k] > 0:
            in_use = k + 1
    for u in range(n):
        k = seat[u]
        if k >= 0:
            cluster_size[k] -= 1
            for c in range(cells):
                cluster_counts[k, c] -= counts[u, c]
            if cluster_size[k] > 0:
                cluster_log_marginal[k] = log_marginal_of_sum(cluster_counts[k], nothing, product)
            else:
                # Fractional weights may leave rounding dust in an empty cluster.
                cluster_counts[k, :] = 0
                cluster_log_marginal[k] = 0.0
        free = -1
        highest = -np.inf
        for k in range(in_use + 1):
            scores[k] = -np.inf
            if k < in_use and cluster_size[k] > 0:
                scores[k] = np.log(cluster_size[k])
                if temper != 0.0:
                    joined = log_marginal_of_sum(cluster_counts[k], counts[u], product)
                    scores[k] += temper * (joined - cluster_log_marginal[k])
            elif free < 0:
                free = k
                scores[k] = log_concentration + temper * task_log_marginal[u]
            highest = max(highest, scores[k])
        total = 0.0
        for k in range(in_use + 1):
            total += np.exp(scores[k] - highest)
        left = uniforms[u] * total
        chosen = -1
        for k in range(in_use + 1):
            if scores[k] > -np.inf:
                chosen = k
                left -= np.exp(scores[k] - highest)
                if left < 0.0:
                    break
        seat[u] = chosen
        in_use = max(in_use, chosen + 1)
        cluster_size[chosen] += 1
        for c in range(cells):
            cluster_counts[chosen, c] += counts[u, c]
        cluster_log_marginal[chosen] = log_marginal_of_sum(cluster_counts[chosen], nothing, product)
