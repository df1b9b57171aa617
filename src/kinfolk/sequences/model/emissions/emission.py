"""What every family of emissions can do: H, θ ~ H and p(o | θ) of the nDP-iHMM (Ni et al. 2007, eq. 4 and 6).

A family is conjugate: what it learns of a state's parameters θ from steps is a row of *statistics* that add up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats

Codes = NDArray[np.int64]
# The arrays of a channel each.
Observations = tuple[NDArray[np.generic], ...]
# For each channel the last steps of each sequence (n_sequences, order, width), or None where steps have no memory.
Past = tuple[Floats | None, ...]


class Densities(NamedTuple):
    """How probable each step's observation is in each state, in the form that filters want.

    Steps with the same observation may share a row.

    Attributes
    ----------
    likelihood : ndarray of shape (n_rows, n_states)
        Densities, each row divided by its largest.
    log_scale : ndarray of shape (n_rows,)
        Logarithm of what a row was divided by.
    row : int64 ndarray of shape (n_steps,)
        The row of each step.
    """

    likelihood: Floats
    log_scale: Floats
    row: Codes


class LogDensities(NamedTuple):
    """Log densities: those of a row (n_rows, n_states), and the row of each step."""

    rows: Floats
    row: Codes


class MomentsAhead(NamedTuple):
    """Of a channel's next observations, each (n_sequences, n_steps, width); symbols have shares and no squares."""

    mean: Floats
    mean_square: Floats | None


class Asked(NamedTuple):
    """What is known of a channel beside its data: its name for sentences, its symbols, and how far it looks back."""

    name: str
    n_codes: int | None = None
    order: int = 0


class Emission(ABC):
    """A conjugate family of observations and its prior; a value that is never changed.

    Statistics of a state are S numbers, its parameters P; leading axes of either are states, clusters or whatever the
    caller likes. ``observations`` is a tuple with one array a channel: codes or counts, int64 (n_steps,) with −1 for a
    missing one, or numbers, float64 (n_steps, width) with NaN. What is missing is left out.

    Attributes
    ----------
    strength : float
        The weight h of the prior, above zero: how many observations it counts for.
    """

    strength: float

    @property
    @abstractmethod
    def is_conjugate(self) -> bool:
        """Whether `log_marginal` is that of the observations alone, which moves need that integrate θ out of it."""

    def weighed(
        self, observations: Observations, states: Codes, parameters: Floats, rng: np.random.Generator | None = None
    ) -> Observations:
        """Observations with what makes the family conjugate, drawn given states and parameters, or else expected."""
        return observations

    def at_hand(self, observations: Observations) -> Observations:
        """The same observations, with what is found of them alone where they will be asked of again and again."""
        return observations

    @property
    @abstractmethod
    def n_statistics(self) -> int:
        """How many statistics S a state has."""

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """How many parameters P a state has."""

    @abstractmethod
    def with_strength(self, strength: float) -> Self:
        """The same family with another strength of its prior."""

    @abstractmethod
    def statistics(self, observations: Observations, states: Codes, n_states: int) -> Floats:
        """Statistics (n_states, S) of the steps in each state."""

    @abstractmethod
    def expected_statistics(
        self, observations: Observations, posteriors: Floats, given: Floats | None = None
    ) -> Floats:
        """Statistics (n_states, S) of steps that are in each state with a probability (n_steps, n_states).

        A family that is not conjugate by itself weighs steps by the q that statistics ``given`` before make.
        """

    @abstractmethod
    def draw_parameters(self, statistics: Floats, rng: np.random.Generator) -> Floats:
        """Draw parameters (…, P) from their posterior given statistics (…, S); zeros give the prior."""

    @abstractmethod
    def log_densities(self, parameters: Floats, observations: Observations) -> LogDensities:
        """Log p(o | θ) of each step in each state, given parameters (n_states, P)."""

    @abstractmethod
    def expected_log_densities(self, statistics: Floats, observations: Observations) -> LogDensities:
        """E_q log p(o | θ), q the posterior given statistics (n_states, S)."""

    @abstractmethod
    def log_predictive_densities(self, statistics: Floats, observations: Observations) -> LogDensities:
        """Log E_q p(o | θ): each step as one more observation of each state with statistics (n_states, S)."""

    @abstractmethod
    def log_marginal(self, statistics: Floats) -> Floats:
        """Log probability (…) of the observations behind statistics (…, S), parameters integrated out; exact."""

    @abstractmethod
    def expected_log_likelihood(self, statistics_of_q: Floats, statistics: Floats) -> Floats:
        """E_q log p(data) of the data behind ``statistics``, q the posterior given ``statistics_of_q``; each (…, S)."""

    @abstractmethod
    def draw_observations(
        self, parameters: Floats, states: Codes, rng: np.random.Generator, past: Past | None = None
    ) -> Observations:
        """Draw what the states of a sequence (n_steps,) show, given parameters (n_states, P).

        Of several sequences (n_sequences, n_steps), steps come back end to end. They go on from the `past` of a
        sequence, or begin.
        """

    @abstractmethod
    def past(self, observations: Observations, bounds: Codes) -> Past:
        """What comes after each sequence ``bounds[i]:bounds[i + 1]`` hangs on, beside its states."""

    @abstractmethod
    def means(self, parameters: Floats) -> tuple[Floats, ...]:
        """The mean observation (…, width) of each channel in the data's units; of codes, the share of each code."""

    @abstractmethod
    def mean_squares(self, parameters: Floats) -> tuple[Floats | None, ...]:
        """The mean square (…, width) of each channel's entries in the data's units; None of codes, which have none."""

    @abstractmethod
    def moments_ahead(
        self, parameters: Floats, transitions: Floats, states: Floats, n_steps: int, past: Past
    ) -> tuple[MomentsAhead, ...]:
        """Means and mean squares of each channel after sequences whose last states have probabilities (n_sequences, L).

        ``transitions`` (L, L) are those between states. Steps ahead of one another hang together, so this is asked of
        the emission and not of its `means`.
        """

    @property
    @abstractmethod
    def channels(self) -> tuple[Family, ...]:
        """The family of each channel."""

    def code_counts(self, statistics: Floats) -> Floats:
        """Of statistics (…, S) the counts of codes (…, C), of all channels that count them, side by side."""
        is_count = [np.full(family.n_statistics, family.counts_codes) for family in self.channels]
        return statistics[..., np.concatenate(is_count)]

    def statistics_to_sum_out(self, statistics: Floats) -> Floats:
        """Of statistics (…, S) those of all channels whose θ is summed out otherwise than as shares of codes."""
        is_own = [np.full(family.n_statistics, family.sums_out) for family in self.channels]
        return statistics[..., np.concatenate(is_own)]

    def with_shares(self, parameters: Floats, codes: Floats) -> Floats:
        """Parameters (L, P) in which shares of codes are those of pseudo-counts (L, C), as `code_counts` lays them."""
        parts, first, here = [], 0, 0
        for family in self.channels:
            own = parameters[..., here : here + family.n_parameters]
            if family.counts_codes:
                counts = codes[..., first : first + family.n_statistics]
                known = np.log(counts) - np.log(counts.sum(axis=-1, keepdims=True))
                own = np.concatenate([known, own[..., family.n_statistics :]], axis=-1)
                first += family.n_statistics
            parts.append(own)
            here += family.n_parameters
        return np.concatenate(parts, axis=-1)

    def divergence(self, statistics: Floats) -> Floats:
        """KL(q ‖ prior) of shape (…), q the posterior given statistics (…, S).

        By Bayes' rule log q(θ)/p(θ) = log p(data | θ) − log p(data), for fractional statistics too.
        """
        return np.asarray(self.expected_log_likelihood(statistics, statistics) - self.log_marginal(statistics))

    def expected(self, statistics: Floats, observations: Observations) -> tuple[LogDensities, float]:
        """`expected_log_densities` of the steps, and the `divergence` of all states together."""
        return self.expected_log_densities(statistics, observations), float(self.divergence(statistics).sum())


class Family(Emission):
    """An emission of one channel; `kinfolk.sequences.model.emissions.families` has the table of them.

    Learning imports scipy and kernels where it needs them: with numpy alone, a family is made from plain data, and
    tells log densities, means and draws of observations.

    Attributes
    ----------
    reads : {"symbols", "counts", "numbers"}
        What its columns hold. Columns of numbers make one channel; each of the others makes one of its own.
    looks_back : bool
        Whether a step hangs on those before it: then its name may end in how many ("ar-2"), and an array of its
        observations has these beside each step (`with_past`).
    takes_booleans : bool
        Whether False and True are numbers to it, 0 and 1.
    counts_codes : bool
        Whether statistics are counts of codes with shares θ ~ Dir(h, …, h), which answers can sum out.
    usual_strength : float
        The strength with which learning starts, unless channels differ in it.
    """

    reads: ClassVar[Literal["symbols", "counts", "numbers"]]
    looks_back: ClassVar[bool] = False
    takes_booleans: ClassVar[bool] = False
    counts_codes: ClassVar[bool] = False
    is_conjugate: ClassVar[bool] = True
    # Much larger makes states of a wide codebook costly, so that too many are shared.
    usual_strength: ClassVar[float] = 0.3

    @property
    def sums_out(self) -> bool:
        """Whether answers sum θ out by the family's statistics, where it does not count codes."""
        return self.is_conjugate and not self.counts_codes

    @property
    def blocks(self) -> tuple[int, int, int, int]:
        """Where θ is summed out, its kind, and numbers of blocks, regressors and entries of a block (`predictive`)."""
        raise NotImplementedError

    def cells(self, statistics: Floats, strength: Floats) -> Floats:
        """What states with statistics (…, S) and priors of strength (…) know of θ, as `predictive` has it (…, C)."""
        raise NotImplementedError

    def draw_known(self, cells: Floats, rng: np.random.Generator) -> Floats:
        """Draw parameters (…, P) by what states know (…, C), as `draw_parameters` does by statistics."""
        raise NotImplementedError

    def entries(self, observations: Observations) -> tuple[Floats, Floats]:
        """Entries (n_steps, V) of steps for `predictive`, and what it leaves out of log densities (n_steps,)."""
        raise NotImplementedError

    @classmethod
    @abstractmethod
    def made_for(cls, steps: NDArray[Any], strength: float, asked: Asked) -> Self:
        """The family with a prior in the units of a channel's data."""

    @classmethod
    def check(cls, numbers: Floats, label: str) -> None:
        """Refuse a value of a column of numbers that it cannot show, in a sentence with the column's label."""

    @abstractmethod
    def plain(self) -> dict[str, Any]:
        """Its fields but the strength, for an archive."""

    @classmethod
    @abstractmethod
    def from_plain(cls, about: Mapping[str, Any], width: int, asked: Asked, strength: float) -> Self:
        """The family of so many columns that `plain` gave; an error where it cannot be."""

    def told(self, parameters: Floats, place: int) -> list[str]:
        """What states with parameters (n_states, P) show in one of its columns of numbers, in a few signs each."""
        mean, square = self.means(parameters)[0][:, place], self.mean_squares(parameters)[0]
        assert square is not None
        deviation = np.sqrt(np.maximum(square[:, place] - mean**2, 0.0))
        return [f"{m:.3g} ± {d:.2g}" for m, d in zip(mean.tolist(), deviation.tolist(), strict=True)]

    @property
    def channels(self) -> tuple[Family, ...]:
        """Itself alone."""
        return (self,)

    def draw_observations(
        self, parameters: Floats, states: Codes, rng: np.random.Generator, past: Past | None = None
    ) -> Observations:
        """Draw what states show, each step by itself."""
        return (self.draw_steps(parameters, states.ravel(), rng),)

    def draw_steps(self, parameters: Floats, states: Codes, rng: np.random.Generator) -> NDArray[np.generic]:
        """Draw an observation of each state, where steps have no memory."""
        raise NotImplementedError

    def past(self, observations: Observations, bounds: Codes) -> Past:
        """Nothing, where steps have no memory."""
        return (None,)

    def moments_ahead(
        self, parameters: Floats, transitions: Floats, states: Floats, n_steps: int, past: Past
    ) -> tuple[MomentsAhead, ...]:
        """The states' `means` and `mean_squares`, weighted by how probable each state is so far ahead."""
        ahead = np.empty((len(states), n_steps, states.shape[1]))
        for step in range(n_steps):
            states = ahead[:, step] = states @ transitions
        [mean], [square] = self.means(parameters), self.mean_squares(parameters)
        return (MomentsAhead(ahead @ mean, None if square is None else ahead @ square),)


def with_past(steps: Floats, lengths: Codes, order: int) -> Floats:
    """Each step with the ``order`` steps of its sequence before it, the last one first; NaN where there are none.

    Examples
    --------
    >>> with_past(np.array([[1.0], [2.0], [3.0], [9.0]]), np.array([3, 1]), order=1).tolist()
    [[1.0, nan], [2.0, 1.0], [3.0, 2.0], [9.0, nan]]
    """
    n_steps, width = steps.shape
    out = np.full((n_steps, (order + 1) * width), np.nan)
    out[:, :width] = steps
    place = np.arange(n_steps) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    for lag in range(1, order + 1):
        late = np.flatnonzero(place >= lag)
        out[late, lag * width : (lag + 1) * width] = steps[late - lag]
    return out


def numbers_of_shape(value: Any, shape: tuple[int, ...]) -> Floats:
    """Numbers of an archive as an array, if they are finite and have a shape."""
    array = np.asarray(value, dtype=np.float64)
    if array.size == 0 and 0 in shape:
        return np.zeros(shape)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(f"numbers of its emissions have shape {array.shape}, not {shape}, or are not finite")
    return array


def check_strength(strength: float) -> None:
    """Refuse a strength that is no weight."""
    if not 0.0 < strength < np.inf:
        raise ValueError(f"strength={strength} was given, but the weight of a prior is a finite number above zero.")
