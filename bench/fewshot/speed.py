"""How long TransferClassifier takes to fit beside CatBoost with 1,000 trees: ``python -m bench fewshot --speed``.

Both are warm, have one thread, and learn from the same rows in the same run; seconds are processor time, the lesser of
two fits where a fit is short. Beside some of the sets there are made-up tasks, of eight kinds, in columns of four
values.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from bench.fewshot.sets import Rows, listed, load
from bench.fewshot.splits import draw

COLUMNS = ("data", "tasks", "rows", "columns", "ours", "catboost")
SETS = (("contraception", 16), ("bank", 8), ("insteval by lecturer", 16), ("chem97 by school", 8), ("landmine", 32),
        ("adult by country", 16), ("adult by occupation", 64))  # fmt: skip
MADE_UP = ((100, 20), (100, 100), (1_000, 100))  # tasks, and rows of each
N_COLUMNS, N_VALUES, N_KINDS, CONCENTRATION, N_TREES = 15, 4, 8, 4.0, 1_000
_SHORT = 5.0  # seconds below which a fit is made twice


def made_up(n_tasks: int, n_rows: int, seed: int = 0) -> Rows:
    """Tasks of eight kinds, each with rates of its own of every column's values given the label."""
    rng = np.random.default_rng(seed)
    rates = rng.dirichlet(np.full(N_VALUES, CONCENTRATION), (N_KINDS, 2, N_COLUMNS)).cumsum(axis=-1)
    kind, task = rng.integers(N_KINDS, size=n_tasks), np.repeat(np.arange(n_tasks), n_rows)
    y = rng.integers(2, size=len(task))
    drawn = (rng.random((len(task), N_COLUMNS, 1)) > rates[kind[task], y]).sum(axis=-1).clip(max=N_VALUES - 1)
    values: NDArray[Any] = np.array(list("abcd"))[drawn]
    X = pl.DataFrame({f"column {j}": values[:, j] for j in range(N_COLUMNS)})
    return Rows(X, y.astype(np.float64), np.char.add("t", task.astype(str)))


def tables() -> Iterator[tuple[str, Rows]]:
    """Rows to learn from, by name."""
    for name, size in SETS:
        rows = load(listed()[name])
        split = draw(rows, name, size, 0)
        if split is not None:
            yield f"{name}, {size} rows a task", rows.at(split.train)
    for n_tasks, n_rows in MADE_UP:
        yield f"made up, {n_tasks:,} tasks of {n_rows} rows", made_up(n_tasks, n_rows)


def run(path: Path, minutes: float) -> None:
    """Measure tables that the file lacks until the time is over (processor time)."""
    start, done = process_time(), set[str]()
    if path.exists():
        done = set(pl.read_csv(path)["data"].to_list())
    for rows in (made_up(20, 20, seed=1), load(listed()["heart by hospital"])):
        _ours(rows)
        _catboost(rows)
    for name, rows in tables():
        if name in done:
            continue
        if process_time() - start > 60.0 * minutes:
            print("the time is over; the next run goes on from here", flush=True)
            return
        ours, peer = _seconds(_ours, rows), _seconds(_catboost, rows)
        new = not path.exists()
        with path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            if new:
                writer.writerow(COLUMNS)
            n_tasks = len(set(rows.task.tolist()))
            writer.writerow([name, n_tasks, len(rows.y), rows.X.width, f"{ours:.3g}", f"{peer:.3g}"])
        print(name, f"{ours:.2f} {peer:.2f}", flush=True)


def _seconds(fit: Callable[[Rows], None], rows: Rows) -> float:
    start = process_time()
    fit(rows)
    first = process_time() - start
    if first > _SHORT:
        return first
    fit(rows)
    return min(first, process_time() - start - first)


def _ours(rows: Rows) -> None:
    from kinfolk import TransferClassifier

    TransferClassifier(random_state=0, n_jobs=1, verbose=False).fit(rows.X, rows.y.astype(int), task=rows.task)


def _catboost(rows: Rows) -> None:
    import catboost

    text = [c for c in rows.X.columns if not rows.X[c].dtype.is_numeric()]
    columns = [
        (rows.X[c].cast(pl.String).fill_null("?") if c in text else rows.X[c].cast(pl.Float64)).to_list()
        for c in rows.X.columns
    ]
    table = [list(row) for row in zip(*columns, rows.task.tolist(), strict=True)]
    places = [rows.X.columns.index(c) for c in text] + [len(columns)]
    settings = {"verbose": False, "allow_writing_files": False, "random_seed": 0, "thread_count": 1}
    model = catboost.CatBoostClassifier(iterations=N_TREES, **settings)
    model.fit(catboost.Pool(table, rows.y, cat_features=places))


def table(path: Path) -> list[str]:
    """The seconds as lines of the page."""
    if not path.exists():
        return []
    found = pl.read_csv(path)
    ratio = np.exp(np.log((found["ours"] / found["catboost"]).to_numpy()).mean())
    less = int((found["ours"] <= found["catboost"]).sum())
    lines = [
        "## Time to fit",
        "",
        "Processor seconds of `TransferClassifier` and of CatBoost with 1,000 trees and the task as a category, one",
        "thread each, warm, on the same rows, in one run (`python -m bench fewshot --speed`). Ours takes no longer on",
        f"{less} of {len(found)} tables; the geometric mean of the ratios is {ratio:.2f}.",
        "",
        "| data | tasks | rows | columns | **TransferClassifier** | CatBoost, 1,000 trees | ratio |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in found.iter_rows(named=True):
        sizes = f"{row['tasks']:,} | {row['rows']:,} | {row['columns']}"
        seconds = f"{row['ours']:.3g} | {row['catboost']:.3g} | {row['ours'] / row['catboost']:.2f}"
        lines.append(f"| {row['data']} | {sizes} | {seconds} |")
    return [*lines, ""]
