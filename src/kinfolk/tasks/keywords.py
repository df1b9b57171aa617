"""Arguments that are to be given by keyword, and are still taken by their place for one version."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])


def task_by_keyword(method: Method) -> Method:
    """Take a task that is given by its place after the table all the same, and warn.

    Examples
    --------
    >>> class Model:
    ...     @task_by_keyword
    ...     def predict(self, X, *, task=None):
    ...         return task
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     Model().predict([[1]], "ann")
    'ann'
    """

    @wraps(method)
    def with_task(self: Any, X: Any, *by_place: Any, **by_name: Any) -> Any:
        if len(by_place) == 1 and "task" not in by_name:
            warnings.warn(
                f"{method.__name__}(X, task) is going away: write {method.__name__}(X, task=...)",
                FutureWarning,
                stacklevel=2,
            )
            return method(self, X, task=by_place[0], **by_name)
        return method(self, X, *by_place, **by_name)

    return with_task  # type: ignore[return-value]


def third_by_keyword(score: Method) -> Method:
    """Refuse a third argument of ``score`` that is given by its place: it meant the task before, and means weights now.

    Examples
    --------
    >>> class Model:
    ...     @third_by_keyword
    ...     def score(self, X, y, sample_weight=None, *, task=None):
    ...         return sample_weight, task
    >>> Model().score([[1]], [0], task=["ann"])
    (None, ['ann'])
    """

    @wraps(score)
    def with_names(self: Any, X: Any, y: Any, *by_place: Any, **by_name: Any) -> Any:
        if by_place:
            raise TypeError(
                "score(X, y, ...) takes further arguments by their names alone: sample_weight= for the weights of the "
                "rows, task= for their tasks"
            )
        return score(self, X, y, **by_name)

    return with_names  # type: ignore[return-value]
