"""How sure each arc is: how often it is found again in rows drawn anew (Friedman, Goldszmidt and Wyner 1999).

In the papers: Niculescu-Mizil and Caruana (2012), section 5.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from kinfolk.networks.inference.structures import Plan, learn_structures
from kinfolk.networks.model.cases import lay_out


def arc_confidence(
    plan: Plan,
    codes: list[NDArray[np.int32]],
    cards: NDArray[np.int64],
    present: NDArray[np.bool_],
    n_resamples: int,
    seed: int,
    n_jobs: int | None = None,
    advance: Callable[[int], None] = lambda steps: None,
) -> NDArray[np.float64]:
    """Share of resamples in which each task's structure has each arc, of shape (n_tasks, n_variables, n_variables).

    Every resample draws each task's rows with replacement, as many as there are, and learns all structures anew.
    """
    seeds = np.random.default_rng(seed).integers(1 << 32, size=n_resamples)
    one_thread = plan._replace(n_jobs=1)

    def resample(own_seed: int) -> NDArray[np.bool_]:
        rng = np.random.default_rng(own_seed)
        drawn = [np.asfortranarray(table[rng.integers(len(table), size=len(table))]) for table in codes]
        found = learn_structures(one_thread, lay_out(drawn, cards, present), int(own_seed)).structures
        advance(1)
        return found

    found = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(resample)(int(own)) for own in seeds)
    total = np.zeros(found[0].shape)
    for structures in found:
        total += structures
    return total / n_resamples


def confidence_columns(shares: NDArray[np.float64], tasks: list[Any], variables: list[str]) -> dict[str, list[Any]]:
    """Arcs that were found at all, one a row: its task, parent and child, how often, and how often either way round."""
    columns: dict[str, list[Any]] = {name: [] for name in ("task", "parent", "child", "confidence", "either_way")}
    for t, i, j in np.argwhere(shares > 0).tolist():
        row = (tasks[t], variables[i], variables[j], shares[t, i, j], shares[t, i, j] + shares[t, j, i])
        for values, value in zip(columns.values(), row, strict=True):
            values.append(value)
    return columns
