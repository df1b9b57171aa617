"""Tasks agglomerated into clusters by variational evidence: where samplers and the mean-field mixture start.

Two clusters of n₁ and n₂ tasks are joined when that raises the bound on log p(o, c) of the nDP-iHMM (Ni et al. 2007,
eq. 9),

    bound(union) − bound(1) − bound(2) + log[Γ(n₁ + n₂)/(Γ(n₁)Γ(n₂))] − log η,

the last terms being those of a Chinese restaurant process, to which π ~ Dir(η/K) comes close for large K. Only refined
fits are compared, since refining one may add hundreds of nats; which pairs are worth refining is told by a glance.

A task alone is fitted from several random starts, a set of tasks from the states of its parts side by side: its fit is
a function of the data alone, and computed once (`SetFits`). Hyper-parameters are learnt between rounds.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import lgamma, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.checkpoints import NOWHERE, Checkpoint, Nowhere, Place
from kinfolk.interrupts import NEVER, Stop
from kinfolk.maths.arrays import Floats
from kinfolk.partition.concentration import GammaPrior, most_probable_concentration
from kinfolk.sequences.inference.mean_field import (
    ROUGHLY,
    ClusterFit,
    Start,
    fit_cluster,
    fit_locally,
    learn_hyper,
    usual_transitions,
)
from kinfolk.sequences.inference.state_merges import fit_from_blocks, merge_states, squeezed, stacked
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.ndp_ihmm import ClusterPrior, Priors, value_of
from kinfolk.sequences.model.sequences import Sequences

# Of a union of many parts, the states of so many of them are tried for all tasks.
_MOST_EXPLAINERS = 4

TaskSet = tuple[int, ...]


class SetFits(NamedTuple):
    """Fits of sets of tasks under hyper-parameters that are held; those asked for once are remembered.

    Attributes
    ----------
    sequences : Sequences
    emission : Emission
    hyper : ClusterPrior
    n_starts : int
        Random starts of each task alone.
    seed : int
        Random numbers of a task hang on this and on its place among the tasks.
    fits : dict
        What is known so far.
    earlier : mapping
        Fits under other hyper-parameters, from which those under these go on. A prior of the emissions that is almost
        without weight has many poor modes, and the way to the good ones leads through a heavier prior.
    """

    sequences: Sequences
    emission: Emission
    hyper: ClusterPrior
    n_starts: int
    seed: int
    fits: dict[TaskSet, ClusterFit]
    earlier: Mapping[TaskSet, ClusterFit]

    @classmethod
    def of_data(
        cls,
        sequences: Sequences,
        emission: Emission,
        hyper: ClusterPrior,
        *,
        n_starts: int = 4,
        seed: int = 0,
        earlier: SetFits | None = None,
    ) -> SetFits:
        """Nothing known yet, but for fits under other hyper-parameters."""
        return cls(sequences, emission, hyper, n_starts, seed, {}, {} if earlier is None else earlier.fits)

    def copy(self) -> SetFits:
        """The same, so far; what is remembered from now on is remembered in one of them."""
        return self._replace(fits=dict(self.fits))

    def alone(self, task: int) -> ClusterFit:
        """The fit of one task; it hangs on the data of that task only."""
        if (task,) not in self.fits:
            own = self.sequences.of_tasks([task])
            rng = np.random.default_rng([self.seed, task])
            fits = [fit_from_blocks(own, self.emission, self.hyper, rng, self.n_starts)]
            if (task,) in self.earlier:
                fits.append(self._from_earlier((task,), own))
            self.fits[(task,)] = max(fits, key=lambda fit: fit.bound)
        return self.fits[(task,)]

    def together(self, parts: Sequence[TaskSet]) -> ClusterFit:
        """The fit of the union of disjoint sets, from the states of the sets' own fits side by side.

        Tasks of a fit are in ascending order.
        """
        union = tuple(sorted(task for part in parts for task in part))
        if union not in self.fits:
            sequences = self.sequences.of_tasks(union)
            roughly = [self._settled(sequences, *start, ROUGHLY) for start in self.starts_of_union(parts, sequences)]
            best = max(roughly, key=lambda fit: fit.bound)
            fits = [merge_states(sequences, self.emission, self.hyper, best)]
            if union in self.earlier:
                fits.append(self._from_earlier(union, sequences))
            self.fits[union] = max(fits, key=lambda fit: fit.bound)
        return self.fits[union]

    def _from_earlier(self, tasks: TaskSet, sequences: Sequences) -> ClusterFit:
        before = self.earlier[tasks]
        fit = fit_cluster(sequences, self.emission, self.hyper, before, weights=before.weights)
        return merge_states(sequences, self.emission, self.hyper, fit)

    def _settled(self, sequences: Sequences, start: Start, weights: Floats, tolerance: float) -> ClusterFit:
        return fit_cluster(sequences, self.emission, self.hyper, start, weights=weights, tolerance=tolerance)

    def starts_of_union(self, parts: Sequence[TaskSet], union: Sequences) -> list[tuple[Start, Floats]]:
        """Starts of a union: the states of its parts side by side, at most L; and those of each part for all tasks.

        With each start come base weights. Tasks are in ascending order, as in the ``union`` of their sequences.
        """
        fits = [self.of(part) for part in parts]
        start = stacked(fits)
        order = np.argsort([task for part in parts for task in part])
        weights = np.concatenate([fit.weights for fit in fits])
        start = Start(start.counts[order], start.statistics)
        starts = [squeezed(start, weights, self.emission, self.hyper)]
        for fit in fits[:_MOST_EXPLAINERS]:
            usual = usual_transitions(fit.counts.sum(axis=0), np.diff(union.step_bounds))
            local = fit_locally(union, self.emission, self.hyper, fit._replace(counts=usual), n_iterations=2)
            statistics = self.emission.expected_statistics(union.observations, local.posteriors, fit.statistics)
            starts.append((Start(local.counts, statistics), fit.weights))
        return starts

    def of(self, tasks: Iterable[int]) -> ClusterFit:
        """The fit of a set: one known already, or that of its tasks one by one."""
        key = tuple(sorted(tasks))
        if len(key) == 1:
            return self.alone(key[0])
        return self.fits[key] if key in self.fits else self.together([(task,) for task in key])


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
        for start, weights in set_fits.starts_of_union([first, second], sequences)
    ]
    return max(glances) - set_fits.of(first).bound - set_fits.of(second).bound


class Known(NamedTuple):
    """What has been found out of sets of tasks under given hyper-parameters, each once, and where that is kept.

    It hangs on the data alone and not on the way that agglomeration takes, which can be gone again from the start.
    """

    fits: dict[TaskSet, ClusterFit]
    promises: dict[tuple[TaskSet, TaskSet], float]
    gains: dict[tuple[TaskSet, TaskSet], float]
    place: Place | Nowhere = NOWHERE
    stop: Stop = NEVER

    @classmethod
    def of(cls, set_fits: SetFits, place: Place | Nowhere, stop: Stop) -> Known:
        """What was kept, beside what is known."""
        promises, gains = {}, {}
        if (kept := place.load()) is not None:
            fits, promises, gains = kept
            set_fits.fits.update(fits)
        return cls(set_fits.fits, promises, gains, place, stop)

    def pause(self) -> None:
        """Keep it if it is time to; end if that is asked for, since clusters are not found yet."""
        if self.stop.asked() or self.place.due():
            self.place.save(self[:3])
        if self.stop.asked():
            raise KeyboardInterrupt


def evidence_in_common(set_fits: SetFits, known: Known | None = None) -> Floats:
    """What joining each two tasks would add to the bound, unrefined, in nats."""
    n_tasks = set_fits.sequences.n_tasks
    common = np.zeros((n_tasks, n_tasks))
    known = Known.of(set_fits, NOWHERE, NEVER) if known is None else known
    for j, i in combinations(range(n_tasks), 2):
        pair = (j,), (i,)
        if pair not in known.promises:
            known.pause()
            known.promises[pair] = promise_of_joining(set_fits, *pair)
        common[i, j] = common[j, i] = known.promises[pair]
    return common


def agglomerate(set_fits: SetFits, eta: float, place: Place | Nowhere = NOWHERE, stop: Stop = NEVER) -> Agglomeration:
    """Join the pair of clusters that gains most until no pair gains, starting from tasks alone."""
    clusters: list[TaskSet] = [(task,) for task in range(set_fits.sequences.n_tasks)]
    known = Known.of(set_fits, place, stop)
    common = evidence_in_common(set_fits, known)
    promises: dict[tuple[TaskSet, TaskSet], float] = {
        ((j,), (i,)): common[i, j] + log_seats((1, 1), eta) for j, i in combinations(range(len(clusters)), 2)
    }
    gains = known.gains
    joins: list[tuple[TaskSet, TaskSet, float]] = []
    while len(clusters) > 1:
        pairs = [(a, b) for i, a in enumerate(clusters) for b in clusters[i + 1 :]]
        for a, b in pairs:
            if (a, b) not in promises:
                seats = log_seats((len(a), len(b)), eta)
                if (a, b) not in known.promises:
                    known.pause()
                    known.promises[a, b] = promise_of_joining(set_fits, a, b)
                promises[a, b] = known.promises[a, b] + seats
        pairs.sort(key=lambda pair: -promises[pair])
        best, in_vain = None, 0
        for a, b in pairs:
            if in_vain == _PATIENCE:
                break
            if (a, b) not in gains:
                known.pause()
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
    keep: Checkpoint = Checkpoint(),  # noqa: B008 - a value
    stop: Stop = NEVER,
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
    keep : Checkpoint
        Where what is known of sets of tasks is kept.
    stop : Stop
        Whether to end, by KeyboardInterrupt.

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
    for turn in range(_ROUNDS):
        eta = value_of(priors.eta) if best is None else best.eta
        found = relearnt(agglomerate(set_fits, eta, keep.place("sets of tasks", turn), stop), priors)
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
            learnt.fits[tasks] = fit_cluster(own, emission, hyper, fit, weights=fit.weights)
        set_fits = learnt
    return found._replace(set_fits=set_fits, eta=eta)


def log_score(found: Agglomeration, priors: Priors) -> float:
    """Lower bound of log p(o, c, hyper-parameters), each of those on the scale of its logarithm."""
    set_fits, eta = found.set_fits, found.eta
    n_tasks = set_fits.sequences.n_tasks
    total = sum(fit.bound + lgamma(len(tasks)) for tasks, fit in zip(found.clusters, found.fits, strict=True))
    total += len(found.clusters) * log(eta) + lgamma(eta) - lgamma(eta + n_tasks)
    return total + log_prior(priors, eta, set_fits.hyper, set_fits.emission.strength)
