"""What averages of classifiers have in common: the way in, answers and why."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from kinfolk.estimator import TaskClassifier
from kinfolk.explanation import Explanation
from kinfolk.tasks.answering import receive_rows
from kinfolk.tasks.keywords import task_by_keyword
from kinfolk.tasks.table import Table
from kinfolk.tasks.training import Labelled, receive_labelled
from kinfolk.transfer.averaging import Average, ModelAverage
from kinfolk.transfer.predictor import AveragedPredictor

_INTERACTIONS = "interactions"


class LabelAverage(TaskClassifier, ClassifierMixin, ModelAverage):
    """Base class; a subclass says which members there are, and how they are weighed."""

    classes_: NDArray[Any]

    def _receive(self, X: Any, y: Any, task: Any, sample_weight: Any) -> Labelled:
        return receive_labelled(
            X,
            y,
            model=type(self).__name__,
            task=task,
            task_column=self.task_column,
            new_tasks=self.new_tasks,
            sample_weight=sample_weight,
            unlabelled=self.unlabelled,
        )

    def _make_predictor(self, average: Average) -> AveragedPredictor:
        assert average.classes is not None
        self.classes_ = average.classes
        members = [member.answers() for member in average.members.values()]
        return AveragedPredictor(members, average.weights, average.n_rows, average.known, average.classes)

    def _predictor(self) -> AveragedPredictor:
        found: AveragedPredictor = ModelAverage._predictor(self)
        return found

    @task_by_keyword
    def explain(self, X: Any, *, task: Any = None) -> Explanation:
        """What each feature added to the log odds of each row, members' explanations averaged by their weights.

        What the logarithm of an average has beyond the average of logarithms is in the remainder; what trees see in
        several features at once is one line, "interactions".

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_features)
        task : array-like of shape (n_rows,), optional
            The task of each row; it may be left out where there is only one, or a column holds it.

        Returns
        -------
        Explanation

        See Also
        --------
        members_ : The models that are averaged.
        """
        predictor = self._predictor()
        asked = receive_rows(X, predictor.known, task=task)
        weights = predictor.weights_of(asked.place)
        parts = [member.explain(asked) for member in self._average.members.values()]
        averaged: dict[str, Any] = {
            field: sum(
                weights[:, m].reshape(-1, *[1] * (getattr(part, field).ndim - 1)) * getattr(part, field)
                for m, part in enumerate(parts)
            )
            for field in parts[0]._fields[:-1]
        }
        # Members without parts of a feature say nothing of whose data stood behind it.
        shares = ("own", "kin", "everybody", "prior")
        total = sum(averaged[share] for share in shares)
        for share in shares:
            averaged[share] = np.divide(averaged[share], total, out=np.zeros_like(total), where=total > 0.0)
        names = list(predictor.feature_names_in_)
        values = next((part.values for part in parts if part.values is not None), None) or _values(asked.table)
        interactions = averaged.pop("interactions")
        if np.any(interactions):
            names, values = [*names, _INTERACTIONS], [[*row, ""] for row in values]
            averaged["feature_part"] = np.concatenate([averaged["feature_part"], interactions[:, None]], axis=1)
            for share in shares:
                # Trees are everybody's.
                averaged[share] = np.column_stack([averaged[share], np.full(len(values), float(share == "everybody"))])
        log_p = predictor.log_predictive(asked)
        remainder = log_p - averaged["label_part"] - averaged["feature_part"].sum(axis=1)
        return Explanation(self.classes_, names, values, remainder=remainder, backend=self._average.backend, **averaged)


def _values(table: Table) -> list[list[str]]:
    """Values of rows as they came, to be read; nothing where one is missing."""
    columns = [
        ["" if value is None or value != value else str(value) for value in each.tolist()] for each in table.columns
    ]
    return [list(row) for row in zip(*columns, strict=True)]
