"""Cells of a study, such as one method on one draw, each kept when it is done: a study that was stopped goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

from joblib import delayed

from kinfolk.checkpoints import Checkpoint
from kinfolk.pieces import as_they_come

Cell = TypeVar("Cell")
# Where the study at work keeps its cells; not by thread, since cells have threads of their own.
_open = Checkpoint()


@contextmanager
def kept_in(folder: Path, *depends_on: Any) -> Iterator[None]:
    """Keep the cells of a study that depends on these values in a folder."""
    global _open
    before, _open = _open, Checkpoint(folder).of(*depends_on)
    try:
        yield
    finally:
        _open = before


def checkpoint() -> Checkpoint:
    """Where the study at work keeps its cells, for those that are made in other processes or keep them themselves."""
    return _open


def cell(work: Callable[[], Cell], *depends_on: Any) -> Cell:
    """What a cell holds: as it was kept, or else as it is measured now, which is kept.

    Examples
    --------
    >>> import tempfile
    >>> with kept_in(Path(tempfile.mkdtemp()), "a study", 0):
    ...     cell(lambda: {"method": "ours", "score": 0.75}, "ours", 1)
    {'method': 'ours', 'score': 0.75}
    """
    return _open.done(work, *depends_on)


def cells(
    work: Callable[..., Cell],
    jobs: Iterable[tuple[Any, ...]],
    n_jobs: int | None = None,
    prefer: Literal["processes", "threads"] | None = None,
) -> Iterator[Cell]:
    """What the cells of many jobs hold, in their order, one after the other or as ``joblib.parallel_config`` has it.

    Parameters
    ----------
    work : callable
        Measures a job, and is given its values.
    jobs : iterable of tuple
        What each is kept by, all that its result depends on beside the study and its seed.
    n_jobs, prefer
        As joblib has them.

    Examples
    --------
    >>> list(cells(pow, [(2, 3), (3, 2)]))
    [8, 9]
    """
    kept = _open
    return as_they_come((delayed(kept.done)(partial(work, *job), *job) for job in jobs), n_jobs, prefer)
