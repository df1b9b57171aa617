"""Naive Bayes models, and averages of models, read for a report."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.naive_bayes.estimators.base import SharingNB
from kinfolk.naive_bayes.estimators.prototype import PrototypeNB
from kinfolk.reporting.findings import SOURCES, Findings, similarity_of
from kinfolk.tasks.answering import Known

_BELIEFS = 6


def read(estimator: Any) -> Findings:
    """What a naive Bayes model found, or an average, of which counts and chains are those of its heaviest member."""
    weights: dict[str, float] | None = getattr(estimator, "weights_", None)
    member = _heaviest(estimator)
    partition = _or_none(estimator, "partition_")
    about: dict[str, Any] = {}
    if isinstance(member, SharingNB):
        fit = member._result
        statistics, unlabelled = fit.data.statistics, fit.data.unlabelled
        about = {
            "rows": statistics.label_counts.sum(axis=1),
            "unlabelled": np.bincount(unlabelled.task, minlength=len(statistics.label_counts)),
            "label_counts": statistics.label_counts,
            "feature_counts": _feature_counts(member),
            "schema": fit.schema,
            "convergence": member.convergence_,
            "draws": _draws(member),
            "evidence": None if weights is not None else fit.posterior.evidence or member._evidence_found,
            "details": {
                "beliefs": _beliefs(member) if _same(partition, member.partition_) else {},
                "around_prototype": isinstance(member, PrototypeNB) and _all_alone(partition),
            },
        }
    known: Known = estimator._predictor().known
    names = [name for name in known.columns or () if name != known.task_column]
    return Findings(
        estimator,
        "naive Bayes" if about else "other",
        estimator.tasks_.tolist(),
        estimator.classes_.tolist() if hasattr(estimator, "classes_") else None,
        about["schema"].names if about else names,
        partition,
        similarity_of(estimator),
        shares=_shares(estimator, known),
        weights=weights,
        **about,
    )


def _or_none(estimator: Any, attribute: str) -> Any:
    try:
        return getattr(estimator, attribute)
    except (AttributeError, ValueError):
        return None


def _heaviest(estimator: Any) -> Any:
    weights, members = getattr(estimator, "weights_", None), getattr(estimator, "members_", None)
    if not weights or not isinstance(members, dict):
        return estimator
    heaviest = max((name for name in weights if name in members), key=weights.__getitem__, default=None)
    return estimator if heaviest is None else members[heaviest]


def _all_alone(partition: NDArray[Any] | None) -> bool:
    return partition is None or len(set(partition.tolist())) == len(partition)


def _same(one: NDArray[Any] | None, other: NDArray[Any]) -> bool:
    """Whether a member's clusters are those that the page shows."""
    return one is not None and one.tolist() == other.tolist()


def _shares(estimator: Any, known: Known) -> Floats | None:
    """Whose data a task's answers rest on: shares do not depend on what a row holds, so that an empty row has them."""
    if not hasattr(estimator, "explain"):
        return None
    n_tasks = len(estimator.tasks_)
    names = known.columns
    empty: Any = np.full((n_tasks, known.n_columns), None, dtype=object)
    if names is not None:
        empty = {name: empty[:, place] for place, name in enumerate(names) if name != known.task_column}
    elif isinstance(known.task_column, int):
        empty = np.delete(empty, known.task_column, axis=1)
    try:
        found = estimator.explain(empty, task=estimator.tasks_)
    except (ValueError, TypeError, AttributeError):  # a model that cannot be asked about empty rows
        return None
    return np.stack([getattr(found, name).mean(axis=1) for name in SOURCES], axis=1)


def _feature_counts(member: SharingNB) -> dict[str, NDArray[Any]]:
    """Counts of every feature of categories or bins, all tasks together (labels, values)."""
    fit = member._result
    statistics = fit.data.statistics
    layout = statistics.layout
    total = statistics.feature_counts.sum(axis=0)[: layout.n_counts].reshape(layout.n_labels, -1)
    coded = [column for column in fit.schema.columns if column.number is None]
    return {
        column.name: total[:, start:end]
        for column, start, end in zip(coded, layout.offsets[:-1], layout.offsets[1:], strict=False)
    }


def _draws(member: SharingNB) -> dict[str, NDArray[Any]]:
    posterior = member._result.posterior
    drawn: dict[str, NDArray[Any]] = {}
    if posterior.log_joint is not None:
        drawn["log joint"] = posterior.log_joint
    if posterior.partitions is not None:
        drawn["number of clusters"] = posterior.partitions.max(axis=2) + 1
    return drawn


def _beliefs(member: SharingNB) -> dict[int, list[dict[str, Any]]]:
    """For every cluster the values of features that tell labels apart best, each label held against the first."""
    first, *others = member.classes_.tolist()
    found: dict[int, list[dict[str, Any]]] = {}
    for label in others:
        table = member.log_ratios(label, first, estimate="mean")
        columns = [_plain(table[name]) for name in ("cluster", "feature", "value", "log_ratio")]
        for cluster, feature, value, ratio in zip(*columns, strict=True):
            if ratio is not None and np.isfinite(ratio) and ratio != 0.0:
                entry = {"feature": feature, "value": value, "label": label, "against": first, "log_ratio": ratio}
                found.setdefault(int(cluster), []).append(entry)
    return {
        cluster: sorted(entries, key=lambda entry: -abs(entry["log_ratio"]))[:_BELIEFS]
        for cluster, entries in found.items()
    }


def _plain(column: Any) -> list[Any]:
    """A column of a frame of whatever library as a list."""
    values: list[Any] = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    return values
