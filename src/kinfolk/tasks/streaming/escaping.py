"""Text in CSV that a spreadsheet would run as a formula: prefixed where it is written, as it was where it is read.

A cell that begins with = + - @, a tab or a carriage return, and is no number, gets an apostrophe in front, which
spreadsheets take as "this is text". So does one that begins with apostrophes before such a sign, so that reading, which
takes one apostrophe away, gives back every text there is.
"""

from __future__ import annotations

import polars as pl

_FORMULA = r"^'*[=+\-@\t\r]"
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_ESCAPED = r"^'('*[=+\-@\t\r])"


def escape(frame: pl.DataFrame) -> pl.DataFrame:
    """A table whose texts and names of columns no spreadsheet runs.

    Examples
    --------
    >>> escape(pl.DataFrame({"=note": ["=1+1", "-3", "@all", "plain"]})).to_dict(as_series=False)
    {"'=note": ["'=1+1", '-3', "'@all", 'plain']}
    """
    text = pl.selectors.string() | pl.selectors.categorical() | pl.selectors.enum()
    value = text.cast(pl.String)
    formula = value.str.contains(_FORMULA) & ~value.str.contains(_NUMBER)
    escaped = frame.with_columns(pl.when(formula).then(pl.lit("'") + value).otherwise(value).name.keep())
    names = pl.Series(frame.columns, dtype=pl.String)
    dangerous = names.str.contains(_FORMULA) & ~names.str.contains(_NUMBER)
    return escaped.rename({name: f"'{name}" for name in names.filter(dangerous)})


def unescape(value: pl.Expr) -> pl.Expr:
    """Texts as they were before they were escaped.

    Examples
    --------
    >>> pl.DataFrame({"note": ["'=1+1", "'tis", "''=x"]}).select(unescape(pl.col("note"))).to_series().to_list()
    ['=1+1', "'tis", "'=x"]
    """
    return value.str.replace(_ESCAPED, "${1}")
