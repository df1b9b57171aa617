"""Which column of a table is what: the task, the label, the weight, and the features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from kinfolk.tasks.table import no_such_column


class Roles(NamedTuple):
    """Names of columns; of a table without labels or weights, these are None.

    ``learnt`` are the task and the features, as they stand in the table where features keep its order: a model that is
    fitted to these columns knows such tables again.
    """

    task: str
    label: str | None
    weight: str | None
    features: list[str]
    learnt: list[str]


def assign_roles(
    columns: Sequence[str],
    where: str,
    *,
    task: str,
    label: str | None = None,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    drop: Sequence[str] | None = None,
) -> Roles:
    """Give each column the use that was asked for; every column must be there, and have one use.

    Parameters
    ----------
    columns : sequence of str
        All columns of the table.
    where : str
        What the table is called, for sentences.
    task, label, weight : str
        Columns; the last two are optional.
    features : sequence of str, optional
        Columns to learn from; all others by default, in the order of the table.
    drop : sequence of str, optional
        Columns to leave out.

    Returns
    -------
    Roles

    Examples
    --------
    >>> assign_roles(["who", "sky", "wind", "ok"], "rows.csv", task="who", label="ok", drop=["wind"]).features
    ['sky']
    """
    uses = [(use, name) for use, name in (("task", task), ("label", label), ("weight", weight)) if name is not None]
    taken = [name for _, name in uses]
    uses += [("feature", name) for name in features or ()]
    uses += [("one to leave out", name) for name in drop or ()]
    first: dict[str, str] = {}
    for use, name in uses:
        if name not in columns:
            raise ValueError(no_such_column(name, columns, where))
        if name in first:
            raise ValueError(f"column {name!r} was given as {first[name]} and as {use}: each needs a column of its own")
        first[name] = use
    chosen = [name for name in columns if name not in first] if features is None else list(features)
    if not chosen:
        raise ValueError(f"{where} has no feature beside {', '.join(map(repr, taken))}: one is needed")
    learnt = [name for name in columns if name == task or name in chosen]
    in_order = [name for name in learnt if name != task] == chosen
    return Roles(task, label, weight, chosen, learnt if in_order else [task, *chosen])


def check_mark(unlabelled: Any, label: str, kind: pl.DataType) -> None:
    """Refuse a mark of unlabelled rows that a column of labels cannot hold."""
    own = str if kind == pl.String else bool if kind == pl.Boolean else int | float | np.number
    if not isinstance(unlabelled, own) or (isinstance(unlabelled, bool) and kind != pl.Boolean):
        raise ValueError(f"unlabelled={unlabelled!r} cannot stand in label column {label!r}, of type {kind}")
