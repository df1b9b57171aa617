"""Figure 4-8 of Roy (2006): the loss of decisions where a miss costs more or less than a false alarm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from kinfolk.decisions import Loss, decide
from kinfolk.experiments.clustered_naive_bayes.learning_curves import CLUSTERED, NO_SHARING
from kinfolk.experiments.clustered_naive_bayes.stand_in import MADE_UP_MEETINGS, THESIS, meetings_problem
from kinfolk.experiments.clustered_naive_bayes.thesis_models import Split, probabilities, thesis_models
from kinfolk.experiments.publishing import About, Study, judge
from kinfolk.plots import style
from kinfolk.progress import progress_bar

POWERS = tuple(range(-8, 9))
HELD_OUT = 0.05

ABOUT = About(
    THESIS,
    "Left out 5% of the requests, 90 times, and measured the loss of the best decisions by both models where a false "
    "alarm costs 1 and a miss 2ⁿ, for n from −8 to 8 (equation 4.16).",
    MADE_UP_MEETINGS,
    (
        "Under 0-1 loss (n = 0) the clustered model only marginally outperforms no sharing.",
        "As the loss becomes more asymmetric, the clustered model significantly outperforms no sharing.",
        "The trend breaks down at the extremes, especially at n = 8.",
    ),
)


def study(*, quick: bool = False, seed: int = 0, n_trials: int | None = None) -> Study:
    """Measure both models' losses on the same requests."""
    problem = meetings_problem(seed)
    n_trials = n_trials or (8 if quick else 90)
    models = {name: model for name, model in thesis_models().items() if name in (CLUSTERED, NO_SHARING)}
    with progress_bar("Leaving out a twentieth", n_trials, True) as advance:
        answers = probabilities(problem, models, list(_splits(len(problem.target), n_trials, seed)), advance)
    table = losses(answers)
    gain = {row["n"]: (row["gain"], row["error"]) for row in table.iter_rows(named=True)}
    clear = [n for n in POWERS if gain[n][0] > 2 * gain[n][1]]
    uneven = [n for n in POWERS if 1 <= abs(n) <= 6]
    ours = (
        f"At n = 0: {gain[0][0]:.1%} ± {gain[0][1]:.1%} less loss.",
        "Less loss than no sharing: "
        + ", ".join(f"{gain[n][0]:.1%} ± {gain[n][1]:.1%} (n = {n})" for n in (-6, -4, -2, 2, 4, 6))
        + f"; by more than two standard errors at {len(clear)} of {len(POWERS)} n.",
        f"Extremes: {gain[-8][0]:.1%} ± {gain[-8][1]:.1%} (n = −8), {gain[8][0]:.1%} ± {gain[8][1]:.1%} (n = 8).",
    )
    larger = float(np.mean([gain[n][0] for n in uneven])) > gain[0][0]
    highest = max(gain[n][0] for n in uneven)
    held = (
        judge(-gain[0][1] < gain[0][0] < max(2 * gain[0][1], 0.05)),
        judge(larger, 2 * len([n for n in clear if n in uneven]) > len(uneven)),
        judge(min(gain[-8][0], gain[8][0]) < highest),
    )
    setting = (
        f"{n_trials} trials of {HELD_OUT:.0%} of {len(problem.target):,} requests; pseudo-counts of 1; seed {seed}. "
        "Differences are paired by trial and in units of no sharing's loss; ± are standard errors over trials, which "
        "share requests."
    )
    return Study(table, _draw(table), ours, setting, "", held)


def _splits(n_rows: int, n_trials: int, seed: int) -> Iterator[Split]:
    for trial in range(n_trials):
        order = np.random.default_rng([seed, trial]).permutation(n_rows)
        n = round(HELD_OUT * n_rows)
        yield np.sort(order[n:]), np.sort(order[:n])


def losses(answers: pl.DataFrame) -> pl.DataFrame:
    """Mean loss of both models at every n, and how much less the clustered one has, in units of the other's.

    Returns
    -------
    polars.DataFrame
        ``n``, ``clustered``, ``no sharing``, ``gain`` and its standard ``error`` over splits.
    """
    rows = []
    for n in POWERS:
        loss = Loss.asymmetric(n)
        by_split: dict[str, Any] = {}
        for (model,), own in answers.group_by("model", maintain_order=True):
            p = own["p"].to_numpy()
            actions = np.asarray(decide(np.column_stack([1 - p, p]), loss))
            cost = loss.matrix[own["truth"].to_numpy().astype(int), actions]
            means = (
                own.with_columns(cost=pl.Series(cost)).group_by("split", maintain_order=True).agg(pl.col("cost").mean())
            )
            by_split[str(model)] = means["cost"].to_numpy()
        ours, theirs = by_split[CLUSTERED], by_split[NO_SHARING]
        gap = (theirs - ours) / max(float(theirs.mean()), np.finfo(float).tiny)
        error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else 0.0
        rows.append(
            {"n": n, CLUSTERED: ours.mean(), NO_SHARING: theirs.mean(), "gain": gap.mean(), "error": float(error)}
        )
    return pl.DataFrame(rows)


def _draw(table: pl.DataFrame) -> Figure:
    figure = Figure(figsize=(10, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    n = table["n"].to_numpy()
    dearest = np.maximum(2.0**n, 1.0)
    for name, colour, marker in ((NO_SHARING, style.ALONE, "s"), (CLUSTERED, style.PALETTE[0], "o")):
        left.plot(n, table[name].to_numpy() / dearest, color=colour, marker=marker, markersize=4, label=name)
    style.name_axes(left, "n: a miss costs 2ⁿ", "mean loss, in units of the costlier mistake")
    style.write_key(left)
    right.axhline(0, color=style.APART, linewidth=1)
    gain, error = table["gain"].to_numpy(), table["error"].to_numpy()
    right.errorbar(n, 100 * gain, yerr=200 * error, color=style.PALETTE[0], marker="o", markersize=4, capsize=2.5)
    style.name_axes(right, "n: a miss costs 2ⁿ", "less loss than no sharing, % (bars: two standard errors)")
    for ax in (left, right):
        style.quieten(ax)
    return figure
