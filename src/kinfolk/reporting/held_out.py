"""Rows that are given for a report: taken in, hashed, and predicted by models that learnt without them.

All comparing is done by :func:`kinfolk.evaluate`; here its predictions are looked at task by task and as a whole.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from kinfolk.maths.arrays import Floats
from kinfolk.plots.reliability_diagram import calibration_bins
from kinfolk.reporting.findings import Findings
from kinfolk.tasks.schema import encode
from kinfolk.tasks.table import as_column, read_table, unlabelled_rows
from kinfolk.transfer.comparison import Comparison, evaluate, judge, mean_and_error

# How models without sharing are called on the page, and in which family each is at home.
PLAIN = {
    "alone": "every task alone",
    "pooled": "all tasks pooled",
    "task-feature": "pooled, with an intercept for each task",
    "clustered": "kin share (ClusteredNB)",
    "nested": "kin share their states (NestedIHMM)",
    "shared": "all tasks share their states (SharedIHMM)",
    "joint": "structures learnt jointly",
    "class-joint": "structures of classes learnt jointly",
    "class-alone": "every class alone",
    "class-pooled": "one structure for all classes",
    "logistic-alone": "every task alone (logistic regression)",
    "logistic-pooled": "all tasks pooled (logistic regression)",
    "logistic-task-feature": "pooled, with an intercept for each task (logistic regression)",
    "ridge-alone": "every task alone (ridge regression)",
    "ridge-pooled": "all tasks pooled (ridge regression)",
    "ridge-task-feature": "pooled, with an intercept for each task (ridge regression)",
}
# A calibration is called bad where chance would so seldom make it, and it is off by more than this on average.
_LEVEL = 0.001
_LEAST_GAP = 0.03


class Given(NamedTuple):
    """Rows for a report: their features by column, as a model takes them, their labels or targets, and their tasks."""

    columns: Mapping[str, NDArray[Any]]
    y: NDArray[Any] | None
    task: NDArray[Any]
    digest: str

    @property
    def X(self) -> Any:
        """The features as estimators take them."""
        return dict(self.columns)


class Calibration(NamedTuple):
    """How often what was predicted with a probability came true, in bins of it (of ``label``, or of the likeliest).

    ``gap`` is the mean distance between the two over rows; ``bad`` says that it is large, and larger than by chance.
    """

    label: Any
    predicted: Floats
    observed: Floats
    low: Floats
    high: Floats
    n: NDArray[np.int64]
    gap: float
    bad: bool


class HeldOut(NamedTuple):
    """A model compared on rows held out, and the loss of each row by model; NaN where a row was not tested.

    ``place`` is each row's task among those of the model, −1 where it has no such task.
    """

    comparison: Comparison
    own: str
    losses: Mapping[str, Floats]
    place: NDArray[np.int64]

    @property
    def alone(self) -> str | None:
        """The model in which every task learns alone."""
        return next((name for name in self.losses if name.endswith("alone") and name != self.own), None)

    def by_task(self, n_tasks: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Mean loss of every task, its error, and the same of what is gained over learning alone; NaN if not tested."""
        found = np.full((4, n_tasks), np.nan)
        own = self.losses[self.own]
        gain = self.losses[self.alone] - own if self.alone is not None else np.full(len(own), np.nan)
        for task in range(n_tasks):
            mine = self.place == task
            for at, values in ((0, own[mine]), (2, gain[mine])):
                values = values[~np.isnan(values)]
                if len(values):
                    found[at, task] = values.mean()
                if len(values) > 1:
                    found[at + 1, task] = values.std(ddof=1) / np.sqrt(len(values))
        return found[0], found[1], found[2], found[3]

    def n_compared(self, n_tasks: int) -> NDArray[np.int64]:
        """How many rows of every task were predicted by this model and by one of the task alone."""
        if self.alone is None:
            return np.zeros(n_tasks, dtype=np.int64)
        both = (self.place >= 0) & ~np.isnan(self.losses[self.alone] - self.losses[self.own])
        return np.bincount(self.place[both], minlength=n_tasks)

    def behind(self, other: str) -> tuple[float, float] | None:
        """By how much another model's loss is larger than this one's, and the error of that; None if not compared."""
        losses = self.comparison.losses
        return mean_and_error(losses[other] - losses[self.own]) if other in losses else None

    def better_than(self, other: str) -> bool | None:
        """Whether this model is better than another by more than chance; None if not compared."""
        losses, ways = self.comparison.losses, {self.own: "sharing", other: "alone"}
        if other not in losses:
            return None
        return judge({name: losses[name] for name in ways}, ways, self.comparison.measure)[0]


def receive(findings: Findings, data: Any, y: Any, task: Any) -> Given:
    """Take rows in: a table, its labels and tasks, or the names of the columns that hold them."""
    if isinstance(data, tuple) and len(data) in (2, 3) and y is None:
        data, y, *told = data
        task = told[0] if told else task
    table = read_table(data)
    beside: dict[str, NDArray[Any]] = {}
    own_column = getattr(findings.estimator, "task_column", None)
    for what, name in (("y", y if isinstance(y, str) else None), ("task", task if task is not None else own_column)):
        if isinstance(name, str | int) and not (what == "task" and task is None and not _has(table, name)):
            place = table.position(name)
            beside[what] = table.values(place)
            table = table.without(place)
    labels = beside["y"] if "y" in beside else None if y is None else as_column(y)
    tasks = beside["task"] if "task" in beside else None if task is None else as_column(task, "task")
    if tasks is None:
        if len(findings.tasks) > 1:
            raise ValueError("a report on rows needs the task of each: give task=, an array or the name of a column")
        tasks = np.full(table.n_rows, findings.tasks[0], dtype=object)
    names = table.names or [f"column {place}" for place in table.places]
    columns = dict(zip(names, table.all_values(), strict=True))
    known = findings.estimator._predictor().known.columns if hasattr(findings.estimator, "_predictor") else None
    if known is not None and table.names is not None:
        columns = {name: values for name, values in columns.items() if name in set(known)}
    for what, values in (("labels", labels), ("tasks", tasks)):
        if values is not None and len(values) != table.n_rows:
            raise ValueError(f"the table has {table.n_rows} rows, but there are {len(values)} {what}")
    return Given(columns, labels, tasks, digest_of(columns, labels, tasks))


def _has(table: Any, name: str | int) -> bool:
    return name in table.names if isinstance(name, str) and table.names is not None else isinstance(name, int)


def digest_of(columns: Mapping[str, NDArray[Any]], labels: NDArray[Any] | None, tasks: NDArray[Any]) -> str:
    """A hash of all values, column by column in the order of the table."""
    found = hashlib.sha256()
    parts = [*columns.items(), *([] if labels is None else [("y", labels)]), ("task", tasks)]
    for name, values in parts:
        found.update(repr((name, values.tolist())).encode("utf-8", "backslashreplace"))
    return found.hexdigest()


def hold_out(findings: Findings, given: Given, n_folds: int, seed: int) -> HeldOut:
    """Compare the model with those that do not share, on rows held out."""
    estimator = findings.estimator
    if given.y is None:
        raise ValueError("a report on rows needs what is to be predicted: give y=, an array or the name of a column")
    own = findings.model
    unlabelled = getattr(estimator, "unlabelled", None)
    numbers = findings.labels is None
    if numbers or findings.family in ("linear", "partially pooled"):
        kind = "ridge" if numbers else "logistic"
        models = [f"{kind}-alone", f"{kind}-pooled", f"{kind}-task-feature"]
    else:
        models = ["alone", "pooled", "task-feature", "logistic-pooled"]
        models += ["clustered"] if own in ("NoSharingNB", "CompleteSharingNB") else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = evaluate(
            given.X,
            given.y,
            task=given.task,
            models=models,
            estimators={own: estimator},
            n_folds=n_folds,
            target="number" if numbers else "label",
            unlabelled=unlabelled,
            random_state=seed,
        )
    if own not in found.losses:
        reason = next((note for note in found.notes if note.startswith(f"{own} is left out")), "")
        raise ValueError(f"the model could not learn from the rows that were given. {reason}".strip())
    place = encode(given.task, findings.tasks).astype(np.int64)
    return HeldOut(found, own, {name: _losses(found, name, given, unlabelled) for name in found.losses}, place)


def _losses(found: Comparison, name: str, given: Given, unlabelled: Any) -> Floats:
    predicted = found.predictions[name]
    assert given.y is not None
    if found.classes is None:
        values = np.full(len(given.y), np.nan)
        there = ~unlabelled_rows(given.y, unlabelled)
        values[there] = given.y[there].astype(np.float64)
        return np.asarray((predicted - values) ** 2)
    codes = encode(given.y, found.classes.tolist())
    own = np.where(codes >= 0, predicted[np.arange(len(codes)), codes], np.nan)
    return np.asarray(-np.log(np.maximum(own, np.finfo(float).tiny)))


def calibrate(held_out: HeldOut, given: Given) -> Calibration | None:
    """How probabilities of rows held out came true; None where numbers were predicted."""
    found = held_out.comparison
    if found.classes is None or given.y is None:
        return None
    proba, classes = found.predictions[held_out.own], found.classes.tolist()
    codes = encode(given.y, classes)
    tested = (codes >= 0) & ~np.isnan(proba).any(axis=1)
    proba, codes = proba[tested], codes[tested]
    if not len(codes):
        return None
    if len(classes) == 2:
        label, predicted, came = classes[1], proba[:, 1], codes == 1
    else:
        label, predicted = None, proba.max(axis=1)
        came = proba.argmax(axis=1) == codes
    bins = calibration_bins(predicted, came)
    gap = float((bins.n * np.abs(bins.predicted - bins.observed)).sum() / bins.n.sum())
    variance = np.maximum(bins.predicted * (1.0 - bins.predicted) / bins.n, 1e-12)
    distance = float(((bins.predicted - bins.observed) ** 2 / variance).sum())
    bad = gap > _LEAST_GAP and bool(chi2.sf(distance, len(bins.n)) < _LEVEL)
    return Calibration(label, *bins, gap, bad)
