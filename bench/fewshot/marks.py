"""Protocols of earlier studies, with the figures that are wanted: ``python -m bench fewshot --marks``.

A protocol draws splits of a set and measures answers as the study does; what came out is kept row by row in
`marks.csv`, so that a run resumes.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from bench.fewshot.measures import Numbers, of_numbers
from bench.fewshot.models import ours
from bench.fewshot.sets import Rows, listed, load

COLUMNS = ("protocol", "model", "split", "value", "coverage", "fit_seconds")
# The nineteen fields of Xue, Liao, Carin and Krishnapuram (2007).
FIELDS = [str(field) for field in (*range(1, 11), *range(16, 25))]
LABELS = ("HierarchicalClassifier", "ClusteredClassifier", "TransferClassifier")
NUMBERS = ("HierarchicalRegressor", "TransferRegressor")

Split = tuple[NDArray[np.intp], NDArray[np.intp]]


class Protocol(NamedTuple):
    """A set, how its rows are split, what is measured, what is wanted and what another model has there."""

    set: str
    split: Callable[[Rows, np.random.Generator], Split]
    measure: Callable[[Rows, Numbers], float]
    models: tuple[str, ...]
    wanted: float
    known: str


def rows_of_tasks(size: int, tasks: list[str] | None = None, stratified: bool = False, most: int = 10**6) -> Any:
    """Splits with so many rows of each task to learn from, and at most so many of its others to judge by."""

    def split(rows: Rows, rng: np.random.Generator) -> Split:
        train, test = list[int](), list[int]()
        for task in tasks or sorted(set(rows.task.tolist())):
            order = rng.permutation(np.flatnonzero(rows.task == task))
            if stratified:
                # As many of the rare label as its rate has, and at least one.
                rare, common = order[rows.y[order] == 1.0], order[rows.y[order] == 0.0]
                n = max(1, round(size * len(rare) / len(order)))
                order = np.concatenate([rare[:n], common[: size - n], rare[n:], common[size - n :]])
            train += order[:size].tolist()
            test += order[size : size + most].tolist()
        return np.array(train), np.array(test)

    return split


def _three_quarters(rows: Rows, rng: np.random.Generator) -> Split:
    order = rng.permutation(len(rows.y))
    n = round(0.75 * len(order))
    return order[:n], order[n:]


def _auc_of_tasks(rows: Rows, answer: Numbers) -> float:
    each = [(rows.y[rows.task == task], answer[rows.task == task]) for task in sorted(set(rows.task.tolist()))]
    return float(np.mean([roc_auc_score(y, p) for y, p in each if 0.0 < y.mean() < 1.0]))


def _explained(rows: Rows, answer: Numbers) -> float:
    return float(100.0 * (1.0 - ((rows.y - answer) ** 2).sum() / ((rows.y - rows.y.mean()) ** 2).sum()))


def _root_error(rows: Rows, answer: Numbers) -> float:
    return float(np.sqrt(((rows.y - answer) ** 2).mean()))


def _mines(size: int, wanted: float, known: str, stratified: bool = False) -> Protocol:
    return Protocol("landmine", rows_of_tasks(size, FIELDS, stratified), _auc_of_tasks, LABELS, wanted, known)


PROTOCOLS: dict[str, Protocol] = {
    "mines, 20 rows a field, mean AUC": _mines(20, 0.76, "0.744"),
    "mines, 20 rows a field with each label in its rate, mean AUC": _mines(20, 0.76, "0.744", stratified=True),
    "mines, 80 rows a field, mean AUC": _mines(80, 0.78, "0.764"),
    "mines, 160 rows a field, mean AUC": _mines(160, 0.79, "0.776"),
    "school, three quarters, explained %": Protocol("school", _three_quarters, _explained, NUMBERS, 39.0, "38.0"),
    "computers, 16 rows, root squared error": Protocol(
        "lenk ratings", rows_of_tasks(16, most=4), _root_error, NUMBERS, 1.80, "1.846"
    ),
}


def run(path: Path, minutes: float, n_splits: int, models: list[str] | None) -> None:
    """Go on with splits that the file lacks until the time is over (processor time)."""
    start, made, loaded = process_time(), ours(), dict[str, Rows]()
    for name, number, model in _missing(path, n_splits, models):
        if process_time() - start > 60.0 * minutes:
            print("the time is over; the next run goes on from here", flush=True)
            return
        protocol = PROTOCOLS[name]
        rows = loaded.setdefault(protocol.set, load(listed()[protocol.set]))
        train, test = protocol.split(rows, np.random.default_rng(number))
        begun = process_time()
        answer = made[model].fit(rows.at(train), number)
        seconds, judged = process_time() - begun, rows.at(test)
        mean, spread = answer(judged)
        covered = "" if spread is None else f"{of_numbers(judged.y, mean, spread)['coverage']:.4f}"
        value = protocol.measure(judged, mean)
        new = not path.exists()
        with path.open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            if new:
                writer.writerow(COLUMNS)
            writer.writerow([name, model, number, f"{value:.6g}", covered, f"{seconds:.4g}"])
        print(name, number, model, f"{value:.4f}", flush=True)


def _missing(path: Path, n_splits: int, models: list[str] | None) -> Iterator[tuple[str, int, str]]:
    done = set[tuple[str, int, str]]()
    if path.exists():
        done = {(r["protocol"], int(r["split"]), r["model"]) for r in pl.read_csv(path).iter_rows(named=True)}
    for number in range(n_splits):
        for name, protocol in PROTOCOLS.items():
            for model in protocol.models:
                if (name, number, model) not in done and (not models or model in models):
                    yield name, number, model


def table(path: Path) -> list[str]:
    """The figures as lines of the page."""
    if not path.exists():
        return []
    found = pl.read_csv(path)
    lines = [
        "## Protocols of earlier studies",
        "",
        "Means over random splits ± their standard error; split k is that of numpy's `default_rng(k)`. In brackets",
        "what a short hierarchical regression has there, on splits that are not known.",
        "",
        "| protocol | wanted | model | found | 90 % intervals cover | splits | fit seconds |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, protocol in PROTOCOLS.items():
        for model in protocol.models:
            its = found.filter((pl.col("protocol") == name) & (pl.col("model") == model))
            if len(its) > 1:
                found_there, covered = _mean(its["value"], ".4g"), _mean(its["coverage"].drop_nulls(), ".3f")
                wanted, seconds = f"{protocol.wanted:g} ({protocol.known})", its["fit_seconds"].to_numpy().mean()
                lines.append(
                    f"| {name} | {wanted} | {model} | {found_there} | {covered} | {len(its)} | {seconds:.2g} |"
                )
    return [*lines, ""]


def _mean(values: pl.Series, how: str) -> str:
    """Mean and standard error; nothing of none."""
    each = values.to_numpy()
    return f"{each.mean():{how}} ± {each.std(ddof=1) / np.sqrt(len(each)):.2g}" if len(each) > 1 else ""
