"""What Bayes nets found, as plain data and in words: which arcs which tasks have."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kinfolk.cli.tables import fact_lines, named, shown, text_table

if TYPE_CHECKING:
    from kinfolk.networks.estimators.bayes_nets import BayesNets
    from kinfolk.networks.model.network import Network

# With more tasks than this, their numbers of arcs are told as a range.
_MOST_TASKS_TOLD = 8


def load_networks(model: Path, task: str | None = None) -> dict[Any, Network]:
    """The networks of a saved model by task, or that of one task as a user writes it."""
    import kinfolk

    networks: dict[Any, Network] | None = getattr(kinfolk.load(model), "networks_", None)
    if networks is None:
        raise ValueError(f"{model} holds no Bayes nets: fit one with --model bayesnets")
    if task is None:
        return networks
    chosen = named(task, list(networks), "task")
    return {chosen: networks[chosen]}


def describe_networks(estimator: BayesNets) -> dict[str, Any]:
    """The model, its tasks and its arcs, ready for JSON; arcs that most tasks have come first."""
    networks = estimator.networks_
    arcs = _arcs(networks)
    several = estimator.sharing == "joint" and len(networks) > 1
    chosen = estimator.penalty if estimator.penalty in ("learn", "validate") else "given"
    return {
        "model": "BayesNets",
        "sharing": estimator.sharing,
        "prior": estimator.prior,
        "criterion": estimator.criterion,
        "variables": estimator._model.schema.names,
        "tasks": [
            {"task": task, "variables": len(network.variables), "arcs": network.n_arcs}
            for task, network in networks.items()
        ],
        "arcs": arcs,
        "common_arcs": sum(arc["everywhere"] for arc in arcs),
        # JSON has no infinity, which is the strength of a penalty of 1.
        "penalty": {
            "value": estimator.penalty_,
            "strength": estimator.strength_ if math.isfinite(estimator.strength_) else None,
            "chosen": chosen,
        }
        if several
        else None,
        "log_score": estimator.log_score_,
    }


def _arcs(networks: dict[Any, Network]) -> list[dict[str, Any]]:
    holders: dict[tuple[str, str], list[Any]] = {}
    for task, network in networks.items():
        for v, parents in enumerate(network.parents):
            for p in parents:
                holders.setdefault((network.variables[p], network.variables[v]), []).append(task)
    variables = {task: set(network.variables) for task, network in networks.items()}
    found = []
    for arc, tasks in holders.items():
        able = sum(own.issuperset(arc) for own in variables.values())
        found.append({"parent": arc[0], "child": arc[1], "tasks": tasks, "everywhere": len(tasks) == able})
    return sorted(found, key=lambda arc: (-len(arc["tasks"]), arc["parent"], arc["child"]))


def describe_network(estimator: BayesNets, task: Any) -> dict[str, Any]:
    """One task's network: the parents of every variable, and who shares its arcs."""
    network = estimator.networks_[task]
    confidence = _confidence(estimator, task)
    arcs = [arc for arc in _arcs(estimator.networks_) if task in arc["tasks"]]
    if confidence is not None:
        arcs = [arc | {"confidence": confidence.get((arc["parent"], arc["child"]), 0.0)} for arc in arcs]
    return {
        "task": task,
        "variables": [
            {"variable": name, "states": list(states), "parents": [network.variables[p] for p in parents]}
            for name, states, parents in zip(network.variables, network.states, network.parents, strict=True)
        ],
        "arcs": arcs,
        "common_arcs": sum(arc["everywhere"] for arc in arcs),
    }


def _confidence(estimator: BayesNets, task: Any) -> dict[tuple[str, str], float] | None:
    """Share of resamples in which a task had each arc; None where none were drawn."""
    if not hasattr(estimator, "arc_confidence_"):
        return None
    import narwhals.stable.v2 as nw

    table = nw.from_native(estimator.arc_confidence_, eager_only=True)
    # Tasks of mixed types stand in the table as text.
    rows = table.select("task", "parent", "child", "confidence").rows()
    return {(parent, child): share for of, parent, child, share in rows if of in (task, str(task))}


def describe_fit(estimator: BayesNets, n_rows: int) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """What was learnt, as plain data and as facts to be read."""
    about = {"rows": n_rows, **describe_networks(estimator)}
    tasks = about["tasks"]
    if len(tasks) <= _MOST_TASKS_TOLD:
        arcs = ", ".join(f"{shown(task['task'])} {task['arcs']:,}" for task in tasks)
    else:
        numbers = [task["arcs"] for task in tasks]
        arcs = f"{min(numbers):,} to {max(numbers):,} per task, {sum(numbers) / len(numbers):,.1f} on average"
    model, *others = _facts(about)
    return about, [model, ("rows", f"{n_rows:,}"), *others, ("arcs", arcs)]


def _facts(about: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        ("model", f"{about['model']} ({about['sharing']})"),
        ("variables", ", ".join(about["variables"])),
        ("tasks", f"{len(about['tasks']):,}"),
        ("common arcs", f"{about['common_arcs']:,} of {len(about['arcs']):,} different ones"),
        ("penalty", _penalty_text(about["penalty"])),
        ("log score", f"{about['log_score']:,.3f}"),
    ]


def _penalty_text(penalty: dict[str, Any] | None) -> str:
    """The penalty, and where it comes from."""
    if penalty is None:
        return "none: structures were not learnt jointly"
    strength = "infinite" if penalty["strength"] is None else f"{penalty['strength']:.3f}"
    source = {"learn": "learnt", "validate": "validated", "given": "as given"}[penalty["chosen"]]
    return f"{penalty['value']:.6g} (strength {strength}, {source})"


def networks_text(about: dict[str, Any]) -> str:
    """All tasks and arcs, to be read."""
    tasks = [[shown(task["task"]), task["variables"], task["arcs"]] for task in about["tasks"]]
    parts = [
        fact_lines(_facts(about)),
        text_table(["task", "variables", "arcs"], tasks),
        _arc_table(about["arcs"], len(tasks)),
    ]
    return "\n".join(parts)


def network_text(document: dict[str, Any], n_tasks: int) -> str:
    """One task's network, to be read."""
    facts = [
        ("task", shown(document["task"])),
        ("variables", f"{len(document['variables']):,}"),
        ("arcs", f"{len(document['arcs']):,}, of which all tasks have {document['common_arcs']:,}"),
    ]
    parents = [[entry["variable"], ", ".join(entry["parents"]) or "(none)"] for entry in document["variables"]]
    parts = [fact_lines(facts), text_table(["variable", "parents"], parents), _arc_table(document["arcs"], n_tasks)]
    return "\n".join(parts)


def _arc_table(arcs: list[dict[str, Any]], n_tasks: int) -> str:
    """Arcs with the tasks that have them, and with their confidence where it is known."""
    if not arcs:
        return "no arcs\n"
    sure = ["confidence"] if "confidence" in arcs[0] else []
    rows = []
    for arc in arcs:
        who = f"{len(arc['tasks']):,}: {', '.join(map(shown, arc['tasks']))}"
        everywhere = "all" if len(arc["tasks"]) == n_tasks else f"all that have both variables, {who}"
        tasks = everywhere if arc["everywhere"] else who
        rows.append([arc["parent"], arc["child"], *(arc[name] for name in sure), tasks])
    return text_table(["parent", "child", *sure, "tasks"], rows)
