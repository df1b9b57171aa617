"""Variational inference for a Dirichlet process mixture over tasks, from counts alone (after Blei and Jordan 2006).

The posterior and its bound are in ``mean_field``. The number of clusters is not fixed: it starts from seeds among a
sample of tasks, clusters are born from tasks that none explains well, and merged where that raises the bound.

In the papers: Roy (2006), chapter 5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.checkpoints import NOWHERE, Nowhere, Place
from kinfolk.interrupts import asked
from kinfolk.partition.variational.births_and_merges import START_TASKS, Setting, born, merged, misfits, some_of, start
from kinfolk.partition.variational.mean_field import MAX_SWEEPS, TOLERANCE, Clusters, converge
from kinfolk.partition.variational.memoised import converge_in_batches
from kinfolk.partition.variational.task_counts import Groups, TaskCounts

MAX_ROUNDS = 9  # of births and merges
MAX_FAILURES = 2  # rounds in a row that raise the bound by nothing worth having
GROWTH = 8  # times as many tasks on every level
NEARLY = 1e-3  # nats per task; a sweep that gains less ends the sweeping of a candidate
CANDIDATE_SWEEPS = 6  # at most that a candidate gets to show that it is better


def fit_clusters(
    data: TaskCounts,
    groups: Groups,
    concentration: float,
    rng: np.random.Generator,
    cluster_few: Callable[[NDArray[Any]], Clusters] | None = None,
    batch_size: int | None = None,
    progress: Callable[[int], None] | None = None,
    place: Place | Nowhere = NOWHERE,
) -> Clusters:
    """Find clusters: a start from a sample, then births, merges and sweeps over ever more tasks, in the end over all.

    Among all tasks, births and merges are kept only if they raise the bound, so that it never falls. Every sweep costs
    O(tasks · cells · clusters); memory beside the data is O(clusters · cells) and a block of tasks.

    Parameters
    ----------
    data : TaskCounts
        Counts of the tasks, on the processor or a device.
    groups : Groups
        Prior of the rates.
    concentration : float
        Of the Dirichlet process.
    rng : numpy.random.Generator
        Chooses samples and seeds.
    cluster_few : callable, optional
        Clusters the counts of at most a thousand tasks. Without it there are seeds alone.
    batch_size : int, optional
        Tasks after which the clusters move; by default all, that is whole sweeps.
    progress : callable, optional
        Is told of every sweep.
    place : Place or Nowhere
        Where rounds that are done are kept.

    Returns
    -------
    Clusters
        Those of the sweeps so far, where Ctrl-C was pressed: they are valid, and better ones may exist.
    """
    setting = Setting(groups, concentration, cluster_few, progress)
    sizes = _sizes(data.n_tasks)
    kept: tuple[Level, Any] | None = place.load()
    if kept is not None:
        at, rng.bit_generator.state = kept
    else:
        at = Level(0, start(data, setting, rng), data.n_tasks)
        if asked():
            return _settled(data, at.clusters, setting, batch_size)
    for level in range(at.level, len(sizes)):
        before = rng.bit_generator.state

        def keep(growth: Growth | None, now: Level = at, generator: Any = before) -> None:
            if asked() or place.due():
                place.save((now._replace(growth=growth), generator))

        is_last = level + 1 == len(sizes)
        some = data if is_last else some_of(data, sizes[level], rng)
        clusters = at.clusters.scaled(sizes[level] / at.n_seen)
        grown = _grown(some, clusters, setting, rng, batch_size if is_last else None, at.growth, keep)
        if asked():
            return _settled(data, grown.scaled(data.n_tasks / sizes[level]), setting, batch_size)
        at = Level(level + 1, grown, sizes[level])
    if at.level > len(sizes):
        return at.clusters
    settled = _settled(data, at.clusters, setting, batch_size)
    if asked():
        place.save((at, rng.bit_generator.state))
    else:
        place.end((Level(len(sizes) + 1, settled, data.n_tasks), rng.bit_generator.state))
    return settled


class Growth(NamedTuple):
    """Where births and merges stand: rounds, the best clusters, rounds that failed in a row, and the generator."""

    turn: int
    best: Clusters
    failures: int
    generator: Any


class Level(NamedTuple):
    """Where a fit stands: levels that are done, the clusters that they left, of how many tasks, and the next one."""

    level: int
    clusters: Clusters
    n_seen: int
    growth: Growth | None = None


def _sizes(n_tasks: int) -> list[int]:
    """How many tasks each level looks at: what a sample can tell is learnt from a sample, whose sweeps cost a fraction.

    Examples
    --------
    >>> _sizes(3_000_000)
    [160000, 1280000, 3000000]
    """
    size, sizes = GROWTH * START_TASKS, []
    while 2 * size < n_tasks:
        sizes.append(size)
        size *= GROWTH
    return [*sizes, n_tasks]


def _settled(
    data: TaskCounts,
    clusters: Clusters,
    setting: Setting,
    batch_size: int | None,
    max_sweeps: int = MAX_SWEEPS,
    tolerance: float = TOLERANCE,
) -> Clusters:
    """Sweep until the bound stands still, after whole passes or after batches."""
    groups, concentration, progress = setting.groups, setting.concentration, setting.progress
    if batch_size is None or batch_size >= data.n_tasks:
        return converge(data, clusters, groups, concentration, max_sweeps, tolerance, progress)
    return converge_in_batches(data, clusters, groups, concentration, batch_size, max_sweeps, tolerance, progress)


def _grown(
    data: TaskCounts,
    clusters: Clusters,
    setting: Setting,
    rng: np.random.Generator,
    batch_size: int | None,
    growth: Growth | None,
    keep: Callable[[Growth | None], None],
) -> Clusters:
    """Merges and births as long as they raise the bound, from the start or from where they stand."""

    def tried(candidate: Clusters) -> Clusters:
        return _settled(data, candidate, setting, batch_size, CANDIDATE_SWEEPS, NEARLY)

    if growth is None:
        best = tried(clusters)
        if asked():
            keep(None)
            return best
        growth = Growth(0, best, 0, None)
    among = misfits(data, setting, rng)
    if growth.generator is not None:
        rng.bit_generator.state = growth.generator
    best, failures = growth.best, growth.failures
    for turn in range(growth.turn, MAX_ROUNDS):
        growth = Growth(turn, best, failures, rng.bit_generator.state)
        keep(growth)
        candidate = merged(best, setting.groups, setting.concentration)
        if len(candidate.sizes) < len(best.sizes):
            candidate = tried(candidate)
            best = max(best, candidate, key=lambda c: c.bound)
        gained = _with(best, born(best, among, turn, setting, rng), tried, setting)
        worth_having = gained is not None and gained.bound > best.bound + TOLERANCE * data.n_tasks
        best = gained if gained is not None and worth_having else best
        failures = 0 if worth_having else failures + 1
        if asked():
            keep(growth)
            break
        if failures == MAX_FAILURES:
            break
    return best


def _with(
    clusters: Clusters, newborn: Clusters, tried: Callable[[Clusters], Clusters], setting: Setting
) -> Clusters | None:
    """Clusters and those born beside them, after they have found their tasks; None where nothing new was born."""
    groups, concentration = setting.groups, setting.concentration
    candidate = merged(clusters.joined(newborn), groups, concentration)
    if len(candidate.sizes) <= len(clusters.sizes):
        return None
    candidate = tried(candidate)
    fewer = merged(candidate, groups, concentration)
    return max(candidate, tried(fewer), key=lambda c: c.bound) if len(fewer.sizes) < len(candidate.sizes) else candidate
