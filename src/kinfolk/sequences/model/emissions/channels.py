"""Several channels side by side: independent given the state, each of its own family, all with one strength h."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Self

import numpy as np

from kinfolk.maths.arrays import Floats
from kinfolk.sequences.model.emissions.emission import (
    Codes,
    Emission,
    Family,
    LogDensities,
    MomentsAhead,
    Observations,
    Past,
)


@dataclass(frozen=True, eq=False)
class Channels(Emission):
    """Channels that are independent given the state.

    Statistics and parameters of the channels lie one after the other; log densities and log marginals add up, so that
    who uses an emission need not know how many channels it has.

    Parameters
    ----------
    emissions : tuple of Family
        The family of each channel, all with the same strength.

    Examples
    --------
    >>> from kinfolk.sequences.model.emissions.categorical import Categorical
    >>> from kinfolk.sequences.model.emissions.poisson import Poisson
    >>> weather_and_calls = Channels((Categorical(2), Poisson(mean=4.0)))
    >>> observations = (np.array([0, 1, 1]), np.array([3, 9, -1]))
    >>> weather_and_calls.statistics(observations, np.array([0, 1, 1]), n_states=2)[:, :4]
    array([[1., 0., 1., 3.],
           [0., 2., 1., 9.]])
    """

    emissions: tuple[Family, ...]

    def __post_init__(self) -> None:
        if len({emission.strength for emission in self.emissions}) != 1:
            given = [emission.strength for emission in self.emissions]
            raise ValueError(f"Channels with strengths {given} were given, but they have one strength together.")

    @property
    def channels(self) -> tuple[Family, ...]:
        """The family of each channel."""
        return self.emissions

    @property
    def strength(self) -> float:  # type: ignore[override]
        """The weight of every channel's prior."""
        return self.emissions[0].strength

    @property
    def is_conjugate(self) -> bool:
        """Whether all channels are."""
        return all(emission.is_conjugate for emission in self.emissions)

    def weighed(
        self, observations: Observations, states: Codes, parameters: Floats, rng: np.random.Generator | None = None
    ) -> Observations:
        """Each channel's own."""
        pairs = zip(self._split(observations), self._parameters_of_channels(parameters), strict=True)
        return tuple(array for (emission, own), theta in pairs for array in emission.weighed(own, states, theta, rng))

    @property
    def n_statistics(self) -> int:
        """How many statistics a state has over all channels."""
        return sum(emission.n_statistics for emission in self.emissions)

    @property
    def n_parameters(self) -> int:
        """How many parameters a state has over all channels."""
        return sum(emission.n_parameters for emission in self.emissions)

    def with_strength(self, strength: float) -> Self:
        """The same channels, all with another strength."""
        return replace(self, emissions=tuple(emission.with_strength(strength) for emission in self.emissions))

    def statistics(self, observations: Observations, states: Codes, n_states: int) -> Floats:
        """Statistics of the channels side by side."""
        return np.concatenate(
            [emission.statistics(own, states, n_states) for emission, own in self._split(observations)], axis=1
        )

    def expected_statistics(
        self, observations: Observations, posteriors: Floats, given: Floats | None = None
    ) -> Floats:
        """Expected statistics of the channels side by side."""
        known = [None] * len(self.emissions) if given is None else self._statistics_of_channels(given)
        each = zip(self._split(observations), known, strict=True)
        return np.concatenate(
            [emission.expected_statistics(own, posteriors, before) for (emission, own), before in each], axis=1
        )

    def draw_parameters(self, statistics: Floats, rng: np.random.Generator) -> Floats:
        """Draw the parameters of each channel."""
        pairs = zip(self.emissions, self._statistics_of_channels(statistics), strict=True)
        return np.concatenate([emission.draw_parameters(own, rng) for emission, own in pairs], axis=-1)

    def log_densities(self, parameters: Floats, observations: Observations) -> LogDensities:
        """Sum of the channels' log densities."""
        pairs = zip(self._split(observations), self._parameters_of_channels(parameters), strict=True)
        return _added([emission.log_densities(theta, own) for (emission, own), theta in pairs])

    def expected_log_densities(self, statistics: Floats, observations: Observations) -> LogDensities:
        """Sum of the channels' expected log densities."""
        pairs = zip(self._split(observations), self._statistics_of_channels(statistics), strict=True)
        return _added([emission.expected_log_densities(known, own) for (emission, own), known in pairs])

    def log_predictive_densities(self, statistics: Floats, observations: Observations) -> LogDensities:
        """Sum of the channels' log predictive densities."""
        pairs = zip(self._split(observations), self._statistics_of_channels(statistics), strict=True)
        return _added([emission.log_predictive_densities(known, own) for (emission, own), known in pairs])

    def log_marginal(self, statistics: Floats) -> Floats:
        """Sum of the channels' log marginals."""
        pairs = zip(self.emissions, self._statistics_of_channels(statistics), strict=True)
        return np.asarray(sum(emission.log_marginal(own) for emission, own in pairs))

    def expected_log_likelihood(self, statistics_of_q: Floats, statistics: Floats) -> Floats:
        """Sum of the channels' expected log likelihoods."""
        of_q, of_data = self._statistics_of_channels(statistics_of_q), self._statistics_of_channels(statistics)
        triples = zip(self.emissions, of_q, of_data, strict=True)
        return np.asarray(sum(emission.expected_log_likelihood(q, data) for emission, q, data in triples))

    def draw_observations(
        self, parameters: Floats, states: Codes, rng: np.random.Generator, past: Past | None = None
    ) -> Observations:
        """Draw what each channel shows."""
        pasts: list[Past | None] = [None] * len(self.emissions) if past is None else [(own,) for own in past]
        each = zip(self.emissions, self._parameters_of_channels(parameters), pasts, strict=True)
        return tuple(
            array for emission, theta, own in each for array in emission.draw_observations(theta, states, rng, own)
        )

    def past(self, observations: Observations, bounds: Codes) -> Past:
        """What each channel hangs on."""
        return tuple(past for emission, own in self._split(observations) for past in emission.past(own, bounds))

    def moments_ahead(
        self, parameters: Floats, transitions: Floats, states: Floats, n_steps: int, past: Past
    ) -> tuple[MomentsAhead, ...]:
        """Moments of each channel."""
        each = zip(self.emissions, self._parameters_of_channels(parameters), past, strict=True)
        return tuple(
            moments
            for emission, theta, own in each
            for moments in emission.moments_ahead(theta, transitions, states, n_steps, (own,))
        )

    def means(self, parameters: Floats) -> tuple[Floats, ...]:
        """The mean observation of each channel."""
        pairs = zip(self.emissions, self._parameters_of_channels(parameters), strict=True)
        return tuple(mean for emission, theta in pairs for mean in emission.means(theta))

    def mean_squares(self, parameters: Floats) -> tuple[Floats | None, ...]:
        """The mean square of each channel."""
        pairs = zip(self.emissions, self._parameters_of_channels(parameters), strict=True)
        return tuple(square for emission, theta in pairs for square in emission.mean_squares(theta))

    def _split(self, observations: Observations) -> list[tuple[Emission, Observations]]:
        return [(emission, (array,)) for emission, array in zip(self.emissions, observations, strict=True)]

    def _statistics_of_channels(self, statistics: Floats) -> list[Floats]:
        widths = [emission.n_statistics for emission in self.emissions]
        return list(np.split(statistics, list(accumulate(widths))[:-1], axis=-1))

    def _parameters_of_channels(self, parameters: Floats) -> list[Floats]:
        widths = [emission.n_parameters for emission in self.emissions]
        return list(np.split(parameters, list(accumulate(widths))[:-1], axis=-1))


def _added(channels: list[LogDensities]) -> LogDensities:
    """Log densities of independent channels together, of each step by itself."""
    total = channels[0].rows[channels[0].row]
    for channel in channels[1:]:
        total += channel.rows[channel.row]
    return LogDensities(total, np.arange(len(total)))
