"""What comes next: the distribution of the observations after the end of a sequence, and new sequences.

A draw counts by how well it explains what the sequence has shown so far, because that tells about the draw:

    p(o_{T+h} | o_{1…T}) = Σ_d w_d Σ_l p_d(s_{T+h} = l | o_{1…T}) p(o_{T+h} | θ_dl),        w_d ∝ p_d(o_{1…T}).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from kinfolk.sequences.answers.new_tasks import Empty, draw_rows, joining_weights, pseudo_counts
from kinfolk.sequences.answers.prediction import Kept
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.emissions.channels import Channels
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.emissions.gaussian_diagonal import GaussianDiagonal
from kinfolk.sequences.model.emissions.gaussian_full import GaussianFull
from kinfolk.sequences.model.ndp_ihmm import Draw
from kinfolk.sequences.model.sequences import Sequences
from kinfolk.sequences.model.smoothing import expected_counts

Floats = NDArray[np.float64]


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


def look_ahead(
    kept: Kept, emission: Emission, sequences: Sequences, n_steps: int, n_paths: int, rng: np.random.Generator
) -> Outlook:
    """Forecast every sequence; groups are those of ``prediction``."""
    moments: list[list[Moments]] = []
    paths: list[tuple[NDArray[Any], ...]] = []
    for group in np.flatnonzero(np.diff(sequences.task_bounds)).tolist():
        ways = _ways(kept, emission, group, sequences.between(group, group + 1))
        weights = softmax([way.log_weight for way in ways], axis=0)
        moments.append(_moments(emission, ways, weights, n_steps))
        paths += _paths(emission, ways, weights, n_steps, n_paths, rng)
    by_channel = [
        Moments(
            np.concatenate([part.mean for part in parts]),
            None if parts[0].deviation is None else np.concatenate([part.deviation for part in parts]),
        )
        for parts in zip(*moments, strict=True)
    ]
    together = tuple(np.concatenate(parts) for parts in zip(*paths, strict=True))
    return Outlook(tuple(by_channel), together)


def _ways(kept: Kept, emission: Emission, group: int, sequences: Sequences) -> list[_Ahead]:
    last = sequences.bounds[1:] - 1
    ways = []
    for place, draw in enumerate(kept.draws):
        if group > 0:
            task = group - 1
            options = [(0.0, draw.transitions[task], draw.parameters[draw.cluster[task]])]
        else:
            options = [(way.log_weight, way.transitions, way.parameters) for way in kept.ways(place)]
        for log_weight, transitions, parameters in options:
            densities = emission.densities(parameters, sequences.observations)
            found, _, posteriors = expected_counts(*densities, sequences.bounds, transitions)
            # Of the last step, what is known from all observations is what is known from those up to it.
            ways.append(_Ahead(log_weight + found, posteriors[last], transitions, parameters))
    return ways


def _moments(emission: Emission, ways: Sequence[_Ahead], weights: Floats, n_steps: int) -> list[Moments]:
    """Means and deviations, by the law of total variance, of every channel."""
    families = _families(emission)
    n_sequences = weights.shape[1]
    first: list[Any] = [0.0] * len(families)
    second: list[Any] = [0.0] * len(families)
    for way, weight in zip(ways, weights, strict=True):
        states, ahead = way.states, np.empty((n_sequences, n_steps, way.states.shape[1]))
        for step in range(n_steps):
            states = ahead[:, step] = states @ way.transitions[1:]
        means, squares = emission.means(way.parameters), _mean_squares(families, way.parameters)
        for channel, (mean, square) in enumerate(zip(means, squares, strict=True)):
            first[channel] = first[channel] + weight[:, None, None] * (ahead @ mean)
            if square is not None:
                second[channel] = second[channel] + weight[:, None, None] * (ahead @ square)
    return [
        Moments(mean, None if isinstance(family, Categorical) else np.sqrt(np.maximum(square - mean**2, 0.0)))
        for family, mean, square in zip(families, first, second, strict=True)
    ]


def _families(emission: Emission) -> tuple[Emission, ...]:
    return emission.emissions if isinstance(emission, Channels) else (emission,)


def _mean_squares(families: Sequence[Emission], parameters: Floats) -> list[Floats | None]:
    """E x² of each state (states, width), channel by channel; None for symbols."""
    found: list[Floats | None] = []
    start = 0
    for family in families:
        own = parameters[:, start : start + family.n_parameters]
        start += family.n_parameters
        (mean,) = family.means(own)
        if isinstance(family, Categorical):
            found.append(None)
        elif isinstance(family, GaussianDiagonal):
            found.append(mean**2 + family.scale**2 / own[:, family.width :])
        elif isinstance(family, GaussianFull):
            size = family.n_coordinates
            root = own[:, size:].reshape(-1, size, size)
            spread = np.linalg.inv(np.swapaxes(root, -1, -2))
            found.append(mean**2 + ((np.swapaxes(spread, -1, -2) @ family.colour) ** 2).sum(axis=1))
        else:
            # The variance of a Poisson count is its mean.
            found.append(mean**2 + mean)
    return found


def _paths(
    emission: Emission, ways: Sequence[_Ahead], weights: Floats, n_steps: int, n_paths: int, rng: np.random.Generator
) -> list[tuple[NDArray[Any], ...]]:
    """Draw futures of each sequence: a way for the task to be, then states, then what they show."""
    drawn = []
    for sequence in range(weights.shape[1]):
        chosen = rng.choice(len(ways), size=n_paths, p=weights[:, sequence])
        futures = []
        for which in chosen.tolist():
            way = ways[which]
            here = _pick(way.states[sequence], rng)
            states = draw_path(way.transitions, n_steps, rng, after=here)
            futures.append(emission.draw_observations(way.parameters, states, rng))
        drawn.append(tuple(np.concatenate(parts) for parts in zip(*futures, strict=True)))
    return drawn


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
    kept: Kept, emission: Emission, places: Sequence[int], lengths: Sequence[int], rng: np.random.Generator
) -> tuple[tuple[NDArray[Any], ...], NDArray[np.int64]]:
    """New sequences of tasks (−1 for a new one), each from a draw chosen at random: observations and states."""
    observations, paths = [], []
    for task, length in zip(places, lengths, strict=True):
        place = int(rng.integers(len(kept.draws)))
        draw = kept.draws[place]
        if task >= 0:
            transitions, parameters = draw.transitions[task], draw.parameters[draw.cluster[task]]
        else:
            joins, alone = joining_weights(draw, kept.n_clusters)
            cluster = _pick(np.append(joins, alone), rng)
            known = cluster < len(joins)
            base = draw.base_weights[cluster] if known else kept.empty.base_weights[place]
            parameters = draw.parameters[cluster] if known else kept.empty.parameters[place]
            transitions = draw_rows(pseudo_counts(base, draw.alpha, draw.stickiness), rng)
        paths.append(draw_path(transitions, length, rng))
        observations.append(emission.draw_observations(parameters, paths[-1], rng))
    together = tuple(np.concatenate(parts) for parts in zip(*observations, strict=True))
    return together, np.concatenate(paths)


def draw_empty_clusters(draws: Sequence[Draw], emission: Emission, rng: np.random.Generator) -> Empty:
    """A cluster that has no task yet for each draw, from the prior with the draw's hyper-parameters."""
    n_states = draws[0].base_weights.shape[1]
    nothing = np.zeros((n_states, emission.n_statistics))
    base = [draw_rows(np.full((1, n_states), draw.gamma / n_states), rng)[0] for draw in draws]
    parameters = [emission.with_strength(draw.strength).draw_parameters(nothing, rng) for draw in draws]
    return Empty(np.array(base), np.array(parameters))
