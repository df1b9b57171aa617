"""One model on one split, and a file of results that a run goes on with where it stopped.

Cells go split by split, size by size, set by set, with all models of a set one after the other: what is there after any
time compares all models on the same rows.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from bench.fewshot.measures import BY_TASK, CLASSIFICATION, REGRESSION, of_numbers, of_probabilities
from bench.fewshot.models import Model
from bench.fewshot.sets import Rows
from bench.fewshot.splits import Split

KEYS = ("set", "size", "split", "model")
COLUMNS = (
    *KEYS,
    *("kind", "part", "tasks", "train_rows", "judged_rows"),
    *CLASSIFICATION,
    *REGRESSION,
    *("fit_seconds", "predict_seconds", "error", BY_TASK),
)


class Cell(NamedTuple):
    """A set, the rows of a task to learn from (0: a published fold), the number of the split, and a model."""

    set: str
    size: int
    split: int
    model: str


def in_order(
    sets: dict[str, dict[str, Any]], sizes: Sequence[int], n_splits: int, models: dict[str, Model]
) -> Iterator[Cell]:
    """All cells; published folds, whose sets are large, come after everything else."""
    for split in range(n_splits):
        for size in sizes:
            for name, entry in sets.items():
                if "folds" not in entry:
                    yield from (
                        Cell(name, size, split, m) for m, model in models.items() if model.kind == entry["kind"]
                    )
    for fold in range(5):
        for name, entry in sets.items():
            if "folds" in entry:
                yield from (Cell(name, 0, fold, m) for m, model in models.items() if model.kind == entry["kind"])


def read_done(path: Path) -> set[Cell]:
    """Cells that the file has; a last line that a killed run left half is cut off."""
    if not path.exists():
        return set()
    text = path.read_bytes()
    if not text.endswith(b"\n"):
        path.write_bytes(text[: text.rfind(b"\n") + 1])
    with path.open(newline="", encoding="utf-8") as lines:
        return {Cell(row["set"], int(row["size"]), int(row["split"]), row["model"]) for row in csv.DictReader(lines)}


def add(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Append the rows of one cell in one write, so that it is there whole or not at all."""
    new = not path.exists() or path.stat().st_size == 0
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [",".join(COLUMNS)] if new else []
    lines += [",".join(_written(row.get(column, "")) for column in COLUMNS) for row in rows]
    with path.open("ab", buffering=0) as file:
        file.write(("\n".join(lines) + "\n").encode())
        os.fsync(file.fileno())


def _written(value: Any) -> str:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.6g}"
    text = str(value)
    return '"' + text.replace('"', "'").replace("\n", " ") + '"' if "," in text or "\n" in text else text


def run(cell: Cell, model: Model, rows: Rows, split: Split) -> list[dict[str, Any]]:
    """Learn, answer, judge: a row of results for rows of the same tasks and one for those of new tasks.

    Seconds are processor time. A model that fails has a row with the error's first line and no measures.
    """
    train = rows.at(split.train)
    about = cell._asdict() | {"kind": model.kind, "tasks": len(set(train.task.tolist())), "train_rows": len(train.y)}
    try:
        start = process_time()
        answer = model.fit(train, cell.split)
        about["fit_seconds"] = process_time() - start
        found = []
        for part, places in (("test", split.test), ("new", split.new)):
            if not len(places):
                continue
            judged = rows.at(places)
            start = process_time()
            mean, spread = answer(judged._replace(y=np.full(len(places), np.nan)))
            seconds = process_time() - start
            if not np.isfinite(mean).all():
                raise ValueError("answers that are no numbers")
            if model.kind == "classification":
                measured = of_probabilities(judged.y, mean)
            else:
                measured = of_numbers(judged.y, mean, spread, judged.task)
            found.append(about | {"part": part, "judged_rows": len(places), "predict_seconds": seconds} | measured)
    except Exception as error:  # a peer may fail in any way; that is a result too
        return [about | {"part": "test", "error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}]
    return found
