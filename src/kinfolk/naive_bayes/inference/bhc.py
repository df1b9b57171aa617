"""Clustered naive Bayes by Bayesian hierarchical clustering (Roy and Kaelbling 2007, section 3 and eq. 4)."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
from numpy.typing import NDArray

from kinfolk.evidence import Evidence
from kinfolk.naive_bayes.inference.options import Options
from kinfolk.naive_bayes.model.values import (
    NEGLIGIBLE,
    Blocks,
    Fitted,
    HyperParameters,
    Memberships,
    TrainingData,
    feature_product,
    make_blocks,
    prune,
)
from kinfolk.partition.bhc import FEWEST_MERGES, cluster_hierarchically
from kinfolk.partition.crp import joining_weights
from kinfolk.partition.randomised_bhc import cluster_in_random_parts
from kinfolk.partition.tree import Nodes
from kinfolk.progress import progress_bar

_FAVOUR_OF_NUMBER = -100.0


def infer(data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> tuple[HyperParameters, Fitted]:
    """Build the tree on the labelled rows; every node on a task's path to the root is a block it may belong to.

    With ``inference="randomised-bhc"`` the tree is built from random parts, for very many tasks.
    """
    statistics, order, product = data.statistics, data.canonical_order, feature_product(data, hyper)
    n_tasks, arranged = len(order), statistics.feature_counts[order]
    # Of fewer tasks nothing is heard before all are joined.
    tells = n_tasks > FEWEST_MERGES
    with progress_bar("Joining tasks", n_tasks - 1, options.verbose) if tells else nullcontext() as advance:
        if options.inference == "randomised-bhc":
            tree = cluster_in_random_parts(
                arranged, product, hyper.concentration, seed, n_jobs=options.n_jobs, progress=advance
            )
        else:
            tree = cluster_hierarchically(arranged, product, hyper.concentration, advance)
    tree = tree.relabelled(order)
    nodes, partition = tree.nodes(), tree.partition()
    joins, alone = joining_weights(nodes.sizes, n_tasks, hyper.concentration)
    task, node = _paths(nodes, _least_weight(data, hyper))
    memberships = [
        Memberships(task, node, nodes.log_weights[node], hyper.log_label_rates(statistics.label_counts)[task]),
        # The last block is empty: it waits for a new task, which may join any node.
        Memberships(
            np.full(2 * n_tasks, n_tasks),
            np.arange(2 * n_tasks),
            np.append(nodes.log_weights + np.log(joins), np.log(alone)),
            np.tile(hyper.log_label_rates(np.zeros_like(hyper.label_prior)), (2 * n_tasks, 1)),
        ),
    ]
    counts = np.zeros((2 * n_tasks, statistics.layout.n_cells), dtype=statistics.feature_counts.dtype)
    counts[:n_tasks] = statistics.feature_counts
    for k, (left, right) in enumerate(tree.children):
        counts[n_tasks + k] = counts[left] + counts[right]
    sizes = np.append(nodes.sizes, 0)
    blocks = make_blocks(data, hyper, counts, sizes, memberships)
    mixture, used = prune(blocks.mixture)
    value = tree.log_tree_sum + hyper.log_label_evidence(statistics.label_counts)
    fitted = Fitted(
        blocks=Blocks(counts[used], sizes[used], mixture),
        partition=partition,
        # Up to two tasks every partition is tree-consistent.
        evidence=Evidence(value, "exact" if n_tasks <= 2 else "lower bound"),
        tree=tree,
    )
    return hyper, fitted


def _paths(nodes: Nodes, least: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tasks and the nodes above them that have at least this log weight, level by level."""
    level = np.arange((len(nodes.sizes) + 1) // 2)
    task, tasks, above = level, [], []
    while len(level):
        kept = nodes.log_weights[level] >= least
        tasks.append(task[kept])
        above.append(level[kept])
        inner = nodes.parents[level] >= 0
        task, level = task[inner], nodes.parents[level[inner]]
    return np.concatenate(tasks), np.concatenate(above)


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
