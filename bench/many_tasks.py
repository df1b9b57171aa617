"""Clustering of very many tasks from their counts: growth, and how well what was found predicts rows held out."""

from __future__ import annotations

from time import perf_counter
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bench.measure import Comparison, once, peak_gib
from bench.overlapping import Overlapping, make_overlapping, true_log_losses
from kinfolk import ClusteredNB

N_ROWS, N_LABELS, N_FEATURES, N_VALUES, N_CLUSTERS = 100, 2, 15, 6, 12
SIZES = (10_000, 100_000, 1_000_000)
FEW_TASKS = 3_000


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


def plain(inference: Literal["bhc", "randomised-bhc", "variational"]) -> ClusteredNB:
    """The model with nothing learnt but the clusters, so that it is inference that is measured."""
    return ClusteredNB(
        inference=inference, concentration=1.0, label_prior=1.0, feature_prior=1.0, temper=1.0, random_state=0
    )


def growth() -> list[Comparison]:
    """Seconds for ever more tasks, and how they grow."""
    plain("variational").fit_statistics(*make_counts(1_500))  # compiles
    results: list[Comparison] = []
    for n_tasks in SIZES:
        counts, labels = make_counts(n_tasks)
        model = plain("variational")
        seconds = once(lambda m=model, c=counts, y=labels: m.fit_statistics(c, y))  # type: ignore[misc]
        peak = peak_gib()
        found = int(model.partition_.max()) + 1
        job = f"ClusteredNB (variational) on {n_tasks:,} tasks' counts: {found} clusters found of {N_CLUSTERS}, "
        job += f"peak {peak:.1f} GiB"
        wanted = "under 2 min, 6 GiB" if n_tasks == SIZES[-1] else ""
        if results:
            job += f", {seconds / results[-1].seconds / 10:.2f} times linear growth"
            wanted += f"{', ' if wanted else ''}growth ≤ 1.1 times linear"
        results.append(Comparison(job, "", seconds, None, wanted))
    return results


def overlapping(n_tasks: int = 1_000_000, n_clusters: int = 200, n_rows: int = 10) -> list[Comparison]:
    """Many overlapping clusters, few rows a task: log loss against that of the true clusters."""
    data = make_overlapping(n_tasks, n_clusters, n_rows)
    model = plain("variational")
    seconds, loss = fitted_and_tested(model, data)
    known, placed = true_log_losses(data)
    job = (
        f"ClusteredNB (variational) on {n_tasks:,} tasks of {n_rows} rows in {len(data.rates)} overlapping clusters: "
        f"{int(model.partition_.max()) + 1} found, held-out log loss {loss:.4f}, {loss / placed:.4f} of the true "
        f"clusters' ({placed:.4f}; {known:.4f} if told which task is in which)"
    )
    return [Comparison(job, "", seconds, None, "log loss ≤ 1.01 of the true clusters'")]


def few_tasks() -> list[Comparison]:
    """Log loss of the methods for very many tasks against full hierarchical clustering's."""
    data = make_overlapping(FEW_TASKS, 30, 20)
    bhc_seconds, bhc_loss = fitted_and_tested(plain("bhc"), data)
    results = []
    methods: tuple[Literal["variational", "randomised-bhc"], ...] = ("variational", "randomised-bhc")
    for inference in methods:
        seconds, loss = fitted_and_tested(plain(inference), data)
        job = f"ClusteredNB ({inference}) on {FEW_TASKS:,} tasks of 20 rows: held-out log loss {loss:.4f}, "
        job += f"{loss / bhc_loss:.4f} of full hierarchical clustering's"
        results.append(Comparison(job, "bhc", seconds, bhc_seconds, "log loss ≤ 1.005 of bhc's"))
    return results


def fitted_and_tested(model: ClusteredNB, data: Overlapping) -> tuple[float, float]:
    """Seconds of the fit, and mean log loss of the rows held out."""
    begin = perf_counter()
    model.fit_statistics(data.counts, data.labels)
    seconds = perf_counter() - begin
    proba = model.predict_proba(data.X, task=data.task)
    return seconds, float(-np.log(proba[np.arange(len(proba)), data.y]).mean())


def run() -> list[Comparison]:
    return growth() + few_tasks() + overlapping()
