"""The page of a report: words first, then pictures and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import exp
from typing import Any

import numpy as np

from kinfolk.plots.hinton_diagram import kin_together
from kinfolk.reporting import drawing, families, summary
from kinfolk.reporting.account import Account
from kinfolk.reporting.findings import SOURCES
from kinfolk.reporting.held_out import PLAIN
from kinfolk.reporting.layout import (
    Section,
    frame,
    legend_of,
    made_again,
    number,
    short,
    some,
    sortable,
    swatch,
    with_error,
)
from kinfolk.reporting.markup import Html, element, joined
from kinfolk.reporting.numbered_checks import CHECKS
from kinfolk.transfer.comparison import mean_and_error

# With more tasks than this the page shows clusters, and of tasks those that most deserve a look.
MOST_TASKS = 200
_MOST_CARDS = 60
_MOST_NAMED = 30
_MOST_ALERTS = 60
_EXAMPLES = 3
_MOST_EXAMPLE_COLUMNS = 8


def page(account: Account) -> str:
    """The report as HTML."""
    findings = account.findings
    heading = f"{findings.model}, {findings.n_tasks_told}"
    return frame(heading, _facts(account), sections(account), answers(account))


def answers(account: Account) -> Html:
    """The three questions of the first screen."""
    asked = (
        ("Did sharing help?", summary.did_sharing_help(account)),
        ("Who is kin?", summary.who_is_kin(account)),
        ("What to look at next", summary.what_next(account)),
    )
    cards = [element("div", element("h2", question), answer, class_="answer") for question, answer in asked]
    return element("div", *cards, class_="answers")


def _facts(account: Account) -> Html:
    findings = account.findings
    parts: list[str] = []
    n_rows = _rows_of_tasks(account)
    if n_rows is not None:
        parts.append(f"{sum(n_rows):,.0f} rows" + " given here" * (findings.rows is None))
    if findings.labels is not None:
        parts.append(f"labels {some([str(label) for label in findings.labels], 6)}")
    parts.append(f"{len(findings.features):,} feature{'s' * (len(findings.features) != 1)}")
    if getattr(findings.estimator, "inference", None) is not None:
        parts.append(f"inference “{findings.estimator.inference}”")
    if findings.weights is not None:
        heaviest = sorted(findings.weights.items(), key=lambda item: -item[1])
        parts.append("weights: " + ", ".join(f"{name} {weight:.0%}" for name, weight in heaviest if weight >= 0.005))
    return joined(" · ".join(parts))


def sections(account: Account) -> list[Section]:
    """All parts of the page that there is something to say in."""
    found = [
        _sharing(account),
        _kinship(account),
        _clusters(account),
        *families.sections(account),
        None if account.findings.family == "networks" else _tasks(account),
        _calibration(account),
        _convergence(account),
        _checks(account),
        made_again(account.again),
    ]
    return [part for part in found if part is not None]


def _sharing(account: Account) -> Section | None:
    held_out = account.held_out
    if held_out is None:
        return None
    found = held_out.comparison
    order = sorted(found.losses, key=lambda name: float(np.mean(found.losses[name])))
    own = f"{held_out.own} (this model)"

    def called(name: str) -> str:
        return own if name == held_out.own else PLAIN.get(name, name)

    bars = [(called(name), *mean_and_error(found.losses[name])) for name in order]
    rows = []
    for name in order:
        loss, error = mean_and_error(found.losses[name])
        behind, its_error = held_out.behind(name) or (0.0, 0.0)
        difference = "" if name == held_out.own else f"{behind:+.4f} ± {its_error:.4f}"
        rows.append(
            [
                called(name),
                number(loss, f"{loss:.4f} ± {error:.4f}"),
                number(behind, difference),
                number(float(np.mean(found.qualities[name])), f"{np.mean(found.qualities[name]):.3f}"),
            ]
        )
    table = sortable(
        "losses", ["model", found.measure, "difference from this model", found.quality], rows, search=False
    )
    caption = (
        f"{found.measure.capitalize()} on held-out {summary.sequences_or_rows(account)}"
        f"{' of known tasks' * (account.findings.unit == 'task')}, with 95 % intervals. Errors (±) are standard errors "
        "over folds, widened because folds share training data (Nadeau and Bengio 2003). Judge by the difference from "
        "this model, which is taken fold by fold."
    )
    figure = element("figure", drawing.error_bars(bars, found.measure, own), element("figcaption", caption))
    notes = [element("p", note, class_="small") for note in found.notes if "no task was given" not in note]
    return Section("sharing", "Sharing", joined(figure, table, notes))


def _kinship(account: Account) -> Section | None:
    findings = account.findings
    clusters = findings.clusters
    in_common = findings.details.get("features") is not None
    if findings.similarity is None or len(findings.tasks) < 2 or (findings.partition is None and not in_common):
        return None
    if in_common and len(findings.tasks) > MOST_TASKS:
        return None  # without clusters there is nothing to aggregate by
    if in_common or len(clusters) == 1 or len(clusters) == len(findings.tasks):
        sure = findings.similarity[~np.eye(len(findings.tasks), dtype=bool)]
        if sure.min() == sure.max():
            return None  # a map of one colour says nothing
    names = [str(task) for task in findings.tasks]
    similarity, said = findings.similarity, ""
    partition = np.zeros(len(names), dtype=np.int64) if findings.partition is None else findings.partition
    if len(names) > MOST_TASKS:
        several = clusters[:MOST_TASKS]
        similarity = np.array([[_between(similarity, a, b) for b in several] for a in several])
        names = [f"cluster {partition[own[0]]} ({len(own)})" for own in several]
        said = f" With {len(findings.tasks):,} tasks, a row here is a cluster: the mean over its tasks."
        partition = np.array([partition[own[0]] for own in several])
    order = kin_together(similarity, partition.tolist())
    caption = (
        "The probability that two tasks are kin: the stronger the colour, the more probable. Tasks of a cluster stand "
        f"together in its colour; pairs from different clusters are grey.{said}"
    )
    if in_common:
        caption = "The share of hidden states that two tasks have in common: the stronger the colour, the larger."
    drawn = drawing.kinship_map(similarity, partition, order, names)
    return Section("kin", "Kinship map", element("figure", drawn, element("figcaption", caption)))


def _between(similarity: Any, one: Any, other: Any) -> float:
    block = similarity[np.ix_(one, other)]
    if one is other:
        return 1.0 if len(one) == 1 else float((block.sum() - np.trace(block)) / (len(one) * (len(one) - 1)))
    return float(block.mean())


def _clusters(account: Account) -> Section | None:
    findings = account.findings
    clusters = findings.clusters
    if findings.partition is None or not clusters or len(clusters) == len(findings.tasks) > 1:
        return None
    beliefs = findings.details.get("beliefs", {})
    cards = []
    for own in clusters[:_MOST_CARDS]:
        number_of = int(findings.partition[own[0]])
        names = [str(findings.tasks[place]) for place in own]
        rows = None if findings.rows is None else findings.rows[own].sum()
        facts = f"{len(own):,} {'tasks' if len(own) > 1 else 'task'}" + ("" if rows is None else f", {rows:,.0f} rows")
        cards.append(
            element(
                "div",
                element("h3", swatch(number_of), f"Cluster {number_of}"),
                element("p", facts, class_="small"),
                element("p", some(names, _MOST_NAMED)),
                _belief_list(beliefs.get(number_of, [])),
                _examples(account, own),
                class_="card",
                id=f"cluster-{number_of}",
            )
        )
    more = len(clusters) - _MOST_CARDS
    rest = element("p", f"{more:,} smaller clusters are not shown; --json has them.") if more > 0 else None
    said = None
    if beliefs:
        said = element(
            "p",
            "The values that tell labels apart best in each cluster.",
            class_="small",
        )
    return Section("clusters", "Clusters", joined(said, element("div", *cards, class_="cards"), rest))


def _belief_list(beliefs: Sequence[dict[str, Any]]) -> Html | None:
    if not beliefs:
        return None
    items = [element("li", f"{entry['feature']} = {entry['value']}: ", *_speaks_for(entry)) for entry in beliefs]
    return element("ul", *items, class_="small")


def _speaks_for(entry: dict[str, Any]) -> tuple[str, Html, str]:
    """How many times as frequent a value is with the label that it speaks for as with the other."""
    label, other = entry["label"], entry["against"]
    if entry["log_ratio"] < 0:
        label, other = other, label
    times = exp(abs(entry["log_ratio"]))
    return f"{times:.{0 if times >= 10 else 1}f} times as frequent with ", element("b", label), f" as with {other}"


def _examples(account: Account, own: Any) -> Html | None:
    """A few rows of a cluster's tasks, from the rows that were given."""
    given, findings = account.given, account.findings
    if given is None or not account.examples:
        return None
    members = {findings.tasks[place] for place in own}
    there = [row for row, task in enumerate(given.task.tolist()) if task in members]
    chosen = [there[at] for at in np.linspace(0, len(there) - 1, _EXAMPLES).astype(int)] if there else []
    lines = []
    for row in dict.fromkeys(chosen):
        values = [
            f"{name} {short(values[row])}" for name, values in list(given.columns.items())[:_MOST_EXAMPLE_COLUMNS]
        ]
        answer = "" if given.y is None else f" → {short(given.y[row])}"
        lines.append(element("li", f"{given.task[row]}: {', '.join(values)}", element("b", answer)))
    if not lines:
        return None
    return joined(element("p", "Examples of rows:", class_="small"), element("ul", *lines, class_="small"))


def _tasks(account: Account) -> Section:
    findings = account.findings
    n_tasks = len(findings.tasks)
    certainty = findings.certainty()
    losses = account.held_out.by_task(n_tasks) if account.held_out is not None else None
    flags: dict[Any, list[str]] = {}
    for alert in account.alerts:
        if alert.task is not None:
            flags.setdefault(alert.task, []).append(alert.code)
    shown, said = list(range(n_tasks)), None
    if n_tasks > MOST_TASKS:
        worth = np.array([len(flags.get(task, ())) for task in findings.tasks], dtype=float) * 1e6
        if losses is not None:
            worth += np.nan_to_num(losses[0])
        elif certainty is not None:
            worth += 1.0 - certainty
        shown = np.sort(np.argsort(-worth, kind="stable")[:MOST_TASKS]).tolist()
        why = "flagged, or predicted worst" if losses is not None else "flagged, or least sure of their cluster"
        said = element(
            "p", f"Shown are the {MOST_TASKS} of {n_tasks:,} tasks that are {why}; --json has all.", class_="small"
        )
    heads = ["task"]
    n_rows = _rows_of_tasks(account)
    heads += ["rows"] if n_rows is not None else []
    heads += ["cluster"] if findings.partition is not None else []
    heads += ["certainty"] if certainty is not None else []
    heads += ["answers rest on"] if findings.shares is not None else []
    heads += ["loss held out", "gain over alone"] if losses is not None else []
    heads += ["flags"]
    rows, ids = [], []
    for place in shown:
        task = findings.tasks[place]
        cells: list[Any] = [element("td", str(task), class_="name")]
        if n_rows is not None:
            n = float(n_rows[place])
            more = (
                f" + {findings.unlabelled[place]:,}"
                if findings.unlabelled is not None and findings.unlabelled[place]
                else ""
            )
            cells.append(number(n, f"{n:,.0f}{more}"))
        if findings.partition is not None:
            of = int(findings.partition[place])
            cells.append(element("td", swatch(of), element("a", of, href=f"#cluster-{of}"), class_="n", data_v=of))
        if certainty is not None:
            cells.append(number(float(certainty[place]), f"{certainty[place]:.0%}"))
        if findings.shares is not None:
            shares = findings.shares[place].tolist()
            cells.append(element("td", drawing.share_bar(shares, SOURCES), data_v=f"{shares[0]:.4f}"))
        if losses is not None:
            cells += [
                with_error(losses[0][place], losses[1][place]),
                with_error(losses[2][place], losses[3][place], "+"),
            ]
        cells.append(element("td", [[element("a", code, href=f"#{code}"), " "] for code in flags.get(task, ())]))
        rows.append(cells)
        ids.append(f"task-{place}")
    table = sortable("task-table", heads, rows, ids=ids)
    return Section("tasks", "Tasks", joined(said, table, legend_of(heads)))


def _rows_of_tasks(account: Account) -> Any:
    """Rows of every task as the model counts them, or else as they were given; None where neither is known."""
    if account.findings.rows is not None or account.given is None:
        return account.findings.rows
    given = account.given
    of_rows = given.task if account.findings.unit == "task" or given.y is None else given.y
    counted = Counter(of_rows.tolist())
    return [counted[task] for task in account.findings.tasks]


def _calibration(account: Account) -> Section | None:
    found = account.calibration
    if found is None:
        return None
    what = "probability of the likeliest label" if found.label is None else f"probability of “{found.label}”"
    word = "The probabilities are off by more than chance would explain"
    if not found.bad:
        word = "No large error beyond chance was found in the probabilities"
    verdict = f"{word}: the mean gap between predicted and observed frequencies is {found.gap:.1%}."
    caption = "Rows held out, in ten bins of equal size, with 95 % intervals. Perfect calibration is the dashed line."
    drawn = drawing.reliability(found.predicted, found.observed, found.low, found.high, what)
    return Section(
        "calibration",
        "Calibration",
        joined(element("p", verdict), element("figure", drawn, element("figcaption", caption))),
    )


def _convergence(account: Account) -> Section:
    findings = account.findings
    found = findings.convergence
    if found is None:
        said = "This method does not sample: there are no chains whose convergence would have to be checked."
        if (settled := getattr(findings.estimator, "converged_", None)) is not None:
            said = "The iterations have converged." if settled else "The iterations have not converged: raise max_iter."
        return Section("convergence", "Convergence", element("p", said))
    heads = ["quantity", "R-hat", "effective draws"]
    rows = [
        [
            name,
            number(found.r_hat[name], f"{found.r_hat[name]:.3f}"),
            number(found.ess[name], f"{found.ess[name]:,.0f}"),
        ]
        for name in found.r_hat
    ]
    pictures = [
        element(
            "figure",
            drawing.traces(draws, name),
            element("figcaption", f"The {name}, draw by draw; one line for each chain."),
        )
        for name, draws in findings.draws.items()
        if draws.ndim == 2 and draws.shape[1] > 1
    ]
    legend = (
        "R-hat compares the spread between chains with that within them: near 1 they agree (at most 1.05 is wanted). "
        "Effective draws: how many independent draws the chains are worth (at least 100 are wanted)."
    )
    return Section(
        "convergence",
        "Convergence",
        joined(element("p", found.advice()), sortable("chains", heads, rows, search=False),
               element("p", legend, class_="small"), pictures),
    )  # fmt: skip


def _checks(account: Account) -> Section:
    said = []
    seen: set[str] = set()
    for alert in account.alerts[:_MOST_ALERTS]:
        first = alert.code not in seen
        seen.add(alert.code)
        said.append(
            element(
                "div",
                element("h3", f"{alert.code} {alert.title}: {alert.where}"),
                element("p", f"Seen: {alert.seen}."),
                element("p", f"{alert.why} {alert.advice}", class_="small") if first else None,
                class_=f"alert v{alert.severity}",
                id=alert.code if first else None,
            )
        )
    more = len(account.alerts) - _MOST_ALERTS
    rest = element("p", f"{more:,} more findings are left out; --json has them.") if more > 0 else None
    quiet = [code for code in CHECKS if code not in {alert.code for alert in account.alerts}]
    found_nothing = element(
        "p", f"These checks found nothing, or had nothing to look at: {', '.join(quiet)}.", class_="small"
    )
    return Section("checks", "Checks", joined(said, rest, found_nothing))
