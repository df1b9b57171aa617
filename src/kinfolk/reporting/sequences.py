"""Infinite hidden Markov models of tasks' sequences, read for a report: who shares states, and how many there are."""

from __future__ import annotations

from typing import Any

import numpy as np

from kinfolk.reporting.findings import Findings, similarity_of
from kinfolk.tasks.schema import Column, Schema


def read(estimator: Any) -> Findings:
    """Clusters of tasks, the posteriors of their number and of every task's number of states, and what states show."""
    n_states = np.asarray(estimator.n_states_)
    traces = estimator.posterior_.traces
    draws: dict[str, Any] = {}
    partitions = np.asarray(traces.partitions)
    # Tasks that have some states in common and not others are in no clusters.
    features = getattr(estimator, "features_", None)
    if partitions.ndim == 3 and partitions.shape[1] > 1:
        draws = {"log joint": np.asarray(traces.log_joint)}
        draws |= {"number of clusters": partitions.max(axis=2) + 1} if features is None else {}
    numbers = np.arange(n_states.shape[1])
    predictor = estimator._predictor()
    layout = predictor.layout
    names = [f"column {place}" for place in range(layout.n_columns)] if layout.names is None else list(layout.names)
    symbols = [
        Column(names[channel.columns[0]], channel.symbols, None)
        for channel in layout.channels
        if channel.symbols is not None
    ]
    return Findings(
        estimator,
        "sequences",
        estimator.tasks_.tolist(),
        None,
        names,
        estimator.partition_ if features is None else None,
        similarity_of(estimator),
        schema=Schema(tuple(symbols)) if symbols else None,
        convergence=estimator.convergence_,
        draws=draws,
        weights=getattr(estimator, "weights_", None),
        details={
            "n_states": n_states,
            "mean_states": n_states @ numbers,
            "of_all": n_states.mean(axis=0),
            "n_clusters": estimator.n_clusters_ if features is None else None,
            "features": features,
            "states": predictor.states(),
            "similar_states": predictor.similar_states(),
        },
    )
