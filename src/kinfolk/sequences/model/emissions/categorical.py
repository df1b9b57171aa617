"""Codes, θ ~ Dir(h, …, h): the codebook emissions of the nDP-iHMM (Ni, Carin and Dunson 2007, section 4)."""

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
    Family,
    LogDensities,
    Observations,
    check_strength,
)


@dataclass(frozen=True)
class Categorical(Family):
    """Codes 0 … n_codes − 1 with a Dirichlet prior; any code above is one that the codebook does not know.

    Statistics are counts of the codes. Parameters are logarithms, because a share drawn under a small h is often too
    small for a float: of each code's share θ, then of the share of an unknown code,

        h / (n h + N + h),        n codes, N steps of the state,

    which is what the state would expect of one more code of the codebook that it has never shown. It is that mean in
    every draw, and stands beside the shares, which add up to one without it: known codes are as probable as if no other
    could be, and log p(o) of an unknown one is finite however small the draw of its share might have been. A state
    learns nothing from an unknown code. Whoever expects new codes counts one more, shared by all of them, in
    ``n_codes``.

    Parameters
    ----------
    n_codes : int
        How many codes there are.
    strength : float, default=0.3
        h. Over a wide codebook h = 1 makes each state costly, so that states are shared that should not be.

    Examples
    --------
    >>> emission = Categorical(3, strength=1.0)
    >>> codes = (np.array([0, 0, 1, -1, 2]),)
    >>> counts = emission.statistics(codes, np.array([0, 0, 0, 1, 1]), n_states=2)
    >>> counts
    array([[2., 1., 0.],
           [0., 0., 1.]])

    The probability of 0, 0, 1 in this order is 1/3 · 2/4 · 1/5.

    >>> bool(np.isclose(np.exp(emission.log_marginal(counts)[0]), 1 / 30))
    True
    """

    n_codes: int
    strength: float = 0.3

    reads: ClassVar[Literal["symbols"]] = "symbols"
    counts_codes: ClassVar[bool] = True

    @classmethod
    def made_for(cls, steps: NDArray[Any], strength: float, asked: Asked) -> Self:
        """A codebook of so many codes, or of those seen."""
        seen, n_codes = int(steps.max(initial=0)) + 1, asked.n_codes
        if n_codes is not None and seen > n_codes:
            raise ValueError(
                f"{asked.name} has the code {seen - 1}, but n_codes={n_codes} allows codes up to {n_codes - 1}."
            )
        return cls(seen if n_codes is None else int(n_codes), strength)

    def plain(self) -> dict[str, Any]:
        """The number of codes."""
        return {"n_codes": self.n_codes}

    @classmethod
    def from_plain(cls, about: Mapping[str, Any], width: int, asked: Asked, strength: float) -> Self:
        """A codebook of all symbols."""
        if asked.n_codes is None:
            raise ValueError("a channel of symbols has none")
        return cls(asked.n_codes, strength)

    def __post_init__(self) -> None:
        check_strength(self.strength)
        if self.n_codes < 1:
            raise ValueError(f"n_codes={self.n_codes} was given, but a codebook has at least one code.")

    @property
    def n_statistics(self) -> int:
        """How many statistics a state has: a count of each code."""
        return self.n_codes

    @property
    def n_parameters(self) -> int:
        """How many parameters a state has: one for each code, and one for all that are unknown."""
        return self.n_codes + 1

    def with_strength(self, strength: float) -> Self:
        """The same codebook with another h."""
        return replace(self, strength=float(strength))

    def statistics(self, observations: Observations, states: Codes, n_states: int) -> Floats:
        """Counts (n_states, n_codes). O(steps)."""
        from kinfolk.sequences.model.emissions.kernels import count_codes

        return np.asarray(count_codes(observations[0], states, n_states, self.n_codes))

    def expected_statistics(
        self, observations: Observations, posteriors: Floats, given: Floats | None = None
    ) -> Floats:
        """Expected counts (n_states, n_codes). O(steps · states)."""
        from kinfolk.sequences.model.emissions.kernels import expected_codes

        return np.asarray(expected_codes(observations[0], posteriors, self.n_codes))

    def draw_parameters(self, statistics: Floats, rng: np.random.Generator) -> Floats:
        """Draw log shares from the Dirichlet posterior, in log space throughout."""
        weights = log_gamma_draws(statistics + self.strength, rng)
        shares = weights - np.logaddexp.reduce(weights, axis=-1, keepdims=True)
        return np.concatenate([shares, self._log_unknown(statistics.sum(axis=-1, keepdims=True))], axis=-1)

    def log_densities(self, parameters: Floats, observations: Observations) -> LogDensities:
        """Log shares of the steps' codes; a row for each code, for unknown ones and for missing ones."""
        return self._of_codes(parameters, observations)

    def expected_log_densities(self, statistics: Floats, observations: Observations) -> LogDensities:
        """E_q log θ of the steps' codes."""
        return self._of_codes(self._expected_parameters(statistics), observations)

    def expected(self, statistics: Floats, observations: Observations) -> tuple[LogDensities, float]:
        """Both from E_q log θ, computed once."""
        parameters = self._expected_parameters(statistics)
        divergence = (statistics * parameters[..., :-1]).sum() - self.log_marginal(statistics).sum()
        return self._of_codes(parameters, observations), float(divergence)

    def log_predictive_densities(self, statistics: Floats, observations: Observations) -> LogDensities:
        """Log E_q θ of the steps' codes."""
        n_steps = statistics.sum(axis=-1, keepdims=True)
        known = np.log(statistics + self.strength) - np.log(n_steps + self.n_codes * self.strength)
        return self._of_codes(np.concatenate([known, self._log_unknown(n_steps)], axis=-1), observations)

    def log_marginal(self, statistics: Floats) -> Floats:
        """Log probability of the codes in their order. O(cells that are not empty)."""
        from kinfolk.sequences.model.emissions.kernels import log_marginals_of_counts

        counts = np.ascontiguousarray(statistics, dtype=np.float64)
        out = log_marginals_of_counts(counts.reshape(-1, self.n_codes), self.strength)
        return np.asarray(out.reshape(counts.shape[:-1]))

    def expected_log_likelihood(self, statistics_of_q: Floats, statistics: Floats) -> Floats:
        """E_q Σ n log θ."""
        return np.asarray((statistics * self._expected_parameters(statistics_of_q)[..., :-1]).sum(axis=-1))

    def draw_steps(self, parameters: Floats, states: Codes, rng: np.random.Generator) -> NDArray[np.generic]:
        """Draw known codes, by inverting their cumulative shares."""
        reached = np.exp(parameters[:, : self.n_codes]).cumsum(axis=1)
        # The last code takes what rounding leaves of one.
        drawn = (rng.random(len(states))[:, None] >= reached[states, :-1]).sum(axis=1)
        return np.asarray(drawn, dtype=np.int64)

    def means(self, parameters: Floats) -> tuple[Floats, ...]:
        """The shares of the codes."""
        return (np.exp(parameters[..., : self.n_codes]),)

    def mean_squares(self, parameters: Floats) -> tuple[None, ...]:
        """None: codes are no numbers."""
        return (None,)

    def _expected_parameters(self, statistics: Floats) -> Floats:
        """E_q of the parameters."""
        from scipy.special import digamma

        n_steps = statistics.sum(axis=-1, keepdims=True)
        parameters = np.empty((*statistics.shape[:-1], self.n_codes + 1))
        known = parameters[..., :-1]
        np.subtract(digamma(statistics + self.strength), digamma(n_steps + self.n_codes * self.strength), out=known)
        parameters[..., -1:] = self._log_unknown(n_steps)
        return parameters

    def _log_unknown(self, n_steps: Floats) -> Floats:
        """Log share of an unknown code in states with so many steps."""
        return np.asarray(np.log(self.strength) - np.log(n_steps + (self.n_codes + 1) * self.strength))

    def _of_codes(self, log_shares: Floats, observations: Observations) -> LogDensities:
        codes = observations[0]
        rows = np.zeros((self.n_codes + 2, len(log_shares)))
        rows[:-1] = log_shares.T
        row = np.minimum(codes, self.n_codes).astype(np.int64, copy=False)
        return LogDensities(rows, np.where(row < 0, self.n_codes + 1, row))
