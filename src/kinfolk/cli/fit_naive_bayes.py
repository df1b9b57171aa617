"""Naive Bayes models for ``kinfolk fit``; tables too large to be read whole are counted, batch by batch."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

import kinfolk
from kinfolk.cli.description import describe, evidence_text, model_text, weight_facts
from kinfolk.cli.fit import Learnt
from kinfolk.cli.naive_bayes_options import Inference, Numeric
from kinfolk.cli.tables import STANDARD_INPUT, shown
from kinfolk.cli.training import Roles, features_of, labels_of, mark_of, read_training

if TYPE_CHECKING:
    from kinfolk.cli.fit import RunOptions, TableOptions
    from kinfolk.cli.naive_bayes_options import NaiveBayesOptions
    from kinfolk.tasks.streaming.counts import Counts

# Beyond these a table in memory is a burden.
LARGE_ROWS = 1_000_000
LARGE_BYTES = 100 << 20

_NUMBERS = ("concentration", "label_prior", "feature_prior", "temper")
_NO_LABEL = "--label is needed, the column to be predicted: only --model bayesnets goes without"


def learn(name: str, table: TableOptions, run: RunOptions, options: NaiveBayesOptions) -> Learnt:
    """Fit the estimator of this name, and tell what it found."""
    if table.label is None:
        raise ValueError(_NO_LABEL)
    roles = Roles(table.task, table.label, options.weight, table.feature or (), table.drop or ())
    given: dict[str, Any] = {option: getattr(options, option) for option in ("inference", "numeric", "share_labels")}
    given |= {option: _number_or_learn(option, getattr(options, option)) for option in _NUMBERS}
    parameters = {
        **{option: value for option, value in given.items() if value is not None},
        "task_column": table.task,
        "bins": table.bins,
        "random_state": run.seed,
        "n_jobs": run.jobs,
        "verbose": sys.stderr.isatty(),
    }
    counted = _count(name, table, roles, table.label, options)
    if counted is None:
        training = read_training(table.table, roles, options.unlabelled)
        estimator = getattr(kinfolk, name)(**parameters, unlabelled=training.unlabelled)
        estimator.fit(training.table, training.labels, sample_weight=training.weights)
        n_rows, n_unlabelled = training.table.height, training.n_unlabelled
    else:
        estimator = getattr(kinfolk, name)(**parameters, unlabelled=counted.unlabelled)
        estimator.fit_statistics(counted.counts)
        n_rows, n_unlabelled = counted.counts.n_rows, counted.counts.n_unlabelled
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


class _Counted(NamedTuple):
    """The counts of a table; ``unlabelled`` is the mark of a row without a label, in the labels' own type."""

    counts: Counts
    unlabelled: Any


def _count(name: str, table: TableOptions, roles: Roles, label: str, options: NaiveBayesOptions) -> _Counted | None:
    """Count the rows of a large table; None where the model needs the rows themselves, or the table is small."""
    # Rows are held out to weigh models, and densities need numbers: counts have neither.
    if name == "AveragedNB" or options.numeric not in (None, Numeric.bin) or not is_large(table.table):
        return None
    counted = _count_table(table, roles, label, options.unlabelled)
    # Rows without a label are left out of counts; where they make a difference, the table is read after all.
    without = name == "ClusteredNB" and options.inference not in (Inference.gibbs, Inference.exact)
    return None if counted.counts.n_unlabelled and not without else counted


def is_large(path: Path) -> bool:
    """Whether a file has too many rows to be read whole."""
    if str(path) == STANDARD_INPUT or not path.is_file():
        return False
    if path.suffix.lower() == ".parquet":
        from kinfolk.tasks.streaming.scanning import scan

        return (scan(path).n_rows or 0) >= LARGE_ROWS
    return path.stat().st_size >= LARGE_BYTES


def _count_table(table: TableOptions, roles: Roles, label: str, unlabelled: str | None) -> _Counted:
    from kinfolk.tasks.streaming.counting import count_rows
    from kinfolk.tasks.streaming.scanning import scan

    schema = scan(table.table).schema
    features = features_of(pl.DataFrame(schema=schema), roles, table.table)
    labels = labels_of(pl.Series(label, dtype=schema[label]))
    mark = None if unlabelled is None else mark_of(unlabelled, labels)
    counts = count_rows(
        table.table,
        label=label,
        task=roles.task,
        weight=roles.weight,
        features=features,
        bins=table.bins,
        unlabelled=mark,
        verbose=sys.stderr.isatty(),
    )
    return _Counted(counts, mark)


def _tell(estimator: Any, n_rows: int, n_unlabelled: int) -> Learnt:
    about = describe(estimator)
    unlabelled = f", {n_unlabelled:,} of them without a label" if n_unlabelled else ""
    facts = [
        ("model", model_text(about)),
        ("rows", f"{n_rows:,}{unlabelled}"),
        ("tasks", f"{len(about['tasks']):,}"),
        ("labels", ", ".join(map(shown, about["labels"]))),
        ("features", ", ".join(about["features"])),
        ("clusters", f"{len(about['clusters']):,}"),
        *weight_facts(about),
        ("log evidence", evidence_text(about)),
    ]
    alone = [f"every label is {estimator.classes_[0]!s}: there is nothing to tell apart"]
    return Learnt(
        estimator,
        {"rows": n_rows, "unlabelled_rows": n_unlabelled, **about},
        facts,
        alone if len(estimator.classes_) == 1 else [],
    )
