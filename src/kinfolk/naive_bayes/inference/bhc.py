"""Clustered naive Bayes by Bayesian hierarchical clustering (Roy and Kaelbling 2007, section 3 and eq. 4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kinfolk.evidence import Evidence
from kinfolk.naive_bayes.inference.options import Options
from kinfolk.naive_bayes.model.data import TrainingData
from kinfolk.naive_bayes.model.fitted import Blocks, Fitted, Memberships, make_blocks
from kinfolk.naive_bayes.model.hyper import HyperParameters, feature_product
from kinfolk.naive_bayes.model.mixture import NEGLIGIBLE, prune
from kinfolk.partition.bhc import cluster_hierarchically
from kinfolk.partition.crp import joining_weights
from kinfolk.partition.randomised_bhc import cluster_in_random_parts
from kinfolk.partition.tree import TaskTree
from kinfolk.progress import progress_bar

_FAVOUR_OF_NUMBER = -100.0


def infer(data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> tuple[HyperParameters, Fitted]:
    """Build the tree on the labelled rows; every node on a task's path to the root is a block it may belong to.

    With ``inference="randomised-bhc"`` the tree is built from random parts, for very many tasks.
    """
    statistics = data.statistics
    order = data.canonical_order()
    counts, product = statistics.feature_counts[order], feature_product(data, hyper)
    n_tasks = len(order)
    with progress_bar("Joining tasks", n_tasks - 1, options.verbose) as advance:
        if options.inference == "randomised-bhc":
            tree = cluster_in_random_parts(
                counts, product, hyper.concentration, seed, n_jobs=options.n_jobs, progress=advance
            )
        else:
            tree = cluster_hierarchically(counts, product, hyper.concentration, advance)
    tree = _relabel(tree, order)
    counts = np.zeros((2 * n_tasks, statistics.layout.n_cells), dtype=statistics.feature_counts.dtype)
    counts[:n_tasks] = statistics.feature_counts
    for k, (left, right) in enumerate(tree.children):
        counts[n_tasks + k] = counts[left] + counts[right]
    # The last block is empty: it waits for a new task.
    sizes = np.concatenate([tree.sizes, [0]])
    blocks = make_blocks(data, hyper, counts, sizes, _memberships(data, hyper, tree))
    mixture, used = prune(blocks.mixture)
    value = tree.log_tree_sum + hyper.log_label_evidence(statistics.label_counts)
    fitted = Fitted(
        blocks=Blocks(counts[used], sizes[used], mixture),
        partition=tree.partition(),
        # Up to two tasks every partition is tree-consistent.
        evidence=Evidence(value, "exact" if n_tasks <= 2 else "lower bound"),
        tree=tree,
    )
    return hyper, fitted


def _relabel(tree: TaskTree, order: NDArray[np.int64]) -> TaskTree:
    """Give the leaves of a tree built in another order their own places back."""
    n = len(order)
    names = np.concatenate([order, np.arange(n, 2 * n - 1)])
    return tree._replace(children=names[tree.children])


def _memberships(data: TrainingData, hyper: HyperParameters, tree: TaskTree) -> list[Memberships]:
    """For every task the nodes above it with their weights, and for a new task all nodes and the empty block."""
    n = tree.n_tasks
    parents, log_weights = tree.parents, tree.log_weights
    log_rates = hyper.log_label_rates(data.statistics.label_counts)
    no_rates = hyper.log_label_rates(np.zeros_like(hyper.label_prior))
    memberships = []
    task, node = np.arange(n), np.arange(n)
    least = _least_weight(data, hyper)
    while len(node):
        kept = log_weights[node] >= least
        memberships.append(Memberships(task[kept], node[kept], log_weights[node[kept]], log_rates[task[kept]]))
        above = parents[node] >= 0
        task, node = task[above], parents[node[above]]
    joins, alone = joining_weights(tree.sizes, n, hyper.concentration)
    log_join = np.concatenate([log_weights + np.log(joins), [np.log(alone)]])
    memberships.append(Memberships(np.full(2 * n, n), np.arange(2 * n), log_join, np.tile(no_rates, (2 * n, 1))))
    return memberships


def _least_weight(data: TrainingData, hyper: HyperParameters) -> float:
    """Log weight below which a node cannot matter to any prediction; the rest is up to ``prune``.

    A row's probability under any node is at least (β/(N + Σβ))^F, and the weightiest of at most 2U nodes has 1/2U. Of
    numbers nothing so certain is known: each may favour a node by a factor of e^100.
    """
    statistics = data.statistics
    n_rows = float(statistics.label_counts.sum())
    least = _FAVOUR_OF_NUMBER * len(statistics.layout.numbers) - np.log(2 * len(statistics.tasks)) + NEGLIGIBLE
    n_features = len(statistics.layout.n_values)
    if n_features:
        largest_prior = float(np.add.reduceat(hyper.feature_prior, statistics.layout.group_start[:-1]).max())
        least += n_features * (np.log(hyper.feature_prior.min()) - np.log(n_rows + largest_prior))
    return float(least)
