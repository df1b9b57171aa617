"""Sums over hidden states for prediction from a saved model, with numpy alone; all sequences move on together."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.sequences.answers.particles import Crowd, Steps, advance
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.sequences import Sequences

# As in the emissions: a density this much below the likeliest state's counts as this much.
_LEAST_LIKELIHOOD = 1e-150


class _Padded(NamedTuple):
    """Densities of steps scaled to at most one, (longest, sequences, states), ones beyond a sequence's end."""

    likelihood: Floats
    log_scale: Floats
    is_there: NDArray[np.bool_]


class PlainFilters(NamedTuple):
    """The :class:`~kinfolk.sequences.answers.prediction.Filters` of a model that was loaded."""

    emission: Emission

    def densities(self, parameters: Floats, sequences: Sequences) -> _Padded:
        """How probable every step is in every state."""
        rows, row = self.emission.log_densities(parameters, sequences.observations)
        log_density = rows[row]
        largest = log_density.max(axis=1)
        likelihood = np.maximum(np.exp(log_density - largest[:, None]), _LEAST_LIKELIHOOD)
        lengths = np.diff(sequences.bounds)
        step = np.arange(lengths.max(initial=0))[:, None]
        is_there = step < lengths
        at = np.where(is_there, sequences.bounds[:-1] + step, 0)
        return _Padded(
            np.where(is_there[:, :, None], likelihood[at], 1.0), np.where(is_there, largest[at], 0.0), is_there
        )

    def log_likelihoods(self, densities: _Padded, sequences: Sequences, transitions: Floats) -> Floats:
        """Log likelihood of each sequence."""
        return _filter(densities, transitions)[1]

    def smooth(self, densities: _Padded, sequences: Sequences, transitions: Floats) -> tuple[Floats, Floats]:
        """Log likelihoods, and the states of every step, given the whole sequence."""
        filtered, found = _filter(densities, transitions)
        probability = filtered.copy()
        later = np.ones(filtered.shape[1:])
        for t in range(len(filtered) - 2, -1, -1):
            ahead = densities.likelihood[t + 1] * later
            # Beyond the end all states are as likely, and stay so one step before, since rows add up to one.
            later = (ahead / np.maximum(ahead.max(axis=1, keepdims=True), 1e-300)) @ transitions[1:].T
            probability[t] = filtered[t] * later
        total = probability.sum(axis=2, keepdims=True)
        probability = np.divide(probability, total, out=np.zeros_like(probability), where=total > 0.0)
        # Sequence by sequence again, as the steps came.
        return found, np.swapaxes(probability, 0, 1)[densities.is_there.T]

    def most_probable_paths(self, densities: _Padded, sequences: Sequences, transitions: Floats) -> NDArray[np.int64]:
        """States of the most probable paths."""
        return np.asarray(_most_probable(densities, transitions).T[densities.is_there.T])

    def advance(self, crowd: Crowd, steps: Steps, uniforms: Floats) -> Crowd:
        """Particles so many steps later."""
        return advance(crowd, steps, uniforms)

    def each(self, work: Callable[[int], Any], places: Iterable[int]) -> list[Any]:
        """What some work gives for each place."""
        return [work(place) for place in places]


def _filter(densities: _Padded, transitions: Floats) -> tuple[Floats, Floats]:
    """p(state | observations up to a step), (longest, sequences, states), and the log likelihoods."""
    filtered = np.empty(densities.likelihood.shape)
    total = densities.log_scale.sum(axis=0)
    for t, (likelihood, here) in enumerate(zip(densities.likelihood, densities.is_there, strict=True)):
        come = np.broadcast_to(transitions[0], likelihood.shape) if t == 0 else filtered[t - 1] @ transitions[1:]
        weight = come * likelihood
        sums = weight.sum(axis=1)
        possible = sums > 0.0
        filtered[t] = np.divide(weight, sums[:, None], out=np.zeros_like(weight), where=possible[:, None])
        with np.errstate(divide="ignore"):
            total = total + np.where(here, np.log(sums), 0.0)
    return filtered, total


def _most_probable(densities: _Padded, transitions: Floats) -> NDArray[np.int64]:
    """Viterbi's path of every sequence, (longest, sequences)."""
    with np.errstate(divide="ignore"):
        log_rows = np.log(transitions)
        log_likelihood = np.log(densities.likelihood)
    longest, n_sequences, n_states = log_likelihood.shape
    if not n_sequences:
        return np.zeros((longest, 0), dtype=np.int64)
    best = log_rows[0] + log_likelihood[0]
    came_from = np.zeros((longest, n_sequences, n_states), dtype=np.int64)
    came_from[:] = np.arange(n_states)
    for t in range(1, longest):
        through = best[:, :, None] + log_rows[1:]
        here = densities.is_there[t]
        came_from[t, here] = through.argmax(axis=1)[here]
        best = np.where(here[:, None], through.max(axis=1) + log_likelihood[t], best)
    states = np.zeros((longest, n_sequences), dtype=np.int64)
    states[-1] = best.argmax(axis=1)
    every = np.arange(n_sequences)
    for t in range(longest - 1, 0, -1):
        states[t - 1] = came_from[t, every, states[t]]
    return states
