"""Naive Bayes models for ``kinfolk fit``: their options, and how they learn from a table.

Tables too large to be read whole are counted, batch by batch, or by another engine.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple

import typer

from kinfolk.cli.tables import STANDARD_INPUT, TableOptions, open_training

if TYPE_CHECKING:
    import polars as pl

    from kinfolk.cli.fit import Learnt, RunOptions

Build = Callable[..., Any]

# Beyond these a table in memory is a burden.
LARGE_ROWS = 1_000_000
LARGE_BYTES = 100 << 20

_AS_GIVEN = ("numeric", "share_labels")
_NUMBERS = ("concentration", "label_prior", "feature_prior", "temper")


class Numeric(StrEnum):
    """What columns of numbers are taken for."""

    bin = "bin"
    gaussian = "gaussian"
    poisson = "count"
    auto = "auto"


class Engine(StrEnum):
    """Who counts rows of Parquet."""

    local = "local"
    duckdb = "duckdb"
    dask = "dask"


@dataclass(frozen=True, kw_only=True)
class NaiveBayesOptions:
    """What was asked for; None where nothing was said."""

    PANEL: ClassVar[str] = "Options of naive Bayes models"

    weight: Annotated[
        str | None, typer.Option(metavar="COL", help="Column of weights: a row of weight 2 counts as two rows.")
    ] = None
    unlabelled: Annotated[
        str | None,
        typer.Option(metavar="VALUE", help="A label that means 'unknown', such as -1, besides empty fields."),
    ] = None
    numeric: Annotated[
        Numeric | None,
        typer.Option(
            help="How to treat columns of numbers: as bins, Gaussian, Poisson counts, or whichever makes the column "
            "most probable (auto).  [default: bin]"
        ),
    ] = None
    concentration: Annotated[
        str | None, typer.Option(metavar="A", help="How readily new clusters are started, or 'learn'.  [default: 1]")
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
            help="Power from 0 to 1 on the likelihood of features in predictions, or 'learn'; below 1 is cautious.  "
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
    engine: Annotated[
        Engine,
        typer.Option(
            help="What counts the rows of Parquet files: kinfolk itself, DuckDB, or Dask, here or on a cluster."
        ),
    ] = Engine.local
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="Scheduler of a Dask cluster, such as tcp://10.0.0.5:8786."),
    ] = None
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Estimate the evidence even if that needs a long extra run.")
    ] = False


def learn(name: str, table: TableOptions, run: RunOptions, options: NaiveBayesOptions) -> Learnt:
    """Fit the estimator of this name, and tell what it found."""
    import warnings
    from functools import partial

    import kinfolk
    from kinfolk.cli.description import describe_fit
    from kinfolk.cli.fit import Learnt

    if table.label is None:
        raise ValueError("--label is needed, the column to be predicted: only --model bayesnets and ihmm go without")
    given: dict[str, Any] = {option: getattr(options, option) for option in _AS_GIVEN}
    given |= {"inference": run.inference, "checkpoint": run.checkpoint}
    given |= {option: _number_or_learn(option, getattr(options, option)) for option in _NUMBERS}
    build = partial(
        getattr(kinfolk, name),
        **{option: value for option, value in given.items() if value is not None},
        task_column=table.task,
        bins=run.bins,
        random_state=run.seed,
        n_jobs=run.jobs,
        verbose=sys.stderr.isatty(),
    )
    # Rows are held out to weigh models, and densities need numbers: counts have neither.
    countable = name != "AveragedNB" and options.numeric in (None, Numeric.bin)
    _check_engine(options, countable)
    large = options.engine != Engine.local or (countable and is_large(table.table))
    counted = _fit_counts(build, table, run.bins, table.label, options) if large else None
    estimator, n_rows, n_unlabelled = counted or _fit_rows(build, table, table.label, options)
    # Sampling leaves no evidence behind; everything else has it, or computes it at once.
    fitted = getattr(estimator, "posterior_", None)
    if options.evidence or (fitted is not None and fitted.log_joint is None):
        estimator.log_evidence_  # noqa: B018 - computed here in order to be saved
    if len(estimator.classes_) == 1:
        warnings.warn(f"every label is {estimator.classes_[0]!s}: there is nothing to tell apart", stacklevel=2)
    return Learnt(estimator, *describe_fit(estimator, n_rows, n_unlabelled))


def _check_engine(options: NaiveBayesOptions, countable: bool) -> None:
    if options.scheduler is not None and options.engine != Engine.dask:
        raise ValueError("--scheduler belongs to --engine dask")
    if options.engine != Engine.local and not countable:
        raise ValueError(f"--engine {options.engine} counts rows, and --numeric {options.numeric} learns from more")


def _number_or_learn(option: str, given: str | None) -> float | str | None:
    """A hyper-parameter as it stands on the command line."""
    if given is None or given == "learn":
        return given
    try:
        return float(given)
    except ValueError:
        raise ValueError(f"--{option.replace('_', '-')} {given}: a number or 'learn' is needed") from None


class _Fit(NamedTuple):
    """A fitted estimator, how many rows it learnt from, and how many of them have no label."""

    estimator: Any
    n_rows: int
    n_unlabelled: int


def _fit_rows(build: Build, table: TableOptions, label: str, options: NaiveBayesOptions) -> _Fit:
    """Fit to a table that is read whole."""
    source, roles = open_training(table, label, options.weight)
    frame = source.whole()
    labels = whole_labels(frame[label])
    mark = mark_of(options.unlabelled, label, labels.dtype)
    weights = None if roles.weight is None else frame[roles.weight]
    estimator = build(unlabelled=mark).fit(frame.select(roles.learnt), labels, sample_weight=weights)
    n_unlabelled = labels.null_count() + (0 if mark is None else int((labels == mark).sum()))
    return _Fit(estimator, frame.height, n_unlabelled)


def whole_labels(labels: pl.Series) -> pl.Series:
    """Labels that are whole numbers with gaps, floats in many a file, as whole numbers."""
    import polars as pl

    if labels.dtype.is_float() and (labels.fill_nan(0.0).fill_null(0.0) % 1.0 == 0.0).all():
        return labels.fill_nan(None).cast(pl.Int64)
    return labels.cast(pl.String) if labels.dtype in (pl.Categorical, pl.Enum) else labels


def mark_of(given: str | None, label: str, kind: pl.DataType) -> Any:
    """The mark of rows without a label, in the type of the labels."""
    from kinfolk.tasks.streaming.scanning import check_mark

    if given is None:
        return None
    whole = kind.is_integer() and given.lstrip("+-").isdecimal()
    mark = int(given) if whole else given
    check_mark(mark, label, kind)
    return mark


def _fit_counts(build: Build, table: TableOptions, bins: int, label: str, options: NaiveBayesOptions) -> _Fit | None:
    """Fit to the counts of a large table; None where the model needs its rows."""
    import polars as pl

    from kinfolk.cli.engines import opened
    from kinfolk.tasks.streaming.counting import count_rows

    source, roles = open_training(table, label, options.weight)
    mark = mark_of(options.unlabelled, label, whole_labels(pl.Series(label, dtype=source.schema[label])).dtype)
    with opened(table.table, options.engine, options.scheduler, source) as rows:
        counts = count_rows(
            rows,
            label=label,
            task=roles.task,
            weight=roles.weight,
            features=roles.features,
            bins=bins,
            unlabelled=mark,
            verbose=sys.stderr.isatty(),
        )
    estimator = build(unlabelled=mark)
    # Rows without a label are left out of counts; where they make a difference, the table is read after all.
    if (
        options.engine == Engine.local
        and counts.n_unlabelled
        and getattr(estimator, "inference", "gibbs") in ("gibbs", "exact")
    ):
        return None
    return _Fit(estimator.fit_statistics(counts), counts.n_rows, counts.n_unlabelled)


def is_large(path: Path) -> bool:
    """Whether a file has too many rows to be read whole."""
    if str(path) == STANDARD_INPUT or not path.exists():
        return False
    if path.suffix.lower() == ".parquet" or path.is_dir():
        from kinfolk.tasks.streaming.scanning import scan

        return (scan(path).n_rows or 0) >= LARGE_ROWS
    return path.stat().st_size >= LARGE_BYTES
