"""Options of ``kinfolk fit`` that only Bayes nets have."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, ClassVar

import typer


class Sharing(StrEnum):
    """How structures of tasks hang together."""

    joint = "joint"
    none = "none"
    identical = "identical"
    pooled = "pooled"


class Prior(StrEnum):
    """How differences between structures are counted."""

    edit = "edit"
    paired = "paired"


class Criterion(StrEnum):
    """Score of one structure."""

    bdeu = "bdeu"
    k2 = "k2"
    bic = "bic"


class Search(StrEnum):
    """Where each task's own search begins."""

    auto = "auto"
    classes = "classes"
    climb = "climb"


class Missing(StrEnum):
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

    sharing: Annotated[
        Sharing | None,
        typer.Option(
            help="Structures that differ no more than the data ask for, each task for itself, one structure "
            "for all, or all rows as one table.  [default: joint]"
        ),
    ] = None
    prior: Annotated[
        Prior | None,
        typer.Option(help="Differences from what tasks have in common, or between pairs.  [default: edit]"),
    ] = None
    penalty: Annotated[
        str | None,
        typer.Option(
            metavar="DELTA",
            help="Penalty of a difference between structures, from 0 (separate) to 1 (identical); or learn, or "
            "validate on rows held out.  [default: learn]",
        ),
    ] = None
    criterion: Annotated[Criterion | None, typer.Option(help="Score of structures.  [default: bdeu]")] = None
    ess: Annotated[float | None, typer.Option(metavar="X", help="Equivalent sample size.  [default: 1]")] = None
    max_parents: Annotated[
        int | None, typer.Option(metavar="N", help="Most parents of a variable.  [default: any number]")
    ] = None
    tabu: Annotated[int | None, typer.Option(metavar="N", help="Steps to go on past an optimum.  [default: 10]")] = None
    restarts: Annotated[
        int | None, typer.Option(metavar="N", help="How often to disturb and search again.  [default: 0]")
    ] = None
    search: Annotated[
        Search | None,
        typer.Option(help="Search equivalence classes first, or climb at once.  [default: auto]"),
    ] = None
    missing: Annotated[
        Missing | None,
        typer.Option(help="Refuse empty fields, or learn by structural EM.  [default: error]"),
    ] = None
    tables: Annotated[
        Tables | None,
        typer.Option(help="Whether tasks share probabilities too.  [default: independent]"),
    ] = None
    bootstrap: Annotated[
        int | None,
        typer.Option(metavar="N", help="Resamples to find every arc's confidence with.  [default: 0]"),
    ] = None
    require: Annotated[
        list[str] | None,
        typer.Option(metavar="A->B", help="An arc that every structure must have; repeatable."),
    ] = None
    forbid: Annotated[
        list[str] | None,
        typer.Option(metavar="A->B", help="An arc that no structure may have; repeatable."),
    ] = None
    start: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A BIF file whose structure the search starts from.")
    ] = None
    expert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A BIF file whose structure is thought near the truth.")
    ] = None
    expert_factor: Annotated[
        float | None,
        typer.Option(metavar="X", help="How much less likely each difference from --expert is.  [default: 0.5]"),
    ] = None
