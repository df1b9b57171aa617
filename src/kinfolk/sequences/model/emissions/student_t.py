"""Numbers with outliers: Student's t with ν = 4 given the state, a Gaussian whose precision is multiplied by τ_t.

    x_t | τ_t ~ N(μ, σ²/τ_t),   τ_t ~ Gamma(ν/2, rate ν/2),

with (μ, σ²) from the prior of the diagonal Gaussian, in units of the data's median and quartiles, which outliers do not
move (K. Lange, R. Little and J. Taylor, J. Amer. Statist. Assoc. 84, 1989). States are drawn with τ integrated out, τ
only to draw (μ, σ²) given it, for which the model is conjugate. In a variational fit τ_t hangs on the state:

    q(τ_t | s_t = l) = Gamma((ν + 1)/2, (ν + d_tl)/2),   d_tl = E_q (x_t − μ_l)²/σ_l²

is the best, and makes of the expected log density that of a t in which d stands for the squared distance.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lgamma, log, pi
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.sequences.model.emissions.emission import Asked, Codes, Emission, LogDensities, Observations
from kinfolk.sequences.model.emissions.gaussian_diagonal import (
    LEAST_SPREAD,
    GaussianDiagonal,
    _Posterior,
    centre_and_scale,
)

# ν: few enough that an outlier costs little, enough for a variance.
FREEDOM = 4.0
_LOG_2_PI = log(2.0 * pi)
# Log of (ν/2)^{ν/2} Γ((ν + 1)/2) / Γ(ν/2), what τ's density has that hangs on no x.
_GROWN = 0.5 * FREEDOM * log(0.5 * FREEDOM) + lgamma(0.5 * (FREEDOM + 1.0)) - lgamma(0.5 * FREEDOM)
# Quartiles of a normal distribution are so many standard deviations apart.
_QUARTILES_APART = 1.3489795003921634


@dataclass(frozen=True, eq=False)
class StudentT(GaussianDiagonal):
    """Independent entries with Student's t; a missing entry is left out, the others of its step are not.

    Parameters are the locations and then 1/σ² of the standardised entries z. Statistics are n, Στ, Στz, Στz² and, so
    that bounds add up, Σ E log p(τ) − log q(τ) + ½ log τ; τ is 1 unless observations were `weighed`, and then stands
    beside the entries, and after it the last term.

    Parameters
    ----------
    centre : ndarray of shape (width,)
        Where the prior's location is, in the data's units.
    scale : ndarray of shape (width,)
        The prior's scale, in the data's units. An entry with scale 0 is left out: it is always ``centre``.
    strength : float, default=0.3
        h, how many observations the prior counts for.

    Examples
    --------
    One number far away hardly moves where the state is:

    >>> degrees = np.append(np.linspace(14.0, 16.0, 21), 900.0)[:, None]
    >>> emission = StudentT.made_for(degrees, 0.3, Asked("degrees"))
    >>> states, rng = np.zeros(22, dtype=np.int64), np.random.default_rng(0)
    >>> parameters = emission.draw_parameters(emission.statistics((degrees,), states, 1), rng)
    >>> for _ in range(10):
    ...     weighed = emission.weighed((degrees,), states, parameters, rng)
    ...     parameters = emission.draw_parameters(emission.statistics(weighed, states, 1), rng)
    >>> emission.means(parameters)[0].round().tolist()
    [[15.0]]
    """

    is_conjugate: ClassVar[bool] = False

    @classmethod
    def made_for(cls, steps: NDArray[Any], strength: float, asked: Asked) -> Self:
        """A prior with the median of each column, and the spread that its quartiles tell."""
        numbers = np.asarray(steps, dtype=np.float64)
        centre, scale = centre_and_scale(numbers)
        for column in np.flatnonzero(scale > 0.0):
            there = numbers[~np.isnan(numbers[:, column]), column]
            low, middle, high = np.quantile(there, [0.25, 0.5, 0.75])
            # Where half of the numbers are the same, quartiles tell nothing.
            if high > low:
                centre[column], scale[column] = middle, (high - low) / _QUARTILES_APART
        return cls(centre, scale, strength)

    @property
    def n_statistics(self) -> int:
        """How many statistics a state has: five for each entry."""
        return 5 * self.width

    def weighed(
        self, observations: Observations, states: Codes, parameters: Floats, rng: np.random.Generator | None = None
    ) -> Observations:
        """Entries with τ beside them, drawn given their states' parameters, or else as it is expected to be."""
        z, is_there = self._standardised(observations)
        location, precision = parameters[states, : self.width], parameters[states, self.width :]
        distance = precision * (z - location) ** 2
        # Before anything is drawn, there are no parameters.
        distance = np.where(is_there & np.isfinite(distance), distance, 1.0)
        expected = (FREEDOM + 1.0) / (FREEDOM + distance)
        if rng is None:
            weight, constant = expected, _constant(distance)
        else:
            weight = rng.standard_gamma(0.5 * (FREEDOM + 1.0), distance.shape) / (0.5 * (FREEDOM + distance))
            constant = np.zeros_like(weight)
        return (np.concatenate([np.asarray(observations[0], dtype=np.float64), weight, constant], axis=1),)

    def step_statistics(self, observations: Observations) -> Floats:
        """1, τ, τz, τz² and the last term of each entry that is there."""
        array, width = np.asarray(observations[0], dtype=np.float64), self.width
        z, is_there = self._standardised((array[:, :width],))
        if array.shape[1] == width:
            weight, constant = is_there.astype(np.float64), is_there * _constant_of_prior()
        else:
            weight, constant = is_there * array[:, width : 2 * width], is_there * array[:, 2 * width :]
        return np.concatenate([is_there, weight, weight * z, weight * z * z, constant], axis=1)

    def expected_statistics(
        self, observations: Observations, posteriors: Floats, given: Floats | None = None
    ) -> Floats:
        """Sums over steps, with the τ that is expected of a step in each state by ``given`` statistics."""
        if given is None:
            return super().expected_statistics(observations, posteriors)
        z, is_there = self._standardised(observations)
        q = self._posterior(given)
        out = np.empty((posteriors.shape[1], 5, self.width))
        for d in range(self.width):
            distance = self._distances(q, z, d)
            there = posteriors * is_there[:, d : d + 1]
            weighted = there * ((FREEDOM + 1.0) / (FREEDOM + distance))
            out[:, 0, d], out[:, 1, d] = there.sum(axis=0), weighted.sum(axis=0)
            out[:, 2, d], out[:, 3, d] = z[:, d] @ weighted, z[:, d] ** 2 @ weighted
            out[:, 4, d] = (there * _constant(distance)).sum(axis=0)
        return out.reshape(len(out), -1)

    def natural_parameters(self, parameters: Floats) -> Floats:
        """Of z given τ: ½ log 1/2πσ² − log s, −½μ²/σ², μ/σ², −½/σ² and 1, where s is the scale."""
        location, precision = parameters[..., : self.width], parameters[..., self.width :]
        return self._weighted_natural(np.log(precision), precision, location, precision * location**2)

    def expected_natural_parameters(self, statistics: Floats) -> Floats:
        """Their means under q."""
        from scipy.special import digamma

        q = self._posterior(statistics)
        precision = q.shape / q.rate
        log_precision = digamma(q.shape) - np.log(q.rate)
        return self._weighted_natural(log_precision, precision, q.mean, 1.0 / q.weight + precision * q.mean**2)

    def log_densities(self, parameters: Floats, observations: Observations) -> LogDensities:
        """Log densities of Student's t with ν degrees of freedom."""
        location, precision = parameters[:, : self.width], parameters[:, self.width :]
        z, is_there = self._standardised(observations)
        rows = np.zeros((len(z), len(location)))
        for d in range(self.width):
            distance = precision[:, d] * (z[:, d : d + 1] - location[:, d]) ** 2
            rows += is_there[:, d : d + 1] * self._log_density(np.log(precision[:, d]), distance, d)
        return LogDensities(rows, np.arange(len(z)))

    def expected_log_densities(self, statistics: Floats, observations: Observations) -> LogDensities:
        """The same with E log 1/σ² and E d, which bounds E_q of the log density from below as far as any q(τ) can."""
        from scipy.special import digamma

        q = self._posterior(statistics)
        log_precision = digamma(q.shape) - np.log(q.rate)
        z, is_there = self._standardised(observations)
        rows = np.zeros((len(z), len(log_precision)))
        for d in range(self.width):
            rows += is_there[:, d : d + 1] * self._log_density(log_precision[:, d], self._distances(q, z, d), d)
        return LogDensities(rows, np.arange(len(z)))

    def expected(self, statistics: Floats, observations: Observations) -> tuple[LogDensities, float]:
        """One after the other."""
        return Emission.expected(self, statistics, observations)

    def log_predictive_densities(self, statistics: Floats, observations: Observations) -> LogDensities:
        """About: Student's t with the fewer of ν and 2a degrees of freedom, and the spread that q's b, a and κ tell."""
        from scipy.special import gammaln

        q = self._posterior(statistics)
        freedom = np.minimum(FREEDOM, 2.0 * q.shape)
        spread = freedom * (q.rate / q.shape) * (1.0 + 1.0 / q.weight)
        power = 0.5 * (freedom + 1.0)
        grown = gammaln(power) - gammaln(0.5 * freedom) - 0.5 * np.log(pi * spread) - self._log_scale
        z, is_there = self._standardised(observations)
        rows = np.zeros((len(z), len(freedom)))
        for d in range(self.width):
            distance = (z[:, d : d + 1] - q.mean[:, d]) ** 2 / spread[:, d]
            rows += is_there[:, d : d + 1] * (grown[:, d] - power[:, d] * np.log1p(distance))
        return LogDensities(rows, np.arange(len(z)))

    def log_marginal(self, statistics: Floats) -> Floats:
        """Log density of the entries given τ; with expected τ, a lower bound on that without."""
        return np.asarray(super().log_marginal(statistics) + statistics[..., 4 * self.width :].sum(axis=-1))

    def draw_steps(self, parameters: Floats, states: Codes, rng: np.random.Generator) -> NDArray[np.generic]:
        """Draw every entry of each step."""
        location, precision = parameters[states, : self.width], parameters[states, self.width :]
        z = location + rng.standard_t(FREEDOM, location.shape) / np.sqrt(precision)
        return np.asarray(self.centre + self.scale * z)

    def mean_squares(self, parameters: Floats) -> tuple[Floats, ...]:
        """Squared means and variances, which are ν/(ν − 2) times σ²."""
        (mean,) = self.means(parameters)
        return (mean**2 + FREEDOM / (FREEDOM - 2.0) * self.scale**2 / parameters[..., self.width :],)

    def _posterior(self, statistics: Floats) -> _Posterior:
        n, weights, total, squares, _ = (statistics[..., i * self.width : (i + 1) * self.width] for i in range(5))
        weight = self.strength + weights
        mean = total / weight
        rate = 0.5 * (self.strength + LEAST_SPREAD + np.maximum(squares - total * mean, 0.0))
        return _Posterior(weight, mean, 1.0 + 0.5 * (self.strength + n), rate)

    def _weighted_natural(
        self, log_precision: Floats, precision: Floats, location: Floats, quadratic: Floats
    ) -> Floats:
        constant = 0.5 * (log_precision - _LOG_2_PI) - self._log_scale
        ones = np.ones_like(precision)
        return np.concatenate([constant, -0.5 * quadratic, precision * location, -0.5 * precision, ones], axis=-1)

    def _distances(self, q: _Posterior, z: Floats, column: int) -> Floats:
        """E d of each step (rows) in each state, in one column."""
        gaps = (z[:, column : column + 1] - q.mean[:, column]) ** 2
        return np.asarray(1.0 / q.weight[:, column] + (q.shape / q.rate)[:, column] * gaps)

    def _log_density(self, log_precision: Floats, distance: Floats, column: int) -> Floats:
        constant = _GROWN + 0.5 * (log_precision - _LOG_2_PI) - self._log_scale[column]
        return np.asarray(constant - 0.5 * (FREEDOM + 1.0) * np.log(0.5 * (FREEDOM + distance)))


def _constant(distance: Floats) -> Floats:
    """E log p(τ) − log q(τ) + ½ log τ under the best q(τ) at a distance."""
    weight = (FREEDOM + 1.0) / (FREEDOM + distance)
    return np.asarray(_GROWN - 0.5 * (FREEDOM + 1.0) * np.log(0.5 * (FREEDOM + distance)) + 0.5 * weight * distance)


def _constant_of_prior() -> float:
    """The same where q(τ) is the prior, under which τ is 1 on the average."""
    from scipy.special import digamma

    return float(0.5 * (digamma(0.5 * FREEDOM) - log(0.5 * FREEDOM)))
