"""Infinite hidden Markov models of tasks' sequences, read for a report: who shares states, and how many there are."""

from __future__ import annotations

from typing import Any

import numpy as np

from kinfolk.reporting.findings import Findings, similarity_of


def read(estimator: Any) -> Findings:
    """Clusters of tasks, the posterior of every task's number of states, and what the chains drew."""
    n_states = np.asarray(estimator.n_states_)
    traces = estimator.posterior_.traces
    draws: dict[str, Any] = {}
    partitions = np.asarray(traces.partitions)
    if partitions.ndim == 3 and partitions.shape[1] > 1:
        draws = {"log joint": np.asarray(traces.log_joint), "number of clusters": partitions.max(axis=2) + 1}
    numbers = np.arange(n_states.shape[1])
    return Findings(
        estimator,
        "sequences",
        estimator.tasks_.tolist(),
        None,
        [f"column {place}" for place in range(estimator.n_features_in_)],
        estimator.partition_,
        similarity_of(estimator),
        convergence=estimator.convergence_,
        draws=draws,
        details={
            "n_states": n_states,
            "mean_states": n_states @ numbers,
            "of_all": n_states.mean(axis=0),
        },
    )
