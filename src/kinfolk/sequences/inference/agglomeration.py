"""Tasks agglomerated into clusters by variational evidence: where samplers and the mean-field mixture start.

Two clusters of n₁ and n₂ tasks are joined when that raises the bound on log p(o, c) of the nDP-iHMM (Ni et al. 2007,
eq. 9),

    bound(union) − bound(1) − bound(2) + log[Γ(n₁ + n₂)/(Γ(n₁)Γ(n₂))] − log η,

the last terms being those of a Chinese restaurant process, to which π ~ Dir(η/K) comes close for large K. Only refined
fits are compared, since refining one may add hundreds of nats; which pairs are worth refining is told by a glance.

Hyper-parameters are learnt between rounds: those that maximise the bound under their Gamma priors, given the fits of
all clusters. Each is maximised on its own, on the scale of its logarithm, with expected transitions, base weights and
emission statistics held; q(W) and q(θ) follow, since they are the posteriors given those. The bound never falls.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from itertools import combinations
from math import lgamma, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from kinfolk.maths.arrays import Floats
from kinfolk.partition.concentration import GammaPrior, most_probable_concentration
from kinfolk.sequences.inference.mean_field import (
    ClusterFit,
    base_bound,
    base_of,
    fit_cluster,
    log_rising,
    start_of,
)
from kinfolk.sequences.inference.task_set_fits import SetFits, TaskSet
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.ndp_ihmm import ClusterPrior, Priors, value_of
from kinfolk.sequences.model.sequences import Sequences

# One update moves a hyper-parameter by no more than a factor of e to this power, and stops within this of the best.
_FARTHEST = 2.0
_PRECISION = 0.01


def most_probable(value: Callable[[float], float], current: float, prior: GammaPrior | float) -> float:
    """The hyper-parameter near ``current`` that maximises value + log prior density of its logarithm."""
    if not isinstance(prior, GammaPrior):
        return float(prior)

    def loss(log_at: float) -> float:
        at = float(np.exp(log_at))
        return prior.rate * at - prior.shape * log_at - value(at)

    centre = float(np.log(current))
    found = minimize_scalar(
        loss, bounds=(centre - _FARTHEST, centre + _FARTHEST), method="bounded", options={"xatol": _PRECISION}
    )
    return float(np.exp(found.x)) if found.fun < loss(centre) else current


def learn_hyper(
    fits: Sequence[ClusterFit],
    emission: Emission,
    hyper: ClusterPrior,
    priors: Priors,
    task_weights: Sequence[Floats] | None = None,
) -> tuple[ClusterPrior, Emission]:
    """Hyper-parameters for fits that are held, one after the other; those with a fixed value keep it.

    ``task_weights`` tells how far each task of a fit belongs to its cluster, wholly by default.

    Examples
    --------
    >>> from kinfolk.sequences.model.emissions.categorical import Categorical
    >>> from kinfolk.sequences.inference.task_set_fits import fit_from_blocks
    >>> from kinfolk.sequences.model.sequences import Sequences
    >>> codes = np.tile(np.repeat([0, 1], 10), 6)
    >>> sequences = Sequences((codes,), np.array([0, 120]), np.array([0, 1]))
    >>> fit = fit_from_blocks(sequences, Categorical(2, 1.0), ClusterPrior(), np.random.default_rng(0))
    >>> _, emission = learn_hyper([fit], Categorical(2, 1.0), ClusterPrior(), Priors())
    >>> emission.strength < 0.5
    True
    """
    weights = [np.ones(len(fit.counts)) for fit in fits] if task_weights is None else task_weights

    def of_rows(at: ClusterPrior) -> float:
        total = 0.0
        for fit, rho in zip(fits, weights, strict=True):
            counts = np.ascontiguousarray(fit.counts)
            total += log_rising(counts, rho, base_of(fit.weights, at), at)[0]
            total += base_bound(fit.weights, at, float(rho.sum()))
        return total

    alpha = most_probable(lambda x: of_rows(hyper._replace(alpha=x)), hyper.alpha, priors.alpha)
    hyper = hyper._replace(alpha=alpha)
    gamma = most_probable(lambda x: of_rows(hyper._replace(gamma=x)), hyper.gamma, priors.gamma)
    hyper = hyper._replace(gamma=gamma)
    stickiness = most_probable(lambda x: of_rows(hyper._replace(stickiness=x)), hyper.stickiness, priors.stickiness)
    hyper = hyper._replace(stickiness=stickiness)
    statistics = np.concatenate([fit.statistics for fit in fits])
    strength = most_probable(
        lambda x: float(emission.with_strength(x).log_marginal(statistics).sum()), emission.strength, priors.strength
    )
    return hyper, emission.with_strength(strength)


def log_prior(priors: Priors, eta: float, hyper: ClusterPrior, strength: float) -> float:
    """Log prior density of the logarithms of the hyper-parameters that are learnt."""
    values = (eta, hyper.gamma, hyper.alpha, strength, hyper.stickiness)
    pairs = zip(priors, values, strict=True)
    return sum(prior.log_density(value) for prior, value in pairs if isinstance(prior, GammaPrior))


# It looks at all pairs of tasks; more of them than this are met in random batches.
MOST_TASKS_TO_AGGLOMERATE = 100
# Pairs refined in vain before no better join is expected.
_PATIENCE = 8
# Iterations that tell which pairs are worth refining.
_GLANCE = 3
# Rounds of learning hyper-parameters for a partition, and of agglomerating anew with those learnt.
_LEARNING_ROUNDS, _ROUNDS = 4, 3


class Agglomeration(NamedTuple):
    """Clusters of tasks, their fits, and the hyper-parameters under which they were found.

    Clusters are in the order of their first tasks. ``joins`` has the pairs of sets in the order in which they were
    joined, each with what it gained; ``common`` the evidence that tasks have in common, where all pairs were looked at.
    """

    clusters: tuple[TaskSet, ...]
    set_fits: SetFits
    eta: float
    joins: tuple[tuple[TaskSet, TaskSet, float], ...]
    common: Floats | None = None

    @property
    def fits(self) -> list[ClusterFit]:
        """The fit of each cluster."""
        return [self.set_fits.of(tasks) for tasks in self.clusters]

    @property
    def partition(self) -> NDArray[np.int64]:
        """Cluster of each task."""
        labels = np.empty(self.set_fits.sequences.n_tasks, dtype=np.int64)
        for k, tasks in enumerate(self.clusters):
            labels[list(tasks)] = k
        return labels


def log_seats(sizes: tuple[int, int], eta: float) -> float:
    """What joining two clusters adds to the log probability of the partition."""
    return lgamma(sum(sizes)) - lgamma(sizes[0]) - lgamma(sizes[1]) - log(eta)


def promise_of_joining(set_fits: SetFits, first: TaskSet, second: TaskSet) -> float:
    """What joining two clusters adds to the bound, unrefined: a glance at each of several starts, and the best."""
    sequences = set_fits.sequences.of_tasks(sorted(first + second))
    glances = [
        fit_cluster(sequences, set_fits.emission, set_fits.hyper, start, weights=weights, n_iterations=_GLANCE).bound
        for start, weights in set_fits.starts_of_union([first, second])
    ]
    return max(glances) - set_fits.of(first).bound - set_fits.of(second).bound


def evidence_in_common(set_fits: SetFits) -> Floats:
    """What joining each two tasks would add to the bound, unrefined, in nats."""
    n_tasks = set_fits.sequences.n_tasks
    common = np.zeros((n_tasks, n_tasks))
    for j, i in combinations(range(n_tasks), 2):
        common[i, j] = common[j, i] = promise_of_joining(set_fits, (j,), (i,))
    return common


def agglomerate(set_fits: SetFits, eta: float) -> Agglomeration:
    """Join the pair of clusters that gains most until no pair gains, starting from tasks alone."""
    clusters: list[TaskSet] = [(task,) for task in range(set_fits.sequences.n_tasks)]
    common = evidence_in_common(set_fits)
    promises: dict[tuple[TaskSet, TaskSet], float] = {
        ((j,), (i,)): common[i, j] + log_seats((1, 1), eta) for j, i in combinations(range(len(clusters)), 2)
    }
    gains: dict[tuple[TaskSet, TaskSet], float] = {}
    joins: list[tuple[TaskSet, TaskSet, float]] = []
    while len(clusters) > 1:
        pairs = [(a, b) for i, a in enumerate(clusters) for b in clusters[i + 1 :]]
        for a, b in pairs:
            if (a, b) not in promises:
                seats = log_seats((len(a), len(b)), eta)
                promises[a, b] = promise_of_joining(set_fits, a, b) + seats
        pairs.sort(key=lambda pair: -promises[pair])
        best, in_vain = None, 0
        for a, b in pairs:
            if in_vain == _PATIENCE:
                break
            if (a, b) not in gains:
                bounds = [set_fits.of(tasks).bound for tasks in (a, b)]
                gains[a, b] = set_fits.together([a, b]).bound - sum(bounds) + log_seats((len(a), len(b)), eta)
            if gains[a, b] > 0.0 and (best is None or gains[a, b] > gains[best]):
                best, in_vain = (a, b), 0
            else:
                in_vain += 1
        if best is None:
            break
        joins.append((*best, gains[best]))
        union = tuple(sorted(best[0] + best[1]))
        clusters = sorted([tasks for tasks in clusters if tasks not in best] + [union])
    return Agglomeration(tuple(clusters), set_fits, eta, tuple(joins), common)


def find_clusters(
    sequences: Sequences,
    emission: Emission,
    priors: Priors,
    n_states: int,
    *,
    n_starts: int = 4,
    seed: int = 0,
) -> Agglomeration:
    """Cluster tasks, with hyper-parameters learnt on the way.

    Parameters
    ----------
    sequences : Sequences
    emission : Emission
        Its strength is where learning starts.
    priors : Priors
    n_states : int
        L, the most states that a cluster may have.
    n_starts : int
        Random starts of each task alone.
    seed : int

    Returns
    -------
    Agglomeration

    Examples
    --------
    >>> from kinfolk.sequences.model.emissions.categorical import Categorical
    >>> slow, fast = np.tile(np.repeat([0, 1], 10), 6), np.tile([1, 2], 60)
    >>> codes = np.concatenate([slow, slow, fast, fast])
    >>> sequences = Sequences((codes,), np.arange(0, 481, 120), np.arange(5))
    >>> find_clusters(sequences, Categorical(3), Priors(), 5).partition.tolist()
    [0, 0, 1, 1]
    """
    hyper = ClusterPrior.of(priors.means(), n_states)
    emission = emission if isinstance(priors.strength, GammaPrior) else emission.with_strength(priors.strength)
    set_fits = SetFits.of_data(sequences, emission, hyper, n_starts=n_starts, seed=seed)
    best: Agglomeration | None = None
    for _ in range(_ROUNDS):
        eta = value_of(priors.eta) if best is None else best.eta
        found = relearnt(agglomerate(set_fits, eta), priors)
        if best is not None and log_score(found, priors) <= log_score(best, priors):
            break
        settled = best is not None and found.clusters == best.clusters
        best = found
        if settled:
            break
        learnt = found.set_fits
        set_fits = SetFits.of_data(
            sequences, learnt.emission, learnt.hyper, n_starts=n_starts, seed=seed, earlier=set_fits
        )
    assert best is not None
    return best


def given_clusters(
    sequences: Sequences,
    emission: Emission,
    priors: Priors,
    n_states: int,
    partition: NDArray[np.int64],
    seed: int,
) -> Agglomeration:
    """Tasks in given clusters, each with a fit, as if they had been agglomerated; at most a hundred tasks."""
    hyper = ClusterPrior.of(priors.means(), n_states)
    set_fits = SetFits.of_data(sequences, emission, hyper, seed=seed)
    clusters = tuple(sorted(tuple(np.flatnonzero(partition == k).tolist()) for k in np.unique(partition)))
    for tasks in clusters:
        set_fits.of(tasks)
    return Agglomeration(clusters, set_fits, priors.means().eta, ())


def at_most(found: Agglomeration, n_clusters: int) -> Agglomeration:
    """No more clusters than a model has room for: those that lose least by it are joined, with a warning."""
    clusters = list(found.clusters)
    if len(clusters) <= n_clusters:
        return found
    # One cluster is what was asked for, not too few.
    if n_clusters > 1:
        warnings.warn(
            f"agglomeration found {len(clusters)} clusters, and n_clusters={n_clusters} has no room for them: those "
            "that lose least by it start as one",
            stacklevel=2,
        )
    set_fits, promises = found.set_fits, dict[tuple[TaskSet, TaskSet], float]()
    while len(clusters) > n_clusters:
        for pair in combinations(clusters, 2):
            if pair not in promises:
                promises[pair] = promise_of_joining(set_fits, *pair) + log_seats(
                    (len(pair[0]), len(pair[1])), found.eta
                )
        best = max(combinations(clusters, 2), key=promises.__getitem__)
        set_fits.together(best)
        clusters = sorted([tasks for tasks in clusters if tasks not in best] + [tuple(sorted(best[0] + best[1]))])
    return found._replace(clusters=tuple(clusters))


def relearnt(found: Agglomeration, priors: Priors) -> Agglomeration:
    """Learn hyper-parameters for a partition, and refine the fits of its clusters under them.

    Never on tasks alone before they are joined: each of them has few states, and a γ learnt from that forbids more.
    """
    set_fits, eta = found.set_fits, found.eta
    if isinstance(priors.eta, GammaPrior):
        eta = most_probable_concentration(len(found.clusters), set_fits.sequences.n_tasks, priors.eta)
    for _ in range(_LEARNING_ROUNDS):
        fits = [set_fits.of(tasks) for tasks in found.clusters]
        hyper, emission = learn_hyper(fits, set_fits.emission, set_fits.hyper, priors)
        learnt = SetFits.of_data(set_fits.sequences, emission, hyper, n_starts=set_fits.n_starts, seed=set_fits.seed)
        for tasks, fit in zip(found.clusters, fits, strict=True):
            own = set_fits.sequences.of_tasks(tasks)
            learnt.fits[tasks] = fit_cluster(own, emission, hyper, start_of(fit), weights=fit.weights)
        set_fits = learnt
    return found._replace(set_fits=set_fits, eta=eta)


def log_score(found: Agglomeration, priors: Priors) -> float:
    """Lower bound of log p(o, c, hyper-parameters), each of those on the scale of its logarithm."""
    set_fits, eta = found.set_fits, found.eta
    n_tasks = set_fits.sequences.n_tasks
    total = sum(fit.bound + lgamma(len(tasks)) for tasks, fit in zip(found.clusters, found.fits, strict=True))
    total += len(found.clusters) * log(eta) + lgamma(eta) - lgamma(eta + n_tasks)
    return total + log_prior(priors, eta, set_fits.hyper, set_fits.emission.strength)
