"""Decisions of a saved classifier, with numpy alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.decisions.choosing import decide, expected_loss
from kinfolk.decisions.losses import Loss
from kinfolk.posterior import Archive, names_from, plain_names, predictor_from
from kinfolk.predictor import Predictor
from kinfolk.tasks.answering import some_names
from kinfolk.tasks.columns import as_ids

_INNER = "model."


class DecisionPredictor(Predictor):
    """A fitted :class:`~kinfolk.DecisionClassifier` reduced to what decisions need; made by :func:`kinfolk.load`.

    Attributes
    ----------
    classes_, actions_ : ndarray
        Labels, and what is chosen from.
    loss_ : Loss
        What each action costs under each label.
    """

    def __init__(self, model: Any, loss: Loss) -> None:
        assert loss.actions is not None
        self._model, self.known, self.loss_ = model, model.known, loss
        self.classes_, self.actions_ = model.classes_, as_ids(list(loss.actions))

    def __repr__(self) -> str:
        return f"<DecisionClassifier: {some_names(self.actions_.tolist())} by what costs least; {self._model!r}>"

    @classmethod
    def from_archive(cls, archive: Archive) -> DecisionPredictor:
        """Rebuild from plain data, checking that its parts fit together."""
        inner, loss = parts_of(archive)
        return cls(predictor_from(inner), loss)

    def predict(self, X: Any, **params: Any) -> NDArray[Any]:
        """The action with the smallest expected loss for each row; ``task=`` goes to the classifier."""
        return np.asarray(self.actions_[decide(self.predict_proba(X, **params), self.loss_.matrix)])

    def predict_proba(self, X: Any, **params: Any) -> NDArray[np.float64]:
        """The classifier's own probabilities, a column for each of ``classes_``."""
        return np.asarray(self._model.predict_proba(X, **params))

    def decision_losses(self, X: Any, **params: Any) -> NDArray[np.float64]:
        """Expected loss of every action, a column for each of ``actions_``."""
        return expected_loss(self.predict_proba(X, **params), self.loss_.matrix)


def decision_archive(inner: Archive, loss: Loss) -> Archive:
    """A classifier and its loss as plain data."""
    about = {
        "family": "decisions",
        "estimator": "DecisionClassifier",
        "model": inner.about,
        "classes": plain_names(list(loss.classes or ()), "a class"),
        "actions": plain_names(list(loss.actions or ()), "an action"),
    }
    return Archive(about, {"loss": loss.matrix} | {f"{_INNER}{name}": array for name, array in inner.arrays.items()})


def parts_of(archive: Archive) -> tuple[Archive, Loss]:
    """The classifier inside, as it would have been saved alone, and the loss."""
    about = archive.about
    classes, actions = names_from(about["classes"], "classes"), names_from(about["actions"], "actions")
    if not isinstance(about["model"], dict) or classes != about["model"]["classes"]:
        raise ValueError("its loss is not about the labels of its model")
    arrays = {name.removeprefix(_INNER): array for name, array in archive.arrays.items() if name.startswith(_INNER)}
    matrix = archive.array("loss", "f", (len(classes), len(actions)))
    return Archive(about["model"], arrays), Loss(matrix, classes, actions)
