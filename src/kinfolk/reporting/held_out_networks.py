"""Bayes nets compared on rows held out: joint learning beside every task alone and all rows pooled.

There is no label to be predicted: the loss of a row is minus the natural log of its probability.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from kinfolk.maths.arrays import Floats
from kinfolk.networks.answers.by_task import is_by_task, read_parts
from kinfolk.reporting.findings import Findings
from kinfolk.reporting.held_out import Given, HeldOut, digest_of, receive
from kinfolk.tasks.columns import as_ids
from kinfolk.tasks.frames import make_frame
from kinfolk.tasks.schema import encode
from kinfolk.tasks.selection.splitters import TaskKFold
from kinfolk.tasks.table import is_missing
from kinfolk.transfer.comparison import Comparison, judge

MEASURE = "minus log probability of a row"


def receive_networks(findings: Findings, data: Any, y: Any, task: Any) -> Given:
    """Take rows in as the model's own ``fit`` does: one table of all tasks, or a mapping from tasks to tables."""
    if not is_by_task(data):
        return receive(findings, data, y, task)
    if task is not None:
        raise ValueError("tables came one for each task, by name: task= says it a second time")
    parts = read_parts(data)
    names = list(dict.fromkeys(name for part in parts.values() for name in part.names))
    values: dict[str, list[Any]] = {name: [] for name in names}
    for part in parts.values():
        own = dict(zip(part.names, part.table.all_values(), strict=True))
        for name in names:
            values[name] += own[name].tolist() if name in own else [None] * part.table.n_rows
    # As objects: a column that some task lacks would otherwise turn its whole numbers into others.
    columns = {name: np.array([*column, None], dtype=object)[:-1] for name, column in values.items()}
    tasks = np.repeat(as_ids(list(parts)), [part.table.n_rows for part in parts.values()])
    return Given(columns, None, tasks, digest_of(columns, None, tasks))


def hold_out_networks(findings: Findings, given: Given, n_folds: int, seed: int) -> HeldOut:
    """Fit copies of the model, and the same without sharing, to parts of the rows, and score the others."""
    estimator, own = findings.estimator, findings.model
    here = _variables_of_tasks(given)
    place = encode(given.task, findings.tasks).astype(np.int64)
    copy = clone(estimator).set_params(task_column=None)
    ways = {
        own: "alone" if estimator.sharing == "none" else "sharing",
        "alone": "alone",
        "pooled": "pooled",
    }
    if ways[own] == "alone":
        ways = {own: "alone", "joint": "sharing", "pooled": "pooled"}
    if here is not None:
        del ways["pooled"]  # rows of other variables are no rows of one table
    losses = {name: np.full(len(given.task), np.nan) for name in ways}
    folds: dict[str, list[float]] = {name: [] for name in ways}
    splitter = TaskKFold(n_folds, random_state=seed)
    for train, test in splitter.split(None, np.zeros(len(given.task)), task=given.task):
        for name in ways:
            sharing = {own: estimator.sharing, "alone": "none", "pooled": "none", "joint": "joint"}[name]
            model = clone(copy).set_params(sharing=sharing)
            found = _losses(model, given, train, test, here, pooled=name == "pooled")
            losses[name][test] = found
            folds[name].append(float(found.mean()))
    of_folds = {name: np.array(values) for name, values in folds.items()}
    helps, verdict = judge(of_folds, ways, MEASURE)
    best = min(of_folds, key=lambda name: float(of_folds[name].mean()))
    gains = {name: -values for name, values in of_folds.items()}
    seconds = dict.fromkeys(ways, 0.0)
    comparison = Comparison(MEASURE, "log probability", of_folds, gains, ways, seconds, best, helps, verdict, ())
    return HeldOut(comparison, own, losses, place)


def _variables_of_tasks(given: Given) -> dict[Any, list[str]] | None:
    """The variables that every task has any value of; None where all tasks have all."""
    there = {name: ~is_missing(values) for name, values in given.columns.items()}
    found = {
        task: [name for name, known in there.items() if known[given.task == task].any()]
        for task in dict.fromkeys(given.task.tolist())
    }
    return found if any(len(names) < len(there) for names in found.values()) else None


def _losses(
    model: Any, given: Given, train: Any, test: Any, here: dict[Any, list[str]] | None, *, pooled: bool
) -> Floats:
    """Minus the log probability of each row of a part, by a model that learnt from the other."""

    def table(part: Any, names: Any) -> Any:
        return make_frame({name: given.columns[name][part].tolist() for name in names}, "polars")

    def rows(part: Any) -> dict[str, Any]:
        if here is not None:
            of_tasks = {task: part[given.task[part] == task] for task in here}
            return {"X": {task: table(its, here[task]) for task, its in of_tasks.items()}}
        task = np.zeros(len(part), dtype=int) if pooled else given.task[part]
        return {"X": table(part, given.columns), "task": task}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = model.fit(**rows(train)).score_samples(**rows(test))
    if here is None:
        return -np.asarray(found)
    losses = np.empty(len(test))
    for task, scores in found.items():
        losses[given.task[test] == task] = -np.asarray(scores)
    return losses
