"""Figure 4-6 of Roy (2006): the Bell numbers, which count partitions; and the prior of any one partition."""

from __future__ import annotations

from math import comb, lgamma, log

import polars as pl
from matplotlib.figure import Figure

from kinfolk.experiments.clustered_naive_bayes.stand_in import THESIS
from kinfolk.experiments.publishing import About, Study, judge
from kinfolk.plots import style

N_USERS = 21

ABOUT = About(
    THESIS,
    "Plotted the number of partitions of n objects beside powers of two, and bounded the prior probability of any "
    "partition of 21 users (equations 4.8 to 4.10).",
    "Nothing: both are counted exactly.",
    (
        "The Bell numbers grow faster than exponentially; for 21 objects there are roughly 475 trillion partitions.",
        "A uniform prior over partitions of 21 objects has a log probability of about −33.8 each.",
        "By the Chinese restaurant process with α = 1, the log probability of any partition of 21 is above −43 "
        "(equation 4.10).",
    ),
)


def study(*, quick: bool = False, seed: int = 0) -> Study:
    """Count partitions; nothing is left to chance, and nothing is slow."""
    bell = bell_numbers(30)
    table = pl.DataFrame(
        {"objects": range(1, 31), "log10_partitions": [log(bell[n]) / log(10) for n in range(1, 31)]}
    ).with_columns(log10_power_of_two=pl.col("objects") * log(2) / log(10))
    least = lgamma(1) - lgamma(N_USERS + 1)  # all alone: α^21 Γ(α)/Γ(21+α), at α = 1
    grows = all(bell[n + 1] * bell[n - 1] > bell[n] ** 2 for n in range(2, 29))
    ours = (
        f"{bell[N_USERS]:,} partitions of {N_USERS}; the ratio of neighbours grows all the way to 30 objects.",
        f"−log of that number: {-log(bell[N_USERS]):.1f}.",
        f"The least probable partition, everybody alone, has a log probability of {least:.1f} at α = 1: the bound of "
        "−43 is not one. The printed Γ(α)/Γ(20+α) lacks a factor; so 364 in (4.15) should read 362.",
    )
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    ax = figure.subplots()
    ax.plot(table["objects"], table["log10_partitions"], color=style.PALETTE[0], label="partitions (Bell numbers)")
    ax.plot(table["objects"], table["log10_power_of_two"], color=style.ALONE, linestyle="--", label="powers of two")
    style.quieten(ax)
    style.name_axes(ax, "objects", "logarithm to base ten")
    style.write_key(ax)
    held = (
        judge(grows, round(bell[N_USERS] / 1e12) == 475),
        judge(round(-log(bell[N_USERS]), 1) == -33.8),
        judge(least > -43),
    )
    return Study(table, figure, ours, "Whole numbers, exactly.", "", held)


def bell_numbers(most: int) -> list[int]:
    """How many partitions 0, 1, … objects have: B(n+1) = Σ C(n, k) B(k).

    Examples
    --------
    >>> bell_numbers(5)
    [1, 1, 2, 5, 15, 52]
    """
    bell = [1]
    for n in range(most):
        bell.append(sum(comb(n, k) * bell[k] for k in range(n + 1)))
    return bell
