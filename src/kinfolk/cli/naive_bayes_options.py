"""Options of ``kinfolk fit`` that only naive Bayes models have."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, ClassVar

import typer


class Numeric(StrEnum):
    """What columns of numbers are taken for."""

    bin = "bin"
    gaussian = "gaussian"
    poisson = "count"
    auto = "auto"


class Inference(StrEnum):
    """How kin tasks are found."""

    bhc = "bhc"
    randomised_bhc = "randomised-bhc"
    gibbs = "gibbs"
    exact = "exact"
    variational = "variational"


@dataclass(frozen=True, kw_only=True)
class NaiveBayesOptions:
    """What was asked for; None where nothing was said."""

    PANEL: ClassVar[str] = "Options of naive Bayes models"

    inference: Annotated[
        Inference | None,
        typer.Option(
            help="How to find kin: by a tree of merges (bhc, the default), by sampling (gibbs; learns from rows "
            "without a label too), by all partitions (exact; up to 10 tasks), or, for very many tasks, by a tree built "
            "from random parts (randomised-bhc) or variationally."
        ),
    ] = None
    weight: Annotated[
        str | None, typer.Option(metavar="COL", help="Column of weights: a row of weight 2 counts as two rows.")
    ] = None
    unlabelled: Annotated[
        str | None, typer.Option(metavar="VALUE", help="A label that means 'none', such as -1, beside empty fields.")
    ] = None
    numeric: Annotated[
        Numeric | None,
        typer.Option(
            help="Put columns of numbers into bins, or take them as Gaussian or as Poisson counts, or column by column "
            "whatever makes the rows most probable (auto).  [default: bin]"
        ),
    ] = None
    concentration: Annotated[
        str | None, typer.Option(metavar="A", help="Readiness to start new clusters, or 'learn'.  [default: 1]")
    ] = None
    label_prior: Annotated[
        str | None, typer.Option(metavar="X", help="Pseudo-count of every label, or 'learn'.  [default: learn]")
    ] = None
    feature_prior: Annotated[
        str | None,
        typer.Option(
            metavar="X",
            help="Pseudo-count of every feature value, or 'learn'.  [default: learn; 1 for clustered and prototype]",
        ),
    ] = None
    temper: Annotated[
        str | None,
        typer.Option(
            metavar="P",
            help="Power from 0 to 1 on the features in predictions, below 1 being more careful, or 'learn'.  "
            "[default: learn]",
        ),
    ] = None
    share_labels: Annotated[
        bool | None,
        typer.Option(
            "--share-labels/--own-labels",
            help="With complete sharing: whether label rates are shared too.  [default: share-labels]",
        ),
    ] = None
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Estimate the evidence even where that takes a long run of its own.")
    ] = False
