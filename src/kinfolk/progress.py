"""A progress bar on standard error for anything that takes more than a few seconds."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Lock, Thread
from time import monotonic

# Seconds between two looks at what other processes have done.
_PAUSE = 0.1
# Seconds of work that are not worth a bar.
_PATIENCE = 1.0
# Held by whoever shows a bar, of which there can be but one.
_free = Lock()


@contextmanager
def progress_bar(what: str, total: int | None, verbose: bool | None) -> Iterator[Callable[[int], None]]:
    """Give a function to call with the number of steps just done; it may be called from any thread.

    ``total`` is None where nobody knows how many steps there will be, ``verbose`` where nobody said whether to
    show it (:func:`progress_wanted`). On a terminal a bar waits until the work has taken a second, and within work that
    has a bar there is no other.
    """
    if not progress_wanted(verbose) or not _free.acquire(blocking=False):
        yield no_progress
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task(what, total=total)
    shown_from = monotonic() + (_PATIENCE if console.is_terminal else 0.0)

    def advance(steps: int) -> None:
        bar.advance(task, steps)
        if not bar.live.is_started and monotonic() >= shown_from:
            bar.start()

    try:
        advance(0)
        yield _Here(advance)
    finally:
        bar.stop()
        _free.release()


@dataclass(frozen=True)
class _Here:
    """Moves a bar of this process; what it becomes in another one, on a cluster say, takes no notice of steps."""

    advance: Callable[[int], None]

    def __call__(self, steps: int) -> None:
        self.advance(steps)

    def __reduce__(self) -> tuple[Callable[[], Callable[[int], None]], tuple[()]]:
        return _elsewhere, ()


def _elsewhere() -> Callable[[int], None]:
    return no_progress


def progress_wanted(verbose: bool | None) -> bool:
    """Whether to show progress: as somebody said, else on a terminal, from the process that he looks at."""
    if verbose is not None:
        return bool(verbose)
    return sys.stderr is not None and sys.stderr.isatty() and multiprocessing.parent_process() is None


def no_progress(steps: int) -> None:
    """Take no notice of steps."""


@dataclass(frozen=True)
class _Tally:
    """Counts steps wherever it is called, by a file that grows by a byte for each; it can be sent to processes.

    On another machine there is no such file, and nobody to be told.
    """

    path: Path

    def __call__(self, steps: int) -> None:
        with suppress(FileNotFoundError), self.path.open("ab") as file:
            file.write(b"." * steps)

    @property
    def total(self) -> int:
        return self.path.stat().st_size


@contextmanager
def told_by_processes(advance: Callable[[int], None]) -> Iterator[Callable[[int], None]]:
    """Give a function like ``advance`` that other processes may call; what it is told reaches ``advance`` here.

    Examples
    --------
    >>> told = []
    >>> with told_by_processes(told.append) as tell:
    ...     tell(2)
    ...     tell(3)
    >>> sum(told)
    5
    """
    if advance is no_progress:
        yield advance
        return
    with TemporaryDirectory(prefix="kinfolk-") as folder:
        tally, finished = _Tally(Path(folder) / "steps"), Event()
        tally(0)

        def pass_on() -> None:
            told, last = 0, False
            while not last:
                # Asked first, so that the last look comes after the last step.
                last = finished.wait(_PAUSE)
                total = tally.total
                if total > told:
                    advance(total - told)
                    told = total

        messenger = Thread(target=pass_on, daemon=True)
        messenger.start()
        try:
            yield tally
        finally:
            finished.set()
            messenger.join()
