"""Naive Bayes models for ``kinfolk fit``; tables too large to be read whole are counted, batch by batch."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

import kinfolk
from kinfolk.cli.description import describe, evidence_text, model_text, weight_facts
from kinfolk.cli.fit import Learnt
from kinfolk.cli.naive_bayes_options import Inference, Numeric
from kinfolk.cli.tables import STANDARD_INPUT, read_training, roles_of, shown
from kinfolk.tasks.streaming.roles import check_mark
from kinfolk.tasks.streaming.scanning import scan
from kinfolk.tasks.values import unlabelled_rows

if TYPE_CHECKING:
    from kinfolk.cli.fit import RunOptions, TableOptions
    from kinfolk.cli.naive_bayes_options import NaiveBayesOptions

Build = Callable[..., Any]

# Beyond these a table in memory is a burden.
LARGE_ROWS = 1_000_000
LARGE_BYTES = 100 << 20

_NUMBERS = ("concentration", "label_prior", "feature_prior", "temper")


def learn(name: str, table: TableOptions, run: RunOptions, options: NaiveBayesOptions) -> Learnt:
    """Fit the estimator of this name, and tell what it found."""
    if table.label is None:
        raise ValueError("--label is needed, the column to be predicted: only --model bayesnets goes without")
    given: dict[str, Any] = {option: getattr(options, option) for option in ("inference", "numeric", "share_labels")}
    given |= {option: _number_or_learn(option, getattr(options, option)) for option in _NUMBERS}
    build = partial(
        getattr(kinfolk, name),
        **{option: value for option, value in given.items() if value is not None},
        task_column=table.task,
        bins=table.bins,
        random_state=run.seed,
        n_jobs=run.jobs,
        verbose=sys.stderr.isatty(),
    )
    # Rows are held out to weigh models, and densities need numbers: counts have neither.
    countable = name != "AveragedNB" and options.numeric in (None, Numeric.bin)
    counted = _fit_counts(build, table, table.label, options) if countable and is_large(table.table) else None
    estimator, n_rows, n_unlabelled = counted or _fit_rows(build, table, table.label, options)
    # Sampling leaves no evidence behind; everything else has it, or computes it at once.
    fitted = getattr(estimator, "posterior_", None)
    if options.evidence or (fitted is not None and fitted.log_joint is None):
        estimator.log_evidence_  # noqa: B018 - computed here in order to be saved
    return _tell(estimator, n_rows, n_unlabelled)


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
    frame, roles = read_training(table, label, options.weight)
    labels = _whole(frame[label])
    mark = _mark(options.unlabelled, label, labels.dtype)
    weights = None if roles.weight is None else frame[roles.weight]
    estimator = build(unlabelled=mark).fit(frame.select(roles.learnt), labels, sample_weight=weights)
    return _Fit(estimator, frame.height, int(unlabelled_rows(labels, mark).sum()))


def _whole(labels: pl.Series) -> pl.Series:
    """Labels that are whole numbers with gaps, floats in many a file, as whole numbers."""
    if labels.dtype.is_float() and (labels.fill_nan(0.0).fill_null(0.0) % 1.0 == 0.0).all():
        return labels.fill_nan(None).cast(pl.Int64)
    return labels.cast(pl.String) if labels.dtype in (pl.Categorical, pl.Enum) else labels


def _mark(given: str | None, label: str, kind: pl.DataType) -> Any:
    """The mark of rows without a label, in the type of the labels."""
    if given is None:
        return None
    whole = kind.is_integer() and given.lstrip("+-").isdecimal()
    mark = int(given) if whole else given
    check_mark(mark, label, kind)
    return mark


def _fit_counts(build: Build, table: TableOptions, label: str, options: NaiveBayesOptions) -> _Fit | None:
    """Fit to the counts of a large table; None where the model needs its rows."""
    from kinfolk.tasks.streaming.counting import count_rows

    schema = scan(table.table).schema
    roles = roles_of(list(schema), table, label, options.weight)
    mark = _mark(options.unlabelled, label, _whole(pl.Series(label, dtype=schema[label])).dtype)
    counts = count_rows(
        table.table,
        label=label,
        task=roles.task,
        weight=roles.weight,
        features=roles.features,
        bins=table.bins,
        unlabelled=mark,
        verbose=sys.stderr.isatty(),
    )
    estimator = build(unlabelled=mark)
    # Rows without a label are left out of counts; where they make a difference, the table is read after all.
    if counts.n_unlabelled and getattr(estimator, "inference", "gibbs") in (Inference.gibbs, Inference.exact):
        return None
    return _Fit(estimator.fit_statistics(counts), counts.n_rows, counts.n_unlabelled)


def is_large(path: Path) -> bool:
    """Whether a file has too many rows to be read whole."""
    if str(path) == STANDARD_INPUT or not path.is_file():
        return False
    if path.suffix.lower() == ".parquet":
        return (scan(path).n_rows or 0) >= LARGE_ROWS
    return path.stat().st_size >= LARGE_BYTES


def _tell(estimator: Any, n_rows: int, n_unlabelled: int) -> Learnt:
    about = describe(estimator)
    model, weights, evidence = model_text(about), weight_facts(about), evidence_text(about)
    unlabelled = f", {n_unlabelled:,} of them without a label" if n_unlabelled else ""
    facts = [
        ("model", model),
        ("rows", f"{n_rows:,}{unlabelled}"),
        ("tasks", f"{len(about['tasks']):,}"),
        ("labels", ", ".join(map(shown, about["labels"]))),
        ("features", ", ".join(about["features"])),
        ("clusters", f"{len(about['clusters']):,}"),
        *weights,
        ("log evidence", evidence),
    ]
    alone = [f"every label is {estimator.classes_[0]!s}: there is nothing to tell apart"]
    return Learnt(
        estimator,
        {"rows": n_rows, "unlabelled_rows": n_unlabelled, **about},
        facts,
        alone if len(estimator.classes_) == 1 else [],
    )
