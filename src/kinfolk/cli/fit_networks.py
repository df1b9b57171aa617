"""Bayes nets for ``kinfolk fit``: their options, and how they learn from a table."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from kinfolk.cli.tables import TableOptions, open_training

if TYPE_CHECKING:
    from kinfolk.cli.fit import Learnt, RunOptions

EXPERT_FACTOR = 0.5
_SHARING = ("joint", "none", "identical", "pooled")
_KNOWN = "Prior knowledge about Bayesian networks"
_PENALTIES = ("learn", "validate")
_STRUCTURE_PRIORS = ("sparse", "learn", "uniform")


class Prior(StrEnum):
    """How differences between structures are counted."""

    edit = "edit"
    paired = "paired"


class Criterion(StrEnum):
    """Score of one structure."""

    bdeu = "bdeu"
    k2 = "k2"
    bic = "bic"
    bhd = "bhd"


class Search(StrEnum):
    """Where each task's own search begins."""

    auto = "auto"
    orders = "orders"
    classes = "classes"
    climb = "climb"


class Gaps(StrEnum):
    """What to do about empty fields."""

    error = "error"
    em = "em"


class Tables(StrEnum):
    """Whether probabilities are shared as well as structures."""

    independent = "independent"
    shared = "shared"


@dataclass(frozen=True, kw_only=True)
class NetworkOptions:
    """What was asked for; None where nothing was said."""

    PANEL: ClassVar[str] = "Options of Bayes nets"

    prior: Annotated[
        Prior | None,
        typer.Option(
            help="Penalise differences from what tasks have in common, or between pairs of tasks.  [default: edit]"
        ),
    ] = None
    penalty: Annotated[
        str | None,
        typer.Option(
            metavar="DELTA",
            help="Penalty of a difference between structures, from 0 (separate) to 1 (identical); or learn, or "
            "validate on held-out rows.  [default: learn]",
        ),
    ] = None
    criterion: Annotated[
        Criterion | None, typer.Option(help="Score of structures; bhd needs --sharing identical.  [default: bdeu]")
    ] = None
    ess: Annotated[float | None, typer.Option(metavar="X", help="Equivalent sample size.  [default: 1]")] = None
    arc_probability: Annotated[
        str | None,
        typer.Option(
            metavar="P",
            help="Prior probability of an arc; or sparse (1 / variables), learn, or uniform (all structures equally "
            "probable).  [default: sparse]",
        ),
    ] = None
    max_parents: Annotated[
        int | None, typer.Option(metavar="N", help="Largest number of parents of a variable.  [default: any number]")
    ] = None
    tabu: Annotated[int | None, typer.Option(metavar="N", help="Steps to continue past an optimum.  [default: 10]")] = (
        None
    )
    restarts: Annotated[
        int | None,
        typer.Option(metavar="N", help="How often to perturb the structures and search again.  [default: 0]"),
    ] = None
    search: Annotated[
        Search | None,
        typer.Option(help="Search over orders or equivalence classes first, or climb directly.  [default: auto]"),
    ] = None
    gaps: Annotated[
        Gaps | None,
        typer.Option(help="Empty fields: stop with an error, or learn by structural EM.  [default: error]"),
    ] = None
    tables: Annotated[
        Tables | None,
        typer.Option(help="Whether tasks share their probability tables, too.  [default: independent]"),
    ] = None
    bootstrap: Annotated[
        int | None,
        typer.Option(metavar="N", help="Number of resamples that give the confidence of every arc.  [default: 0]"),
    ] = None
    require: Annotated[
        list[str] | None,
        typer.Option(metavar="A->B", rich_help_panel=_KNOWN, help="An arc that every structure must have; repeatable."),
    ] = None
    forbid: Annotated[
        list[str] | None,
        typer.Option(metavar="A->B", rich_help_panel=_KNOWN, help="An arc that no structure may have; repeatable."),
    ] = None
    tier: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B,…",
            rich_help_panel=_KNOWN,
            help="Variables of one time, the earliest tier first; no arc leads to an earlier tier. Repeatable.",
        ),
    ] = None
    start: Annotated[
        Path | None,
        typer.Option(metavar="FILE", rich_help_panel=_KNOWN, help="A BIF file whose structure the search starts from."),
    ] = None
    expert: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=_KNOWN,
            help="A BIF file with a structure that is thought to be near the truth.",
        ),
    ] = None
    expert_factor: Annotated[
        float | None,
        typer.Option(
            metavar="X",
            rich_help_panel=_KNOWN,
            help="How much less likely each difference from --expert is.  [default: 0.5]",
        ),
    ] = None


def learn(name: str, table: TableOptions, run: RunOptions, options: NetworkOptions) -> Learnt:
    """Learn a network for every task of a table, and tell what was found."""
    import kinfolk
    from kinfolk.cli.fit import Learnt
    from kinfolk.cli.network_structures import describe_fit

    former = next((word for word in table.missing or () if word in tuple(Gaps)), None)
    if former is not None and options.gaps is None:
        warnings.warn(f"--missing {former} is now written --gaps {former}: --missing names values", stacklevel=2)
        options = replace(options, gaps=Gaps(former))
    if run.sharing is not None and run.sharing not in _SHARING:
        raise ValueError(
            f"--sharing {run.sharing} belongs to --model ihmm: --model {run.model} has {', '.join(_SHARING)}"
        )
    graphs = _graphs(options)
    source, roles = open_training(table)
    frame = source.whole()
    estimator = getattr(kinfolk, name)(
        **_parameters(options, roles.features),
        **({} if run.sharing is None else {"sharing": str(run.sharing)}),
        **graphs,
        bins=run.bins,
        task_column=table.task,
        random_state=run.seed,
        n_jobs=run.jobs,
        verbose=sys.stderr.isatty(),
        checkpoint=run.checkpoint,
    )
    estimator.fit(frame.select(roles.learnt))
    return Learnt(estimator, *describe_fit(estimator, frame.height))


def _parameters(options: NetworkOptions, variables: Sequence[str]) -> dict[str, Any]:
    """Parameters of the estimator, as far as options say anything about them."""
    elsewhere = ("gaps", "start", "expert", "expert_factor", "require", "forbid", "tier", "arc_probability")
    own = {field.name: getattr(options, field.name) for field in fields(options) if field.name not in elsewhere}
    parameters = {name: value for name, value in own.items() if value is not None}
    if options.gaps is not None:
        parameters["missing"] = options.gaps
    if options.penalty is not None:
        parameters["penalty"] = _number_or_word(options.penalty, "--penalty", "a number from 0 to 1", _PENALTIES)
    if options.arc_probability is not None:
        parameters["structure_prior"] = _number_or_word(
            options.arc_probability, "--arc-probability", "a probability", _STRUCTURE_PRIORS
        )
    for name, option, arcs in (
        ("required", "--require", options.require),
        ("forbidden", "--forbid", options.forbid),
    ):
        if arcs:
            parameters[name] = [arc_from(arc, option, variables) for arc in arcs]
    if options.tier:
        parameters["tiers"] = [[name.strip() for name in tier.split(",")] for tier in options.tier]
    return parameters


def _number_or_word(given: str, option: str, number: str, words: Sequence[str]) -> float | str:
    if given in words:
        return given
    try:
        return float(given)
    except ValueError:
        known = ", ".join(words[:-1])
        raise ValueError(f"{option} {given!r}: {number}, {known} or {words[-1]} is needed") from None


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
        if options.arc_probability is not None:
            raise ValueError("--arc-probability and --expert were both given: one of them is needed")
        factor = EXPERT_FACTOR if options.expert_factor is None else options.expert_factor
        graphs["structure_prior"] = (_arcs_of(options.expert), factor)
    return graphs


def _arcs_of(file: Path) -> list[tuple[str, str]]:
    from kinfolk.networks.answers.bif import read_bif

    network = read_bif(file)
    names = network.variables
    return [(names[p], names[v]) for v, parents in enumerate(network.parents) for p in parents]
