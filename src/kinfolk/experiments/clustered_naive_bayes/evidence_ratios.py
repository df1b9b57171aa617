"""Log ratios of the evidence of two models, of rows and of labels given features (thesis equations 4.2, 4.7, 4.15)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from kinfolk.checkpoints import column_key
from kinfolk.evidence import Evidence
from kinfolk.experiments.cells import cells
from kinfolk.experiments.clustered_naive_bayes.learning_curves import CLUSTERED, COMPLETE_SHARING, NO_SHARING
from kinfolk.experiments.clustered_naive_bayes.thesis_models import Rows, thesis_models


def evidence_of(problem: Any, rows: Rows, n_runs: int, max_powers: int, seed: int) -> dict[str, tuple[float, float]]:
    """Log evidence of some rows by all three models, and of their labels by two of them, each with its error.

    Returns
    -------
    dict
        By a model's name, and by its name followed by ``" | X"``, value and standard error. That of the clustered
        model is a lower bound, by the partitions that a search meets (equations 4.11 to 4.15).
    """
    found: dict[str, tuple[float, float]] = {}
    data = column_key(problem.task[rows]), column_key(problem.target[rows])
    jobs = ((name, *data, rows, n_runs, max_powers, seed) for name in thesis_models())
    for part in cells(partial(_evidence, problem), jobs):
        found |= part
    return found


def _evidence(
    problem: Any, name: str, _task: Any, _target: Any, rows: Rows, n_runs: int, max_powers: int, seed: int
) -> dict[str, tuple[float, float]]:
    fitted = thesis_models()[name].fit(problem.data[rows], problem.target[rows], task=problem.task[rows])
    if name == CLUSTERED:
        # A search over partitions needs two tasks.
        several = len(fitted.tasks_) > 1
        whole: Evidence = fitted.evidence("search" if several else "fit")
        return {name: (whole.value, 0.0)}
    found = {name: (float(fitted.log_evidence_), 0.0)}
    if n_runs:
        labels = fitted.conditional_evidence(n_runs=n_runs, max_powers=max_powers, random_state=seed)
        found[f"{name} | X"] = labels.value, labels.error
    return found


def ratios(found: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Log ratios with their errors: no over complete sharing, the same of labels, clustered over no sharing.

    Examples
    --------
    >>> found = {"no sharing": (-3.0, 0.0), "complete sharing": (-5.0, 0.0), "clustered": (-2.5, 0.0)}
    >>> ratios(found)
    {'no over complete sharing': (2.0, 0.0), 'clustered over no sharing': (0.5, 0.0)}
    """
    pairs = {
        "no over complete sharing": (NO_SHARING, COMPLETE_SHARING),
        "labels, no over complete sharing": (f"{NO_SHARING} | X", f"{COMPLETE_SHARING} | X"),
        "clustered over no sharing": (CLUSTERED, NO_SHARING),
    }
    return {
        name: (found[one][0] - found[other][0], float(np.hypot(found[one][1], found[other][1])))
        for name, (one, other) in pairs.items()
        if one in found and other in found
    }
