"""What the experiments on latent independent sources share: the methods compared, and what they gain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

import kinfolk
from kinfolk.experiments.measuring import average, write_gain
from kinfolk.experiments.publishing import Verdict, judge
from kinfolk.plots import style

PAPER = (
    "J. Zhang, Z. Ghahramani and Y. Yang, “Learning Multiple Related Tasks using Latent Independent Component "
    "Analysis”, Advances in Neural Information Processing Systems 18, 2005."
)
INDIVIDUAL, POOLED, HIERARCHICAL, POINT, BAYES = "individual", "pooled", "hierarchical", "LICA, point", "LICA, Bayes"
METHODS: dict[str, dict[str, Any]] = {
    INDIVIDUAL: {"sharing": "individual"},
    POOLED: {"sharing": "pooled"},
    HIERARCHICAL: {"sharing": "hierarchical"},
    POINT: {"sharing": "sources", "inference": "map"},
    BAYES: {"sharing": "sources", "inference": "eb"},
}
OURS = (POINT, BAYES)
# As many sources as tasks, as the paper has it; which inference depends on the figure.
AS_PRINTED = "LICA as in the paper"
LOOKS = {
    INDIVIDUAL: (style.ALONE, "s"),
    POOLED: (style.PALETTE[4], "v"),
    HIERARCHICAL: (style.PALETTE[3], "^"),
    POINT: (style.PALETTE[5], "D"),
    BAYES: (style.PALETTE[0], "o"),
    AS_PRINTED: (style.PALETTE[1], "P"),
}
# A difference counts where it is more than so many standard errors from zero.
CLEAR = 2.0
N_JOBS = 2
SCALE = False  # columns as the sets and the other papers have them

Build = Callable[..., Any]


def classifier(**parameters: Any) -> Any:
    """Make the estimator that the experiments fit, for labels of two kinds."""
    return kinfolk.LICAClassifier(n_jobs=N_JOBS, scale=SCALE, **parameters)


def regressor(**parameters: Any) -> Any:
    """Make the estimator that the experiments fit, for numbers."""
    return kinfolk.LICARegressor(n_jobs=N_JOBS, scale=SCALE, **parameters)


def gains(scores: pl.DataFrame, measure: str, keys: Sequence[str] = ("examples",)) -> pl.DataFrame:
    """How much more of a measure each method has than individual learning from the same rows, and its standard error.

    Parameters
    ----------
    scores : polars.DataFrame
        ``method``, ``repeat``, the keys and the measure.
    measure : str
    keys : sequence of str
        What names a setting: its repeats are averaged.

    Returns
    -------
    polars.DataFrame
        ``method``, the keys, ``repeats``, ``gain``, ``gain_error``; without individual learning itself.
    """
    alone = scores.filter(pl.col("method") == INDIVIDUAL).select(*keys, "repeat", pl.col(measure).alias("alone"))
    both = scores.filter(pl.col("method") != INDIVIDUAL).join(
        alone, on=[*keys, "repeat"], how="inner", maintain_order="left"
    )
    return average(both.with_columns(gain=pl.col(measure) - pl.col("alone")), ["method", *keys], ["gain"])


def write_gains(gained: pl.DataFrame) -> str:
    """Write each method's gain with its standard error, and in brackets the number of examples."""
    by_method = gained.group_by("method", maintain_order=True)
    return "; ".join(f"{method}: {write_gain(rows, 3)}" for (method,), rows in by_method)


def write_verdict(gained: pl.DataFrame) -> str:
    """Say at how many sizes each method is clearly above individual learning, and clearly below.

    Sizes that were run once have no standard error and are not counted.
    """
    parts = []
    for (method,), rows in gained.filter(pl.col("repeats") > 1).group_by("method", maintain_order=True):
        gain, error = rows["gain"].to_numpy(), rows["gain_error"].to_numpy()
        parts.append(
            f"{method} is above individual learning by more than {CLEAR:g} standard errors at "
            f"{int((gain > CLEAR * error).sum())} of {len(gain)} sizes and below it at "
            f"{int((gain < -CLEAR * error).sum())}"
        )
    return "; ".join(parts) if parts else "Each size was run once, so nothing can be said with certainty"


def write_trend(gained: pl.DataFrame) -> str:
    """Say at which number of examples each method gains most."""
    parts = []
    for (method,), rows in gained.sort("examples", maintain_order=True).group_by("method", maintain_order=True):
        sizes = rows["examples"].to_list()
        if len(sizes) == 1:
            parts.append(f"{method} was run at {sizes[0]:,} alone")
        else:
            most = sizes[int(np.argmax(rows["gain"].to_numpy()))]
            parts.append(f"{method} gains most at {most:,}, of {sizes[0]:,} to {sizes[-1]:,}")
    return "; ".join(parts)


def judge_gains(gained: pl.DataFrame) -> Verdict:
    """Whether every method is clearly above individual learning at every size; open where sizes were run once.

    Examples
    --------
    >>> gained = pl.DataFrame({"repeats": [9, 9], "gain": [0.2, 0.1], "gain_error": [0.01, 0.2]})
    >>> judge_gains(gained)
    'partly'
    """
    several = gained.filter(pl.col("repeats") > 1)
    return judge(*(several["gain"] > CLEAR * several["gain_error"]).to_list()) if len(several) else "open"


def judge_alike(gained: pl.DataFrame, most: float = 0.02) -> Verdict:
    """Whether every method is within so much of individual learning at every size.

    Examples
    --------
    >>> judge_alike(pl.DataFrame({"gain": [0.01, -0.2]}))
    'partly'
    """
    return judge(*(gained["gain"].abs() <= most).to_list())


def judge_trend(gained: pl.DataFrame, keys: Sequence[str] = ()) -> Verdict:
    """Whether every method gains most at the smallest size; open where there is one size alone."""
    most = []
    for _, rows in gained.sort("examples", maintain_order=True).group_by(["method", *keys], maintain_order=True):
        most.append(None if len(rows) == 1 else int(np.argmax(rows["gain"].to_numpy())) == 0)
    return judge(*most) if most else "open"
