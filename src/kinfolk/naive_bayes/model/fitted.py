"""What inference leaves behind: blocks of tasks that may share parameters, and who may be in them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.convergence import Convergence
from kinfolk.evidence import Evidence
from kinfolk.maths.arrays import Floats
from kinfolk.naive_bayes.model.data import TrainingData
from kinfolk.naive_bayes.model.densities import densities
from kinfolk.naive_bayes.model.hyper import HyperParameters
from kinfolk.naive_bayes.model.mixture import Mixture, log_feature_rates
from kinfolk.partition.tree import TaskTree


class Blocks(NamedTuple):
    """Blocks of tasks that may share parameters: their counts, how many tasks they hold, and who may be in them."""

    counts: NDArray[Any]
    sizes: NDArray[np.int64]
    mixture: Mixture


class Memberships(NamedTuple):
    """Tasks ``task`` (the number of tasks standing for a new one) may belong to blocks ``block``, side by side."""

    task: NDArray[np.int64]
    block: NDArray[np.int64]
    log_weight: Floats
    log_label_rates: Floats


class RateSources(NamedTuple):
    """What the rates of every block are made of where they are noisy copies, group by group (blocks, groups).

    ``own`` is how many of the block's counts the task itself has brought. In terms of its own rows alone, the rates are
    (n_u + K m) / (N_u + K) with K the ``pull`` and m a prototype made of ``mass`` votes and pseudo-counts.
    """

    own: Floats
    pull: Floats
    mass: Floats


class PrototypeDraws(NamedTuple):
    """Posterior draws of the strengths (chains, draws, groups) and of the prototypes (chains, draws, cells)."""

    strengths: Floats
    prototypes: Floats


class Fitted(NamedTuple):
    """All that inference leaves behind, in the order of the data's tasks; plain data, nothing hidden.

    Which of the optional fields are there depends on the method: ``tree`` for hierarchical clustering; ``partitions``
    (chains, draws, tasks) and ``log_joint`` (chains, draws) for sampling; ``co_clustering`` (tasks, tasks) for exact
    sums. ``label_probability`` belongs to the data's unlabelled rows, where the method uses them. ``evidence`` is None
    where it costs a run of its own. ``independent`` says that tasks belong to blocks independently of each other, as
    they do in a variational posterior. ``concentrations`` (chains, draws) are there if they were sampled, and
    ``convergence`` judges the chains. ``sources`` come with noisy copies within clusters, ``prototypes`` with the
    prototype model, and ``by_feature`` holds every feature's own fit where each has a partition for itself.
    """

    blocks: Blocks
    partition: NDArray[np.int64]
    evidence: Evidence | None = None
    tree: TaskTree | None = None
    partitions: NDArray[np.int64] | None = None
    log_joint: Floats | None = None
    co_clustering: Floats | None = None
    label_probability: Floats | None = None
    independent: bool = False
    concentrations: Floats | None = None
    convergence: Convergence | None = None
    sources: RateSources | None = None
    prototypes: PrototypeDraws | None = None
    by_feature: tuple[Fitted, ...] | None = None

    def block_probabilities(self) -> Floats:
        """Posterior probability that each block is one of the partition's; a block that tasks are in in part is one."""
        mixture, sizes = self.blocks.mixture, self.blocks.sizes
        if self.independent:
            return (sizes > 0).astype(np.float64)
        n_entries = int(mixture.start[len(self.partition)])
        weight = np.bincount(mixture.block[:n_entries], np.exp(mixture.log_weight[:n_entries]), len(sizes))
        return np.asarray(weight / np.maximum(sizes, 1))

    def similarity(self, tasks: NDArray[np.int64] | None = None) -> Floats:
        """Posterior probability that two tasks share their parameters, for some tasks or all."""
        if self.tree is not None:
            return self.tree.similarity(tasks)
        if self.independent:
            return self.blocks.mixture.overlap(np.arange(len(self.partition)) if tasks is None else tasks)
        among = slice(None) if tasks is None else tasks
        if self.co_clustering is not None:
            return self.co_clustering[among][:, among]
        draws = self.partition[None] if self.partitions is None else self.partitions.reshape(-1, len(self.partition))
        seats = draws[:, among]
        together = np.zeros((seats.shape[1], seats.shape[1]))
        for seat in seats:
            together += seat[:, None] == seat[None, :]
        return together / len(seats)


def make_blocks(
    data: TrainingData,
    hyper: HyperParameters,
    counts: NDArray[Any],
    sizes: NDArray[np.int64],
    memberships: list[Memberships],
) -> Blocks:
    """Blocks with these counts and the mixture over them."""
    layout = data.statistics.layout
    task, block, log_weight, log_rates = (np.concatenate(part) for part in zip(*memberships, strict=True))
    by_task = np.argsort(task, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(task, minlength=len(data.statistics.tasks) + 1))])
    log_theta = log_feature_rates(counts, hyper.feature_prior, layout.group_start, layout.n_labels)
    numbers = densities(layout.sums_of_numbers(counts), layout.numbers) if layout.numbers else None
    mixture = Mixture(
        layout.offsets, log_theta, start, block[by_task], log_weight[by_task], log_rates[by_task], numbers
    )
    return Blocks(counts, sizes, mixture)
