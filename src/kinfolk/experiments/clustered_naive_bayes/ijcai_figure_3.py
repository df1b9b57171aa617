"""Figure 3 of Roy and Kaelbling (2007): area under the curve against training size for five users."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from kinfolk.datasets.meetings import make_meetings
from kinfolk.experiments.clustered_naive_bayes.learning_curves import (
    CLUSTERED,
    COLOURS,
    FEWEST_HELD_OUT,
    MARKERS,
    NO_SHARING,
    gain_over_no_sharing,
    one_person_with_few,
    papers_models,
)
from kinfolk.experiments.clustered_naive_bayes.stand_in import MADE_UP_MEETINGS, PAPER
from kinfolk.experiments.drawing import dress_examples_axis
from kinfolk.experiments.publishing import About, Study, Verdict, judge
from kinfolk.plots import style
from kinfolk.progress import progress_bar

SIZES = (1, 2, 4, 8, 16, 32, 64, 128)
FEW = (1, 2, 4, 8)
WITH_KIN = (1, 3, 20)
WITHOUT_KIN = (19, 18)

ABOUT = About(
    PAPER,
    "Trained on 1, 2, 4, …, 128 examples of one user and on all examples of the other twenty, and measured the area "
    "under the ROC curve on the rest of that user's requests, over twenty random splits. Five of the 21 users are "
    "shown: 1, 3, 20, 17 and 7, each with the cluster of users that the MAP partition puts it into.",
    f"{MADE_UP_MEETINGS} Users 1, 3 and 20 are shown as in the paper. Its users 17 and 7, who gain nothing or lose, "
    "have kin in the made-up data; two users who are alone in their groups, 19 and 18, are shown in their place.",
    (
        "Users 1, 3 and 20 gain from related users' data when they have few examples.",
        "The gain tapers off as the number of examples grows.",
        "User 17 gains nothing from very few samples: there are no good candidates to cluster with.",
        "User 7 is worse than without sharing, being grouped with a user who is not alike, and recovers only at 128 "
        "examples.",
        "User 1's MAP cluster changes at each step, user 3's stays the same.",
    ),
)


def study(*, quick: bool = False, seed: int = 0, sizes: tuple[int, ...] = SIZES, n_splits: int | None = None) -> Study:
    """Measure the five users' learning curves."""
    meetings = make_meetings(random_state=seed)
    shown = (*WITH_KIN, *WITHOUT_KIN)
    n_splits = n_splits or (4 if quick else 20)
    n_requests = Counter(meetings.task.tolist())
    n_steps = n_splits * sum(n_requests[user] > size for user in shown for size in sizes)
    with progress_bar("Five users, few examples each", n_steps, True) as advance:
        scores = one_person_with_few(meetings, papers_models(), sizes, n_splits, seed, advance, shown)
    table = _by_user(scores)
    setting = (
        f"Sizes {', '.join(map(str, sizes))}; {n_splits} random splits each; seed {seed}. A user is left out at sizes "
        f"that leave fewer than {FEWEST_HELD_OUT} requests to test."
    )
    return Study(table, _draw(table, meetings.people), _compare(table), setting, held=_judge(table))


def _by_user(scores: pl.DataFrame) -> pl.DataFrame:
    """Mean areas over splits, their difference with its standard error, and the most common MAP cluster."""
    keys = ["person", "examples"]
    areas = [
        expression.alias(column)
        for model in (CLUSTERED, NO_SHARING)
        for column, expression in zip(_columns(model), _mean_and_error(pl.col("model") == model), strict=True)
    ]
    kin = pl.col("kin").filter(pl.col("model") == CLUSTERED)
    table = scores.group_by(keys, maintain_order=True).agg(*areas, kin=kin)
    gain = (
        gain_over_no_sharing(scores)
        .group_by(keys)
        .agg(gain=pl.col("auc").mean(), gain_error=pl.col("auc").std() / pl.len().sqrt())
    )
    order = pl.col("person").replace_strict({user: place for place, user in enumerate((*WITH_KIN, *WITHOUT_KIN))})
    most_common = pl.col("kin").map_elements(_most_common, return_dtype=pl.String)
    return table.join(gain, on=keys).with_columns(most_common).sort(order, "examples")


def _columns(model: str) -> tuple[str, str]:
    name = f"auc_{model.replace(' ', '_')}"
    return name, f"{name}_error"


def _mean_and_error(of_model: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    auc = pl.col("auc").filter(of_model)
    return auc.mean(), auc.std() / auc.len().sqrt()


def _most_common(clusters: pl.Series) -> str:
    return str(Counter(clusters).most_common(1)[0][0])


def _draw(table: pl.DataFrame, people: Any) -> Figure:
    figure = Figure(figsize=(13, 4.8), layout="constrained")
    panels = figure.subplots(1, len(WITH_KIN) + len(WITHOUT_KIN), sharey=True)
    named = {person.id: person for person in people}
    for ax, user in zip(panels, (*WITH_KIN, *WITHOUT_KIN), strict=True):
        _draw_user(ax, table.filter(pl.col("person") == user))
        ax.set_title(f"{user}: {named[user].name} ({named[user].institution})", fontsize=11, color=style.INK, pad=72)
    panels[0].set_ylabel("area under the ROC curve", fontsize=9, color=style.ALONE)
    panels[2].set_xlabel("examples of this user; all of everybody else's", fontsize=9, color=style.ALONE)
    panels[0].legend(loc="lower right", fontsize=9, frameon=False)
    return figure


def _draw_user(ax: Axes, curve: pl.DataFrame) -> None:
    sizes = curve["examples"].to_list()
    for model in (NO_SHARING, CLUSTERED):
        mean, error = (curve[column].to_numpy() for column in _columns(model))
        ax.plot(sizes, mean, color=COLOURS[model], marker=MARKERS[model], markersize=4.5, label=model)
        ax.fill_between(sizes, mean - error, mean + error, color=COLOURS[model], alpha=0.15, linewidth=0)
    before = None
    # As in the paper, a cluster is named where it changes; above the panel, where no line runs.
    above: dict[str, Any] = {"transform": ax.get_xaxis_transform(), "rotation": 90, "ha": "center", "va": "bottom"}
    for size, kin in zip(sizes, curve["kin"], strict=True):
        if kin != before:
            ax.text(size, 1.02, f"[{kin}]", fontsize=7, color=COLOURS[CLUSTERED], **above)
        before = kin
    dress_examples_axis(ax, SIZES)
    ax.set_ylim(0.4, 1.0)


def _compare(table: pl.DataFrame) -> tuple[str, ...]:
    few = table.filter(pl.col("examples").is_in(FEW)).group_by("person", maintain_order=True).agg(pl.col("gain").mean())
    gain_of = dict(zip(few["person"], few["gain"], strict=True))
    largest = table.group_by("person", maintain_order=True).last()
    last = {user: (size, gain) for user, size, gain in largest.select("person", "examples", "gain").iter_rows()}
    clusters = {user: table.filter(pl.col("person") == user)["kin"].to_list() for user in (*WITH_KIN, *WITHOUT_KIN)}
    ahead = [user for user in WITH_KIN if gain_of[user] > 0]
    early = f"at {FEW[0]} to {FEW[-1]} examples, on average"
    alone, mistaken = WITHOUT_KIN
    return (
        f"{_listed(ahead)} gain {early}: "
        + ", ".join(f"{gain_of[user]:+.2f} (user {user})" for user in WITH_KIN)
        + ".",
        "Gain at the largest size: "
        + ", ".join(f"{last[user][1]:+.2f} (user {user}, {last[user][0]} examples)" for user in WITH_KIN)
        + ".",
        f"User {alone}, who has no kin: {gain_of[alone]:+.2f} {early}.",
        f"User {mistaken}, who has no kin either: {gain_of[mistaken]:+.2f} {early}, most often grouped with "
        f"[{clusters[mistaken][0]}] at first; {last[mistaken][1]:+.2f} at {last[mistaken][0]} examples.",
        "Changes of the most common cluster from size to size: "
        + ", ".join(f"{_changes(clusters[user])} (user {user})" for user in (1, 3))
        + ".",
    )


def _judge(table: pl.DataFrame) -> tuple[Verdict, ...]:
    """Whether the paper's five findings hold, in their order."""
    alone, mistaken = WITHOUT_KIN
    clear = dict.fromkeys((*WITH_KIN, *WITHOUT_KIN), 0.0)
    tapers = []
    for user in clear:
        own = table.filter(pl.col("person") == user)
        early = own.filter(pl.col("examples").is_in(FEW))
        clear[user] = _mean(early, "gain") / max(_mean(early, "gain_error"), 1e-12)
        if user in WITH_KIN:
            tapers.append(own["gain"][-1] < _mean(early, "gain"))
    changes = {
        user: _changes(table.filter(pl.col("person") == user)["kin"].to_list()) for user in (WITH_KIN[0], WITH_KIN[1])
    }
    steps = table.filter(pl.col("person") == WITH_KIN[0]).height - 1
    return (
        judge(*[clear[user] > 1 for user in WITH_KIN]),
        judge(*tapers),
        judge(clear[alone] < 1),
        judge(clear[mistaken] < -1),
        judge(changes[WITH_KIN[0]] >= steps / 2, changes[WITH_KIN[1]] == 0),
    )


def _mean(rows: pl.DataFrame, column: str) -> float:
    return float(rows[column].to_numpy().mean())


def _changes(clusters: list[str]) -> int:
    return sum(before != after for before, after in pairwise(clusters))


def _listed(users: list[int]) -> str:
    if not users:
        return "None of the three users"
    return "Users " + ", ".join(map(str, users)) if len(users) > 1 else f"User {users[0]} alone"
