"""The demonstration: a made-up team of 21 people who answer meeting requests, and what they can learn of each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.metrics import adjusted_rand_score

from kinfolk.datasets.meetings import make_meetings
from kinfolk.decisions import Loss, decide, expected_loss
from kinfolk.experiments.clustered_naive_bayes.learning_curves import (
    CLUSTERED,
    NO_SHARING,
    POSITIVE,
    average_gain,
    average_over_people,
    everybody_with_few,
    gain_over_no_sharing,
    one_person_with_few,
    sharing_models,
)
from kinfolk.experiments.clustered_naive_bayes.stand_in import in_blocks
from kinfolk.experiments.clustered_naive_bayes.team_picture import draw_team_picture
from kinfolk.experiments.publishing import as_png, write_whole
from kinfolk.naive_bayes.estimators.clustered import ClusteredNB
from kinfolk.progress import progress_bar
from kinfolk.tasks.selection.splitters import FewPerTask

SIZES = (1, 4, 16, 64)
PICTURE = "team.png"
# A wrong acceptance costs 1, a wrong refusal half of that, a question to the person a tenth.
ACCEPTED_WRONGLY_TO_REFUSED_WRONGLY = -1
COST_OF_ASKING = 0.1
FEATURES_SHOWN = 5


class Team(NamedTuple):
    """The team's requests, how the models do on them, and the clustered model at the largest size."""

    meetings: Any
    everybody: pl.DataFrame
    newcomer: pl.DataFrame
    model: ClusteredNB
    held_out: NDArray[np.intp]


def run_demo(output: Path, quick: bool = False, seed: int = 0, sizes: tuple[int, ...] = SIZES) -> Path:
    """Show what sharing among kin does: print how each model does, who is kin and one decision, and draw a picture.

    Parameters
    ----------
    output : Path
        Folder for the picture, ``team.png``; made where there is none.
    quick : bool
        Whether to do with fewer random splits.
    seed : int
        Decides everything that chance decides.
    sizes : tuple of int
        How many examples of each person the models learn from, in rising order.

    Returns
    -------
    Path
        Where the picture is.
    """
    say = Console(stderr=True, highlight=False).print
    show = Console(highlight=False)
    say("Making up a team of 21 people and their answers to 3966 meeting requests ...")
    team = measure_team(quick, seed, sizes)
    for table in (
        _table_of_scores("Everybody is new: so many examples of each person", team.everybody),
        _table_of_scores("One newcomer: so many examples, and all of the colleagues'", team.newcomer),
        _table_of_kin(team),
    ):
        show.print(table)
        show.print()
    _show_decision(show, team)
    say("Drawing ...")
    path = output / PICTURE
    _write_picture(team, path)
    show.print(f"\nThe picture is in {path}", soft_wrap=True, markup=False)
    return path


def _write_picture(team: Team, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, as_png(draw_team_picture(team.everybody, team.newcomer, team.model, team.meetings.people)))


def measure_team(quick: bool = False, seed: int = 0, sizes: tuple[int, ...] = SIZES) -> Team:
    """Fit the three sharing models at every size, over several random splits, and the clustered one for showing."""
    meetings = make_meetings(random_state=seed)
    n_splits, n_newcomer_splits = (3, 1) if quick else (10, 2)
    with progress_bar("Everybody with few examples", n_splits * len(sizes), True) as advance:
        everybody = everybody_with_few(meetings, sharing_models(), sizes, n_splits, seed, advance)
    n_steps = n_newcomer_splits * len(sizes) * len(meetings.people)
    with progress_bar("Each person in turn as the newcomer", n_steps, True) as advance:
        newcomer = one_person_with_few(meetings, sharing_models(), sizes, n_newcomer_splits, seed, advance)
    first_split = FewPerTask(sizes[-1], 1, random_state=seed)
    train, test = next(first_split.split(meetings.data, meetings.target, task=meetings.task))
    model = ClusteredNB(inference="bhc").fit(meetings.data[train], meetings.target[train], task=meetings.task[train])
    return Team(meetings, everybody, newcomer, model, test)


def _table_of_scores(title: str, scores: pl.DataFrame) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", caption_justify="left")
    table.add_column("examples", justify="right")
    table.add_column("model")
    for heading in ("AUC", "log loss", "AUC gained"):
        table.add_column(heading, justify="right")
    gains = {
        (model, size): (mean, error)
        for model in scores["model"].unique()
        for size, mean, error in average_gain(gain_over_no_sharing(scores, model))
        .select("examples", "auc", "auc_error")
        .iter_rows()
    }
    averages = average_over_people(scores)
    for (size,), rows in averages.group_by("examples", maintain_order=True):
        for row in rows.iter_rows(named=True):
            model = row["model"]
            table.add_row(
                str(size) if model == NO_SHARING else "",
                model,
                f"{row['auc']:.3f} ± {row['auc_error']:.3f}",
                f"{row['log_loss']:.3f} ± {row['log_loss_error']:.3f}",
                "" if model == NO_SHARING else "{:+.3f} ± {:.3f}".format(*gains[model, row["examples"]]),
                style="bold" if model == CLUSTERED else None,
                end_section=model == CLUSTERED,
            )
    n_splits = scores["split"].n_unique()
    table.caption = (
        f"mean ± standard error over people, {n_splits} random split{'s' if n_splits > 1 else ''}; "
        "gained: person by person, over no sharing"
    )
    return table


def _table_of_kin(team: Team) -> Table:
    model, people = team.model, team.meetings.people
    described = {person.id: f"{person.name} ({person.institution})" for person in people}
    found = in_blocks(model.partition_, [described[task] for task in model.tasks_.tolist()])
    agreement = adjusted_rand_score([person.group for person in people], model.partition_)
    table = Table(
        title=f"Who is kin, by {max(team.everybody['examples'].to_list())} examples of each person",
        title_justify="left",
        title_style="bold",
        caption=f"agreement with the nine groups that were put in (adjusted Rand index): {agreement:.2f}",
        caption_justify="left",
    )
    table.add_column("kin")
    table.add_column("people")
    for number, block in enumerate((block for block in found if len(block) > 1), start=1):
        table.add_row(str(number), ", ".join(block))
    alone = [name for block in found if len(block) == 1 for name in block]
    if alone:
        table.add_row("none", ", ".join(alone))
    return table


def _show_decision(show: Console, team: Team) -> None:
    """Decide one request of somebody who has kin, and say why."""
    model, meetings = team.model, team.meetings
    sizes = np.bincount(model.partition_)
    person = next(p for p, seat in zip(meetings.people, model.partition_, strict=True) if sizes[seat] == sizes.max())
    row = team.held_out[meetings.task[team.held_out] == person.id][:1]
    request, task = meetings.data[row], meetings.task[row]
    loss = Loss.asymmetric(ACCEPTED_WRONGLY_TO_REFUSED_WRONGLY, model.classes_, positive=POSITIVE)
    loss = loss.with_ask(COST_OF_ASKING)
    probability = model.predict_proba(request, task=task)
    action = decide(probability, loss, classes=model.classes_)[0]
    costs = expected_loss(probability, loss, classes=model.classes_)[0]
    why = model.explain(request, task=task)

    table = Table(
        title=f"One request to {person.name} ({person.institution})",
        title_justify="left",
        title_style="bold",
        caption=f"log odds: above zero speaks for {POSITIVE}\nown, kin: whose examples it rests on",
        caption_justify="left",
    )
    table.add_column("feature")
    table.add_column("value")
    for heading in ("log odds", "own", "kin"):
        table.add_column(heading, justify="right")
    features = why.table(0, label=POSITIVE).head(len(why.feature_names))
    for part in features.head(FEATURES_SHOWN).iter_rows(named=True):
        table.add_row(
            part["feature"], part["value"], f"{part['log_odds']:+.2f}", f"{part['own']:.0%}", f"{part['kin']:.0%}"
        )
    place = model.classes_.tolist().index(POSITIVE)
    by_habit, unsure = (float(part[0, place] - part[0, 1 - place]) for part in (why.label_part, why.remainder))
    table.add_row("the other features", "", f"{features['log_odds'][FEATURES_SHOWN:].sum():+.2f}")
    table.add_row(f"how often {person.name} accepts", "", f"{by_habit:+.2f}", "100%")
    if abs(unsure) >= 0.005:
        table.add_row("not sure who is kin", "", f"{unsure:+.2f}")
    table.add_section()
    table.add_row("all together", "", f"{why.log_odds(POSITIVE)[0]:+.2f}", style="bold")
    show.print(table)
    names = loss.actions or ()
    show.print(
        f"{POSITIVE} with probability {probability[0, place]:.2f}; expected loss: "
        + ", ".join(f"{name} {cost:.2f}" for name, cost in zip(names, costs, strict=True))
        + f". So: {action}. {person.name}'s own answer was: {meetings.target[row[0]]}.",
        soft_wrap=True,
    )
