"""Bayes nets of many tasks, or classes, read for a report: which arcs all share, and where they differ."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw

from kinfolk.reporting.findings import Findings


def read(estimator: Any) -> Findings:
    """Arcs with the tasks that have them, and how sure each is where resamples were drawn."""
    networks = estimator.networks_
    of_classes = hasattr(estimator, "nets_")
    holders: dict[tuple[str, str], list[Any]] = {}
    for task, network in networks.items():
        for v, parents in enumerate(network.parents):
            for p in parents:
                holders.setdefault((network.variables[p], network.variables[v]), []).append(task)
    variables = {task: set(network.variables) for task, network in networks.items()}
    confidence = _confidence(estimator)
    arcs: list[dict[str, Any]] = []
    for (parent, child), tasks in holders.items():
        able = sum(own.issuperset((parent, child)) for own in variables.values())
        sure = [confidence.get((str(task), parent, child), 0.0) for task in tasks] if confidence else []
        arcs.append(
            {
                "parent": parent,
                "child": child,
                "n_tasks": len(tasks),
                "of": able,
                "tasks": tasks,
                "confidence": sum(sure) / len(sure) if sure else None,
            }
        )
    arcs.sort(key=lambda arc: (-arc["n_tasks"] / max(arc["of"], 1), arc["parent"], arc["child"]))
    common = {(arc["parent"], arc["child"]) for arc in arcs if arc["n_tasks"] == arc["of"]}
    return Findings(
        estimator,
        "networks",
        list(networks),
        estimator.classes_.tolist() if of_classes else None,
        list((estimator.nets_ if of_classes else estimator)._model.schema.names),
        unit="class" if of_classes else "task",
        details={
            "arcs": arcs,
            "n_arcs": len(arcs),
            "n_common": len(common),
            "by_task": [
                {"arcs": network.n_arcs, "own": sum(task in arc["tasks"] and arc["n_tasks"] == 1 for arc in arcs)}
                for task, network in networks.items()
            ],
            "log_score": float(estimator.log_score_),
            "sharing": estimator.sharing,
        },
    )


def _confidence(estimator: Any) -> dict[tuple[str, str, str], float]:
    """Share of resamples in which a task had each arc; empty where none were drawn."""
    table = getattr(getattr(estimator, "nets_", estimator), "arc_confidence_", None)
    if table is None:
        return {}
    rows = nw.from_native(table, eager_only=True).select("task", "parent", "child", "confidence").rows()
    return {(str(task), parent, child): share for task, parent, child, share in rows}
