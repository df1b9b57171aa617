"""The values that a fit goes through: training data, hyper-parameters, and what inference leaves behind.

Inference leaves blocks of tasks that may share parameters, and who may be in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.convergence import Convergence
from kinfolk.evidence import Evidence
from kinfolk.maths.arrays import Floats
from kinfolk.maths.dirichlet import DirichletProduct, dirichlet_product
from kinfolk.maths.rising import risings
from kinfolk.naive_bayes.model.densities import densities
from kinfolk.naive_bayes.model.mixture import Mixture
from kinfolk.partition.concentration import GammaPrior
from kinfolk.partition.tree import TaskTree
from kinfolk.tasks.answering import Known
from kinfolk.tasks.schema import Schema
from kinfolk.tasks.statistics import Rows, Statistics, no_rows
from kinfolk.tasks.table import Backend

# A block is dropped from a task's mixture if it can never make up more than e^−40 of any prediction.
NEGLIGIBLE = -40.0


@dataclass(frozen=True)
class TrainingData:
    """Counts of the labelled rows of every task, and the coded rows that have no label."""

    statistics: Statistics
    unlabelled: Rows

    @property
    def n_unlabelled(self) -> int:
        """Number of rows without a label."""
        return len(self.unlabelled.labels)

    @property
    def values(self) -> tuple[Any, ...]:
        """All that inference learns from, as plain values."""
        layout = self.statistics.layout
        return *self.statistics[2:], layout.n_values, layout.numbers, self.unlabelled

    def labelled_only(self) -> TrainingData:
        """The same tasks without their unlabelled rows."""
        return TrainingData(self.statistics, no_rows(self.statistics.layout))

    def pooled(self) -> TrainingData:
        """All tasks as one."""
        rows = self.unlabelled
        return TrainingData(self.statistics.pooled(), rows._replace(task=np.zeros_like(rows.task)))

    @cached_property
    def canonical_order(self) -> NDArray[np.int64]:
        """Tasks in an order that depends on what they hold, so that results depend on neither names nor order."""
        statistics, unlabelled = self.statistics, self.unlabelled
        rows_of: dict[int, list[bytes]] = {}
        if len(unlabelled.task):
            for task, described in zip(unlabelled.task.tolist(), unlabelled.described(), strict=True):
                rows_of.setdefault(task, []).append(described.tobytes())
        keys = [
            (labels.tobytes(), features.tobytes(), sorted(rows_of.get(task, [])))
            for task, (labels, features) in enumerate(
                zip(statistics.label_counts, statistics.feature_counts, strict=True)
            )
        ]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)

    def arranged(self, order: NDArray[np.int64]) -> tuple[TrainingData, NDArray[np.int64]]:
        """The same data with tasks in the given order and unlabelled rows in one of their own, which is returned."""
        statistics, rows = self.statistics, self.unlabelled
        task = np.argsort(order)[rows.task] if len(rows.task) else rows.task
        row_order = np.lexsort([*rows.described().T[::-1], task])
        arranged_rows = rows._replace(task=task).take(row_order)
        arranged_rows = arranged_rows._replace(codes=np.ascontiguousarray(arranged_rows.codes))
        arranged = statistics._replace(
            tasks=statistics.tasks[order],
            feature_counts=statistics.feature_counts[order],
            label_counts=statistics.label_counts[order],
        )
        return TrainingData(arranged, arranged_rows), row_order


class CommonRates(NamedTuple):
    """A prior of rates that all tasks share, learnt from the rows of all tasks: pseudo-counts and votes of its cells.

    Its rates are those of the features' values whatever the label, so that each label has the same.
    """

    pseudo_counts: Floats
    votes: Floats


class HyperParameters(NamedTuple):
    """Dirichlet pseudo-counts of labels (labels,) and features (cells), and what else is not inferred task by task.

    ``temper`` has a power per feature, in the order of the table. ``concentration`` is that of the Chinese restaurant
    process over tasks (zero where all share, infinity where none do) and ``concentration_prior`` its prior where it is
    drawn. ``votes`` says, for a prior of the features that was learnt, how many observations, and pseudo-counts beside
    them, speak for each of its cells; ``common`` says it of a prior of rates that all tasks share. ``learns`` names
    those that the data settle, whose values before are where learning starts.
    """

    label_prior: Floats
    feature_prior: Floats
    temper: Floats
    concentration: float = 1.0
    concentration_prior: GammaPrior | None = None
    votes: Floats | None = None
    common: CommonRates | None = None
    learns: frozenset[str] = frozenset()

    def log_label_rates(self, label_counts: NDArray[Any]) -> Floats:
        """Log posterior mean of the label rates for rows of label counts."""
        posterior = label_counts + self.label_prior
        return np.asarray(np.log(posterior) - np.log(posterior.sum(axis=-1, keepdims=True)))

    def log_label_evidence(self, label_counts: NDArray[Any]) -> float:
        """Log probability of known labels: each task has its own rates (thesis eq. A.30, first factor)."""
        return float(log_label_marginals(label_counts, self.label_prior).sum())


def log_label_marginals(label_counts: NDArray[Any], label_prior: Floats) -> Floats:
    """Log marginal of each row of label counts under one Dirichlet prior (thesis eq. A.30, first factor)."""
    cells = risings(label_prior, label_counts).sum(axis=1)
    return np.asarray(cells - risings(label_prior.sum(), label_counts.sum(axis=1)))


def feature_product(data: TrainingData, hyper: HyperParameters) -> DirichletProduct:
    """The features' prior, with tables that reach the count of all rows together."""
    statistics, layout, largest = data.statistics, data.statistics.layout, 0
    # Beside numbers all cells are floats.
    if (statistics.label_counts if layout.numbers else statistics.feature_counts).dtype.kind in "iu":
        largest = int(statistics.label_counts.sum()) + len(data.unlabelled.labels)
    numbers = layout.number_groups if layout.numbers else None
    return dirichlet_product(hyper.feature_prior, layout.group_start, largest, numbers)


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
    ``interrupted`` tells that sampling was ended early, with the draws that there were.
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
    interrupted: bool = False

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


class NaiveBayesFit(NamedTuple):
    """Everything that a fit leaves behind; its archive is its fields.

    What is known of tables (``known``, ``schema``, ``classes``), the data, and what was inferred from them.

    ``rows`` are the labelled rows, none where counts alone were given or the model was loaded; ``averaged`` says how
    blocks are put together in predictions; ``label_distributions`` (rows, classes) belong to the rows of the last call.
    """

    known: Known
    schema: Schema
    classes: NDArray[Any]
    backend: Backend
    data: TrainingData
    rows: Rows
    hyper: HyperParameters
    posterior: Fitted
    averaged: bool
    seed: int
    label_distributions: NDArray[np.float64]


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


def log_feature_rates(
    counts: NDArray[Any],
    prior: NDArray[np.float64],
    group_start: NDArray[np.int64],
    n_labels: int,
) -> NDArray[np.float64]:
    """Log posterior mean of θ for rows of counts, in the shape that a mixture holds them; numbers are left alone."""
    posterior = counts[:, : group_start[-1]] + prior
    totals = np.add.reduceat(posterior, group_start[:-1], axis=1)
    log_theta = np.log(posterior) - np.repeat(np.log(totals), np.diff(group_start), axis=1)
    by_value = log_theta.reshape(len(counts), n_labels, -1).transpose(0, 2, 1)
    return np.concatenate([by_value, np.zeros((len(counts), 1, n_labels))], axis=1)


def prune(mixture: Mixture) -> tuple[Mixture, NDArray[np.int64]]:
    """Drop the entries that cannot matter to any prediction, and the blocks that nobody is left in.

    Returns the smaller mixture and which of the blocks it still has.

    An entry k cannot matter beside b if w_k · max_x p_k(x | y) ≤ e^−40 · w_b · min_x p_b(x | y); of codes the maximum
    is at most one, of numbers both are taken within reach. Valid where a task's entries have equal label rates.
    """
    lowest = np.minimum.reduceat(mixture.log_theta, mixture.offsets[:-1], axis=1).sum(axis=1).min(axis=1)
    highest = np.zeros_like(lowest)
    if mixture.densities is not None:
        of_numbers, highest = mixture.densities.bounds()
        lowest = lowest + of_numbers
    floor = np.maximum.reduceat(mixture.log_weight + lowest[mixture.block], mixture.start[:-1])
    n_entries = np.diff(mixture.start)
    keep = mixture.log_weight + highest[mixture.block] >= np.repeat(floor, n_entries) + NEGLIGIBLE
    used, block = np.unique(mixture.block[keep], return_inverse=True)
    kept = np.add.reduceat(keep.astype(np.int64), mixture.start[:-1])
    smaller = mixture._replace(
        log_theta=mixture.log_theta[used],
        start=np.concatenate([[0], np.cumsum(kept)]),
        block=block,
        log_weight=mixture.log_weight[keep],
        log_rates=mixture.log_rates[keep],
        densities=None if mixture.densities is None else mixture.densities.take(used),
    )
    return smaller, used
