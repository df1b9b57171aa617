"""Tables that ``kinfolk fit`` does not read whole: they are counted, batch by batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from kinfolk.cli.tables import STANDARD_INPUT
from kinfolk.cli.training import NO_LABEL, Roles, features_of, labels_of, mark_of

if TYPE_CHECKING:
    from kinfolk.tasks.streaming.counts import Counts

# Beyond these a table in memory is a burden.
LARGE_ROWS = 1_000_000
LARGE_BYTES = 100 << 20


class Counted(NamedTuple):
    """The counts of a table; ``unlabelled`` is the mark of a row without a label, in the labels' own type."""

    counts: Counts
    unlabelled: Any


def is_large(path: Path) -> bool:
    """Whether a file has too many rows to be read whole."""
    if str(path) == STANDARD_INPUT or not path.is_file():
        return False
    if path.suffix.lower() == ".parquet":
        from kinfolk.tasks.streaming.scanning import scan

        return (scan(path).n_rows or 0) >= LARGE_ROWS
    return path.stat().st_size >= LARGE_BYTES


def count_table(path: Path, roles: Roles, unlabelled: str | None, bins: int, verbose: bool) -> Counted:
    """Count the rows of a table."""
    from kinfolk.tasks.streaming.counting import count_rows
    from kinfolk.tasks.streaming.scanning import scan

    if roles.label is None:
        raise ValueError(NO_LABEL)
    schema = scan(path).schema
    features = features_of(pl.DataFrame(schema=schema), roles, path)
    labels = labels_of(pl.Series(roles.label, dtype=schema[roles.label]))
    mark = None if unlabelled is None else mark_of(unlabelled, labels)
    counts = count_rows(
        path,
        label=roles.label,
        task=roles.task,
        weight=roles.weight,
        features=features,
        bins=bins,
        unlabelled=mark,
        verbose=verbose,
    )
    return Counted(counts, mark)
