"""Numbers that are independent Gaussians given the state, each with its own mean and variance (normal–inverse-Gamma).

In units in which the training data has mean 0 and variance 1 (h observations' worth of prior, δ² = ``LEAST_SPREAD``):

    σ² ~ IG(1 + h/2, (h + δ²)/2),   μ | σ² ~ N(0, σ²/h).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import lgamma, log, pi
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.sequences.model.emissions.emission import (
    Asked,
    Codes,
    LogDensities,
    Observations,
    check_strength,
    numbers_of_shape,
)
from kinfolk.sequences.model.emissions.exponential_family import ExponentialFamily
from kinfolk.sequences.model.emissions.predictive import LARGEST, NUMBERS, number_cells

# Where states show but one value each, the posterior of h would otherwise run to zero and the density to infinity.
LEAST_SPREAD = 1e-4
# Spread relative to the numbers' size that is but rounding.
_ROUNDING = 1e-13
_LOG_2_PI = log(2.0 * pi)


class _Posterior(NamedTuple):
    """Normal–inverse-Gamma parameters of each entry, κ, m, a and b."""

    weight: Floats
    mean: Floats
    shape: Floats
    rate: Floats


@dataclass(frozen=True, eq=False)
class GaussianDiagonal(ExponentialFamily):
    """Independent Gaussian entries; a missing entry is left out, the others of its step are not.

    Statistics are n, Σz and Σz² of every entry (three rows laid out flat), parameters the means and then the precisions
    1/σ², all of the standardised entries z = (x − centre)/scale; densities are those of x.

    The prior expects the variance of the whole data in a state, whatever h; the smaller h, the more it leaves to the
    data, and the smaller a state's variance typically is (for h = 0.3 the median is a fifth of the data's).

    Parameters
    ----------
    centre : ndarray of shape (width,)
        Where the prior's mean is, in the data's units.
    scale : ndarray of shape (width,)
        The prior's standard deviation, in the data's units. An entry with scale 0 is left out: it is always ``centre``.
    strength : float, default=0.3
        h, how many observations the prior counts for.

    Examples
    --------
    >>> emission = GaussianDiagonal(np.array([20.0]), np.array([5.0]), strength=1.0)
    >>> degrees = (np.array([[15.0], [14.0], [np.nan], [26.0]]),)
    >>> statistics = emission.statistics(degrees, np.array([0, 0, 0, 1]), n_states=2)
    >>> statistics
    array([[ 2.  , -2.2 ,  2.44],
           [ 1.  ,  1.2 ,  1.44]])
    >>> rng = np.random.default_rng(0)
    >>> [means] = emission.means(emission.draw_parameters(100 * statistics, rng))
    >>> means.round().tolist()
    [[15.0], [26.0]]
    """

    centre: Floats
    scale: Floats
    strength: float = 0.3

    reads: ClassVar[Literal["numbers"]] = "numbers"

    @classmethod
    def made_for(cls, steps: NDArray[Any], strength: float, asked: Asked) -> Self:
        """A prior with the mean and the spread of each column."""
        return cls(*centre_and_scale(np.asarray(steps, dtype=np.float64)), strength)

    def plain(self) -> dict[str, Any]:
        """Centre and scale."""
        return {"centre": self.centre.tolist(), "scale": self.scale.tolist()}

    @classmethod
    def from_plain(cls, about: Mapping[str, Any], width: int, asked: Asked, strength: float) -> Self:
        """A prior with a saved centre and scale."""
        centre, scale = (numbers_of_shape(about[name], (width,)) for name in ("centre", "scale"))
        if (scale < 0.0).any():
            raise ValueError("a scale of its numbers is below zero")
        return cls(centre, scale, strength)

    def __post_init__(self) -> None:
        check_strength(self.strength)

    @property
    def width(self) -> int:
        """How many entries a step has."""
        return len(self.centre)

    @property
    def n_statistics(self) -> int:
        """How many statistics a state has: three for each entry."""
        return 3 * self.width

    @property
    def n_parameters(self) -> int:
        """How many parameters a state has: two for each entry."""
        return 2 * self.width

    def with_strength(self, strength: float) -> Self:
        """The same entries with another h."""
        return replace(self, strength=float(strength))

    def step_statistics(self, observations: Observations) -> Floats:
        """1, z and z² of each entry that is there."""
        z, is_there = self._standardised(observations)
        out = np.empty((len(z), self.n_statistics))
        out[:, : self.width] = is_there
        out[:, self.width : 2 * self.width] = z
        np.multiply(z, z, out=out[:, 2 * self.width :])
        return out

    def natural_parameters(self, parameters: Floats) -> Floats:
        """½ log τ/2π − log s − ½τμ², τμ and −½τ, where τ is the precision of z and s the scale."""
        mean, precision = parameters[..., : self.width], parameters[..., self.width :]
        return self._natural(np.log(precision), precision, precision * mean, precision * mean * mean)

    def expected_natural_parameters(self, statistics: Floats) -> Floats:
        """The same, with E log τ = ψ(a) − log b, E τ = a/b, E τμ = m a/b and E τμ² = 1/κ + m² a/b."""
        from scipy.special import digamma

        q = self._posterior(statistics)
        precision = q.shape / q.rate
        log_precision = digamma(q.shape) - np.log(q.rate)
        return self._natural(log_precision, precision, precision * q.mean, 1.0 / q.weight + precision * q.mean**2)

    def draw_parameters(self, statistics: Floats, rng: np.random.Generator) -> Floats:
        """Draw precisions from Gamma(a, rate b), then means from N(m, 1/κτ)."""
        return _drawn(self._posterior(statistics), rng)

    def log_predictive_densities(self, statistics: Floats, observations: Observations) -> LogDensities:
        """Log densities of Student's t with 2a degrees of freedom, location m and squared scale b(κ + 1)/aκ."""
        from scipy.special import gammaln

        from kinfolk.sequences.model.emissions.kernels import log_student

        q = self._posterior(statistics)
        spread = 2.0 * q.rate * (q.weight + 1.0) / q.weight
        grown = gammaln(q.shape + 0.5) - gammaln(q.shape) - 0.5 * np.log(pi * spread) - self._log_scale
        z, is_there = self._standardised(observations)
        rows = log_student(z, is_there, q.mean, q.shape + 0.5, 1.0 / spread, grown)
        return LogDensities(rows, np.arange(len(z)))

    @property
    def blocks(self) -> tuple[int, int, int, int]:
        """Numbers apart."""
        return NUMBERS, self.width, 0, 2

    def cells(self, statistics: Floats, strength: Floats) -> Floats:
        """κ, m and the rate of each number."""
        q = _posterior(statistics, strength[..., None])
        return number_cells(q.weight, q.mean, q.rate)

    def draw_known(self, cells: Floats, rng: np.random.Generator) -> Floats:
        """Draw precisions, then means."""
        weight, mean, twice_rate, _ = np.split(cells, 4, axis=-1)
        return _drawn(_Posterior(weight, mean, 1.0 + 0.5 * weight, 0.5 * twice_rate), rng)

    def entries(self, observations: Observations) -> tuple[Floats, Floats]:
        """What is there of each step, and its numbers in standard units."""
        z, is_there = self._standardised(observations)
        there = is_there.astype(np.float64)
        return np.concatenate([there, z.clip(-LARGEST, LARGEST)], axis=1), -there @ (self._log_scale + 0.5 * log(pi))

    def log_marginal(self, statistics: Floats) -> Floats:
        """Log density of the entries, of each log Γ(a)b₀^a₀√κ₀ / Γ(a₀)b^a√κ − n log s√2π."""
        from scipy.special import gammaln

        n = statistics[..., : self.width]
        q = self._posterior(statistics)
        grown = gammaln(q.shape) - q.shape * np.log(q.rate) - 0.5 * np.log(q.weight)
        # The same of the prior, which all entries have in common.
        shape, rate = 1.0 + 0.5 * self.strength, 0.5 * (self.strength + LEAST_SPREAD)
        grown -= lgamma(shape) - shape * log(rate) - 0.5 * log(self.strength)
        return np.asarray((grown - n * (0.5 * _LOG_2_PI + self._log_scale)).sum(axis=-1))

    def draw_steps(self, parameters: Floats, states: Codes, rng: np.random.Generator) -> NDArray[np.generic]:
        """Draw every entry of each step."""
        mean, precision = parameters[states, : self.width], parameters[states, self.width :]
        z = mean + rng.standard_normal(mean.shape) / np.sqrt(precision)
        return np.asarray(self.centre + self.scale * z)

    def means(self, parameters: Floats) -> tuple[Floats, ...]:
        """The states' means."""
        return (self.centre + self.scale * parameters[..., : self.width],)

    def mean_squares(self, parameters: Floats) -> tuple[Floats, ...]:
        """Squared means and variances."""
        (mean,) = self.means(parameters)
        return (mean**2 + self.scale**2 / parameters[..., self.width :],)

    @cached_property
    def _log_scale(self) -> Floats:
        return np.log(np.where(self.scale > 0.0, self.scale, 1.0))

    def _standardised(self, observations: Observations) -> tuple[Floats, NDArray[np.bool_]]:
        """Entries in standard units, zero where there is none, and which of them are there."""
        x = np.asarray(observations[0], dtype=np.float64)
        varies = self.scale > 0.0
        z = (x - self.centre) / np.where(varies, self.scale, 1.0)
        is_there = np.isfinite(z) & varies
        z[~is_there] = 0.0
        return z, is_there

    def _posterior(self, statistics: Floats) -> _Posterior:
        return _posterior(statistics, self.strength)

    def _natural(self, log_precision: Floats, precision: Floats, linear: Floats, quadratic: Floats) -> Floats:
        constant = 0.5 * (log_precision - _LOG_2_PI - quadratic) - self._log_scale
        return np.concatenate([constant, linear, -0.5 * precision], axis=-1)


def _posterior(statistics: Floats, strength: Floats | float) -> _Posterior:
    n, total, squares = np.split(statistics, 3, axis=-1)
    weight = strength + n
    mean = total / weight
    # Written with κ instead of n, b is above the prior's to the last bit.
    rate = 0.5 * (strength + LEAST_SPREAD + np.maximum(squares - total * mean, 0.0))
    return _Posterior(weight, mean, 1.0 + 0.5 * weight, rate)


def _drawn(q: _Posterior, rng: np.random.Generator) -> Floats:
    precision = rng.standard_gamma(q.shape) / q.rate
    mean = q.mean + rng.standard_normal(q.mean.shape) / np.sqrt(q.weight * precision)
    return np.concatenate([mean, precision], axis=-1)


def centre_and_scale(numbers: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each column; a column that does not vary has scale 0, an empty one centre NaN."""
    is_there = ~np.isnan(numbers)
    n = is_there.sum(axis=0)
    filled = np.where(is_there, numbers, 0.0)
    # Divided by their size first, so that squares of large numbers do not overflow.
    size = np.abs(filled).max(axis=0, initial=0.0)
    unit = np.where(size > 0.0, size, 1.0)
    mean = (filled / unit).sum(axis=0) / np.maximum(n, 1)
    gaps = np.where(is_there, filled / unit - mean, 0.0)
    scale = np.sqrt((gaps**2).sum(axis=0) / np.maximum(n, 1))
    return np.where(n > 0, mean * unit, np.nan), np.where(scale > _ROUNDING, scale * unit, 0.0)
