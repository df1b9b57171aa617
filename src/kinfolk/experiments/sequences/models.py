"""What the experiments on sequences share: the three models compared, their average, and pairs of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import joblib
import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

import kinfolk
from kinfolk.experiments.cells import checkpoint
from kinfolk.experiments.measuring import average, write_error
from kinfolk.plots import style

PAPER = (
    "K. Ni, L. Carin and D. Dunson, “Multi-Task Learning for Sequential Data via iHMMs and the Nested Dirichlet "
    "Process”, International Conference on Machine Learning, 2007."
)
NESTED, SHARED, SINGLE, AVERAGED = "nDP-iHMM", "DP-iHMM", "single iHMM", "AveragedIHMM"
MODELS = (NESTED, SHARED, SINGLE)
# The average comes last: it finds the chains of the others, which have the same seed, where a study keeps them.
ESTIMATORS = {NESTED: "NestedIHMM", SHARED: "SharedIHMM", SINGLE: "SingleIHMM", AVERAGED: "AveragedIHMM"}
# Those that have room for clusters.
CLUSTERING = (NESTED, AVERAGED)
LOOKS = {
    NESTED: (style.PALETTE[0], "o"),
    SHARED: (style.PALETTE[4], "v"),
    SINGLE: (style.ALONE, "s"),
    AVERAGED: (style.PALETTE[1], "D"),
}
# Sweeps of a chain where a run only shows that all works.
QUICK = {"n_chains": 2, "n_burn_in": 20, "n_draws": 20}
N_JOBS = min(2, joblib.cpu_count())

Build = Callable[..., Any]


def build_model(method: str, **parameters: Any) -> Any:
    """Make one of the estimators, which goes on where it was stopped if the study does."""
    return getattr(kinfolk, ESTIMATORS[method])(n_jobs=N_JOBS, checkpoint=checkpoint().folder, **parameters)


def fit_quietly(model: Any, X: Any, lengths: NDArray[np.int64], task: NDArray[Any]) -> Any:
    """Fit; what chains that have not converged cost is measured, and so not warned of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, lengths, task=task)


def steps_of(lengths: NDArray[np.int64], chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of the chosen sequences, of sequences that lie one after the other.

    Examples
    --------
    >>> steps_of(np.array([2, 3, 1]), np.array([2, 0])).tolist()
    [5, 0, 1]
    """
    last = np.cumsum(lengths)
    return np.concatenate([np.arange(last[i] - lengths[i], last[i]) for i in chosen.tolist()])


def gain_over(scores: pl.DataFrame, better: str, other: str, measure: str, unit: str) -> pl.DataFrame:
    """By how much one method exceeds another at each size, paired by unit; repeats of a unit are averaged first.

    Parameters
    ----------
    scores : polars.DataFrame
        ``method``, ``examples``, the unit and the measure.
    better, other : str
        Methods.
    measure, unit : str
        Columns. The standard error is over units.

    Returns
    -------
    polars.DataFrame
        ``examples``, ``repeats`` (units), ``gain``, ``gain_error``.

    Examples
    --------
    >>> rows = [("a", 2, clip, value) for clip, value in ((1, 3.0), (2, 5.0))] + [("b", 2, 1, 1.0), ("b", 2, 2, 1.0)]
    >>> scores = pl.DataFrame(rows, schema=["method", "examples", "clip", "fit"], orient="row")
    >>> gain_over(scores, "a", "b", "fit", "clip").rows()
    [(2, 2, 3.0, 1.0)]
    """
    means = scores.group_by("method", "examples", unit, maintain_order=True).agg(pl.col(measure).mean())
    one, two = (
        means.filter(pl.col("method") == method).select("examples", unit, pl.col(measure).alias(name))
        for method, name in ((better, "one"), (other, "two"))
    )
    paired = one.join(two, on=["examples", unit], maintain_order="left")
    return average(paired.with_columns(gain=pl.col("one") - pl.col("two")), ["examples"], ["gain"]).sort("examples")


def gain_over_best(scores: pl.DataFrame, measure: str, unit: str) -> pl.DataFrame:
    """By how much the average of the models exceeds the best of them at each size, as `gain_over` has it.

    Examples
    --------
    >>> rows = [(NESTED, 2, 1, 3.0), (SHARED, 2, 1, 4.0), (SINGLE, 2, 1, 1.0), (AVERAGED, 2, 1, 4.5)]
    >>> scores = pl.DataFrame(rows, schema=["method", "examples", "clip", "fit"], orient="row")
    >>> gain_over_best(scores, "fit", "clip").select("examples", "best", "gain").rows()
    [(2, 'DP-iHMM', 0.5)]
    """
    parts = []
    for _, rows in scores.group_by("examples", maintain_order=True):
        means = {method: float(rows.filter(pl.col("method") == method)[measure].to_numpy().mean()) for method in MODELS}
        best = max(MODELS, key=lambda method: means[method])
        parts.append(gain_over(rows, AVERAGED, best, measure, unit).with_columns(best=pl.lit(best)))
    return pl.concat(parts).sort("examples")


def write_gain_over_best(scores: pl.DataFrame, measure: str, unit: str, digits: int) -> str:
    """The same as a sentence, with the best model and the number of examples in brackets."""
    gained = gain_over_best(scores, measure, unit).select("gain", "gain_error", "repeats", "best", "examples")
    listed = [
        f"{gain:+.{digits}f}{write_error(error, n, digits)} ({best}, {size:,})"
        for gain, error, n, best, size in gained.iter_rows()
    ]
    return f"{AVERAGED} above the best of the three: {', '.join(listed)}."


def seeds_of(seed: int, *numbers: Sequence[int] | int) -> int:
    """A seed for one of many runs, whatever the others are."""
    return int(np.random.SeedSequence([seed, *np.ravel(numbers).tolist()]).generate_state(1)[0]) % 2**31
