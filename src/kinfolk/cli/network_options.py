"""Options of ``kinfolk fit`` that only Bayes nets have."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple

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


class NetworkOptions(NamedTuple):
    """What was asked for; None where nothing was said."""

    sharing: Sharing | None
    prior: Prior | None
    penalty: str | None
    criterion: Criterion | None
    ess: float | None
    max_parents: int | None
    tabu: int | None
    restarts: int | None
    search: Search | None
    missing: Missing | None
    tables: Tables | None
    bootstrap: int | None
    require: list[str] | None
    forbid: list[str] | None
    start: Path | None
    expert: Path | None
    expert_factor: float | None


SharingOption = Annotated[
    Sharing | None,
    typer.Option(
        help="Bayes nets: structures that differ no more than the data ask for, each task for itself, one structure "
        "for all, or all rows as one table.  [default: joint]"
    ),
]
PriorOption = Annotated[
    Prior | None,
    typer.Option(help="Bayes nets: differences from what tasks have in common, or between pairs.  [default: edit]"),
]
PenaltyOption = Annotated[
    str | None,
    typer.Option(
        metavar="DELTA",
        help="Bayes nets: penalty of a difference between structures, from 0 (separate) to 1 (identical); or learn, or "
        "validate on rows held out.  [default: learn]",
    ),
]
CriterionOption = Annotated[Criterion | None, typer.Option(help="Bayes nets: score of structures.  [default: bdeu]")]
EssOption = Annotated[float | None, typer.Option(metavar="X", help="Bayes nets: equivalent sample size.  [default: 1]")]
MaxParentsOption = Annotated[
    int | None, typer.Option(metavar="N", help="Bayes nets: most parents of a variable.  [default: any number]")
]
TabuOption = Annotated[
    int | None, typer.Option(metavar="N", help="Bayes nets: steps to go on past an optimum.  [default: 10]")
]
RestartsOption = Annotated[
    int | None, typer.Option(metavar="N", help="Bayes nets: how often to disturb and search again.  [default: 0]")
]
SearchOption = Annotated[
    Search | None,
    typer.Option(help="Bayes nets: search equivalence classes first, or climb at once.  [default: auto]"),
]
MissingOption = Annotated[
    Missing | None,
    typer.Option(help="Bayes nets: refuse empty fields, or learn by structural EM.  [default: error]"),
]
TablesOption = Annotated[
    Tables | None,
    typer.Option(help="Bayes nets: whether tasks share probabilities too.  [default: independent]"),
]
BootstrapOption = Annotated[
    int | None,
    typer.Option(metavar="N", help="Bayes nets: resamples to find every arc's confidence with.  [default: 0]"),
]
RequireOption = Annotated[
    list[str] | None,
    typer.Option(metavar="A->B", help="Bayes nets: an arc that every structure must have; repeatable."),
]
ForbidOption = Annotated[
    list[str] | None,
    typer.Option(metavar="A->B", help="Bayes nets: an arc that no structure may have; repeatable."),
]
StartOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Bayes nets: a BIF file whose structure the search starts from.")
]
ExpertOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Bayes nets: a BIF file whose structure is thought near the truth.")
]
ExpertFactorOption = Annotated[
    float | None,
    typer.Option(
        metavar="X", help="Bayes nets: how much less likely each difference from --expert is.  [default: 0.5]"
    ),
]
