"""The variational posterior of a Dirichlet process mixture over tasks, its bound, and sweeps that raise it.

After Blei and Jordan (2006). q(z_u = t) = r_ut, q(θ_t) = ∏ Dir(β + N_t) with N_t = Σ_u r_ut n_u, and
q(v_t) = Beta(1 + R_t, a + Σ_{s>t} R_s) for the sticks of the first T clusters, R_t = Σ_u r_ut. No task sits beyond the
T-th cluster, whose stick is a Beta like the others (Kurihara, Welling and Teh 2007), so that the bound holds for the
whole Dirichlet process, not a truncated one:

    log p(D) ≥ Σ_u log Σ_t exp( E[log π_t] + Σ_c n_uc E[log θ_tc] ) − Σ_t KL(q(θ_t)‖p) − Σ_t KL(q(v_t)‖p).

It holds for any N and R, whether or not they belong to these tasks; one sweep is two matrix products over the data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, gammaln

from kinfolk.interrupts import asked
from kinfolk.maths.arrays import Floats
from kinfolk.partition.variational.task_counts import Groups, TaskCounts

MAX_SWEEPS = 100  # between two moves that change the number of clusters
TOLERANCE = 1e-4  # nats per task; a sweep that gains less ends the sweeping
LEAST_SHARE = 1e-6  # of the tasks that a cluster would have if all were of one size; one with less is dropped


class Clusters(NamedTuple):
    """The variational posterior: expected counts and sizes of the clusters, largest first, and the bound.

    ``converged`` says whether the last sweep gained next to nothing.
    """

    counts: Floats
    sizes: Floats
    bound: float
    converged: bool = False

    def ordered(self) -> Clusters:
        """Largest cluster first, which is where the stick-breaking prior expects it."""
        order = np.argsort(-self.sizes, kind="stable")
        return self._replace(counts=self.counts[order], sizes=self.sizes[order])

    def joined(self, more: Clusters) -> Clusters:
        """These clusters and others beside them; the bound is unknown."""
        counts, sizes = np.concatenate([self.counts, more.counts]), np.concatenate([self.sizes, more.sizes])
        return Clusters(counts, sizes, -np.inf)

    def scaled(self, factor: float) -> Clusters:
        """What the same clusters would have seen of so many times as many tasks."""
        return Clusters(self.counts * factor, self.sizes * factor, -np.inf)


def in_use(sizes: Floats) -> NDArray[np.bool_]:
    """Which clusters somebody is left in."""
    return np.asarray(sizes > LEAST_SHARE * sizes.sum() / len(sizes))


def expectations(clusters: Clusters, groups: Groups, concentration: float) -> tuple[Floats, Floats]:
    """E[log θ] (clusters, cells) and E[log π] (clusters,)."""
    posterior = clusters.counts + groups.prior
    totals = np.add.reduceat(posterior, groups.group_start[:-1], axis=1)
    log_theta = digamma(posterior) - np.repeat(digamma(totals), np.diff(groups.group_start), axis=1)
    won, left = 1.0 + clusters.sizes, concentration + _beyond(clusters.sizes)
    both = digamma(won + left)
    log_pi = digamma(won) - both
    log_pi[1:] += np.cumsum(digamma(left) - both)[:-1]
    return log_theta, log_pi


def _beyond(sizes: Floats) -> Floats:
    """Number of tasks in the clusters after each."""
    return np.asarray(np.concatenate([np.cumsum(sizes[::-1])[::-1][1:], [0.0]]))


def divergence(clusters: Clusters, groups: Groups, concentration: float, log_theta: Floats | None = None) -> float:
    """KL divergence of q(θ) and q(v) from their priors; ``log_theta`` saves computing the expectations again."""
    if log_theta is None:
        log_theta, _ = expectations(clusters, groups, concentration)
    posterior = clusters.counts + groups.prior
    totals = np.add.reduceat(posterior, groups.group_start[:-1], axis=1)
    of_theta = gammaln(totals).sum() - gammaln(posterior).sum() + (clusters.counts * log_theta).sum()
    of_theta += len(posterior) * (gammaln(groups.prior).sum() - gammaln(groups.group_prior).sum())
    won, left = 1.0 + clusters.sizes, concentration + _beyond(clusters.sizes)
    both = digamma(won + left)
    of_sticks = (clusters.sizes * (digamma(won) - both) + (left - concentration) * (digamma(left) - both)).sum()
    of_sticks += (betaln(1.0, concentration) - betaln(won, left)).sum()
    return float(of_theta + of_sticks)


def converge(
    data: TaskCounts,
    clusters: Clusters,
    groups: Groups,
    concentration: float,
    max_sweeps: int = MAX_SWEEPS,
    tolerance: float = TOLERANCE,
    progress: Callable[[int], None] | None = None,
) -> Clusters:
    """Sweep until the bound stands still, which every sweep raises; clusters that nobody is left in are dropped.

    Ctrl-C ends it after a sweep.
    """
    clusters = clusters.ordered()
    bound = -np.inf
    for _ in range(max_sweeps):
        log_theta, log_pi = expectations(clusters, groups, concentration)
        sweep = data.sweep(log_theta, log_pi)
        before, bound = bound, sweep.log_norm - divergence(clusters, groups, concentration, log_theta)
        converged, kept = bool(bound - before < tolerance * data.n_tasks), in_use(sweep.sizes)
        clusters = Clusters(sweep.counts[kept], sweep.sizes[kept], bound, converged).ordered()
        if progress is not None:
            progress(1)
        if converged or asked():
            break
    return clusters
