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
from kinfolk.sequences.inference.agglomeration import at_most, find_clusters
from kinfolk.sequences.inference.mean_field import ClusterFit
from kinfolk.sequences.inference.stochastic_variational import fit_stochastically
from kinfolk.sequences.inference.task_set_fits import SetFits, TaskSet
from kinfolk.sequences.inference.variational import MOST_TASKS_TO_AGGLOMERATE, given_clusters
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.filtering import most_probable_states
from kinfolk.sequences.model.ndp_ihmm import ClusterPrior, Priors
from kinfolk.sequences.model.sequences import Sequences
from kinfolk.tasks.table import as_column, is_missing

STARTS = ("agglomerate", "together", "apart")


class FittedStart(NamedTuple):
    """Clusters and hidden states to start from, and the fits of sets of tasks that moves between clusters build on.

    ``set_fits`` is None where tasks are too many for such moves, or clusters too few.
    """

    partition: NDArray[np.int64]
    states: NDArray[np.int64]
    set_fits: SetFits | None


def fitted_start(
    sequences: Sequences,
    emission: Emission,
    priors: Priors,
    n_clusters: int,
    n_states: int,
    partition: NDArray[np.int64] | None,
    seed: int,
) -> FittedStart:
    """Where a chain begins; without a partition to start from, tasks are agglomerated."""
    if sequences.n_tasks > MOST_TASKS_TO_AGGLOMERATE:
        if partition is not None:
            return FittedStart(partition, _states_in(sequences, emission, priors, n_states, partition, seed), None)
        mixture = fit_stochastically(sequences, emission, priors, n_clusters=n_clusters, n_states=n_states, seed=seed)
        fits = {}
        for k, fit in enumerate(mixture.fits):
            tasks = np.flatnonzero(mixture.partition == k)
            fits[tuple(tasks.tolist())] = fit._replace(counts=fit.counts[tasks])
        states = _states(sequences, fits, mixture.emission, mixture.hyper)
        return FittedStart(canonical(mixture.partition), states, None)
    moves = n_clusters > 1 and sequences.n_tasks > 1
    if partition is None or moves:
        found = find_clusters(sequences, emission, priors, n_states, seed=seed)
    # Moves between clusters are the same wherever a chain starts.
    set_fits = found.set_fits if moves else None
    if partition is None:
        found = at_most(found, n_clusters)
    else:
        found = given_clusters(sequences, emission, priors, n_states, partition, seed)
    fits = dict(zip(found.clusters, found.fits, strict=True))
    states = _states(sequences, fits, found.set_fits.emission, found.set_fits.hyper)
    return FittedStart(found.partition, states, set_fits)


def _states_in(
    sequences: Sequences, emission: Emission, priors: Priors, n_states: int, partition: NDArray[np.int64], seed: int
) -> NDArray[np.int64]:
    """Hidden states of many tasks in given clusters, each cluster fitted by itself."""
    states = np.empty(sequences.n_steps, dtype=np.int64)
    for k in np.unique(partition):
        tasks = np.flatnonzero(partition == k)
        own = sequences.of_tasks(tasks)
        if len(tasks) > MOST_TASKS_TO_AGGLOMERATE:
            mixture = fit_stochastically(own, emission, priors, n_clusters=1, n_states=n_states, seed=seed)
            fit, found_emission, hyper = mixture.fits[0], mixture.emission, mixture.hyper
        else:
            alone = given_clusters(own, emission, priors, n_states, np.zeros(len(tasks), dtype=np.int64), seed)
            fit, found_emission, hyper = alone.fits[0], alone.set_fits.emission, alone.set_fits.hyper
        found = most_probable_states_of(fit, own, found_emission, hyper)
        for place, task in enumerate(tasks.tolist()):
            states[sequences.steps_of(task)] = found[own.steps_of(place)]
    return states


def _states(
    sequences: Sequences, fits: Mapping[TaskSet, ClusterFit], emission: Emission, hyper: ClusterPrior
) -> NDArray[np.int64]:
    states = np.empty(sequences.n_steps, dtype=np.int64)
    for tasks, fit in fits.items():
        own = sequences.of_tasks(tasks)
        found = most_probable_states_of(fit, own, emission, hyper)
        for place, task in enumerate(tasks):
            states[sequences.steps_of(task)] = found[own.steps_of(place)]
    return states


def most_probable_states_of(
    fit: ClusterFit, sequences: Sequences, emission: Emission, hyper: ClusterPrior
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
