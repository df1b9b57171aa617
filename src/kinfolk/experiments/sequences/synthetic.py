"""Section 4.1 of Ni, Carin and Dunson (2007), figures 4 and 5: whether three clusters of twelve tasks are found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from kinfolk.datasets.sequences import make_sequences
from kinfolk.experiments.measuring import average, tabulate
from kinfolk.experiments.publishing import About, Study, Verdict
from kinfolk.experiments.publishing import judge as verdict_of
from kinfolk.experiments.sequences.models import (
    CLUSTERING,
    ESTIMATORS,
    NESTED,
    PAPER,
    QUICK,
    Build,
    build_model,
    fit_quietly,
    seeds_of,
    steps_of,
    write_gain_over_best,
)
from kinfolk.partition.crp import canonical
from kinfolk.plots import hinton
from kinfolk.plots.evolution import cluster_evolution
from kinfolk.progress import progress_bar
from kinfolk.sequences.inference.gibbs import GibbsSampler, run_chains
from kinfolk.sequences.inference.options import Schedule
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.ndp_ihmm import Priors
from kinfolk.sequences.model.sequences import Sequences

STARTS = ("agglomerate", "together", "apart")
N_STATES, N_CLUSTERS = 10, 20
N_SHOWN = 100
# Sequences of each task to learn from where all models are scored by the others.
N_LEARNT = 2

ABOUT = About(
    PAPER,
    "Drew 12 tasks of 50 sequences of 20 steps from hidden Markov models of two states and eight codes, in three "
    "clusters of 3, 4 and 5 tasks with small distortions, and sampled the nDP-iHMM from a start with all tasks in one "
    "cluster.",
    "Nothing: the same generator (`make_sequences`), many times. The paper does not say that it scales distorted "
    "probabilities to add up to one; that is done here.",
    (
        "The Hinton diagram (figure 4) shows the three clusters.",
        "Tasks are clustered well even from a start with all of them in one cluster (figure 5).",
    ),
)


def study(
    *,
    quick: bool = False,
    seed: int = 0,
    n_sets: int | None = None,
    n_shown: int | None = None,
    starts: Sequence[str] | None = None,
    n_scored: int | None = None,
    make: Callable[..., Any] = make_sequences,
    build: Build = build_model,
) -> Study:
    """Fit many data sets from several starts, and compare with the truth; score models of little data of some."""
    n_sets = n_sets or (2 if quick else 20)
    n_scored = min(n_sets, n_scored or (1 if quick else 5))
    starts = tuple(starts or STARTS)
    parameters: dict[str, Any] = {"n_states": N_STATES, "n_clusters": N_CLUSTERS, **(QUICK if quick else {})}
    rows = []
    first: Any = None
    scores = []
    with progress_bar("Clustering tasks", n_sets * len(starts) + n_scored + 1, True) as advance:
        for number in range(n_sets):
            made = make(random_state=seeds_of(seed, number))
            similarity: dict[str, NDArray[np.float64]] = {}
            for place, start in enumerate(starts):
                model = build(NESTED, start=start, random_state=seeds_of(seed, number, place), **parameters)
                fit_quietly(model, made.X, made.lengths, made.task)
                similarity[start] = model.similarity_
                about = {"set": number, "start": start}
                apart = float(np.abs(model.similarity_ - similarity[starts[0]]).mean())
                rows.append(about | judge(model, made.partition) | {"difference": apart})
                first = first or (made, model)
                advance(1)
            if number < n_scored:
                own_seed = seeds_of(seed, number, len(starts))
                scores += [{"set": number, **row} for row in score_models(made, build, parameters, own_seed)]
                advance(1)
        made, model = first
        path = path_from_one_cluster(made, n_shown or (20 if quick else N_SHOWN), seed)
        advance(1)
    table = pl.DataFrame(rows)
    scored = pl.DataFrame(scores)
    setting = (
        f"{n_sets} data sets; at most {N_CLUSTERS} clusters of {N_STATES} states, otherwise the estimator's defaults"
        f"{' but for shorter chains' if quick else ''}; seed {seed}. Starts: tasks joined by variational evidence "
        "(the default), all together, and each alone. “At the truth” is the share of all draws of all chains that are "
        "exactly the true partition; the index is that of the partition that agrees best with all draws. The "
        "difference is the mean absolute one between the probabilities of being kin and those from the first start. "
        f"Of {n_scored} data sets every model learns from {N_LEARNT} sequences of a task, and the others are scored: "
        "the mean log likelihood of one (nats), errors over data sets."
    )
    found, paired = _compare(table)
    found += f" {write_gain_over_best(scored, 'score', 'set', 2)}"
    details = (
        f"{_details(table)}\n\nLog likelihood of a held-out sequence (nats), by sequences of a task to learn from.\n\n"
        f"{tabulate(average(scored, ['method', 'examples'], ['score']), 'score')}"
    )
    all_rows = pl.concat([table, scored], how="diagonal")
    return Study(all_rows, _draw(model, path, made), (found, paired), setting, details, _judge_starts(table))


def score_models(made: Any, build: Build, parameters: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Mean log likelihood of the sequences that are left when every model has learnt from a few of each task."""
    place = np.concatenate([np.arange(n) for n in np.unique(made.task, return_counts=True)[1]])
    learnt, left = np.flatnonzero(place < N_LEARNT), np.flatnonzero(place >= N_LEARNT)
    own = {name: value for name, value in parameters.items() if name != "n_clusters"}
    rows = []
    for method in ESTIMATORS:
        room = {"n_clusters": N_CLUSTERS} if method in CLUSTERING else {}
        model = build(method, random_state=seed, symbols=list(range(made.emissions.shape[-1])), **own, **room)
        fit_quietly(model, made.X[steps_of(made.lengths, learnt)], made.lengths[learnt], made.task[learnt])
        found = model.score_samples(made.X[steps_of(made.lengths, left)], made.lengths[left], task=made.task[left])
        rows.append({"method": method, "examples": N_LEARNT, "score": float(np.mean(found))})
    return rows


def judge(model: Any, truth: NDArray[np.int64]) -> dict[str, float]:
    """How near a fit is to the true partition, and how well its chains agree."""
    partitions = np.asarray(model.posterior_.traces.partitions)
    draws = partitions.reshape(-1, partitions.shape[-1])
    true = canonical(truth)
    at_truth = np.array([np.array_equal(canonical(draw.astype(np.int64)), true) for draw in draws])
    return {
        "ari": float(adjusted_rand_score(truth, model.partition_)),
        "at_truth": float(at_truth.mean()),
        "clusters": float(np.mean([len(np.unique(draw)) for draw in draws])),
        "worst_r_hat": max(model.convergence_.r_hat.values()),
    }


def path_from_one_cluster(made: Any, n_sweeps: int, seed: int) -> NDArray[np.int64]:
    """The clusters at every sweep of one chain's burn-in, which no estimator keeps, from all tasks together."""
    n_tasks = len(made.partition)
    ends = np.concatenate([[0], np.cumsum(made.lengths)])
    sequences = Sequences((made.X[:, 0].astype(np.int64),), ends, np.searchsorted(made.task, np.arange(n_tasks + 1)))
    together = np.zeros(n_tasks, dtype=np.int64)
    emission = Categorical(made.emissions.shape[-1])
    shape = (N_CLUSTERS, N_STATES)
    sampler = GibbsSampler(sequences, emission, Priors(), *shape, together, n_learning=n_sweeps)
    fitted = run_chains(sampler, Schedule(n_chains=1, n_burn_in=0, n_draws=n_sweeps), seed)
    return np.asarray(fitted.traces.partitions[0], dtype=np.int64)


def _draw(model: Any, path: NDArray[np.int64], made: Any) -> Figure:
    figure = Figure(figsize=(12, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.4))
    names = [str(task + 1) for task in range(len(made.partition))]
    as_numbered = range(len(names))
    hinton(model.similarity_, names, order=as_numbered, ax=left, title="Figure 4: probability of being kin")
    cluster_evolution(path, names, order=as_numbered, ax=right, title="Figure 5: burn-in of a chain from one cluster")
    return figure


def _compare(table: pl.DataFrame) -> tuple[str, str]:
    default = table.filter(pl.col("start") == table["start"][0])
    n_sets = default.height
    parts = []
    for (start,), rows in table.group_by("start", maintain_order=True):
        parts.append(
            f"{start}: {int((rows['ari'] == 1.0).sum())} of {n_sets} data sets, {_mean(rows, 'at_truth'):.2f} of "
            f"draws, difference {_mean(rows, 'difference'):.3f}"
        )
    return (
        f"By default the true partition is found on {int((default['ari'] == 1.0).sum())} of {n_sets} data sets, and "
        f"{_mean(default, 'at_truth'):.2f} of all draws are exactly it.",
        f"By start, found exactly: {'; '.join(parts)}.",
    )


def _judge_starts(table: pl.DataFrame) -> tuple[Verdict, Verdict]:
    """Whether most data sets' clusters are found exactly, by default and from all tasks together."""
    found = {
        str(start): _mean(rows.with_columns(hit=(pl.col("ari") == 1.0).cast(pl.Float64)), "hit")
        for (start,), rows in table.group_by("start", maintain_order=True)
    }
    together = found.get("together")
    return verdict_of(next(iter(found.values())) > 0.5), verdict_of(None if together is None else together > 0.5)


def _mean(rows: pl.DataFrame, column: str) -> float:
    return float(rows[column].to_numpy().mean())


def _details(table: pl.DataFrame) -> str:
    lines = [
        "| start | adjusted Rand index | at the truth | clusters | worst R-hat | difference |",
        "| --- " * 6 + "|",
    ]
    for (start,), rows in table.group_by("start", maintain_order=True):
        cells = [f"{_mean(rows, c):.3f}" for c in ("ari", "at_truth", "clusters", "worst_r_hat", "difference")]
        lines.append(f"| {start} | {' | '.join(cells)} |")
    return "\n".join(lines)
