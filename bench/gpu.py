"""Variational clustering of a million to a hundred million tasks on one device: ``python -m bench.gpu [sizes…]``.

Stands alone: it needs numpy, scipy, torch and this repository's ``src`` on the path, and neither numba nor polars nor
scikit-learn. Counts are made on the device. What is timed is the fit from counts that are there (start, births, merges,
sweeps, and the most probable cluster of every task, which stays there); the way from host to device is timed apart.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.partition.variational.mean_field import Clusters, expectations
from kinfolk.partition.variational.mixture import fit_clusters
from kinfolk.partition.variational.torch_counts import TorchCounts, load_torch

N_ROWS, N_LABELS, N_FEATURES, N_VALUES, N_CLUSTERS = 100, 2, 15, 6, 12
N_CELLS = N_LABELS * N_FEATURES * N_VALUES
SIZES = (1_000_000, 10_000_000, 100_000_000)
MAX_TRANSFER = 10_000_000  # tasks whose counts are also made to travel
MADE_AT_ONCE = 1 << 20


class Prior(NamedTuple):
    """One pseudo-count for every cell."""

    group_start: NDArray[np.int64] = np.arange(0, N_CELLS + 1, N_VALUES)
    prior: NDArray[np.float64] = np.ones(N_CELLS)
    group_prior: NDArray[np.float64] = np.full(N_LABELS * N_FEATURES, float(N_VALUES))


def make_counts(torch: Any, n_tasks: int, device: str, seed: int = 0) -> tuple[Any, Any]:
    """Counts of tasks in a few true clusters, one byte each, and the clusters."""
    torch.manual_seed(seed)
    rates = np.random.default_rng(seed).dirichlet(np.ones(N_VALUES), size=(N_CLUSTERS, N_LABELS, N_FEATURES))
    # The probability of a value among those that are left: counts are drawn value by value.
    left = rates[..., ::-1].cumsum(axis=-1)[..., ::-1]
    odds = torch.as_tensor((rates / left).clip(0.0, 1.0), dtype=torch.float32, device=device)
    counts = torch.empty((n_tasks, N_CELLS), dtype=torch.uint8, device=device)
    truth = torch.randint(N_CLUSTERS, (n_tasks,), dtype=torch.uint8, device=device)
    for first in range(0, n_tasks, MADE_AT_ONCE):
        cluster = truth[first : first + MADE_AT_ONCE].long()
        # Beta(2, 2) is the middle one of three uniforms.
        positive_rate = torch.rand((len(cluster), 3), device=device).median(dim=1).values
        positive = torch.binomial(torch.full_like(positive_rate, N_ROWS), positive_rate)
        rows = torch.stack([N_ROWS - positive, positive], dim=1)[:, :, None].repeat(1, 1, N_FEATURES)
        block = counts[first : first + MADE_AT_ONCE].view(-1, N_LABELS, N_FEATURES, N_VALUES)
        for value in range(N_VALUES - 1):
            drawn = torch.binomial(rows, odds[..., value][cluster])
            block[..., value] = drawn.to(torch.uint8)
            rows -= drawn
        block[..., -1] = rows.to(torch.uint8)
    return counts, truth


def timed(torch: Any, device: str, job: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of a job and what it gave, the device being idle before and after."""
    wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
    wait()
    begin = perf_counter()
    result = job()
    wait()
    return perf_counter() - begin, result


def fit(data: TorchCounts, prior: Prior = Prior()) -> tuple[Clusters, Any]:  # noqa: B008 (a frozen value)
    """Clusters, and the most probable one of every task."""
    clusters = fit_clusters(data, prior, 1.0, np.random.default_rng(0))
    found = data.counts.new_empty(data.n_tasks, dtype=load_torch().int16)
    for rows, _, share, _ in data.shares(*expectations(clusters, prior, 1.0)):
        found[rows] = share.argmax(dim=1)
    return clusters, found


def placed_right(torch: Any, found: Any, truth: Any, n_found: int) -> float:
    """Share of the tasks whose cluster is the one that most tasks of their true cluster are in."""
    both = torch.bincount(truth.long() * n_found + found.long(), minlength=N_CLUSTERS * n_found)
    return float(both.view(N_CLUSTERS, n_found).max(dim=1).values.sum()) / len(truth)


def measure(torch: Any, n_tasks: int, device: str) -> None:
    on_cuda = device.startswith("cuda")
    seconds, (counts, truth) = timed(torch, device, lambda: make_counts(torch, n_tasks, device))
    print(f"{n_tasks:,} tasks, {counts.numel() / 1e9:.2f} GB of byte counts, made in {seconds:.2f} s", flush=True)
    data = TorchCounts(counts, device)
    for run in ("first run", "second run"):
        if on_cuda:
            torch.cuda.reset_peak_memory_stats()
        seconds, (clusters, found) = timed(torch, device, lambda: fit(data))
        peak = f", peak {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB on the device" if on_cuda else ""
        right = placed_right(torch, found, truth, len(clusters.sizes))
        print(
            f"  {run}: {seconds:.3f} s, {len(clusters.sizes)} clusters found of {N_CLUSTERS}, {right:.4%} of the tasks "
            f"in them, bound {clusters.bound:.1f} ({clusters.bound / n_tasks:.5f} a task){peak}",
            flush=True,
        )
    if n_tasks <= MAX_TRANSFER:
        host = counts.cpu().numpy()
        del data, counts
        seconds, _ = timed(torch, device, lambda: TorchCounts(host, device))
        print(f"  counts from host to device: {seconds:.3f} s", flush=True)


def main() -> None:
    torch = load_torch()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    print(f"torch {torch.__version__} on {name}, numpy {np.__version__}")
    for n_tasks in [int(size) for size in sys.argv[1:]] or SIZES:
        try:
            measure(torch, n_tasks, device)
        except torch.OutOfMemoryError as error:
            print(f"  {n_tasks:,} tasks do not fit: {str(error).splitlines()[0]}", flush=True)
        if device == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
