"""What inference hands back to an estimator, and the problem that it was given."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from kinfolk.convergence import Convergence
from kinfolk.evidence import Evidence
from kinfolk.maths.dirichlet import DirichletProduct, dirichlet_product
from kinfolk.naive_bayes.model.densities import densities
from kinfolk.naive_bayes.model.mixture import Mixture, log_feature_rates
from kinfolk.partition.tree import TaskTree
from kinfolk.tasks.statistics import Rows, Statistics


class CommonRates(NamedTuple):
    """A prior of rates that all tasks share, learnt from the rows of all tasks: pseudo-counts and votes of its cells.

    Its rates are those of the features' values whatever the label, so that each label has the same.
    """

    pseudo_counts: NDArray[np.float64]
    votes: NDArray[np.float64]


class Problem(NamedTuple):
    """Labelled counts per task, unlabelled rows, and the Dirichlet priors of labels and features.

    ``votes`` says, for a prior of the features that was learnt, how many observations, and pseudo-counts beside them,
    speak for each of its cells; ``common`` says it of the prior of rates that all tasks share.
    """

    statistics: Statistics
    unlabelled: Rows
    label_prior: NDArray[np.float64]
    feature_prior: NDArray[np.float64]
    votes: NDArray[np.float64] | None = None
    common: CommonRates | None = None

    def product(self) -> DirichletProduct:
        """The features' prior, with tables that reach the count of all rows together."""
        layout, largest = self.statistics.layout, 0
        if self.statistics.whole:
            largest = int(self.statistics.label_counts.sum()) + len(self.unlabelled.labels)
        return dirichlet_product(self.feature_prior, layout.group_start, largest, layout.number_groups)

    def log_label_evidence(self) -> float:
        """Log probability of the known labels: each task has its own rates (thesis eq. A.30, first factor)."""
        return float(log_label_marginals(self.statistics.label_counts, self.label_prior).sum())

    def log_rates(self, label_counts: NDArray[Any]) -> NDArray[np.float64]:
        """Log posterior mean of the label rates for rows of label counts."""
        posterior = label_counts + self.label_prior
        return np.asarray(np.log(posterior) - np.log(posterior.sum(axis=-1, keepdims=True)))

    def canonical_order(self) -> NDArray[np.int64]:
        """Tasks in an order that depends on what they hold, so that results depend on neither names nor order."""
        statistics, unlabelled = self.statistics, self.unlabelled
        rows_of: dict[int, list[bytes]] = {}
        for task, described in zip(unlabelled.task.tolist(), unlabelled.described(), strict=True):
            rows_of.setdefault(task, []).append(described.tobytes())
        keys = [
            (
                statistics.label_counts[task].tobytes(),
                statistics.feature_counts[task].tobytes(),
                sorted(rows_of.get(task, [])),
            )
            for task in range(len(statistics.tasks))
        ]
        return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


class Blocks(NamedTuple):
    """Blocks of tasks that may share parameters: their counts, how many tasks they hold, and who may be in them."""

    counts: NDArray[Any]
    sizes: NDArray[np.int64]
    mixture: Mixture


class Behind(NamedTuple):
    """What stands behind the rates of every block, group by group (blocks, groups).

    ``own`` is how many of the block's counts the task itself has brought. In terms of its own rows alone, the rates are
    (n_u + K m) / (N_u + K) with K the ``pull`` and m a prototype made of ``mass`` votes and pseudo-counts.
    """

    own: NDArray[np.float64]
    pull: NDArray[np.float64]
    mass: NDArray[np.float64]


class Fitted(NamedTuple):
    """All that inference leaves behind, in the order of ``Problem.statistics.tasks``; plain data, nothing hidden.

    Which of the optional fields are there depends on the method: ``tree`` for hierarchical clustering; ``partitions``
    (chains, draws, tasks) and ``log_joint`` (chains, draws) for sampling; ``co_clustering`` (tasks, tasks) for exact
    sums. ``label_probability`` belongs to the problem's unlabelled rows, where the method uses them. ``evidence`` is
    None where it costs a run of its own. ``independent`` says that tasks belong to blocks independently of each other,
    as they do in a variational posterior. ``concentrations`` (chains, draws) are there if they were sampled, and
    ``convergence`` judges the chains.
    """

    blocks: Blocks
    partition: NDArray[np.int64]
    evidence: Evidence | None = None
    tree: TaskTree | None = None
    partitions: NDArray[np.int64] | None = None
    log_joint: NDArray[np.float64] | None = None
    co_clustering: NDArray[np.float64] | None = None
    label_probability: NDArray[np.float64] | None = None
    independent: bool = False
    concentrations: NDArray[np.float64] | None = None
    convergence: Convergence | None = None
    behind: Behind | None = None

    def block_probabilities(self) -> NDArray[np.float64]:
        """Posterior probability that each block is one of the partition's; a block that tasks are in in part is one."""
        mixture, sizes = self.blocks.mixture, self.blocks.sizes
        if self.independent:
            return (sizes > 0).astype(np.float64)
        n_entries = int(mixture.start[len(self.partition)])
        weight = np.bincount(mixture.block[:n_entries], np.exp(mixture.log_weight[:n_entries]), len(sizes))
        return np.asarray(weight / np.maximum(sizes, 1))

    def similarity(self, tasks: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
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


def log_label_marginals(label_counts: NDArray[Any], label_prior: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log marginal of each row of label counts under one Dirichlet prior."""
    posterior = label_counts + label_prior
    terms = gammaln(posterior).sum(axis=1) - gammaln(posterior.sum(axis=1))
    return np.asarray(terms - gammaln(label_prior).sum() + gammaln(label_prior.sum()))


class Entry(NamedTuple):
    """Tasks ``owner`` (the number of tasks standing for a new one) may belong to blocks ``block``, side by side."""

    owner: NDArray[np.int64]
    block: NDArray[np.int64]
    log_weight: NDArray[np.float64]
    log_rates: NDArray[np.float64]


def make_blocks(problem: Problem, counts: NDArray[Any], sizes: NDArray[np.int64], entries: list[Entry]) -> Blocks:
    """Blocks with these counts and the mixture over them."""
    layout = problem.statistics.layout
    owner, block, log_weight, log_rates = (np.concatenate(part) for part in zip(*entries, strict=True))
    by_task = np.argsort(owner, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(problem.statistics.tasks) + 1))])
    log_theta = log_feature_rates(counts, problem.feature_prior, layout.group_start, layout.n_labels)
    numbers = densities(layout.sums_of_numbers(counts), layout.numbers) if layout.numbers else None
    mixture = Mixture(
        layout.offsets, log_theta, start, block[by_task], log_weight[by_task], log_rates[by_task], numbers
    )
    return Blocks(counts, sizes, mixture)
