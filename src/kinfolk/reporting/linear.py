"""Linear models of many tasks with latent sources (LICA), read for a report."""

from __future__ import annotations

from typing import Any

import numpy as np

from kinfolk.reporting.findings import Findings

_TOP = 8


def read(estimator: Any) -> Findings:
    """Sources of every task, and the features that weigh most in each source."""
    model = estimator._model
    table = estimator.top_features(_TOP)
    columns = [
        column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
        for column in (table[name] for name in ("source", "feature", "weight"))
    ]
    top: dict[int, list[dict[str, Any]]] = {}
    for source, feature, weight in zip(*columns, strict=True):
        top.setdefault(int(source), []).append({"feature": feature, "weight": float(weight)})
    sources = np.asarray(estimator.sources_)
    labels = getattr(estimator, "classes_", None)
    return Findings(
        estimator,
        "linear",
        estimator.tasks_.tolist(),
        None if labels is None else labels.tolist(),
        [str(name) for name in (model.features or range(estimator.n_features_in_))],
        details={
            "n_sources": sources.shape[1],
            "sources": sources,
            "top_features": top,
            # The sources that tasks differ in most are those worth a look.
            "spread": sources.std(axis=0),
        },
    )
