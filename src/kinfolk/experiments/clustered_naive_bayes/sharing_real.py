"""Real sets of tasks: which way to share predicts best, and whether the average of them all is safe to use.

The thesis leaves this open (chapter 5); its own data are not public. Every model is compared on the same rows with
logistic regression that has an intercept for every task and a penalty chosen on the training rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from kinfolk.decisions import Loss, decide
from kinfolk.experiments.cells import cells
from kinfolk.experiments.drawing import dress_examples_axis
from kinfolk.experiments.measuring import area_under_curve, average, tabulate
from kinfolk.experiments.publishing import About, Study, Verdict, judge
from kinfolk.naive_bayes.estimators.clustered import ClusteredNB
from kinfolk.plots import style
from kinfolk.progress import progress_bar
from kinfolk.tasks.selection.splitters import FewPerTask
from kinfolk.transfer.averaged import AveragedNB

Rows = NDArray[np.intp]

SETS = {
    "contraception": "Contraception, 60 districts",
    "guimmun": "Immunisation, 161 communities",
    "heart_disease": "Heart disease, 4 hospitals",
    "adult": "Income, 42 countries of birth",
    "bank_choice": "Bank cards, 200 persons",
    "insteval": "Lectures, 200 lecturers",
}
SIZES = (1, 2, 4, 8, 16, 32, 64)
# Of sets with more tasks so many are drawn anew for every split, and so many rows are tested.
MAX_TASKS, MAX_TEST = 200, 4_000
LOSSES = tuple(range(-8, 9))
AVERAGED, THESIS, LOGISTIC = "averaged", "clustered, as in the thesis", "logistic, task intercepts"
LOOKS = {
    "no sharing": (style.ALONE, "s"),
    "complete sharing": (style.PALETTE[4], "v"),
    "prototype": (style.PALETTE[3], "^"),
    "clustered": (style.PALETTE[5], "D"),
    AVERAGED: (style.PALETTE[0], "o"),
    THESIS: (style.APART, "x"),
    LOGISTIC: (style.PALETTE[1], "P"),
}

ABOUT = About(
    "D. M. Roy, “Clustered Naive Bayes”, M.Eng. thesis, MIT, 2006, sections 2.2 to 2.5 and 3.2.2.",
    "Compared the models on invitations to meetings, which are not public, and left it open how they do elsewhere and "
    "whether averaging them by eq. 3.4 to 3.8 is worth it.",
    "Six real sets in `KINFOLK_DATA`, each with a binary label and many tasks.",
    (
        "Averaging protects against the wrong model (section 3.2.2 argues; it was not tried).",
        "Clustering improves on no sharing and on complete sharing (on meetings).",
        "(Not in the thesis: whether any of it does better than logistic regression.)",
    ),
)


class Problem(NamedTuple):
    """A set of rows: features, whether the label is the positive one, and tasks."""

    data: pl.DataFrame
    target: NDArray[np.bool_]
    task: NDArray[Any]


def study(
    *,
    quick: bool = False,
    seed: int = 0,
    sets: Mapping[str, str] = SETS,
    sizes: Sequence[int] | None = None,
    n_splits: int | None = None,
    load: Callable[[str], Problem] | None = None,
    n_jobs: int = -1,
) -> Study:
    """Learn every set from few rows of each task by every model, and score them on other rows."""
    sizes = tuple(sizes or ((2, 16) if quick else SIZES))
    n_splits = n_splits or (2 if quick else 20)
    parts: list[dict[str, Any]] = []
    problems = {name: (load or load_problem)(name) for name in sets}
    # A size is of use where some task has more rows than that, to be tested.
    largest = {name: int(np.unique(problem.task, return_counts=True)[1].max()) for name, problem in problems.items()}
    usable = {name: [size for size in sizes if size < largest[name]] for name in sets}
    with progress_bar("Learning tasks", sum(map(len, usable.values())) * n_splits, True) as advance:
        for name, problem in problems.items():
            jobs = [(name, size, split) for size in usable[name] for split in range(n_splits)]
            trials = cells(partial(_try_set, problem, seed), jobs, n_jobs)
            for (_, size, split), scores in zip(jobs, trials, strict=True):
                about = {"set": name, "examples": size, "repeat": split}
                parts += [about | {"method": method} | score for method, score in scores.items()]
                advance(1)
    table = pl.DataFrame(parts)
    setting = (
        f"{', '.join(map(str, sizes))} training rows of each task, {n_splits} random splits, small sets within larger "
        f"ones; at most {MAX_TASKS} tasks, drawn anew for each split, and {MAX_TEST:,} test rows; seed {seed}; ± are "
        f"standard errors over splits. All models have their default parameters, but for “{THESIS}” (pseudo-counts of "
        "1, no tempering). L_n costs 1 for a false alarm and 2ⁿ for a miss; the table has the decisions' mean loss "
        "at each n, and below it is averaged over n in units of the costlier mistake."
    )
    return Study(table, _draw(table, sets), _compare(table), setting, _details(table, sets), _judge(table))


def load_problem(name: str) -> Problem:
    """Read a real set; the last of its two labels is the positive one."""
    from kinfolk.datasets.real import load_real

    real = load_real(name)
    return Problem(real.data, np.asarray(real.target == np.unique(real.target)[-1]), np.asarray(real.task))


def _try_set(problem: Problem, seed: int, _: str, size: int, split: int) -> dict[str, dict[str, float]]:
    """The same, with what does not change first."""
    return try_models(problem, size, split, seed)


def try_models(problem: Problem, size: int, split: int, seed: int) -> dict[str, dict[str, float]]:
    """Scores of every model that learnt from so many rows of each task."""
    train, test = _split(problem, size, split, seed)
    learn = problem.data[train], problem.target[train]
    task = problem.task[train]
    with warnings.catch_warnings():
        # Members that sample may not have converged: the scores tell what that costs.
        warnings.simplefilter("ignore", ConvergenceWarning)
        averaged = AveragedNB(random_state=seed).fit(*learn, task=task)
    thesis = ClusteredNB(label_prior=1.0, temper=1.0).fit(*learn, task=task)
    models: dict[str, Any] = averaged.members_ | {AVERAGED: averaged, THESIS: thesis}
    probability = {
        name: model.predict_proba(problem.data[test], task=problem.task[test])[:, -1] for name, model in models.items()
    }
    probability[LOGISTIC] = _logistic(thesis, problem, train, test, seed)
    truth = problem.target[test]
    return {name: score(truth, p) for name, p in probability.items()}


def _split(problem: Problem, size: int, split: int, seed: int) -> tuple[Rows, Rows]:
    rng = np.random.default_rng([seed, split])
    tasks = rng.permutation(np.unique(problem.task))[:MAX_TASKS]
    rows = np.flatnonzero(np.isin(problem.task, tasks))
    splits = FewPerTask(size, split + 1, random_state=seed).split(rows[:, None], task=problem.task[rows])
    train, test = list(splits)[split]
    if len(np.unique(problem.target[rows[train]])) < 2:
        # Both labels are needed to learn anything at all.
        missing = problem.target[rows[test]] != problem.target[rows[train]][0]
        moved = test[np.argmax(missing)]
        train, test = np.sort(np.append(train, moved)), test[test != moved]
    return rows[train], np.sort(rng.permutation(rows[test])[:MAX_TEST])


def _logistic(coded: ClusteredNB, problem: Problem, train: Rows, test: Rows, seed: int) -> NDArray[np.float64]:
    """Probabilities by logistic regression on the same categories and bins, with an intercept for each task."""
    from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
    from sklearn.model_selection import StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    encoded = [coded._predictor().receive(problem.data[rows], problem.task[rows]) for rows in (train, test)]
    columns = [np.column_stack([rows.codes, rows.place]) for rows in encoded]
    penalties = np.logspace(-3, 2, 11)
    rarer = int(min(problem.target[train].sum(), (~problem.target[train]).sum()))
    if rarer > 1:
        folds = StratifiedKFold(min(5, rarer), shuffle=True, random_state=seed)
        regression = LogisticRegressionCV(Cs=penalties, cv=folds, scoring="neg_log_loss", max_iter=500)
    else:
        # A label that one row has cannot be held out: the strongest penalty is the safe one.
        regression = LogisticRegression(C=penalties[0], max_iter=500)
    model = make_pipeline(OneHotEncoder(handle_unknown="ignore"), regression)
    with warnings.catch_warnings():
        # A fold may lack a label, and a weak penalty may not have converged: neither is then chosen.
        warnings.simplefilter("ignore")
        model.fit(columns[0], problem.target[train])
    return np.asarray(model.predict_proba(columns[1])[:, -1])


def score(truth: NDArray[np.bool_], probability: NDArray[np.float64]) -> dict[str, float]:
    """Area under the curve, log loss and mean realised loss of decisions at every L_n and over all of them.

    Examples
    --------
    >>> scores = score(np.array([True, False]), np.array([0.9, 0.2]))
    >>> round(scores["log_loss"], 4), scores["auc"], scores["loss_0"]
    (0.1643, 1.0, 0.0)
    """
    p = np.clip(probability, 1e-12, 1.0 - 1e-12)
    scores = {
        "auc": area_under_curve(truth, p),
        "log_loss": -float(np.where(truth, np.log(p), np.log1p(-p)).mean()),
    }
    both = np.column_stack([1.0 - p, p])
    for n in LOSSES:
        loss = Loss.asymmetric(n)
        actions = np.asarray(decide(both, loss))
        scores[f"loss_{n}"] = float(loss.matrix[truth.astype(int), actions].mean())
    # In units of the costlier mistake, or the largest n would be all that counts.
    scores["loss"] = float(np.mean([scores[f"loss_{n}"] / max(2.0**n, 1.0) for n in LOSSES]))
    return scores


def ranks(table: pl.DataFrame) -> pl.DataFrame:
    """Mean rank of each model by log loss, over sets and sizes, 1 being the best."""
    means = table.group_by("set", "examples", "method", maintain_order=True).agg(pl.col("log_loss").mean())
    ranked = means.with_columns(rank=pl.col("log_loss").rank().over("set", "examples"))
    return ranked.group_by("method", maintain_order=True).agg(pl.col("rank").mean()).sort("rank")


def _compare(table: pl.DataFrame) -> tuple[str, str, str]:
    listed = ", ".join(f"{method} {rank:.2f}" for method, rank in ranks(table).iter_rows())
    members = [method for method in LOOKS if method not in (AVERAGED, THESIS, LOGISTIC)]
    beside = _against(table, AVERAGED, members)
    best = beside.filter(pl.col("gain") > -pl.max_horizontal(2 * pl.col("gain_error"), 0.001))
    logistic = _against(table, AVERAGED, [LOGISTIC])
    clear = logistic.filter(pl.col("gain").abs() > 2 * pl.col("gain_error"))
    worst = beside.sort("gain").row(0, named=True)
    difference = float(np.mean(logistic["gain"].to_numpy()))
    return (
        f"Mean rank by log loss: {listed}. The average is within two standard errors (or 0.001) of the member that "
        f"came out best, or ahead of it, at {len(best)} of {len(beside)} sizes and sets; at the worst it has "
        f"{-worst['gain']:.4f} more ({worst['set']}, {worst['examples']} rows).",
        "Clustered has the lower log loss against "
        + ", against ".join(
            f"{other} at {_share_better(table, 'clustered', other)}" for other in ("no sharing", "complete sharing")
        )
        + " sizes and sets.",
        f"The average has a lower log loss than logistic regression with task intercepts at "
        f"{int((clear['gain'] > 0).sum())} of {len(logistic)} sizes and sets by more than two standard errors, and a "
        f"higher one at {int((clear['gain'] < 0).sum())}; on average it is {abs(difference):.4f} "
        f"{'lower' if difference > 0 else 'higher'}.",
    )


def _judge(table: pl.DataFrame) -> tuple[Verdict, Verdict, Verdict]:
    """Whether the average is among the best, clustering ahead of both extremes, and the average of regression."""
    members = [method for method in LOOKS if method not in (AVERAGED, THESIS, LOGISTIC)]
    beside, logistic = _against(table, AVERAGED, members), _against(table, AVERAGED, [LOGISTIC])
    near = (beside["gain"].to_numpy() > -np.maximum(2 * beside["gain_error"].to_numpy(), 0.001)).tolist()
    ahead = [
        float((_against(table, "clustered", [other])["gain"] > 0).to_numpy().mean()) > 0.5
        for other in ("no sharing", "complete sharing")
    ]
    return judge(*near), judge(*ahead), judge(*(logistic["gain"] > 0).to_list(), most=True)


def _against(table: pl.DataFrame, method: str, others: Sequence[str]) -> pl.DataFrame:
    """By how much a method's log loss is below that of the best of others at each size and set, paired by split."""
    keys = ["set", "examples"]
    means = table.group_by(*keys, "method", maintain_order=True).agg(pl.col("log_loss").mean())
    best = (
        means.filter(pl.col("method").is_in(others))
        .sort("log_loss")
        .group_by(keys, maintain_order=True)
        .first()
        .select(*keys, "method")
    )
    theirs = table.join(best, on=[*keys, "method"]).select(*keys, "repeat", pl.col("log_loss").alias("theirs"))
    ours = table.filter(pl.col("method") == method).select(*keys, "repeat", "log_loss")
    paired = ours.join(theirs, on=[*keys, "repeat"]).with_columns(gain=pl.col("theirs") - pl.col("log_loss"))
    return average(paired, keys, ["gain"])


def _share_better(table: pl.DataFrame, method: str, other: str) -> str:
    gained = _against(table, method, [other])
    return f"{int((gained['gain'] > 0).sum())} of {len(gained)}"


def _draw(table: pl.DataFrame, sets: Mapping[str, str]) -> Figure:
    n_columns = min(3, len(sets))
    figure = Figure(figsize=(5.0 * n_columns, 4.0 * -(-len(sets) // n_columns)), layout="constrained")
    panels = np.atleast_1d(figure.subplots(-(-len(sets) // n_columns), n_columns)).ravel()
    averages = average(table, ["set", "method", "examples"], ["log_loss"])
    for ax, (name, title) in zip(panels, sets.items(), strict=False):
        of_set = averages.filter(pl.col("set") == name)
        for (method,), rows in of_set.group_by("method", maintain_order=True):
            colour, marker = LOOKS[str(method)]
            x, mean, error = (rows[column].to_numpy() for column in ("examples", "log_loss", "log_loss_error"))
            width = 2.2 if method == AVERAGED else 1.3
            ax.errorbar(x, mean, yerr=error, color=colour, marker=marker, markersize=4, linewidth=width, label=method)
        dress_examples_axis(ax, sorted(of_set["examples"].unique().to_list()))
        # The untempered model may be far above all others, and would press them together.
        shown = of_set.filter(pl.col("method") != THESIS)["log_loss"].to_numpy()
        margin = 0.15 * (shown.max() - shown.min()) + 0.005
        ax.set_ylim(shown.min() - margin, shown.max() + margin)
        ax.set_xlabel("rows of each task", fontsize=9, color=style.ALONE)
        ax.set_ylabel("log loss", fontsize=9, color=style.ALONE)
        style.write_title(ax, title)
    for ax in panels[len(sets) :]:
        ax.set_visible(False)
    panels[0].legend(frameon=False, fontsize=8, labelcolor=style.INK)
    return figure


def _details(table: pl.DataFrame, sets: Mapping[str, str]) -> str:
    measures = {"log_loss": "Log loss", "auc": "Area under the ROC curve", "loss": "Mean loss over L_−8 … L_8"}
    averages = average(table, ["set", "method", "examples"], measures)
    return "\n\n".join(
        f"{title}: {written}, by rows of each task.\n\n{tabulate(averages.filter(pl.col('set') == name), measure)}"
        for name, title in sets.items()
        for measure, written in measures.items()
    )
