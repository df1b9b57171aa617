"""Bayes nets compared on rows held out: joint learning beside every task alone and all rows pooled.

There is no label to be predicted: the loss of a row is minus the natural log of its probability.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from kinfolk.maths.arrays import Floats
from kinfolk.reporting.findings import Findings
from kinfolk.reporting.held_out import Given, HeldOut
from kinfolk.tasks.frames import make_frame
from kinfolk.tasks.schema import encode
from kinfolk.tasks.selection.splitters import TaskKFold
from kinfolk.transfer.comparison import Comparison, judge

MEASURE = "minus log probability of a row"


def hold_out_networks(findings: Findings, given: Given, n_folds: int, seed: int) -> HeldOut:
    """Fit copies of the model, and the same without sharing, to parts of the rows, and score the others."""
    estimator, own = findings.estimator, findings.model
    place = encode(given.task, findings.tasks).astype(np.int64)
    copy = clone(estimator).set_params(task_column=None)
    ways = {
        own: "alone" if estimator.sharing == "none" else "sharing",
        "alone": "alone",
        "pooled": "pooled",
    }
    if ways[own] == "alone":
        ways = {own: "alone", "joint": "sharing", "pooled": "pooled"}
    losses = {name: np.full(len(given.task), np.nan) for name in ways}
    folds: dict[str, list[float]] = {name: [] for name in ways}
    splitter = TaskKFold(n_folds, random_state=seed)
    for train, test in splitter.split(None, np.zeros(len(given.task)), task=given.task):
        for name in ways:
            sharing = {own: estimator.sharing, "alone": "none", "pooled": "none", "joint": "joint"}[name]
            model = clone(copy).set_params(sharing=sharing)
            found = _losses(model, given, train, test, pooled=name == "pooled")
            losses[name][test] = found
            folds[name].append(float(found.mean()))
    of_folds = {name: np.array(values) for name, values in folds.items()}
    helps, verdict = judge(of_folds, ways, MEASURE)
    best = min(of_folds, key=lambda name: float(of_folds[name].mean()))
    gains = {name: -values for name, values in of_folds.items()}
    seconds = dict.fromkeys(ways, 0.0)
    comparison = Comparison(MEASURE, "log probability", of_folds, gains, ways, seconds, best, helps, verdict, ())
    return HeldOut(comparison, own, losses, place)


def _losses(model: Any, given: Given, train: Any, test: Any, *, pooled: bool) -> Floats:
    """Minus the log probability of each row of a part, by a model that learnt from the other."""

    def rows(part: Any) -> dict[str, Any]:
        frame = make_frame({name: values[part].tolist() for name, values in given.columns.items()}, "polars")
        return {"X": frame, "task": np.zeros(len(part), dtype=int) if pooled else given.task[part]}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return -np.asarray(model.fit(**rows(train)).score_samples(**rows(test)))
