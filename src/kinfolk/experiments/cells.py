"""Cells of a study, such as one method on one draw, each kept when it is done: a study that was stopped goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from kinfolk.checkpoints import Checkpoint

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
