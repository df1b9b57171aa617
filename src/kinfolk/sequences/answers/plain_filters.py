"""Sums over hidden states for prediction from a saved model, with numpy alone; all sequences move on together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.sequences.answers.prediction import Smoothed
from kinfolk.sequences.model.sequences import Sequences

Floats = NDArray[np.float64]

# As in the emissions: a density this much below the likeliest state's counts as this much.
_LEAST_LIKELIHOOD = 1e-150


class _Padded(NamedTuple):
    """Densities of steps scaled to at most one, (longest, sequences, states), ones beyond a sequence's end."""

    likelihood: Floats
    log_scale: Floats
    is_there: NDArray[np.bool_]


class PlainFilters(NamedTuple):
    """The :class:`~kinfolk.sequences.answers.prediction.Filters` of families of emissions, as a file has them."""

    families: Sequence[Mapping[str, Any]]

    def densities(self, parameters: Floats, sequences: Sequences) -> _Padded:
        """How probable every step is in every state."""
        log_density = np.zeros((sequences.n_steps, len(parameters)))
        start = 0
        for family, steps in zip(self.families, sequences.observations, strict=True):
            stop = start + n_parameters(family)
            log_density += _LOG_DENSITIES[family["kind"]](family, parameters[:, start:stop], steps)
            start = stop
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

    def smooth(self, densities: _Padded, sequences: Sequences, transitions: Floats) -> Smoothed:
        """States of every step, given the whole sequence."""
        filtered, _ = _filter(densities, transitions)
        probability = filtered.copy()
        later = np.ones(filtered.shape[1:])
        for t in range(len(filtered) - 2, -1, -1):
            ahead = densities.likelihood[t + 1] * later
            # Beyond the end all states are as likely, and stay so one step before, since rows add up to one.
            later = (ahead / np.maximum(ahead.max(axis=1, keepdims=True), 1e-300)) @ transitions[1:].T
            probability[t] = filtered[t] * later
        total = probability.sum(axis=2, keepdims=True)
        probability = np.divide(probability, total, out=np.zeros_like(probability), where=total > 0.0)
        path = _most_probable(densities, transitions)
        # Sequence by sequence again, as the steps came.
        there = densities.is_there.T
        return Smoothed(np.swapaxes(probability, 0, 1)[there], path.T[there])

    def each(self, work: Callable[[int], Floats], places: Iterable[int]) -> list[Floats]:
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


def n_parameters(family: Mapping[str, Any]) -> int:
    """How many parameters a state has in a channel."""
    kind = family["kind"]
    if kind == "categorical":
        return int(family["n_codes"]) + 1
    if kind == "gaussian":
        return 2 * len(family["centre"])
    if kind == "gaussian-full":
        size = len(family["colour"])
        return size * (size + 1)
    return 1


def _of_codes(family: Mapping[str, Any], parameters: Floats, steps: NDArray[Any]) -> Floats:
    rows = np.vstack([parameters.T, np.zeros(len(parameters))])
    return np.asarray(rows[np.where(steps < 0, len(rows) - 1, np.minimum(steps, family["n_codes"]))])


def _of_numbers(family: Mapping[str, Any], parameters: Floats, steps: NDArray[Any]) -> Floats:
    centre, scale = np.asarray(family["centre"]), np.asarray(family["scale"])
    mean, precision = np.split(parameters, 2, axis=1)
    varies = scale > 0.0
    there = np.isfinite(steps) & varies
    z = np.where(there, (steps - centre) / np.where(varies, scale, 1.0), 0.0)
    constant = 0.5 * (np.log(precision) - math.log(2.0 * math.pi)) - np.log(np.where(varies, scale, 1.0))
    squares = np.square(z[:, None, :] - mean) * precision
    return np.asarray((there[:, None, :] * (constant - 0.5 * squares)).sum(axis=2))


def _of_joint_numbers(family: Mapping[str, Any], parameters: Floats, steps: NDArray[Any]) -> Floats:
    whiten = np.asarray(family["whiten"], dtype=np.float64).reshape(len(family["centre"]), -1)
    size = whiten.shape[1]
    varies = (whiten != 0.0).any(axis=1)
    there = np.isfinite(steps[:, varies]).all(axis=1)
    z = np.where(there[:, None] & varies, steps - np.asarray(family["centre"]), 0.0) @ whiten
    mean, root = parameters[:, :size], parameters[:, size:].reshape(-1, size, size)
    gaps = np.einsum("tld,lde->tle", z[:, None, :] - mean, root)
    log_det = np.linalg.slogdet(root)[1]
    density = log_det - 0.5 * size * math.log(2.0 * math.pi) - family["log_volume"] - 0.5 * (gaps**2).sum(axis=2)
    return np.where(there[:, None], density, 0.0)


def _of_counts(family: Mapping[str, Any], parameters: Floats, steps: NDArray[Any]) -> Floats:
    there = steps >= 0
    counts = np.where(there, steps, 0).astype(np.float64)[:, None]
    factorials = np.array([math.lgamma(count + 1.0) for count in counts[:, 0].tolist()])[:, None]
    log_rate = parameters[:, 0]
    return np.where(there[:, None], counts * log_rate - np.exp(log_rate) - factorials, 0.0)


_LOG_DENSITIES = {
    "categorical": _of_codes,
    "gaussian": _of_numbers,
    "gaussian-full": _of_joint_numbers,
    "poisson": _of_counts,
}
