"""Partially pooled linear models, read for a report: common weights, and how far tasks depart from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from kinfolk.convergence import diagnose
from kinfolk.reporting import naive_bayes
from kinfolk.reporting.findings import Findings


def read(estimator: Any) -> Findings:
    """Weights of every column, and clusters and whose rows answers rest on, as of every classifier."""
    found = replace(naive_bayes.read(estimator), family="partially pooled", details={"weights": _weights(estimator)})
    clusters = estimator._model.clusters
    if clusters is None:
        return found
    # Draws are kept chain after chain.
    by_chain = (int(estimator.n_chains), -1)
    n_clusters = np.array([len(np.unique(seats)) for seats in clusters.seats])
    draws = {"log evidence": clusters.log_evidence, "number of clusters": n_clusters}
    of_chains = {name: np.reshape(values, by_chain) for name, values in draws.items()}
    return replace(found, draws=of_chains, convergence=diagnose(of_chains))


def _weights(estimator: Any) -> list[dict[str, Any]]:
    """A row for each column: the common weight, its spread over tasks, and the lowest and the highest task's weight.

    Of several labels, a row for each label. Columns that tasks differ in most come first.
    """
    table = nw.from_native(estimator.weights(), eager_only=True).to_dict(as_series=False)
    n_tasks = len(estimator.tasks_)
    n_columns = len(dict.fromkeys(table["column"]))
    shape = (-1, n_tasks, n_columns)
    weights, common, spread = (np.reshape(table[name], shape) for name in ("weight", "common", "spread"))
    found = []
    for which, of_label in enumerate(weights):
        label = table["label"][which * n_tasks * n_columns] if "label" in table else None
        for column in range(n_columns):
            low, high = int(of_label[:, column].argmin()), int(of_label[:, column].argmax())
            found.append(
                {
                    "label": label,
                    "column": table["column"][column],
                    "common": common[which, 0, column],
                    "spread": spread[which, 0, column],
                    "lowest": of_label[low, column],
                    "lowest_task": estimator.tasks_[low],
                    "highest": of_label[high, column],
                    "highest_task": estimator.tasks_[high],
                }
            )
    return sorted(found, key=lambda entry: (-entry["spread"], -abs(entry["common"])))
