"""Sweeps in minibatches of tasks: memoised variational inference (Hughes and Sudderth 2013; Neal and Hinton 1998).

Each batch's own counts and sizes are remembered. When its turn comes they are taken out of the clusters and what its
tasks say now is put in, so that the clusters move after every batch instead of every pass.

Stochastic variational inference (Hoffman et al. 2013) would move them by a decaying step towards what one batch,
multiplied, says. Remembering needs no step size to choose, and it is coordinate ascent on the bound of all tasks: the
bound is known after every batch and never falls, so that births and merges can be judged by it as they are in whole
sweeps. The price is memory, O(batches · clusters · cells).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kinfolk.interrupts import asked
from kinfolk.maths.arrays import Floats
from kinfolk.partition.variational.mean_field import (
    MAX_SWEEPS,
    TOLERANCE,
    Clusters,
    converge,
    divergence,
    expectations,
    in_use,
)
from kinfolk.partition.variational.task_counts import Groups, TaskCounts


class Memory:
    """What every batch has put into the clusters: counts, sizes and the entropy of its tasks' responsibilities."""

    def __init__(
        self, data: TaskCounts, clusters: Clusters, groups: Groups, concentration: float, batch_size: int
    ) -> None:
        self.batches = data.parts(batch_size)
        self.groups = groups
        self.concentration = concentration
        n, (n_clusters, n_cells) = len(self.batches), clusters.counts.shape
        self.counts: Floats = np.empty((n, n_clusters, n_cells))
        self.sizes: Floats = np.empty((n, n_clusters))
        self.entropies: Floats = np.empty(n)
        log_theta, log_pi = expectations(clusters, groups, concentration)
        for batch in range(n):
            self._place(batch, log_theta, log_pi)
        self.clusters = self._sum()

    def _place(self, batch: int, log_theta: Floats, log_pi: Floats) -> None:
        counts, sizes, log_norm = self.batches[batch].sweep(log_theta, log_pi)
        self.counts[batch], self.sizes[batch] = counts, sizes
        # log Σ_t exp(s_t) = Σ_t r_t s_t + entropy of r, for every task.
        self.entropies[batch] = log_norm - float((counts * log_theta).sum() + sizes @ log_pi)

    def _sum(self) -> Clusters:
        return Clusters(self.counts.sum(axis=0), self.sizes.sum(axis=0), -np.inf)

    def visit(self, batch: int) -> None:
        """Let one batch's tasks choose their clusters anew. O(tasks of the batch · cells · clusters)."""
        before, sizes_before = self.counts[batch].copy(), self.sizes[batch].copy()
        self._place(batch, *expectations(self.clusters, self.groups, self.concentration))
        # Rounding must not leave a cluster that nobody is in with less than nothing.
        self.clusters = Clusters(
            np.maximum(self.clusters.counts - before + self.counts[batch], 0.0),
            np.maximum(self.clusters.sizes - sizes_before + self.sizes[batch], 0.0),
            -np.inf,
        )

    def tidy(self) -> None:
        """Put the largest cluster first, drop those that nobody is left in, and add up what rounding has blurred."""
        order = np.argsort(-self.clusters.sizes, kind="stable")
        order = order[in_use(self.clusters.sizes[order])]
        if len(order) < len(self.clusters.sizes) or (np.diff(order) != 1).any():
            self.counts, self.sizes = self.counts[:, order], self.sizes[:, order]
        self.clusters = self._sum()

    def bound(self) -> float:
        """The bound of all tasks with their responsibilities as remembered."""
        log_theta, log_pi = expectations(self.clusters, self.groups, self.concentration)
        fit = float((self.clusters.counts * log_theta).sum() + self.clusters.sizes @ log_pi)
        against = divergence(self.clusters, self.groups, self.concentration, log_theta)
        return fit + float(self.entropies.sum()) - against


def converge_in_batches(
    data: TaskCounts,
    clusters: Clusters,
    groups: Groups,
    concentration: float,
    batch_size: int,
    max_sweeps: int = MAX_SWEEPS,
    tolerance: float = TOLERANCE,
    progress: Callable[[int], None] | None = None,
) -> Clusters:
    """Pass over the batches until the bound stands still; the bound returned is that of a last, whole sweep."""
    memory = Memory(data, clusters.ordered(), groups, concentration, batch_size)
    bound, converged = memory.bound(), False
    # The pass that fills the memory and the whole sweep at the end are two of them.
    for _ in range(max_sweeps - 2):
        for batch in range(len(memory.batches)):
            memory.visit(batch)
        memory.tidy()
        before, bound = bound, memory.bound()
        if progress is not None:
            progress(1)
        converged = bound - before < tolerance * data.n_tasks
        if converged or asked():
            break
    last = converge(data, memory.clusters, groups, concentration, max_sweeps=1, progress=progress)
    return last._replace(converged=converged)
