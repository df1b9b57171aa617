"""How the cost of a fit grows: processor seconds and the most memory in arrays at three sizes, with the exponents
between the last two.

    python -m bench.growth [MODEL …]

Kernels are compiled before anything is measured. Memory is that of a fit of its own, beside the data it is given; what
polars holds is not in it.
"""

from __future__ import annotations

import sys
import tracemalloc
import warnings
from collections.abc import Callable
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_regressor
from threadpoolctl import threadpool_limits

from kinfolk import (
    AveragedIHMM,
    AveragedNB,
    BayesMultinet,
    BayesNets,
    ClusteredClassifier,
    ClusteredNB,
    FeatureIHMM,
    HierarchicalClassifier,
    HierarchicalRegressor,
    LICAClassifier,
    LICARegressor,
    NestedIHMM,
    NoSharingNB,
    PrototypeNB,
    SharedIHMM,
    SingleIHMM,
    TransferClassifier,
    TransferRegressor,
)

FEW: dict[str, Any] = {"n_chains": 1, "n_burn_in": 5, "n_draws": 5, "random_state": 0}


class Growth(NamedTuple):
    """A model, what grows, the sizes, and a function that makes the work of a size."""

    model: str
    what: str
    sizes: tuple[int, int, int]
    make: Callable[[int], Callable[[], Any]]


def labelled(n_tasks: int, n_rows: int, n_features: int = 5, n_kinds: int = 4) -> tuple[Any, Any, Any]:
    """Rows of categories; tasks of a few kinds."""
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(n_tasks), n_rows)
    y = rng.integers(0, 2, len(task))
    rates = rng.dirichlet(np.ones(4), size=(n_kinds, 2, n_features))
    cumulative = rates[task % n_kinds, y].cumsum(axis=-1)
    X = (rng.random((len(task), n_features, 1)) > cumulative[..., :-1]).sum(axis=-1)
    return X, y, task


def naive_bayes(model: Any, n_tasks: int, n_rows: int, n_features: int = 5, n_kinds: int = 4) -> Callable[[], Any]:
    """A fit of naive Bayes."""
    X, y, task = labelled(n_tasks, n_rows, n_features, n_kinds)
    return lambda: model.fit(X, y, task=task)


def linear(model: Any, n_tasks: int, n_rows: int, n_features: int) -> Callable[[], Any]:
    """A fit of a linear model."""
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(n_tasks * n_rows, n_features)), np.repeat(np.arange(n_tasks), n_rows)
    y = X[:, 0] + rng.normal(size=len(X))
    return lambda: model.fit(X, y if is_regressor(model) else y > 0, task=task)


def sequences(model: Any, n_tasks: int, n_steps: int) -> Callable[[], Any]:
    """A fit of infinite HMMs."""
    X = np.random.default_rng(0).integers(0, 4, size=(n_tasks * n_steps, 1))
    return lambda: model.fit(X, [n_steps] * n_tasks, task=list(range(n_tasks)))


def networks(n_tasks: int, n_rows: int, n_variables: int, multinet: bool = False) -> Callable[[], Any]:
    """A climb to Bayes nets, every variable of which follows the one before it in three rows of four."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(n_tasks * n_rows, n_variables))
    for v in range(1, n_variables):
        X[:, v] = np.where(rng.random(len(X)) < 0.75, X[:, v - 1], X[:, v])
    given: dict[str, Any] = {"penalty": 0.5, "restarts": 0, "tabu": 0, "random_state": 0}
    task = np.repeat(np.arange(n_tasks), n_rows)
    if multinet:
        return lambda: BayesMultinet(**given).fit(X, task)
    return lambda: BayesNets(**given).fit(X, task=task)


def _gibbs() -> Any:
    return ClusteredNB(inference="gibbs", temper=1.0, **FEW)


def _lica() -> Any:
    return LICAClassifier(3, random_state=0)


def _fast(inference: Any) -> Any:
    return ClusteredNB(inference=inference, temper=1.0, random_state=0)


GROWTHS = [
    Growth(
        "NoSharingNB",
        "rows",
        (100_000, 400_000, 1_600_000),
        lambda n: naive_bayes(NoSharingNB(temper=1.0), 20, n // 20),
    ),
    Growth("ClusteredNB, bhc", "tasks", (600, 1_800, 5_400), lambda n: naive_bayes(_fast("bhc"), n, 20)),
    Growth(
        "ClusteredNB, randomised-bhc",
        "tasks",
        (3_000, 9_000, 27_000),
        lambda n: naive_bayes(_fast("randomised-bhc"), n, 20),
    ),
    Growth(
        "ClusteredNB, variational",
        "tasks",
        (10_000, 40_000, 160_000),
        lambda n: naive_bayes(_fast("variational"), n, 20),
    ),
    Growth("ClusteredNB, gibbs", "tasks", (2_000, 6_000, 18_000), lambda n: naive_bayes(_gibbs(), n, 20)),
    Growth("ClusteredNB, gibbs", "features", (20, 80, 320), lambda n: naive_bayes(_gibbs(), 300, 20, n)),
    Growth("ClusteredNB, gibbs", "kinds of tasks", (4, 16, 64), lambda n: naive_bayes(_gibbs(), 3_000, 20, 5, n)),
    Growth(
        "ClusteredNB, variational",
        "kinds of tasks",
        (4, 16, 64),
        lambda n: naive_bayes(_fast("variational"), 40_000, 20, 5, n),
    ),
    Growth("AveragedNB", "tasks", (200, 600, 1_800), lambda n: naive_bayes(AveragedNB(random_state=0), n, 20)),
    Growth(
        "PrototypeNB", "tasks", (5_000, 20_000, 80_000), lambda n: naive_bayes(PrototypeNB(temper=1.0, **FEW), n, 20)
    ),
    Growth("LICAClassifier", "tasks", (40, 160, 640), lambda n: linear(_lica(), n, 20, 8)),
    Growth("LICAClassifier", "features", (8, 24, 72), lambda n: linear(_lica(), 40, 100, n)),
    Growth("LICARegressor", "tasks", (40, 160, 640), lambda n: linear(LICARegressor(3, random_state=0), n, 20, 8)),
    Growth("HierarchicalClassifier", "tasks", (100, 400, 1_600), lambda n: linear(HierarchicalClassifier(), n, 20, 8)),
    Growth("HierarchicalClassifier", "features", (8, 24, 72), lambda n: linear(HierarchicalClassifier(), 40, 100, n)),
    Growth("HierarchicalRegressor", "tasks", (100, 400, 1_600), lambda n: linear(HierarchicalRegressor(), n, 20, 8)),
    Growth(
        "ClusteredClassifier",
        "tasks",
        (20, 60, 180),
        lambda n: linear(ClusteredClassifier(random_state=0), n, 20, 4),
    ),
    Growth("BayesNets", "tasks", (10, 40, 160), lambda n: networks(n, 100, 8)),
    Growth("BayesNets", "variables", (16, 32, 64), lambda n: networks(4, 100, n)),
    Growth("BayesNets", "rows of a task", (1_600, 6_400, 25_600), lambda n: networks(4, n, 8)),
    Growth("BayesMultinet", "variables", (8, 16, 32), lambda n: networks(3, 300, n, multinet=True)),
    Growth("SingleIHMM", "steps of a task", (600, 1_800, 5_400), lambda n: sequences(SingleIHMM(6, **FEW), 2, n)),
    Growth("SharedIHMM", "tasks", (6, 12, 24), lambda n: sequences(SharedIHMM(6, **FEW), n, 60)),
    Growth("NestedIHMM", "tasks", (6, 12, 24), lambda n: sequences(NestedIHMM(6, 4, **FEW), n, 60)),
    Growth("NestedIHMM", "steps of a task", (200, 600, 1_800), lambda n: sequences(NestedIHMM(6, 4, **FEW), 6, n)),
    Growth("NestedIHMM", "states", (6, 12, 24), lambda n: sequences(NestedIHMM(n, 4, **FEW), 6, 600)),
    Growth("NestedIHMM", "clusters", (4, 12, 36), lambda n: sequences(NestedIHMM(6, n, **FEW), 12, 60)),
    Growth("FeatureIHMM", "tasks", (6, 12, 24), lambda n: sequences(FeatureIHMM(6, **FEW), n, 60)),
    Growth("FeatureIHMM", "steps of a task", (200, 600, 1_800), lambda n: sequences(FeatureIHMM(6, **FEW), 6, n)),
    Growth("FeatureIHMM", "states", (6, 12, 24), lambda n: sequences(FeatureIHMM(n, **FEW), 6, 600)),
    Growth("AveragedIHMM", "tasks", (6, 12, 24), lambda n: sequences(AveragedIHMM(6, 4, n_folds=2, **FEW), n, 60)),
    Growth(
        "TransferClassifier",
        "tasks",
        (80, 320, 1_280),
        lambda n: naive_bayes(TransferClassifier(random_state=0), n, 20),
    ),
    Growth(
        "TransferRegressor",
        "tasks",
        (40, 120, 360),
        lambda n: linear(TransferRegressor(random_state=0), n, 20, 4),
    ),
]


def measure(growth: Growth) -> str:
    """A row of the table."""
    costs, peaks = [], []
    for size in growth.sizes:
        work, spent = growth.make(size), []
        for _ in range(2 if size == growth.sizes[0] else 1):
            began = process_time()
            work()
            spent.append(process_time() - began)
        costs.append(spent[-1])
        tracemalloc.start()
        work()
        peaks.append(tracemalloc.get_traced_memory()[1] / 2**20)
        tracemalloc.stop()

    def exponent(values: list[float]) -> float:
        # Between the last two, where what every fit costs weighs least.
        return float(np.log(values[2] / values[1]) / np.log(growth.sizes[2] / growth.sizes[1]))

    cells = [growth.model, growth.what, ", ".join(f"{size:,}" for size in growth.sizes)]
    cells += [", ".join(f"{value:.2f}" for value in costs), f"{exponent(costs):.2f}"]
    cells += [", ".join(f"{value:.1f}" for value in peaks), f"{exponent(peaks):.2f}"]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table, of all models or of those that are named."""
    names = ["model", "what grows", "sizes", "processor seconds", "exponent", "MiB", "exponent"]
    print(f"| {' | '.join(names)} |\n|{' --- |' * len(names)}")
    # Threads of BLAS that wait for each other take time of the processor, too.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for growth in GROWTHS:
            if not sys.argv[1:] or growth.model.partition(",")[0] in sys.argv[1:]:
                print(measure(growth), flush=True)


if __name__ == "__main__":
    main()
