"""Work in threads, cut into pieces that do not depend on how many threads there are; so neither do results."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from threading import Event
from typing import Protocol, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

Item = TypeVar("Item")
Result = TypeVar("Result")

# A piece of work is so many steps or items, unless one item alone has more: some milliseconds, next to which what it
# takes to hand it over is little. Where pieces taper they have twice as many steps to begin with.
_STEPS, _ITEMS = 1 << 11, 128
_MOST_STEPS, _LEAST_STEPS = 1 << 12, 1 << 11


class Parallel(Protocol):
    """Calls a function with every item, in any order, and gives the results in the order of the items."""

    def __call__(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Results of ``function`` for ``items``."""
        ...


def one_by_one(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """A `Parallel` without threads."""
    return [function(item) for item in items]


@contextmanager
def threads(n_jobs: int | None = 1) -> Iterator[Parallel]:
    """A `Parallel` that has as many threads as joblib would start workers.

    Examples
    --------
    >>> with threads(2) as parallel:
    ...     parallel(abs, [-1, 2, -3])
    [1, 2, 3]
    """
    n_threads = effective_n_jobs(n_jobs)
    if n_threads == 1:
        yield one_by_one
        return
    pool = _pool(n_threads - 1, os.getpid())

    def parallel(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        given = list(items)
        results: dict[int, Result] = {}
        # Shared by the threads: each takes the next item that nobody has taken.
        places = iter(range(len(given)))
        stopped = Event()

        def work() -> None:
            try:
                for place in places:
                    if stopped.is_set():
                        return
                    results[place] = function(given[place])
            except BaseException:
                # Whatever went wrong, nobody begins another item; the caller's Ctrl-C comes by here too.
                stopped.set()
                raise

        begun = [pool.submit(work) for _ in range(min(n_threads, len(given)) - 1)]
        try:
            # The thread that asks for the work does its share of it, so that nobody waits to be woken.
            work()
        finally:
            # Of those that have not begun by now none will, and nobody is left at work when the call ends.
            running = [part for part in begun if not part.cancel()]
            wait(running)
        for part in running:
            part.result()
        return [results[place] for place in range(len(given))]

    yield parallel


@cache
def _pool(n_threads: int, process: int) -> ThreadPoolExecutor:
    """Threads that stay between sweeps, for whoever in this process asks for as many; a forked one has its own."""
    return ThreadPoolExecutor(n_threads, thread_name_prefix="kinfolk")


def pieces(bounds: NDArray[np.int64], most_steps: int = _STEPS, most_items: int = _ITEMS) -> Iterator[tuple[int, int]]:
    """Cut items into runs ``first:last`` of at most so many steps and items; item i ends at step ``bounds[i + 1]``.

    Examples
    --------
    >>> list(pieces(np.array([0, 500, 900, 4000, 4100])))
    [(0, 2), (2, 3), (3, 4)]
    """
    first, n_items = 0, len(bounds) - 1
    while first < n_items:
        reached = int(np.searchsorted(bounds, bounds[first] + most_steps, side="right")) - 1
        last = min(max(reached, first + 1), first + most_items, n_items)
        yield first, last
        first = last


def tapering(bounds: NDArray[np.int64], times: int = 1) -> Iterator[tuple[int, int]]:
    """Cut items as `pieces` does, a step of work being counted so many times in ``bounds``, into ever shorter runs.

    Each has at most half of the work that is left, so that nobody waits long for whoever has the last; and they are
    fewer than short ones of equal length.

    Examples
    --------
    >>> [last - first for first, last in tapering(np.arange(13) * 1000)]
    [4, 4, 2, 2]
    """
    first, n_items = 0, len(bounds) - 1
    while first < n_items:
        left = int(bounds[-1] - bounds[first])
        steps = min(_MOST_STEPS * times, max(_LEAST_STEPS, left // 2))
        _, taken = next(pieces(bounds[first:], steps, _ITEMS * times))
        yield first, first + taken
        first += taken


def seeds(rng: np.random.Generator, n: int) -> list[int]:
    """Seeds for the generators of n pieces of work, given by where ``rng`` stands.

    Each piece makes its own generator: that takes as long as a small piece does, and other threads work meanwhile.
    """
    seeds_of_pieces: list[int] = rng.integers(1 << 63, size=n).tolist()
    return seeds_of_pieces
