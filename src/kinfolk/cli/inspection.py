"""``kinfolk inspect``: what a saved model found, to be read by people or programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kinfolk.cli.options import AsJson, ModelFile
from kinfolk.cli.tables import fact_lines, json_text, named, shown, text_table

if TYPE_CHECKING:
    from kinfolk.naive_bayes.estimators.base import SharingNB
    from kinfolk.networks.estimators.bayes_nets import BayesNets

EXAMPLE = """\b
Example:
  kinfolk inspect team.kin
  kinfolk inspect team.kin --task ann --features 5"""

# Tasks that share with less probability than this are no kin worth a line.
_LEAST_SIMILARITY = 0.005


def inspect(
    context: typer.Context,
    model: ModelFile,
    task: Annotated[str | None, typer.Option(metavar="ID", help="Show this one task, and who its kin are.")] = None,
    features: Annotated[
        int,
        typer.Option(
            metavar="N", help="Number of feature values to show, of those that tell labels apart best.", min=0
        ),
    ] = 10,
    as_json: AsJson = False,
) -> None:
    """Show what a model found, such as which tasks are kin.

    Clusters consist of tasks that are kin. A log ratio above zero means that a value of a feature speaks for the first
    label, one below zero that it speaks for the second. Arcs of Bayesian networks are listed with the tasks that have
    them, hidden states with what they emit; the percentage beside a number of states or clusters is its probability.
    """
    import kinfolk
    from kinfolk.cli.description import describe, heaviest_member
    from kinfolk.cli.fit_transfer import TRANSFER

    estimator = kinfolk.load(model, estimator=True)
    if hasattr(estimator, "networks_"):
        _refuse_features(context, model, "Bayes nets")
        typer.echo(_networks(estimator, task, as_json), nl=False)
        return
    if hasattr(estimator, "n_states_"):
        _refuse_features(context, model, "hidden Markov models")
        typer.echo(_sequences(estimator, task, as_json), nl=False)
        return
    if type(estimator).__name__ in TRANSFER:
        typer.echo(_transfer(estimator, task, as_json), nl=False)
        return
    if not hasattr(heaviest_member(estimator), "log_ratios"):
        load = f"kinfolk.load({str(model)!r}, estimator=True)"
        raise ValueError(f"{model} holds {type(estimator).__name__}, which is looked into in Python: {load}")
    about = describe(estimator)
    # Rates are those of one model; of an average, those of the heaviest member.
    member = heaviest_member(estimator)
    # Tables come in polars, whichever library the model was fitted with, which need not be installed here.
    member._result = member._result._replace(backend="polars")
    if task is None:
        document = _all(estimator, member, about, features)
        text = _all_text
    else:
        document = _one(estimator, member, about, named(task, estimator.tasks_.tolist(), "task"), features)
        text = _one_text
    typer.echo(json_text(document) if as_json else text(document), nl=False)


def _refuse_features(context: typer.Context, model: Any, what: str) -> None:
    given = context.get_parameter_source("features")
    if given is not None and given.name == "COMMANDLINE":  # be it with its default
        raise ValueError(f"--features was given, but {model} holds {what}, which have no labels to tell apart")


def _sequences(estimator: Any, task: str | None, as_json: bool) -> str:
    """Clusters and hidden states of all tasks, or of one."""
    from kinfolk.cli.sequence_answers import all_text, inspect_all, inspect_one, one_text

    if task is None:
        about = inspect_all(estimator)
        return json_text(about) if as_json else all_text(about)
    document = inspect_one(estimator, named(task, estimator.tasks_.tolist(), "task"))
    return json_text(document) if as_json else one_text(document, _LEAST_SIMILARITY)


def _transfer(estimator: Any, task: str | None, as_json: bool) -> str:
    """What an average of all kinds of models believes, or of one task."""
    from kinfolk.cli.fit_transfer import describe, describe_task, facts_of, task_text, weights_text

    if task is None:
        about = describe(estimator)
        return json_text(about) if as_json else f"{fact_lines(facts_of(about))}\n{weights_text(about)}"
    document = describe_task(estimator, named(task, estimator.tasks_.tolist(), "task"))
    return json_text(document) if as_json else task_text(document, _LEAST_SIMILARITY)


def _networks(estimator: BayesNets, task: str | None, as_json: bool) -> str:
    """Arcs of all tasks, or of one."""
    from kinfolk.cli.network_structures import describe_network, describe_networks, network_text, networks_text

    if task is None:
        about = describe_networks(estimator)
        return json_text(about) if as_json else networks_text(about)
    tasks = estimator.tasks_.tolist()
    document = describe_network(estimator, named(task, tasks, "task"))
    return json_text(document) if as_json else network_text(document, len(tasks))


def _all(estimator: Any, member: SharingNB, about: dict[str, Any], n_features: int) -> dict[str, Any]:
    """All clusters and tasks."""
    from kinfolk.cli.description import strongest_ratios

    # A member's clusters may be others than those of the average.
    alike = estimator.partition_.tolist() == member.partition_.tolist()
    ratios = strongest_ratios(member, "cluster", n_features) if alike else {}
    clusters = [{**cluster, "log_ratios": ratios.get(cluster["cluster"], [])} for cluster in about["clusters"]]
    return {**about, "clusters": clusters}


def _one(estimator: Any, member: SharingNB, about: dict[str, Any], task: Any, n_features: int) -> dict[str, Any]:
    """One task: its rows, label rates, kin and features."""
    from kinfolk.cli.description import kin_of, strongest_ratios

    own = next(entry for entry in about["tasks"] if entry["task"] == task)
    rates = [row for row in member.label_rates().rows() if row[0] == task]
    return {
        **own,
        "label_rates": {shown(label): rate for _, label, rate in rates},
        "kin": kin_of(estimator, task),
        "log_ratios": strongest_ratios(member, "task", n_features).get(task, []),
    }


def _all_text(document: dict[str, Any]) -> str:
    from kinfolk.cli.description import evidence_text, features_text, model_text, weight_facts

    facts = [
        ("model", model_text(document)),
        ("labels", ", ".join(map(shown, document["labels"]))),
        ("features", features_text(document)),
        ("tasks", f"{len(document['tasks']):,} in {_plural(len(document['clusters']), 'cluster')}"),
        *weight_facts(document),
        ("log evidence", evidence_text(document)),
    ]
    tasks = sorted(document["tasks"], key=lambda entry: entry["cluster"])
    clusters = [
        [str(entry["cluster"]), *_row_cells(entry, tasks), ", ".join(map(shown, entry["tasks"]))]
        for entry in document["clusters"]
    ]
    parts = [
        fact_lines(facts),
        text_table(["cluster", *_row_titles(tasks), "tasks"], clusters),
        text_table(
            ["task", "cluster", *_row_titles(tasks)],
            [[shown(entry["task"]), str(entry["cluster"]), *_row_cells(entry, tasks)] for entry in tasks],
        ),
    ]
    parts += [
        f"cluster {entry['cluster']}\n{_ratio_text(entry['log_ratios'])}"
        for entry in document["clusters"]
        if entry["log_ratios"]
    ]
    return "\n".join(parts)


def _one_text(document: dict[str, Any]) -> str:

    unlabelled = document["unlabelled_rows"]
    facts = [
        ("task", shown(document["task"])),
        ("cluster", str(document["cluster"])),
        ("rows", f"{document['labelled_rows']:,}" + (f", and {unlabelled:,} without a label" if unlabelled else "")),
        ("label rates", ", ".join(f"{label} {rate:.3f}" for label, rate in document["label_rates"].items())),
    ]
    kin = [
        [shown(entry["task"]), entry["similarity"], str(entry["cluster"])]
        for entry in document["kin"]
        if entry["similarity"] >= _LEAST_SIMILARITY
    ]
    parts = [fact_lines(facts), text_table(["kin", "similarity", "cluster"], kin) if kin else "no kin\n"]
    if document["log_ratios"]:
        parts.append(_ratio_text(document["log_ratios"]))
    return "\n".join(parts)


def _row_titles(tasks: list[dict[str, Any]]) -> list[str]:
    return ["rows", "without label"] if _any_unlabelled(tasks) else ["rows"]


def _row_cells(entry: dict[str, Any], tasks: list[dict[str, Any]]) -> list[float]:
    """Numbers of rows; rows without a label only where the model has any."""
    return [entry["labelled_rows"], entry["unlabelled_rows"]] if _any_unlabelled(tasks) else [entry["labelled_rows"]]


def _any_unlabelled(tasks: list[dict[str, Any]]) -> bool:
    return any(entry["unlabelled_rows"] for entry in tasks)


def _ratio_text(ratios: list[dict[str, Any]]) -> str:
    """Ratios as a table; which labels they compare stands in the title where it is always the same."""
    pairs = [f"{shown(entry['label'])} against {shown(entry['against'])}" for entry in ratios]
    if len(set(pairs)) == 1:
        rows = [[entry["feature"], entry["value"], entry["log_ratio"]] for entry in ratios]
        return text_table(["feature", "value", f"log ratio, {pairs[0]}"], rows)
    rows = [
        [entry["feature"], entry["value"], pair, entry["log_ratio"]] for entry, pair in zip(ratios, pairs, strict=True)
    ]
    return text_table(["feature", "value", "labels", "log ratio"], rows)


def _plural(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")
