"""What the models inside an average say of rows that have come through the door; with numpy alone.

Every kind of model is a class with the same few names: the ``columns`` by which it codes rows and what they are as
plain data, ``code`` and ``log_predictive``. A new kind is a class here and a line in ``ANSWERS``.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kinfolk.lica.answers.predictor import LICAPredictor
from kinfolk.maths.arrays import Floats
from kinfolk.naive_bayes.answers.predictor import CodedRows, NaiveBayesPredictor
from kinfolk.posterior import Archive, design_about, design_from, predictor_from, schema_about
from kinfolk.tasks.answering import Asked
from kinfolk.tasks.design import Design, design_rows
from kinfolk.transfer.trees.forest import Forest, forest_from


class Answers(Protocol):
    """What a fitted or loaded model inside an average says."""

    @property
    def columns(self) -> Any:
        """How rows are coded: models of the same columns share what is coded."""

    def about_columns(self) -> Any:
        """The columns as plain data, equal where rows are coded alike."""

    def code(self, asked: Asked) -> Any:
        """Rows as the model knows them."""

    def log_predictive(self, coded: Any) -> Floats:
        """Log probability of each label (rows, labels); a task never seen has the place after the last."""

    def moments(self, coded: Any) -> tuple[Floats, Floats]:
        """Mean and standard deviation of each number; where labels are predicted, there are none."""


class NaiveBayesAnswers(NamedTuple):
    """A naive Bayes model."""

    predictor: NaiveBayesPredictor

    @classmethod
    def from_archive(cls, archive: Archive) -> NaiveBayesAnswers:
        """Rebuild from plain data."""
        return cls(NaiveBayesPredictor.from_archive(archive))

    @property
    def columns(self) -> Any:
        """Categories and bins."""
        return self.predictor._schema

    def about_columns(self) -> Any:
        """Categories and bins as plain data."""
        return schema_about(self.predictor._schema)

    def code(self, asked: Asked) -> CodedRows:
        """Rows in categories and bins."""
        return self.predictor.code(asked)

    def log_predictive(self, coded: CodedRows) -> Floats:
        """Log probability of each label."""
        return self.predictor.log_predictive(coded)

    def moments(self, coded: CodedRows) -> tuple[Floats, Floats]:
        """Labels have none."""
        raise TypeError("naive Bayes predicts labels")


class DesignedRows(NamedTuple):
    """Rows as a design matrix, as one column for each of the table, and the places of their tasks."""

    matrix: Floats
    ordinals: Floats
    place: NDArray[np.int64]


class _Designed(NamedTuple):
    design: Design
    model: Any


class DesignAnswers(_Designed):
    """A model of numbers, whose rows are those of a design matrix: kinds of it differ in how they answer these."""

    @property
    def columns(self) -> Any:
        """The design."""
        return self.design

    def about_columns(self) -> Any:
        """The design as plain data."""
        return design_about(self.design)

    def code(self, asked: Asked) -> DesignedRows:
        """Rows of the design matrix."""
        assert asked.place is not None
        matrix = some_column(design_rows(asked.table, self.design))
        return DesignedRows(matrix, self.design.ordinals(asked.table), asked.place)


def some_column(matrix: Floats) -> Floats:
    """A design matrix with at least one column, of zeros where no column of a table tells rows apart."""
    return matrix if matrix.shape[1] else np.zeros((len(matrix), 1))


class LICAAnswers(DesignAnswers):
    """LICA, whose tasks are their places among those of the average."""

    @classmethod
    def from_archive(cls, archive: Archive) -> LICAAnswers:
        """Rebuild from plain data."""
        inner = Archive(archive.about["lica"], archive.arrays)
        return cls(design_from(archive), LICAPredictor.from_archive(inner))

    def log_predictive(self, coded: DesignedRows) -> Floats:
        """Log probability of each label."""
        found: Floats = self.model.predict_log_proba(coded.matrix, task=coded.place)
        return found

    def moments(self, coded: DesignedRows) -> tuple[Floats, Floats]:
        """Mean and deviation of each number."""
        mean, deviation = self.model.predict(coded.matrix, task=coded.place, return_std=True)
        return mean, deviation


class TreesAnswers(DesignAnswers):
    """Boosted trees; the model is a :class:`~kinfolk.transfer.trees.forest.Forest`."""

    model: Forest

    @classmethod
    def from_archive(cls, archive: Archive) -> TreesAnswers:
        """Rebuild from plain data."""
        design = design_from(archive)
        return cls(design, forest_from(archive, len(design.terms)))

    def log_predictive(self, coded: DesignedRows) -> Floats:
        """Log probability of each label."""
        return log_labels(self.model.score(coded.ordinals, coded.place), self.model.kind)

    def moments(self, coded: DesignedRows) -> tuple[Floats, Floats]:
        """Mean and deviation of each number."""
        mean = self.model.score(coded.ordinals, coded.place)[:, 0]
        return mean, np.full(len(mean), self.model.noise)


def log_labels(score: Floats, kind: str) -> Floats:
    """Log probabilities of labels from linear predictors, one for each of them or that of the second of two."""
    every = np.hstack([np.zeros_like(score), score]) if kind == "two labels" else score
    return np.asarray(every - np.logaddexp.reduce(every, axis=1, keepdims=True))


class HierarchicalAnswers(NamedTuple):
    """A partially pooled linear model, of labels or of numbers; all rows may be those of one task."""

    predictor: Any
    one_task: bool = False

    @classmethod
    def from_archive(cls, archive: Archive) -> HierarchicalAnswers:
        """Rebuild from plain data."""
        return cls(predictor_from(archive), bool(archive.about.get("one_task", False)))

    @property
    def columns(self) -> Any:
        """The design, with the order of columns that is the model's own."""
        return self.predictor._model

    def about_columns(self) -> Any:
        """The design and the order as plain data."""
        return design_about(self.predictor._model.design), self.predictor._model.order.tolist(), self.one_task

    def code(self, asked: Asked) -> Any:
        """Rows of the design matrix."""
        if self.one_task and asked.place is not None:
            asked = asked._replace(place=np.zeros_like(asked.place))
        return self.predictor.code(asked)

    def log_predictive(self, coded: Any) -> Floats:
        """Log probability of each label."""
        found: Floats = self.predictor.log_predictive(coded)
        return found

    def moments(self, coded: Any) -> tuple[Floats, Floats]:
        """Mean and deviation of each number."""
        mean, deviation = self.predictor.moments(coded)
        return mean, deviation


ANSWERS: dict[str, Any] = {
    "naive_bayes": NaiveBayesAnswers,
    "linear": HierarchicalAnswers,
    "linear_regression": HierarchicalAnswers,
    "designed lica": LICAAnswers,
    "trees": TreesAnswers,
}
