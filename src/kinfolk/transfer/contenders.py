"""The models that :mod:`kinfolk.transfer.comparison` compares: those that share, and the same kinds without.

A new one is a function that learns from training rows and gives a function that answers for others, and a line in the
tables at the end. Naive Bayes reads columns as they are; linear models read numbers and an indicator a category.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, RidgeCV

from kinfolk.lica.estimators.classifier import LICAClassifier
from kinfolk.lica.estimators.regressor import LICARegressor
from kinfolk.maths.arrays import Floats
from kinfolk.naive_bayes.estimators.clustered import ClusteredNB
from kinfolk.naive_bayes.estimators.complete_sharing import CompleteSharingNB
from kinfolk.naive_bayes.estimators.no_sharing import NoSharingNB
from kinfolk.naive_bayes.estimators.prototype import PrototypeNB
from kinfolk.transfer.averaged import AveragedNB
from kinfolk.transfer.classifier import TransferClassifier
from kinfolk.transfer.regressor import TransferRegressor

_MOST_INDICATORS = 5_000
_PENALTIES = (0.1, 1.0, 10.0, 100.0, 1_000.0)
_FEWEST_FOR_RIDGE = 3


class Part(NamedTuple):
    """Rows of the table: their columns by name, their codes of labels (−1: none) or targets, and their tasks."""

    columns: dict[str, NDArray[Any]]
    target: NDArray[Any]
    task: NDArray[Any]

    def take(self, rows: NDArray[Any]) -> Part:
        """Some of the rows."""
        return Part({name: values[rows] for name, values in self.columns.items()}, self.target[rows], self.task[rows])


Answer = Callable[[Part], Floats]
Way = Literal["alone", "pooled", "task as a feature", "sharing"]


class Contender(NamedTuple):
    """A model of the comparison: how it treats tasks, and how it learns; what it learnt answers for other rows."""

    way: Way
    learn: Callable[[Part, int, int], Answer]


def _spread(probabilities: Floats, classes: NDArray[Any], n_classes: int) -> Floats:
    """Probabilities with a column for every label, of those too that were not learnt."""
    spread = np.zeros((len(probabilities), n_classes))
    spread[:, classes.astype(np.int64)] = probabilities
    return spread


def _naive_bayes(build: Callable[..., Any], tasks: bool, train: Part, n_classes: int, seed: int) -> Answer:
    """A naive Bayes model; where ``tasks`` is false, with the task as a feature."""
    known = set(train.task.tolist())

    def asked(part: Part) -> dict[str, Any]:
        if tasks:
            return {"X": part.columns, "task": part.task}
        feature: NDArray[Any] = np.array([str(t) if t in known else None for t in part.task.tolist()], dtype=object)
        return {"X": {**part.columns, "the task": feature}, "task": np.zeros(len(part.task), dtype=np.int64)}

    # Whether tasks are new is for the comparison to know.
    model = build(random_state=seed, unlabelled=-1, new_tasks="expected").fit(**asked(train), y=train.target)
    return lambda part: _spread(model.predict_proba(**asked(part)), model.classes_, n_classes)


def _with_target(part: Part, n_classes: int) -> Part:
    """Rows that have a label or a number to learn from."""
    return part.take(part.target >= 0 if n_classes else ~np.isnan(part.target))


class Indicators(NamedTuple):
    """Columns as numbers: those that are numbers in units of their deviation, the others an indicator a category."""

    numbers: dict[str, tuple[float, float]]
    categories: dict[str, list[Any]]

    @classmethod
    def of(cls, columns: Mapping[str, NDArray[Any]]) -> Indicators:
        """What training rows say of every column."""
        numbers, categories = {}, {}
        for name, values in columns.items():
            if values.dtype == object:
                categories[name] = sorted({value for value in values.tolist() if value is not None}, key=str)
            else:
                known = values[~np.isnan(values)] if values.dtype.kind == "f" else values
                spread = float(np.std(known)) if len(known) else 0.0
                numbers[name] = (float(np.mean(known)) if len(known) else 0.0, spread or 1.0)
        if sum(map(len, categories.values())) > _MOST_INDICATORS:
            raise ValueError(f"its columns have more than {_MOST_INDICATORS:,} categories, each a feature of its own")
        return cls(numbers, categories)

    def __call__(self, columns: Mapping[str, NDArray[Any]]) -> Floats:
        """Rows as features; what is missing or was never seen is zero in all."""
        parts = [
            np.nan_to_num((columns[name].astype(np.float64) - centre) / scale)[:, np.newaxis]
            for name, (centre, scale) in self.numbers.items()
        ]
        parts += [
            (columns[name][:, np.newaxis] == np.array([*own, None], dtype=object)[:-1]).astype(np.float64)
            for name, own in self.categories.items()
        ]
        return np.hstack(parts)


def _transfer(build: Callable[..., Any], train: Part, n_classes: int, seed: int) -> Answer:
    """All kinds of models, each believed as far as it predicts, of labels or of numbers."""
    told = {"unlabelled": -1} if n_classes else {}
    model = build(random_state=seed, new_tasks="expected", **told).fit(train.columns, train.target, task=train.task)
    if not n_classes:
        return lambda part: np.asarray(model.predict(part.columns, task=part.task))
    return lambda part: _spread(model.predict_proba(part.columns, task=part.task), model.classes_, n_classes)


def _lica(train: Part, n_classes: int, seed: int) -> Answer:
    """LICA, for two labels or for numbers."""
    if n_classes > 2:
        raise ValueError(f"it tells two labels apart, and there are {n_classes}")
    labelled = _with_target(train, n_classes)
    features = Indicators.of(labelled.columns)
    build = LICAClassifier if n_classes else LICARegressor
    model = build(random_state=seed, new_tasks="expected").fit(
        features(labelled.columns), labelled.target, task=labelled.task
    )
    if not n_classes:
        return lambda part: np.asarray(model.predict(features(part.columns), task=part.task))
    return lambda part: _spread(model.predict_proba(features(part.columns), task=part.task), model.classes_, n_classes)


def _linear(columns: Mapping[str, NDArray[Any]], target: NDArray[Any], n_classes: int) -> Answer:
    """Logistic or ridge regression of some rows; every label has a pseudo-row, whatever its features."""
    if not n_classes:
        if len(target) < _FEWEST_FOR_RIDGE:
            return lambda part: np.full(len(part.task), target.mean())
        features = Indicators.of(columns)
        ridge = RidgeCV(alphas=_PENALTIES).fit(features(columns), target)
        return lambda part: np.asarray(ridge.predict(features(part.columns)))
    counts = np.bincount(target, minlength=n_classes)
    classes = np.flatnonzero(counts)
    weight = len(target) / (len(target) + n_classes)
    if len(classes) == 1:
        rates = weight * counts / counts.sum() + (1.0 - weight) / n_classes
        return lambda part: np.tile(rates, (len(part.task), 1))
    features = Indicators.of(columns)
    model = LogisticRegression(max_iter=1_000).fit(features(columns), target)

    def answer(part: Part) -> Floats:
        found = _spread(model.predict_proba(features(part.columns)), classes, n_classes)
        return np.asarray(weight * found + (1.0 - weight) / n_classes)

    return answer


def _linear_pooled(as_feature: bool, train: Part, n_classes: int, seed: int) -> Answer:
    """All rows as one task's; with or without the task as a feature."""

    def columns(part: Part) -> dict[str, NDArray[Any]]:
        return {**part.columns, "the task": part.task.astype(object)} if as_feature else part.columns

    known = _with_target(train, n_classes)
    answer = _linear(columns(known), known.target, n_classes)
    return lambda part: answer(part._replace(columns=columns(part)))


def _linear_alone(train: Part, n_classes: int, seed: int) -> Answer:
    """Every task for itself."""
    known = _with_target(train, n_classes)
    answers = {}
    for name in np.unique(known.task):
        own = known.take(known.task == name)
        answers[name] = _linear(own.columns, own.target, n_classes)

    def answer(part: Part) -> Floats:
        found = np.zeros((len(part.task), n_classes) if n_classes else len(part.task))
        for name in np.unique(part.task):
            if name not in answers:
                raise ValueError("it says nothing of a task that it has not learnt from")
            rows = part.task == name
            found[rows] = answers[name](part.take(rows))
        return found

    return answer


def own_contender(estimator: Any, classes: NDArray[Any] | None) -> Contender:
    """Somebody's own estimator, a copy of which learns from a table whose columns are named and tasks told beside it.

    ``classes`` are the labels that codes stand for; None where numbers are predicted.
    """
    own: dict[str, Any] = {"task_column": None, "new_tasks": "expected"}
    told = {name: value for name, value in own.items() if name in estimator.get_params(deep=False)}
    copy = clone(estimator).set_params(**told)
    labels = None if classes is None else np.array([*classes.tolist(), None], dtype=object)
    ways: dict[str, Way] = {"NoSharingNB": "alone", "CompleteSharingNB": "pooled"}
    way = ways.get(type(estimator).__name__, "sharing")

    def learn(train: Part, n_classes: int, seed: int) -> Answer:
        if labels is None:
            known = _with_target(train, n_classes)
            fitted = clone(copy).fit(known.columns, known.target, task=known.task)
            return lambda part: np.asarray(fitted.predict(part.columns, task=part.task))
        fitted = clone(copy).fit(train.columns, labels[train.target], task=train.task)
        codes = np.array([labels[:-1].tolist().index(label) for label in fitted.classes_.tolist()])
        return lambda part: _spread(fitted.predict_proba(part.columns, task=part.task), codes, n_classes)

    return Contender(way, learn)


CLASSIFIERS: dict[str, Contender] = {
    "clustered": Contender("sharing", partial(_naive_bayes, ClusteredNB, True)),
    "prototype": Contender("sharing", partial(_naive_bayes, PrototypeNB, True)),
    "transfer": Contender("sharing", partial(_transfer, TransferClassifier)),
    "averaged": Contender("sharing", partial(_naive_bayes, AveragedNB, True)),
    "lica": Contender("sharing", _lica),
    "alone": Contender("alone", partial(_naive_bayes, NoSharingNB, True)),
    "pooled": Contender("pooled", partial(_naive_bayes, CompleteSharingNB, True)),
    "task-feature": Contender("task as a feature", partial(_naive_bayes, CompleteSharingNB, False)),
    "logistic-alone": Contender("alone", _linear_alone),
    "logistic-pooled": Contender("pooled", partial(_linear_pooled, False)),
    "logistic-task-feature": Contender("task as a feature", partial(_linear_pooled, True)),
}
REGRESSORS: dict[str, Contender] = {
    "transfer": Contender("sharing", partial(_transfer, TransferRegressor)),
    "lica": Contender("sharing", _lica),
    "ridge-alone": Contender("alone", _linear_alone),
    "ridge-pooled": Contender("pooled", partial(_linear_pooled, False)),
    "ridge-task-feature": Contender("task as a feature", partial(_linear_pooled, True)),
}
