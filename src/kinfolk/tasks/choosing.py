"""What a column of numbers is taken for, where that is weighed: by what it tells of labels, or by its values alone.

Whole numbers of few values may be categories or bins (:func:`choose_coding`): what makes the labels of the training
rows more probable. Which family a number has where "auto" is asked for (:func:`choose_family`) is that under which the
training rows are most probable. All tasks are pooled, so that the evidence is a closed form.

For families each label has parameters of its own. Bins count as a histogram, uniform within a bin, and whole numbers
taken as categories as a histogram with bins of width one: densities all, and so they compare. The lowest bin begins one
step below the lowest value, a step being the smallest distance between two values; a value that many rows share is a
narrow bin, which no Gaussian can match.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from kinfolk.maths.arrays import Floats
from kinfolk.maths.conjugate import COUNT, GAUSSIAN, log_marginal_of_number, number_groups
from kinfolk.tasks.columns import learn_number
from kinfolk.tasks.schema import as_numbers, is_count


def choose_coding(
    values: NDArray[Any], weights: Floats | None, labels: NDArray[np.int32], edges: Floats
) -> Literal["category", "bin"]:
    """Whether whole numbers are better taken as categories or as bins, of equals as categories.

    Every category, or bin, has label rates of its own under a uniform prior. Many categories of few rows each are
    punished for what they have to learn; bins, for values that differ in their labels and were put into one.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Numbers, NaN where one is missing.
    weights : ndarray of shape (n_rows,), optional
    labels : ndarray of int of shape (n_rows,)
        Codes, −1 for an unlabelled row.
    edges : ndarray
        Inner edges of the bins.

    Returns
    -------
    {"category", "bin"}

    Examples
    --------
    >>> ages, old = np.arange(20, 60), np.arange(20, 60) >= 40
    >>> choose_coding(ages, None, old.astype(np.int32), np.arange(25.0, 60.0, 5.0))
    'bin'
    >>> choose_coding(np.tile(ages, 20), None, np.tile(ages % 2, 20).astype(np.int32), np.arange(25.0, 60.0, 5.0))
    'category'
    """
    numbers = as_numbers(values, "the column")
    known = ~np.isnan(numbers) & (labels >= 0)
    if not known.any():
        return "category"
    numbers, present = numbers[known], np.unique(labels[known], return_inverse=True)[1]
    mass = np.ones(len(numbers)) if weights is None else weights[known]
    as_categories = _label_evidence(np.unique(numbers, return_inverse=True)[1], mass, present)
    as_bins = _label_evidence(np.searchsorted(edges, numbers, side="left"), mass, present)
    return "bin" if as_bins > as_categories else "category"


def _label_evidence(code: NDArray[np.intp], weights: Floats, labels: NDArray[np.intp]) -> float:
    """Log evidence of labels given codes, each of which has label rates of its own."""
    n_labels = int(labels.max()) + 1
    counts = np.bincount(code * n_labels + labels, weights, minlength=n_labels * (int(code.max()) + 1))
    counts = counts.reshape(-1, n_labels)
    return float(gammaln(1.0 + counts).sum() + (gammaln(n_labels) - gammaln(n_labels + counts.sum(axis=1))).sum())


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
