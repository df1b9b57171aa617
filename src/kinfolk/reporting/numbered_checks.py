"""Numbered checks of a fitted model and of the rows given with it: what was seen, why it matters, what to do.

A check is one function and one line of the table at the end; its number never changes its meaning. Checks that need
rows, or rows held out, say nothing where there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from kinfolk.parameters import check_choice
from kinfolk.reporting.findings import Findings
from kinfolk.reporting.held_out import Calibration, Given, HeldOut
from kinfolk.tasks.answering import some_names
from kinfolk.tasks.table import is_missing

_FEWEST_ROWS = 5
_MOST_SURE = 0.5
_FEWEST_QUANTITIES = 8
_IDENTIFIER = 0.9
_GIVEN_AWAY = 0.99
_LEVEL = 0.05
# A value that was never seen is worth a line where it is more than a stray.
_UNSEEN = 0.01


class Seen(NamedTuple):
    """All that checks may look at."""

    findings: Findings
    given: Given | None = None
    held_out: HeldOut | None = None
    calibration: Calibration | None = None


class Finding(NamedTuple):
    """Something that a check has seen, of a task, a feature or the whole.

    ``severity`` is given where it matters less than what the check finds elsewhere.
    """

    where: str
    seen: str
    task: Any = None
    severity: int | None = None


class Check(NamedTuple):
    """A numbered check: its title, how grave what it finds is (3 is most), why it matters, and what to do about it."""

    title: str
    severity: int
    why: str
    advice: str
    look: Callable[[Seen], Iterator[Finding]]


class Alert(NamedTuple):
    """What a numbered check found, in words."""

    code: str
    title: str
    severity: int
    where: str
    seen: str
    why: str
    advice: str
    task: Any = None


def look(seen: Seen, ignore: Sequence[str] = ()) -> list[Alert]:
    """Run all checks but those that are to be ignored.

    Parameters
    ----------
    seen : Seen
    ignore : sequence of str, default=()
        Numbers of checks, such as "KF003".

    Returns
    -------
    list of Alert
        The gravest first.
    """
    if isinstance(ignore, str):
        ignore = [ignore]
    for code in ignore:
        check_choice("ignore", code, tuple(CHECKS))
    found = [
        Alert(code, check.title, one.severity or check.severity, one.where, one.seen, check.why, check.advice, one.task)
        for code, check in CHECKS.items()
        if code not in ignore
        for one in check.look(seen)
    ]
    return sorted(found, key=lambda alert: (-alert.severity, alert.code))


def _sharing_hurts(seen: Seen) -> Iterator[Finding]:
    if seen.held_out is None or seen.held_out.comparison.ways[seen.held_out.own] != "sharing":
        return
    if seen.findings.unit != "task":  # of rows that are to be told apart, what one class wins another loses
        return
    tasks = seen.findings.tasks
    _, _, gain, error = seen.held_out.by_task(len(tasks))
    tested = np.isfinite(gain) & (error > 0)
    # Of many tasks some look harmed by chance: the level is divided among them. A few rows know their error badly.
    n = seen.held_out.n_compared(len(tasks))
    bound = student.isf(_LEVEL / max(int(tested.sum()), 1), np.maximum(n - 1, 1))
    for place in np.flatnonzero(tested & (gain < -bound * np.where(tested, error, 1.0))):
        said = f"its loss is larger by {-gain[place]:.3f} ± {error[place]:.3f} than that of a model of the task alone"
        yield Finding(f"task {tasks[place]}", said, tasks[place])


def _chains_disagree(seen: Seen) -> Iterator[Finding]:
    convergence = seen.findings.convergence
    if convergence is not None and not convergence.converged:
        advice = convergence.advice().rstrip(".")
        # Chains that agree and are merely short are less of a worry.
        yield Finding("the chains", advice[:1].lower() + advice[1:], severity=2 if convergence.agree else None)


def _alone(seen: Seen) -> Iterator[Finding]:
    findings = seen.findings
    clusters = findings.clusters
    alone = [findings.tasks[int(own[0])] for own in clusters if len(own) == 1]
    if alone and len(alone) < len(findings.tasks):
        n = f"{len(alone)} task{'s' * (len(alone) > 1)} of {len(findings.tasks)}"
        yield Finding(n, f"no kin: {some_names(alone)}")


def _prior_decides(seen: Seen) -> Iterator[Finding]:
    shares = seen.findings.shares
    if shares is None:
        return
    tasks = [seen.findings.tasks[place] for place in np.flatnonzero(shares[:, 3] > _MOST_SURE)]
    if tasks:
        n = f"{len(tasks)} task{'s' * (len(tasks) > 1)} of {len(shares)}"
        yield Finding(n, f"more than half of what the answers rest on is the prior: {some_names(tasks)}")


def _inputs_differ_alone(seen: Seen) -> Iterator[Finding]:
    held_out = seen.held_out
    if held_out is None or len(seen.findings.clusters) < 2 or held_out.comparison.ways[held_out.own] != "sharing":
        return
    for other in ("logistic-pooled", "pooled"):
        if held_out.better_than(other) is not True and (behind := held_out.behind(other)) is not None:
            n = len(seen.findings.clusters)
            said = f"{n} clusters, but one model of all rows is not shown to be worse"
            yield Finding("the model", f"{said} (its loss differs by {behind[0]:+.3f} ± {behind[1]:.3f})")
            return


def _too_few_rows(seen: Seen) -> Iterator[Finding]:
    rows = seen.findings.rows
    if rows is None:
        return
    few = [seen.findings.tasks[place] for place in np.flatnonzero(rows < _FEWEST_ROWS)]
    if few:
        n = f"{len(few)} task{'s' * (len(few) > 1)} of {len(rows)}"
        yield Finding(n, f"fewer than {_FEWEST_ROWS} rows with a label: {some_names(few)}")


def _badly_calibrated(seen: Seen) -> Iterator[Finding]:
    calibration = seen.calibration
    if calibration is not None and calibration.bad:
        said = f"probabilities are off by {100 * calibration.gap:.1f} percentage points on average, more than by chance"
        yield Finding("the model", said)


def _no_better_than_intercepts(seen: Seen) -> Iterator[Finding]:
    held_out = seen.held_out
    if held_out is None or held_out.comparison.ways[held_out.own] != "sharing":
        return
    for other in held_out.comparison.losses:
        if other.endswith("task-feature") and held_out.better_than(other) is not True:
            mean, error = held_out.behind(other) or (np.nan, np.nan)
            yield Finding(
                "the model",
                f"the loss of pooling with intercepts differs from this model's by {mean:+.3f} ± {error:.3f}",
            )


def _never_seen(seen: Seen) -> Iterator[Finding]:
    schema, given = seen.findings.schema, seen.given
    if schema is None or given is None:
        return
    for column in schema.columns:
        if column.categories is None or column.name not in given.columns:
            continue
        values = given.columns[column.name]
        unseen = (column.encode(values) < 0) & ~is_missing(values)
        if unseen.mean() > _UNSEEN:
            names = some_names(list(dict.fromkeys(values[unseen].tolist()))[:100])
            said = f"{unseen.sum():,} of {len(values):,} rows have a value that the model has never seen: {names}"
            yield Finding(f"column {column.name}", said)


def _quantities_as_categories(seen: Seen) -> Iterator[Finding]:
    schema = seen.findings.schema
    for column in () if schema is None else schema.columns:
        values = column.categories or ()
        whole = len(values) >= _FEWEST_QUANTITIES and all(
            isinstance(value, int | np.integer) and not isinstance(value, bool) for value in values
        )
        if whole and len(values) > 0.25 * (max(values) - min(values) + 1):
            said = f"{len(values)} whole numbers from {min(values)} to {max(values)} are taken as categories"
            yield Finding(f"column {column.name}", said)


def _identifier(seen: Seen) -> Iterator[Finding]:
    rows = seen.findings.rows
    if seen.given is not None:
        for name, values in seen.given.columns.items():
            known = values[~is_missing(values)]
            if known.dtype.kind == "f" and not np.array_equal(known, np.rint(known)):
                continue
            if len(known) >= 20 and len(set(known.tolist())) > _IDENTIFIER * len(known):
                yield Finding(f"column {name}", f"{len(set(known.tolist())):,} different values in {len(known):,} rows")
    elif seen.findings.schema is not None and rows is not None and rows.sum() >= 20:
        for column in seen.findings.schema.columns:
            if column.categories is not None and len(column.categories) > _IDENTIFIER * rows.sum():
                said = f"{len(column.categories):,} different values in {rows.sum():,.0f} rows"
                yield Finding(f"column {column.name}", said)


def _given_away(seen: Seen) -> Iterator[Finding]:
    counts = seen.findings.feature_counts or {}
    for name, of_values in counts.items():
        total = of_values.sum()
        if total < 20 or of_values.shape[0] < 2:
            continue
        told, guessed = of_values.max(axis=0).sum() / total, of_values.sum(axis=1).max() / total
        # As many values as rows tell everything and nothing.
        few = (of_values.sum(axis=0) > 0).sum() <= 0.2 * total
        if told >= _GIVEN_AWAY and guessed < _GIVEN_AWAY - 0.04 and few:
            yield Finding(
                f"column {name}",
                f"alone predicts {told:.1%} of labels; always guessing the most frequent one, {guessed:.1%}",
            )


CHECKS: dict[str, Check] = {
    "KF001": Check(
        "Sharing hurts a task",
        3,
        "The task is predicted worse than it would be from its own rows alone: what others teach does not fit it.",
        'Collect more rows, or fit it alone (NoSharingNB, SingleIHMM, BayesNets(sharing="none")). Averages '
        "(TransferClassifier, AveragedNB, AveragedIHMM) weigh both ways.",
        _sharing_hurts,
    ),
    "KF002": Check(
        "Chains have not converged",
        3,
        "Until chains agree, and are long enough, probabilities depend on the seed.",
        "Follow the advice: a longer burn-in, more draws, or another inference.",
        _chains_disagree,
    ),
    "KF003": Check(
        "A cluster of one",
        1,
        "A task without kin learns from its own rows and from the prior only.",
        "Nothing is wrong if it is unlike the others. If it has few rows, be careful with its predictions.",
        _alone,
    ),
    "KF004": Check(
        "The prior decides",
        2,
        "There are so few rows behind a task's answers that pseudo-counts weigh more than data.",
        "Collect rows of these tasks, or take fewer features; do not read their rates as findings.",
        _prior_decides,
    ),
    "KF005": Check(
        "Tasks may differ in their inputs alone",
        2,
        "Tasks are clustered by how their features are distributed. Where only the inputs differ and the same label "
        "follows from them, one model of all rows predicts as well, and splitting the data gains nothing.",
        "Compare with pooled models by kinfolk.evaluate; keep the clusters if who is alike is the question.",
        _inputs_differ_alone,
    ),
    "KF006": Check(
        "Too few rows",
        1,
        "A task with a handful of rows says little about who its kin are.",
        "Read its cluster together with its certainty; rows without a label help models that use them.",
        _too_few_rows,
    ),
    "KF007": Check(
        "Badly calibrated",
        2,
        "Decisions by expected cost take probabilities at their word.",
        "Let the temper be learnt (the default), or take scikit-learn's CalibratedClassifierCV with "
        "cv=kinfolk.TaskKFold(5, task_column=...).",
        _badly_calibrated,
    ),
    "KF008": Check(
        "Not shown to be better than pooling with intercepts",
        2,
        "A model of all rows with one intercept per task is simpler, and rows held out do not show that it is worse.",
        "Take the simpler model if prediction is all that matters, or compare on more rows.",
        _no_better_than_intercepts,
    ),
    "KF009": Check(
        "Values never seen",
        2,
        "A value that no training row had is left out of the prediction, as if it were missing.",
        "Check whether the column is spelled or coded in another way, or fit again with rows that have the value.",
        _never_seen,
    ),
    "KF010": Check(
        "Whole numbers taken as categories",
        1,
        "Taken as categories, neighbouring quantities such as ages or counts learn nothing from each other.",
        "If the column is a quantity, leave it out of categorical_features; it is then binned. In sequences, say what "
        'it is: emission="gaussian" or "poisson".',
        _quantities_as_categories,
    ),
    "KF011": Check(
        "An identifier among the features",
        2,
        "A column with a value of its own in nearly every row cannot be learnt from.",
        "Leave it out (--drop on the command line).",
        _identifier,
    ),
    "KF012": Check(
        "A feature gives the label away",
        3,
        "One column alone predicts nearly every label: perhaps it was recorded after the label was known.",
        "Ask where the column comes from. If it is not known when predictions are made, leave it out.",
        _given_away,
    ),
}
