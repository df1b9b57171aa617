"""Equations (4.2), (4.7), (4.14) and (4.15) of Roy (2006): which model the data favour, and by how much."""

from __future__ import annotations

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from kinfolk.experiments.clustered_naive_bayes.evidence_ratios import evidence_of, ratios
from kinfolk.experiments.clustered_naive_bayes.stand_in import MADE_UP_MEETINGS, THESIS, meetings_problem
from kinfolk.experiments.publishing import About, Study, judge
from kinfolk.plots import style

ABOUT = About(
    THESIS,
    "Computed log evidence ratios on all requests: of no sharing and complete sharing, exactly; of their labels given "
    "the features, by annealed importance sampling; of clustered and no sharing, as a lower bound by the best "
    "partition that a stochastic search met.",
    MADE_UP_MEETINGS,
    (
        "(4.2) log P(D|no sharing)/P(D|complete sharing) = 10,918: no sharing is massively preferred.",
        "(4.7) log P(Y|X, no sharing)/P(Y|X, complete sharing) = 1,459: still preferred, by a smaller factor.",
        "(4.15) log P(D|clustered)/P(D|no sharing) is above 364 (362 with the bound corrected).",
    ),
)


def study(*, quick: bool = False, seed: int = 0, n_runs: int | None = None, max_powers: int | None = None) -> Study:
    """Compute the three ratios."""
    problem = meetings_problem(seed)
    rows = np.arange(len(problem.target))
    n_runs, max_powers = n_runs or (4 if quick else 32), max_powers or (60 if quick else 500)
    found = evidence_of(problem, rows, n_runs, max_powers, seed)
    table = pl.DataFrame(
        [{"quantity": name, "log": value, "error": error} for name, (value, error) in (found | ratios(found)).items()]
    )
    (whole, _), (labels, error), (clustered, _) = ratios(found).values()
    ours = (
        f"{whole:,.0f} nats, exactly.",
        f"{labels:,.0f} ± {error:.0f} nats.",
        f"At least {clustered:,.0f} nats, by the partitions that a search met.",
    )
    held = (judge(whole > 1_000), judge(2 * error < labels < whole), judge(clustered > 100))
    figure = Figure(figsize=(7, 3), layout="constrained")
    ax = figure.subplots()
    names = list(ratios(found))
    values = [ratios(found)[name][0] for name in names]
    ax.barh(names, values, color=[style.PALETTE[0], style.PALETTE[1], style.PALETTE[2]])
    for place, value in enumerate(values):
        ax.text(value, place, f" {value:,.0f}", va="center", fontsize=9, color=style.INK)
    ax.invert_yaxis()
    style.quieten(ax)
    style.name_axes(ax, "log evidence ratio (nats)", "")
    setting = (
        f"{len(rows):,} requests; pseudo-counts of 1, α = 1; {n_runs} annealed runs of at most {max_powers} steps; "
        f"seed {seed}. A nat is the unit of natural logarithms: a ratio of 1 nat is a factor of e."
    )
    return Study(table, figure, ours, setting, "", held)
