"""Figure 4-7 of Roy (2006): each user's leave-one-out accuracy by all three models."""

from __future__ import annotations

import polars as pl

from kinfolk.experiments.clustered_naive_bayes import left_out_accuracy as left_out
from kinfolk.experiments.clustered_naive_bayes.learning_curves import CLUSTERED, COMPLETE_SHARING, NO_SHARING
from kinfolk.experiments.clustered_naive_bayes.stand_in import MADE_UP_MEETINGS, THESIS, meetings_problem
from kinfolk.experiments.clustered_naive_bayes.thesis_models import MAJORITY, difference
from kinfolk.experiments.publishing import About, Study, judge

ABOUT = About(
    THESIS,
    "Left out every request in turn and counted right answers of all three models, user by user.",
    f"{MADE_UP_MEETINGS} Clusters are found by BHC anew for every request left out, where the thesis sampled.",
    (
        "The clustered model performs marginally better on average, though not on every user.",
        "In most cases the clustered model is better than all three other strategies.",
        "In some cases the most common label outperforms all methods.",
        "User 12 does better under the clustered model, grouped with two others (section 4.1).",
    ),
)


def study(*, quick: bool = False, seed: int = 0, every: int | None = None) -> Study:
    """Measure the three models."""
    problem = meetings_problem(seed)
    models = (NO_SHARING, COMPLETE_SHARING, CLUSTERED)
    by_task = left_out.measure(problem, models, every or (20 if quick else 1))
    mean, error, ahead, behind = difference(by_task, CLUSTERED, NO_SHARING)
    wide = by_task.pivot("model", index="task", values="accuracy")
    others = pl.max_horizontal(NO_SHARING, COMPLETE_SHARING, MAJORITY)
    best = wide.filter(pl.col(CLUSTERED) > others).height
    common = wide.filter(pl.col(MAJORITY) > pl.max_horizontal(*models)).height
    twelve = wide.filter(pl.col("task") == 12).row(0, named=True)
    ours = (
        f"Clustered above no sharing by {mean:+.3f} ± {error:.3f} on average over users: better for {ahead}, worse for "
        f"{behind} of {wide.height}.",
        f"Better than all three others for {best} of {wide.height} users.",
        f"The most common label is ahead of all models for {common} of {wide.height} users.",
        f"User 12: {twelve[CLUSTERED]:.0%} clustered, {twelve[NO_SHARING]:.0%} without sharing.",
    )
    held = (
        judge(None if abs(mean) < error else mean > 0, behind > 0),
        judge(best > wide.height / 2),
        judge(common >= 1),
        judge(twelve[CLUSTERED] > twelve[NO_SHARING]),
    )
    return Study(by_task, left_out.draw(by_task), ours, left_out.setting(by_task, seed), "", held)
