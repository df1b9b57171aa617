"""The models of Roy (2006) as printed, and what chapter 4 measures them by: rows left out, right and wrong answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kinfolk.checkpoints import column_key
from kinfolk.experiments.cells import cells
from kinfolk.experiments.clustered_naive_bayes.learning_curves import CLUSTERED, COMPLETE_SHARING, NO_SHARING
from kinfolk.naive_bayes.estimators.base import SharingNB
from kinfolk.naive_bayes.estimators.clustered import ClusteredNB
from kinfolk.naive_bayes.estimators.complete_sharing import CompleteSharingNB
from kinfolk.naive_bayes.estimators.no_sharing import NoSharingNB

Rows = NDArray[np.intp]
Split = tuple[Rows, Rows]

MAJORITY = "most common label"
PRINTED: dict[str, Any] = {"label_prior": 1.0, "feature_prior": 1.0, "temper": 1.0}


def thesis_models() -> dict[str, SharingNB]:
    """The three models with pseudo-counts of 1, nothing learnt and nothing tempered; clusters by BHC."""
    return {
        NO_SHARING: NoSharingNB(**PRINTED),
        COMPLETE_SHARING: CompleteSharingNB(**PRINTED),
        CLUSTERED: ClusteredNB(**PRINTED),
    }


def probabilities(
    problem: Any, models: Mapping[str, SharingNB], splits: Iterable[Split], advance: Callable[[int], None]
) -> pl.DataFrame:
    """Probability of the positive label of rows left out, by every model.

    Parameters
    ----------
    problem : Bunch
        ``data``, ``target`` (boolean) and ``task``.
    models : mapping
        They are copied before they are fitted.
    splits : iterable of (train, test)
    advance : callable
        Called with 1 after each split.

    Returns
    -------
    polars.DataFrame
        A row for each model, split and tested row: ``model``, ``split``, ``task``, ``truth``, ``p``, and ``common``,
        whether the task's most common training label is the right one.
    """
    parts, rows, of_splits = [], (column_key(problem.task), column_key(problem.target)), list(splits)
    jobs = ((name, *rows, train, test) for train, test in of_splits for name in models)
    every = cells(partial(_answers, problem, models), jobs)
    for number, (train, test) in enumerate(of_splits):
        task, truth = problem.task[test], problem.target[test]
        own = np.isin(problem.task[train], np.unique(task))
        frame = pl.DataFrame({"task": problem.task[train][own], "truth": problem.target[train][own]})
        share = dict(frame.group_by("task").agg(pl.col("truth").mean()).iter_rows())
        common = np.array([share.get(one, 0.5) > 0.5 for one in task.tolist()]) == truth
        for name in models:
            p = next(every)
            parts.append(
                pl.DataFrame({"task": task, "truth": truth, "p": p, "common": common}).select(
                    pl.lit(name).alias("model"), pl.lit(number).alias("split"), "task", "truth", "p", "common"
                )
            )
        advance(1)
    return pl.concat(parts)


def _answers(
    problem: Any, models: Mapping[str, SharingNB], name: str, _task: Any, _target: Any, train: Rows, test: Rows
) -> NDArray[np.float64]:
    """Probability of the positive label of rows, by a model fitted to others."""
    fitted = deepcopy(models[name]).fit(problem.data[train], problem.target[train], task=problem.task[train])
    p = fitted.predict_proba(problem.data[test], task=problem.task[test])
    return np.ascontiguousarray(p[:, fitted.classes_.tolist().index(True)])


def leave_one_out(n_rows: int, every: int = 1) -> list[Split]:
    """Each row in turn, or each so many-th.

    Examples
    --------
    >>> [(train.tolist(), test.tolist()) for train, test in leave_one_out(3, every=2)]
    [([1, 2], [0]), ([0, 1], [2])]
    """
    rows = np.arange(n_rows)
    return [(np.delete(rows, row), rows[row : row + 1]) for row in range(0, n_rows, every)]


def accuracy_by_task(answers: pl.DataFrame) -> pl.DataFrame:
    """Share of right answers of each model and task, that of the most common label among them.

    Returns
    -------
    polars.DataFrame
        ``model``, ``task``, ``rows``, ``accuracy``.
    """
    right = ((pl.col("p") > 0.5) == pl.col("truth")).mean()
    by_task = answers.group_by("model", "task", maintain_order=True).agg(rows=pl.len(), accuracy=right)
    first = answers.filter(pl.col("model") == answers["model"][0])
    common = first.group_by("task", maintain_order=True).agg(rows=pl.len(), accuracy=pl.col("common").mean())
    return pl.concat([by_task, common.select(pl.lit(MAJORITY).alias("model"), "task", "rows", "accuracy")])


def difference(by_task: pl.DataFrame, one: str, other: str) -> tuple[float, float, int, int]:
    """Mean difference in accuracy over tasks, its standard error, and in how many tasks one is ahead and behind."""
    pair = by_task.filter(pl.col("model") == one).join(
        by_task.filter(pl.col("model") == other), on="task", suffix="_other", maintain_order="left"
    )
    gap = pair["accuracy"].to_numpy() - pair["accuracy_other"].to_numpy()
    error = float(gap.std(ddof=1) / np.sqrt(len(gap))) if len(gap) > 1 else 0.0
    return float(gap.mean()), error, int((gap > 0).sum()), int((gap < 0).sum())
