"""Real sets with many tasks, as ``sets.toml`` lists them, and ``sets_apart.toml`` those on which nothing was chosen."""

from __future__ import annotations

import io
import tarfile
import tomllib
from importlib.util import find_spec
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
    """The entries of both files by name."""
    entries = [entry for name in ("sets.toml", "sets_apart.toml") for entry in _entries(name)]
    return {entry["name"]: entry for entry in entries}


def apart() -> list[str]:
    """Names of the sets on which nothing was chosen."""
    return [entry["name"] for entry in _entries("sets_apart.toml")]


def _entries(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))["set"]
    return found


def load(entry: dict[str, Any]) -> Rows:
    """Read a set; FileNotFoundError where ``KINFOLK_DATA`` does not hold it, or its package is not installed."""
    if entry.get("dataset") == "feederwatch":
        return _feeders()
    if "dataset" in entry:
        found = load_numeric(entry["dataset"]) if entry["dataset"] in _NUMERIC else load_real(entry["dataset"])
        X = found.data
        if not isinstance(X, pl.DataFrame):
            X = pl.DataFrame(X, schema=list(found.feature_names))
        return Rows(X, np.asarray(found.target, dtype=np.float64), np.asarray(found.task).astype(str))
    source = _packed(entry) if "package" in entry else data_file(*entry["file"].split("/"))
    frame = pl.read_csv(source, infer_schema_length=None)
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


def _packed(entry: dict[str, Any]) -> io.BytesIO:
    """A file of the archive that a package brings."""
    spec = find_spec(entry["package"])
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(f"{entry['name']} needs the package {entry['package']}, which is not installed")
    with tarfile.open(Path(spec.submodule_search_locations[0]) / "resources.tar.gz") as archive:
        member = archive.extractfile(f"resources/rdata/csv/{entry['file']}")
        assert member is not None
        return io.BytesIO(member.read())


def _feeders() -> Rows:
    """Lists of birds at feeders: whether the species seen most nearly on half of them was seen, by site."""
    lists = pl.read_csv(data_file("feederwatch_wa_or", "checklists.csv.gz"), infer_schema_length=None)
    with np.load(data_file("feederwatch_wa_or", "counts.npz")) as counts:
        n_lists, n_species = counts["shape"]
        seen = np.zeros((n_lists, n_species), dtype=bool)
        seen[np.repeat(np.arange(n_lists), np.diff(counts["indptr"])), counts["indices"]] = True
    species = int(np.argmin(np.abs(seen.mean(axis=0) - 0.5)))
    X = lists.drop("SUB_ID", "LOC_ID", "LATITUDE", "LONGITUDE", "Year")
    return Rows(X, seen[:, species].astype(np.float64), lists["LOC_ID"].to_numpy())
