"""The prior of the features learnt from all tasks together, by empirical Bayes.

The pseudo-counts of feature f are κ_f m_{y,f}: a strength, and rates that all blocks of tasks have in common. They
maximise the expected log marginal of the blocks,

    Q(κ, m) = Σ_k ω_k Σ_{y,f} log DM(n_{k,y,f} | κ_f m_{y,f}) + log p(κ, m),

ω_k being the probability that k is one of the blocks, which is the M-step of an EM algorithm over partitions; so is the
concentration given the expected number of blocks. All have weak priors, so that nothing runs off to infinity.
"""

from __future__ import annotations

import warnings
from math import lgamma
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled
from kinfolk.maths.digamma import digamma
from kinfolk.naive_bayes.inference.fitting import some_of
from kinfolk.naive_bayes.model.values import CommonRates, HyperParameters
from kinfolk.tasks.statistics import Layout

# A block that is less probable than this tells too little about the prior to be worth its time.
_LEAST_PROBABILITY = 1e-3
# Blocks that are looked at, at most: a few numbers are learnt from them, and more would not change these.
_MAX_BLOCKS = 5_000
_STRENGTH_SHAPE = 2.0
_MAX_STEPS = 25
# A strength is known well enough to two parts in a hundred.
_ENOUGH = 2e-2


def with_learnt_prior(
    hyper: HyperParameters, counts: NDArray[Any], layout: Layout, *, same_for_labels: bool = False
) -> HyperParameters:
    """The same with the features' prior learnt, where it is to be, from the counts of all that have rates of their own.

    Rates are the ``same_for_labels`` where all tasks share them.
    """
    if "feature_prior" not in hyper.learns:
        return hyper
    learnt = learn_feature_prior(counts, np.ones(len(counts)), layout, same_for_labels=same_for_labels)
    pseudo_counts = learnt.pseudo_counts(layout)
    if same_for_labels:
        return hyper._replace(feature_prior=pseudo_counts, common=CommonRates(pseudo_counts, learnt.votes))
    return hyper._replace(feature_prior=pseudo_counts, votes=learnt.votes)


class LearntPrior(NamedTuple):
    """Pseudo-counts of the features' values, and what they were made of.

    ``strengths`` has one number per feature; ``votes`` (cells) says how many of the blocks' observations speak for each
    cell of the common rates, the one pseudo-count that every value has among them.
    """

    strengths: Floats
    votes: Floats

    def pseudo_counts(self, layout: Layout) -> Floats:
        """κ_f m_{y,f,x} of all cells."""
        widths = np.diff(layout.group_start)
        rates = self.votes / np.repeat(np.add.reduceat(self.votes, layout.group_start[:-1]), widths)
        return np.asarray(np.repeat(np.tile(self.strengths, layout.n_labels), widths) * rates)


def learn_feature_prior(
    counts: NDArray[Any], probability: Floats, layout: Layout, *, same_for_labels: bool = False
) -> LearntPrior:
    """Strength and common rates of every feature from blocks' counts (blocks, cells), by their probability.

    The strength of a feature of V values has a Gamma prior with shape 2 and mean V, the strength of one pseudo-count
    for each value. Rates that are the ``same_for_labels`` are those of the values whatever the label: what is seen too
    rarely to tell labels apart then does not, where rates by label would take the few rows of each at their word.
    """
    kept = some_of(np.flatnonzero(probability > _LEAST_PROBABILITY), _MAX_BLOCKS)
    weights = probability[kept]
    by_label = counts[kept, : layout.n_counts].reshape(len(kept), layout.n_labels, layout.width)
    if same_for_labels:
        by_label, weights = (
            by_label.reshape(len(kept) * layout.n_labels, 1, layout.width),
            np.repeat(weights, layout.n_labels),
        )
    strengths, votes = np.empty(len(layout.n_values)), np.empty((layout.n_labels, layout.width))
    for f, n_values in enumerate(layout.n_values):
        cells = slice(int(layout.offsets[f]), int(layout.offsets[f + 1]))
        strengths[f], votes[:, cells] = _learn_feature(by_label[:, :, cells], weights, float(n_values))
    return LearntPrior(strengths, votes.ravel())


class Tally(NamedTuple):
    """How often each count above zero occurs in each column: entries ``start[c]:start[c + 1]`` are those of column c.

    Blocks are many and the counts that they have few, so that sums over counts are much shorter than sums over blocks.
    """

    start: NDArray[np.int64]
    number: Floats
    weight: Floats


def _tally(counts: NDArray[Any], weights: Floats) -> Tally:
    """Tally of counts (blocks, columns) by the blocks' weights.

    Examples
    --------
    >>> _tally(np.array([[2, 0], [1, 0], [2, 5]]), np.ones(3))
    Tally(start=array([0, 2, 3]), number=array([1., 2., 5.]), weight=array([1., 2., 1.]))
    """
    n_columns, n_values = counts.shape[1], int(counts.max(initial=0)) + 1
    if counts.dtype.kind in "iu" and n_columns * n_values <= 4 * counts.size:
        # Whole numbers that are small are places in a table, which takes a tenth of the time of looking for them.
        first = np.arange(n_columns + 1) * n_values
        place = (first[:-1, None] + counts.T.astype(np.int64)).ravel()
        seen = np.bincount(place, minlength=first[-1])
        seen[first[:-1]] = 0
        found = np.flatnonzero(seen)
        weight: Floats = np.bincount(place, np.tile(weights, n_columns), first[-1])[found].astype(np.float64)
        return Tally(np.searchsorted(found, first), (found % n_values).astype(np.float64), weight)
    parts = []
    for column in counts.T:
        values, where = np.unique(column, return_inverse=True)
        parts.append(np.stack([values, np.bincount(where, weights, len(values))])[:, values > 0])
    joined = np.concatenate(parts, axis=1)
    start = np.concatenate([[0], np.cumsum([part.shape[1] for part in parts])])
    return Tally(start.astype(np.int64), joined[0].astype(np.float64), joined[1].astype(np.float64))


def _learn_feature(counts: NDArray[Any], weights: Floats, n_values: float) -> tuple[float, Floats]:
    """Strength and votes of one feature from counts (blocks, labels, values): one in turn given the other."""
    strength = n_values
    of_cells = _tally(counts.reshape(len(counts), -1), weights)
    of_labels = _tally(counts.sum(axis=2), weights)
    votes = np.ones(counts.shape[1:])
    bounds = np.log(1e-2 * n_values), np.log(1e4 * n_values)
    for _ in range(_MAX_STEPS):
        votes = _count_votes(of_cells, strength * votes / votes.sum(axis=1, keepdims=True))
        rates = votes / votes.sum(axis=1, keepdims=True)
        before, strength = strength, float(np.exp(_best_log_strength(of_cells, of_labels, rates, n_values, *bounds)))
        if abs(np.log(strength / before)) < _ENOUGH:
            break
    else:
        warnings.warn(
            f"feature_prior had not settled after {_MAX_STEPS} steps, the last by {strength - before:.2g}: give "
            "numbers, or look at feature_prior_",
            ConvergenceWarning,
            stacklevel=2,
        )
    return strength, votes


@compiled
def _count_votes(of_cells, pseudo):  # type: ignore[no-untyped-def]
    """Expected number of observations that the common rates, not the blocks' own, have drawn; and one for each cell."""
    votes = np.ones_like(pseudo)
    for cell in range(pseudo.size):
        own = pseudo.flat[cell]
        at_zero, expected = digamma(own), 0.0
        for i in range(of_cells.start[cell], of_cells.start[cell + 1]):
            expected += of_cells.weight[i] * (digamma(own + of_cells.number[i]) - at_zero)
        votes.flat[cell] += own * expected
    return votes


@compiled
def _log_posterior(log_strength, of_cells, of_labels, rates, n_values):  # type: ignore[no-untyped-def]
    """Log marginal of the blocks and log prior of the strength, up to a constant."""
    strength = np.exp(log_strength)
    total = _STRENGTH_SHAPE * (log_strength - strength / n_values)
    for cell in range(rates.size):
        pseudo = strength * rates.flat[cell]
        at_zero = lgamma(pseudo)
        for i in range(of_cells.start[cell], of_cells.start[cell + 1]):
            total += of_cells.weight[i] * (lgamma(pseudo + of_cells.number[i]) - at_zero)
    at_zero = lgamma(strength)
    for i in range(of_labels.start[-1]):
        total -= of_labels.weight[i] * (lgamma(strength + of_labels.number[i]) - at_zero)
    return total


@compiled
def _best_log_strength(of_cells, of_labels, rates, n_values, low, high):  # type: ignore[no-untyped-def]
    """Where the log posterior is the highest, by golden section."""
    golden = 0.5 * (np.sqrt(5.0) - 1.0)
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left = _log_posterior(left, of_cells, of_labels, rates, n_values)
    at_right = _log_posterior(right, of_cells, of_labels, rates, n_values)
    while high - low > _ENOUGH:
        if at_left > at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = _log_posterior(left, of_cells, of_labels, rates, n_values)
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = _log_posterior(right, of_cells, of_labels, rates, n_values)
    return 0.5 * (low + high)
