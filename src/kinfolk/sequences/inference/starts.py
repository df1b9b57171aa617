"""Where the chains of a sampler begin: tasks agglomerated, or in given clusters, with hidden states fitted to them.

States alone have modes that are hundreds of nats apart, which no sweep gets across: every chain starts with the states
of variational fits, found with random numbers of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.partition.crp import canonical
from kinfolk.sequences.inference.agglomeration import find_clusters
from kinfolk.sequences.inference.gibbs import start_state, sweep
from kinfolk.sequences.inference.mean_field import ClusterFit, Hyper
from kinfolk.sequences.inference.split_merge import SplitMerge
from kinfolk.sequences.inference.stochastic_variational import fit_stochastically
from kinfolk.sequences.inference.task_set_fits import References
from kinfolk.sequences.inference.variational import MOST_TASKS_TO_AGGLOMERATE, given_clusters
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.filtering import most_probable_states
from kinfolk.sequences.model.ndp_ihmm import Draw, Priors, State, kept
from kinfolk.sequences.model.sequences import Sequences
from kinfolk.tasks.values import as_column, is_missing

# Splits and merges tried in each sweep at first, when they have most to find.
_MOVES_WHILE_LEARNING = 4
STARTS = ("agglomerate", "together", "apart")


class Position(NamedTuple):
    """Where a chain is, its moves that split and merge clusters, and how many sweeps their references still learn."""

    state: State
    moves: SplitMerge | None
    n_learning: int = 0


class GibbsSampler(NamedTuple):
    """The sampler of a model with K clusters and L states; without a partition to start from, it agglomerates.

    The first ``n_learning`` sweeps, which are to be thrown away, improve the references of moves between clusters.
    """

    sequences: Sequences
    emission: Emission
    priors: Priors
    n_clusters: int
    n_states: int
    partition: NDArray[np.int64] | None
    n_jobs: int | None = 1
    n_learning: int = 0

    def start(self, rng: np.random.Generator) -> Position:
        """A partition, and states fitted to its clusters."""
        partition, states, references = self._fitted_start(int(rng.integers(1 << 31)))
        state = start_state(
            self.sequences,
            self.emission,
            self.priors,
            n_clusters=self.n_clusters,
            n_states=self.n_states,
            rng=rng,
            # Where clusters are more than the model has room for, the last takes in all others.
            cluster=np.minimum(partition, self.n_clusters - 1),
            states=states,
        )
        if references is None:
            return Position(state, None)
        return Position(state, SplitMerge(references), self.n_learning)

    def _fitted_start(self, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64] | None, References | None]:
        """Clusters, states where there are any, and the fits that they come from where moves can build on them."""
        sequences, emission, priors = self.sequences, self.emission, self.priors
        partition, n_states = self.partition, self.n_states
        if sequences.n_tasks > MOST_TASKS_TO_AGGLOMERATE:
            if partition is not None and partition.any():
                return partition, None, None
            most = self.n_clusters if partition is None else 1
            mixture = fit_stochastically(sequences, emission, priors, n_clusters=most, n_states=n_states, seed=seed)
            fits = {}
            for k, fit in enumerate(mixture.fits):
                tasks = np.flatnonzero(mixture.partition == k)
                fits[tuple(tasks.tolist())] = fit._replace(counts=fit.counts[tasks])
            return canonical(mixture.partition), self._states(fits, mixture.emission, mixture.hyper), None
        moves = self.n_clusters > 1 and sequences.n_tasks > 1
        if partition is None or moves:
            found = find_clusters(sequences, emission, priors, n_states, seed=seed)
        # Moves between clusters are the same wherever a chain starts.
        references = found.references if moves else None
        if partition is not None:
            found = given_clusters(sequences, emission, priors, n_states, partition, seed)
        fits = dict(zip(found.clusters, found.fits, strict=True))
        at = found.references
        return found.partition, self._states(fits, at.emission, at.hyper), references

    def _states(
        self, fits: Mapping[tuple[int, ...], ClusterFit], emission: Emission, hyper: Hyper
    ) -> NDArray[np.int64]:
        states = np.empty(self.sequences.n_steps, dtype=np.int64)
        for tasks, fit in fits.items():
            own = self.sequences.of_tasks(tasks)
            found = most_probable_states_of(fit, own, emission, hyper)
            for place, task in enumerate(tasks):
                states[self.sequences.steps_of(task)] = found[own.steps_of(place)]
        return states

    def sweep(self, position: Position, rng: np.random.Generator) -> Position:
        """The next position: a split or a merge is tried, then all else is drawn."""
        state, moves, n_learning = position
        if moves is not None:
            for _ in range(_MOVES_WHILE_LEARNING if n_learning > 0 else 1):
                state = moves.move(state, self.emission, rng, learning=n_learning > 0)
        state = sweep(state, self.sequences, self.emission, self.priors, rng, self.n_jobs)
        return Position(state, moves, n_learning - 1)

    def draw(self, position: Position) -> Draw:
        """What is kept of a position."""
        return kept(position.state, self.sequences, self.emission)


def most_probable_states_of(
    fit: ClusterFit, sequences: Sequences, emission: Emission, hyper: Hyper
) -> NDArray[np.int64]:
    """The most probable hidden states of a cluster's steps, by the expected parameters of its fit."""
    densities = emission.predictive_densities(fit.statistics, sequences.observations)
    rows = np.tile(hyper.alpha * fit.weights / fit.weights.sum(), (len(fit.weights) + 1, 1))
    rows[1:] += hyper.stickiness * np.eye(len(fit.weights))
    states = np.empty(sequences.n_steps, dtype=np.int64)
    for place in range(sequences.n_tasks):
        own, steps = sequences.between(place, place + 1), sequences.steps_of(place)
        expected = rows + fit.counts[place]
        expected /= expected.sum(axis=1, keepdims=True)
        likelihood, log_scale, row = densities
        states[steps] = most_probable_states(likelihood, log_scale, row[steps], own.bounds, expected)[0]
    return states


def starting_partition(start: Any, tasks: NDArray[Any], n_clusters: int) -> NDArray[np.int64] | None:
    """The cluster of each task at the start; None where it is to be found by agglomeration.

    Examples
    --------
    >>> starting_partition({"ann": 1, "bob": 2, "eve": 1}, np.array(["ann", "bob", "eve"]), 20).tolist()
    [0, 1, 0]
    """
    n_tasks = len(tasks)
    if isinstance(start, str):
        if start not in STARTS:
            known = ", ".join(f'"{way}"' for way in STARTS)
            raise ValueError(f"start={start!r}: give {known}, or a cluster for each task")
        if start == "apart":
            return np.arange(n_tasks) % n_clusters
        if start == "together" or n_tasks == 1:
            return np.zeros(n_tasks, dtype=np.int64)
        return None
    if isinstance(start, Mapping):
        without = [task for task in tasks.tolist() if task not in start]
        if without:
            raise ValueError(f"start has no cluster for task {without[0]!r}: every task needs one")
        start = [start[task] for task in tasks.tolist()]
    if not hasattr(start, "__len__"):
        raise ValueError(f"start={start!r}: give one of {', '.join(map(repr, STARTS))}, or a cluster for each task")
    labels = as_column(start, "start")
    if len(labels) != n_tasks:
        raise ValueError(f"start has {len(labels)} clusters for {n_tasks} tasks: one for each, as sorted, is needed")
    if is_missing(labels).any():
        raise ValueError(f"start has no cluster for task {tasks.tolist()[int(np.argmax(is_missing(labels)))]!r}")
    place = {label: code for code, label in enumerate(dict.fromkeys(labels.tolist()))}
    partition = canonical(np.array([place[label] for label in labels.tolist()], dtype=np.int64))
    if partition.max() >= n_clusters:
        raise ValueError(f"start has {partition.max() + 1} clusters, and n_clusters={n_clusters} has no room for them")
    return partition
