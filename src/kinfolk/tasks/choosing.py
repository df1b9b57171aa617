"""Which family a column of numbers is given: the one under which the training rows are most probable.

All tasks are pooled and each label has parameters of its own, so that the evidence of every family is a closed form.
Bins count as a histogram, uniform within a bin, and whole numbers taken as categories as a histogram with bins of width
one: densities all, and so they compare. The lowest bin begins one step below the lowest value, a step being the
smallest distance between two values; a value that many rows share is a narrow bin, which no Gaussian can match.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from kinfolk.maths.arrays import Floats
from kinfolk.maths.conjugate import COUNT, GAUSSIAN, log_marginal_of_number, number_groups
from kinfolk.tasks.columns import learn_number
from kinfolk.tasks.schema import as_numbers, is_count


def choose_family(
    values: NDArray[Any],
    weights: Floats | None,
    labels: NDArray[np.int32] | None,
    edges: Floats,
    among: Iterable[str],
) -> str:
    """The most probable of some of "category", "bin", "gaussian" and "count"; of equals the first.

    ``labels`` are codes (−1 unlabelled); ``edges`` are those of the bins.
    """
    numbers = as_numbers(values, "the column")
    weights = np.ones(len(numbers)) if weights is None else weights
    labels = np.zeros(len(numbers), dtype=np.int32) if labels is None else labels
    known = ~np.isnan(numbers) & (labels >= 0)
    numbers, weights, labels = numbers[known], weights[known], labels[known]
    among = list(among)
    distinct = np.unique(numbers)
    if len(distinct) < 2:
        return among[0]
    with np.errstate(over="ignore"):
        step = float(np.diff(distinct).min())
    evidence = {}
    for family in among:
        if family == "count" and not is_count(numbers).all():
            continue
        if family == "category":
            evidence[family] = _histogram(np.searchsorted(distinct, numbers), np.ones(len(distinct)), weights, labels)
        elif family == "bin":
            code = np.searchsorted(edges, numbers, side="left")
            evidence[family] = _histogram(code, _widths(distinct, edges, step), weights, labels)
        else:
            evidence[family] = _numbers(numbers, family, weights, labels)
    return max(evidence, key=evidence.__getitem__)


def _widths(distinct: Floats, edges: Floats, step: float) -> Floats:
    """How wide the bins are, the outer ones as far as values reach."""
    lowest, highest = distinct[0], distinct[-1]
    if len(edges):
        lowest, highest = min(lowest, edges[0]), max(highest, edges[-1])
    with np.errstate(over="ignore"):
        bounds = np.concatenate([[lowest - step], edges, [highest]])
        return np.clip(np.diff(bounds), step, np.finfo(np.float64).max)


def _histogram(code: NDArray[np.int64], widths: Floats, weights: Floats, labels: NDArray[np.int32]) -> float:
    """Log evidence of a histogram per label, one pseudo-count in each bin."""
    n = len(widths)
    counts = np.bincount(labels.astype(np.int64) * n + code, weights, minlength=n * (int(labels.max()) + 1))
    counts = counts.reshape(-1, n)
    marginal = gammaln(1.0 + counts).sum() - gammaln(n + counts.sum(axis=1)).sum() + len(counts) * gammaln(n)
    return float(marginal - (counts @ np.log(widths)).sum())


def _numbers(numbers: Floats, family: str, weights: Floats, labels: NDArray[np.int32]) -> float:
    """Log evidence of numbers of a family per label."""
    number = learn_number(numbers, weights, family, "")
    x, code = number.standardised(numbers), COUNT if family == "count" else GAUSSIAN
    thirds = gammaln(x + 1.0) if family == "count" else x**2
    sums = [np.bincount(labels, weights * part) for part in (np.ones(len(x)), x, thirds)]
    prior = number_groups(0, np.array([code]), np.array([number.prior])).prior[0]
    of_labels = zip(*sums, strict=True)
    return float(sum(log_marginal_of_number(n, total, third, code, prior) for n, total, third in of_labels))
