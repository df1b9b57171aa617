"""Moves that change the number of clusters of a variational posterior: seeds for a start, merges, and births.

Clusters that overlap are not found by dividing what there is: the first halves of a hundred overlapping clusters are
hardly better than the whole. They are found together, by many seeds that compete for tasks and are merged where they
found the same; and, once the large ones are known, among the tasks that these explain worst.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from kinfolk.maths.arrays import Floats
from kinfolk.partition.variational.mean_field import Clusters, converge, expectations
from kinfolk.partition.variational.task_counts import Groups, TaskCounts, cells_in_groups, log_marginals

START_TASKS = 20_000  # tasks that a start looks at, four times as many where there seem to be many clusters
SEEDS = 64  # clusters to start with, likewise
MANY = 3  # one seed in so many left after the merges seems to be many clusters
SAMPLE = 1_000  # tasks that hierarchical clustering looks at
SEED_SWEEPS = 12
SEED_STRENGTH = 20.0  # rows at the common rates that a seed begins with
ROUGHLY = 1e-2  # nats per task; a sweep that gains less ends the sweeping, where clusters are about to be merged
MISFIT_TASKS = 1 << 20  # tasks among which those explained worst are looked for
MISFIT_SHARES = (20, 5, 80)  # one task in so many counts as explained badly, by turns
MIN_MISFITS = 500  # fewer are left to hierarchical clustering, where there is one


class Setting(NamedTuple):
    """What every move needs to know: the priors, how to cluster few tasks (if anyhow), and whom to tell of sweeps."""

    groups: Groups
    concentration: float
    cluster_few: Callable[[NDArray[Any]], Clusters] | None = None
    progress: Callable[[int], None] | None = None


class Misfits(NamedTuple):
    """Tasks among which badly explained ones are looked for, and the log marginal of each by itself."""

    tasks: TaskCounts
    alone: Floats


def spread(n: int, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Random numbers below n, all different and in order: one of each of ``size`` equal stretches. O(size)."""
    edges = np.arange(min(size, n) + 1) * n // min(size, n)
    return rng.integers(edges[:-1], edges[1:])


def some_of(data: TaskCounts, size: int, rng: np.random.Generator) -> TaskCounts:
    """A random part of the tasks, or all of them where they are no more than that."""
    return data if data.n_tasks <= size else data.subset(spread(data.n_tasks, size, rng))


def merged(clusters: Clusters, groups: Groups, concentration: float) -> Clusters:
    """Join clusters, best pair first, as long as the collapsed evidence of their expected counts says so.

    The gain of a join is log p(N_s + N_t) − log p(N_s) − log p(N_t) + log Γ(R_s + R_t)/(Γ(R_s)Γ(R_t)) − log a.
    """
    counts, sizes = clusters.counts.copy(), clusters.sizes.copy()
    in_group = cells_in_groups(groups)

    def log_joint(counts: Floats, sizes: Floats) -> Floats:
        """What blocks of these counts and sizes add to the log joint."""
        return np.asarray(log_marginals(counts, groups.prior, groups.group_prior, in_group, gammaln) + gammaln(sizes))

    alone = log_joint(counts, sizes)
    n = len(sizes)
    alive = np.ones(n, dtype=bool)
    gain = np.full((n, n), -np.inf)

    def refresh(i: int, others: NDArray[np.int64]) -> None:
        joined = log_joint(counts[i] + counts[others], sizes[i] + sizes[others])
        gain[i, others] = gain[others, i] = joined - alone[i] - alone[others] - np.log(concentration)

    for i in range(n - 1):
        refresh(i, np.arange(i + 1, n))
    while alive.sum() > 1:
        i, j = divmod(int(np.argmax(gain)), n)
        if gain[i, j] <= 0.0:
            break
        counts[i] += counts[j]
        sizes[i] += sizes[j]
        alone[i] = log_joint(counts[i : i + 1], sizes[i : i + 1])[0]
        alive[j] = False
        gain[j, :] = gain[:, j] = -np.inf
        refresh(i, np.flatnonzero(alive & (np.arange(n) != i)))
    return Clusters(counts[alive], sizes[alive], -np.inf)


def from_seeds(data: TaskCounts, n_seeds: int, setting: Setting, rng: np.random.Generator) -> Clusters:
    """Clusters that grow from single tasks: more than will be needed, merged in the end.

    A seed is one task's counts and some rows at the common rates. While seeds grow, clusters are weighed alike and
    their rates taken at the posterior mean: expected logs would ruin small clusters before they have found their tasks.
    """
    groups = setting.groups
    widths = np.diff(groups.group_start)

    def rates(counts: Floats) -> Floats:
        return np.asarray(counts / np.repeat(np.add.reduceat(counts, groups.group_start[:-1], axis=1), widths, axis=1))

    nothing = np.zeros((1, len(groups.prior)))
    common = SEED_STRENGTH * rates(data.sweep(nothing, np.zeros(1)).counts + groups.prior)
    tasks = spread(data.n_tasks, max(1, min(n_seeds, data.n_tasks // 4)), rng)
    counts, sizes = data.sample(tasks).astype(np.float64), np.ones(len(tasks))
    for _ in range(SEED_SWEEPS):
        counts, sizes, _ = data.sweep(np.log(rates(counts + common)), np.zeros(len(counts)))
        if setting.progress is not None:
            setting.progress(1)
    grown = _roughly(data, Clusters(counts, sizes, -np.inf), setting, max_sweeps=5)
    return merged(grown, groups, setting.concentration)


def _roughly(data: TaskCounts, clusters: Clusters, setting: Setting, max_sweeps: int) -> Clusters:
    groups, concentration = setting.groups, setting.concentration
    return converge(data, clusters, groups, concentration, max_sweeps, ROUGHLY, setting.progress)


def start(data: TaskCounts, setting: Setting, rng: np.random.Generator) -> Clusters:
    """Clusters to start from: of seeds, or of hierarchical clustering of a sample if that has the higher bound.

    Hierarchical clustering needs tasks with enough rows to be told apart one by one; seeds, refined by sweeps over many
    tasks, find what only the many show. The clusters' sizes are made those of all tasks.
    """
    n, few = data.n_tasks, setting.cluster_few
    if few is not None and n <= SAMPLE:
        return few(data.sample(np.arange(n)))
    n_seeds = SEEDS
    sample = some_of(data, START_TASKS, rng)
    candidates = [from_seeds(sample, n_seeds, setting, rng)]
    if MANY * len(candidates[0].sizes) > n_seeds:
        sample = some_of(data, 4 * START_TASKS, rng)
        candidates.append(from_seeds(sample, 4 * n_seeds, setting, rng))
    if few is not None:
        candidates.append(few(sample.sample(spread(sample.n_tasks, SAMPLE, rng))))
    candidates = [c.scaled(sample.n_tasks / c.sizes.sum()) for c in candidates]
    if len(candidates) > 1:
        candidates = [_roughly(sample, candidate, setting, max_sweeps=10) for candidate in candidates]
    return max(candidates, key=lambda clusters: clusters.bound).scaled(n / sample.n_tasks)


def misfits(data: TaskCounts, setting: Setting, rng: np.random.Generator) -> Misfits:
    """Prepare the search for badly explained tasks, which is done again and again."""
    tasks = some_of(data, MISFIT_TASKS, rng)
    return Misfits(tasks, tasks.own_log_marginals(setting.groups))


def born(clusters: Clusters, among: Misfits, turn: int, setting: Setting, rng: np.random.Generator) -> Clusters:
    """New clusters, out of tasks that the present ones explain worst or that are better off alone.

    How well a task is explained is measured against its own marginal, which knows how many rows it has.
    """
    tasks, alone = among
    few = setting.cluster_few
    fit = tasks.log_norms(*expectations(clusters, setting.groups, setting.concentration))
    surprise = alone - fit
    n_worst = max(1, tasks.n_tasks // MISFIT_SHARES[turn % len(MISFIT_SHARES)])
    worst = np.sort(np.argpartition(surprise, -n_worst)[-n_worst:])
    found = []
    if few is None or n_worst >= min(MIN_MISFITS, SAMPLE):
        found.append(from_seeds(some_of(tasks.subset(worst), START_TASKS, rng), SEEDS, setting, rng))
    if few is not None and n_worst <= SAMPLE:
        found.append(few(tasks.sample(worst)))
    odds_alone = np.log(setting.concentration) - np.log(tasks.n_tasks + setting.concentration)
    lonely = np.flatnonzero(surprise + odds_alone > 0.0)
    if len(lonely) and few is not None:
        found.append(few(tasks.sample(lonely[spread(len(lonely), SAMPLE, rng)])))
    return reduce(Clusters.joined, found)
