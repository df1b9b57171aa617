"""Sections of a page that one family of models has: sources, weights, arcs; states are in ``sequence_sections``."""

from __future__ import annotations

from typing import Any

import numpy as np

from kinfolk.reporting import drawing, sequence_sections
from kinfolk.reporting.account import Account
from kinfolk.reporting.layout import Section, legend_of, number, some, sortable, with_error
from kinfolk.reporting.markup import element, joined

_MOST_SOURCES = 12
_MOST_ROWS = 60
_MOST_ARCS = 300
_MOST_WEIGHTS = 100
# Sources whose largest weight is a smaller part of the largest of all are next to empty.
_EMPTY = 0.001


def sections(account: Account) -> list[Section]:
    """The sections of the model's family; none for naive Bayes, of which clusters tell all."""
    family = account.findings.family
    if family == "linear":
        return [_sources(account)]
    if family == "partially pooled":
        return [_weights(account)]
    if family == "networks":
        return [_arcs(account), _networks(account)]
    return sequence_sections.sections(account) if family == "sequences" else []


def _sources(account: Account) -> Section:
    """Tasks by sources, and the features that weigh most in each."""
    findings = account.findings
    sources, spread = findings.details["sources"], findings.details["spread"]
    shown = np.argsort(-spread, kind="stable")[:_MOST_SOURCES]
    if not len(shown):
        said = "The model has no sources: every task has weights of its own."
        return Section("sources", "Sources", element("p", said))
    # A source that next to nothing of any task's weights comes from is no finding.
    top = findings.details["top_features"]
    heaviest = [max((abs(entry["weight"]) for entry in top.get(int(place), [])), default=0.0) for place in shown]
    most = np.abs(sources).max(axis=0)[shown] * heaviest
    n_empty = int((most < _EMPTY * most.max()).sum())
    shown = shown[most >= _EMPTY * most.max()]
    tasks = np.arange(len(sources))
    if len(tasks) > _MOST_ROWS:
        tasks = np.sort(np.argsort(-np.abs(sources).max(axis=1), kind="stable")[:_MOST_ROWS])
    names = [str(findings.tasks[place]) for place in tasks]
    heads = [f"source {place}" for place in shown]
    title = "How much of each source every task has"
    drawn = drawing.heat_table(sources[np.ix_(tasks, shown)], names, heads, title)
    caption = f"{title}, blue above zero and orange below; the sources that tasks differ in most come first."
    if len(tasks) < len(sources):
        caption += f" Of {len(sources):,} tasks the {_MOST_ROWS} that have most of any source."
    if n_empty:
        n = f"{n_empty} more sources are" if n_empty > 1 else "One more source is"
        caption += f" {n} next to empty: no task takes anything from there that would count."
    cards = []
    for place in shown:
        features = top.get(int(place), [])
        items = [element("li", f"{entry['feature']} ", element("b", f"{entry['weight']:+.3g}")) for entry in features]
        cards.append(element("div", element("h3", f"Source {place}"), element("ul", *items), class_="card"))
    figure = element("figure", drawn, element("figcaption", caption))
    more = element("p", "The features that weigh most in each source:")
    return Section("sources", "Sources", joined(figure, more, element("div", *cards, class_="cards")))


def _weights(account: Account) -> Section:
    """The weight of every column: what tasks have in common, and how far they depart from it."""
    found = account.findings.details["weights"]
    labelled = any(entry["label"] is not None for entry in found)
    rows: list[list[Any]] = []
    for entry in found[:_MOST_WEIGHTS]:
        ends = [
            number(entry[end], f"{entry[end]:+.3f} ({entry[f'{end}_task']})")
            if entry["spread"] > 0
            else number(entry[end], "as all")
            for end in ("lowest", "highest")
        ]
        told = [entry["column"], number(entry["common"], f"{entry['common']:+.3f}")]
        told += [number(entry["spread"], f"{entry['spread']:.3f}"), *ends]
        rows.append(([str(entry["label"])] if labelled else []) + told)
    heads = ["column", "common weight", "spread over tasks", "lowest task", "highest task"]
    said = (
        "Every task has weights of its own, drawn towards the common ones. The spread is the standard deviation of the "
        "weights between tasks, as learnt from the data: near zero, all tasks share the weight. Weights are per "
        "standard deviation of a column of numbers; a category has a column of its own."
    )
    parts = [element("p", said, class_="small"), sortable("weight-table", ["label"] * labelled + heads, rows)]
    if len(found) > _MOST_WEIGHTS:
        parts.append(element("p", f"{len(found) - _MOST_WEIGHTS:,} more are left out; --json has them."))
    return Section("weights", "Weights, common and by task", joined(*parts))


def _arcs(account: Account) -> Section:
    """Every arc with the tasks that have it."""
    arcs = account.findings.details["arcs"]
    sure = any(arc["confidence"] is not None for arc in arcs)
    unit = account.findings.unit
    heads = ["parent", "child", "classes" if unit == "class" else "tasks", *(["confidence"] if sure else []), "who"]
    rows: list[list[Any]] = []
    for arc in arcs[:_MOST_ARCS]:
        who = "all" if arc["n_tasks"] == arc["of"] else some([str(task) for task in arc["tasks"]], 8)
        share = arc["confidence"]
        told = [number(share or 0.0, "" if share is None else f"{share:.0%}")] if sure else []
        rows.append(
            [arc["parent"], arc["child"], number(arc["n_tasks"], f"{arc['n_tasks']:,} of {arc['of']:,}"), *told, who]
        )
    differing = len(arcs) - account.findings.details["n_common"]
    common = account.findings.details["n_common"]
    said = (
        f"{common:,} {'arc is' if common == 1 else 'arcs are'} in the network of every {unit} that has both variables; "
    )
    said += f"{differing:,} {'differs' if differing == 1 else 'differ'}."
    parts: list[Any] = [element("p", said)]
    confidence = "Confidence: the share of resamples of the rows in which the arc was found."
    if not sure:
        confidence = "BayesNets(bootstrap=100) also learns from resamples of the rows, and tells how sure each arc is."
    if sure or unit == "task":
        parts.append(element("p", confidence, class_="small"))
    if rows:
        parts.append(sortable("arc-table", heads, rows))
    if len(arcs) > _MOST_ARCS:
        parts.append(element("p", f"{len(arcs) - _MOST_ARCS:,} rarer arcs are left out; --json has them."))
    return Section("arcs", "Arcs, shared and differing", joined(*parts))


def _networks(account: Account) -> Section:
    findings = account.findings
    of_classes = findings.unit == "class"  # which no row is of before it is predicted
    gains = None if account.held_out is None or of_classes else account.held_out.by_task(len(findings.tasks))
    flags = {alert.task for alert in account.alerts if alert.task is not None}
    rows: list[list[Any]] = [
        [
            element("td", str(task), class_="name"),
            number(own["arcs"], f"{own['arcs']:,}"),
            number(own["own"], f"{own['own']:,}"),
        ]
        for task, own in zip(findings.tasks, findings.details["by_task"], strict=True)
    ]
    ids = [f"task-{place}" for place in range(min(len(rows), _MOST_ARCS))]
    heads = [findings.unit, "arcs", "arcs of its own"]
    if gains is not None:
        heads += ["loss held out", "gain over alone", "flags"]
        for place, cells in enumerate(rows):
            loss, gain = with_error(gains[0][place], gains[1][place]), with_error(gains[2][place], gains[3][place], "+")
            codes = sorted(
                {alert.code for alert in account.alerts if alert.task == findings.tasks[place]} if flags else ()
            )
            cells += [loss, gain, element("td", [[element("a", code, href=f"#{code}"), " "] for code in codes])]
    table = sortable("network-table", heads, rows[:_MOST_ARCS], ids=ids)
    return Section("networks", "Networks", joined(table, legend_of(heads)))
