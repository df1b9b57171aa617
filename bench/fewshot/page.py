"""``bench/FEWSHOT.md`` and its picture, made from the file of results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from bench.fewshot import marks, speed, verdicts
from bench.fewshot.cells import COLUMNS
from bench.fewshot.measures import CLASSIFICATION, REGRESSION
from bench.fewshot.ranks import Ranking, against, rank
from bench.fewshot.sets import apart
from kinfolk.datasets.real import data_file
from kinfolk.plots import style

PARTS = {"test": "rows of the same tasks", "new": "rows of new tasks"}
MAIN = {"classification": "log_loss", "regression": "squared_error"}
FEW = 16  # rows a task up to which models are ranked
NOTES = Path(__file__).with_name("notes.md")  # what was found out beside, by hand
TITLES = {"log_loss": "log loss", "squared_error": "squared error"}


def read(path: Path) -> pl.DataFrame:
    """The results, with numbers as numbers."""
    text = ("set", "model", "kind", "part", "error")
    schema = {column: pl.String if column in text else pl.Float64 for column in COLUMNS}
    return pl.read_csv(path, schema=schema).with_columns(pl.col("error").fill_null(""))


def write(results: pl.DataFrame, ours: Sequence[str], page: Path, folder: Path) -> None:
    """Write the page, and draw its picture in the folder of the results."""
    done = results.filter(pl.col("error") == "")
    lines = [
        "# Few rows a task",
        "",
        "Written by `python -m bench fewshot` from `fewshot/results/results.csv`; the splits are beside it. Of at most",
        "100 tasks so many rows each are learnt from; judged are up to 20 other rows of each, and of up to 20 tasks of",
        "which nothing was learnt. Peers are tuned by three folds of the training rows, ours have no settings. Every",
        "model has one thread; seconds are processor time on a shared machine. Ours are in bold.",
        "",
        f"{done.select('set', 'size', 'split', 'model').unique().height} cells: {_listed(done, 'size')} rows a task",
        f"(0: the published folds), splits {_listed(done, 'split')}. Ranked are up to {FEW} rows a task. Sets of",
        "`fewshot/sets_apart.toml`, on which no default was ever chosen, are ranked by themselves.",
        "",
        "![Mean ranks](fewshot/results/ranks.png)",
        "",
        "<!-- tables -->",
        "",
    ]
    ranked: list[tuple[str, Ranking]] = []
    few = done.filter(pl.col("size") > 0)
    is_apart = pl.col("set").is_in(apart())
    for which, kept in (("", ~is_apart & (pl.col("size") <= FEW)), (", sets on which nothing was chosen", is_apart)):
        for kind, measure in MAIN.items():
            for part, title in PARTS.items():
                some = few.filter(kept & (pl.col("kind") == kind) & (pl.col("part") == part))
                found = rank(some, measure)
                if found is not None:
                    ranked.append((f"{TITLES[measure]}, {title}{which}", found))
                    lines += _ranking(f"{TITLES[measure].capitalize()}, {title}{which}", found, some, ours)
    lines += _by_set(few, ours)
    lines += _behind(few, ours, ~is_apart, is_apart)
    lines += _gaps(few, ours)
    lines += verdicts.calibration(few, ours, PARTS)
    lines += _published(done, ours)
    lines += verdicts.coverage(done, ours, PARTS)
    lines += marks.table(folder / "marks.csv")
    lines += speed.table(folder / "speed.csv")
    lines += [NOTES.read_text(encoding="utf-8")]
    failed = results.filter(pl.col("error") != "")
    if len(failed):
        lines += [
            "## Failures",
            "",
            *(f"- {r['model']} on {r['set']}, {r['size']:g} rows: {r['error']}" for r in failed.iter_rows(named=True)),
            "",
        ]
    page.write_text("\n".join(lines), encoding="utf-8")
    if ranked:
        draw(ranked, ours).savefig(folder / "ranks.png", dpi=110)


def draw(ranked: Sequence[tuple[str, Ranking]], ours: Sequence[str]) -> Figure:
    """Mean ranks as points, the critical difference as a bar to the right of the best."""
    figure = Figure(figsize=(10, 0.6 + 3.1 * ((len(ranked) + 1) // 2)), layout="constrained")
    axes = figure.subplots((len(ranked) + 1) // 2, 2, squeeze=False).ravel()
    for ax, (title, found) in zip(axes, ranked, strict=False):
        names = list(found.ranks)[::-1]
        for place, name in enumerate(names):
            colour = style.PALETTE[0] if name in ours else style.ALONE
            ax.plot(found.ranks[name], place, "o", color=colour, markersize=6)
        best = min(found.ranks.values())
        ax.axvspan(best, best + found.critical, color=style.PALETTE[0], alpha=0.08, linewidth=0)
        ax.set_yticks(range(len(names)), names, fontsize=8)
        ax.tick_params(axis="x", labelsize=8)
        ax.set_xlabel(f"mean rank over {found.n_sets} sets; shaded: as good as the best", fontsize=8)
        style.write_title(ax, title)
    for ax in axes[len(ranked) :]:
        ax.set_axis_off()
    return figure


def _bold(name: str, ours: Sequence[str]) -> str:
    return f"**{name}**" if name in ours else name


def _listed(frame: pl.DataFrame, column: str) -> str:
    return ", ".join(f"{value:g}" for value in sorted(frame[column].unique().to_list()))


def _ranking(title: str, found: Ranking, some: pl.DataFrame, ours: Sequence[str]) -> list[str]:
    kind = some["kind"][0]
    measures = [*(CLASSIFICATION if kind == "classification" else REGRESSION), "fit_seconds", "predict_seconds"]
    compared = some.join(found.splits, on=["set", "size", "split"], how="semi")
    means = {row["model"]: row for row in compared.group_by("model").agg(pl.col(measures).mean()).iter_rows(named=True)}
    lines = [
        f"## {title}",
        "",
        f"{found.n_sets} sets, {found.n_cells} cells of set and size; critical difference {found.critical:.2f}",
        "(Nemenyi, 5 %, counted by sets). Beside the rank, means over the same splits.",
        "",
        f"| model | mean rank | {' | '.join(name.replace('_', ' ') for name in measures)} |",
        "| --- " * (2 + len(measures)) + "|",
    ]
    for name, value in found.ranks.items():
        cells = ["" if means[name][m] is None else f"{means[name][m]:.3g}" for m in measures]
        lines.append(f"| {_bold(name, ours)} | {value:.2f} | {' | '.join(cells)} |")
    return [*lines, ""]


def _by_set(few: pl.DataFrame, ours: Sequence[str]) -> list[str]:
    lines = []
    for kind, measure in MAIN.items():
        some = few.filter((pl.col("kind") == kind) & (pl.col("part") == "test") & pl.col(measure).is_not_null())
        if some.is_empty():
            continue
        models = sorted(some["model"].unique().to_list(), key=lambda name: (name not in ours, name))
        means = some.group_by("set", "size", "model").agg(pl.col(measure).mean())
        wide = means.pivot("model", index=["set", "size"], values=measure).sort("set", "size")
        lines += [
            f"## {TITLES[measure].capitalize()} by set and size, rows of the same tasks",
            "",
            f"| set | rows | {' | '.join(_bold(m, ours) for m in models)} |",
            "| --- " * (2 + len(models)) + "|",
        ]
        for row in wide.iter_rows(named=True):
            values = [row.get(m) for m in models]
            least = min(v for v in values if v is not None)
            shown = [
                "" if v is None else f"{'_' if v == least else ''}{v:.4g}{'_' if v == least else ''}" for v in values
            ]
            lines.append(f"| {row['set']} | {row['size']:g} | {' | '.join(shown)} |")
        lines.append("")
    return lines


def _behind(few: pl.DataFrame, ours: Sequence[str], chosen_on: pl.Expr, apart_from: pl.Expr) -> list[str]:
    lines = [
        "## Behind the best peer",
        "",
        "Ours less the peer that is best on the set, chosen with hindsight; averaged over sizes, paired over splits.",
        "One set in 44 is behind by more than two standard errors by chance. Corrected for the number of sets, it is",
        "asked for what one of all of them would show as rarely, by Student's t.",
        "",
    ]
    groups = {"the sets that ours were made on": chosen_on, "sets on which nothing was chosen": apart_from}
    for kind, measure in MAIN.items():
        some = few.filter(pl.col("kind") == kind)
        lines += verdicts.behind(some, measure, [name for name in ours if name in set(some["model"])], groups, PARTS)
    return [*lines, ""]


def _gaps(few: pl.DataFrame, ours: Sequence[str]) -> list[str]:
    lines = [
        "## Wins and losses",
        "",
        "Each of ours less the peer that is best on the set, chosen with hindsight; averaged over sizes, ± is the",
        "standard error paired over splits. Negative is better. Won and lost: by more than two standard errors.",
        "",
        "| model | rows | won | lost | sets | differences by set |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for kind, measure in MAIN.items():
        peers = [m for m in few.filter(pl.col("kind") == kind)["model"].unique().to_list() if m not in ours]
        for part, title in PARTS.items():
            some = few.filter((pl.col("kind") == kind) & (pl.col("part") == part))
            for name in ours:
                gaps = against(some, measure, name, sorted(peers))
                if gaps.is_empty():
                    continue
                won = gaps.filter(pl.col("difference") < -2.0 * pl.col("error")).height
                lost = gaps.filter(pl.col("difference") > 2.0 * pl.col("error")).height
                told = "; ".join(_gap(row) for row in gaps.iter_rows(named=True))
                lines.append(f"| {name} | {title} | {won} | {lost} | {gaps.height} | {told} |")
    return [*lines, ""]


def _gap(row: dict[str, Any]) -> str:
    error = "" if row["error"] is None else f" ± {row['error']:.2g}"
    return f"{row['set']} {row['difference']:+.3g}{error} ({row['peer']})"


def _published(done: pl.DataFrame, ours: Sequence[str]) -> list[str]:
    folds = done.filter(pl.col("size") == 0)
    if folds.is_empty():
        return []
    published = pl.read_csv(data_file("grouped_benchmark", "published.csv"))
    lines = [
        "## Published folds",
        "",
        "Mean squared error on the folds that were run, beside the study's on the same folds.",
        "",
    ]
    lines += ["| set | fold | model | squared error | 90 % intervals cover |", "| --- | --- | --- | --- | --- |"]
    for (name, fold), rows in folds.sort("set", "split").group_by("set", "split", maintain_order=True):
        for row in rows.sort("squared_error").iter_rows(named=True):
            covered = "" if row["coverage"] is None else f"{row['coverage']:.3f}"
            lines.append(
                f"| {name} | {fold:g} | {_bold(row['model'], ours)} | {row['squared_error']:.4f} | {covered} |"
            )
        for row in published.filter((pl.col("set") == name) & (pl.col("fold") == int(fold))).iter_rows(named=True):
            lines.append(f"| {name} | {fold:g} | {row['method']}, published | {row['mse']:.4f} | |")
    return [*lines, ""]
