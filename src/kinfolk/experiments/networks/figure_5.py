"""Figure 5 of Niculescu-Mizil and Caruana: separate and joint learning on ALARM-COMP as the rows become more."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray

from kinfolk.experiments.drawing import dress_examples_axis
from kinfolk.experiments.measuring import mean_and_error
from kinfolk.experiments.networks.drawing import draw_line, dress
from kinfolk.experiments.networks.problems import (
    LEARNT,
    MEASURES,
    METHODS,
    PAPER,
    PERTURBED,
    PROBLEMS,
    SEARCH,
    SEPARATE,
    VALIDATED,
    Draw,
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

SIZES = (250, 500, 1000, 2000, 4000, 8000, 16000)
SMALL = 2000
COMPARED = (SEPARATE, VALIDATED, LEARNT)
UNITS = {"edit_distance": "edit distance", "kl": "KL divergence (nats)"}
N_RESAMPLES = 500

ABOUT = About(
    PAPER,
    "ALARM-COMP with 250 to 16,000 rows a task: edit distance and Kullback–Leibler divergence of separate and of joint "
    "learning, the penalty chosen by 5% of the rows.",
    PERTURBED,
    (
        "The benefit of joint learning is larger where data are scarce, and diminishes as there are more.",
        "For small training sets joint learning needs about half as much data for the same edit distance.",
        "In KL divergence it saves less data.",
    ),
)


def study(
    *,
    quick: bool = False,
    seed: int = 0,
    problem: Problem = PROBLEMS["ALARM-COMP"],
    sizes: tuple[int, ...] | None = None,
    n_draws: int | None = None,
) -> Study:
    """Learn from the first rows of each draw, more and more of them."""
    n_draws = n_draws or (2 if quick else 6)
    sizes = sizes or (SIZES[:4] if quick else SIZES)

    def one(size: int, number: int) -> list[dict[str, Any]]:
        whole = draw_tasks(problem, max(sizes), number, seed)
        draw = Draw(whole.networks, {task: table.head(size) for task, table in whole.tables.items()}, whole.seed)
        return [
            {"rows": size, "draw": number, "method": method}
            | measure(learn(draw.tables, draw.seed, **METHODS[method]), draw)
            for method in COMPARED
        ]

    # The largest first, so that no thread is left with one of them at the end.
    jobs = [(size, number) for size in sorted(sizes, reverse=True) for number in range(n_draws)]
    scores = over_draws("Learning from more and more rows", jobs, one).sort("rows", "draw", maintain_order=True)
    setting = (
        f"ALARM-COMP, five tasks, {', '.join(f'{size:,}' for size in sizes)} rows of each, small sets within larger "
        f"ones; {n_draws} draws of networks and rows; seed {seed}; ± and bars are standard errors over draws. {SEARCH}"
    )
    return Study(scores, _draw(scores), _compare(scores), setting, _details(scores))


def _draw(scores: pl.DataFrame) -> Figure:
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    curves = scores.group_by("method", "rows", maintain_order=True).agg(*mean_and_error(MEASURES))
    colours = (style.ALONE, style.PALETTE[5], style.PALETTE[0])
    for ax, measured in zip(figure.subplots(1, 2), MEASURES, strict=True):
        for place, method in enumerate(COMPARED):
            its = curves.filter(pl.col("method") == method)
            draw_line(ax, place, its["rows"], its[measured], its[f"{measured}_error"], method, colours[place])
        dress(ax, "rows of each task", UNITS[measured])
        dress_examples_axis(ax, sorted(scores["rows"].unique().to_list()))
        if measured == "kl":
            ax.set_yscale("log")
        write_key(ax)
    return figure


def data_ratio(sizes: NDArray[Any], joint: NDArray[np.float64], separate: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much data joint learning needs, as a share of what separate learning needs for the same loss.

    Parameters
    ----------
    sizes : ndarray of shape (n_sizes,)
        Rows, ascending.
    joint, separate : ndarray of shape (n_sizes,)
        Mean loss of each with so many rows.

    Returns
    -------
    ndarray of shape (n_sizes,)
        For each size, that size over the one at which separate learning first has the loss that joint learning has,
        interpolated on a logarithmic scale; not a number where it never does, or where it does with fewest rows.

    Examples
    --------
    Joint learning is always one doubling ahead:

    >>> data_ratio(np.array([1, 2, 4]), np.array([6.0, 4.0, 2.0]), np.array([8.0, 6.0, 4.0]))
    array([0.5, 0.5, nan])
    """
    log_sizes = np.log(np.asarray(sizes, dtype=np.float64))
    ratios = np.full(len(sizes), np.nan)
    for i, loss in enumerate(joint):
        for k in range(len(sizes) - 1):
            if separate[k] >= loss > separate[k + 1] or (separate[k] > loss >= separate[k + 1]):
                share = (separate[k] - loss) / (separate[k] - separate[k + 1])
                ratios[i] = np.exp(log_sizes[i] - (log_sizes[k] + share * (log_sizes[k + 1] - log_sizes[k])))
                break
    return ratios


def _losses(scores: pl.DataFrame, method: str, measured: str) -> NDArray[np.float64]:
    """Loss of each draw (row) with each number of rows (column)."""
    wide = scores.filter(pl.col("method") == method).sort("draw", "rows")
    return wide[measured].to_numpy().reshape(wide["draw"].n_unique(), -1)


class Ratios(NamedTuple):
    """Ratio of data at each size, and the range that holds it in two of three resamples of the draws."""

    estimate: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def estimate_ratios(scores: pl.DataFrame, method: str, measured: str) -> Ratios:
    """Estimate ratios from mean curves, and ranges from draws resampled with replacement.

    A range is not a number where most resamples have no ratio.
    """
    sizes = np.array(sorted(scores["rows"].unique().to_list()))
    joint, separate = _losses(scores, method, measured), _losses(scores, SEPARATE, measured)
    rng = np.random.default_rng(0)
    resampled = np.array(
        [
            data_ratio(sizes, joint[chosen].mean(axis=0), separate[chosen].mean(axis=0))
            for chosen in rng.integers(len(joint), size=(N_RESAMPLES, len(joint)))
        ]
    )
    low, high = np.full((2, len(sizes)), np.nan)
    for place, column in enumerate(resampled.T):
        known = column[np.isfinite(column)]
        if len(known) > N_RESAMPLES / 2:
            low[place], high[place] = np.quantile(known, [1 / 6, 5 / 6])
    return Ratios(data_ratio(sizes, joint.mean(axis=0), separate.mean(axis=0)), low, high)


def _ratios_written(scores: pl.DataFrame, measured: str) -> str:
    sizes = sorted(scores["rows"].unique().to_list())
    parts = []
    for method in (VALIDATED, LEARNT):
        few = [
            f"{ratio:.2f}{f' [{low:.2f}, {high:.2f}]' if np.isfinite(low) else ''} ({size:,})"
            for size, ratio, low, high in zip(sizes, *estimate_ratios(scores, method, measured), strict=True)
            if np.isfinite(ratio) and size <= SMALL
        ]
        parts.append(f"{method}: {', '.join(few) if few else 'out of the range measured'}")
    return "; ".join(parts)


def _compare(scores: pl.DataFrame) -> tuple[str, str, str]:
    percent = (
        reductions(scores, ("rows", "draw"))
        .group_by("method", "rows", maintain_order=True)
        .agg(*mean_and_error(MEASURES))
    )
    gains = []
    for method in (VALIDATED, LEARNT):
        rows = percent.filter(pl.col("method") == method).iter_rows(named=True)
        listed = ", ".join(
            f"{plus_minus(row['edit_distance'], row['edit_distance_error'], 0)}% ({row['rows']:,})" for row in rows
        )
        gains.append(f"{method}: {listed}")
    return (
        f"Reduction in edit distance (rows). {'; '.join(gains)}.",
        f"Share of separate learning's rows that joint learning needs [two of three resamples] (at so many rows of its "
        f"own, up to {SMALL:,}). {_ratios_written(scores, 'edit_distance')}. Where separate learning's curve is flat, "
        "the share hangs on small differences.",
        f"Share of rows needed for the same KL divergence. {_ratios_written(scores, 'kl')}.",
    )


def _details(scores: pl.DataFrame) -> str:
    sizes = sorted(scores["rows"].unique().to_list())
    means = scores.group_by("method", "rows", maintain_order=True).agg(*mean_and_error(MEASURES))
    lines = []
    for measured, unit in UNITS.items():
        digits = 1 if measured == "edit_distance" else 3
        lines += [
            f"Mean {unit} by rows:",
            "",
            f"| method | {' | '.join(f'{size:,}' for size in sizes)} |",
            "| --- " * (1 + len(sizes)) + "|",
        ]
        for method in COMPARED:
            its = means.filter(pl.col("method") == method).sort("rows")
            cells = [plus_minus(m, e, digits) for m, e in its.select(measured, f"{measured}_error").iter_rows()]
            lines.append(f"| {method} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines).rstrip()
