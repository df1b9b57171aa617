"""LICA on sets that other papers on multi-task learning report on: landmine, ratings of computers, schools."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from numpy.typing import NDArray

from kinfolk.experiments.cells import cells
from kinfolk.experiments.drawing import draw_methods
from kinfolk.experiments.lica.methods import (
    LOOKS,
    METHODS,
    OURS,
    PAPER,
    Build,
    classifier,
    gains,
    judge_gains,
    judge_trend,
    regressor,
    write_gains,
    write_trend,
    write_verdict,
)
from kinfolk.experiments.measuring import area_under_curve, average, tabulate
from kinfolk.experiments.publishing import About, Study
from kinfolk.plots import style
from kinfolk.plots.style import write_key
from kinfolk.progress import progress_bar

Numbers = NDArray[np.float64]
Places = NDArray[np.intp]


class Problem(NamedTuple):
    """A set and how it is learnt from: rows of each task, or where ``shares`` the share of its rows, in per cent.

    One without quick sizes is left out where the study has to be quick.
    """

    title: str
    sizes: tuple[int, ...]
    quick_sizes: tuple[int, ...]
    labelled: bool
    measured: str
    shares: bool = False

    @property
    def across(self) -> str:
        """What the sizes count."""
        return "per cent of each task's rows" if self.shares else "rows of each task"


AREA = "area under the ROC curve"
VARIANCE = "explained variance"
PROBLEMS = {
    "landmine": Problem("Landmine, 29 fields", tuple(range(20, 161, 20)), (20, 80), True, AREA),
    "lenk_likes": Problem("Liked computers, 180 persons", (4, 8, 16), (8,), True, AREA),
    "lenk_ratings": Problem("Rated computers, 180 persons", (4, 8, 16), (), False, VARIANCE),
    "school": Problem("Examinations, 139 schools", (10, 25, 50, 75), (10,), False, VARIANCE, shares=True),
}

ABOUT = About(
    PAPER,
    "Texts alone; landmine fields, ratings of computers and schools are the sets on which other papers on multi-task "
    "learning report.",
    "The sets themselves, in `KINFOLK_DATA`. Landmine: mean over fields of the area under the ROC curve on all other "
    "rows. Computers: the four computers of each person that the set keeps for testing, all persons together; liked "
    "means a rating of 6 or more. Schools: explained variance, 1 less the mean squared error over the variance of the "
    "scores tested.",
    (
        "LICA is above individual learning at every training size (on texts).",
        "Its advantage is the largest where training rows are few (on texts).",
    ),
)


def study(
    *,
    quick: bool = False,
    seed: int = 0,
    problems: Mapping[str, Problem] = PROBLEMS,
    n_splits: int | None = None,
    methods: Mapping[str, Mapping[str, Any]] = METHODS,
    load: Callable[[str], Any] | None = None,
    builds: tuple[Build, Build] = (classifier, regressor),
) -> Study:
    """Learn every set from few rows of each task, by every method.

    ``builds`` make the estimators for labels and for numbers.
    """
    from kinfolk.datasets.numeric_tasks import load_numeric

    n_splits = n_splits or (2 if quick else 10)
    sizes = {name: problem.quick_sizes if quick else problem.sizes for name, problem in problems.items()}
    problems = {name: problem for name, problem in problems.items() if sizes[name]}
    parts = []
    with progress_bar("Learning tasks", sum(map(len, sizes.values())) * n_splits * len(methods), True) as advance:
        for name, problem in problems.items():
            data = (load or load_numeric)(name)
            jobs = [
                (name, method, size, split, train, test)
                for size in sizes[name]
                for split, (train, test) in enumerate(draw_splits(data, size, problem.shares, n_splits, seed))
                for method in methods
            ]
            build = builds[0] if problem.labelled else builds[1]
            scores_of = cells(partial(_score, problem, data, build, methods, seed), jobs)
            for (_, method, size, split, *_), score in zip(jobs, scores_of, strict=True):
                parts.append({"set": name, "method": method, "examples": size, "repeat": split, "score": score})
                advance(1)
    scores = pl.DataFrame(parts)
    gained = gains(scores, "score", ("set", "examples")).filter(pl.col("method").is_in(OURS))
    setting = (
        f"{n_splits} random splits, small sets within larger ones; seed {seed}; features are divided by their standard "
        "deviation over the training rows of all tasks; ± are standard errors over splits, of gains those of paired "
        "differences. Where a set keeps its test rows and all others are learnt from, there is one split."
    )
    ours = (
        " ".join(f"{problem.title}: {_of(gained, name, _verdict)}" for name, problem in problems.items()),
        " ".join(f"{problem.title}: {_of(gained, name, write_trend)}." for name, problem in problems.items()),
    )
    held = judge_gains(gained), judge_trend(gained, ("set",))
    return Study(scores, _draw(scores, problems), ours, setting, _details(scores, problems), held)


def draw_splits(data: Any, size: int, shares: bool, n_splits: int, seed: int) -> Iterator[tuple[Places, Places]]:
    """Draw rows of each task to learn from; the rest is tested, or what the set keeps for it.

    Parameters
    ----------
    data : Bunch
        With ``task``, and ``is_train`` where the set keeps rows for testing.
    size : int
        Rows of each task or, where ``shares``, the share of its rows in per cent, one row at least.
    shares : bool
    n_splits : int
    seed : int
        The same one gives nested rows at all sizes.

    Yields
    ------
    train, test : ndarray
        One split only where no row that may be learnt from is left out.
    """
    task = np.asarray(data.task)
    open_rows = np.arange(len(task)) if data.is_train is None else np.flatnonzero(data.is_train)
    rows_of = [open_rows[task[open_rows] == one] for one in np.unique(task)]
    wanted = [max(1, round(len(rows) * size / 100)) if shares else min(size, len(rows)) for rows in rows_of]
    whole = all(number == len(rows) for number, rows in zip(wanted, rows_of, strict=True))
    for split in range(1 if whole else n_splits):
        shuffled = [np.random.default_rng([seed, split, k]).permutation(rows) for k, rows in enumerate(rows_of)]
        train = np.concatenate([rows[:number] for rows, number in zip(shuffled, wanted, strict=True)])
        if data.is_train is None:
            test = np.concatenate([rows[number:] for rows, number in zip(shuffled, wanted, strict=True)])
        else:
            test = np.flatnonzero(~data.is_train)
        yield np.sort(train), np.sort(test)


def _score(
    problem: Problem,
    data: Any,
    build: Build,
    methods: Mapping[str, Mapping[str, Any]],
    seed: int,
    _: str,
    method: str,
    size: int,
    split: int,
    train: Places,
    test: Places,
) -> float:
    model = build(random_state=seed + split, **methods[method])
    centre, spread = data.data[train].mean(axis=0), data.data[train].std(axis=0)
    features = (data.data - centre) / np.where(spread > 0, spread, 1.0)
    task = data.task
    if problem.labelled:
        model.fit(features[train], data.target[train], task=task[train])
        probability = model.predict_proba(features[test], task=task[test])[:, 1]
        # With few test rows of a task its own area is mostly chance.
        group = task[test] if data.is_train is None else np.zeros(len(test))
        return mean_area(data.target[test] > 0, probability, group)
    # The prior of the intercepts is centred on zero.
    mean, scale = data.target[train].mean(), data.target[train].std()
    model.fit(features[train], (data.target[train] - mean) / scale, task=task[train])
    predicted = mean + scale * np.asarray(model.predict(features[test], task=task[test]))
    return explained_variance(data.target[test], predicted)


def mean_area(truth: NDArray[np.bool_], score: Numbers, group: NDArray[Any]) -> float:
    """Area under the ROC curve, mean over groups of rows; groups with one label only are left out.

    Examples
    --------
    >>> truth = np.array([True, False, True, False, True])
    >>> mean_area(truth, np.array([0.9, 0.1, 0.2, 0.3, 0.5]), np.array([1, 1, 2, 2, 3]))
    0.5
    """
    areas = []
    for one in np.unique(group):
        mine = group == one
        if truth[mine].any() and not truth[mine].all():
            areas.append(area_under_curve(truth[mine], score[mine]))
    return float(np.mean(areas))


def explained_variance(truth: Numbers, predicted: Numbers) -> float:
    """One less the mean squared error over the variance of the truth, all tasks together.

    Examples
    --------
    >>> explained_variance(np.array([1.0, 3.0]), np.array([1.0, 2.0]))
    0.5
    """
    return float(1 - np.mean((truth - predicted) ** 2) / np.var(truth))


def _of(gained: pl.DataFrame, name: str, write: Callable[[pl.DataFrame], str]) -> str:
    return write(gained.filter(pl.col("set") == name))


def _verdict(gained: pl.DataFrame) -> str:
    return f"{write_verdict(gained)} ({write_gains(gained)})."


def _draw(scores: pl.DataFrame, problems: Mapping[str, Problem]) -> Figure:
    figure = Figure(figsize=(5.2 * len(problems), 4.4), layout="constrained")
    axes: Sequence[Any] = np.atleast_1d(figure.subplots(1, len(problems))).tolist()
    averages = average(scores, ["set", "method", "examples"], ["score"])
    for ax, (name, problem) in zip(axes, problems.items(), strict=True):
        draw_methods(ax, averages.filter(pl.col("set") == name), "score", problem.measured, problem.across, LOOKS)
        style.write_title(ax, problem.title)
    write_key(axes[0])
    return figure


def _details(scores: pl.DataFrame, problems: Mapping[str, Problem]) -> str:
    averages = average(scores, ["set", "method", "examples"], ["score"])
    return "\n\n".join(
        f"{problem.title}: {problem.measured}, by {problem.across}.\n\n"
        f"{tabulate(averages.filter(pl.col('set') == name), 'score')}"
        for name, problem in problems.items()
    )
