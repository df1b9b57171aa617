"""The problems of Niculescu-Mizil and Caruana, section 4.1, the ways to learn them, and how far off each comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl

from kinfolk.datasets import load_network, make_related_networks, sample_tasks
from kinfolk.experiments.cells import cells
from kinfolk.networks.estimators.bayes_nets import BayesNets
from kinfolk.networks.model.distances import edit_distance, kl_divergence
from kinfolk.networks.model.network import Network
from kinfolk.progress import progress_bar

PAPER = (
    "A. Niculescu-Mizil and R. Caruana, “Inductive Transfer for Bayesian Network Structure Learning”, JMLR Workshop "
    "and Conference Proceedings 27, 2012 (first at AISTATS 2007)."
)
PERTURBED = (
    "The paper's data were drawn from perturbed ALARM and INSURANCE networks; so are these (`make_related_networks`, "
    "section 4.1), from the published networks in `KINFOLK_DATA/bayesnets`. How the paper drew tables anew, and into "
    "which four parts it split ALARM, is not said there."
)
SEARCH = (
    "All methods search as the estimator does by default, with a probability of 1/n for every arc where the paper has "
    "all structures as likely: single structures start from a search over orders of the variables, and all go on with "
    "a tabu list of ten steps and no restarts; the paper has greedy climbs with 100 restarts and tabu lists."
)
N_TASKS = 5
N_THREADS = 2
MEASURES = ("edit_distance", "kl")
# Standard errors by which a difference is clear.
CLEAR = 2.0

SEPARATE, IDENTICAL, POOLED = "separate", "identical", "pooled"
VALIDATED, LEARNT = "joint, validated", "joint, learnt"
METHODS: dict[str, dict[str, Any]] = {
    SEPARATE: {"sharing": "none"},
    IDENTICAL: {"sharing": "identical"},
    POOLED: {"sharing": "pooled"},
    VALIDATED: {"penalty": "validate"},
    LEARNT: {"penalty": "learn"},
}


class Problem(NamedTuple):
    """How related tasks are made from a network."""

    network: str | Network
    parameters: Literal["correlated", "independent"] = "correlated"
    kind: Literal["delete", "subgraphs"] = "delete"


PROBLEMS = {
    "ALARM": Problem("alarm"),
    "ALARM-IND": Problem("alarm", "independent"),
    "ALARM-COMP": Problem("alarm", kind="subgraphs"),
    "INSURANCE": Problem("insurance"),
    "INSURANCE-IND": Problem("insurance", "independent"),
}


class Draw(NamedTuple):
    """True networks of the tasks, rows of each, and a seed for what is left to chance."""

    networks: list[Network]
    tables: dict[Any, pl.DataFrame]
    seed: int


def draw_tasks(problem: Problem, n_rows: int, number: int, seed: int, p_delete: float = 0.05) -> Draw:
    """Draw five tasks and rows of each; the same seed and number give the same ones, whatever else was drawn."""
    of_networks, of_rows, of_rest = (
        int(word) % 2**31 for word in np.random.SeedSequence([seed, number]).generate_state(3)
    )
    networks = make_related_networks(
        load_network(problem.network),
        N_TASKS,
        p_delete=p_delete,
        parameters=problem.parameters,
        kind=problem.kind,
        random_state=of_networks,
    )
    return Draw(networks, sample_tasks(networks, n_rows, random_state=of_rows), of_rest)


def learn(tables: Mapping[Any, pl.DataFrame], seed: int, **parameters: Any) -> BayesNets:
    """Fit an estimator with these parameters, else as by default; its threads stay idle, since draws have them."""
    return BayesNets(random_state=seed, n_jobs=1, **parameters).fit(dict(tables))


def measure(model: BayesNets, draw: Draw) -> dict[str, float]:
    """Edit distance and Kullback–Leibler divergence (nats) from the truth, averaged over tasks."""
    distance, divergence = [], []
    for task, true in enumerate(draw.networks):
        learnt = model.networks_[task]
        distance.append(edit_distance(true, learnt))
        # The same rows for every method: their differences then hang little on the sample.
        divergence.append(kl_divergence(true, learnt, random_state=draw.seed).estimate)
    return {"edit_distance": float(np.mean(distance)), "kl": float(np.mean(divergence))}


def over_draws(what: str, jobs: Iterable[tuple[Any, ...]], work: Callable[..., list[dict[str, Any]]]) -> pl.DataFrame:
    """Do jobs in threads, in any order, and put the rows that they return into one table, in the order of the jobs."""
    waiting, rows = list(jobs), []
    with progress_bar(what, len(waiting), True) as advance:
        for part in cells(work, waiting, N_THREADS, "threads"):
            rows += part
            advance(1)
    return pl.DataFrame(rows)


def reductions(scores: pl.DataFrame, keys: Iterable[str], baseline: str = SEPARATE) -> pl.DataFrame:
    """By how many per cent each method is less far off than a baseline on the same draw.

    Parameters
    ----------
    scores : polars.DataFrame
        With columns ``method``, the keys, and the measures.
    keys : iterable of str
        Columns that name a draw.
    baseline : str
        The method to compare with.

    Examples
    --------
    >>> scores = pl.DataFrame({"draw": [0, 0], "method": ["separate", "other"], "edit_distance": [8, 6], "kl": [1, 2]})
    >>> reductions(scores, ["draw"]).rows()
    [(0, 'separate', 0.0, 0.0), (0, 'other', 25.0, -100.0)]
    """
    on = list(keys)
    alone = scores.filter(pl.col("method") == baseline).select(*on, *(pl.col(m).alias(f"{m}_of_it") for m in MEASURES))
    both = scores.join(alone, on=on, maintain_order="left")
    return both.select(*on, "method", *((100 * (1 - pl.col(m) / pl.col(f"{m}_of_it"))).alias(m) for m in MEASURES))


def plus_minus(mean: float, error: float, digits: int = 1) -> str:
    """Write a mean with its standard error."""
    return f"{mean:.{digits}f} ± {error:.{digits}f}"
