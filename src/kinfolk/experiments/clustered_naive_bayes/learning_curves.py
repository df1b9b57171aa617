"""Learning curves: how well models predict each person's answers, by the number of examples they learnt from.

Two settings. In the first, everybody has few examples. In the second, which is that of Roy and Kaelbling (2007), one
person has few and all others have all of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from matplotlib.axes import Axes
from numpy.typing import NDArray

from kinfolk.experiments.cells import cells
from kinfolk.experiments.drawing import dress_examples_axis
from kinfolk.experiments.measuring import area_under_curve, mean_and_error
from kinfolk.naive_bayes.estimators.base import SharingNB
from kinfolk.naive_bayes.estimators.clustered import ClusteredNB
from kinfolk.naive_bayes.estimators.complete_sharing import CompleteSharingNB
from kinfolk.naive_bayes.estimators.no_sharing import NoSharingNB
from kinfolk.plots import style
from kinfolk.tasks.selection.splitters import FewPerTask, OneTaskFew

CLUSTERED, NO_SHARING, COMPLETE_SHARING = "clustered", "no sharing", "complete sharing"
# The last of the palette, since clusters take theirs from its beginning and may stand in the same picture.
COLOURS = {CLUSTERED: style.PALETTE[-2], NO_SHARING: style.ALONE, COMPLETE_SHARING: style.PALETTE[-1]}
MARKERS = {CLUSTERED: "o", NO_SHARING: "s", COMPLETE_SHARING: "D"}
DASHES = {NO_SHARING: (0, (4, 2)), COMPLETE_SHARING: (0, (1, 1.2)), CLUSTERED: "-"}
# In doublings of the number of examples.
SHIFTS = {NO_SHARING: 0.12, COMPLETE_SHARING: -0.12, CLUSTERED: 0.0}
MEASURES = ("auc", "log_loss")

POSITIVE = "accept"
# With fewer held-out requests a person's area under the curve is mostly chance.
FEWEST_HELD_OUT = 20

Models = Mapping[str, SharingNB]
Advance = Callable[[int], None]
Rows = NDArray[np.intp]


def sharing_models() -> dict[str, SharingNB]:
    """The three ways to share, as they come."""
    return {NO_SHARING: NoSharingNB(), COMPLETE_SHARING: CompleteSharingNB(), CLUSTERED: ClusteredNB()}


def papers_models() -> dict[str, SharingNB]:
    """The two models of Roy and Kaelbling (2007), no prior learnt; predictions by their equation (4) as printed."""
    plain: dict[str, Any] = {"label_prior": 1.0, "feature_prior": 1.0, "temper": 1.0}
    return {NO_SHARING: NoSharingNB(**plain), CLUSTERED: ClusteredNB(predictive="averaged", **plain)}


def everybody_with_few(
    meetings: Any, models: Models, sizes: Sequence[int], n_splits: int, seed: int, advance: Advance
) -> pl.DataFrame:
    """Score models that learnt from so many examples of every person, on all other requests.

    Parameters
    ----------
    meetings : Bunch
        As `kinfolk.datasets.meetings.make_meetings` makes them.
    models : mapping of str to estimator
        They are copied before they are fitted.
    sizes : sequence of int
        Examples per person.
    n_splits : int
        Random splits for each size.
    seed : int
        Of the splits, whose training rows are nested.
    advance : callable
        Called with 1 after each split.

    Returns
    -------
    polars.DataFrame
        A row for each model, size, split and person: ``auc``, ``log_loss`` and ``kin``, the people that the model
        most probably puts into one cluster with this one.
    """
    jobs = [
        ("everybody", size, split, train, test)
        for size in sizes
        for split, (train, test) in enumerate(
            FewPerTask(size, n_splits, random_state=seed).split(meetings.data, meetings.target, task=meetings.task)
        )
    ]
    table: list[dict[str, Any]] = []
    for scores in cells(partial(_few_of_everybody, meetings, models), jobs):
        table += scores
        advance(1)
    return pl.DataFrame(table)


def _few_of_everybody(
    meetings: Any, models: Models, _: str, size: int, split: int, train: Rows, test: Rows
) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = []
    for name, model in models.items():
        fitted = deepcopy(model).fit(meetings.data[train], meetings.target[train], task=meetings.task[train])
        about = {"model": name, "examples": size, "split": split}
        table.extend(about | score for score in score_people(fitted, meetings, test))
    return table


def one_person_with_few(
    meetings: Any,
    models: Models,
    sizes: Sequence[int],
    n_splits: int,
    seed: int,
    advance: Advance,
    people: Collection[int] | None = None,
) -> pl.DataFrame:
    """Score models that learnt from so many examples of one person and all of every other's, person by person.

    Parameters and result are those of `everybody_with_few`; ``people`` are those to be the one, by default each in
    turn. ``advance`` is called once for each person, size and split.
    """
    parts_of: dict[int, list[tuple[int, int, Rows, Rows]]] = {}
    for size in sizes:
        splits = OneTaskFew(size, n_splits, random_state=seed).split(meetings.data, meetings.target, task=meetings.task)
        for number, (train, test) in enumerate(splits):
            person = int(meetings.task[test[0]])
            if people is None or person in people:
                few = train[meetings.task[train] == person]
                parts_of.setdefault(person, []).append((size, number, few, test))
    jobs = [("one person", person, n_splits, parts) for person, parts in parts_of.items()]
    scores: list[tuple[int, int, list[dict[str, Any]]]] = []
    for found in cells(partial(_few_of_one, meetings, models), jobs):
        scores += found
        advance(len(found))
    # By size and split, as if all people were looked at beside each other.
    scores.sort(key=lambda part: (sizes.index(part[0]), part[1]))
    return pl.DataFrame([row for _, _, rows in scores for row in rows])


def _few_of_one(
    meetings: Any, models: Models, _: str, person: int, n_splits: int, parts: Sequence[tuple[int, int, Rows, Rows]]
) -> list[tuple[int, int, list[dict[str, Any]]]]:
    """By size and split. All others are learnt once; adding the person's rows gives what fitting all rows gives."""
    known = np.flatnonzero(meetings.task != person)
    others = {
        name: deepcopy(model).fit(meetings.data[known], meetings.target[known], task=meetings.task[known])
        for name, model in models.items()
    }
    found = []
    for size, number, few, test in parts:
        table: list[dict[str, Any]] = []
        for name, model in others.items():
            fitted = deepcopy(model).partial_fit(meetings.data[few], meetings.target[few], task=meetings.task[few])
            about = {"model": name, "examples": size, "split": number % n_splits}
            table.extend(about | score for score in score_people(fitted, meetings, test))
        found.append((size, number, table))
    return found


def score_people(model: SharingNB, meetings: Any, rows: NDArray[np.intp]) -> list[dict[str, Any]]:
    """Score a fitted model on rows, by person; people with too few of them, or with one answer only, are left out."""
    task = meetings.task[rows]
    accepted = meetings.target[rows] == POSITIVE
    place = model.classes_.tolist().index(POSITIVE)
    log_probability = model.predict_log_proba(meetings.data[rows], task=task)
    scores = []
    for person in np.unique(task):
        mine = task == person
        truth, log_p = accepted[mine], log_probability[mine]
        if len(truth) < FEWEST_HELD_OUT or truth.all() or not truth.any():
            continue
        seat = model.partition_[model.tasks_.tolist().index(person)]
        scores.append(
            {
                "person": int(person),
                "auc": area_under_curve(truth, log_p[:, place] - log_p[:, 1 - place]),
                "log_loss": -float(np.where(truth, log_p[:, place], log_p[:, 1 - place]).mean()),
                "kin": " ".join(str(one) for one in model.tasks_[model.partition_ == seat].tolist()),
            }
        )
    return scores


def average_over_people(scores: pl.DataFrame) -> pl.DataFrame:
    """Average over splits, then over people; the standard error is that over people.

    Returns
    -------
    polars.DataFrame
        ``model``, ``examples``, ``people``, and for each measure its mean and, as ``…_error``, its standard error.
    """
    of_people = scores.group_by("model", "examples", "person", maintain_order=True).agg(pl.col(MEASURES).mean())
    return of_people.group_by("model", "examples", maintain_order=True).agg(
        pl.len().alias("people"), *mean_and_error(MEASURES)
    )


def gain_over_no_sharing(scores: pl.DataFrame, model: str = CLUSTERED) -> pl.DataFrame:
    """How much more area and how much less loss a model has than no sharing, person by person.

    Returns
    -------
    polars.DataFrame
        ``examples``, ``split``, ``person``, ``auc``, ``log_loss``; above zero is better in both.
    """
    keys = ["examples", "split", "person"]
    ours = scores.filter(pl.col("model") == model)
    baseline = scores.filter(pl.col("model") == NO_SHARING)
    both = ours.join(baseline, on=keys, suffix="_alone", maintain_order="left")
    return both.select(
        *keys,
        auc=pl.col("auc") - pl.col("auc_alone"),
        log_loss=pl.col("log_loss_alone") - pl.col("log_loss"),
    )


def average_gain(gains: pl.DataFrame) -> pl.DataFrame:
    """Average gains over splits, then over people, by the number of examples; the standard error is over people."""
    of_people = gains.group_by("examples", "person", maintain_order=True).agg(pl.col(MEASURES).mean())
    return of_people.group_by("examples", maintain_order=True).agg(pl.len().alias("people"), *mean_and_error(MEASURES))


def draw_curves(ax: Axes, curves: pl.DataFrame, measure: str) -> None:
    """Draw a measure against the number of examples, one line with error bars for each model."""
    for (model,), curve in curves.group_by("model", maintain_order=True):
        name = str(model)
        # Beside each other by a little, and with dashes of their own, or lines that agree would hide one another.
        ax.errorbar(
            curve["examples"].to_numpy() * 2.0 ** SHIFTS[name],
            curve[measure].to_numpy(),
            yerr=curve[f"{measure}_error"].to_numpy(),
            color=COLOURS[name],
            marker=MARKERS[name],
            linestyle=DASHES[name],
            markerfacecolor="white" if name == NO_SHARING else COLOURS[name],
            markersize=5,
            linewidth=2.0 if name == CLUSTERED else 1.4,
            elinewidth=1.0,
            capsize=2.5,
            label=name,
            zorder=3 if name == CLUSTERED else 2,
        )
    dress_examples_axis(ax, sorted(curves["examples"].unique().to_list()))
