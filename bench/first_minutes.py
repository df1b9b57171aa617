"""What somebody waits for who tries the defaults: a wide table, a column of many values, a picture, a diagnosis."""

from __future__ import annotations

import subprocess
import sys
import warnings
from io import BytesIO

import numpy as np
import polars as pl

from bench.measure import Comparison, best_of, once
from kinfolk import AveragedNB, ClusteredNB
from kinfolk.datasets.real import data_file
from kinfolk.plots import hinton

N_TASKS, N_ROWS, N_FEATURES = 50, 100, 500
N_DRAWN = 2_000


def wide_table() -> Comparison:
    """AveragedNB, whose members are refitted in every fold, on many columns."""
    rng = np.random.default_rng(0)
    task = np.repeat(np.arange(N_TASKS), N_ROWS)
    y = rng.integers(2, size=len(task))
    # A fifth of the columns tell of the label; in half of the tasks the other way round.
    shift = np.where(np.arange(N_FEATURES) % 5 == 0, (y ^ (task % 2))[:, None], 0)
    X = (rng.integers(3, size=(len(task), N_FEATURES)) + shift) // 2

    def fit() -> None:
        AveragedNB(random_state=0).fit(X, y, task=task)

    first = once(fit)
    job = f"AveragedNB, {len(task):,} rows of {N_TASKS} tasks × {N_FEATURES} features"
    return Comparison(job, "", once(fit), None, "under 20 s", first)


def many_values() -> list[Comparison]:
    """Ratings of lecturers with the student as a category, where the data are at hand."""
    try:
        ratings = pl.read_csv(data_file("categorical_multitask", "insteval.csv.gz"))
    except FileNotFoundError as missing:
        print(f"The ratings of lecturers are left out: {missing}")
        return []
    X, y, task = ratings.drop("d", "y").cast(pl.String), (ratings["y"] >= 4).to_numpy(), ratings["d"].to_numpy()

    def fit() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ClusteredNB().fit(X, y, task=task)

    first = once(fit)
    n_values = X["s"].n_unique()
    job = f"ClusteredNB (bhc), {len(y):,} ratings of {len(set(task)):,} lecturers, a column of {n_values:,} students"
    return [Comparison(job, "", once(fit), None, "under 10 s", first)]


def picture() -> Comparison:
    """The Hinton diagram of more tasks than there is room for squares, drawn and saved."""
    kin = np.random.default_rng(0).integers(40, size=N_DRAWN)
    similarity = np.where(kin[:, None] == kin, 0.9, 0.02)
    np.fill_diagonal(similarity, 1.0)

    def draw() -> None:
        from matplotlib import pyplot as plt

        plt.switch_backend("agg")
        hinton(similarity, groups=kin)
        plt.savefig(BytesIO(), format="png")
        plt.close("all")

    first = once(draw)
    return Comparison(f"Hinton diagram of {N_DRAWN:,} tasks", "", best_of(draw, 3), None, "under 2 s", first)


def diagnosis() -> Comparison:
    """R-hat and effective sample size in a process of their own, imports included, beyond starting NumPy."""
    r_hat = (
        "import numpy as np; from kinfolk.convergence import diagnose; "
        "diagnose({'log joint': np.random.default_rng(0).normal(size=(4, 200))})"
    )
    seconds, bare = (
        best_of(lambda code=code: subprocess.run([sys.executable, "-c", code], check=True))  # type: ignore[misc]
        for code in (r_hat, "import numpy")
    )
    return Comparison("R-hat of four chains, imports included, beyond NumPy", "", seconds - bare, None, "under 1 s")


def run() -> list[Comparison]:
    return [wide_table(), *many_values(), picture(), diagnosis()]
