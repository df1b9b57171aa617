"""A billion rows of a million tasks on one device, from bytes to counts to clusters: ``python -m bench.gpu_rows``.

The rows are those of ``bench.larger``, coded: four bytes of task, one of label and one for each of ten features. They
are drawn on the device and then lie in the machine's memory, column by column, as a reader of files would leave them;
what is timed is their way to the device, the counting there, and the fit from the counts. Needs what ``bench.gpu``
needs. Another number of rows can follow the name.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.gpu import Prior, fit, placed_right, timed
from bench.larger import N_CLUSTERS, N_LABELS, N_TASKS, N_VALUES, value_tables
from kinfolk.partition.variational.torch_counts import TorchCounts, load_torch

N_ROWS = 1_000_000_000
ROWS_AT_ONCE = 1 << 24
# Cells of a task: for each label, the values of every feature side by side.
STARTS = np.concatenate([[0], np.cumsum(N_VALUES)])
N_CELLS = N_LABELS * int(STARTS[-1])
# Tasks whose counts are made again by numpy.
N_CHECKED = 200


class Rows(NamedTuple):
    """Coded rows in the machine's memory, a column an array."""

    task: NDArray[np.int32]
    label: NDArray[np.uint8]
    features: list[NDArray[np.uint8]]


def make_rows(torch: Any, n_rows: int, device: str) -> tuple[Rows, Any]:
    """Rows, and the cluster of every task."""
    torch.manual_seed(0)
    tables = [torch.as_tensor(table, device=device) for table in value_tables(np.random.default_rng(0))]
    cluster_of = torch.randint(N_CLUSTERS, (N_TASKS,), dtype=torch.uint8, device=device)
    rows = Rows(np.empty(n_rows, np.int32), np.empty(n_rows, np.uint8), [np.empty(n_rows, np.uint8) for _ in N_VALUES])
    for first in range(0, n_rows, ROWS_AT_ONCE):
        there = slice(first, min(first + ROWS_AT_ONCE, n_rows))
        n = there.stop - first
        task = torch.randint(N_TASKS, (n,), dtype=torch.int32, device=device)
        label = torch.randint(N_LABELS, (n,), dtype=torch.uint8, device=device)
        kind = (cluster_of[task].int() * N_LABELS + label) * 256
        rows.task[there], rows.label[there] = task.cpu().numpy(), label.cpu().numpy()
        for column, table in zip(rows.features, tables, strict=True):
            column[there] = table[kind + torch.randint(256, (n,), dtype=torch.int32, device=device)].cpu().numpy()
    return rows, cluster_of


def count(torch: Any, rows: Rows, device: str) -> Any:
    """Counts (tasks, cells) of all rows, sent to the device a part at a time."""
    counts = torch.zeros((N_TASKS, N_CELLS), dtype=torch.int32, device=device)
    cells = counts.view(-1)
    one = torch.ones(ROWS_AT_ONCE, dtype=torch.int32, device=device)
    for first in range(0, len(rows.task), ROWS_AT_ONCE):
        part = slice(first, first + ROWS_AT_ONCE)
        columns: list[NDArray[Any]] = [rows.task, rows.label, *rows.features]
        task, label, *features = (torch.as_tensor(column[part]).to(device).long() for column in columns)
        of_label = task * N_CELLS + label * int(STARTS[-1])
        for start, value in zip(STARTS[:-1].tolist(), features, strict=True):
            cells.scatter_add_(0, of_label + (start + value), one[: len(task)])
    return counts


def prior() -> Prior:
    """One pseudo-count for every cell."""
    widths = np.tile(N_VALUES, N_LABELS)
    return Prior(np.concatenate([[0], np.cumsum(widths)]), np.ones(N_CELLS), widths.astype(float))


def counted_by_numpy(rows: Rows) -> NDArray[np.int64]:
    """Counts of the first few tasks, made without the device."""
    its = np.flatnonzero(rows.task < N_CHECKED)
    of_label = rows.task[its].astype(np.int64) * N_CELLS + rows.label[its] * STARTS[-1]
    cells = np.concatenate([of_label + start + v[its] for start, v in zip(STARTS[:-1], rows.features, strict=True)])
    return np.bincount(cells, minlength=N_CHECKED * N_CELLS).reshape(N_CHECKED, N_CELLS)


def main() -> None:
    """Make, count, fit."""
    torch = load_torch()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else N_ROWS
    print(f"torch {torch.__version__} on {name}, numpy {np.__version__}")
    seconds, (rows, cluster_of) = timed(torch, device, lambda: make_rows(torch, n_rows, device))
    size = sum(column.nbytes for column in (rows.task, rows.label, *rows.features)) / 1e9
    print(f"{n_rows:,} rows of {N_TASKS:,} tasks, {size:.1f} GB in memory, made in {seconds:.1f} s", flush=True)
    for run in ("first run", "second run"):
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        to_count, counts = timed(torch, device, partial(count, torch, rows, device))
        to_fit, (clusters, found) = timed(torch, device, partial(fit, TorchCounts(counts, device), prior()))
        peak = f", peak {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB on the device" if device == "cuda" else ""
        right = placed_right(torch, found, cluster_of, len(clusters.sizes))
        print(
            f"  {run}: counted in {to_count:.2f} s, fitted in {to_fit:.2f} s, {len(clusters.sizes)} clusters found of "
            f"{N_CLUSTERS}, {right:.4%} of the tasks in them{peak}",
            flush=True,
        )
    assert int(counts.sum(dtype=torch.int64)) == n_rows * len(N_VALUES)
    assert np.array_equal(counts[:N_CHECKED].cpu().numpy(), counted_by_numpy(rows))
    print(f"  the counts of {N_CHECKED} tasks are those that numpy makes")


if __name__ == "__main__":
    main()
