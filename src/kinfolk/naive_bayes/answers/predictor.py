"""What a naive Bayes model says of rows, with numpy alone: what a fit builds and ``kinfolk.load`` gives."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.naive_bayes.model.densities import Densities
from kinfolk.naive_bayes.model.mixture import MAX_TEMPER, Mixture
from kinfolk.posterior import Archive, known_from, names_from, schema_from
from kinfolk.predictor import LabelPredictor
from kinfolk.tasks.answering import Asked, Known, encode_rows, receive_rows
from kinfolk.tasks.columns import as_ids
from kinfolk.tasks.schema import Schema


class CodedRows(NamedTuple):
    """Rows to be answered: codes and numbers as in training, and the place of each row's task among those known."""

    codes: NDArray[np.int32]
    numbers: NDArray[np.float64] | None
    place: NDArray[np.int64]


class NaiveBayesPredictor(LabelPredictor):
    """A fitted model reduced to what prediction needs; made by :func:`kinfolk.load` and by every fit.

    Attributes
    ----------
    classes_, tasks_ : arrays
        Labels and tasks, sorted.
    feature_names_in_ : list of str
        Features, in order, the task column left out.
    """

    def __init__(
        self,
        known: Known,
        schema: Schema,
        classes: NDArray[Any],
        mixture: Mixture,
        temper: NDArray[np.float64],
        averaged: bool,
    ) -> None:
        self.known, self._schema, self._mixture = known, schema, mixture
        self._averaged = averaged
        # A mixture has features with codes first, then columns of numbers.
        self._powers = temper[schema.coded_first]
        self.classes_ = classes
        self.tasks_ = known.tasks
        self.feature_names_in_ = schema.names

    @classmethod
    def from_archive(cls, archive: Archive) -> NaiveBayesPredictor:
        """Rebuild from plain data, checking that its parts fit together."""
        about = archive.about
        return cls(
            known_from(archive),
            schema_from(archive),
            as_ids(names_from(about["classes"], "labels")),
            mixture_from(archive),
            temper_from(archive),
            bool(about["averaged"]),
        )

    def receive(self, X: Any, task: Any) -> CodedRows:
        """Take rows to be answered through the door, and code them."""
        return self.code(receive_rows(X, self.known, task=task))

    def code(self, asked: Asked) -> CodedRows:
        """Code rows that have come through the door."""
        assert asked.place is not None
        return CodedRows(encode_rows(asked.table, self._schema), self._schema.encode_numbers(asked.table), asked.place)

    def log_predictive(self, rows: CodedRows) -> NDArray[np.float64]:
        """Log probability of each label (rows, classes); a task never seen has the place after the last."""
        return self._mixture.log_predictive(rows.codes, rows.place, self._powers, self._averaged, rows.numbers)

    def _log_proba(self, X: Any, task: Any) -> NDArray[np.float64]:
        return self.log_predictive(self.receive(X, task))


def temper_from(archive: Archive) -> NDArray[np.float64]:
    """The powers of a saved model's features; files of earlier versions have one for all."""
    n_features = len(schema_from(archive).columns)
    try:
        temper = np.asarray(archive.about["temper"], dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"its temper is {archive.about['temper']!r}") from None
    if temper.shape not in ((), (n_features,)) or not ((temper >= 0.0) & (temper <= MAX_TEMPER)).all():
        raise ValueError(f"its temper is {temper.tolist()}")
    return np.broadcast_to(temper, (n_features,))


def mixture_arrays(mixture: Mixture) -> dict[str, NDArray[Any]]:
    """The arrays of a mixture, by the names that they are saved under."""
    plain = mixture._asdict()
    densities = plain.pop("densities")
    arrays = {f"mixture.{name}": array for name, array in plain.items()}
    if densities is not None:
        arrays |= {f"densities.{name}": array for name, array in densities._asdict().items()}
    return arrays


def mixture_from(archive: Archive) -> Mixture:
    """The mixture of a saved model, if its arrays fit its schema, labels and tasks."""
    n_labels, n_tasks = len(archive.about["classes"]), len(archive.about["tasks"])
    schema = schema_from(archive)
    n_values = schema.n_values
    width = int(n_values.sum())
    offsets = archive.array("mixture.offsets", "i", (len(n_values) + 1,))
    log_theta = archive.array("mixture.log_theta", "f", (None, width + 1, n_labels))
    start = archive.array("mixture.start", "i", (n_tasks + 2,))
    block = archive.array("mixture.block", "i", (None,))
    log_weight = archive.array("mixture.log_weight", "f", (len(block),))
    log_rates = archive.array("mixture.log_rates", "f", (len(block), n_labels))
    if not np.array_equal(offsets, np.concatenate([[0], np.cumsum(n_values)])):
        raise ValueError("its features do not fit its categories")
    if start[0] != 0 or start[-1] != len(block) or (np.diff(start) < 1).any():
        raise ValueError("its tasks do not fit its blocks")
    if len(block) and not (block.min() >= 0 and block.max() < len(log_theta)):
        raise ValueError("it names blocks that it does not have")
    densities = _densities_from(archive, schema, len(log_theta), n_labels) if schema.numbers else None
    return Mixture(offsets, log_theta, start, block, log_weight, log_rates, densities)


def _densities_from(archive: Archive, schema: Schema, n_blocks: int, n_labels: int) -> Densities:
    n_numbers = len(schema.numbers)
    family = archive.array("densities.family", "i", (n_numbers,))
    if not np.array_equal(family, [number.family == "count" for number in schema.numbers]):
        raise ValueError("its numbers do not fit its columns")
    reach = archive.array("densities.reach", "f", (n_numbers,))
    return Densities(family, reach, archive.array("densities.parameters", "f", (n_blocks, n_numbers, n_labels, 4)))
