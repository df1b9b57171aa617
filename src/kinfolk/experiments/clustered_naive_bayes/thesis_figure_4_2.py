"""Figure 4-2 of Roy (2006): what two users' models make of each feature, as log ratios side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from kinfolk.experiments.clustered_naive_bayes.learning_curves import NO_SHARING
from kinfolk.experiments.clustered_naive_bayes.stand_in import MADE_UP_MEETINGS, THESIS, meetings_problem
from kinfolk.experiments.clustered_naive_bayes.thesis_models import (
    accuracy_by_task,
    leave_one_out,
    probabilities,
    thesis_models,
)
from kinfolk.experiments.publishing import About, Study, Verdict, judge
from kinfolk.plots import style

ONE, OTHER = 1, 12
# What the thesis says of the two models, in its names of features. How busy the day is, and what rank somebody has, two
# features tell.
IGNORED = ("invitee_recent", "invitee_soon", "conflict", "conflict_frequency", "location")
LARGE = (("topic_importance",), ("busy_fday", "busy_hday"))
HEAVIER = (("invitee_job", "invitee_relation"), ("conflict",), ("location",))

ABOUT = About(
    THESIS,
    "Plotted, for each value of the fifteen features, the log ratio of its probabilities under the two labels in the "
    "models of user 1 and of user 12 (MAP estimates); compared the two users' leave-one-out accuracy, and tried user "
    "1's model on user 12.",
    MADE_UP_MEETINGS,
    (
        "Users 1 and 12 are the two extremes of performance, at 78% and 40%.",
        "User 1's model ignores how recently the two met, how soon the meeting is, conflict, conflict frequency and "
        "location; the importance of the topic and how busy the day is have a large effect.",
        "User 12's model puts more weight on rank, conflict and location.",
        "The two models differ dramatically.",
        "Applied to user 12, user 1's model predicts 76%, more than user 12's own (40%).",
    ),
)


def study(*, quick: bool = False, seed: int = 0, every: int | None = None) -> Study:
    """Compare the two users' models."""
    problem = meetings_problem(seed)
    model = thesis_models()[NO_SHARING].fit(problem.data, problem.target, task=problem.task)
    ratios = (
        pl.DataFrame(model.log_ratios(True, False, by="task", estimate="mean"))
        .filter(pl.col("task").is_in([ONE, OTHER]))
        .pivot("task", index=["feature", "value"], values="log_ratio")
        .rename({str(ONE): "user_1", str(OTHER): "user_12"})
    )
    weight = ratios.group_by("feature", maintain_order=True).agg(
        pl.col("user_1", "user_12").abs().mean(),
    )
    splits = leave_one_out(len(problem.target), every or (20 if quick else 1))
    answers = probabilities(problem, {NO_SHARING: thesis_models()[NO_SHARING]}, splits, lambda _: None)
    own = accuracy_by_task(answers).filter(pl.col("model") == NO_SHARING).sort("accuracy")
    accuracy = dict(own.select("task", "accuracy").iter_rows())
    rows = np.flatnonzero(problem.task == OTHER)
    borrowed = float((model.predict(problem.data[rows], task=np.full(len(rows), ONE)) == problem.target[rows]).mean())
    a, b = (ratios[column].fill_null(0.0).to_numpy() for column in ("user_1", "user_12"))
    alike = float(np.corrcoef(a, b)[0, 1])
    top = {column: weight.sort(column, descending=True)["feature"].to_list() for column in ("user_1", "user_12")}
    known = {row["feature"]: row for row in weight.iter_rows(named=True)}
    extremes = {own["task"][0], own["task"][-1]} == {ONE, OTHER}
    ours = (
        f"User 1 {accuracy[ONE]:.0%}, user 12 {accuracy[OTHER]:.0%}; the extremes are users {own['task'][0]} "
        f"({own['accuracy'][0]:.0%}) and {own['task'][-1]} ({own['accuracy'][-1]:.0%}).",
        f"Mean absolute log ratio of user 1, from the largest: {_weights(weight, 'user_1', top['user_1'])}.",
        "Mean absolute log ratio, user 12 against user 1: "
        + ", ".join(
            f"{feature} {known[feature]['user_12']:.2f} against {known[feature]['user_1']:.2f}"
            for either in HEAVIER
            for feature in either
        )
        + f". Most of user 12's: {_weights(weight, 'user_12', top['user_12'][:3])}.",
        f"Correlation of their log ratios: {alike:.2f}.",
        f"User 1's model names {borrowed:.0%} of user 12's answers rightly; user 12's own {accuracy[OTHER]:.0%}, "
        "each request left out.",
    )
    # The third of all features that weighs least is taken as ignored, the third that weighs most as of large effect.
    third = len(known) // 3
    most, least = set(top["user_1"][:third]), set(top["user_1"][-third:])
    held: tuple[Verdict, ...] = (
        judge(extremes),
        judge(*(feature in least for feature in IGNORED), *(bool(most & set(either)) for either in LARGE)),
        judge(*(any(known[one]["user_12"] > known[one]["user_1"] for one in either) for either in HEAVIER)),
        judge(alike < 0.5),
        judge(borrowed > accuracy[OTHER]),
    )
    n = len(splits)
    setting = f"{len(problem.target)} requests; {n:,} of them left out one by one; pseudo-counts of 1; seed {seed}."
    return Study(ratios, _draw(ratios), ours, setting, "", held)


def _weights(weight: pl.DataFrame, column: str, features: list[str]) -> str:
    known = dict(weight.select("feature", column).iter_rows())
    return ", ".join(f"{feature} {known[feature]:.2f}" for feature in features)


def _draw(ratios: pl.DataFrame) -> Figure:
    features = ratios["feature"].unique(maintain_order=True).to_list()
    figure = Figure(figsize=(13, 8.5), layout="constrained")
    panels = figure.subplots(3, -(-len(features) // 3)).ravel()
    looks: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("user_1", "user 1", {"color": style.PALETTE[0]}),
        ("user_12", "user 12", {"facecolor": "white", "edgecolor": style.PALETTE[1], "hatch": "////"}),
    )
    for ax, feature in zip(panels, features, strict=False):
        own = ratios.filter(pl.col("feature") == feature)
        for place, (column, name, look) in enumerate(looks):
            x = np.arange(own.height) + 0.4 * (place - 0.5)
            ax.bar(x, own[column].fill_null(0.0).to_numpy(), width=0.38, label=name, **look)
        ax.axhline(0, color=style.INK, linewidth=0.8)
        ax.set_xticks(range(own.height), [str(value)[:12] for value in own["value"]], rotation=60, ha="right")
        style.quieten(ax)
        ax.tick_params(labelsize=7)
        style.write_title(ax, feature)
    for ax in panels[len(features) :]:
        ax.set_visible(False)
    panels[0].legend(frameon=False, fontsize=8)
    figure.supylabel("log ratio: above zero for acceptance", fontsize=9, color=style.ALONE)
    return figure
