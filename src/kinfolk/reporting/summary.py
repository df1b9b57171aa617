"""The first screen of a report: did sharing help, who is kin, what to look at next; in words."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.reporting.account import Account
from kinfolk.reporting.findings import Findings
from kinfolk.reporting.held_out import PLAIN, HeldOut
from kinfolk.reporting.markup import Html, element, joined
from kinfolk.tasks.answering import some_names
from kinfolk.transfer.comparison import mean_and_error


def did_sharing_help(account: Account) -> Html:
    """The answer with its error, or what would give it."""
    held_out = account.held_out
    if held_out is None:
        said = "This page was made from the model alone, which holds no rows. Given rows (--data TABLE, or data=), "
        rivals = "every task alone, and all tasks pooled."
        if account.findings.unit == "class":
            rivals = "every class alone, and one structure for all classes."
        return element("p", said, f"it compares the model with models that do not share: {rivals}")
    found = held_out.comparison
    helps, _ = account.verdict
    losses = {name: loss for name, loss in found.losses.items() if name != "logistic-pooled"}
    sharing = [name for name in losses if found.ways[name] == "sharing"]
    others = [name for name in losses if found.ways[name] != "sharing"]
    if not sharing or not others:
        return element("p", "No model without sharing could learn from these rows: there is nothing to compare.")
    mean = {name: mean_and_error(losses[name])[0] for name in losses}
    best, rival = (min(some, key=lambda name: (mean[name], name != held_out.own)) for some in (sharing, others))
    gain, error = mean_and_error(losses[rival] - losses[best])
    word, kind = {True: ("Yes.", "yes"), False: ("No.", "no"), None: ("That is not clear.", "open")}[helps]
    model = "this model" if best == held_out.own else f"“{PLAIN.get(best, best)}”"
    against = "which is this model" if rival == held_out.own else f"“{PLAIN.get(rival, rival)}”"
    alike = f"{abs(gain):.3f}" == "0.000"
    apart = f"{'lower' if gain > 0 else 'higher'} by {abs(gain):.3f} ± {error:.3f} than"
    apart = f"about the same as (difference 0.000 ± {error:.3f})" if alike else apart
    of_this = mean_and_error(found.losses[held_out.own])
    return joined(
        element(
            "p",
            element("strong", word, class_=kind),
            f" On held-out {sequences_or_rows(account)}, the {found.measure} of {model} is {mean[best]:.3f}, ",
            f"{apart} that of the best model without sharing, {against}.",
            f" With {len(losses[best])} folds, the difference may be chance." if helps is None and not alike else None,
        ),
        element("p", f"This model: {of_this[0]:.3f} ± {of_this[1]:.3f}. {_beside(held_out)}", class_="small"),
        element("p", element("a", "All models", href="#sharing"), class_="small"),
    )


def sequences_or_rows(account: Account) -> str:
    """What is held out of the data of such a model."""
    return "sequences" if account.findings.family == "sequences" else "rows"


def _beside(held_out: HeldOut) -> str:
    """How much more loss each of the three models without sharing among kin has."""
    kinds = ("", "logistic-", "ridge-", "class-")
    plain = [kind + way for way in ("alone", "pooled", "task-feature") for kind in kinds]
    known = {name: held_out.behind(name) for name in plain if name != held_out.own}
    found = {name: gap for name, gap in known.items() if gap is not None}
    # Naive Bayes has one peer of another kind, which is in the table alone.
    several = all(name in found for name in ("alone", "logistic-pooled"))
    said = [
        f"{PLAIN[name]} {gap[0]:+.3f} ± {gap[1]:.3f}"
        for name, gap in found.items()
        if not (several and name.startswith("logistic-")) and gap != (0.0, 0.0)  # which is this model itself
    ]
    return f"Compared with it (above zero is worse): {'; '.join(said)}." if said else ""


def who_is_kin(account: Account, linked: bool = True) -> Html:
    """Clusters in a sentence, the largest by name."""
    findings = account.findings
    clusters, n_tasks = findings.clusters, len(findings.tasks)
    if not clusters or findings.details.get("around_prototype"):
        return element("p", _without_clusters(account))
    several = [own for own in clusters if len(own) > 1]
    n_alone = len(clusters) - len(several)
    if not several:
        return element("p", f"Nobody: each of the {n_tasks:,} tasks stands alone.")
    if len(clusters) == 1:
        return element("p", f"All {n_tasks:,} tasks share everything: they are one cluster.")
    n_kin = f"{n_tasks - n_alone:,} of {n_tasks:,}" if n_alone else f"{n_tasks:,}"
    alone = f"; the other {f'{n_alone:,} have' if n_alone > 1 else 'one has'} no kin" if n_alone else ""
    lines: list[Any] = [
        element(
            "p",
            f"{n_kin} tasks fall into {len(several):,} cluster{'s' * (len(several) > 1)} of kin{alone}.",
        ),
    ]
    names = [str(findings.tasks[place]) for place in several[0]]
    lines.append(
        element(
            "p",
            f"The largest, of {len(names):,}: {_some(names)}. ",
            element("a", "All clusters", href="#clusters") if linked else None,
            class_="small",
        )
    )
    certainty = findings.certainty()
    if certainty is not None and (unsure := int((certainty < 0.8).sum())):
        lines.append(
            element(
                "p",
                f"It is uncertain where {unsure:,} {'tasks belong' if unsure > 1 else 'task belongs'} (below 80 %).",
                class_="small",
            )
        )
    return joined(*lines)


def _without_clusters(account: Account) -> str:
    findings = account.findings
    if findings.details.get("around_prototype"):
        what = "the" if findings.weights is None else "in its heaviest member, the prototype, the"
        return f"The model has no clusters: {what} {len(findings.tasks):,} tasks vary around one common pattern."
    if (features := findings.details.get("features")) is not None:
        return _states_in_common(findings, np.asarray(features) > 0.5)
    if findings.family == "linear":
        n = findings.details.get("n_sources")
        return (
            f"The model has no clusters: the {len(findings.tasks):,} tasks mix their weights from {n} learnt "
            f"source{'s' * (n != 1)}."
        )
    if findings.family == "partially pooled":
        first = findings.details["weights"][0]
        most = f", and differ most in the weight of {first['column']}" if first["spread"] > 0 else ""
        return f"The model has no clusters: the {len(findings.tasks):,} tasks vary around common weights{most}."
    if findings.family == "networks":
        found = findings.details
        common = f"{found['n_common']:,} of {found['n_arcs']:,} arcs"
        return f"{common} are common to the networks of all {findings.n_tasks_told} that have their variables."
    return f"The model has {len(findings.tasks):,} tasks and no clusters."


def _states_in_common(findings: Findings, used: NDArray[np.bool_]) -> str:
    """How many tasks use the hidden states, and which two have most in common."""
    counts = used.sum(axis=0)
    by_all, by_one = int((counts == len(used)).sum()), int((counts == 1).sum())
    n = int((counts > 0).sum())
    said = (
        f"The {len(used):,} tasks use {n:,} hidden states: {by_all:,} of them in all tasks, {n - by_all - by_one:,} in "
    )
    said += f"several, {by_one:,} in one task alone."
    if findings.similarity is None or len(used) < 2:
        return said
    apart = findings.similarity - 2 * np.eye(len(used))
    one, other = np.unravel_index(int(apart.argmax()), apart.shape)
    pair, share = f"{findings.tasks[one]} and {findings.tasks[other]}", f"{findings.similarity[one, other]:.0%}"
    return f"{said} Most alike are {pair}, with {share} of their states in common."


def what_next(account: Account) -> Html:
    """The gravest findings of the checks."""
    if not account.alerts:
        return element(
            "p",
            "No check found anything." + ("" if account.given is not None else " Those that need rows were not run."),
        )
    items = []
    codes: dict[str, list[Any]] = {}
    for alert in account.alerts:
        codes.setdefault(alert.code, []).append(alert)
    for code, alerts in list(codes.items())[:4]:
        where = alerts[0].where if len(alerts) == 1 else some_names([alert.where for alert in alerts])
        items.append(
            element("li", element("a", code, href=f"#{code}"), f" {alerts[0].title}: ", where.replace("'", ""))
        )
    more = len(codes) - 4
    rest = element("p", element("a", f"{more} more", href="#checks"), class_="small") if more > 0 else None
    return joined(element("ul", *items), rest)


def _some(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 8 else f"{', '.join(names[:7])} and {len(names) - 7:,} more"
