"""The rows that a team's model learns from, checked."""

from __future__ import annotations

import polars as pl

from kinfolk.datasets.meetings import MEETING_FEATURES
from kinfolk_assistant.features.office import NAMES, OFFICE_FEATURES
from kinfolk_assistant.learning.costs import ANSWERS

COLUMNS = (*MEETING_FEATURES, "user", "answer")

CENSORED = "censored"
"""A column that may be there: whether an answer is one of a past of which the other answers are missing."""


def checked_rows(rows: pl.DataFrame) -> pl.DataFrame:
    """Give the columns that are learnt from, once it is sure that they can be.

    Parameters
    ----------
    rows : polars.DataFrame
        The fifteen features, null where a value is not known; ``user``; ``answer``, null where there is none; where
        they are there, the features of `kinfolk_assistant.features.office`, what requests name, and ``censored``, true
        for answers that say nothing of how often such an answer is given.

    Returns
    -------
    polars.DataFrame
        The same rows, each feature as an Enum of all its values, always with all columns that may be there.

    Raises
    ------
    ValueError
        If a column is missing, a user is not named, or a value is not one of the column's.

    Examples
    --------
    >>> row = {name: values[0] for name, values in MEETING_FEATURES.items()}
    >>> checked_rows(pl.DataFrame([{**row, "user": "ann@example.org", "answer": "maybe"}]))
    Traceback (most recent call last):
    ValueError: Column 'answer', row 0 is 'maybe'; it needs to be one of 'accept', 'decline', or null.
    """
    for name in COLUMNS:
        if name not in rows.columns:
            raise ValueError(f"The rows have no column {name!r}; they need the fifteen features, 'user' and 'answer'.")
    unnamed = rows["user"].is_null()
    if unnamed.any():
        raise ValueError(
            f"Column 'user', row {unnamed.to_list().index(True)} is null; every row needs the user who was asked."
        )
    allowed = {**MEETING_FEATURES, "answer": ANSWERS}
    columns = [_known(rows[name], values) for name, values in allowed.items()]
    columns += [_known(_or_null(rows, name), values) for name, values in OFFICE_FEATURES.items()]
    columns += [_or_null(rows, name).cast(pl.String) for name in NAMES]
    censored = rows[CENSORED].cast(pl.Boolean) if CENSORED in rows.columns else pl.Series([False] * rows.height)
    return pl.DataFrame([rows["user"].cast(pl.String), *columns, censored.fill_null(False).alias(CENSORED)])


def _or_null(rows: pl.DataFrame, name: str) -> pl.Series:
    return rows[name] if name in rows.columns else pl.Series(name, [None] * rows.height, dtype=pl.String)


def _known(column: pl.Series, values: tuple[str, ...]) -> pl.Series:
    text = column.cast(pl.String)
    strange = ~text.is_in(values) & text.is_not_null()
    if strange.any():
        row = strange.to_list().index(True)
        known = ", ".join(map(repr, values))
        raise ValueError(f"Column {column.name!r}, row {row} is {text[row]!r}; it needs to be one of {known}, or null.")
    return text.cast(pl.Enum(values))
