"""Clustered logistic regression: a Dirichlet process over tasks' weights, by collapsed Gibbs sampling over partitions.

The model is that of Y. Xue, X. Liao, L. Carin and B. Krishnapuram, "Multi-task learning for classification with
Dirichlet process priors", JMLR 8, 2007, with an intercept of each task beside its cluster's weights. They approximate
weights and assignments as independent; here a partially pooled fit gives every task a Gaussian site of its weights,
under which weights integrate out, and partitions are drawn as of any conjugate model (``partition.gibbs``). Sites are
then taken anew at what the clusters say, since a task's likelihood is no Gaussian, and partitions drawn again.

What clusters' weights are drawn from is what the partially pooled fit found of tasks' weights: their mean and spread.

A sweep is O(tasks × clusters × labels × columns³).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from joblib import Parallel
from numpy.typing import NDArray

from kinfolk.checkpoints import NOWHERE, Checkpoint, Nowhere, Place
from kinfolk.interrupts import NEVER, Stop, equally_long, stops_safely
from kinfolk.linear.inference.hierarchical import sites_at
from kinfolk.linear.model.clusters import (
    Base,
    ClusterSites,
    Seats,
    log_evidence,
    posterior_of_clusters,
    without_intercepts,
)
from kinfolk.linear.model.rows import LinearRows
from kinfolk.linear.model.values import ClusterDraws, Fitted, Groups, Hyper
from kinfolk.linear.model.weights import TaskWeights
from kinfolk.maths.arrays import Floats
from kinfolk.maths.blas import one_blas_thread
from kinfolk.partition.concentration import GammaPrior, draw_concentration
from kinfolk.partition.crp import joining_weights
from kinfolk.pieces import delayed

# Of the spread of tasks' intercepts, the share of the variance that lies between clusters where tasks have their own.
_BETWEEN = 0.5


class Sampling(NamedTuple):
    """How partitions are drawn: chains, sweeps of each before and while draws are kept; a concentration, or None."""

    n_chains: int = 2
    n_burn_in: int = 20
    n_draws: int = 30
    concentration: float | None = None
    own_intercepts: bool = True

    @property
    def n_sweeps(self) -> int:
        """Sweeps of a chain."""
        return self.n_burn_in + self.n_draws


class Clustered(NamedTuple):
    """What was learnt: weights of every task for each label, a new task's mean and covariance, draws of partitions."""

    weights: tuple[TaskWeights, ...]
    draws: ClusterDraws


@one_blas_thread()
def infer(
    rows: Sequence[LinearRows],
    hypers: Sequence[Hyper],
    fits: Sequence[Fitted],
    sampling: Sampling,
    seed: int,
    checkpoint: Checkpoint = Checkpoint(),  # noqa: B008 - a value
    n_jobs: int | None = None,
) -> Clustered:
    """Draw partitions of tasks, given a partially pooled fit for each label.

    Parameters
    ----------
    rows : sequence of LinearRows
        For each label.
    hypers, fits : sequences of Hyper and Fitted
        What ``hierarchical.infer`` found.
    sampling : Sampling
    seed : int
    checkpoint : Checkpoint
        Where chains keep how far they got.
    n_jobs : int or None
        Chains run side by side.

    Returns
    -------
    Clustered
        Of the draws so far, where Ctrl-C was pressed.
    """
    n_own = rows[0].n_own
    base, intercepts = _base(hypers, fits, Groups(rows[0].own_group), sampling.own_intercepts)
    weights = [fit.weights for fit in fits]
    common = [found.common for found in weights]
    keep = checkpoint.of("partitions", tuple(rows), tuple(hypers), tuple(fits), sampling, seed)
    for look, drawing in enumerate((_shorter(sampling), sampling)):
        precision, shift = _sites_of_tasks(rows, weights, n_own)
        sites = without_intercepts(precision, shift, intercepts)
        seeds = np.random.SeedSequence([seed, look]).spawn(drawing.n_chains)
        with stops_safely() as stop:
            chains = Parallel(n_jobs=n_jobs, prefer="threads")(
                delayed(_chain)(sites, base, drawing, own, keep.place(look, i), stop) for i, own in enumerate(seeds)
            )
            if stop.asked() and look == 0:
                raise KeyboardInterrupt
        n_chains, seats, concentrations, log_joint = _joined(chains, drawing)
        mean, covariance, new_mean, new_covariance, own_share = _averaged(
            sites, base, seats, concentrations, intercepts
        )
        weights = [
            _as_task_weights(mean[:, k], covariance[:, k], common[k], fits[k].weights.common_covariance)
            for k in range(len(rows))
        ]
    if not np.isfinite([mean, covariance[..., 0]]).all():
        raise ValueError("sample_weight is too large, or differs too much between rows, to find clusters by")
    draws = ClusterDraws(seats, concentrations, log_joint, base.scale, new_mean, new_covariance, own_share, n_chains)
    return Clustered(tuple(weights), draws)


def _shorter(sampling: Sampling) -> Sampling:
    """A first look, which only tells where sites are to be taken anew."""
    return sampling._replace(n_chains=1, n_burn_in=sampling.n_burn_in // 2, n_draws=(sampling.n_draws + 2) // 3)


def _base(hypers: Sequence[Hyper], fits: Sequence[Fitted], groups: Groups, own_intercepts: bool) -> tuple[Base, Floats]:
    """What clusters' weights are drawn from, and the variance of own intercepts of each label."""
    n_own = len(groups.own)
    mean = np.array([fit.weights.common[:n_own] for fit in fits])
    variance = np.array([hyper.spread(groups) ** 2 for hyper in hypers])
    own = variance[:, 0] * (1.0 - _BETWEEN) if own_intercepts else np.full(len(fits), 1e-12)
    variance[:, 0] -= own
    unsure = np.array([np.diag(fit.weights.common_covariance)[:n_own] for fit in fits])
    return Base(mean, np.sqrt(variance + unsure)), own


def _sites_of_tasks(rows: Sequence[LinearRows], weights: Sequence[TaskWeights], n_own: int) -> tuple[Floats, Floats]:
    """Sites of every task's own weights (tasks, labels, …), the other columns at their common weights."""
    precision, shift = [], []
    for its, found in zip(rows, weights, strict=True):
        sites, _ = sites_at(its, found.means, [found.variances(block.X, block.tasks) for block in its.blocks])
        precision.append(sites.precision[..., :n_own])
        shift.append(sites.shift - sites.precision[..., n_own:] @ found.common[n_own:])
    return np.stack(precision, axis=1), np.stack(shift, axis=1)


class Drawn(NamedTuple):
    """Where a chain stands: sweeps that are done, who sits where, the concentration, and draws so far.

    Draws are partitions (draws, tasks), concentrations and log joint probabilities.
    """

    n_sweeps: int
    seats: Seats
    concentration: float
    partitions: NDArray[np.int64]
    concentrations: Floats
    log_joint: Floats

    @classmethod
    def nothing(cls, sites: ClusterSites, sampling: Sampling) -> Drawn:
        """Before the first sweep."""
        n_tasks, n = len(sites.shift), sampling.n_draws
        room = np.zeros((n, n_tasks), dtype=np.int64), np.zeros(n), np.zeros(n)
        return cls(0, _empty(n_tasks, sites), sampling.concentration or 1.0, *room)


# Where BLAS has other threads, sums come out otherwise in the last digit.
@one_blas_thread()
def _chain(
    sites: ClusterSites,
    base: Base,
    sampling: Sampling,
    seed: np.random.SeedSequence | int,
    place: Place | Nowhere = NOWHERE,
    stop: Stop = NEVER,
) -> Drawn:
    """Run a chain, as far as it may."""
    rng, drawn = np.random.default_rng(seed), Drawn.nothing(sites, sampling)
    if (kept := place.load()) is not None:
        drawn, rng.bit_generator.state = kept
    while drawn.n_sweeps < sampling.n_sweeps and not stop.asked():
        if place.due():
            place.save((drawn, rng.bit_generator.state))
        a = drawn.concentration
        seats = sweep_tasks(drawn.seats, sites, base, a, rng)
        n_clusters = int((seats.size > 0).sum())
        if sampling.concentration is None:
            a = draw_concentration(a, n_clusters, len(seats.seat), GammaPrior(), rng)
        draw = drawn.n_sweeps - sampling.n_burn_in
        if draw >= 0:
            drawn.partitions[draw], drawn.concentrations[draw] = seats.seat, a
            drawn.log_joint[draw] = seats.evidence[seats.size > 0].sum()
        drawn = drawn._replace(n_sweeps=drawn.n_sweeps + 1, seats=seats, concentration=float(a))
    (place.save if stop.asked() else place.end)((drawn, rng.bit_generator.state))
    return drawn


def _joined(chains: Sequence[Drawn], sampling: Sampling) -> tuple[int, NDArray[np.int64], Floats, Floats]:
    """As many draws of each chain, of those that were not ended before they had any; first how many these are."""
    which, n = equally_long([max(chain.n_sweeps - sampling.n_burn_in, 0) for chain in chains])
    kept = [chains[i] for i in which]
    partitions = np.concatenate([chain.partitions[:n] for chain in kept])
    concentrations = np.concatenate([chain.concentrations[:n] for chain in kept])
    return len(which), partitions, concentrations, np.concatenate([chain.log_joint[:n] for chain in kept])


def _empty(n_tasks: int, sites: ClusterSites) -> Seats:
    """Nobody seated, and room for one cluster."""
    first = sites.precision[:1] * 0.0, sites.shift[:1] * 0.0
    return Seats(np.full(n_tasks, -1), *first, np.zeros(1, dtype=np.int64), np.zeros(1))


def sweep_tasks(seats: Seats, sites: ClusterSites, base: Base, concentration: float, rng: np.random.Generator) -> Seats:
    """Seat every task anew, in random order: at a cluster by its size and what it says of the task, or at a new one."""
    seat, size, evidence = seats.seat.copy(), seats.size.copy(), seats.evidence.copy()
    precision, shift = seats.precision.copy(), seats.shift.copy()
    alone = log_evidence(sites.precision, sites.shift, base)
    for t in rng.permutation(len(seat)):
        A, c = sites.precision[t], sites.shift[t]
        if seat[t] >= 0:
            k = seat[t]
            precision[k] -= A
            shift[k] -= c
            size[k] -= 1
            evidence[k] = log_evidence(precision[k], shift[k], base) if size[k] else 0.0
        joined = log_evidence(precision + A, shift + c, base)
        with np.errstate(divide="ignore"):
            log_weight = np.where(size > 0, np.log(size) + joined - evidence, -np.inf)
        log_weight = np.append(log_weight, np.log(concentration) + alone[t])
        chance = np.exp(log_weight - log_weight.max())
        k = int(np.searchsorted(np.cumsum(chance), rng.random() * chance.sum()))
        k = min(k, len(chance) - 1)
        if k == len(size):
            free = np.flatnonzero(size == 0)
            if len(free):
                k = int(free[0])
                precision[k], shift[k] = 0.0, 0.0
            else:
                precision, shift = np.append(precision, 0.0 * A[None], axis=0), np.append(shift, 0.0 * c[None], axis=0)
                size, evidence, joined = np.append(size, 0), np.append(evidence, 0.0), np.append(joined, 0.0)
            joined[k] = alone[t]
        seat[t] = k
        precision[k] += A
        shift[k] += c
        size[k] += 1
        evidence[k] = joined[k]
    return Seats(seat, precision, shift, size, evidence)


def _averaged(
    sites: ClusterSites, base: Base, partitions: NDArray[np.int64], concentrations: Floats, intercepts: Floats
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Mean and covariance of every task's weights over all draws, a new task's, and how much of them is the task's own.

    A mixture of Gaussians has the mean and covariance of the one that stands for it.
    """
    n_tasks, n_labels, n_own = sites.shift.shape
    first, second = np.zeros((n_tasks, n_labels, n_own)), np.zeros((n_tasks, n_labels, n_own, n_own))
    new_first, new_second = np.zeros((n_labels, n_own)), np.zeros((n_labels, n_own, n_own))
    share = np.zeros((n_tasks, n_labels, n_own))
    own = np.einsum("tlcc->tlc", sites.precision)
    constant = np.zeros(n_own)
    constant[0] = 1.0
    for partition, a in zip(partitions, concentrations, strict=True):
        clusters, seat = np.unique(partition, return_inverse=True)
        precision, shift = np.zeros((len(clusters), *second.shape[1:])), np.zeros((len(clusters), *first.shape[1:]))
        np.add.at(precision, seat, sites.precision)
        np.add.at(shift, seat, sites.shift)
        mean, covariance = posterior_of_clusters(precision, shift, base)
        # w + e₁ b with b linear in w: (1 − e₁ aᵀ/p) w + e₁ c₁/p, and noise 1/p.
        turn = np.eye(n_own) - constant[:, None] * sites.slope[..., None, :]
        its = np.matmul(turn, mean[seat][..., None])[..., 0] + sites.start[..., None] * constant
        spread = turn @ covariance[seat] @ turn.swapaxes(-1, -2)
        spread[..., 0, 0] += sites.variance
        first += its
        second += spread + its[..., :, None] * its[..., None, :]
        total = np.einsum("klcc->klc", precision)[seat]
        share += np.divide(own, total, out=np.zeros_like(own), where=total > 0.0)
        joins, alone = joining_weights(np.bincount(seat), n_tasks, a)
        means = np.append(mean, base.mean[None], axis=0)
        spreads = np.append(covariance, ((base.scale**2)[..., None] * np.eye(n_own))[None], axis=0)
        chances = np.append(joins, alone)
        new_first += np.tensordot(chances, means, axes=1)
        new_second += np.tensordot(chances, spreads + means[..., :, None] * means[..., None, :], axes=1)
    n = len(partitions)
    first, second, new_first, new_second = first / n, second / n, new_first / n, new_second / n
    covariance = second - first[..., :, None] * first[..., None, :]
    new_covariance = new_second - new_first[..., :, None] * new_first[..., None, :]
    new_covariance[..., 0, 0] += intercepts
    return first, covariance, new_first, new_covariance, share / n


def _as_task_weights(mean: Floats, covariance: Floats, common: Floats, common_covariance: Floats) -> TaskWeights:
    """Weights whose own columns have nothing to do with the common ones any more: a gain of one."""
    n_tasks, n_own = mean.shape
    gain = np.zeros((n_tasks, n_own, len(common)))
    gain[:, np.arange(n_own), np.arange(n_own)] = 1.0
    log_det = np.linalg.slogdet(covariance)[1]
    return TaskWeights(common, common_covariance, mean - common[:n_own], covariance, gain, log_det)
