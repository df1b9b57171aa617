"""Counts that are Poisson given the state, rate λ ~ Gamma(h, mean m of the training data)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import lgamma
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.maths.gamma_draws import log_gamma_draws
from kinfolk.sequences.model.emissions.emission import (
    Asked,
    Codes,
    LogDensities,
    Observations,
    check_strength,
)
from kinfolk.sequences.model.emissions.exponential_family import ExponentialFamily
from kinfolk.sequences.model.emissions.predictive import COUNT
from kinfolk.tasks.schema import is_count


@dataclass(frozen=True)
class Poisson(ExponentialFamily):
    """Counts 0, 1, 2, … with a rate in each state; −1 is a missing one.

    Statistics are n, Σx and Σ log x!. The parameter is log λ, because a rate drawn under a small h may be too small for
    a float.

    Parameters
    ----------
    mean : float
        m, the rate that the prior expects.
    strength : float, default=0.3
        h, the shape of the Gamma prior.

    Examples
    --------
    With h = 1 a state's first count is geometric, P(x) = (1/3) (2/3)^x for m = 2.

    >>> emission = Poisson(mean=2.0, strength=1.0)
    >>> statistics = emission.statistics((np.array([3, -1]),), np.array([0, 0]), n_states=1)
    >>> bool(np.isclose(np.exp(emission.log_marginal(statistics)[0]), 8 / 81))
    True
    """

    mean: float
    strength: float = 0.3

    reads: ClassVar[Literal["counts"]] = "counts"

    @classmethod
    def made_for(cls, steps: NDArray[Any], strength: float, asked: Asked) -> Self:
        """A prior that expects the mean of the counts."""
        counts = steps[steps >= 0]
        # Were they all zero, a mean of zero would leave no room for any other count.
        return cls(max(float(counts.sum()), 1.0) / max(len(counts), 1), strength)

    @classmethod
    def check(cls, numbers: Floats, label: str) -> None:
        """Refuse a number that is not a count."""
        wrong = ~(is_count(numbers) | np.isnan(numbers))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(f"{label}, row {row}: {numbers[row]:g} is not a count, which is a whole number from 0")

    def plain(self) -> dict[str, Any]:
        """The mean."""
        return {"mean": float(self.mean)}

    @classmethod
    def from_plain(cls, about: Mapping[str, Any], width: int, asked: Asked, strength: float) -> Self:
        """A prior with a saved mean."""
        return cls(float(about["mean"]), strength)

    def __post_init__(self) -> None:
        check_strength(self.strength)
        if not 0.0 < self.mean < np.inf:
            raise ValueError(f"mean={self.mean} was given, but the mean of a rate is a finite number above zero.")

    @property
    def n_statistics(self) -> int:
        """How many statistics a state has."""
        return 3

    @property
    def n_parameters(self) -> int:
        """How many parameters a state has."""
        return 1

    def with_strength(self, strength: float) -> Self:
        """The same mean with another h."""
        return replace(self, strength=float(strength))

    def step_statistics(self, observations: Observations) -> Floats:
        """1, x and log x! of each count."""
        counts = np.asarray(observations[0], dtype=np.float64)
        is_there = counts >= 0.0
        counts = np.where(is_there, counts, 0.0)
        return np.column_stack([is_there, counts, _log_factorials(counts)])

    def natural_parameters(self, parameters: Floats) -> Floats:
        """−λ, log λ and −1."""
        return np.concatenate([-np.exp(parameters), parameters, np.full_like(parameters, -1.0)], axis=-1)

    def expected_natural_parameters(self, statistics: Floats) -> Floats:
        """−a/b, ψ(a) − log b and −1, where a and b are shape and rate of the posterior."""
        from scipy.special import digamma

        shape, rate = self._posterior(statistics)
        return np.stack([-shape / rate, digamma(shape) - np.log(rate), np.full_like(shape, -1.0)], axis=-1)

    def draw_parameters(self, statistics: Floats, rng: np.random.Generator) -> Floats:
        """Draw log rates from the Gamma posterior."""
        return self.draw_known(np.stack(self._posterior(statistics), axis=-1), rng)

    def log_predictive_densities(self, statistics: Floats, observations: Observations) -> LogDensities:
        """Log probabilities of the negative binomial with a and b; a row for each count that is seen."""
        from scipy.special import gammaln

        shape, rate = self._posterior(statistics)
        seen, row = _distinct(observations)
        x = np.maximum(seen, 0.0)[:, None]
        rows = (
            gammaln(shape + x) - gammaln(shape) - gammaln(x + 1.0) - shape * np.log1p(1.0 / rate) - x * np.log1p(rate)
        )
        rows[seen < 0.0] = 0.0
        return LogDensities(rows, row)

    @property
    def blocks(self) -> tuple[int, int, int, int]:
        """One count."""
        return COUNT, 1, 0, 3

    def cells(self, statistics: Floats, strength: Floats) -> Floats:
        """Shape and rate of the posterior."""
        return np.stack([strength + statistics[..., 1], strength / self.mean + statistics[..., 0]], axis=-1)

    def draw_known(self, cells: Floats, rng: np.random.Generator) -> Floats:
        """Draw log rates."""
        return np.asarray(log_gamma_draws(cells[..., 0], rng) - np.log(cells[..., 1]))[..., None]

    def entries(self, observations: Observations) -> tuple[Floats, Floats]:
        """1, x and log x!."""
        entries = self.step_statistics(observations)
        return entries, -entries[:, 2]

    def log_marginal(self, statistics: Floats) -> Floats:
        """Log probability of the counts in their order, log Γ(a)b₀^a₀ / Γ(a₀)b^a − Σ log x!."""
        from scipy.special import gammaln

        shape, rate = self._posterior(statistics)
        prior_shape, prior_rate = self._posterior(np.zeros(3))
        grown = gammaln(shape) - gammaln(prior_shape) + prior_shape * np.log(prior_rate) - shape * np.log(rate)
        return np.asarray(grown - statistics[..., 2])

    def draw_steps(self, parameters: Floats, states: Codes, rng: np.random.Generator) -> NDArray[np.generic]:
        """Draw a count of each step."""
        return np.asarray(rng.poisson(np.exp(parameters[states, 0])), dtype=np.int64)

    def means(self, parameters: Floats) -> tuple[Floats, ...]:
        """The rates."""
        return (np.exp(parameters),)

    def mean_squares(self, parameters: Floats) -> tuple[Floats, ...]:
        """The variance of a Poisson count is its mean."""
        (mean,) = self.means(parameters)
        return (mean**2 + mean,)

    def _of_steps(self, natural: Floats, observations: Observations) -> LogDensities:
        seen, row = _distinct(observations)
        return LogDensities(self.step_statistics((seen,)) @ natural.T, row)

    def _posterior(self, statistics: Floats) -> tuple[Floats, Floats]:
        return self.strength + statistics[..., 1], self.strength / self.mean + statistics[..., 0]


def _distinct(observations: Observations) -> tuple[Floats, Codes]:
    """The counts that are seen, and which of them each step shows."""
    seen, row = np.unique(np.asarray(observations[0], dtype=np.float64), return_inverse=True)
    return seen, row.astype(np.int64, copy=False)


def _log_factorials(counts: Floats) -> Floats:
    """Log x! of each count, the logarithm of each different one computed once."""
    seen, place = np.unique(counts, return_inverse=True)
    return np.array([lgamma(count + 1.0) for count in seen.tolist()])[place.reshape(counts.shape)]
