"""Right answers by the share of a user's requests that were learnt from, user by user (thesis figures 4-1 and 4-3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from kinfolk.experiments.clustered_naive_bayes.thesis_models import Split, probabilities, thesis_models
from kinfolk.plots import style
from kinfolk.progress import progress_bar

FEWEST = 10
# A fifth of the steps at either end of a curve is compared with the other.
END = 5


def measure(problem: Any, model: str, n_steps: int, n_repeats: int, seed: int) -> pl.DataFrame:
    """Accuracy of every user at every step: ``task``, ``step``, ``trained``, ``tested``, ``accuracy``, ``error``."""
    with progress_bar("Learning curves", n_steps * n_repeats, True) as advance:
        splits = list(_splits(problem.task, n_steps, n_repeats, seed))
        answers = probabilities(problem, {model: thesis_models()[model]}, splits, advance)
    size = {one: int(n) for one, n in zip(*np.unique(problem.task, return_counts=True), strict=True)}
    right = ((pl.col("p") > 0.5) == pl.col("truth")).mean()
    table = (
        answers.with_columns(step=pl.col("split") // n_repeats)
        .group_by("task", "step", maintain_order=True)
        .agg(tested=pl.len(), accuracy=right)
        .sort("task", "step")
    )
    trained = [_n_trained(size[task], step, n_steps) for task, step in table.select("task", "step").iter_rows()]
    # As in the thesis, the error is that of a probability learnt from so many trials; one of them is never taken for 0.
    rate = (pl.col("accuracy") * pl.col("tested") + 1) / (pl.col("tested") + 2)
    return table.with_columns(
        trained=pl.Series(trained), error=(rate * (1 - rate) / pl.col("tested")).sqrt(), repeats=pl.lit(n_repeats)
    )


def _n_trained(n_rows: int, step: int, n_steps: int) -> int:
    """From 10 to all but one, in equal steps."""
    return round(FEWEST + (n_rows - 1 - FEWEST) * step / max(n_steps - 1, 1))


def _splits(task: Any, n_steps: int, n_repeats: int, seed: int) -> Iterator[Split]:
    rows_of = [np.flatnonzero(task == one) for one in np.unique(task)]
    for step in range(n_steps):
        for repeat in range(n_repeats):
            rng = np.random.default_rng([seed, repeat])
            train, test = [], []
            for rows in rows_of:
                order = rng.permutation(rows)
                n = _n_trained(len(rows), step, n_steps)
                train.append(order[:n])
                test.append(order[n:])
            yield np.sort(np.concatenate(train)), np.sort(np.concatenate(test))


def _end(table: pl.DataFrame, first: bool) -> pl.DataFrame:
    """Accuracy over the first or the last fifth of the steps, with its error."""
    n_steps = int(table["step"].to_numpy().max()) + 1
    width = max(n_steps // END, 1)
    part = table.filter(pl.col("step") < width) if first else table.filter(pl.col("step") >= n_steps - width)
    right = (pl.col("accuracy") * pl.col("tested")).sum() / pl.col("tested").sum()
    # Repetitions test the same requests again: what is known grows with requests, not with trials.
    means = part.group_by("task", maintain_order=True).agg(
        accuracy=right, n=pl.col("tested").max() / pl.col("repeats").first()
    )
    rate = pl.col("accuracy").clip(0.02, 0.98)
    return means.with_columns(error=(rate * (1 - rate) / pl.col("n").clip(1)).sqrt())


def ends(table: pl.DataFrame) -> pl.DataFrame:
    """Accuracy at both ends of every user's curve: ``task``, ``first``, ``last``, ``error``, ``last_error``."""
    first, last = (_end(table, at).rename({"accuracy": name}) for at, name in ((True, "first"), (False, "last")))
    return first.join(last.select("task", "last", last_error="error"), on="task", maintain_order="left")


def trends(table: pl.DataFrame) -> tuple[int, int]:
    """How many users' curves fall and how many rise, by more than two standard errors."""
    both = ends(table)
    change = both["last"].to_numpy() - both["first"].to_numpy()
    error = np.hypot(both["error"].to_numpy(), both["last_error"].to_numpy())
    return int((change < -2 * error).sum()), int((change > 2 * error).sum())


def gained(both: pl.DataFrame) -> tuple[float, float]:
    """Mean change over users from beginning to end, with its standard error over users."""
    change = both["last"].to_numpy() - both["first"].to_numpy()
    return float(change.mean()), float(change.std(ddof=1) / np.sqrt(len(change)))


def draw(table: pl.DataFrame, people: Any) -> Figure:
    """A small panel for each user, as the thesis has it: accuracy against how many requests were learnt from."""
    figure = Figure(figsize=(12, 7), layout="constrained")
    panels = figure.subplots(3, -(-len(people) // 3), sharey=True).ravel()
    for ax, person in zip(panels, people, strict=False):
        own = table.filter(pl.col("task") == person.id)
        x, y, error = (own[column].to_numpy() for column in ("trained", "accuracy", "error"))
        ax.axhline(0.5, color=style.APART, linewidth=0.8)
        ax.fill_between(x, y - error, y + error, color=style.PALETTE[0], alpha=0.25, linewidth=0)
        ax.plot(x, y, color=style.PALETTE[0], linewidth=1.2)
        ax.set_ylim(0, 1)
        ax.set_title(f"{person.id}: {y[-1]:.0%}", fontsize=9, color=style.INK)
        style.quieten(ax)
        ax.tick_params(labelsize=7)
    for ax in panels[len(people) :]:
        ax.set_visible(False)
    figure.supxlabel("requests learnt from", fontsize=9, color=style.ALONE)
    figure.supylabel("share of right answers on the others", fontsize=9, color=style.ALONE)
    return figure


def setting(table: pl.DataFrame, seed: int) -> str:
    """How much was run."""
    n_steps, n_repeats = int(table["step"].to_numpy().max()) + 1, int(table["repeats"][0])
    return (
        f"{n_steps} steps from {FEWEST} to all but one of a user's requests, {n_repeats} repetitions each; "
        f"pseudo-counts of 1; seed {seed}. The last point of a curve tests one request a repetition."
    )
