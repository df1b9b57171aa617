"""A thousand tasks at once, against a loop of scikit-learn's CategoricalNB over the tasks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.naive_bayes import CategoricalNB

from bench.measure import Comparison, best_of, once
from kinfolk import ClusteredNB, NoSharingNB
from kinfolk.maths.dirichlet import dirichlet_product
from kinfolk.partition.gibbs import Seating
from kinfolk.tasks.statistics import Layout, Rows, count

N_TASKS, N_ROWS, N_FEATURES, N_VALUES, N_CLUSTERS = 1_000, 100, 15, 6, 8
PEER = "loop of CategoricalNB"


class Data(NamedTuple):
    """Rows to learn from and rows to predict, of tasks in a few true clusters."""

    X: NDArray[np.int64]
    y: NDArray[np.int64]
    task: NDArray[np.int64]
    X_new: NDArray[np.int64]


def make_data(seed: int = 0) -> Data:
    rng = np.random.default_rng(seed)
    rates = rng.dirichlet(np.ones(N_VALUES), size=(N_CLUSTERS, 2, N_FEATURES)).cumsum(axis=-1)
    cluster = rng.integers(N_CLUSTERS, size=N_TASKS)
    task = np.repeat(np.arange(N_TASKS), N_ROWS)
    y = rng.integers(2, size=len(task))
    edges = rates[cluster[task], y]

    def draw() -> NDArray[np.int64]:
        return np.asarray((rng.random((len(task), N_FEATURES, 1)) > edges).sum(axis=-1).clip(max=N_VALUES - 1))

    return Data(draw(), y, task, draw())


def loop_of_peers(data: Data) -> None:
    # Rows are sorted by task, so that the peer need not search for them.
    for start in range(0, len(data.task), N_ROWS):
        rows = slice(start, start + N_ROWS)
        model = CategoricalNB(min_categories=N_VALUES).fit(data.X[rows], data.y[rows])
        model.predict_proba(data.X_new[rows])


def compare(job: str, model: NoSharingNB, data: Data, peer_seconds: float, wanted: str) -> Comparison:
    def learn_and_predict() -> None:
        model.fit(data.X, data.y, task=data.task)
        model.predict_proba(data.X_new, task=data.task)

    first = once(learn_and_predict)
    return Comparison(job, PEER, best_of(learn_and_predict), peer_seconds, wanted, first)


def gibbs_sweep(data: Data) -> Comparison:
    layout = Layout(2, np.full(N_FEATURES, N_VALUES))
    rows = Rows(data.X.astype(np.int32), data.y.astype(np.int32), data.task, None)
    counts = count(rows, layout, np.arange(N_TASKS)).feature_counts
    product = dirichlet_product(np.ones(layout.n_cells), layout.group_start, len(data.task))
    seating = Seating(counts, product, 1.0)
    rng = np.random.default_rng(0)
    first = once(lambda: seating.sweep(rng.random(N_TASKS)))
    for _ in range(20):
        seating.sweep(rng.random(N_TASKS))
    n_clusters = int((seating.cluster_size > 0).sum())
    seconds = best_of(lambda: seating.sweep(rng.random(N_TASKS)), repeats=20)
    return Comparison(
        f"Gibbs sweep over {N_TASKS:,} tasks, {n_clusters} clusters", "", seconds, None, "under 10 ms", first
    )


def run() -> list[Comparison]:
    data = make_data()
    size = f"{N_TASKS:,} tasks × {N_ROWS} rows × {N_FEATURES} features"
    peer_seconds = best_of(lambda: loop_of_peers(data), repeats=2)
    plain = NoSharingNB(label_prior=1.0, feature_prior=1.0, temper=1.0)
    return [
        # The peer learns no prior, so that this is the same job; below is what users get who ask for nothing.
        compare(f"NoSharingNB (the peer's prior), fit and predict, {size}", plain, data, peer_seconds, "at least 30×"),
        compare(f"NoSharingNB, fit and predict, {size}", NoSharingNB(), data, peer_seconds, "faster"),
        compare(f"ClusteredNB (bhc), fit and predict, {size}", ClusteredNB(), data, peer_seconds, "faster"),
        gibbs_sweep(data),
    ]
