"""Figure 1 of Niculescu-Mizil and Caruana: how few partial configurations branch and bound evaluates."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from kinfolk.experiments.measuring import mean_and_error
from kinfolk.experiments.networks.drawing import draw_line, dress
from kinfolk.experiments.networks.problems import (
    N_TASKS,
    PAPER,
    PERTURBED,
    PROBLEMS,
    Problem,
    draw_tasks,
    learn,
    over_draws,
)
from kinfolk.experiments.networks.pruning import BOUNDS, EDIT, PAIRED, count_evaluated
from kinfolk.experiments.publishing import About, Study
from kinfolk.networks.estimators.reading import receive_data
from kinfolk.networks.model.data import lay_out
from kinfolk.networks.model.priors import strength
from kinfolk.plots import style
from kinfolk.plots.style import write_key

PENALTIES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
IN_ORDER, BEST_FIRST = "pairs in the table's order", "most promising pair first"
ORDERS = (IN_ORDER, BEST_FIRST)
CLAIMED = 1e-4

ABOUT = About(
    PAPER,
    "Five tasks with 37 variables (ALARM): the fraction of partial configurations whose bound branch and bound "
    "evaluates, against the penalty δ.",
    PERTURBED,
    ("Branch and bound evaluates four orders of magnitude fewer configurations than a naive search.",),
)


def study(
    *,
    quick: bool = False,
    seed: int = 0,
    problem: Problem = PROBLEMS["ALARM"],
    n_rows: int = 1000,
    n_draws: int | None = None,
    penalties: tuple[float, ...] = PENALTIES,
) -> Study:
    """Search jointly with every penalty, prior and start, and count."""
    n_draws = n_draws or (2 if quick else 5)

    def one(number: int) -> list[dict[str, Any]]:
        draw = draw_tasks(problem, n_rows, number, seed)
        data = receive_data(draw.tables).data
        cases = lay_out(data.codes, data.cards, data.present)
        alone = learn(draw.tables, draw.seed, sharing="none")
        separate = np.stack([network.adjacency() for network in alone.networks_.values()])
        rows = []
        for order in ORDERS:
            for bound in BOUNDS:
                for penalty in penalties:
                    counted = count_evaluated(cases, separate, bound, strength(penalty), best_first=order == BEST_FIRST)
                    rows.append(
                        {
                            "order": order,
                            "bound": bound,
                            "penalty": penalty,
                            "draw": number,
                            "steps": counted.n_steps,
                            "evaluated": counted.n_evaluated,
                            "naive": counted.n_naive,
                            "fraction": counted.n_evaluated / counted.n_naive,
                        }
                    )
        return rows

    counts = over_draws("Counting bounds", [(number,) for number in range(n_draws)], one)
    setting = (
        f"{N_TASKS} tasks of {n_rows:,} rows, 0.05 of arcs deleted; {n_draws} draws of networks and rows; seed {seed}. "
        "One plain climb each, from the structures learnt separately. Counted over all steps of a search, the last "
        "included, which finds nothing better; bounds of order 0, of pairs of variables as a whole, are not counted. "
        "In each step a bound has to exceed the best gain found so far; the paper does not say in which order pairs "
        "are visited, so there are two."
    )
    return Study(counts, _draw(counts), _compare(counts), setting, _details(counts))


def _means(counts: pl.DataFrame) -> pl.DataFrame:
    keys = ("order", "bound", "penalty")
    return counts.group_by(*keys, maintain_order=True).agg(*mean_and_error(("fraction", "steps")))


def _draw(counts: pl.DataFrame) -> Figure:
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    means = _means(counts)
    panels = figure.subplots(1, 2, sharey=True)
    for ax, order in zip(panels, ORDERS, strict=True):
        for place, bound in enumerate(BOUNDS):
            its = means.filter((pl.col("order") == order) & (pl.col("bound") == bound) & (pl.col("fraction") > 0))
            draw_line(ax, place, its["penalty"], its["fraction"], its["fraction_error"], bound)
        ax.axhline(CLAIMED, color=style.APART, linewidth=1, linestyle="--")
        ax.text(0.02, CLAIMED, "four orders of magnitude", fontsize=8, color=style.ALONE, va="bottom")
        ax.set_yscale("log")
        dress(ax, "δ", "fraction of partial configurations evaluated", order.capitalize())
        ax.set_xlim(0, 1.02)
        ax.set_ylim(top=2e-2)
        write_key(ax, loc="upper right")
    return figure


def _compare(counts: pl.DataFrame) -> tuple[str]:
    means = _means(counts)
    parts: list[str] = []
    fractions: list[float] = []
    for order in ORDERS:
        for bound in (EDIT, PAIRED):
            its = means.filter((pl.col("order") == order) & (pl.col("bound") == bound))["fraction"]
            low, high = float(its.min()), float(its.max())  # type: ignore[arg-type]
            fractions += [low, high]
            parts.append(f"{bound}, {order}: {low:.1e} to {high:.1e}")
    orders = ", ".join(f"{-np.log10(fraction):.1f}" for fraction in (max(fractions), min(fractions)) if fraction)
    return (
        f"Orders of magnitude, at the least and at the most: {orders}. Fraction evaluated, over penalties. "
        f"{'; '.join(parts)}.",
    )


def _details(counts: pl.DataFrame) -> str:
    lines = []
    for (order,), own in _means(counts).group_by("order", maintain_order=True):
        lines += [
            f"Fraction evaluated, mean ± standard error (mean steps), {order}:",
            "",
            f"| δ | {' | '.join(BOUNDS)} |",
            "| --- " * (1 + len(BOUNDS)) + "|",
        ]
        for (penalty,), its in own.group_by("penalty", maintain_order=True):
            cells = [
                f"{row['fraction']:.1e} ± {row['fraction_error']:.0e} ({row['steps']:.0f})"
                for row in its.iter_rows(named=True)
            ]
            lines.append(f"| {penalty:g} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines).rstrip()
