"""Figure 4-5 of Roy (2006): evidence ratios of no sharing and complete sharing, by the number of data points."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from kinfolk.experiments.clustered_naive_bayes.evidence_ratios import evidence_of, ratios
from kinfolk.experiments.clustered_naive_bayes.stand_in import MADE_UP_MEETINGS, THESIS, meetings_problem
from kinfolk.experiments.measuring import average
from kinfolk.experiments.publishing import About, Study, judge
from kinfolk.plots import style
from kinfolk.progress import progress_bar

SIZES = (20, 50, 100, 200, 500, 1_000, 2_000)
QUICK_SIZES = (20, 100, 500)
WHOLE, LABELS = "no over complete sharing", "labels, no over complete sharing"

ABOUT = About(
    THESIS,
    "Averaged the log evidence ratio of no sharing over complete sharing, and that of the labels given the features, "
    "over random subsets of the requests of growing size.",
    MADE_UP_MEETINGS,
    (
        "With few data points the evidence prefers complete sharing.",
        "Not until more than 100 data points does the preference for no sharing become overwhelming.",
        "From both perspectives no sharing is preferred when the entire data set is taken into consideration.",
    ),
)


def study(
    *, quick: bool = False, seed: int = 0, sizes: tuple[int, ...] | None = None, n_subsets: int | None = None
) -> Study:
    """Compute the ratios of random subsets of all users' requests."""
    problem = meetings_problem(seed)
    sizes = sizes or (QUICK_SIZES if quick else SIZES)
    n_subsets = n_subsets or (3 if quick else 10)
    n_runs, max_powers = (4, 60) if quick else (8, 200)
    parts = []
    with progress_bar("Evidence of subsets", len(sizes) * n_subsets, True) as advance:
        for size in sizes:
            for subset in range(n_subsets):
                rows = np.sort(np.random.default_rng([seed, subset]).permutation(len(problem.target))[:size])
                for name, (value, _) in ratios(evidence_of(problem, rows, n_runs, max_powers, seed)).items():
                    parts.append({"ratio": name, "examples": size, "repeat": subset, "value": value})
                advance(1)
    table = average(pl.DataFrame(parts), ["ratio", "examples"], ["value"])
    known = {(row["ratio"], row["examples"]): (row["value"], row["value_error"]) for row in table.iter_rows(named=True)}
    few, most = sizes[0], sizes[-1]
    crossing = [size for size in sizes if known[WHOLE, size][0] > 10]
    ours = (
        f"At {few} data points: {_written(known[WHOLE, few])} nats (labels given features: "
        f"{_written(known[LABELS, few])}).",
        f"By sizes: {', '.join(f'{_written(known[WHOLE, size])} ({size:,})' for size in sizes)}; above 10 nats from "
        f"{crossing[0]:,} data points on."
        if crossing
        else "Never above 10 nats.",
        f"At {most:,}: {_written(known[WHOLE, most])} nats, and {_written(known[LABELS, most])} for labels.",
    )
    held = (
        judge(known[WHOLE, few][0] < 0),
        judge(crossing[0] > 100 if crossing else None),
        judge(known[WHOLE, most][0] > 0, known[LABELS, most][0] > 0),
    )
    setting = (
        f"Random subsets of {', '.join(f'{size:,}' for size in sizes)} requests of all users together, {n_subsets} of "
        f"each size; {n_runs} annealed runs; pseudo-counts of 1; seed {seed}; ± are standard errors over subsets. All "
        "requests together: thesis-evidence."
    )
    return Study(table, _draw(table), ours, setting, "", held)


def _written(known: tuple[float, float]) -> str:
    return f"{known[0]:+,.0f} ± {known[1]:,.0f}"


def _draw(table: pl.DataFrame) -> Figure:
    figure = Figure(figsize=(6.8, 4.6), layout="constrained")
    ax = figure.subplots()
    ax.axhline(0, color=style.APART, linewidth=1)
    looks = {WHOLE: ("evidence", style.PALETTE[0], "o"), LABELS: ("labels given features", style.PALETTE[1], "s")}
    for name, (said, colour, marker) in looks.items():
        own = table.filter(pl.col("ratio") == name)
        x, y, error = (own[column].to_numpy() for column in ("examples", "value", "value_error"))
        ax.errorbar(x, y, yerr=error, color=colour, marker=marker, markersize=5, capsize=2.5, label=said)
    ax.set_xscale("log")
    ax.set_yscale("symlog", linthresh=10)
    style.quieten(ax)
    style.name_axes(ax, "data points of all users together", "log ratio, above zero for no sharing (nats)")
    style.write_key(ax)
    return figure
