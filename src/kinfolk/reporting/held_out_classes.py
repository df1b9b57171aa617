"""A classifier with a Bayes net for each class, compared on rows held out with ones whose classes do not share."""

from __future__ import annotations

import warnings
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

from kinfolk.maths.arrays import Floats
from kinfolk.reporting.findings import Findings
from kinfolk.reporting.held_out import Given, HeldOut, receive
from kinfolk.tasks.frames import make_frame
from kinfolk.tasks.schema import encode
from kinfolk.tasks.selection.splitters import TaskKFold
from kinfolk.transfer.comparison import Comparison, judge

MEASURE = "log loss"
# How classes share structure in the models that this one is held against.
_SHARING = {"class-joint": "joint", "class-alone": "none", "class-pooled": "identical"}
_WAYS = {"class-joint": "sharing", "class-alone": "alone", "class-pooled": "pooled"}


def receive_classes(findings: Findings, data: Any, y: Any, task: Any) -> Given:
    """Take rows and their labels in; there are no tasks but the classes, which are what is to be predicted."""
    if task is not None:
        raise ValueError(f"{findings.model} has a network for each class and knows no tasks: leave task= out")
    found = receive(replace(findings, tasks=["all rows"]), data, y, None)
    if found.y is None:
        raise ValueError("a report on rows needs what is to be predicted: give y=, an array or the name of a column")
    return found


def hold_out_classes(findings: Findings, given: Given, n_folds: int, seed: int) -> HeldOut:
    """Fit copies of the model, and the same with other sharing, to parts of the rows, and let them label the others."""
    estimator, own, classes = findings.estimator, findings.model, findings.labels or []
    shares = estimator.sharing != "none"
    ways = {own: "sharing" if shares else "alone"}
    ways |= {name: way for name, way in _WAYS.items() if (way == "sharing") != shares}
    ways |= {"class-pooled": "pooled"} if not shares else {}
    assert given.y is not None
    place = encode(given.y, classes).astype(np.int64)
    predicted = {name: np.full((len(place), len(classes)), np.nan) for name in ways}
    losses = {name: np.full(len(place), np.nan) for name in ways}
    folds: dict[str, list[float]] = {name: [] for name in ways}
    hits: dict[str, list[float]] = {name: [] for name in ways}
    seconds = dict.fromkeys(ways, 0.0)
    splitter = TaskKFold(n_folds, random_state=seed)
    for train, test in splitter.split(None, np.zeros(len(place)), task=given.y):
        for name in ways:
            start = perf_counter()
            model = clone(estimator).set_params(sharing=_SHARING.get(name, estimator.sharing))
            found = _probabilities(model, given, train, test, classes)
            seconds[name] += perf_counter() - start
            predicted[name][test] = found
            true = np.where(place[test] >= 0, found[np.arange(len(test)), place[test]], np.nan)
            losses[name][test] = -np.log(np.maximum(true, np.finfo(float).tiny))
            folds[name].append(float(np.nanmean(losses[name][test])))
            hits[name].append(float((found.argmax(axis=1) == place[test]).mean()))
    of_folds = {name: np.array(values) for name, values in folds.items()}
    helps, verdict = judge(of_folds, ways, MEASURE)
    comparison = Comparison(
        MEASURE,
        "accuracy",
        of_folds,
        {name: np.array(values) for name, values in hits.items()},
        ways,
        seconds,
        min(of_folds, key=lambda name: float(of_folds[name].mean())),
        helps,
        verdict,
        (),
        predictions=predicted,
        classes=np.array(classes),
    )
    return HeldOut(comparison, own, losses, place)


def _probabilities(model: Any, given: Given, train: Any, test: Any, classes: list[Any]) -> Floats:
    """The probability of every class for each row of a part, by a model that learnt from the other."""
    assert given.y is not None

    def table(part: Any) -> Any:
        return make_frame({name: values[part].tolist() for name, values in given.columns.items()}, "polars")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(table(train), given.y[train])
        found = np.zeros((len(test), len(classes)))
        # A part may lack a class that has few rows.
        found[:, encode(model.classes_, classes)] = model.predict_proba(table(test))
    return found
