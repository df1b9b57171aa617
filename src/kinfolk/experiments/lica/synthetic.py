"""Whether the sources of made-up tasks are found: Laplace sources are identifiable, Gaussian ones up to rotation only.

The claim is that of section 2 of Zhang, Ghahramani and Yang (2005), after the theory of independent component analysis.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any, Literal

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import ortho_group

from kinfolk import datasets
from kinfolk.experiments.cells import cells
from kinfolk.experiments.drawing import dress_examples_axis
from kinfolk.experiments.lica.methods import BAYES, CLEAR, METHODS, PAPER, POINT, Build, classifier
from kinfolk.experiments.measuring import average
from kinfolk.experiments.publishing import About, Study, Verdict, judge
from kinfolk.plots import style
from kinfolk.plots.style import write_key
from kinfolk.progress import progress_bar

KINDS: tuple[Literal["laplace", "gaussian"], ...] = ("laplace", "gaussian")
N_TASKS = (10, 20, 40, 80, 160)
N_SOURCES, N_FEATURES, N_ROWS = 4, 30, 150
N_ROTATIONS = 20
MEASURES = ("recovered", "space", "by_chance")
LINES = {"laplace": "-", "gaussian": "--"}
# As the tasks are made: no mean beside the sources, one noise for all features.
AS_MADE = {"shared_mean": False, "noise": "isotropic"}
MODELS: dict[str, dict[str, Any]] = {
    POINT: METHODS[POINT] | AS_MADE,
    BAYES: METHODS[BAYES] | AS_MADE,
    "Bayes, Gaussian sources": METHODS[BAYES] | AS_MADE | {"source_prior": "gaussian"},
}

Sources = NDArray[np.float64]

ABOUT = About(
    PAPER,
    "Claimed, from the theory of independent component analysis and without a measurement, that Laplace sources can be "
    "identified where Gaussian ones allow only for modelling correlations.",
    "Made-up tasks with known sources (`make_lica_tasks`), once from Laplace and once from Gaussian ones. Both are "
    "learnt with the prior of the paper, which is Laplace, and with a Gaussian one.",
    (
        "Laplace sources make it possible to identify the hidden components, instead of just modelling correlations.",
        "The tasks are what sources are learnt from (there is one vector of weights for each).",
    ),
)


def study(
    *,
    quick: bool = False,
    seed: int = 0,
    n_tasks: tuple[int, ...] | None = None,
    n_repeats: int | None = None,
    make: Callable[..., Any] | None = None,
    build: Build = classifier,
) -> Study:
    """Learn more and more tasks whose sources are known, and compare the sources learnt with them.

    ``make`` is by default `kinfolk.datasets.make_lica_tasks`.
    """
    make = datasets.make_lica_tasks if make is None else make
    n_tasks = n_tasks or (N_TASKS[::2] if quick else N_TASKS)
    n_repeats = n_repeats or (2 if quick else 10)
    jobs = list(product(KINDS, n_tasks, range(n_repeats), MODELS))
    rows: list[dict[str, Any]] = []
    with progress_bar("Finding sources", len(jobs), True) as advance:
        found = cells(partial(_recover, make, build, seed), jobs)
        for (kind, number, repeat, method), measured in zip(jobs, found, strict=True):
            rows.append({"kind": kind, "method": method, "examples": number, "repeat": repeat, **measured})
            advance(1)
    scores = pl.DataFrame(rows)
    averages = average(scores, ["kind", "method", "examples"], MEASURES)
    setting = (
        f"{N_SOURCES} sources, {N_FEATURES} features, {N_ROWS} rows a task, {', '.join(map(str, n_tasks))} tasks, "
        f"{n_repeats} draws of everything; seed {seed}; ± are standard errors over draws. The model is told the number "
        "of sources, and that weights have no common mean and one noise. Each true source is paired with one that was "
        "learnt so that the mean absolute cosine over tasks between partners, which is what is reported, is the "
        "largest: 1 is recovery up to order, sign and scale. Beside it the same for true sources that are rotated at "
        "random, which is what correlations alone allow, and the mean cosine of the angles between the spaces that "
        "true and learnt sources span."
    )
    return Study(scores, _draw(averages), _compare(averages), setting, _details(averages), _judge(averages))


def _recover(
    make: Callable[..., Any], build: Build, seed: int, kind: str, number: int, repeat: int, method: str
) -> dict[str, float]:
    """Learn the sources of made-up tasks, and compare them with the true ones."""
    drawn = int(np.random.SeedSequence([seed, repeat]).generate_state(1)[0]) % 2**31
    tasks = make(number, N_FEATURES, N_ROWS, N_SOURCES, source=kind, random_state=drawn)
    model = build(random_state=drawn, n_sources=N_SOURCES, **MODELS[method])
    found = np.asarray(model.fit(tasks.X, tasks.y, task=tasks.task).sources_)
    return compare_sources(tasks.sources, found, drawn)


def compare_sources(true: Sources, found: Sources, seed: int) -> dict[str, float]:
    """How well sources (tasks × sources) are recovered, up to order, sign and scale.

    Returns
    -------
    dict
        ``recovered``; ``space``, the same up to rotation and scales; ``by_chance``, the recovery by true sources that
        are rotated at random.

    Examples
    --------
    >>> true = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> compared = compare_sources(true, -3 * true[:, ::-1], seed=0)
    >>> round(compared["recovered"], 6), round(compared["space"], 6), compared["by_chance"] < 1
    (1.0, 1.0, True)
    """
    rotations = ortho_group.rvs(true.shape[1], size=N_ROTATIONS, random_state=seed)
    (of_true, _), (of_found, _) = np.linalg.qr(true), np.linalg.qr(found)
    return {
        "recovered": matched_cosine(true, found),
        "space": float(np.linalg.svd(of_true.T @ of_found, compute_uv=False).mean()),
        "by_chance": float(np.mean([matched_cosine(true, true @ rotation) for rotation in rotations])),
    }


def matched_cosine(true: Sources, found: Sources) -> float:
    """Mean absolute cosine between true sources and their partners, with the best pairing; none with an empty source.

    Examples
    --------
    >>> round(matched_cosine(np.eye(2), np.array([[0.0, 0.0], [1.0, 0.0]])), 6)
    0.5
    """
    lengths = np.outer(np.linalg.norm(true, axis=0), np.linalg.norm(found, axis=0))
    cosine = np.abs(true.T @ found) / np.where(lengths > 0, lengths, 1.0)
    return float(cosine[linear_sum_assignment(-cosine)].mean())


def _draw(averages: pl.DataFrame) -> Figure:
    figure = Figure(figsize=(14, 4.4), layout="constrained")
    axes = figure.subplots(1, len(MODELS), sharey=True)
    for ax, method in zip(axes, MODELS, strict=True):
        for place, (measure, name) in enumerate({"recovered": "recovered", "by_chance": "rotated at random"}.items()):
            for kind in KINDS:
                of_kind = averages.filter((pl.col("method") == method) & (pl.col("kind") == kind))
                x, mean, error = (of_kind[column].to_numpy() for column in ("examples", measure, f"{measure}_error"))
                colour = style.PALETTE[KINDS.index(kind)] if place == 0 else style.APART
                look: dict[str, Any] = {"marker": "o", "markersize": 4.5, "linewidth": 1.6, "capsize": 2.0}
                ax.errorbar(
                    x,
                    mean,
                    yerr=error,
                    color=colour,
                    linestyle=LINES[kind],
                    label=f"{kind.capitalize()}, {name}",
                    **look,
                )
        dress_examples_axis(ax, sorted(averages["examples"].unique().to_list()))
        ax.set_xlabel("tasks", fontsize=9, color=style.ALONE)
        ax.set_ylabel("absolute cosine to the true source", fontsize=9, color=style.ALONE)
        style.write_title(ax, method)
    write_key(axes[0])
    return figure


def _compare(averages: pl.DataFrame) -> tuple[str, str]:
    most = max(averages["examples"].to_list())
    parts, trends = [], []
    for method in MODELS:
        ours = averages.filter(pl.col("method") == method)
        at_most = {row["kind"]: row for row in ours.filter(pl.col("examples") == most).iter_rows(named=True)}
        written = [
            f"{kind.capitalize()} {row['recovered']:.2f} ± {row['recovered_error']:.2f} "
            f"(rotated at random {row['by_chance']:.2f})"
            for kind, row in at_most.items()
        ]
        parts.append(f"{method}, {most} tasks: {', '.join(written)}")
        laplace = ours.filter(pl.col("kind") == "laplace").sort("examples")
        listed = ", ".join(f"{mean:.2f} ({n})" for n, mean in laplace.select("examples", "recovered").iter_rows())
        trends.append(f"{method}: {listed}")
    return f"{'; '.join(parts)}.", f"Laplace sources recovered, by the number of tasks. {'; '.join(trends)}."


def _judge(averages: pl.DataFrame) -> tuple[Verdict, Verdict]:
    """Whether Laplace sources are found better than rotated ones and Gaussian ones are not; whether tasks help."""
    found, grows = [], []
    for method in (POINT, BAYES):
        ours = averages.filter(pl.col("method") == method).sort("examples")
        of = {kind: ours.filter(pl.col("kind") == kind) for kind in KINDS}
        ahead = {}
        for kind, rows in of.items():
            last = rows.row(-1, named=True)
            ahead[kind] = last["recovered"] - last["by_chance"] > CLEAR * last["recovered_error"]
        found += [ahead["laplace"], not ahead["gaussian"]]
        grows.append(of["laplace"]["recovered"][-1] > of["laplace"]["recovered"][0])
    return judge(*found), judge(*grows)


def _details(averages: pl.DataFrame) -> str:
    sizes = sorted(averages["examples"].unique().to_list())
    titles = {
        "recovered": "Absolute cosine to the true source",
        "by_chance": "The same for rotated true sources",
        "space": "Cosine of the angles between the spaces",
    }
    tables = []
    for measure, title in titles.items():
        lines = [
            f"{title}, by the number of tasks:",
            "",
            f"| sources | method | {' | '.join(map(str, sizes))} |",
            "| --- " * (2 + len(sizes)) + "|",
        ]
        for kind, method in averages.select("kind", "method").unique(maintain_order=True).iter_rows():
            rows = averages.filter((pl.col("kind") == kind) & (pl.col("method") == method)).sort("examples")
            cells = [f"{m:.3f} ± {e:.3f}" for m, e in rows.select(measure, f"{measure}_error").iter_rows()]
            lines.append(f"| {kind.capitalize()} | {method} | {' | '.join(cells)} |")
        tables.append("\n".join(lines))
    return "\n\n".join(tables)
