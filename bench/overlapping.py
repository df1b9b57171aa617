"""Tasks of many overlapping clusters with few rows each, and how well the true clusters would predict them.

Cluster sizes are those of a Chinese restaurant process, rates are drawn from Dirichlet(5, …, 5): two clusters' rates
for the same label and feature then differ by about a third of a rate, and the ten rows of a task leave room for doubt
about where it belongs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

N_LABELS, N_FEATURES, N_VALUES = 2, 15, 6
STRENGTH = 5.0
MAX_CLUSTERS = 3_000
MAX_HELD_OUT = 20_000


class Overlapping(NamedTuple):
    """Counts (tasks, labels, features, values), label counts, the truth behind them, and rows held out."""

    counts: NDArray[np.uint8]
    labels: NDArray[np.uint8]
    cluster: NDArray[np.int64]
    rates: NDArray[np.float64]
    X: NDArray[np.int64]
    y: NDArray[np.int64]
    task: NDArray[np.int64]


def make_overlapping(n_tasks: int, n_clusters: int, n_rows: int, seed: int = 0) -> Overlapping:
    rng = np.random.default_rng(seed)
    sticks = rng.beta(1.0, _concentration(n_tasks, n_clusters), size=MAX_CLUSTERS)
    weights = sticks * np.concatenate([[1.0], np.cumprod(1.0 - sticks)[:-1]])
    _, cluster = np.unique(rng.choice(MAX_CLUSTERS, size=n_tasks, p=weights / weights.sum()), return_inverse=True)
    rates = rng.dirichlet(np.full(N_VALUES, STRENGTH), size=(int(cluster.max()) + 1, N_LABELS, N_FEATURES))
    positive_rate = rng.beta(2, 2, size=n_tasks)
    positive = rng.binomial(n_rows, positive_rate)
    labels = np.stack([n_rows - positive, positive], axis=1)
    counts = np.empty((n_tasks, N_LABELS, N_FEATURES, N_VALUES), dtype=np.uint8)
    for y in range(N_LABELS):
        for f in range(N_FEATURES):
            counts[:, y, f] = rng.multinomial(labels[:, y], rates[cluster, y, f])
    n_held_out = min(n_tasks * 5, MAX_HELD_OUT)
    task = rng.integers(n_tasks, size=n_held_out)
    label = (rng.random(n_held_out) < positive_rate[task]).astype(np.int64)
    X = (rng.random((n_held_out, N_FEATURES, 1)) > rates[cluster[task], label].cumsum(axis=-1)[..., :-1]).sum(axis=-1)
    return Overlapping(counts, labels.astype(np.uint8), cluster, rates, X, label, task)


def _concentration(n_tasks: int, n_clusters: int) -> float:
    """Concentration with which so many clusters of so many tasks are expected."""
    low, high = 1e-3, float(n_clusters)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * np.log1p(n_tasks / middle) < n_clusters else (low, middle)
    return low


def true_log_losses(data: Overlapping) -> tuple[float, float]:
    """Held-out log loss of the true partition, and of the true clusters with tasks placed by their own rows alone.

    Feature rates are in both the posterior means of the true clusters' counts, label rates each task's own.
    """
    n_clusters, n_tasks = len(data.rates), len(data.cluster)
    order = np.argsort(data.cluster, kind="stable")
    sizes = np.bincount(data.cluster)
    starts = np.cumsum(sizes) - sizes
    summed = np.add.reduceat(data.counts.reshape(n_tasks, -1)[order], starts, axis=0, dtype=np.int64)
    posterior = summed.reshape(data.rates.shape) + 1.0
    log_theta = np.log(posterior / posterior.sum(axis=-1, keepdims=True))
    known = np.full((len(data.task), n_clusters), -np.inf)
    known[np.arange(len(known)), data.cluster[data.task]] = 0.0
    own = data.counts[data.task].reshape(len(data.task), -1).astype(np.float64)
    placed = own @ np.log(data.rates).reshape(n_clusters, -1).T + np.log(sizes / n_tasks)
    return _log_loss(data, log_theta, known), _log_loss(data, log_theta, placed)


def _log_loss(data: Overlapping, log_theta: NDArray[np.float64], log_weight: NDArray[np.float64]) -> float:
    """Mean log loss of the rows held out, their tasks belonging to clusters with these weights."""
    rates = np.log((data.labels[data.task] + 1.0) / (data.labels[data.task].sum(axis=1, keepdims=True) + 2.0))
    losses = []
    for first in range(0, len(data.y), 1_000):
        rows = slice(first, first + 1_000)
        fit = log_weight[rows, :, None] + rates[rows, None, :]
        for f in range(N_FEATURES):
            fit = fit + log_theta[:, :, f][:, :, data.X[rows, f]].transpose(2, 0, 1)
        joint = np.exp(fit - fit.max(axis=(1, 2), keepdims=True)).sum(axis=1)
        losses.append(np.log(joint.sum(axis=1)) - np.log(joint[np.arange(len(joint)), data.y[rows]]))
    return float(np.concatenate(losses).mean())
