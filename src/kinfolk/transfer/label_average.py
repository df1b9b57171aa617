"""What averages of classifiers have in common: the way in, answers and why."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from kinfolk.estimator import TaskClassifier
from kinfolk.explanation import Explanation
from kinfolk.tasks.answering import receive_rows
from kinfolk.tasks.keywords import task_by_keyword
from kinfolk.tasks.training import Labelled, receive_labelled
from kinfolk.transfer.averaging import Average, ModelAverage
from kinfolk.transfer.explaining import averaged_parts
from kinfolk.transfer.predictor import AveragedPredictor


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
        parts = averaged_parts(self._average.members, predictor, asked)
        rest = predictor.log_predictive(asked) - parts.label_part - parts.feature_part.sum(axis=1)
        log_parts = parts.label_part, parts.feature_part, rest
        said = self._average.backend, parts.weights
        return Explanation(self.classes_, parts.names, parts.values, *log_parts, *parts.shares, *said)
