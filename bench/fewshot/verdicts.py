"""What the results say of the marks: on which sets ours are behind the best peer, badly calibrated or too narrow.

Behind by more than two standard errors is what one set in 44 shows by chance. Of many sets some will, so that the level
is shared out among them (Bonferroni), with Student's t for how few splits an error is known from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from scipy.stats import norm, t

from bench.fewshot.ranks import against

PROMISED = 0.9  # of targets that are to lie in the intervals
_CHANCE = float(norm.sf(2.0))


def behind(
    few: pl.DataFrame, measure: str, ours: Sequence[str], groups: dict[str, pl.Expr], parts: dict[str, str]
) -> list[str]:
    """A sentence for each of ours, each group of sets and each part of the rows."""
    peers = sorted(set(few["model"].unique().to_list()) - set(ours))
    lines = []
    for group, kept in groups.items():
        for part, title in parts.items():
            some = few.filter(kept & (pl.col("part") == part))
            for name in ours:
                gaps = against(some, measure, name, peers)
                if len(gaps):
                    lines.append(f"- **{name}**, {title}, {group}: {_told(gaps)}")
    return lines


def surely_behind(gaps: pl.DataFrame) -> pl.DataFrame:
    """Sets on which ours are behind by more than as many sets show by chance."""
    known = gaps.drop_nulls("error")
    if known.is_empty():
        return known
    limit = [float(t.isf(_CHANCE / len(known), freedom)) for freedom in known["freedom"].to_list()]
    return known.filter(pl.col("difference") > pl.Series(limit) * pl.col("error"))


def _told(gaps: pl.DataFrame) -> str:
    known = gaps.drop_nulls("error")
    alone = f" ({len(gaps) - len(known)} others have one split alone, and no error)" if len(known) < len(gaps) else ""
    if known.is_empty():
        return f"the {len(gaps)} sets have one split alone, and no error."
    worse = known.filter(pl.col("difference") > 2.0 * pl.col("error"))
    ahead = known.filter(pl.col("difference") < -2.0 * pl.col("error")).height
    sure = surely_behind(gaps)
    return (
        f"behind the best peer by more than two standard errors on {_sets(worse)} of {len(known)} sets{alone}; "
        f"corrected for their number, on {_sets(sure)}; ahead by more than two on {ahead}."
    )


def _sets(gaps: pl.DataFrame) -> str:
    if gaps.is_empty():
        return "none"
    each = [
        f"{row['set']} {row['difference']:+.3g} ± {row['error']:.2g} ({row['peer']})"
        for row in gaps.iter_rows(named=True)
    ]
    return f"{len(gaps)} ({'; '.join(each)})"


def calibration(few: pl.DataFrame, ours: Sequence[str], parts: dict[str, str]) -> list[str]:
    """How far the calibration error of ours is from that of the peer that is best by log loss, set by set."""
    some = few.filter(pl.col("kind") == "classification")
    peers = sorted(set(some["model"].unique().to_list()) - set(ours))
    names = [name for name in ours if name in some["model"].unique().to_list()]
    lines, rows = list[str](), list[str]()
    for part, title in parts.items():
        found = {
            name: against(some.filter(pl.col("part") == part), "calibration", name, peers, best_by="log_loss")
            for name in names
        }
        for name, gaps in found.items():
            known = gaps.drop_nulls("error")
            if len(known):
                worse = known.filter(pl.col("difference") > 2.0 * pl.col("error"))
                sure = surely_behind(gaps)
                lines.append(
                    f"- **{name}**, {title}: within two standard errors of that peer's, or below, on "
                    f"{len(known) - len(worse)} of {len(known)} sets; more on {_sets(worse)}; corrected for their "
                    f"number, on {_sets(sure)}."
                )
        if names and len(found[names[0]]):
            rows += [f"| {title} | {row['set']} | {row['peer']} | {_number(row)} |" for row in _rows(found[names[0]])]
    if not lines:
        return []
    return [
        "## Calibration",
        "",
        "Calibration error (the mean gap between probability and rate in ten bins) less that of the peer that is best",
        "by log loss on the set, averaged over sizes, ± its standard error paired over splits. Positive is worse.",
        "",
        *lines,
        "",
        f"| rows | set | best peer by log loss | {names[0]} less the peer |",
        "| --- | --- | --- | --- |",
        *rows,
        "",
    ]


def _rows(gaps: pl.DataFrame) -> list[dict[str, Any]]:
    return list(gaps.iter_rows(named=True))


def _number(row: dict[str, Any]) -> str:
    return f"{row['difference']:+.4f}" + ("" if row["error"] is None else f" ± {row['error']:.4f}")


def coverage(done: pl.DataFrame, ours: Sequence[str], parts: dict[str, str]) -> list[str]:
    """Which share of targets lies in 90 % intervals, set by set."""
    some = done.filter(pl.col("coverage").is_not_null())
    if some.is_empty():
        return []
    lines = [
        "## Intervals",
        "",
        "How many targets lie in intervals meant for 90 %, averaged over sizes and splits; ± is the standard error by",
        "task of one split of one size, since splits have most of their tasks in common. Below: by more than two.",
        "",
        "| set | rows | model | covered | below 90 % |",
        "| --- | --- | --- | --- | --- |",
    ]
    cells = some.group_by("set", "part", "model", maintain_order=True).agg(
        pl.col("coverage").mean(), pl.col("coverage_error").mean()
    )
    for row in cells.sort("set", "part", "model").iter_rows(named=True):
        error = row["coverage_error"]
        told = "" if error is None else f" ± {100 * error:.1f}"
        verdict = "" if error is None else "below" if row["coverage"] < PROMISED - 2.0 * error else "no"
        name = f"**{row['model']}**" if row["model"] in ours else row["model"]
        lines.append(
            f"| {row['set']} | {parts[row['part']]} | {name} | {100 * row['coverage']:.1f}{told} | {verdict} |"
        )
    return [*lines, ""]
