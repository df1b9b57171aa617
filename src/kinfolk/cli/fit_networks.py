"""Learning Bayes nets from a table for ``kinfolk fit``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kinfolk
from kinfolk.cli.fit import Learnt
from kinfolk.cli.network_structures import describe_networks, penalty_text
from kinfolk.cli.tables import read_training, shown
from kinfolk.networks.answers.bif import read_bif

if TYPE_CHECKING:
    from kinfolk.cli.fit import RunOptions, TableOptions
    from kinfolk.cli.network_options import NetworkOptions

Arcs = list[tuple[str, str]]

EXPERT_FACTOR = 0.5
# With more tasks than this, their numbers of arcs are told as a range.
_MOST_TASKS_TOLD = 8


def learn(name: str, table: TableOptions, run: RunOptions, options: NetworkOptions) -> Learnt:
    """Learn a network for every task of a table, and tell what was found."""
    graphs = _graphs(options)
    frame, roles = read_training(table)
    estimator = getattr(kinfolk, name)(
        **_parameters(options, roles.features),
        **graphs,
        bins=table.bins,
        task_column=table.task,
        random_state=run.seed,
        n_jobs=run.jobs,
        verbose=sys.stderr.isatty(),
    )
    estimator.fit(frame.select(roles.learnt))
    about = describe_networks(estimator)
    return Learnt(estimator, {"rows": frame.height, **about}, _facts(about, frame.height), [])


def _parameters(options: NetworkOptions, variables: Sequence[str]) -> dict[str, Any]:
    """Parameters of the estimator, as far as options say anything about them."""
    elsewhere = ("start", "expert", "expert_factor", "require", "forbid")
    own = {field.name: getattr(options, field.name) for field in fields(options) if field.name not in elsewhere}
    parameters = {name: value for name, value in own.items() if value is not None}
    if options.penalty is not None:
        parameters["penalty"] = _penalty(options.penalty)
    for name, option, arcs in (
        ("required", "--require", options.require),
        ("forbidden", "--forbid", options.forbid),
    ):
        if arcs:
            parameters[name] = [arc_from(arc, option, variables) for arc in arcs]
    return parameters


def _penalty(given: str) -> float | str:
    if given in ("learn", "validate"):
        return given
    try:
        return float(given)
    except ValueError:
        raise ValueError(f"--penalty {given!r}: a number from 0 to 1, learn or validate is needed") from None


def arc_from(text: str, option: str, variables: Sequence[str]) -> tuple[str, str]:
    """Read an arc as a user writes it; where names hold an arrow too, the reading that gives two variables.

    Examples
    --------
    >>> arc_from("rain -> wet", "--require", ["rain", "wet"])
    ('rain', 'wet')
    >>> arc_from("a->b->c", "--require", ["a->b", "c"])
    ('a->b', 'c')
    """
    pieces = text.split("->")
    readings = [("->".join(pieces[:i]).strip(), "->".join(pieces[i:]).strip()) for i in range(1, len(pieces))]
    known = [reading for reading in readings if set(reading) <= set(variables)]
    if not readings:
        raise ValueError(f"{option} {text!r} is not an arc: write it as PARENT->CHILD")
    parent, child = (known or readings)[0]
    for name in (parent, child):
        if name not in variables:
            raise ValueError(f"{option} {text!r}: {name!r} is not a variable; they are {', '.join(variables)}")
    return parent, child


def _graphs(options: NetworkOptions) -> dict[str, Any]:
    """Structures that come from files, as arcs: of a file's probabilities nothing is used."""
    if options.expert_factor is not None and options.expert is None:
        raise ValueError("--expert-factor belongs to --expert, which was not given")
    graphs: dict[str, Any] = {}
    if options.start is not None:
        graphs["start"] = _arcs_of(options.start)
    if options.expert is not None:
        factor = EXPERT_FACTOR if options.expert_factor is None else options.expert_factor
        graphs["structure_prior"] = (_arcs_of(options.expert), factor)
    return graphs


def _arcs_of(file: Path) -> Arcs:
    network = read_bif(file)
    names = network.variables
    return [(names[p], names[v]) for v, parents in enumerate(network.parents) for p in parents]


def _facts(about: dict[str, Any], n_rows: int) -> list[tuple[str, str]]:
    """What was learnt, to be read."""
    tasks = about["tasks"]
    numbers = [task["arcs"] for task in tasks]
    if len(tasks) <= _MOST_TASKS_TOLD:
        arcs = ", ".join(f"{shown(task['task'])} {task['arcs']:,}" for task in tasks)
    else:
        arcs = f"{min(numbers):,} to {max(numbers):,} per task, {sum(numbers) / len(numbers):,.1f} on average"
    return [
        ("model", f"{about['model']} ({about['sharing']})"),
        ("rows", f"{n_rows:,}"),
        ("tasks", f"{len(tasks):,}"),
        ("variables", ", ".join(about["variables"])),
        ("arcs", arcs),
        ("common arcs", f"{about['common_arcs']:,} of {len(about['arcs']):,} different ones"),
        ("penalty", penalty_text(about)),
        ("log score", f"{about['log_score']:,.3f}"),
    ]
