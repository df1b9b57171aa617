"""Yes or no in each of several columns, independent given the state: θ ~ Beta(h, h), as for two symbols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
from kinfolk.sequences.model.emissions.predictive import BINARY


@dataclass(frozen=True)
class Bernoulli(ExponentialFamily):
    """Entries that are 0 or 1 (or False and True); a missing entry is left out, the others of its step are not.

    The model of each column is that of a categorical one with two symbols, but columns make one channel together, so
    that hundreds of them cost products of matrices, and what is expected of one is a number: how probable 1 is.

    Statistics are how often each entry was 1, and then 0; parameters log θ and log (1 − θ) of each, since a share drawn
    under a small h may be too close to 0 or 1 for a float.

    Parameters
    ----------
    width : int
        How many entries a step has.
    strength : float, default=0.3
        h, the pseudo-count of either.

    Examples
    --------
    >>> emission = Bernoulli(2, strength=1.0)
    >>> answers = (np.array([[1.0, 0.0], [1.0, np.nan], [0.0, 0.0]]),)
    >>> statistics = emission.statistics(answers, np.array([0, 0, 0]), n_states=1)
    >>> statistics
    array([[2., 0., 1., 2.]])

    Its probability is 1/2 · 2/3 · 1/4 of the first entry, times 1/2 · 2/3 of the second.

    >>> bool(np.isclose(np.exp(emission.log_marginal(statistics)[0]), 1 / 36))
    True
    """

    width: int
    strength: float = 0.3

    reads: ClassVar[Literal["numbers"]] = "numbers"
    takes_booleans: ClassVar[bool] = True

    @classmethod
    def made_for(cls, steps: NDArray[Any], strength: float, asked: Asked) -> Self:
        """So many columns."""
        return cls(steps.shape[1], strength)

    @classmethod
    def check(cls, numbers: Floats, label: str) -> None:
        """Refuse a number that is neither 0 nor 1."""
        wrong = ~np.isin(numbers, (0.0, 1.0)) & ~np.isnan(numbers)
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(
                f"{label}, row {row}: {numbers[row]:g} is neither 0 nor 1, which emission='bernoulli' needs"
            )

    def plain(self) -> dict[str, Any]:
        """Nothing beside the number of columns, which an archive knows."""
        return {}

    @classmethod
    def from_plain(cls, about: Mapping[str, Any], width: int, asked: Asked, strength: float) -> Self:
        """So many columns."""
        return cls(width, strength)

    def __post_init__(self) -> None:
        check_strength(self.strength)

    @property
    def n_statistics(self) -> int:
        """How many statistics a state has: two for each entry."""
        return 2 * self.width

    @property
    def n_parameters(self) -> int:
        """How many parameters a state has: two for each entry."""
        return 2 * self.width

    def with_strength(self, strength: float) -> Self:
        """The same columns with another h."""
        return replace(self, strength=float(strength))

    def step_statistics(self, observations: Observations) -> Floats:
        """Whether each entry is 1, and whether it is 0."""
        x = np.asarray(observations[0], dtype=np.float64)
        return np.concatenate([x == 1.0, x == 0.0], axis=1).astype(np.float64)

    def natural_parameters(self, parameters: Floats) -> Floats:
        """Log θ and log (1 − θ)."""
        return parameters

    def expected_natural_parameters(self, statistics: Floats) -> Floats:
        """Their means under the Beta posterior, ψ(h + n₁) − ψ(2h + n) and ψ(h + n₀) − ψ(2h + n)."""
        from scipy.special import digamma

        return np.asarray(digamma(self.strength + statistics) - digamma(2.0 * self.strength + self._totals(statistics)))

    def draw_parameters(self, statistics: Floats, rng: np.random.Generator) -> Floats:
        """Draw logarithms of shares from the Beta posterior, in log space throughout."""
        return self.draw_known(np.asarray(self.strength + statistics), rng)

    def draw_known(self, cells: Floats, rng: np.random.Generator) -> Floats:
        """Draw logarithms of shares."""
        weights = log_gamma_draws(cells, rng)
        both = np.logaddexp(weights[..., : self.width], weights[..., self.width :])
        return np.asarray(weights - np.concatenate([both, both], axis=-1))

    def log_predictive_densities(self, statistics: Floats, observations: Observations) -> LogDensities:
        """Log means of θ and 1 − θ."""
        total = 2.0 * self.strength + self._totals(statistics)
        return self._of_steps(np.log(self.strength + statistics) - np.log(total), observations)

    @property
    def blocks(self) -> tuple[int, int, int, int]:
        """Columns of yes or no."""
        return BINARY, self.width, 0, 2

    def cells(self, statistics: Floats, strength: Floats) -> Floats:
        """Pseudo-counts of yes and of no."""
        return np.asarray(strength[..., None] + statistics)

    def entries(self, observations: Observations) -> tuple[Floats, Floats]:
        """Whether each entry is 1, and whether it is 0."""
        entries = self.step_statistics(observations)
        return entries, np.zeros(len(entries))

    def log_marginal(self, statistics: Floats) -> Floats:
        """Log probability of the entries in their order, Γ(h + n₁)Γ(h + n₀)Γ(2h) / Γ(2h + n)Γ(h)² of each."""
        from scipy.special import gammaln

        each = gammaln(self.strength + statistics) - gammaln(self.strength)
        total = self._totals(statistics)[..., : self.width]
        together = gammaln(2.0 * self.strength + total) - gammaln(2.0 * self.strength)
        return np.asarray(each.sum(axis=-1) - together.sum(axis=-1))

    def draw_steps(self, parameters: Floats, states: Codes, rng: np.random.Generator) -> NDArray[np.generic]:
        """Draw every entry of each step."""
        share = np.exp(parameters[states, : self.width])
        return np.asarray(rng.random(share.shape) < share, dtype=np.float64)

    def means(self, parameters: Floats) -> tuple[Floats, ...]:
        """How probable 1 is."""
        return (np.exp(parameters[..., : self.width]),)

    def told(self, parameters: Floats, place: int) -> list[str]:
        """How often a column is one."""
        return [f"{mean:.0%}" for mean in self.means(parameters)[0][:, place].tolist()]

    def mean_squares(self, parameters: Floats) -> tuple[Floats, ...]:
        """The same, because 0 and 1 are their own squares."""
        return self.means(parameters)

    def _totals(self, statistics: Floats) -> Floats:
        """How often each entry was there, in either half."""
        there = statistics[..., : self.width] + statistics[..., self.width :]
        return np.concatenate([there, there], axis=-1)
