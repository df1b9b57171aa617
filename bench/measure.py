"""Timing two things side by side, and the table that comes of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple


class Comparison(NamedTuple):
    """One measured job: our seconds, a named peer's on the same data in the same run, and what is wanted.

    ``peer_seconds`` is None where there is no peer and the seconds are shown by themselves; ``first_seconds`` is the
    first call, compilation included.
    """

    job: str
    peer: str
    seconds: float
    peer_seconds: float | None
    wanted: str
    first_seconds: float | None = None

    @property
    def ratio(self) -> str:
        """How many times faster than the peer."""
        return "" if self.peer_seconds is None else f"{self.peer_seconds / self.seconds:.1f}×"


def peak_gib() -> float:
    """The most memory that this process has taken, in GiB; NaN where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return float("nan")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**30 if sys.platform == "darwin" else 2**20)


def best_of(job: Callable[[], object], repeats: int = 5) -> float:
    """Seconds of the fastest of several runs: the one that the machine disturbed least."""
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        job()
        seconds.append(perf_counter() - start)
    return min(seconds)


def in_turns(*jobs: Callable[[], object], repeats: int = 9) -> list[float]:
    """Seconds of the fastest run of each of several jobs that take turns, so that all see the same machine."""
    return [min(seconds) for seconds in zip(*([once(job) for job in jobs] for _ in range(repeats)), strict=True)]


def once(job: Callable[[], object]) -> float:
    """Seconds of a single run."""
    return best_of(job, repeats=1)


def shown(seconds: float | None) -> str:
    """A duration with a unit that suits it."""
    if seconds is None:
        return ""
    return f"{seconds * 1e3:.1f} ms" if seconds < 1.0 else f"{seconds:.2f} s"
