"""Variational clustering of ten thousand, a hundred thousand and a million tasks, from their counts."""

from __future__ import annotations

import resource

import numpy as np
from numpy.typing import NDArray

from bench.measure import Comparison, once
from kinfolk import ClusteredNB

N_ROWS, N_LABELS, N_FEATURES, N_VALUES, N_CLUSTERS = 100, 2, 15, 6, 12
SIZES = (10_000, 100_000, 1_000_000)


def make_counts(n_tasks: int, seed: int = 0) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Counts of tasks in a few true clusters, one byte each."""
    rng = np.random.default_rng(seed)
    rates = rng.dirichlet(np.ones(N_VALUES), size=(N_CLUSTERS, N_LABELS, N_FEATURES))
    cluster = rng.integers(N_CLUSTERS, size=n_tasks)
    positive = rng.binomial(N_ROWS, rng.beta(2, 2, size=n_tasks))
    labels = np.stack([N_ROWS - positive, positive], axis=1)
    counts = np.empty((n_tasks, N_LABELS, N_FEATURES, N_VALUES), dtype=np.uint8)
    for y in range(N_LABELS):
        for f in range(N_FEATURES):
            counts[:, y, f] = rng.multinomial(labels[:, y], rates[cluster, y, f])
    return counts, labels.astype(np.uint8)


def run() -> list[Comparison]:
    ClusteredNB(inference="variational", random_state=0).fit_statistics(*make_counts(1_500))  # compiles
    results = []
    for n_tasks in SIZES:
        counts, labels = make_counts(n_tasks)
        model = ClusteredNB(inference="variational", random_state=0)
        seconds = once(lambda m=model, c=counts, y=labels: m.fit_statistics(c, y))  # type: ignore[misc]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        found = int(model.partition_.max()) + 1
        job = f"ClusteredNB (variational) on {n_tasks:,} tasks' counts: {found} clusters found of {N_CLUSTERS}, "
        wanted = "under 2 min, 6 GiB" if n_tasks == SIZES[-1] else ""
        results.append(Comparison(f"{job}peak {peak:.1f} GiB", "", seconds, None, wanted))
    return results
