"""Predictions from a saved average of models with numpy alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.naive_bayes.answers.predictor import NaiveBayesPredictor
from kinfolk.posterior import Archive, schema_about
from kinfolk.predictor import LabelPredictor
from kinfolk.tasks.answering import receive_rows


class AveragedPredictor(LabelPredictor):
    """A fitted average of naive Bayes models reduced to what prediction needs; made by :func:`kinfolk.load`.

    Attributes
    ----------
    classes_, tasks_ : arrays
        Labels and tasks, sorted.
    feature_names_in_ : list of str
        Features, in order, the task column left out.
    """

    def __init__(self, members: list[NaiveBayesPredictor], weights: NDArray[np.float64]) -> None:
        self._members = members
        self._weights = weights
        # The first member that codes rows as each does, so that they are coded once.
        self._coding = [next(i for i, other in enumerate(members) if _alike(member, other)) for member in members]
        first = members[0]
        self._schema, self.known = first._schema, first.known._replace(model="AveragedNB")
        self.classes_, self.tasks_, self.feature_names_in_ = first.classes_, first.tasks_, first.feature_names_in_

    @classmethod
    def from_archive(cls, archive: Archive) -> AveragedPredictor:
        """Rebuild from plain data, checking that its parts fit together."""
        parts, weights = member_archives(archive)
        return cls([NaiveBayesPredictor.from_archive(part) for part in parts], weights)

    def _log_proba(self, X: Any, task: Any) -> NDArray[np.float64]:
        asked = receive_rows(X, self.known, task=task)
        coded = {i: self._members[i].code(asked) for i in sorted(set(self._coding))}
        log_p = np.array(
            [member.log_predictive(coded[i]) for member, i in zip(self._members, self._coding, strict=True)]
        )
        with np.errstate(divide="ignore"):
            log_weights = np.log(self._weights)
        return np.asarray(np.logaddexp.reduce(log_p + log_weights[:, None, None], axis=0))


def _alike(one: NaiveBayesPredictor, other: NaiveBayesPredictor) -> bool:
    return one._schema is other._schema or schema_about(one._schema) == schema_about(other._schema)


def member_archives(archive: Archive) -> tuple[list[Archive], NDArray[np.float64]]:
    """The members of a saved average, each as it would have been saved alone, and their weights."""
    members, weights = archive.about["members"], np.asarray(archive.about["weights"], dtype=np.float64)
    if not isinstance(members, list) or not members or weights.shape != (len(members),):
        raise ValueError("its members do not fit their weights")
    if not ((weights >= 0).all() and abs(weights.sum() - 1.0) < 1e-6):
        raise ValueError("its weights do not add up to one")
    for key in ("classes", "tasks"):
        if any(member[key] != members[0][key] for member in members):
            raise ValueError(f"its members do not have the same {key}")
    parts = []
    for i, about in enumerate(members):
        start = f"{i}."
        arrays = {name.removeprefix(start): array for name, array in archive.arrays.items() if name.startswith(start)}
        parts.append(Archive(about, arrays))
    return parts, weights
