"""How far off the models' numbers are: the predictive distribution of an average of regressions; with numpy alone.

A model gives every row a mean and a standard deviation. How far off it is, in units of its deviation, is learnt from
rows held out: errors are a mixture of Gaussians of fixed widths, so that tails may be heavy, and deviations too small
or too large. New tasks have a mixture of their own. An average of distributions that are each as wide as their own
errors is wider than its errors, since these cancel in part (T. Gneiting and R. Ranjan, "Combining predictive
distributions", Electronic Journal of Statistics 7, 2013): once models are weighed, widths are learnt once more for what
they say together. No mixture of Gaussians need have the errors' shape, so that at last it is counted how often numbers
held out lay below each quantile, and quantiles are asked for at the levels that hold what they promise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.posterior import Archive

# Widths of the Gaussians, in units of a model's deviation.
WIDTHS = 2.0 ** np.arange(-4.0, 4.01, 0.5)
# Rows that are thought to have been seen beforehand, spread about the deviation that a model gives.
_BEFOREHAND = 2.0
_STEPS = 200
# erfc(x) is t exp(Σ_k c_k tᵏ − x²) with t = 1 / (1 + x/2), to 1.2e-7 (Press et al., Numerical Recipes, section 6.2).
_ERFC = np.array([-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587,
                  -0.82215223, 0.17087277])  # fmt: skip
_FEWEST_NEW = 20
_TINY = 1e-300
# Probabilities at which it is counted how many numbers lay below, and rows that are thought to be as they should.
LEVELS = np.linspace(0.0, 1.0, 201)
_AS_THEY_SHOULD = 20.0


class Scales(NamedTuple):
    """Weights of the widths (models, widths) for tasks that are known, and for new ones.

    ``unit`` holds the centre and the size of the units that models speak of numbers in. ``below`` (2, levels) is the
    share of numbers held out, of known tasks and of new ones, that lay below the mixture's quantiles at ``LEVELS``.
    """

    known: Floats
    new: Floats
    unit: Floats = np.array([0.0, 1.0])
    below: Floats = np.stack([LEVELS, LEVELS])

    def of(self, is_known: NDArray[np.bool_]) -> Floats:
        """Weights of widths (rows, models, widths)."""
        return np.where(is_known[:, None, None], self.known, self.new)

    def level(self, promised: float, is_known: NDArray[np.bool_]) -> Floats:
        """The level at which each row's mixture has the quantile below which so many numbers lie."""
        known, new = (np.interp(promised, below, LEVELS) for below in self.below)
        return np.where(is_known, known, new)

    def counted(self, said: Mixture, target: Floats, weights: Floats, is_known: NDArray[np.bool_]) -> Scales:
        """The same, with how many numbers held out lay below the quantiles of what was said of them."""
        probability = said.distribution(target)
        known = _share_below(probability[is_known], weights[is_known])
        enough = (~is_known).sum() >= _FEWEST_NEW
        return self._replace(
            below=np.stack([known, _share_below(probability[~is_known], weights[~is_known]) if enough else known])
        )

    def log_density(self, target: Floats, mean: Floats, deviation: Floats, is_known: NDArray[np.bool_]) -> Floats:
        """Log density of targets by each model (rows, models)."""
        of_widths = _log_normal((target[:, None] - mean) / deviation)
        with np.errstate(divide="ignore"):
            log_p = np.logaddexp.reduce(of_widths + np.log(self.of(is_known)), axis=2)
        return np.asarray(log_p - np.log(deviation))


def no_scales(n_models: int) -> Scales:
    """Models as far off as they say."""
    as_said = np.tile((WIDTHS == 1.0).astype(np.float64), (n_models, 1))
    return Scales(as_said, as_said)


def _log_normal(z: Floats) -> Floats:
    """Log density of standardised errors under each width (..., widths)."""
    return np.asarray(-0.5 * (z[..., None] / WIDTHS) ** 2 - np.log(WIDTHS) - 0.5 * np.log(2.0 * np.pi))


def learn_scales(target: Floats, mean: Floats, deviation: Floats, weights: Floats, n_rows: Floats) -> Scales:
    """The weights of widths that make errors held out most probable; new tasks' where there are enough of them."""
    z, new = (target[:, None] - mean) / deviation, n_rows <= 0.0
    known = _weights_of_widths(z[~new] if (~new).any() else z, weights[~new] if (~new).any() else weights)
    if new.sum() < _FEWEST_NEW:
        return Scales(known, known)
    return Scales(known, _weights_of_widths(z[new], weights[new]))


def _weights_of_widths(z: Floats, weights: Floats) -> Floats:
    """For each model the mixture of widths by expectation and maximisation, begun about the width that fits best."""
    found = np.empty((z.shape[1], len(WIDTHS)))
    for m in range(z.shape[1]):
        likelihood = _log_normal(z[:, m])
        likelihood = np.exp(likelihood - likelihood.max(axis=1, keepdims=True))
        best = np.sqrt(np.average(np.minimum(z[:, m] ** 2, np.quantile(z[:, m] ** 2, 0.9) + 1e-12), weights=weights))
        prior = np.exp(-0.5 * (np.log2(WIDTHS / np.clip(best, WIDTHS[0], WIDTHS[-1])) / 0.5) ** 2)
        prior /= prior.sum()
        share = prior
        for _ in range(_STEPS):
            joint = likelihood * share
            counts = weights @ (joint / joint.sum(axis=1, keepdims=True)) + _BEFOREHAND * prior
            before, share = share, counts / counts.sum()
            if np.abs(share - before).max() < 1e-6:
                break
        found[m] = share
    return found


def pooled_scales(
    scales: Scales, target: Floats, mean: Floats, deviation: Floats, weights: Floats, believed: Floats, new: Any
) -> Scales:
    """Weights of widths under which numbers held out are most probable by all models together.

    ``scales`` are those of models alone, ``believed`` (rows, models) is how far models are believed for each row, and
    ``new`` tells rows of new tasks.
    """

    def better(rows: NDArray[np.bool_], before: Floats) -> Floats:
        if rows.sum() < _FEWEST_NEW or len(before) == 1:
            return before
        of_widths = (
            _log_normal((target[rows, None] - mean[rows]) / deviation[rows]) - np.log(deviation[rows])[:, :, None]
        )
        highest = of_widths.max(axis=(1, 2), keepdims=True)
        likelihood = (np.exp(of_widths - highest) * believed[rows][:, :, None]).reshape(rows.sum(), -1)
        share = before
        for _ in range(_STEPS):
            # What each width of each model has of each row, by expectation; then the widths of a model add up to one.
            whole = likelihood @ share.ravel()
            counts = share * ((weights[rows] / np.maximum(whole, _TINY)) @ likelihood).reshape(share.shape)
            counts += _BEFOREHAND * before
            last, share = share, counts / counts.sum(axis=1, keepdims=True)
            if np.abs(share - last).max() < 1e-4:
                break
        return share

    known = better(~new, scales.known)
    return scales._replace(known=known, new=better(new, scales.new) if new.sum() >= _FEWEST_NEW else known)


def _share_below(probability: Floats, weights: Floats) -> Floats:
    """The share of rows whose probability is at most each of ``LEVELS``, with those that are thought to have been seen.

    Examples
    --------
    >>> _share_below(np.array([0.5, 0.5, 0.9]), np.full(3, 20.0))[[0, 50, 100, 200]].tolist()
    [0.0, 0.0625, 0.625, 1.0]
    """
    order = np.argsort(probability, kind="stable")
    seen = np.append(0.0, np.cumsum(weights[order]))[np.searchsorted(probability[order], LEVELS, side="right")]
    found = (seen + _AS_THEY_SHOULD * LEVELS) / (weights.sum() + _AS_THEY_SHOULD)
    # Beyond the ends there is nothing.
    found[0], found[-1] = 0.0, 1.0
    return np.asarray(found)


class Mixture(NamedTuple):
    """Predictive distributions of rows: Gaussians (rows, parts) with their weights."""

    weight: Floats
    mean: Floats
    deviation: Floats

    def expected(self) -> Floats:
        """Means."""
        return np.asarray((self.weight * self.mean).sum(axis=1))

    def standard_deviation(self) -> Floats:
        """Standard deviations."""
        second = (self.weight * (self.deviation**2 + self.mean**2)).sum(axis=1)
        return np.asarray(np.sqrt(np.maximum(second - self.expected() ** 2, 0.0)))

    def distribution(self, value: Floats) -> Floats:
        """Probability of at most a value for each row."""
        return np.asarray((self.weight * _normal((value[:, None] - self.mean) / self.deviation)).sum(axis=1))

    def quantile(self, level: float | Floats) -> Floats:
        """The value that a row is below with this probability, one for all or one each, by bisection."""
        reach = 12.0 * self.deviation.max(axis=1)
        low, high = self.mean.min(axis=1) - reach, self.mean.max(axis=1) + reach
        for _ in range(60):
            middle = 0.5 * (low + high)
            below = self.distribution(middle) < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(0.5 * (low + high))


def mix(weights: Floats, scales: Scales, mean: Floats, deviation: Floats, is_known: NDArray[np.bool_]) -> Mixture:
    """All models' Gaussians as one mixture for each row: weights (rows, models), means and deviations alike."""
    shape = len(mean), mean.shape[1] * len(WIDTHS)
    centre, size = scales.unit
    weight = (weights[:, :, None] * scales.of(is_known)).reshape(shape)
    width = (size * deviation[:, :, None] * WIDTHS).reshape(shape)
    return Mixture(weight, np.repeat(centre + size * mean, len(WIDTHS), axis=1), width)


def _normal(z: Floats) -> Floats:
    """The normal distribution function, to about 1e-7.

    Examples
    --------
    >>> _normal(np.array([-1.959964, 0.0, 1.644854])).round(6).tolist()
    [0.025, 0.5, 0.95]
    """
    x = np.abs(z) / np.sqrt(2.0)
    t = 1.0 / (1.0 + 0.5 * x)
    poly = np.polynomial.polynomial.polyval(t, _ERFC)
    tail = 0.5 * t * np.exp(-x * x + poly)
    return np.asarray(np.where(z > 0.0, 1.0 - tail, tail))


def scales_of(archive: Archive, n_models: int) -> Scales | None:
    """The scales of a saved average; None where it is one of classifiers."""
    if archive.about["family"] != "averaged numbers":
        return None
    found = [archive.array(f"scales.{name}", "f", (n_models, len(WIDTHS))) for name in ("known", "new")]
    if not all((each >= 0.0).all() and np.allclose(each.sum(axis=1), 1.0) for each in found):
        raise ValueError("its weights of widths do not add up to one")
    unit = archive.array("scales.unit", "f", (2,))
    if not unit[1] > 0.0:
        raise ValueError("its unit of numbers is not above zero")
    known, new = found
    if "scales.below" not in archive.arrays:
        # A file of before it was counted.
        return Scales(known, new, unit)
    below = archive.array("scales.below", "f", (2, len(LEVELS)))
    if not ((below[:, 0] == 0.0).all() and (below[:, -1] == 1.0).all() and (np.diff(below, axis=1) > 0.0).all()):
        raise ValueError("its shares of numbers below quantiles do not go from zero to one")
    return Scales(known, new, unit, below)


def unit_of(numbers: Floats, weights: Floats | None) -> Floats:
    """Mean and standard deviation of numbers that are not missing; a deviation of one where all are alike."""
    known = ~np.isnan(numbers) if weights is None else ~np.isnan(numbers) & (weights > 0.0)
    counts = None if weights is None else weights[known]
    centre = np.average(numbers[known], weights=counts)
    size = np.sqrt(np.average((numbers[known] - centre) ** 2, weights=counts))
    return np.array([centre, size if size > 1e-12 * abs(centre) else 1.0])
