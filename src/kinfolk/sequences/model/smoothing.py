"""Smoothing of many sequences, compiled: p(state | the whole sequence) of steps, and expected transitions.

L. R. Rabiner, Proc. IEEE 77, 1989, section III; arguments are those of `kinfolk.sequences.model.filtering`. Sequences
go side by side where there are several of a length that lets them, and else one at a time. Time is
O(n_steps × n_states²).
"""

from __future__ import annotations

from math import inf

import numpy as np

from kinfolk.maths.arrays import Floats
from kinfolk.sequences.model.emissions.emission import Codes, Densities
from kinfolk.sequences.model.filtering import SMALL, filter_sequence, reordered, scratch_rows, transpose_into
from kinfolk.sequences.model.lanes import LANES, smooth_in_lanes

# So few sequences are faster one at a time, and so are those that need more numbers than a core's own memory holds.
_FEW, _MOST_NUMBERS = LANES // 2, 1 << 17


def expected_counts(
    likelihood: Floats, log_scale: Floats, row: Codes, bounds: Codes, transitions: Floats
) -> tuple[Floats, Floats, Floats]:
    """Smooth each sequence: log likelihoods, expected transitions (n_states + 1, n_states), p(state | all) of steps.

    A sequence of probability zero adds no transitions, and has zeros for its steps.

    Examples
    --------
    Two states that never change, each sure of its own code.

    >>> transitions = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])
    >>> row, bounds = np.array([0, 0, 1]), np.array([0, 2, 3])
    >>> expected_counts(np.eye(2), np.zeros(2), row, bounds, transitions)[1]
    array([[1., 1.],
           [1., 0.],
           [0., 0.]])
    """
    n_states, lengths = transitions.shape[1], np.diff(bounds)
    totals, posteriors = np.zeros(len(lengths)), np.zeros((len(row), n_states))
    # States in pairs, as lanes have them; one that is not there has zeros.
    n_even = n_states + n_states % 2
    pairs = np.zeros((n_even, n_even))
    # Longest first, so that the lanes that have a step t are always the first ones.
    order = np.argsort(-lengths, kind="stable")
    begin = done = int((lengths * n_states * LANES > _MOST_NUMBERS).sum())
    while len(order) - done > _FEW:
        done = min(done + LANES, len(order))
    densities = Densities(likelihood, log_scale, row)
    if done > begin:
        smooth_in_lanes(densities, bounds, transitions, order[begin:done], totals, pairs, posteriors)
    others = np.concatenate([order[:begin], order[done:]])
    if len(others):
        smooth_one_by_one(densities, bounds, transitions, others, totals, pairs, posteriors)
    counts = np.empty((n_states + 1, n_states))
    counts[0] = posteriors[bounds[:-1][lengths > 0]].sum(axis=0)
    counts[1:] = pairs[:n_states, :n_states] * transitions[1:]
    return totals, counts, posteriors


@reordered
def _times(vector, matrix, out):  # type: ignore[no-untyped-def]
    """Set ``out`` to ``vector`` times ``matrix``, four rows at a time as in filtering."""
    n = len(vector)
    for s in range(n):
        out[s] = 0.0
    r = 0
    while r + 4 <= n:
        a, b, c, d = vector[r], vector[r + 1], vector[r + 2], vector[r + 3]
        for s in range(n):
            out[s] += (a * matrix[r, s] + b * matrix[r + 1, s]) + (c * matrix[r + 2, s] + d * matrix[r + 3, s])
        r += 4
    while r < n:
        a = vector[r]
        for s in range(n):
            out[s] += a * matrix[r, s]
        r += 1


@reordered
def _add_products(left, right, n_rows, sums):  # type: ignore[no-untyped-def]
    """Add leftᵀ right to ``sums``, over the first rows; four rows at a time as in filtering."""
    n = left.shape[1]
    t = 0
    while t + 4 <= n_rows:
        for r in range(n):
            a, b, c, d = left[t, r], left[t + 1, r], left[t + 2, r], left[t + 3, r]
            for s in range(n):
                sums[r, s] += (a * right[t, s] + b * right[t + 1, s]) + (c * right[t + 2, s] + d * right[t + 3, s])
        t += 4
    while t < n_rows:
        for r in range(n):
            a = left[t, r]
            for s in range(n):
                sums[r, s] += a * right[t, s]
        t += 1


@reordered
def smooth_one_by_one(densities, bounds, transitions, sequences, totals, pairs, posteriors):  # type: ignore[no-untyped-def]
    """Smooth some sequences, longest first, vectors along the states."""
    likelihood, log_scale, row = densities.likelihood, densities.log_scale, densities.row
    n_states, n_rows = transitions.shape[1], bounds[sequences[0] + 1] - bounds[sequences[0]]
    filtered, scratch = np.empty((n_rows, n_states)), scratch_rows(2, n_states)
    # ahead[t]: what the observations after step t say about the state after it; later: about its own.
    ahead, later = np.empty((n_rows, n_states)), scratch_rows(1, n_states)[0]
    columns = np.empty((n_states, n_states))
    transpose_into(columns, transitions)
    for i in sequences:
        start, stop = bounds[i], bounds[i + 1]
        totals[i] = filter_sequence(likelihood, log_scale, row, start, stop, transitions, scratch, filtered)
        if not totals[i] > -inf or stop == start:
            continue
        for s in range(n_states):
            posteriors[stop - 1, s] = filtered[stop - 1 - start, s]
            later[s] = 1.0
        for t in range(stop - 2, start - 1, -1):
            now, at = t - start, row[t + 1]
            largest = 0.0
            for s in range(n_states):
                ahead[now, s] = likelihood[at, s] * later[s]
                if ahead[now, s] > largest:
                    largest = ahead[now, s]
            if largest > SMALL:
                scale = 1.0 / largest
                for s in range(n_states):
                    ahead[now, s] *= scale
            elif largest > 0.0:
                for s in range(n_states):
                    ahead[now, s] /= largest
            _times(ahead[now], columns, later)
            total = 0.0
            for s in range(n_states):
                posteriors[t, s] = filtered[now, s] * later[s]
                total += posteriors[t, s]
            # What is left to a sum this small has no digits; such a step counts for nothing.
            scale = 1.0 / total if total > SMALL else 0.0
            # Σ_rs filtered_r × transition_rs × ahead_s is the total: a transition's share of it is its expected count.
            for s in range(n_states):
                posteriors[t, s] *= scale
                filtered[now, s] *= scale
        _add_products(filtered, ahead, stop - 1 - start, pairs)
