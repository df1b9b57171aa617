"""Real sets with many tasks, as ``sets.toml`` lists them."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from kinfolk.datasets import load_numeric, load_real
from kinfolk.datasets.real import data_file

_NUMERIC = ("landmine", "lenk_likes", "lenk_ratings", "school", "parkinsons")


class Rows(NamedTuple):
    """Features, targets (0.0 and 1.0, or numbers) and tasks; ``fold`` where a set comes with published folds."""

    X: pl.DataFrame
    y: NDArray[np.float64]
    task: NDArray[Any]
    fold: NDArray[np.int64] | None = None

    def at(self, places: NDArray[np.intp]) -> Rows:
        """Some of the rows."""
        return Rows(self.X[places], self.y[places], self.task[places])


def listed() -> dict[str, dict[str, Any]]:
    """The entries of ``sets.toml`` by name."""
    entries = tomllib.loads(Path(__file__).with_name("sets.toml").read_text(encoding="utf-8"))["set"]
    return {entry["name"]: entry for entry in entries}


def load(entry: dict[str, Any]) -> Rows:
    """Read a set; FileNotFoundError where ``KINFOLK_DATA`` does not hold it."""
    if "dataset" in entry:
        found = load_numeric(entry["dataset"]) if entry["dataset"] in _NUMERIC else load_real(entry["dataset"])
        X = found.data
        if not isinstance(X, pl.DataFrame):
            X = pl.DataFrame(X, schema=list(found.feature_names))
        return Rows(X, np.asarray(found.target, dtype=np.float64), np.asarray(found.task).astype(str))
    frame = pl.read_csv(data_file(*entry["file"].split("/")), infer_schema_length=None)
    label = frame[entry["label"]]
    if "at_least" in entry:
        y = (label >= entry["at_least"]).cast(pl.Float64)
    else:
        y = (label == entry["positive"]).cast(pl.Float64) if "positive" in entry else label.cast(pl.Float64)
    task = frame[entry["task"]].cast(pl.String).to_numpy()
    X = frame.drop(entry["task"], entry["label"], *entry.get("drop", ()))
    if "categories" in entry:
        X = X.with_columns(pl.col(entry["categories"]).cast(pl.String))
    if "missing" in entry:
        X = X.with_columns(pl.col(pl.String).replace(entry["missing"], None))
    fold = None
    if "folds" in entry:
        fold = pl.read_csv(data_file(*entry["folds"].split("/"))).to_series().to_numpy().astype(np.int64)
    return Rows(X, y.to_numpy(), task, fold)
