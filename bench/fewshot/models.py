"""Our models, taken by name: one that this state of kinfolk lacks is skipped, and another is one more line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import kinfolk
from bench.fewshot.encoding import Encoder
from bench.fewshot.measures import Numbers
from bench.fewshot.sets import Rows

# What a fit leaves: from rows (whose targets it does not look at) to answers, and their spread where there is one:
# standard deviations, or quantiles at 0.05 and 0.95.
Answer = Callable[[Rows], tuple[Numbers, Numbers | None]]
Fit = Callable[[Rows, int], Answer]


class Model(NamedTuple):
    """A way to learn: for which kind of target, from which package (none for ours)."""

    kind: str
    fit: Fit
    package: str = ""


def ours() -> dict[str, Model]:
    """The models of kinfolk that are here."""
    return {
        label: Model(kind, _estimator(name, kind, encoded, parameters))
        for label, kind, name, encoded, parameters in _TABLE
        if hasattr(kinfolk, name)
    }


_TABLE: tuple[tuple[str, str, str, bool, dict[str, Any]], ...] = (
    ("TransferClassifier", "classification", "TransferClassifier", False, {}),
    ("AveragedNB", "classification", "AveragedNB", False, {}),
    ("ClusteredNB", "classification", "ClusteredNB", False, {}),
    ("LICA eb", "classification", "LICAClassifier", True, {}),
    ("HierarchicalClassifier", "classification", "HierarchicalClassifier", False, {}),
    ("ClusteredClassifier", "classification", "ClusteredClassifier", False, {}),
    ("TransferRegressor", "regression", "TransferRegressor", False, {}),
    ("HierarchicalRegressor", "regression", "HierarchicalRegressor", False, {}),
    ("LICA eb, numbers", "regression", "LICARegressor", True, {}),
)


def _estimator(name: str, kind: str, encoded: bool, parameters: dict[str, Any]) -> Fit:
    def fit(train: Rows, seed: int) -> Answer:
        settings = {"new_tasks": "expected"} | parameters
        builder = getattr(kinfolk, name)
        taken = builder._get_param_names()
        settings |= {"random_state": seed} if "random_state" in taken else {}
        encoder = Encoder().fit(train) if encoded else None
        look = (lambda rows: rows.X) if encoder is None else encoder.transform
        y = train.y.astype(int) if kind == "classification" else train.y
        model = builder(**settings).fit(look(train), y, task=train.task)

        def answer(rows: Rows) -> tuple[Numbers, Numbers | None]:
            if kind == "classification":
                return np.asarray(model.predict_proba(look(rows), task=rows.task))[:, 1], None
            if hasattr(model, "predict_quantiles"):
                ends = model.predict_quantiles(look(rows), [0.05, 0.95], task=rows.task)
                return np.asarray(model.predict(look(rows), task=rows.task)), np.asarray(ends)
            mean, spread = model.predict(look(rows), task=rows.task, return_std=True)
            return np.asarray(mean), np.asarray(spread)

        return answer

    return fit
