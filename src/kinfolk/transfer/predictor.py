"""Predictions from an average of models, fitted or loaded, with numpy alone."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.posterior import Archive, known_from, names_from
from kinfolk.predictor import LabelPredictor, NumberPredictor
from kinfolk.tasks.answering import Asked, Known, receive_rows
from kinfolk.tasks.columns import as_ids
from kinfolk.transfer.answers import ANSWERS, Answers
from kinfolk.transfer.scales import Mixture, Scales, mix, scales_of
from kinfolk.transfer.sizes import SizeWeights


class _AverageAnswers:
    """What averages of classifiers and of regressions have in common."""

    known: Known

    def _set(self, members: Sequence[Answers], weights: SizeWeights, n_rows: Floats, known: Known) -> None:
        self._members, self._weights, self._n_rows = members, weights, n_rows
        self.known, self.tasks_ = known, known.tasks
        places: Any = range(known.n_columns) if known.columns is None else known.columns
        self.feature_names_in_ = [str(name) for name in places if name != known.task_column]
        self._coding = first_alike(members)

    def weights_of(self, place: NDArray[np.int64] | None) -> Floats:
        """How far each member is believed (rows, members) for rows of these tasks."""
        return self._weights.of(self._n_rows)[place]

    def coded_for_members(self, asked: Asked) -> list[tuple[Answers, Any]]:
        """Members, each with rows as it codes them."""
        coded: dict[int, Any] = {}
        for i in sorted(set(self._coding)):
            with warnings.catch_warnings():
                if coded:
                    # What is to be told of the rows was told when they were coded first.
                    warnings.simplefilter("ignore")
                coded[i] = self._members[i].code(asked)
        return [(member, coded[i]) for member, i in zip(self._members, self._coding, strict=True)]


class AveragedPredictor(_AverageAnswers, LabelPredictor):
    """A fitted average of models reduced to what prediction needs; made by :func:`kinfolk.load` and by every fit.

    Attributes
    ----------
    classes_, tasks_ : arrays
        Labels and tasks, sorted.
    feature_names_in_ : list of str
        Features, in order, the task column left out.
    """

    def __init__(
        self, members: Sequence[Answers], weights: SizeWeights, n_rows: Floats, known: Known, classes: NDArray[Any]
    ) -> None:
        self._set(members, weights, n_rows, known)
        self.classes_ = classes

    @classmethod
    def from_archive(cls, archive: Archive) -> AveragedPredictor:
        """Rebuild from plain data, checking that its parts fit together."""
        parts, weights, n_rows = member_archives(archive)
        members = [ANSWERS[part.about["family"]].from_archive(part) for part in parts]
        known, classes = known_of(archive), classes_of(archive)
        return cls(members, weights, n_rows, known, classes)

    def _log_proba(self, X: Any, task: Any) -> Floats:
        return self.log_predictive(receive_rows(X, self.known, task=task))

    def log_predictive(self, asked: Asked) -> Floats:
        """Log probability of each label of rows that have come through the door."""
        log_p = np.array([member.log_predictive(coded) for member, coded in self.coded_for_members(asked)])
        with np.errstate(divide="ignore"):
            log_weights = np.log(self.weights_of(asked.place))
        return np.asarray(np.logaddexp.reduce(log_p + log_weights.T[:, :, None], axis=0))


class AveragedRegressionPredictor(_AverageAnswers, NumberPredictor):
    """A fitted average of regressions reduced to what prediction needs; made by :func:`kinfolk.load` and by every fit.

    Attributes
    ----------
    tasks_ : array
        Tasks, sorted.
    feature_names_in_ : list of str
        Features, in order, the task column left out.
    """

    def __init__(
        self, members: Sequence[Answers], weights: SizeWeights, n_rows: Floats, known: Known, scales: Scales
    ) -> None:
        self._set(members, weights, n_rows, known)
        self._scales = scales

    @classmethod
    def from_archive(cls, archive: Archive) -> AveragedRegressionPredictor:
        """Rebuild from plain data, checking that its parts fit together."""
        parts, weights, n_rows = member_archives(archive)
        members = [ANSWERS[part.about["family"]].from_archive(part) for part in parts]
        scales = scales_of(archive, len(members))
        if scales is None:
            raise ValueError("it has no scales of errors")
        return cls(members, weights, n_rows, known_of(archive), scales)

    def _mixture(self, X: Any, task: Any) -> tuple[Mixture, NDArray[np.bool_]]:
        """What is said of rows, and which are of known tasks."""
        asked = receive_rows(X, self.known, task=task)
        assert asked.place is not None
        moments = [member.moments(coded) for member, coded in self.coded_for_members(asked)]
        mean, deviation = (np.column_stack(each) for each in zip(*moments, strict=True))
        is_known = self._n_rows[asked.place] > 0.0
        return mix(self.weights_of(asked.place), self._scales, mean, deviation, is_known), is_known

    def _expected(self, X: Any, task: Any) -> tuple[Floats, Floats]:
        mixture, _ = self._mixture(X, task)
        return mixture.expected(), mixture.standard_deviation()

    def _quantiles(self, X: Any, task: Any, levels: Floats) -> Floats:
        mixture, is_known = self._mixture(X, task)
        return np.column_stack([mixture.quantile(self._scales.level(float(level), is_known)) for level in levels])


def first_alike(members: Sequence[Answers]) -> list[int]:
    """For each member the first that codes rows as it does, so that they are coded once."""
    return [next(i for i, other in enumerate(members) if _alike(member, other)) for member in members]


def _alike(one: Answers, other: Answers) -> bool:
    return one.columns is other.columns or one.about_columns() == other.about_columns()


def classes_of(archive: Archive) -> NDArray[Any]:
    """The labels of a saved average; files of before averages had any have those of their members."""
    about = archive.about if "classes" in archive.about else archive.about["members"][0]
    return as_ids(names_from(about["classes"], "labels"))


def known_of(archive: Archive) -> Known:
    """What a saved average knows of tables and tasks; files of before it did have what their members know."""
    if "tasks" in archive.about:
        return known_from(archive)
    return known_from(Archive(archive.about["members"][0], {}))._replace(model="AveragedNB")


def member_archives(archive: Archive) -> tuple[list[Archive], SizeWeights, Floats]:
    """The members of a saved average, each as if saved alone, their weights, and the rows that tasks have."""
    about = archive.about
    members, weights = about["members"], np.asarray(about["weights"], dtype=np.float64)
    sizes = np.asarray(about.get("sizes", [1.0]), dtype=np.float64)
    if not isinstance(members, list) or not members or weights.shape[-1:] != (len(members),):
        raise ValueError("its members do not fit their weights")
    weights = np.atleast_2d(weights)
    if weights.shape != (len(sizes), len(members)) or not (sizes >= 0).all() or (np.diff(sizes) <= 0).any():
        raise ValueError("its weights do not fit the sizes of tasks")
    if not ((weights >= 0).all() and (abs(weights.sum(axis=1) - 1.0) < 1e-6).all()):
        raise ValueError("its weights do not add up to one")
    n_tasks = len(known_of(archive).tasks)
    n_rows = archive.array("n_rows", "f", (n_tasks,)) if "n_rows" in archive.arrays else np.ones(n_tasks)
    parts = []
    for i, own in enumerate(members):
        start = f"{i}."
        arrays = {name.removeprefix(start): array for name, array in archive.arrays.items() if name.startswith(start)}
        parts.append(Archive(own, arrays))
    for key in ("classes", "tasks"):
        own = [part.about[key] for part in parts if part.about["family"] == "naive_bayes"]
        if any(one != own[0] for one in own):
            raise ValueError(f"its members do not have the same {key}")
    return parts, SizeWeights(sizes, weights), np.append(n_rows, 0.0)
