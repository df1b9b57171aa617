"""Figure 8 of Niculescu-Mizil and Caruana: how likely birds at other feeders are, by the number of rows learnt from."""

from __future__ import annotations

from typing import Any

import polars as pl
from matplotlib.figure import Figure

from kinfolk.datasets.feederwatch import load_feederwatch
from kinfolk.experiments.drawing import dress_examples_axis
from kinfolk.experiments.measuring import mean_and_error
from kinfolk.experiments.networks.birds import FEEDERS, first_rows, mean_log_likelihood, split_by_site
from kinfolk.experiments.networks.drawing import draw_line, dress
from kinfolk.experiments.networks.problems import (
    LEARNT,
    METHODS,
    PAPER,
    SEARCH,
    SEPARATE,
    VALIDATED,
    learn,
    over_draws,
    plus_minus,
)
from kinfolk.experiments.publishing import About, Study
from kinfolk.plots import style
from kinfolk.plots.style import write_key

SIZES = (125, 250, 500, 1000, 2000)
COMPARED = (SEPARATE, VALIDATED, LEARNT)
COLOURS = (style.ALONE, style.PALETTE[5], style.PALETTE[0])

ABOUT = About(
    PAPER,
    "Six tasks of Project FeederWatch: mean log likelihood of a large independent test set, averaged over tasks, "
    "against the number of rows learnt from, separately and jointly, the penalty chosen by 5% of the rows.",
    FEEDERS,
    (
        "The benefit of joint learning is largest for small training sets.",
        "As training sets grow, separate learning catches up and eventually outperforms joint learning.",
    ),
)


def study(
    *,
    quick: bool = False,
    seed: int = 0,
    birds: Any = None,
    sizes: tuple[int, ...] | None = None,
    n_splits: int | None = None,
) -> Study:
    """Learn from more and more rows, and score rows of sites that were not learnt from."""
    n_splits = n_splits or (2 if quick else 5)
    sizes = sizes or (SIZES[:3] if quick else SIZES)
    birds = load_feederwatch() if birds is None else birds

    def one(size: int, number: int) -> list[dict[str, Any]]:
        split = split_by_site(birds, number, seed)
        training = first_rows(split.training, size)
        rows = []
        for method in COMPARED:
            model = learn(training, split.seed, **METHODS[method])
            about = {"rows": size, "split": number, "method": method, "strength": model.strength_}
            rows.append(about | {"log_likelihood": mean_log_likelihood(model, split.test)})
        return rows

    # The largest first, so that no thread is left with one of them at the end.
    jobs = [(size, number) for size in sorted(sizes, reverse=True) for number in range(n_splits)]
    scores = over_draws("Learning birds from more and more rows", jobs, one)
    scores = scores.sort("rows", "split", maintain_order=True)
    alone = scores.filter(pl.col("method") == SEPARATE).select("rows", "split", alone="log_likelihood")
    scores = scores.join(alone, on=["rows", "split"], maintain_order="left")
    scores = scores.with_columns(gain=pl.col("log_likelihood") - pl.col("alone")).drop("alone")
    curves = scores.group_by("method", "rows", maintain_order=True).agg(*mean_and_error(("log_likelihood", "gain")))
    setting = (
        f"{len(birds.data)} tasks, {', '.join(f'{size:,}' for size in sizes)} rows of each (or all there are) to learn "
        f"from; {n_splits} random splits of sites into 60% to learn from and 40% to test on; seed {seed}; ± and bars "
        "are standard errors over splits of the gain over separate learning on the same split. Rows held out to choose "
        f"the penalty are of the same sites as those learnt from. {SEARCH}"
    )
    return Study(scores, _draw(curves), _compare(curves), setting)


def _draw(curves: pl.DataFrame) -> Figure:
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    panels = figure.subplots(1, 2)
    titles = {"log_likelihood": "mean log likelihood of test rows (nats)", "gain": "gain over separate learning (nats)"}
    for ax, (column, title) in zip(panels, titles.items(), strict=True):
        for place, method in enumerate(COMPARED):
            its = curves.filter(pl.col("method") == method)
            draw_line(ax, place, its["rows"], its[column], its["gain_error"], method, COLOURS[place])
        dress(ax, "rows of each task", title)
        dress_examples_axis(ax, sorted(curves["rows"].unique().to_list()))
    write_key(panels[0])
    return figure


def _compare(curves: pl.DataFrame) -> tuple[str, str]:
    gains = []
    for method in (VALIDATED, LEARNT):
        rows = curves.filter(pl.col("method") == method).iter_rows(named=True)
        along = ", ".join(f"{plus_minus(row['gain'], row['gain_error'], 3)} ({row['rows']:,})" for row in rows)
        gains.append(f"{method}: {along}")
    most = int(curves["rows"].max())  # type: ignore[arg-type]
    last = curves.filter((pl.col("rows") == most) & (pl.col("method") != SEPARATE))
    behind = [row["method"] for row in last.iter_rows(named=True) if row["gain"] < -2 * row["gain_error"]]
    ahead = [row["method"] for row in last.iter_rows(named=True) if row["gain"] > 2 * row["gain_error"]]
    verdict = "; ".join(
        f"{method} is {'behind' if method in behind else 'still ahead' if method in ahead else 'level'}"
        for method in last["method"]
    )
    return (
        f"Gain over separate learning in nats a row (rows). {'; '.join(gains)}.",
        f"With {most:,} rows, by two standard errors: {verdict}.",
    )
