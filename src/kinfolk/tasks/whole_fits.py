"""A fit that fails midway leaves the estimator as it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Take back all that was learnt inside if it ends with an error.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> model = SimpleNamespace(learnt=1)
    >>> try:
    ...     with all_or_nothing(model):
    ...         model.learnt = 2
    ...         raise ValueError
    ... except ValueError:
    ...     print(model.learnt)
    1
    """
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise
