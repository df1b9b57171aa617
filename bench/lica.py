"""LICA on RCV1 against logistic regression topic by topic, and how its time grows with tasks and with nonzeros."""

from __future__ import annotations

import os
import warnings
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from bench.measure import Comparison, best_of, once, peak_gib
from kinfolk import LICAClassifier
from kinfolk.datasets import load_rcv1

N_ROWS, N_SOURCES = 1_000, 8


def topics(n_rows: int = N_ROWS) -> tuple[Any, Any]:
    """Training documents and their topics, those topics that have some documents and lack some."""
    data = load_rcv1()
    rows = np.random.default_rng(0).permutation(np.flatnonzero(data.is_train))[:n_rows]
    labels = np.asarray(data.target[rows].todense(), dtype=np.float64)
    return data.data[rows], labels[:, (labels.min(axis=0) < 1) & (labels.max(axis=0) > 0)]


def topic_by_topic(X: Any, Y: Any, solver: str) -> None:
    for labels in Y.T:
        LogisticRegression(solver=solver, max_iter=1_000).fit(X, labels)


def run() -> list[Comparison]:
    if "KINFOLK_DATA" not in os.environ:
        return []
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, Y = topics()
    size = f"{X.shape[0]:,} documents of RCV1, {X.shape[1]:,} features, {Y.shape[1]} topics"
    peers = {solver: once(lambda s=solver: topic_by_topic(X, Y, s)) for solver in ("liblinear", "lbfgs")}  # type: ignore[misc]
    fastest = min(peers, key=lambda solver: peers[solver])
    model = LICAClassifier(N_SOURCES, inference="map", random_state=0)
    first = once(lambda: model.fit(X, Y))
    seconds = best_of(lambda: model.fit(X, Y), repeats=3)
    sparse_sources = float(np.median((model.sources_ != 0).sum(axis=1)))
    results = [
        Comparison(
            f"LICAClassifier (map, {N_SOURCES} sources) on {size}; median nonzero sources {sparse_sources:.0f}",
            f"LogisticRegression ({fastest}) topic by topic",
            seconds,
            peers[fastest],
            "at least 0.33×",
            first,
        )
    ]
    start = perf_counter()
    bayes = LICAClassifier(N_SOURCES, random_state=0, n_jobs=2).fit(X, Y)
    peak = peak_gib()
    results.append(
        Comparison(
            f"LICAClassifier (eb, {N_SOURCES} sources, two threads) on {size}: {bayes.n_iter_} iterations, "
            f"peak {peak:.1f} GiB",
            "",
            perf_counter() - start,
            None,
            "under 15 min, 6 GiB",
        )
    )
    for n_topics in (25, 50, Y.shape[1]):
        few = Y[:, :n_topics]
        seconds = once(lambda y=few: model.fit(X, y))  # type: ignore[misc]
        job = f"LICAClassifier (map) on {n_topics} topics: {seconds / n_topics * 1e3:.1f} ms a topic"
        results.append(Comparison(job, "", seconds, None, "linear in tasks"))
    for share in (0.25, 0.5, 1.0):
        kept = X.copy()
        kept.data[np.random.default_rng(0).random(kept.nnz) > share] = 0.0
        kept = sparse.csr_matrix(kept)
        kept.eliminate_zeros()
        # The best of two: a sparser table may go another way, whose kernels are compiled at the first fit.
        seconds = best_of(lambda x=kept: model.fit(x, Y), repeats=2)  # type: ignore[misc]
        results.append(
            Comparison(f"LICAClassifier (map) with {kept.nnz:,} nonzeros", "", seconds, None, "linear at most")
        )
    return results
