"""What a fitted model found, as plain data and in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kinfolk.cli.tables import shown
from kinfolk.naive_bayes.estimators.fitted_attributes import MAX_SIMILARITY_TASKS

if TYPE_CHECKING:
    from kinfolk.naive_bayes.estimators.base import SharingNB
    from kinfolk.tasks.schema import Column


def heaviest_member(estimator: Any) -> SharingNB:
    """The model itself or, of an average, the member with the largest weight."""
    weights: dict[str, float] | None = getattr(estimator, "weights_", None)
    member: SharingNB = estimator if weights is None else estimator.members_[max(weights, key=weights.__getitem__)]
    return member


def describe(estimator: Any, partition: list[int] | None = None) -> dict[str, Any]:
    """The model, its tasks and its clusters, or those of a partition that is given, ready for JSON."""
    weights: dict[str, float] | None = getattr(estimator, "weights_", None)
    if weights is not None:
        heaviest = max(weights, key=weights.__getitem__)
        about = describe(heaviest_member(estimator), estimator.partition_.tolist())
        of_average = {"model": type(estimator).__name__, "inference": None, "log_evidence": None}
        return about | of_average | {"weights": weights, "rates_of": heaviest}
    evidence = estimator.posterior_.evidence or estimator._evidence_found
    data = estimator._result.data
    labelled_rows = data.statistics.label_counts.sum(axis=1).tolist()
    unlabelled_rows = np.bincount(data.unlabelled.task, minlength=len(estimator.tasks_)).tolist()
    tasks = [
        {"task": task, "cluster": cluster, "labelled_rows": known, "unlabelled_rows": unknown}
        for task, cluster, known, unknown in zip(
            estimator.tasks_.tolist(),
            estimator.partition_.tolist() if partition is None else partition,
            labelled_rows,
            unlabelled_rows,
            strict=True,
        )
    ]
    clusters: dict[int, list[dict[str, Any]]] = {}
    for member in tasks:
        clusters.setdefault(member["cluster"], []).append(member)
    return {
        "model": type(estimator).__name__,
        "inference": getattr(estimator, "inference", None),
        "labels": estimator.classes_.tolist(),
        "features": estimator._result.schema.names,
        "taken_for": {column.name: _taken_for(column) for column in estimator._result.schema.columns},
        "log_evidence": None
        if evidence is None
        else {"value": evidence.value, "kind": evidence.kind, **_error(evidence)},
        "tasks": tasks,
        "clusters": [
            {
                "cluster": cluster,
                "tasks": [member["task"] for member in members],
                "labelled_rows": sum(member["labelled_rows"] for member in members),
                "unlabelled_rows": sum(member["unlabelled_rows"] for member in members),
            }
            for cluster, members in sorted(clusters.items())
        ],
    }


def _taken_for(column: Column) -> str:
    """What a column was taken for, in words."""
    words = {"category": f"{column.n_values:,} categories", "bin": f"{column.n_values:,} bins"}
    return words.get(column.kind, column.kind)


def features_text(about: dict[str, Any]) -> str:
    """The features; those that are no categories with what they were taken for."""
    taken = about["taken_for"]
    return ", ".join(name if taken[name].endswith("categories") else f"{name} ({taken[name]})" for name in taken)


def _error(evidence: Any) -> dict[str, float | None]:
    """The standard error of an estimate; JSON has no infinity, which a single run gives."""
    return {"error": evidence.error if np.isfinite(evidence.error) else None}


def describe_fit(estimator: Any, n_rows: int, n_unlabelled: int) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """What was learnt, as plain data and as facts to be read."""
    about = {"rows": n_rows, "unlabelled_rows": n_unlabelled, **describe(estimator)}
    unlabelled = f", {n_unlabelled:,} of them without a label" if n_unlabelled else ""
    facts = [
        ("model", model_text(about)),
        ("rows", f"{n_rows:,}{unlabelled}"),
        ("tasks", f"{len(about['tasks']):,}"),
        ("labels", ", ".join(map(shown, about["labels"]))),
        ("features", features_text(about)),
        ("clusters", f"{len(about['clusters']):,}"),
        *weight_facts(about),
        ("log evidence", evidence_text(about)),
    ]
    return about, facts


def weight_facts(about: dict[str, Any]) -> list[tuple[str, str]]:
    """How much each member of an average weighs; nothing of other models."""
    weights = about.get("weights")
    if weights is None:
        return []
    heaviest_first = sorted(weights.items(), key=lambda item: -item[1])
    weights = ", ".join(f"{name} {weight:.0%}" for name, weight in heaviest_first)
    return [("weights", weights), ("rates below", f"those of {about['rates_of']}")]


def model_text(about: dict[str, Any]) -> str:
    """The model's name and, where there is a choice, how it was inferred."""
    return about["model"] if about["inference"] is None else f"{about['model']} ({about['inference']})"


def evidence_text(about: dict[str, Any]) -> str:
    """The evidence with what kind of number it is."""
    evidence = about["log_evidence"]
    if "weights" in about:
        return "of its members, not of their average"
    if evidence is None:
        return "not estimated (fit with --evidence to have it)"
    error = f" ± {evidence['error']:.2g}" if evidence["kind"] == "estimate" and evidence["error"] is not None else ""
    return f"{evidence['value']:,.3f}{error} ({evidence['kind']})"


def strongest_ratios(estimator: SharingNB, by: str, n: int) -> dict[Any, list[dict[str, Any]]]:
    """For every cluster or task, the n feature values that tell labels apart best.

    Each label is held against the first; with posterior means, every ratio is finite.
    """
    first, *others = estimator.classes_.tolist()
    found: dict[Any, list[dict[str, Any]]] = {}
    for label in others:
        table = estimator.log_ratios(label, first, by=by, estimate="mean")
        for owner, feature, value, ratio in table.select(by, "feature", "value", "log_ratio").rows():
            if ratio:
                entry = {"feature": feature, "value": value, "label": label, "against": first, "log_ratio": ratio}
                found.setdefault(owner, []).append(entry)
    return {owner: sorted(entries, key=lambda entry: -abs(entry["log_ratio"]))[:n] for owner, entries in found.items()}


def kin_of(estimator: Any, task: Any) -> list[dict[str, Any]]:
    """Other tasks with the probability that they share with this one, the most similar first.

    Among more tasks than a matrix can hold, those of its own cluster.
    """
    tasks, partition = estimator.tasks_.tolist(), estimator.partition_.tolist()
    own = partition[tasks.index(task)]
    cluster_of = dict(zip(tasks, partition, strict=True))
    others = [other for other in tasks if other != task]
    if len(tasks) > MAX_SIMILARITY_TASKS:
        others = [other for other in others if cluster_of[other] == own][: MAX_SIMILARITY_TASKS - 1]
    asked = np.empty(len(others) + 1, dtype=object)
    asked[:] = [task, *others]
    similarity = estimator.similarity(asked)[0, 1:].tolist()
    kin = [
        {"task": other, "similarity": probability, "cluster": cluster_of[other]}
        for other, probability in zip(others, similarity, strict=True)
    ]
    return sorted(kin, key=lambda entry: -entry["similarity"])
