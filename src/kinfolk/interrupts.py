"""Ctrl-C once ends long work at its next safe point with what there is by then, and twice at once.

Work with safe points opens ``stops_safely()``, whose value it asks before every sweep, iteration or piece. Where that
says so, it writes down where it stands, if it keeps checkpoints, and returns what it has, marked as interrupted; or it
raises KeyboardInterrupt where that would be nothing. Ctrl-C anywhere else is KeyboardInterrupt, as everywhere.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import Any, NamedTuple, Protocol, TypeVar


class Stop(NamedTuple):
    """Whether work is to end: a file that is there when it is, so that threads and other processes see it alike."""

    path: str = ""

    def asked(self) -> bool:
        """Whether work is to end at its next safe point."""
        return self.path != "" and os.path.exists(self.path)

    def ask(self) -> None:
        """Let all work end that asks this."""
        if not self.asked():
            Path(self.path).touch()
            atexit.register(Path(self.path).unlink, missing_ok=True)


# What the main thread's work asks, while it has safe points.
_open: Stop | None = None


def asked() -> bool:
    """Whether the work with safe points that this is a part of is to end; work without any is never asked to."""
    return _open is not None and _open.asked()


class Interruptible(Protocol):
    """An estimator whose fit can be cut short."""

    @property
    def interrupted_(self) -> bool:
        """Whether it was."""


Estimator = TypeVar("Estimator", bound=Interruptible)
NEVER = Stop()


@contextmanager
def stops_safely(wanted: bool = True) -> Iterator[Stop]:
    """Give what tells whether Ctrl-C was pressed; work within such work, in threads of its own too, has the same.

    If the work ends by an error, or by Ctrl-C pressed twice, what still runs in other threads and processes is asked to
    end too.
    """
    global _open
    if _open is not None:
        yield _open
        return
    before = signal.getsignal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else None
    if not wanted or not callable(before):
        yield NEVER
        return
    stop = _open = Stop(os.path.join(tempfile.gettempdir(), f"kinfolk-{os.getpid()}-{token_hex(8)}.stop"))

    def pressed(number: int, frame: Any) -> None:
        if stop.asked():
            raise KeyboardInterrupt
        stop.ask()

    signal.signal(signal.SIGINT, pressed)
    try:
        yield stop
    except BaseException:
        stop.ask()
        raise
    finally:
        _open = None
        signal.signal(signal.SIGINT, before)


@contextmanager
def left_to_parent(stop: Stop) -> Iterator[None]:
    """Let a child process take no notice of Ctrl-C, which a terminal sends to all: its parent asks it to stop."""
    is_main = threading.current_thread() is threading.main_thread()
    if stop == NEVER or not is_main or multiprocessing.parent_process() is None:
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def raise_if_interrupted(estimator: Estimator) -> Estimator:
    """Tell whoever called a fit that it was cut short, once what there is is on the estimator."""
    if estimator.interrupted_:
        raise KeyboardInterrupt
    return estimator


def equally_long(n_draws: Sequence[int]) -> tuple[list[int], int]:
    """Which chains to keep, and how many draws of each, so that all have as many and there are most in all.

    Where chains were stopped before any had a draw, nothing is left but KeyboardInterrupt.

    Examples
    --------
    >>> equally_long([50, 50, 50])
    ([0, 1, 2], 50)
    >>> equally_long([50, 30, 2, 0])
    ([0, 1], 30)
    """
    longest = sorted(n_draws, reverse=True)
    n = max(longest, key=lambda each: each * sum(other >= each for other in longest))
    if n == 0:
        raise KeyboardInterrupt
    return [chain for chain, other in enumerate(n_draws) if other >= n], n
