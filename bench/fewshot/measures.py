"""How good answers are: probabilities of two labels, or numbers with a spread."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

Numbers = NDArray[np.float64]
LEAST = 1e-6  # probability that any label keeps: a model that is certain and wrong loses 14 nats, not infinitely many
BINS = 10
Z90 = 1.6448536  # a normal number is that many deviations from its mean at most in nine cases of ten

CLASSIFICATION = ("log_loss", "auc", "brier", "calibration")
REGRESSION = ("squared_error", "coverage")
BY_TASK = "coverage_error"


def of_probabilities(y: Numbers, probability: Numbers) -> dict[str, float]:
    """Log loss, AUC, Brier score, and the mean gap between probability and rate in ten bins of as many rows each."""
    p = np.clip(probability, LEAST, 1.0 - LEAST)
    bins = np.array_split(np.argsort(p, kind="stable"), BINS)
    gaps = [len(rows) * abs(p[rows].mean() - y[rows].mean()) for rows in bins if len(rows)]
    return {
        "log_loss": float(-np.mean(y * np.log(p) + (1.0 - y) * np.log1p(-p))),
        "auc": float(roc_auc_score(y, p)) if 0.0 < y.mean() < 1.0 else float("nan"),
        "brier": float(np.mean((y - p) ** 2)),
        "calibration": float(sum(gaps) / len(y)),
    }


def of_numbers(y: Numbers, mean: Numbers, spread: Numbers | None, task: NDArray[Any] | None = None) -> dict[str, float]:
    """Mean squared error, and how many targets lie in intervals meant for nine in ten.

    The spread is a standard deviation of normal numbers, or the 5 % and the 95 % quantile (rows, 2). With tasks, the
    standard error of that share is there too; rows of a task may be off together.
    """
    measured = {"squared_error": float(np.mean((y - mean) ** 2)), "coverage": float("nan")}
    if spread is None:
        return measured
    ends = spread.T if spread.ndim == 2 else (mean - Z90 * spread, mean + Z90 * spread)
    inside = ((ends[0] <= y) & (y <= ends[1])).astype(np.float64)
    measured["coverage"] = float(inside.mean())
    if task is not None:
        of_tasks = np.bincount(np.unique(task, return_inverse=True)[1], inside - inside.mean())
        n_tasks = len(of_tasks)
        if n_tasks > 1:
            measured[BY_TASK] = float(np.sqrt(n_tasks / (n_tasks - 1) * (of_tasks**2).sum()) / len(y))
    return measured
