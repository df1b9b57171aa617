"""Figure 7 of Niculescu-Mizil and Caruana: how likely birds at other feeders are, by the penalty and the prior."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from kinfolk.datasets.feederwatch import load_feederwatch
from kinfolk.experiments.measuring import mean_and_error
from kinfolk.experiments.networks.birds import FEEDERS, first_rows, mean_log_likelihood, split_by_site
from kinfolk.experiments.networks.drawing import draw_line, dress, dress_penalty_axis, penalty_at, penalty_places
from kinfolk.experiments.networks.problems import PAPER, SEARCH, learn, over_draws, plus_minus
from kinfolk.experiments.publishing import About, Study
from kinfolk.plots import style
from kinfolk.plots.style import write_key

EXPONENTS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, math.inf)
PRIORS = ("edit", "paired")

ABOUT = About(
    PAPER,
    "Six tasks of Project FeederWatch: mean log likelihood of a large independent test set, averaged over tasks, "
    "against 1 − δ, for both priors.",
    FEEDERS,
    (
        "As the penalty grows, the likelihood rises quickly, reaches a peak, and then falls slowly.",
        "The type of prior does not matter much.",
        "Identical structures (the left end), learnt from tasks with different variables, perform reasonably well.",
    ),
)


def study(
    *,
    quick: bool = False,
    seed: int = 0,
    birds: Any = None,
    n_rows: int = 500,
    n_splits: int | None = None,
    exponents: tuple[float, ...] = EXPONENTS,
) -> Study:
    """Learn with every penalty and both priors, and score rows of sites that were not learnt from."""
    n_splits = n_splits or (2 if quick else 6)
    birds = load_feederwatch() if birds is None else birds

    def one(number: int, prior: str) -> list[dict[str, Any]]:
        split = split_by_site(birds, number, seed)
        training = first_rows(split.training, n_rows)
        rows = []
        for exponent in exponents:
            model = learn(training, split.seed, prior=prior, penalty=penalty_at(exponent))
            found = mean_log_likelihood(model, split.test)
            rows.append({"prior": prior, "exponent": exponent, "split": number, "log_likelihood": found})
        return rows

    jobs = [(number, prior) for number in range(n_splits) for prior in PRIORS]
    scores = over_draws("Learning birds with every penalty", jobs, one)
    separate = scores.filter(pl.col("exponent") == 0.0).select("prior", "split", alone="log_likelihood")
    scores = scores.join(separate, on=["prior", "split"], maintain_order="left").with_columns(
        gain=pl.col("log_likelihood") - pl.col("alone"), one_minus_delta=10.0 ** -pl.col("exponent")
    )
    setting = (
        f"{len(birds.data)} tasks, {n_rows:,} rows of each to learn from, {n_splits} random splits of sites into 60% "
        f"to learn from and 40% to test on; seed {seed}; ± and bars are standard errors over splits of the gain over "
        f"separate learning on the same split. {SEARCH}"
    )
    curves = scores.group_by("prior", "exponent", maintain_order=True).agg(*mean_and_error(("log_likelihood", "gain")))
    table = scores.select("prior", "one_minus_delta", "split", "log_likelihood", "gain")
    return Study(table, _draw(curves), _compare(curves), setting, _details(curves))


def _draw(curves: pl.DataFrame) -> Figure:
    figure = Figure(figsize=(7, 4.6), layout="constrained")
    ax = figure.subplots()
    alone = float(curves.filter(pl.col("exponent") == 0.0)["log_likelihood"].mean())  # type: ignore[arg-type]
    ax.axhline(alone, color=style.APART, linewidth=1)
    for place, ((prior,), its) in enumerate(curves.group_by("prior", maintain_order=True)):
        x = penalty_places(its["exponent"].to_list())
        draw_line(ax, place, x, its["log_likelihood"], its["gain_error"], f"{str(prior).capitalize()} prior")
    dress(ax, "1 − δ (left: identical structures, right: separate)", "mean log likelihood of test rows (nats)")
    dress_penalty_axis(ax)
    write_key(ax)
    return figure


def _compare(curves: pl.DataFrame) -> tuple[str, str, str]:
    peaks, ends = [], []
    for (name,), its in curves.group_by("prior", maintain_order=True):
        prior = str(name)
        rows = {row["exponent"]: row for row in its.iter_rows(named=True)}
        peak = max(rows.values(), key=lambda row: row["gain"])
        end = rows[max(rows)]
        peaks.append(
            f"{prior}: the peak is {plus_minus(peak['gain'], peak['gain_error'], 3)} nats a row above separate "
            f"learning ({rows[0.0]['log_likelihood']:.3f}), at 1 − δ = {10.0 ** -peak['exponent']:.2g}"
        )
        ends.append(f"{prior}: {plus_minus(end['gain'], end['gain_error'], 3)}")
    edit, paired = (curves.filter(pl.col("prior") == prior)["gain"].to_numpy() for prior in PRIORS)
    return (
        f"{'; '.join(peaks)}.",
        f"Their peaks differ by {abs(edit.max() - paired.max()):.3f} nats; at the same δ the two differ by up to "
        f"{np.abs(edit - paired).max():.3f}.",
        f"Gain over separate learning with identical structures, {'; '.join(ends)} nats a row.",
    )


def _details(curves: pl.DataFrame) -> str:
    exponents = curves["exponent"].unique(maintain_order=True).to_list()
    lines = [
        "Gain over separate learning, nats a row, by 1 − δ:",
        "",
        f"| prior | {' | '.join('0' if math.isinf(e) else f'{10.0**-e:.2g}' for e in exponents)} |",
        "| --- " * (1 + len(exponents)) + "|",
    ]
    for (prior,), its in curves.group_by("prior", maintain_order=True):
        cells = [plus_minus(gain, error, 3) for gain, error in its.select("gain", "gain_error").iter_rows()]
        lines.append(f"| {prior!s} | {' | '.join(cells)} |")
    return "\n".join(lines)
