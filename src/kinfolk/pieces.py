"""Independent pieces of work for joblib: in threads, in processes, or where ``joblib.parallel_config`` sends them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Literal

from joblib import Parallel, wrap_non_picklable_objects


def delayed(function: Callable[..., Any]) -> Callable[..., Any]:
    """As joblib's, for work that may write to its own arrays: Ray would hand over arrays that are read-only.

    Examples
    --------
    >>> Parallel()(delayed(pow)(2, power) for power in (1, 2, 3))
    [2, 4, 8]
    """

    def call(*given: Any, **by_name: Any) -> tuple[Any, tuple[()], dict[str, Any]]:
        return wrap_non_picklable_objects(partial(function, *given, **by_name)), (), {}

    return call


def as_they_come(
    calls: Iterable[Any], n_jobs: int | None = None, prefer: Literal["processes", "threads"] | None = None
) -> Iterator[Any]:
    """Results of delayed calls in their order, each when it is there; from a backend that cannot do that, at the end.

    Examples
    --------
    >>> list(as_they_come(delayed(abs)(number) for number in (-1, 2)))
    [1, 2]
    """
    try:
        run = Parallel(n_jobs=n_jobs, prefer=prefer, return_as="generator")
    except ValueError:  # Ray's
        run = Parallel(n_jobs=n_jobs, prefer=prefer)
    yield from run(calls)
