"""How the cost of a fit grows: processor seconds at three sizes, and the exponent between the first and the last.

    python -m bench.growth

Kernels are compiled before anything is measured; the least of two runs counts.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from kinfolk import BayesNets, ClusteredNB, LICAClassifier, NestedIHMM, NoSharingNB, PrototypeNB

FEW = {"n_chains": 1, "n_burn_in": 5, "n_draws": 5, "random_state": 0}


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
    model = NestedIHMM(n_states, 4, **FEW)  # type: ignore[arg-type]
    return lambda: model.fit(X, [n_steps] * n_tasks, task=list(range(n_tasks)))


def networks(n_tasks: int, n_rows: int, n_variables: int) -> Callable[[], Any]:
    """A fit of Bayes nets."""
    X, _, task = labelled(n_tasks, n_rows, n_variables)
    return lambda: BayesNets(restarts=0, random_state=0).fit(X.astype(str), task=task)


def _gibbs() -> Any:
    return ClusteredNB(inference="gibbs", temper=1.0, **FEW)  # type: ignore[arg-type]


def _fast(inference: Any) -> Any:
    return ClusteredNB(inference=inference, temper=1.0, random_state=0)


GROWTHS = [
    Growth(
        "NoSharingNB", "rows", (20_000, 80_000, 320_000), lambda n: naive_bayes(NoSharingNB(temper=1.0), 20, n // 20)
    ),
    Growth("ClusteredNB, bhc", "tasks", (200, 600, 1_800), lambda n: naive_bayes(_fast("bhc"), n, 20)),
    Growth(
        "ClusteredNB, randomised-bhc",
        "tasks",
        (1_000, 3_000, 9_000),
        lambda n: naive_bayes(_fast("randomised-bhc"), n, 20),
    ),
    Growth(
        "ClusteredNB, variational", "tasks", (2_000, 8_000, 32_000), lambda n: naive_bayes(_fast("variational"), n, 20)
    ),
    Growth("ClusteredNB, gibbs", "tasks", (300, 900, 2_700), lambda n: naive_bayes(_gibbs(), n, 20)),
    Growth("ClusteredNB, gibbs", "features", (5, 20, 80), lambda n: naive_bayes(_gibbs(), 300, 20, n)),
    Growth("PrototypeNB", "tasks", (300, 1_200, 4_800), lambda n: naive_bayes(PrototypeNB(temper=1.0, **FEW), n, 20)),  # type: ignore[arg-type]
    Growth("LICAClassifier", "tasks", (10, 40, 160), lambda n: linear(n, 20, 8)),
    Growth("LICAClassifier", "features", (8, 16, 32), lambda n: linear(20, 40, n)),
    Growth("NestedIHMM", "tasks", (6, 12, 24), lambda n: sequences(n, 60)),
    Growth("NestedIHMM", "steps of a task", (60, 180, 540), lambda n: sequences(6, n)),
    Growth("BayesNets", "variables", (5, 10, 20), lambda n: networks(4, 200, n)),
    Growth("BayesNets", "tasks", (4, 8, 16), lambda n: networks(n, 200, 8)),
]


def measure(growth: Growth) -> str:
    """A row of the table."""
    costs = []
    for size in growth.sizes:
        work, spent = growth.make(size), []
        for _ in range(3 if size == growth.sizes[0] else 2):
            began = process_time()
            work()
            spent.append(process_time() - began)
        costs.append(min(spent[1:]))
    exponent = np.log(costs[-1] / costs[0]) / np.log(growth.sizes[-1] / growth.sizes[0])
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
