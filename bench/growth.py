"""How the cost of a fit grows: processor seconds at three sizes, and the exponent between the last two.

    python -m bench.growth

Kernels are compiled before anything is measured.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from kinfolk import ClusteredNB, LICAClassifier, NestedIHMM, NoSharingNB, PrototypeNB

FEW: dict[str, Any] = {"n_chains": 1, "n_burn_in": 5, "n_draws": 5, "random_state": 0}


class Growth(NamedTuple):
    """A model, what grows, the sizes, and a function that makes the work of a size."""

    model: str
    what: str
    sizes: tuple[int, int, int]
    make: Callable[[int], Callable[[], Any]]


def labelled(n_tasks: int, n_rows: int, n_features: int = 5) -> tuple[Any, Any, Any]:
    """Rows of categories; tasks of four kinds."""
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(n_tasks), n_rows)
    y = rng.integers(0, 2, len(task))
    rates = rng.dirichlet(np.ones(4), size=(4, 2, n_features))
    cumulative = rates[task % 4, y].cumsum(axis=-1)
    X = (rng.random((len(task), n_features, 1)) > cumulative[..., :-1]).sum(axis=-1)
    return X, y, task


def naive_bayes(model: Any, n_tasks: int, n_rows: int, n_features: int = 5) -> Callable[[], Any]:
    """A fit of naive Bayes."""
    X, y, task = labelled(n_tasks, n_rows, n_features)
    return lambda: model.fit(X, y, task=task)


def linear(n_tasks: int, n_rows: int, n_features: int) -> Callable[[], Any]:
    """A fit of LICA."""
    rng = np.random.default_rng(0)
    X, task = rng.normal(size=(n_tasks * n_rows, n_features)), np.repeat(np.arange(n_tasks), n_rows)
    y = X[:, 0] + rng.normal(size=len(X)) > 0
    return lambda: LICAClassifier(3, random_state=0).fit(X, y, task=task)


def sequences(n_tasks: int, n_steps: int, n_states: int = 6) -> Callable[[], Any]:
    """A fit of nested infinite HMMs."""
    X = np.random.default_rng(0).integers(0, 4, size=(n_tasks * n_steps, 1))
    model = NestedIHMM(n_states, 4, **FEW)
    return lambda: model.fit(X, [n_steps] * n_tasks, task=list(range(n_tasks)))


def _gibbs() -> Any:
    return ClusteredNB(inference="gibbs", temper=1.0, **FEW)


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
    Growth(
        "PrototypeNB", "tasks", (5_000, 20_000, 80_000), lambda n: naive_bayes(PrototypeNB(temper=1.0, **FEW), n, 20)
    ),
    Growth("LICAClassifier", "tasks", (40, 160, 640), lambda n: linear(n, 20, 8)),
    Growth("NestedIHMM", "tasks", (6, 12, 24), lambda n: sequences(n, 60)),
    Growth("NestedIHMM", "steps of a task", (200, 600, 1_800), lambda n: sequences(6, n)),
]


def measure(growth: Growth) -> str:
    """A row of the table."""
    costs = []
    for size in growth.sizes:
        work, spent = growth.make(size), []
        for _ in range(2 if size == growth.sizes[0] else 1):
            began = process_time()
            work()
            spent.append(process_time() - began)
        costs.append(spent[-1])
    # Between the last two, where what every fit costs weighs least.
    exponent = np.log(costs[2] / costs[1]) / np.log(growth.sizes[2] / growth.sizes[1])
    sizes, told = (", ".join(f"{value:{form}}" for value in row) for row, form in ((growth.sizes, ","), (costs, ".2f")))
    return f"| {growth.model} | {growth.what} | {sizes} | {told} | {exponent:.2f} |"


def main() -> None:
    """Print the table."""
    print("| model | what grows | sizes | processor seconds | exponent |\n| --- | --- | --- | --- | --- |")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for growth in GROWTHS:
            print(measure(growth), flush=True)


if __name__ == "__main__":
    main()
