"""Models compared over sets: mean ranks with critical differences, and differences paired over splits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from scipy.stats import rankdata, studentized_range

ENOUGH = 0.9  # of the cells of the best-covered model that a model must have to be ranked


class Ranking(NamedTuple):
    """Mean ranks (1 is best) over sets, their number, Nemenyi's critical difference at 5 %, and the splits compared."""

    ranks: dict[str, float]
    n_sets: int
    critical: float
    n_cells: int
    splits: pl.DataFrame


def rank(results: pl.DataFrame, measure: str) -> Ranking | None:
    """Rank models by a measure, less being better, within each set and size, then average over sizes and over sets.

    Sizes of one set are not independent of each other, so that sets are what the critical difference counts. Models
    that lack more than a tenth of the cells are left out, and so are splits that one of the others lacks, so that all
    are compared on the same rows.
    """
    cells = results.filter(pl.col(measure).is_not_null()).group_by("set", "size", "model").agg(pl.col(measure).mean())
    if cells.is_empty():
        return None
    counts = cells.group_by("model").len().sort("model")
    most = int(counts["len"].max())  # type: ignore[arg-type]
    kept = counts.filter(pl.col("len") >= ENOUGH * most)["model"].to_list()
    models = sorted(kept)
    splits = results.filter(pl.col("model").is_in(kept)).pivot("model", index=["set", "size", "split"], values=measure)
    splits = splits.drop_nulls(models)
    wide = splits.group_by("set", "size", maintain_order=True).agg(pl.col(models).mean())
    if len(models) < 2 or wide.is_empty():
        return None
    ranks = np.apply_along_axis(rankdata, 1, wide.select(models).to_numpy())
    by_set = pl.DataFrame(ranks, schema=models).with_columns(wide["set"]).group_by("set").mean()
    n_sets, k = len(by_set), len(models)
    critical = float(studentized_range.ppf(0.95, k, np.inf)) / np.sqrt(2.0) * np.sqrt(k * (k + 1) / (6.0 * n_sets))
    means = {model: float(by_set[model].mean()) for model in models}
    return Ranking(
        dict(sorted(means.items(), key=lambda item: item[1])),
        n_sets,
        float(critical),
        len(wide),
        splits.select("set", "size", "split"),
    )


def against(
    results: pl.DataFrame, measure: str, ours: str, peers: list[str], best_by: str | None = None
) -> pl.DataFrame:
    """One of ours less the peer that is best on the set, averaged over sizes, its standard error paired over splits.

    Splits of different sizes are drawn apart, so that all sizes together tell how much splits differ. Columns ``set``,
    ``peer``, ``difference``, ``error`` (none from one split of each size) and ``freedom``, the degrees of freedom it is
    known with; negative is better for ours. The best peer is that by ``best_by``, the measure itself by default.
    """
    rows = []
    known = results.filter(pl.col(measure).is_not_null())
    for (name,), of_set in known.group_by("set", maintain_order=True):
        wide = of_set.pivot("model", index=["size", "split"], values=measure)
        if ours not in wide.columns:
            continue
        wide = wide.drop_nulls(ours)
        here = [peer for peer in peers if peer in wide.columns and wide[peer].null_count() == 0]
        if not here:
            continue
        judge = wide if best_by is None else of_set.pivot("model", index=["size", "split"], values=best_by)
        judge = judge.join(wide.select("size", "split"), on=["size", "split"], how="semi")
        best = min(here, key=lambda peer: float(judge[peer].mean()))  # type: ignore[arg-type]
        of_sizes = (
            wide.with_columns(gap=pl.col(ours) - pl.col(best))
            .group_by("size")
            .agg(n=pl.len(), mean=pl.col("gap").mean(), squares=((pl.col("gap") - pl.col("gap").mean()) ** 2).sum())
        )
        freedom = int((of_sizes["n"] - 1).sum())
        variance = float(of_sizes["squares"].sum()) / freedom if freedom else 0.0
        error = (variance * float((1.0 / of_sizes["n"]).sum())) ** 0.5 / len(of_sizes) if freedom else None
        difference = float(of_sizes["mean"].mean())  # type: ignore[arg-type]
        rows.append({"set": name, "peer": best, "difference": difference, "error": error, "freedom": freedom})
    schema = {"set": pl.String, "peer": pl.String, "difference": pl.Float64, "error": pl.Float64, "freedom": pl.Int64}
    return pl.DataFrame(rows, schema=schema)
