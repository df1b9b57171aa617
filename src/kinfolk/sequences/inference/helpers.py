"""Threads that help with the work of a sweep, and stay between sweeps.

A sweep takes milliseconds, and so may waking a thread that sleeps: a virtual machine's idle processor first has to be
given back to it. So whoever waits looks again and again for a while before it sleeps, as the threads of OpenMP do.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import cache
from queue import SimpleQueue
from threading import Thread
from typing import NamedTuple

import numpy as np

from kinfolk.sequences.model.filtering import reordered

# Looks before a thread sleeps, at less than a nanosecond each: longer than a sweep works in one thread alone.
_LOOKS = 1 << 22


@reordered
def look_for(raised, n_looks, scratch):  # type: ignore[no-untyped-def]
    """Whether another thread raises ``raised[0]`` from zero within so many looks."""
    for i in range(n_looks):
        if raised[0] != 0:
            return True
        # As far as the compiler knows this may be the same place, so that it has to be read again.
        scratch[i & 7] = 0
    return False


class Flag:
    """What one thread raises and another looks for, in lines of the cache of its own."""

    def __init__(self) -> None:
        self._raised, self._scratch = np.zeros(16, dtype=np.int64), np.zeros(16, dtype=np.int64)

    def put(self, up: bool) -> None:
        """Raise it, or lower it."""
        self._raised[0] = up

    def wait(self, n_looks: int = _LOOKS) -> bool:
        """Return when it is up, or when it has taken long; and say which."""
        return bool(look_for(self._raised, n_looks, self._scratch))


class Work(NamedTuple):
    """Something to do, how it ended, and the flag that is raised when it has."""

    do: Callable[[], None]
    outcome: Future[None]
    ended: Flag

    def end(self) -> None:
        """Wait for its end, and raise what went wrong in it; what has not begun by now never will."""
        if not self.outcome.cancel():
            self.ended.wait()
            self.outcome.result()


class Helper:
    """A thread that does some work whenever it is asked to.

    Examples
    --------
    >>> helper = Helper()
    >>> done = []
    >>> work = helper.begin(lambda: done.append(1))
    >>> work.end()
    >>> len(done) == 1 or work.outcome.cancelled()
    True
    """

    def __init__(self) -> None:
        self._work: SimpleQueue[Work] = SimpleQueue()
        self._asked = Flag()
        Thread(target=self._serve, name="kinfolk", daemon=True).start()

    def _serve(self) -> None:
        while True:
            # Lowered before the queue is looked at, and raised after it was filled: nothing in between is missed.
            self._asked.put(False)
            if self._work.empty():
                self._asked.wait()
            work = self._work.get()
            if work.outcome.set_running_or_notify_cancel():
                try:
                    work.do()
                    work.outcome.set_result(None)
                except BaseException as error:
                    work.outcome.set_exception(error)
            work.ended.put(True)
            # What was worked on is not kept alive until there is more.
            del work

    def begin(self, do: Callable[[], None]) -> Work:
        """Hand over some work, which is begun when what was handed over before has ended."""
        work = Work(do, Future(), Flag())
        self._work.put(work)
        self._asked.put(True)
        return work


@cache
def helpers(n: int, process: int) -> tuple[Helper, ...]:
    """So many helpers, for whoever in this process asks for as many; one that was forked has none of its parent's."""
    return tuple(Helper() for _ in range(n))
