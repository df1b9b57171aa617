"""Section 2.4 of Roy (2006): one prototype is brittle where two groups of tasks are very different."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray

import kinfolk
from kinfolk.experiments.cells import cells
from kinfolk.experiments.clustered_naive_bayes.stand_in import THESIS
from kinfolk.experiments.measuring import average, write_error
from kinfolk.experiments.publishing import About, Study, judge
from kinfolk.plots import style

DISTANCES = (0.2, 0.4, 0.6, 0.8)
N_FEATURES = 4
N_TASKS, N_ROWS, N_TEST = 12, 10, 200
ALONE, PROTOTYPE, CLUSTERED = "no sharing", "prototype", "clustered"
GROUPS = ("one group", "two groups")
LOOKS = {PROTOTYPE: (style.PALETTE[1], "D"), CLUSTERED: (style.PALETTE[0], "o")}
# A gain counts where it is more than so many standard errors from zero.
CLEAR = 2.0
# With this strength all rates of a feature of two values are as probable; below it, extreme ones are more so.
EVEN = 2.0

ABOUT = About(
    THESIS,
    "Argued, without data, that a unimodal distribution of users cannot describe two groups that differ.",
    f"{N_TASKS} made-up tasks with {N_ROWS} rows and {N_FEATURES} features of two values, whose rates differ between "
    "the labels by the distance. In one group all tasks have the same rates; in two groups, what speaks for a label in "
    "the first speaks against it in the second.",
    (
        "If all tasks are nearly identical, a unimodal model predicts tasks with too few data of their own.",
        "If two groups are very different, the strength K is forced towards zero.",
        "As a result no sharing occurs: the prototype is no better than no sharing.",
        "A multimodal prior, that of the clustered model, shares within groups nonetheless.",
    ),
)


def study(*, quick: bool = False, seed: int = 0, n_repeats: int | None = None) -> Study:
    """Learn tasks of one group and of two by all three models, and compare their losses on other rows."""
    n_repeats = n_repeats or (2 if quick else 10)
    distances = DISTANCES[1::2] if quick else DISTANCES
    jobs = [(seed, *about) for about in product(GROUPS, distances, range(n_repeats))]
    scores = pl.DataFrame([row for part in cells(_measure, jobs) for row in part])
    averages = average(scores, ["groups", "distance", "method"], ["gain", "strength"])
    gain = {row[:3]: row[3:5] for row in averages.select("groups", "distance", "method", "gain", "gain_error").rows()}
    told = averages.filter(pl.col("method") == PROTOTYPE).select("groups", "distance", "strength", "strength_error")
    strength = {row[:2]: row[2:] for row in told.rows()}
    one, two = GROUPS

    def clear(groups: str, method: str) -> list[bool]:
        found = [gain[groups, distance, method] for distance in distances]
        return [mean > CLEAR * error for mean, error in found]

    def gains(groups: str, method: str) -> str:
        return ", ".join(
            f"{gain[groups, distance, method][0]:+.3f}{write_error(gain[groups, distance, method][1], n_repeats, 3)} "
            f"({distance:g})"
            for distance in distances
        )

    def strengths(groups: str) -> str:
        return ", ".join(
            f"{mean:.3g}{write_error(error, n_repeats, 1)} ({distance:g})"
            for distance in distances
            for mean, error in [strength[groups, distance]]
        )

    ours = (
        f"Log loss that the prototype saves beside no sharing, by distance, one group: {gains(one, PROTOTYPE)}.",
        f"Strength K by distance, one group: {strengths(one)}; two groups: {strengths(two)}.",
        f"Log loss that the prototype saves beside no sharing, two groups: {gains(two, PROTOTYPE)}.",
        f"Log loss that the clustered model saves beside no sharing, two groups: {gains(two, CLUSTERED)}.",
    )
    setting = (
        f"{n_repeats} repeats of {N_TASKS} tasks of {N_ROWS} rows, {N_TEST} test rows each; seed {seed}; ± are "
        "standard errors over repeats, of gains those of paired differences. K is the geometric mean of the posterior "
        "means of all labels' and features' strengths; below 2 a feature of two values has no mode at the prototype. A "
        "gain counts where it is more than two standard errors above zero."
    )
    held = (
        judge(*clear(one, PROTOTYPE)),
        judge(
            strength[two, max(distances)][0] < strength[two, min(distances)][0], strength[two, max(distances)][0] < EVEN
        ),
        judge(*[not gained for gained in clear(two, PROTOTYPE)]),
        judge(*clear(two, CLUSTERED)),
    )
    return Study(scores, _draw(averages), ours, setting, held=held)


def _measure(seed: int, groups: str, distance: float, repeat: int) -> list[dict[str, Any]]:
    """Losses of the models on one draw of tasks, as gains over no sharing."""
    rng = np.random.default_rng([seed, GROUPS.index(groups), round(100 * distance), repeat])
    turned = np.arange(N_TASKS) % 2 == 1 if groups == GROUPS[1] else np.zeros(N_TASKS, dtype=bool)
    train, test = (_draw_rows(rng, turned, distance, n) for n in (N_ROWS, N_TEST))
    models = {
        ALONE: kinfolk.NoSharingNB(),
        PROTOTYPE: kinfolk.PrototypeNB(random_state=repeat),
        CLUSTERED: kinfolk.ClusteredNB(random_state=repeat),
    }
    losses, strength = {}, float("nan")
    for name, model in models.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of short chains; the study judges by losses
            model.fit(train[0], train[1], task=train[2])
        proba = model.predict_proba(test[0], task=test[2])
        losses[name] = float(-np.log(proba[np.arange(len(proba)), test[1]]).mean())
        if name == PROTOTYPE:
            strength = float(np.exp(np.log(model.strengths_["mean"].to_list()).mean()))
    return [
        {
            "groups": groups,
            "distance": distance,
            "repeat": repeat,
            "method": name,
            "log_loss": losses[name],
            "gain": losses[ALONE] - losses[name],
            "strength": strength if name == PROTOTYPE else None,
        }
        for name in models
    ]


def _draw_rows(rng: np.random.Generator, turned: NDArray[np.bool_], distance: float, n: int) -> tuple[Any, Any, Any]:
    """Rows of every task: features as text, labels, tasks."""
    task = np.repeat(np.arange(len(turned)), n)
    y = rng.integers(0, 2, len(task))
    rate = 0.5 + 0.5 * distance * np.where((y == 1) ^ turned[task], 1.0, -1.0)
    values = rng.random((len(task), N_FEATURES)) < rate[:, np.newaxis]
    return np.where(values, "red", "blue"), y, task


def _draw(averages: pl.DataFrame) -> Figure:
    figure = Figure(figsize=(9.6, 4.2), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, groups in zip(axes, GROUPS, strict=True):
        for method, (colour, marker) in LOOKS.items():
            rows = averages.filter((pl.col("groups") == groups) & (pl.col("method") == method))
            x, mean, error = (rows[name].to_numpy() for name in ("distance", "gain", "gain_error"))
            ax.errorbar(x, mean, yerr=error, color=colour, marker=marker, label=method, capsize=2.5, linewidth=1.6)
        ax.axhline(0.0, color=style.ALONE, linewidth=1.0, linestyle="--")
        style.quieten(ax)
        style.name_axes(ax, "distance of the labels' rates", "log loss saved beside no sharing")
        style.write_title(ax, groups)
    style.write_key(axes[0])
    return figure
