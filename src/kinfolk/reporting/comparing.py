"""Two or more models side by side: what each found, where their clusters differ, and which predicts better."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import adjusted_rand_score

from kinfolk.reporting import drawing
from kinfolk.reporting.account import Account, account_for, document, facts_of_rows, versions
from kinfolk.reporting.findings import Findings
from kinfolk.reporting.held_out import receive
from kinfolk.reporting.layout import Section, frame, made_again, number, some, sortable
from kinfolk.reporting.making import Report
from kinfolk.reporting.markup import Html, element, joined
from kinfolk.transfer.comparison import Comparison, evaluate, judge

_MOST_MOVED = 200
# What most models are of.
_ROWS = "models of labels or numbers"


def compare(
    models: Mapping[str, Any],
    path: str | os.PathLike[str] | None = None,
    data: Any = None,
    *,
    y: Any = None,
    task: Any = None,
    ignore: Sequence[str] = (),
    n_folds: int = 5,
    random_state: int = 0,
    again: Mapping[str, str] | None = None,
) -> Report:
    """Make one page about several fitted models.

    Parameters
    ----------
    models : mapping from str to fitted estimator
        Two or more, by name.
    path : str or path, optional
        Where to write it.
    data : table, optional
        Rows on which they are compared, as in :func:`kinfolk.reporting.report`.
    y, task : array-like or str, optional
        What is to be predicted, and each row's task.
    ignore : sequence of str, default=()
        Checks to leave out.
    n_folds : int, default=5
        Parts of the rows that are held out in turn.
    random_state : int, default=0
        Seed of the folds.
    again : mapping, optional
        What else is to be told of how to make it again.

    Returns
    -------
    Report
    """
    if len(models) < 2:
        raise ValueError("at least two models are needed to compare them")
    accounts = {name: account_for(model, ignore=ignore) for name, model in models.items()}
    found, made_of = None, dict(again or {})
    kinds = {_kind(one.findings) for one in accounts.values()}
    if data is not None and kinds != {_ROWS}:
        if len(kinds) > 1:
            raise ValueError(f"{' and '.join(sorted(kinds))} cannot be compared on the same rows: leave the rows out")
        held = {"y": y, "task": task, "n_folds": n_folds, "seed": random_state}
        accounts = {name: account_for(model, data, ignore=ignore, **held) for name, model in models.items()}
        found = _side_by_side_on_rows(accounts)
        rows = next(iter(accounts.values())).given
        assert rows is not None
        made_of |= facts_of_rows(rows, random_state, n_folds)
    elif data is not None:
        first = next(iter(accounts.values())).findings
        given = receive(first, data, y, task)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = evaluate(
                given.X,
                given.y,
                task=given.task,
                models=["ridge-alone" if first.labels is None else "alone"],
                estimators=models,
                n_folds=n_folds,
                target="number" if first.labels is None else "label",
                random_state=random_state,
            )
        made_of |= facts_of_rows(given, random_state, n_folds)
    made_of |= versions()
    parts = [_held_out(found), _side_by_side(accounts), _clusters(accounts), *_checks(accounts), made_again(made_of)]
    heading = " and ".join(models) if len(models) == 2 else ", ".join(models)
    whole = {
        "models": {name: document(one) for name, one in accounts.items()},
        "agreement": _agreement(accounts),
        "made_again_with": made_of,
        "comparison": None if found is None else {"verdict": found.verdict, "models": found.rows()},
    }
    page = frame(heading, "Models side by side", [part for part in parts if part is not None], _first(accounts, found))
    made = Report(page, whole)
    if path is not None:
        made.save(path)
    return made


def _kind(findings: Findings) -> str:
    """What a model is of, as far as that decides what it can be compared with."""
    if findings.family == "networks":
        return "networks of classes" if findings.unit == "class" else "networks"
    return "models of sequences" if findings.family == "sequences" else _ROWS


def _side_by_side_on_rows(accounts: Mapping[str, Account]) -> Comparison:
    """Models that were each held out from the same parts of the rows, and every task alone, in one comparison."""
    held = {name: account.held_out for name, account in accounts.items()}
    losses: dict[str, Any] = {}
    qualities: dict[str, Any] = {}
    ways: dict[str, str] = {}
    for name, one in held.items():
        assert one is not None
        others = {other: other for other in (one.alone,) if other is not None and other not in losses}
        for called, there in {name: one.own, **others}.items():
            losses[called], qualities[called] = one.comparison.losses[there], one.comparison.qualities[there]
            ways[called] = one.comparison.ways[there]
    first = next(one for one in held.values() if one is not None).comparison
    best = min(losses, key=lambda name: float(np.mean(losses[name])))
    helps, verdict = judge(losses, ways, first.measure)
    seconds = dict.fromkeys(losses, 0.0)
    return Comparison(first.measure, first.quality, losses, qualities, ways, seconds, best, helps, verdict, first.notes)


def _first(accounts: Mapping[str, Account], found: Comparison | None) -> Html:
    better = (
        "The models alone cannot tell; rows can (--data TABLE, or data= in Python)." if found is None else found.verdict
    )
    agreement = _agreement(accounts)
    alike = [f"{one} and {other}: {share:.2f}" for one, other, share in agreement]
    said = "Not all of these models have clusters of the same tasks."
    if alike:
        said = f"Agreement of clusters (adjusted Rand index; 1 is the same, 0 is chance): {'; '.join(alike)}."
    cards = [
        element("div", element("h2", question), element("p", answer), class_="answer")
        for question, answer in (("Which predicts better?", better), ("Do they agree on who is kin?", said))
    ]
    return element("div", *cards, class_="answers")


def _agreement(accounts: Mapping[str, Account]) -> list[tuple[str, str, float]]:
    """Adjusted Rand index of every pair of models that have clusters of the same tasks."""
    found = []
    names = list(accounts)
    for at, one in enumerate(names):
        for other in names[at + 1 :]:
            pair = _common(accounts[one], accounts[other])
            if pair is not None:
                found.append((one, other, float(adjusted_rand_score(*pair))))
    return found


def _common(one: Account, other: Account) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Clusters of the tasks that two models share, in one order."""
    a, b = one.findings, other.findings
    if a.partition is None or b.partition is None:
        return None
    place = {task: at for at, task in enumerate(b.tasks)}
    both = [(at, place[task]) for at, task in enumerate(a.tasks) if task in place]
    if len(both) < 2:
        return None
    first, second = np.array(both).T
    return a.partition[first], b.partition[second]


def _held_out(found: Comparison | None) -> Section | None:
    if found is None:
        return None
    rows = found.rows()
    drawn = drawing.error_bars(
        [(row["model"], row[found.measure], row["error"]) for row in rows], found.measure, found.best
    )
    table = [
        [
            row["model"],
            number(row[found.measure], f"{row[found.measure]:.4f} ± {row['error']:.4f}"),
            number(row["behind"], f"{row['behind']:.4f} ± {row['error of behind']:.4f}"),
            number(row[found.quality], f"{row[found.quality]:.3f}"),
        ]
        for row in rows
    ]
    heads = ["model", found.measure, "difference from the best", found.quality]
    caption = (
        f"{found.measure.capitalize()} on held-out rows, with 95 % intervals; ± are standard errors over folds. Judge "
        "by the difference from the best, which is taken fold by fold."
    )
    figure = element("figure", drawn, element("figcaption", caption))
    return Section("sharing", "Rows held out", joined(figure, sortable("losses", heads, table, search=False)))


def _side_by_side(accounts: Mapping[str, Account]) -> Section:
    rows = []
    for name, account in accounts.items():
        findings = account.findings
        chains = "nothing sampled" if findings.convergence is None else findings.convergence.advice()
        rows.append(
            [name, findings.model, number(len(findings.tasks), f"{len(findings.tasks):,}"),
             number(len(findings.clusters), f"{len(findings.clusters):,}" if findings.clusters else "none"), chains,
             some([alert.code for alert in account.alerts], 6) or "none"]
        )  # fmt: skip
    heads = ["model", "kind", "tasks", "clusters", "chains", "checks"]
    return Section("models", "Side by side", sortable("models-table", heads, rows, search=False))


def _clusters(accounts: Mapping[str, Account]) -> Section | None:
    """Tasks whose kin differ between the first two models."""
    (one, a), (other, b) = list(accounts.items())[:2]
    if _common(a, b) is None:
        return None
    rows = []
    for task in a.findings.tasks:
        if task in b.findings.tasks:
            kin, kin_of_other = _kin(a, task), _kin(b, task)
            if set(kin) != set(kin_of_other):
                rows.append(
                    [
                        element("td", str(task), class_="name"),
                        some(sorted(kin), 8) or "nobody",
                        some(sorted(kin_of_other), 8) or "nobody",
                    ]
                )
    if not rows:
        return Section("moved", "Tasks whose kin differ", element("p", "None: both models have the same clusters."))
    more = len(rows) - _MOST_MOVED
    rest = element("p", f"{more:,} more are left out.") if more > 0 else None
    table = sortable("moved-table", ["task", f"kin in {one}", f"kin in {other}"], rows[:_MOST_MOVED])
    return Section("moved", "Tasks whose kin differ", joined(table, rest))


def _kin(account: Account, task: Any) -> list[str]:
    findings = account.findings
    assert findings.partition is not None
    at = findings.tasks.index(task)
    own = np.flatnonzero(findings.partition == findings.partition[at])
    return [str(findings.tasks[place]) for place in own if place != at]


def _checks(accounts: Mapping[str, Account]) -> list[Section]:
    found = []
    for place, (name, account) in enumerate(accounts.items()):
        said = [
            element("p", element("b", f"{alert.code} {alert.title}: {alert.where}. "), f"Seen: {alert.seen}.")
            for alert in account.alerts[:20]
        ] or [element("p", "No check found anything.")]
        found.append(Section(f"checks-{place}", f"Checks of {name}", joined(said)))
    return found
