"""A lower bound of clustered naive Bayes's evidence by searching partitions (thesis section 4.3, eq. 4.11–4.15)."""

from __future__ import annotations

import numpy as np

from kinfolk.evidence import Evidence
from kinfolk.naive_bayes.model.data import TrainingData
from kinfolk.naive_bayes.model.hyper import HyperParameters, feature_product
from kinfolk.partition.search import search_partitions
from kinfolk.partition.tree import TaskTree


def searched_evidence(
    data: TrainingData, hyper: HyperParameters, seed: int, tree: TaskTree | None = None, n_sweeps: int = 100
) -> Evidence:
    """Bound log p(X, Y) of the labelled rows from below, and no lower than the sum over the tree's partitions."""
    statistics = data.statistics.widened()
    # Neither names nor the order of tasks may tell where the search goes.
    order = data.canonical_order()
    if tree is not None:
        n_tasks = len(order)
        place = np.concatenate([np.argsort(order), np.arange(n_tasks, 2 * n_tasks - 1)])
        tree = tree._replace(children=place[tree.children])
    found = search_partitions(
        statistics.feature_counts[order],
        feature_product(data, hyper),
        hyper.concentration,
        tree=tree,
        n_sweeps=n_sweeps,
        seed=seed,
    ).evidence
    return found._replace(value=found.value + hyper.log_label_evidence(data.statistics.label_counts))
