"""Families in which a step's log density is its statistics times natural parameters: log p(o | θ) = t(o)·η(θ).

Sums over steps and densities of all steps in all states are then products of matrices, a block of steps at a time.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.sequences.model.emissions.emission import Codes, Family, LogDensities, Observations

# Numbers in a block of steps' statistics: few enough to stay in the processor's caches.
_BLOCK = 1 << 17
# Numbers of all steps' statistics that are kept while they are asked for again and again.
_MOST_AT_HAND = 1 << 22


class AtHand(tuple[NDArray[Any], ...]):
    """Observations with the statistics of their steps, which were found once."""

    blocks: list[tuple[slice, Floats]]


class ExponentialFamily(Family):
    """An emission of one channel, given by t(o), η(θ) and E_q η(θ)."""

    @abstractmethod
    def step_statistics(self, observations: Observations) -> Floats:
        """t(o) of each step (n_steps, S); zeros for what is missing."""

    @abstractmethod
    def natural_parameters(self, parameters: Floats) -> Floats:
        """η(θ) of shape (…, S), from parameters (…, P)."""

    @abstractmethod
    def expected_natural_parameters(self, statistics: Floats) -> Floats:
        """E_q η(θ) of shape (…, S), q the posterior given statistics (…, S)."""

    def statistics(self, observations: Observations, states: Codes, n_states: int) -> Floats:
        """Sums of t(o) over the steps in each state."""
        from kinfolk.sequences.model.emissions.kernels import add_to_states

        sums = np.zeros((n_states, self.n_statistics))
        for steps, block in self._blocks(observations):
            add_to_states(block, states[steps], sums)
        return sums

    def expected_statistics(
        self, observations: Observations, posteriors: Floats, given: Floats | None = None
    ) -> Floats:
        """Sums of t(o) over steps, weighted by the probability of each state."""
        sums = np.zeros((posteriors.shape[1], self.n_statistics))
        for steps, block in self._blocks(observations):
            sums += posteriors[steps].T @ block
        return sums

    def log_densities(self, parameters: Floats, observations: Observations) -> LogDensities:
        """t(o)·η(θ) of each step in each state."""
        return self._of_steps(self.natural_parameters(parameters), observations)

    def expected_log_densities(self, statistics: Floats, observations: Observations) -> LogDensities:
        """t(o)·E_q η(θ) of each step in each state."""
        return self._of_steps(self.expected_natural_parameters(statistics), observations)

    def expected(self, statistics: Floats, observations: Observations) -> tuple[LogDensities, float]:
        """Both from E_q η(θ), computed once."""
        natural = self.expected_natural_parameters(statistics)
        divergence = (statistics * natural).sum() - self.log_marginal(statistics).sum()
        return self._of_steps(natural, observations), float(divergence)

    def expected_log_likelihood(self, statistics_of_q: Floats, statistics: Floats) -> Floats:
        """The data's statistics times E_q η(θ)."""
        return np.asarray((statistics * self.expected_natural_parameters(statistics_of_q)).sum(axis=-1))

    def _of_steps(self, natural: Floats, observations: Observations) -> LogDensities:
        n_steps = len(observations[0])
        rows = np.empty((n_steps, len(natural)))
        for steps, block in self._blocks(observations):
            np.matmul(block, natural.T, out=rows[steps])
        return LogDensities(rows, np.arange(n_steps))

    def at_hand(self, observations: Observations) -> Observations:
        """The same observations with their steps' statistics, unless these are too many to be kept."""
        if len(observations[0]) * self.n_statistics > _MOST_AT_HAND:
            return observations
        kept = AtHand(observations)
        kept.blocks = list(self._blocks(observations))
        return kept

    def _blocks(self, observations: Observations) -> Iterator[tuple[slice, Floats]]:
        """Statistics of steps, a block at a time."""
        return iter(observations.blocks) if isinstance(observations, AtHand) else self._found_blocks(observations)

    def _found_blocks(self, observations: Observations) -> Iterator[tuple[slice, Floats]]:
        for steps in self._slices(len(observations[0])):
            yield steps, self.step_statistics((observations[0][steps],))

    def _slices(self, n_steps: int) -> Iterator[slice]:
        length = max(_BLOCK // self.n_statistics, 1)
        for start in range(0, n_steps, length):
            yield slice(start, start + length)
