"""How much joint learning gains over separate learning as the penalty varies: figures 2 and 3 of the paper."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from kinfolk.experiments.measuring import mean_and_error
from kinfolk.experiments.networks.drawing import draw_line, dress, dress_penalty_axis, penalty_at, penalty_places
from kinfolk.experiments.networks.problems import (
    MEASURES,
    PAPER,
    PERTURBED,
    SEARCH,
    SEPARATE,
    Problem,
    draw_tasks,
    learn,
    measure,
    over_draws,
    plus_minus,
    reductions,
)
from kinfolk.experiments.publishing import About, Study
from kinfolk.plots import style
from kinfolk.plots.style import write_key

EXPONENTS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, math.inf)
P_DELETE = (0.0, 0.05, 0.1, 0.2)
TITLES = {"edit_distance": "Edit distance", "kl": "KL divergence"}
KEYS = ("p_delete", "draw")


def about(problem: str) -> About:
    """What the paper did and found with one of its problems."""
    return About(
        PAPER,
        f"Five tasks of {problem} for several probabilities of deleting an arc, 1,000 rows each: average percent "
        "reduction in edit distance and in Kullback–Leibler divergence of joint over separate learning, against "
        "1 − δ. No error bars.",
        PERTURBED,
        (
            "As the penalty grows, performance increases; where the penalty is too high, it drops.",
            "The more similar the tasks (the fewer arcs deleted), the higher the best penalty.",
            "The more similar the tasks, the more, usually, joint learning gains.",
            "The relative improvement is larger in edit distance than in KL divergence.",
        ),
    )


def study_penalties(
    name: str,
    problem: Problem,
    *,
    quick: bool,
    seed: int,
    n_rows: int = 1000,
    n_draws: int | None = None,
    exponents: tuple[float, ...] = EXPONENTS,
    p_delete: tuple[float, ...] = P_DELETE,
) -> Study:
    """Learn every draw separately, and jointly with every penalty."""
    n_draws = n_draws or (2 if quick else 8)

    def one(p: float, number: int) -> list[dict[str, Any]]:
        draw = draw_tasks(problem, n_rows, number, seed, p)
        rows = []
        for exponent in (0.0, *(e for e in exponents if e)):
            sharing = {"penalty": penalty_at(exponent)} if exponent else {"sharing": "none"}
            found = measure(learn(draw.tables, draw.seed, **sharing), draw)
            # Without a penalty, joint learning is separate learning.
            rows.append({"p_delete": p, "draw": number, "method": f"{exponent:g}" if exponent else SEPARATE} | found)
        return rows

    jobs = [(p, number) for p in p_delete for number in range(n_draws)]
    scores = over_draws(f"Learning {name} with every penalty", jobs, one)
    gains = reductions(scores, KEYS)
    order = {SEPARATE if not e else f"{e:g}": e for e in exponents}
    curves = (
        gains.with_columns(exponent=pl.col("method").replace_strict(order, return_dtype=pl.Float64))
        .group_by("p_delete", "exponent", maintain_order=True)
        .agg(*mean_and_error(MEASURES))
        .with_columns(one_minus_delta=10.0 ** -pl.col("exponent"), draws=n_draws)
    )
    setting = (
        f"{name}, {n_rows:,} rows a task, five tasks; {n_draws} draws of networks and rows for each probability of "
        f"deleting an arc ({', '.join(f'{p:g}' for p in p_delete)}); seed {seed}. Reductions are of each draw, ± is "
        f"the standard error over draws. {SEARCH}"
    )
    table = curves.select(
        "p_delete",
        "one_minus_delta",
        "draws",
        *(pl.col(column).name.suffix("_reduction_percent") for m in MEASURES for column in (m, f"{m}_error")),
    )
    return Study(table, _draw(name, curves), _compare(curves), setting, _details(curves))


def _draw(name: str, curves: pl.DataFrame) -> Figure:
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    for ax, measured in zip(figure.subplots(1, 2), MEASURES, strict=True):
        ax.axhline(0, color=style.APART, linewidth=1)
        for place, ((p,), curve) in enumerate(curves.group_by("p_delete", maintain_order=True)):
            x = penalty_places(curve["exponent"].to_list())
            draw_line(ax, place, x, curve[measured], curve[f"{measured}_error"], f"{p:.0%} of arcs deleted")
        dress(ax, "1 − δ (left: identical structures)", "reduction over separate learning, %", TITLES[measured])
        dress_penalty_axis(ax)
        write_key(ax, loc="lower center")
    figure.suptitle(f"{name}: joint over separate learning (bars: standard error)", fontsize=12, color=style.INK)
    return figure


def _peaks(curves: pl.DataFrame, measured: str) -> pl.DataFrame:
    """The penalty with the highest mean, for each probability of deleting an arc."""
    top = curves.sort(measured, descending=True, maintain_order=True).group_by("p_delete", maintain_order=True).first()
    return top.sort("p_delete")


def _compare(curves: pl.DataFrame) -> tuple[str, str, str, str]:
    rises, best, gains = [], [], []
    for measured, title in TITLES.items():
        peaks = _peaks(curves, measured)
        ends = curves.filter(pl.col("exponent").is_infinite()).sort("p_delete")
        falls = ", ".join(
            f"{_percent(peak, measured)} → {_percent(end, measured)} ({peak['p_delete']:g})"
            for peak, end in zip(peaks.iter_rows(named=True), ends.iter_rows(named=True), strict=True)
        )
        rises.append(f"{title}: {falls}")
        along = ", ".join(f"{_written(e)} ({p:g})" for p, e in peaks.select("p_delete", "exponent").iter_rows())
        best.append(f"{title}: {along}")
        gains.append(f"{title}: {', '.join(f'{_percent(peak, measured)} ({p:g})' for p, peak in _by_p_delete(peaks))}")
    edit, kl = (_peaks(curves, measured)[measured].to_numpy() for measured in MEASURES)
    return (
        f"Mean reductions at the best penalty → with identical structures (share of arcs deleted). {'; '.join(rises)}.",
        f"Best 1 − δ (share of arcs deleted). {'; '.join(best)}. Neighbouring penalties are often within a standard "
        "error of the best.",
        f"Best mean reductions (share of arcs deleted). {'; '.join(gains)}.",
        f"At the best penalties it is so for {int((edit > kl).sum())} of {len(edit)} shares of arcs deleted.",
    )


def _percent(row: dict[str, Any], measured: str) -> str:
    return f"{plus_minus(row[measured], row[f'{measured}_error'])}%"


def _by_p_delete(peaks: pl.DataFrame) -> list[tuple[float, dict[str, Any]]]:
    return [(row["p_delete"], row) for row in peaks.iter_rows(named=True)]


def _details(curves: pl.DataFrame) -> str:
    exponents = sorted(curves["exponent"].unique().to_list())
    lines = [
        "Reduction in edit distance, %, by 1 − δ:",
        "",
        f"| arcs deleted | {' | '.join(_written(e) for e in exponents)} |",
        "| --- " * (1 + len(exponents)) + "|",
    ]
    for (p,), curve in curves.group_by("p_delete", maintain_order=True):
        rows = {row["exponent"]: row for row in curve.iter_rows(named=True)}
        cells = [plus_minus(rows[e]["edit_distance"], rows[e]["edit_distance_error"]) for e in exponents]
        lines.append(f"| {p:g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _written(exponent: float) -> str:
    if np.isinf(exponent):
        return "0"
    return f"{10.0**-exponent:.2g}"
