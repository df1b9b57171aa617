"""What comes next: the distribution of the observations after the end of a sequence, and new sequences.

A draw counts by how well it explains what the sequence has shown so far, because that tells about the draw:

    p(o_{T+h} | o_{1…T}) = Σ_d w_d Σ_l p_d(s_{T+h} = l | o_{1…T}) p(o_{T+h} | θ_dl),        w_d ∝ p_d(o_{1…T}).

Where transitions and θ are summed out, particles take the place of draws (`particles`): they count by what they know of
the sequence, and have the rows and the shares of codes that they have come to. What θ is of numbers and counts is drawn
once more in states that they have put steps of it in, by what they know there, and elsewhere is as it was drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.sequences.answers.new_tasks import Empty, base_of_a_new_task, draw_rows, joining_weights, pseudo_counts
from kinfolk.sequences.answers.particles import Crowd
from kinfolk.sequences.answers.prediction import Kept, groups_of
from kinfolk.sequences.model.draw import Draw
from kinfolk.sequences.model.emissions.emission import Emission, Past
from kinfolk.sequences.model.emissions.summed_out import SummedOut
from kinfolk.sequences.model.sequences import Sequences

# The likeliest symbols that a forecast shows of itself.
_SYMBOLS_SHOWN = 3
# Particles that a forecast is made of; of more of them, those on an even grid.
_MOST_WAYS = 1000


class Forecast(NamedTuple):
    """What may come after a sequence, for each column of the table.

    Attributes
    ----------
    probability : dict
        For every column of symbols, by its name or place: a mapping from symbols to probabilities, each an array
        (n_sequences, n_steps).
    mean, deviation : dict
        For every column of numbers: expected values and standard deviations, (n_sequences, n_steps).
    samples : ndarray of shape (n_sequences, n_samples, n_steps) or (n_sequences, n_samples, n_steps, n_columns)
        Draws of the future, in the user's own symbols and numbers.
    quantiles : dict
        For every column of numbers: quantiles of its draws, (n_sequences, n_steps, n_levels).
    levels : tuple of float
        Which quantiles they are: between 0.05 and 0.95 lie nine in ten.
    """

    probability: dict[Any, dict[Any, Floats]]
    mean: dict[Any, Floats]
    deviation: dict[Any, Floats]
    samples: NDArray[Any]
    quantiles: dict[Any, Floats]
    levels: tuple[float, ...]

    def __repr__(self) -> str:
        n_sequences, n_draws, n_steps = self.samples.shape[:3]
        of = f"{n_sequences} sequence{'s' * (n_sequences != 1)}, {n_steps} step{'s' * (n_steps != 1)} ahead"
        text = f"<Forecast of {of}, {n_draws} draws"
        if n_sequences == 0:
            return text + ">"
        told = []
        for column, shares in self.probability.items():
            first = {symbol: float(share[0, 0]) for symbol, share in shares.items()}
            likely = sorted(first, key=first.__getitem__, reverse=True)[:_SYMBOLS_SHOWN]
            told.append(f"{column}: " + ", ".join(f"{symbol!r} {first[symbol]:.2f}" for symbol in likely))
        told += [
            f"{column}: {mean[0, 0]:.4g} ± {self.deviation[column][0, 0]:.2g}" for column, mean in self.mean.items()
        ]
        return f"{text}; next in the first: {'; '.join(told)}>"


class Moments(NamedTuple):
    """Of a channel's next observations: their means, or the probabilities of symbols, and standard deviations.

    Both are (sequences, steps ahead, width); symbols have no standard deviation.
    """

    mean: Floats
    deviation: Floats | None


class Outlook(NamedTuple):
    """How the next observations are distributed: moments of each channel, and draws of what may come.

    ``paths`` has an array for each channel, (sequences × steps ahead × draws of the future) steps long.
    """

    moments: tuple[Moments, ...]
    paths: tuple[NDArray[Any], ...]


class _Ahead(NamedTuple):
    """What one way for the task to be says of a batch of sequences."""

    log_weight: Floats
    states: Floats
    transitions: Floats
    parameters: Floats


def look_ahead(kept: Kept, sequences: Sequences, n_steps: int, n_paths: int, rng: np.random.Generator) -> Outlook:
    """Forecast every sequence; groups are those of ``prediction``."""
    emission = kept.emission
    moments: list[list[Moments]] = []
    paths: list[tuple[NDArray[Any], ...]] = []
    for group in groups_of(sequences):
        for some, ways in _ways_of_group(kept, group, sequences.between(group, group + 1)):
            past = emission.past(some.observations, some.bounds)
            log_weights = np.array([way.log_weight for way in ways])
            weights = np.exp(log_weights - log_weights.max(axis=0))
            weights /= weights.sum(axis=0)
            moments.append(_moments(emission, ways, weights, n_steps, past))
            # Nothing drawn, for the right shape where there are no sequences.
            paths.append(emission.draw_observations(ways[0].parameters, np.empty(0, dtype=np.int64), rng))
            paths += _paths(emission, ways, weights, n_steps, n_paths, past, rng)
    by_channel = [
        Moments(
            np.concatenate([part.mean for part in parts]),
            None if parts[0].deviation is None else np.concatenate([part.deviation for part in parts]),
        )
        for parts in zip(*moments, strict=True)
    ]
    together = tuple(np.concatenate(parts) for parts in zip(*paths, strict=True))
    return Outlook(tuple(by_channel), together)


def _ways_of_group(kept: Kept, group: int, sequences: Sequences) -> Iterator[tuple[Sequences, list[_Ahead]]]:
    """Batches of the sequences of a group, and ways for the task to be: of particles, those of each sequence."""
    if not kept.sums_out or not sequences.n_sequences:
        yield sequences, _ways(kept, group, sequences)
        return
    starts, each = kept.particles(group), sequences.one_by_one()
    parameters = np.concatenate([start.parameters for start in starts])
    ends = kept.filters.each(lambda i: kept.follow(starts, each[i].observations), range(len(each)))
    for one, crowd in zip(each, ends, strict=True):
        yield one, _ways_of_particles(kept.emission, parameters, crowd, starts[0].summed, starts[0].of_forecasts())


def _ways_of_particles(
    emission: Emission, parameters: Floats, crowd: Crowd, summed: SummedOut, rng: np.random.Generator
) -> list[_Ahead]:
    """What particles at the end of a sequence expect, each by the rows and the θ that it has come to.

    Further ahead than a step, these are held as they are.
    """
    n_states = crowd.rows.shape[2]
    worth = np.exp(crowd.log_weights - crowd.log_weights.max())
    points = (np.arange(_MOST_WAYS) + 0.5) / _MOST_WAYS * worth.sum()
    some = np.arange(len(worth)) if len(worth) <= _MOST_WAYS else np.searchsorted(worth.cumsum(), points)
    chosen, times = np.unique(np.minimum(some, len(worth) - 1), return_counts=True)
    log_weights = crowd.log_weights[chosen] if len(worth) <= _MOST_WAYS else np.log(times)
    thetas, touched = parameters[crowd.origin[chosen]], crowd.touched[chosen]
    if summed.families:
        thetas[touched] = summed.with_known(emission, thetas[touched], crowd.cells[chosen][touched], rng)
    ways = []
    for place, log_weight, known in zip(chosen.tolist(), log_weights.tolist(), thetas, strict=True):
        rows = crowd.rows[place] / crowd.rows[place].sum(axis=1, keepdims=True)
        states = np.zeros((1, n_states))
        states[0, crowd.row[place] - 1] = 1.0
        theta = emission.with_shares(known, crowd.codes[place])
        ways.append(_Ahead(np.array([log_weight]), states, rows, theta))
    return ways


def _ways(kept: Kept, group: int, sequences: Sequences) -> list[_Ahead]:
    """Ways for the task to be, each of all sequences: draws as they are."""
    log_shares = np.log(kept.shares)
    last = sequences.bounds[1:] - 1
    ways = []
    for place, draw in enumerate(kept.draws):
        if group > 0:
            task = group - 1
            options = [(0.0, draw.transitions[task], draw.parameters[draw.cluster[task]])]
        else:
            options = [(way.log_weight, way.transitions, way.parameters) for way in kept.ways(place)]
        for log_weight, transitions, parameters in options:
            densities = kept.filters.densities(parameters, sequences)
            found, posteriors = kept.filters.smooth(densities, sequences, transitions)
            # Of the last step, what is known from all observations is what is known from those up to it.
            ways.append(_Ahead(log_shares[place] + log_weight + found, posteriors[last], transitions, parameters))
    return ways


def _moments(emission: Emission, ways: Sequence[_Ahead], weights: Floats, n_steps: int, past: Past) -> list[Moments]:
    """Means and deviations, by the law of total variance, of every channel."""
    n_channels = len(emission.channels)
    first: list[Any] = [0.0] * n_channels
    second: list[Any] = [None] * n_channels
    for way, weight in zip(ways, weights, strict=True):
        ahead = emission.moments_ahead(way.parameters, way.transitions[1:], way.states, n_steps, past)
        for channel, (mean, square) in enumerate(ahead):
            first[channel] = first[channel] + weight[:, None, None] * mean
            if square is not None:
                before = 0.0 if second[channel] is None else second[channel]
                second[channel] = before + weight[:, None, None] * square
    return [
        Moments(mean, None if square is None else np.sqrt(np.maximum(square - mean**2, 0.0)))
        for mean, square in zip(first, second, strict=True)
    ]


def _paths(
    emission: Emission,
    ways: Sequence[_Ahead],
    weights: Floats,
    n_steps: int,
    n_paths: int,
    past: Past,
    rng: np.random.Generator,
) -> list[tuple[NDArray[Any], ...]]:
    """Draw futures of each sequence: a way for the task to be, then states, then what they show; all at once."""
    drawn = []
    for sequence in range(weights.shape[1]):
        chosen = rng.choice(len(ways), size=n_paths, p=weights[:, sequence])
        used, of_path = np.unique(chosen, return_inverse=True)
        reached = np.cumsum([ways[which].transitions for which in used.tolist()], axis=2)
        here = np.cumsum([ways[which].states[sequence] for which in used.tolist()], axis=1)[of_path]
        last, states = _picks(here, rng), np.empty((n_paths, n_steps), dtype=np.int64)
        for step in range(n_steps):
            last = states[:, step] = _picks(reached[of_path, last + 1], rng)
        # Of all ways side by side, each has the states of its own.
        parameters = np.concatenate([ways[which].parameters for which in used.tolist()])
        states += of_path[:, None] * reached.shape[2]
        own = tuple(None if steps is None else np.repeat(steps[[sequence]], n_paths, axis=0) for steps in past)
        drawn.append(emission.draw_observations(parameters, states, rng, own))
    return drawn


def _picks(reached: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """A place by each row of cumulated probabilities."""
    return np.asarray((rng.random((len(reached), 1)) * reached[:, -1:] >= reached).sum(axis=1))


def draw_path(
    transitions: Floats, n_steps: int, rng: np.random.Generator, after: int | None = None
) -> NDArray[np.int64]:
    """Draw hidden states, from the start of a sequence or after a state.

    Examples
    --------
    >>> around = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> draw_path(around, 4, np.random.default_rng(0)).tolist()
    [0, 1, 0, 1]
    """
    states = np.empty(n_steps, dtype=np.int64)
    row = 0 if after is None else after + 1
    for step in range(n_steps):
        states[step] = _pick(transitions[row], rng)
        row = states[step] + 1
    return states


def _pick(probability: Floats, rng: np.random.Generator) -> int:
    reached = np.cumsum(probability)
    return int(np.searchsorted(reached, rng.random() * reached[-1], side="right"))


def draw_sequences(
    kept: Kept, places: Sequence[int], lengths: Sequence[int], rng: np.random.Generator
) -> tuple[tuple[NDArray[Any], ...], NDArray[np.int64]]:
    """New sequences of tasks (−1 for a new one), each from a draw chosen at random: observations and states."""
    observations, paths = [], []
    for task, length in zip(places, lengths, strict=True):
        place = _pick(kept.shares, rng)
        draw = kept.draws[place]
        if task >= 0:
            transitions, parameters = draw.transitions[task], draw.parameters[draw.cluster[task]]
        else:
            joins, alone = joining_weights(draw, kept.room(place))
            cluster = _pick(np.append(joins, alone), rng)
            known = cluster < len(joins)
            base = draw.base_weights[cluster] if known else kept.empty.base_weights[place]
            parameters = draw.parameters[cluster] if known else kept.empty.parameters[place]
            transitions = draw_rows(pseudo_counts(base_of_a_new_task(draw, base, rng), draw.hyper), rng)
        paths.append(draw_path(transitions, length, rng))
        observations.append(kept.emission.draw_observations(parameters, paths[-1], rng))
    together = tuple(np.concatenate(parts) for parts in zip(*observations, strict=True))
    return together, np.concatenate(paths)


def draw_empty_clusters(draws: Sequence[Draw], emission: Emission, rng: np.random.Generator) -> Empty:
    """A cluster that has no task yet for each draw, from the prior with the draw's hyper-parameters."""
    n_states = draws[0].base_weights.shape[1]
    nothing = np.zeros((n_states, emission.n_statistics))
    base = [draw_rows(np.full((1, n_states), draw.hyper.gamma / n_states), rng)[0] for draw in draws]
    parameters = [emission.with_strength(draw.hyper.strength).draw_parameters(nothing, rng) for draw in draws]
    return Empty(np.array(base), np.array(parameters))
