"""Rows to learn from and rows to judge by: so many of each task, and tasks of which nothing is learnt.

A split is kept as a file (`splits/SET-SIZE-NUMBER.csv.gz`: the row's place in the set, and "train", "test" or "new"),
so that others can learn from the same rows. A set with published folds has these instead, as size 0.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bench.fewshot.sets import Rows

MOST_TASKS = 100  # to learn; more would measure time rather than few rows
MOST_NEW = 20
MOST_JUDGED = 20  # rows of a task


class Split(NamedTuple):
    """Places of rows: to learn from, of the same tasks to judge by, and of new tasks."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]
    new: NDArray[np.intp]


def draw(rows: Rows, name: str, size: int, number: int) -> Split | None:
    """Draw a split, the same for the same name, size and number; None where fewer than three tasks have enough rows."""
    if rows.fold is not None:
        test = np.flatnonzero(rows.fold == number)
        return Split(np.flatnonzero(rows.fold != number), test, np.zeros(0, dtype=np.intp)) if len(test) else None
    rng = np.random.default_rng([zlib.crc32(name.encode()), size, number])
    places: dict[Any, list[int]] = {}
    for place, task in enumerate(rows.task.tolist()):
        places.setdefault(task, []).append(place)
    enough = [task for task in sorted(places) if len(places[task]) >= size + 2]
    if len(enough) < 3:
        return None
    chosen = [enough[i] for i in rng.permutation(len(enough))]
    n_new = min(MOST_NEW, len(chosen) // 4)
    new, known = chosen[:n_new], chosen[n_new : n_new + MOST_TASKS]
    train, judged, unseen = list[int](), list[int](), list[int]()
    for task in known:
        order = rng.permutation(places[task])
        train += order[:size].tolist()
        judged += order[size : size + MOST_JUDGED].tolist()
    for task in new:
        unseen += rng.permutation(places[task])[:MOST_JUDGED].tolist()
    if len(np.unique(rows.y[train])) < 2:
        return None
    return Split(*(np.array(part, dtype=np.intp) for part in (train, judged, unseen)))


def keep(split: Split, path: Path) -> None:
    """Write a split to a file, unless it is there."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = [pl.DataFrame({"row": places, "part": [part] * len(places)}) for part, places in split._asdict().items()]
    path.write_bytes(zlib_csv(pl.concat([part.cast({"row": pl.Int64}) for part in parts if len(part)])))


def zlib_csv(frame: pl.DataFrame) -> bytes:
    """A frame as compressed CSV, the same bytes for the same frame."""
    import gzip

    return gzip.compress(frame.write_csv().encode(), mtime=0)
