"""Right answers when every request is left out in turn, user by user (thesis figures 4-4 and 4-7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from kinfolk.experiments.clustered_naive_bayes.learning_curves import CLUSTERED, COMPLETE_SHARING, NO_SHARING
from kinfolk.experiments.clustered_naive_bayes.thesis_models import (
    MAJORITY,
    accuracy_by_task,
    leave_one_out,
    probabilities,
    thesis_models,
)
from kinfolk.plots import style
from kinfolk.progress import progress_bar

LOOKS: dict[str, dict[str, Any]] = {
    NO_SHARING: {"color": style.ALONE},
    COMPLETE_SHARING: {"facecolor": "white", "edgecolor": style.PALETTE[1], "hatch": "////"},
    CLUSTERED: {"color": style.PALETTE[0]},
}


def measure(problem: Any, models: Sequence[str], every: int) -> pl.DataFrame:
    """Accuracy of every user by every model, and by the user's most common label."""
    splits = leave_one_out(len(problem.target), every)
    with progress_bar("Leaving out one by one", len(splits), True) as advance:
        answers = probabilities(problem, {name: thesis_models()[name] for name in models}, splits, advance)
    return accuracy_by_task(answers)


def draw(by_task: pl.DataFrame) -> Figure:
    """Bars of models side by side for each user, and a line at the user's most common label."""
    figure = Figure(figsize=(12, 4.6), layout="constrained")
    ax = figure.subplots()
    models = [name for name in LOOKS if name in set(by_task["model"])]
    tasks = by_task.filter(pl.col("model") == models[0])["task"].to_list()
    width = 0.8 / len(models)
    for place, name in enumerate(models):
        own = by_task.filter(pl.col("model") == name)["accuracy"].to_numpy()
        x = np.arange(len(tasks)) + width * (place - (len(models) - 1) / 2)
        ax.bar(x, own, width=0.9 * width, label=name, **LOOKS[name])
    common = by_task.filter(pl.col("model") == MAJORITY)["accuracy"].to_numpy()
    ax.step(np.arange(len(tasks)), common, where="mid", color=style.INK, linewidth=1.4, label=MAJORITY)
    ax.set_xticks(range(len(tasks)), [str(task) for task in tasks])
    ax.set_ylim(0, 1)
    style.quieten(ax)
    style.name_axes(ax, "user", "share of right answers, each request left out")
    # Above the axes, where no bar stands.
    ax.legend(frameon=False, fontsize=8, ncols=4, loc="lower left", bbox_to_anchor=(0.0, 1.0))
    return figure


def setting(by_task: pl.DataFrame, seed: int) -> str:
    """How much was run."""
    n = int(by_task.filter(pl.col("model") == MAJORITY)["rows"].sum())
    return f"{n:,} requests, each left out in turn and all others learnt from; pseudo-counts of 1; seed {seed}."
