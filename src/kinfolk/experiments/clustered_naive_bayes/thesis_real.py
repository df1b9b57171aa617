"""Chapter 4 of Roy (2006) on real data: evidence ratios, leave-out accuracy and asymmetric loss on public sets.

The thesis's requests are not public. These sets have the same form: a label of two values, features of few values, and
many tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from kinfolk.experiments.clustered_naive_bayes.evidence_ratios import evidence_of, ratios
from kinfolk.experiments.clustered_naive_bayes.learning_curves import CLUSTERED, COMPLETE_SHARING, NO_SHARING
from kinfolk.experiments.clustered_naive_bayes.sharing_real import SETS, load_problem
from kinfolk.experiments.clustered_naive_bayes.stand_in import THESIS
from kinfolk.experiments.clustered_naive_bayes.thesis_figure_4_8 import losses
from kinfolk.experiments.clustered_naive_bayes.thesis_models import (
    MAJORITY,
    accuracy_by_task,
    difference,
    probabilities,
    thesis_models,
)
from kinfolk.experiments.publishing import About, Study, Verdict, judge
from kinfolk.plots import style
from kinfolk.progress import progress_bar
from kinfolk.tasks.selection.splitters import TaskKFold

CHOSEN = ("heart_disease", "contraception", "guimmun")
# The largest n at which decisions are compared; beyond it a single row decides.
UNEVEN = 4

ABOUT = About(
    THESIS,
    "Measured all of this on meeting requests alone, which are not public.",
    "Heart disease in 4 hospitals (`heart_disease`), use of contraceptives in 60 districts and immunisation in 161 "
    "communities (`categorical_multitask`), in `KINFOLK_DATA`.",
    (
        "(4.2) The data favour no sharing over complete sharing.",
        "(4.7) So do the labels given the features.",
        "(4.15) The data favour the clustered model over no sharing.",
        "(Figure 4-4) No sharing outperforms complete sharing under 0-1 loss.",
        "(Figure 4-7) The clustered model performs marginally better than no sharing under 0-1 loss.",
        "(Figure 4-8) Under asymmetric loss it is significantly better.",
    ),
)


def study(
    *,
    quick: bool = False,
    seed: int = 0,
    sets: Mapping[str, str] | None = None,
    n_folds: int | None = None,
    load: Callable[[str], Any] = load_problem,
) -> Study:
    """Measure every set in the three ways."""
    chosen = {name: SETS[name] for name in CHOSEN} if sets is None else dict(sets)
    n_folds = n_folds or (4 if quick else 20)
    n_runs, max_powers = (4, 60) if quick else (16, 300)
    rows: list[dict[str, Any]] = []
    with progress_bar("Chapter 4 on real data", len(chosen) * (n_folds + 1), True) as advance:
        for name in chosen:
            problem = load(name)
            found = ratios(evidence_of(problem, np.arange(len(problem.target)), n_runs, max_powers, seed))
            rows += [_row(name, f"log ratio: {what}", *value) for what, value in found.items()]
            advance(1)
            folds = TaskKFold(n_folds, random_state=seed).split(problem.data, problem.target, task=problem.task)
            answers = probabilities(problem, thesis_models(), folds, advance)
            rows += _accuracies(name, answers)
            two = answers.filter(pl.col("model") != COMPLETE_SHARING)
            rows += [
                _row(name, f"less loss at n = {row['n']}", row["gain"], row["error"])
                for row in losses(two).iter_rows(named=True)
                if abs(row["n"]) <= UNEVEN
            ]
    table = pl.DataFrame(rows)
    setting = (
        f"{n_folds} folds within tasks in place of leaving out one by one; {n_runs} annealed runs; pseudo-counts of 1, "
        f"numbers in bins; seed {seed}. ± are standard errors: of annealing, over tasks, and over folds. Rows of "
        "different weight: accuracies are means over tasks."
    )
    return Study(table, _draw(table, chosen), *_compare(table, chosen, setting))


def _row(name: str, quantity: str, value: float, error: float) -> dict[str, Any]:
    return {"set": name, "quantity": quantity, "value": float(value), "error": float(error)}


def _accuracies(name: str, answers: pl.DataFrame) -> list[dict[str, Any]]:
    by_task = accuracy_by_task(answers)
    rows = []
    for model in (NO_SHARING, COMPLETE_SHARING, CLUSTERED, MAJORITY):
        own = by_task.filter(pl.col("model") == model)["accuracy"].to_numpy()
        rows.append(_row(name, f"accuracy: {model}", own.mean(), own.std(ddof=1) / np.sqrt(len(own))))
    for one, other in ((NO_SHARING, COMPLETE_SHARING), (CLUSTERED, NO_SHARING)):
        rows.append(_row(name, f"accuracy: {one} minus {other}", *difference(by_task, one, other)[:2]))
    return rows


def _compare(table: pl.DataFrame, chosen: Mapping[str, str], setting: str) -> tuple[Any, ...]:
    """Ours, setting, details and verdicts, in the order of a Study."""
    known = {(row["set"], row["quantity"]): (row["value"], row["error"]) for row in table.iter_rows(named=True)}

    def along(quantity: str, form: str) -> str:
        parts = (f"{name} {known[name, quantity][0]:{form}} ± {known[name, quantity][1]:{form[1:]}}" for name in chosen)
        return "; ".join(parts)

    def verdict(quantity: str) -> Verdict:
        """Whether it is more than two standard errors above zero in every set; open where none tells it from zero."""
        values = [known[name, quantity] for name in chosen]
        if all(abs(value) <= 2 * error for value, error in values):
            return "open"
        return judge(*[value > 2 * error for value, error in values])

    quantities = (
        ("log ratio: no over complete sharing", "+,.0f", "nats"),
        ("log ratio: labels, no over complete sharing", "+,.0f", "nats"),
        ("log ratio: clustered over no sharing", "+,.0f", "nats, a lower bound"),
        (f"accuracy: {NO_SHARING} minus {COMPLETE_SHARING}", "+.3f", "share of right answers, mean over tasks"),
        (f"accuracy: {CLUSTERED} minus {NO_SHARING}", "+.3f", "share of right answers, mean over tasks"),
    )
    ours = [f"{along(quantity, form)} ({unit})." for quantity, form, unit in quantities]
    held = [verdict(quantity) for quantity, _, _ in quantities]
    uneven = [n for n in range(-UNEVEN, UNEVEN + 1) if n]
    better = {name: sum(_clear_gain(known[name, f"less loss at n = {n}"]) for n in uneven) for name in chosen}
    ours.append(
        f"Clearly less loss than no sharing, of {len(uneven)} uneven losses: "
        + "; ".join(f"{name} {better[name]}" for name in chosen)
        + ". Mean: "
        + "; ".join(
            f"{name} {np.mean([known[name, f'less loss at n = {n}'][0] for n in uneven]):+.1%}" for name in chosen
        )
        + "."
    )
    held.append(judge(*[2 * better[name] > len(uneven) for name in chosen]))
    return tuple(ours), setting, _details(table, chosen), tuple(held)


def _clear_gain(known: tuple[float, float]) -> bool:
    return known[0] > 2 * known[1]


def _details(table: pl.DataFrame, chosen: Mapping[str, str]) -> str:
    lines = [f"| quantity | {' | '.join(chosen)} |", "| --- " * (1 + len(chosen)) + "|"]
    for (quantity,), own in table.group_by("quantity", maintain_order=True):
        known = {row["set"]: f"{row['value']:.4g} ± {row['error']:.2g}" for row in own.iter_rows(named=True)}
        lines.append(f"| {quantity} | {' | '.join(known[name] for name in chosen)} |")
    return "\n".join(lines)


def _draw(table: pl.DataFrame, chosen: Mapping[str, str]) -> Figure:
    figure = Figure(figsize=(5.0 * len(chosen), 7.6), layout="constrained")
    panels = figure.subplots(2, len(chosen), squeeze=False)
    for column, (name, title) in enumerate(chosen.items()):
        own = table.filter(pl.col("set") == name)
        top, bottom = panels[:, column]
        bars = own.filter(pl.col("quantity").str.starts_with("accuracy") & ~pl.col("quantity").str.contains("minus"))
        labels = [quantity.removeprefix("accuracy: ") for quantity in bars["quantity"]]
        top.errorbar(range(bars.height), bars["value"], yerr=bars["error"], fmt="o", color=style.PALETTE[0], capsize=3)
        top.set_xticks(range(bars.height), labels, fontsize=7)
        style.write_title(top, title)
        style.name_axes(top, "", "share of right answers, mean over tasks")
        lines = own.filter(pl.col("quantity").str.starts_with("less loss"))
        n = np.arange(-UNEVEN, UNEVEN + 1)
        bottom.axhline(0, color=style.APART, linewidth=1)
        bottom.errorbar(n, 100 * lines["value"].to_numpy(), yerr=200 * lines["error"].to_numpy(), marker="o", capsize=3)
        style.name_axes(bottom, "n: a miss costs 2ⁿ", "less loss than no sharing, %")
        for ax in (top, bottom):
            style.quieten(ax)
    return figure
