"""Twenty million rows of Parquet to counts per task, against polars' own group-by over the same file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import NamedTuple

import polars as pl

from bench.measure import Comparison, peak_gib

N_ROWS, N_TASKS, N_LABELS = 20_000_000, 1_000, 2
# Number of values of every feature: seven of text, three of whole numbers.
N_VALUES = (3, 4, 6, 6, 8, 8, 12, 12, 20, 30)
N_TEXT = 7
REPEATS = 2


def make_file(path: Path, n_rows: int) -> None:
    """Write a table without ever holding it: every value is a hash of its row."""
    row = pl.col("row")

    def draw(n: int, seed: int) -> pl.Expr:
        return (row.hash(seed) % n).cast(pl.UInt32)

    def text(n: int, seed: int, word: str) -> pl.Expr:
        return pl.format(f"{word} {{}}", draw(n, seed))

    features = [
        (text(n, f, f"value {f}") if f < N_TEXT else draw(n, f).cast(pl.Int64)).alias(f"feature_{f}")
        for f, n in enumerate(N_VALUES)
    ]
    rows = pl.LazyFrame({"row": pl.int_range(n_rows, dtype=pl.UInt32, eager=True)})
    named = [text(N_TASKS, 100, "person").alias("task"), text(N_LABELS, 101, "answer").alias("label")]
    rows.select(*named, *features).sink_parquet(path)


def group_by_features(path: str) -> int:
    """Count as kinfolk does: per feature, how often each value was seen in each task with each label."""
    rows = pl.scan_parquet(path)
    wanted = [rows.group_by("task", "label", f"feature_{f}").len() for f in range(len(N_VALUES))]
    return sum(int(found["len"].sum()) for found in pl.collect_all(wanted, engine="streaming"))


def group_by_rows(path: str) -> int:
    """Count rows that are alike in everything: one group-by, whose groups are nearly as many as rows."""
    return int(pl.scan_parquet(path).group_by(pl.all()).len().select(pl.len()).collect(engine="streaming").item())


def count(path: str) -> int:
    from kinfolk.tasks.streaming.counting import count_rows

    return int(count_rows(path, label="label", task="task").statistics.feature_counts.sum())


JOBS: dict[str, Callable[[str], int]] = {
    "count": count,
    "group_by_features": group_by_features,
    "group_by_rows": group_by_rows,
}


class Cost(NamedTuple):
    """Least seconds by the clock and of the processor, peak GiB of a process of its own, and the job's result."""

    wall: float
    cpu: float
    peak: float
    result: int


def measure(job: str, path: Path, repeats: int = 1) -> Cost:
    command = [sys.executable, "-m", "bench.counting", job, str(path), str(repeats)]
    # Both read through polars, which gets two threads.
    environment = os.environ | {"POLARS_MAX_THREADS": "2"}
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    return Cost(*json.loads(told))


def run() -> list[Comparison]:
    with TemporaryDirectory(prefix="kinfolk-bench-") as folder:
        path, quarter, few = (Path(folder, f"{name}.parquet") for name in ("rows", "quarter", "few"))
        make_file(path, N_ROWS)
        make_file(quarter, N_ROWS // 4)
        make_file(few, 1_000)
        first = measure("count", few).wall
        peak = measure("count", quarter).peak
        ours = measure("count", path, REPEATS)
        theirs = measure("group_by_features", path, REPEATS)
        whole = measure("group_by_rows", path)
        size = path.stat().st_size / 2**20
    assert ours.result == theirs.result == N_ROWS * len(N_VALUES)
    job = (
        f"count_rows, {N_ROWS:,} rows × {len(N_VALUES)} features of {N_TASKS:,} tasks, {size:.0f} MiB of Parquet: "
        f"peak {ours.peak:.2f} GiB ({peak:.2f} for a quarter of the rows), processor time {ours.cpu:.1f} s"
    )
    wanted = "at least 0.5×, bounded memory"
    peers = {"polars group-by per feature, one query": theirs, "polars group-by of whole rows": whole}
    return [
        Comparison(
            job,
            f"{peer}: peak {cost.peak:.2f} GiB, processor time {cost.cpu:.1f} s",
            ours.wall,
            cost.wall,
            wanted,
            first,
        )
        for peer, cost in peers.items()
    ]


def main() -> None:
    job, path, repeats = sys.argv[1:]
    costs = []
    for _ in range(int(repeats)):
        wall, cpu = perf_counter(), process_time()
        result = JOBS[job](path)
        costs.append((perf_counter() - wall, process_time() - cpu))
    peak = peak_gib()
    print(json.dumps([min(wall for wall, _ in costs), min(cpu for _, cpu in costs), peak, result]))


if __name__ == "__main__":
    main()
