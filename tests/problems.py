"""Random tiny problems of the oracle, handed to estimators as a user would hand them."""

from typing import Any

import numpy as np

from tests import oracle

# Hyper-parameters of the papers' models, none of them learnt.
PLAIN: dict[str, Any] = {"label_prior": 1.0, "feature_prior": 1.0, "temper": 1.0}


def as_arguments(problem: oracle.Problem) -> dict[str, Any]:
    """Keyword arguments of ``fit`` for a problem; codes become text, label codes strings, missing values None."""
    table = {
        f"f{f}": [None if code < 0 else f"v{code}" for code in problem.codes[:, f]]
        for f in range(problem.codes.shape[1])
    }
    import pandas as pd

    X = pd.DataFrame(
        {
            name: pd.Categorical(column, categories=[f"v{v}" for v in range(problem.n_values[f])])
            for f, (name, column) in enumerate(table.items())
        }
    )
    y = np.array([None if label < 0 else f"y{label}" for label in problem.labels], dtype=object)
    return {"X": X, "y": y, "task": problem.task}


def priors(problem: oracle.Problem) -> dict[str, Any]:
    """Constructor arguments that give an estimator the problem's priors, and leave its predictions as they are."""
    return {
        "temper": 1.0,
        "label_prior": problem.alpha,
        "feature_prior": [
            np.array([problem.beta[y][f] for y in range(problem.n_labels)]) for f in range(len(problem.n_values))
        ],
    }


def usable(problem: oracle.Problem) -> bool:
    """Whether every label and every task occurs, so that an estimator sees them all."""
    seen = set(problem.labels[problem.labels >= 0])
    return len(seen) == problem.n_labels and len(set(problem.task)) == problem.n_tasks


def random_problems(n: int, seed: int, **options: Any) -> list[oracle.Problem]:
    """Several usable random problems."""
    rng = np.random.default_rng(seed)
    found: list[oracle.Problem] = []
    while len(found) < n:
        problem = oracle.random_problem(rng, **options)
        if usable(problem):
            found.append(problem)
    return found


def as_rows(codes: np.ndarray) -> Any:
    """New rows of codes as a table like that of ``as_arguments``; a code past the known ones is an unseen category."""
    import pandas as pd

    return pd.DataFrame(
        {f"f{f}": [None if c < 0 else f"v{c}" for c in codes[:, f]] for f in range(codes.shape[1])}, dtype=object
    )
