"""Figure 5 of Roy and Kaelbling (2007): what clustering gains over no sharing, averaged over all users."""

from __future__ import annotations

from collections import Counter

import polars as pl
from matplotlib.figure import Figure

from kinfolk.datasets.meetings import make_meetings
from kinfolk.experiments.clustered_naive_bayes.learning_curves import (
    CLUSTERED,
    COLOURS,
    FEWEST_HELD_OUT,
    average_gain,
    average_over_people,
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
FEW = (1, 2, 4)
# A difference counts where it is more than so many standard errors from zero.
CLEAR = 2.0
# How much hangs on the one team that was made up: so many others, at a few sizes and with fewer splits.
N_OTHER_TEAMS = 4
SIZES_OF_OTHER_TEAMS = (1, 4, 16, 64)
SPLITS_OF_OTHER_TEAMS = 2

ABOUT = About(
    PAPER,
    "For each of the 21 users: trained on 1, 2, 4, …, 128 of the user's examples and on all examples of the others, "
    "twenty random splits, and averaged the difference in area under the ROC curve between the clustered model (BHC) "
    "and naive Bayes without sharing.",
    MADE_UP_MEETINGS,
    (
        "The clustered model has more area under the curve when there is little data.",
        "After 32 examples the two perform roughly equally; the standard model has a slight advantage, which does not "
        "grow.",
        "Roughly one third of the users improve at first; for four, clustering makes predictions worse.",
    ),
)


def study(*, quick: bool = False, seed: int = 0, sizes: tuple[int, ...] = SIZES, n_splits: int | None = None) -> Study:
    """Measure the gain for every user in turn; unless quick, for users of other made-up teams too."""
    n_splits = n_splits or (2 if quick else 20)
    scores = _measure("Each user in turn with few examples", seed, sizes, n_splits)
    gains = gain_over_no_sharing(scores)
    gain = average_gain(gains)
    setting = (
        f"{gain['people'][0]} users; sizes {', '.join(map(str, sizes))}; {n_splits} random splits each; seed {seed}. "
        f"Standard errors are over users. A user is left out at sizes that leave fewer than {FEWEST_HELD_OUT} requests "
        f"to test: at {sizes[-1]} examples {gain['people'][-1]} users are left."
    )
    better, worse, n_users = count_users(gains)
    counted = (
        f"At {FEW[0]} to {FEW[-1]} examples {better} of {n_users} users improve and {worse} get worse, by more than "
        f"{CLEAR:g} standard errors over splits."
    )
    held = (*_judge(gain), judge(better >= n_users / 4, 1 <= worse <= n_users / 3))
    details = "" if quick else _other_teams(seed)
    return Study(_tabulate(scores, gain), _draw(gain), (*_compare(gain), counted), setting, details, held)


def _measure(what: str, seed: int, sizes: tuple[int, ...], n_splits: int) -> pl.DataFrame:
    meetings = make_meetings(random_state=seed)
    n_steps = n_splits * sum(n > size for n in Counter(meetings.task.tolist()).values() for size in sizes)
    with progress_bar(what, n_steps, True) as advance:
        return one_person_with_few(meetings, papers_models(), sizes, n_splits, seed, advance)


def _other_teams(seed: int) -> str:
    """The gains of teams made up with the next seeds, as a table."""
    sizes = SIZES_OF_OTHER_TEAMS
    rows = [
        f"Gains of other made-up teams, with {SPLITS_OF_OTHER_TEAMS} random splits each, by the number of examples:",
        "",
        f"| seed | {' | '.join(map(str, sizes))} |",
        "| --- " * (1 + len(sizes)) + "|",
    ]
    for other in range(seed + 1, seed + 1 + N_OTHER_TEAMS):
        scores = _measure(f"Another team, of seed {other}", other, sizes, SPLITS_OF_OTHER_TEAMS)
        gain = average_gain(gain_over_no_sharing(scores))
        cells = [f"{mean:+.3f} ± {error:.3f}" for mean, error in gain.select("auc", "auc_error").iter_rows()]
        rows.append(f"| {other} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _tabulate(scores: pl.DataFrame, gain: pl.DataFrame) -> pl.DataFrame:
    """Gains, and the two models' own averages beside them."""
    table = gain.rename(lambda column: f"{column.replace('auc', 'auc_gain').replace('log_loss', 'log_loss_gain')}")
    for (model,), curve in average_over_people(scores).group_by("model", maintain_order=True):
        own = curve.select("examples", pl.col("auc", "log_loss").name.suffix(f"_{str(model).replace(' ', '_')}"))
        table = table.join(own, on="examples", maintain_order="left")
    return table


def _draw(gain: pl.DataFrame) -> Figure:
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    ax = figure.subplots()
    sizes, mean, error = (gain[column].to_numpy() for column in ("examples", "auc", "auc_error"))
    ax.axhline(0, color=style.APART, linewidth=1)
    ax.plot(sizes, mean, color=COLOURS[CLUSTERED], marker="o", linewidth=2)
    for edge in (mean - error, mean + error):
        ax.plot(sizes, edge, color=COLOURS[CLUSTERED], linestyle=":", linewidth=1.2)
    dress_examples_axis(ax, sizes.tolist())
    ax.set_xlabel("examples of one user; all of everybody else's", fontsize=9, color=style.ALONE)
    ax.set_ylabel("gain in area under the ROC curve", fontsize=9, color=style.ALONE)
    style.write_title(ax, "Clustered minus no sharing, mean over users (dotted: standard error)")
    return figure


def _compare(gain: pl.DataFrame) -> tuple[str, str]:
    rows = [(size, mean, error) for size, mean, error in gain.select("examples", "auc", "auc_error").iter_rows()]
    few = [row for row in rows if row[0] < 32]
    many = [row for row in rows if row[0] >= 32]
    clear = sum(mean > CLEAR * error for _, mean, error in few)
    return (
        f"It does at {clear} of {len(few)} sizes below 32, by more than {CLEAR:g} standard errors: {_listed(few)}.",
        f"{_verdict(many)}: {_listed(many)}." if many else "Not measured.",
    )


def _verdict(many: list[tuple[int, float, float]]) -> str:
    if all(mean > CLEAR * error for _, mean, error in many):
        return "Different here: the clustered model's lead shrinks but lasts"
    if all(mean < CLEAR * error for _, mean, error in many):
        return "Here too the lead is gone"
    return "In between: the lead shrinks, and is clear at some of these sizes"


def _listed(rows: list[tuple[int, float, float]]) -> str:
    return ", ".join(f"{mean:+.3f} ± {error:.3f} ({size})" for size, mean, error in rows)


def _judge(gain: pl.DataFrame) -> tuple[Verdict, Verdict]:
    """Whether the clustered model is ahead with few examples, and no more with many."""
    rows = list(gain.select("examples", "auc", "auc_error").iter_rows())
    ahead = {size: mean > CLEAR * error for size, mean, error in rows}
    few, many = ([lead for size, lead in ahead.items() if (size < 32) is early] for early in (True, False))
    return judge(*few, most=True), judge(*[not lead for lead in many]) if many else "open"


def count_users(gains: pl.DataFrame) -> tuple[int, int, int]:
    """How many users gain and how many lose clearly with few examples, and how many there are."""
    early = gains.filter(pl.col("examples").is_in(FEW)).group_by("person", "split").agg(pl.col("auc").mean())
    users = early.group_by("person").agg(pl.col("auc").mean(), error=pl.col("auc").std() / pl.len().sqrt())
    better = users.filter(pl.col("auc") > CLEAR * pl.col("error")).height
    worse = users.filter(pl.col("auc") < -CLEAR * pl.col("error")).height
    return better, worse, users.height
