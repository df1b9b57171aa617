"""Tables larger than memory: rows of a million tasks in Parquet files to counts, and from these to clusters.

    python -m bench.larger make FOLDER ROWS
    python -m bench.larger measure FOLDER

Every value is drawn given the label and the cluster of its task, of which there are twelve. Kernels are compiled before
anything is measured; peaks are those of the measuring process so far.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.measure import peak_gib

N_TASKS, N_CLUSTERS, N_LABELS = 1_000_000, 12, 2
# Number of values of every feature, 59 in all.
N_VALUES = (2, 3, 4, 4, 5, 6, 6, 8, 9, 12)
ROWS_A_FILE = 5_000_000


def value_tables(rng: np.random.Generator) -> list[NDArray[np.uint8]]:
    """The value of a feature for each of 256 equally probable bytes, by cluster and label, in one run of bytes each."""
    tables = []
    for n in N_VALUES:
        share = rng.dirichlet(np.ones(n), size=N_CLUSTERS * N_LABELS).cumsum(axis=1)
        tables.append((np.arange(256)[:, None] / 256 >= share[:, None, :-1]).sum(axis=2).astype(np.uint8).ravel())
    return tables


def make(folder: Path, n_rows: int) -> None:
    """Write files of whole numbers, none of which is held with another."""
    import polars as pl

    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    cluster_of = rng.integers(0, N_CLUSTERS, N_TASKS).astype(np.uint8)
    tables = value_tables(rng)
    for first in range(0, n_rows, ROWS_A_FILE):
        n = min(ROWS_A_FILE, n_rows - first)
        task = rng.integers(0, N_TASKS, n, dtype=np.int32)
        label = rng.integers(0, N_LABELS, n, dtype=np.uint8)
        kind = (cluster_of[task] * np.int32(N_LABELS) + label) * np.int32(256)
        columns: dict[str, Any] = {"task": task, "label": label}
        for f, table in enumerate(tables):
            columns[f"feature_{f}"] = table[kind + rng.integers(0, 256, n, dtype=np.uint8)]
        # As most programs write them: in 64 bits, which are 96 bytes a row once read.
        pl.DataFrame(columns).cast(pl.Int64).write_parquet(folder / f"rows-{first // ROWS_A_FILE:04}.parquet")
    np.save(folder / "clusters.npy", cluster_of)


def timed(what: str, job: Callable[[], Any]) -> Any:
    """What a job gave; prints its seconds and the peak so far."""
    wall, cpu = perf_counter(), process_time()
    result = job()
    wall, cpu = perf_counter() - wall, process_time() - cpu
    peak = peak_gib()
    print(f"{what}: {wall:.1f} s, {cpu:.1f} s of the processor, peak {peak:.2f} GiB", flush=True)
    return result


def measure(folder: Path) -> None:
    """Count the files, fit clusters to the counts, and compare them with those that the rows were drawn from."""
    import polars as pl
    from sklearn.metrics import adjusted_rand_score

    from kinfolk import ClusteredNB, count_rows

    model = ClusteredNB(inference="variational", temper=1.0, random_state=0)
    few = pl.read_parquet(next(iter(sorted(folder.glob("*.parquet")))), n_rows=20_000).with_columns(pl.col("task") % 50)
    model.fit_statistics(count_rows(few, label="label", task="task"))
    size = sum(file.stat().st_size for file in folder.glob("*.parquet")) / 2**20
    n_files = len(list(folder.glob("*.parquet")))
    print(f"{n_files} files, {size:,.0f} MiB", flush=True)
    counts = timed("count_rows", lambda: count_rows(folder, label="label", task="task", verbose=True))
    print(counts, flush=True)
    assert int(counts.statistics.feature_counts.sum()) == counts.n_rows * len(N_VALUES)
    fitted = timed("fit_statistics", lambda: model.fit_statistics(counts))
    truth = np.load(folder / "clusters.npy")[np.asarray(fitted.tasks_, dtype=np.int64)]
    agreement = adjusted_rand_score(truth, fitted.partition_)
    print(f"{len(np.unique(fitted.partition_))} clusters of {N_CLUSTERS}, adjusted Rand index {agreement:.6f}")


def main() -> None:
    """Make the files, or measure."""
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        measure(Path(sys.argv[2]))


if __name__ == "__main__":
    main()
