"""Sums and draws over the hidden paths of many sequences, compiled: forward filtering, backward sampling and smoothing.

L. R. Rabiner, Proc. IEEE 77, 1989 (filtering, smoothing, the most probable path); S. L. Scott, J. Amer. Statist. Assoc.
97, 2002, section 2.3 (forward filtering, backward sampling). Everywhere

* ``likelihood[row[t], l]`` × exp(``log_scale[row[t]]``) is how probable step t's observation is in state l,
* sequence i is steps ``bounds[i]:bounds[i + 1]``,
* ``transitions[0]`` starts a sequence and ``transitions[r + 1]`` leaves state r; rows need not add up to one.

A sequence that no path can give has log likelihood −inf, and nothing is NaN. Time is O(n_steps × n_states²).
"""

from __future__ import annotations

from functools import partial
from math import inf, log
from typing import Any

import numpy as np

from kinfolk.maths.compiled import compiled

# Sums may be taken in any order, so that they use the processor's vectors; infinities keep their meaning.
ANY_ORDER = {"reassoc", "contract"}
# A product of likelihoods goes into its logarithm when it gets smaller than this: one logarithm for many steps.
SMALL = 1e-150

reordered: Any = partial(compiled, fastmath=ANY_ORDER)


@reordered
def scratch_rows(n_rows, n_states):  # type: ignore[no-untyped-def]
    """Rows that are written at every step, 128 bytes from anything else on either side.

    Threads that write to the same line of the cache take it from each other: filters were slowed down by half where
    the scratch of two threads came to lie side by side.
    """
    margin = 1 + 16 // n_states
    return np.empty((n_rows + 2 * margin, n_states))[margin : margin + n_rows]


@reordered
def filter_sequence(likelihood, log_scale, row, start, stop, transitions, scratch, kept):  # type: ignore[no-untyped-def]
    """Log likelihood of steps ``start:stop``; ``kept``, unless it has no rows, gets p(state | observations so far)."""
    n_states = transitions.shape[1]
    # Rows of their own, because the compiler cannot tell that two rows of one array do not overlap.
    now, following = scratch[0], scratch[1]
    keep = kept.shape[0] > 0
    total, product = 0.0, 1.0
    for t in range(start, stop):
        at = row[t]
        if t == start:
            for s in range(n_states):
                following[s] = transitions[0, s]
        else:
            for s in range(n_states):
                following[s] = 0.0
            # Four rows at a time, because each pass over the sums costs a load and a store of every one of them.
            r = 0
            while r + 4 <= n_states:
                a, b, c, d = now[r], now[r + 1], now[r + 2], now[r + 3]
                for s in range(n_states):
                    following[s] += (a * transitions[r + 1, s] + b * transitions[r + 2, s]) + (
                        c * transitions[r + 3, s] + d * transitions[r + 4, s]
                    )
                r += 4
            while r < n_states:
                a = now[r]
                for s in range(n_states):
                    following[s] += a * transitions[r + 1, s]
                r += 1
        step = 0.0
        for s in range(n_states):
            following[s] *= likelihood[at, s]
            step += following[s]
        if step > SMALL:
            scale = 1.0 / step
            for s in range(n_states):
                now[s] = following[s] * scale
            product *= step
            if product < SMALL:
                total += log(product)
                product = 1.0
        elif step > 0.0:
            # The reciprocal of a number below the normal range is infinite.
            for s in range(n_states):
                now[s] = following[s] / step
            total += log(step)
        else:
            return -inf
        total += log_scale[at]
        if keep:
            for s in range(n_states):
                kept[t - start, s] = now[s]
    return total + log(product)


@reordered
def longest(bounds):  # type: ignore[no-untyped-def]
    """Steps of the longest sequence, at least one."""
    most = np.int64(1)
    for i in range(len(bounds) - 1):
        if bounds[i + 1] - bounds[i] > most:
            most = bounds[i + 1] - bounds[i]
    return most


@reordered
def log_likelihoods(likelihood, log_scale, row, bounds, transitions):  # type: ignore[no-untyped-def]
    """Log likelihood of each sequence, states summed out.

    Examples
    --------
    Two states that never change, each sure of its own code; the second sequence changes.

    >>> transitions = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])
    >>> row, bounds = np.array([0, 0, 1, 1, 0]), np.array([0, 2, 5])
    >>> log_likelihoods(np.eye(2), np.zeros(2), row, bounds, transitions).round(6)
    array([-0.693147,      -inf])
    """
    out = np.empty(len(bounds) - 1)
    n_states = transitions.shape[1]
    scratch, nothing = scratch_rows(2, n_states), np.empty((0, n_states))
    for i in range(len(bounds) - 1):
        out[i] = filter_sequence(likelihood, log_scale, row, bounds[i], bounds[i + 1], transitions, scratch, nothing)
    return out


@reordered
def transpose_into(columns, transitions):  # type: ignore[no-untyped-def]
    """Set ``columns[s, r]`` to the probability that state r is followed by s."""
    for s in range(columns.shape[0]):
        for r in range(columns.shape[1]):
            columns[s, r] = transitions[r + 1, s]


@reordered
def draw_path(filtered, columns, start, stop, uniforms, weights, states_out):  # type: ignore[no-untyped-def]
    """Draw the states of steps ``start:stop`` backwards, given what filtering kept of them."""
    n_states = columns.shape[0]
    after = np.int64(-1)
    for t in range(stop - 1, start - 1, -1):
        total = 0.0
        if after < 0:
            for s in range(n_states):
                weights[s] = filtered[t - start, s]
                total += weights[s]
        else:
            for s in range(n_states):
                weights[s] = filtered[t - start, s] * columns[after, s]
                total += weights[s]
        left = uniforms[t] * total
        drawn = np.int64(-1)
        for s in range(n_states):
            if weights[s] > 0.0:
                drawn = np.int64(s)
                left -= weights[s]
                if left < 0.0:
                    break
        states_out[t] = after = drawn


@reordered
def draw_states(likelihood, log_scale, row, bounds, transitions, uniforms, states_out):  # type: ignore[no-untyped-def]
    """Draw the states of each sequence given its observations, a uniform number a step; the log likelihoods.

    States go to ``states_out``; those of a sequence of probability zero stay as they were.
    """
    n_states = transitions.shape[1]
    out = np.empty(len(bounds) - 1)
    filtered, scratch = np.empty((longest(bounds), n_states)), scratch_rows(2, n_states)
    weights = scratch_rows(1, n_states)[0]
    columns = np.empty((n_states, n_states))
    transpose_into(columns, transitions)
    for i in range(len(bounds) - 1):
        start, stop = bounds[i], bounds[i + 1]
        out[i] = filter_sequence(likelihood, log_scale, row, start, stop, transitions, scratch, filtered)
        if out[i] > -inf:
            draw_path(filtered, columns, start, stop, uniforms, weights, states_out)
    return out


@reordered
def most_probable_states(likelihood, log_scale, row, bounds, transitions):  # type: ignore[no-untyped-def]
    """The most probable states of each sequence given its observations, and their log joint probability with them.

    Zeros where every path has probability zero. By A. J. Viterbi, IEEE Trans. Inform. Theory 13, 1967.
    """
    n_states = transitions.shape[1]
    out = np.empty(len(bounds) - 1)
    states = np.zeros(len(row), dtype=np.int64)
    best, extended = scratch_rows(1, n_states)[0], scratch_rows(1, n_states)[0]
    came_from = np.empty((longest(bounds), n_states), dtype=np.int64)
    log_transitions, log_likelihood = np.empty(transitions.shape), np.empty(likelihood.shape)
    for r in range(n_states + 1):
        for s in range(n_states):
            log_transitions[r, s] = log(transitions[r, s]) if transitions[r, s] > 0.0 else -inf
    for at in range(likelihood.shape[0]):
        for s in range(n_states):
            log_likelihood[at, s] = log(likelihood[at, s]) if likelihood[at, s] > 0.0 else -inf
    for i in range(len(bounds) - 1):
        start, stop = bounds[i], bounds[i + 1]
        scale = 0.0
        for t in range(start, stop):
            at = row[t]
            scale += log_scale[at]
            for s in range(n_states):
                extended[s] = log_transitions[0, s] if t == start else -inf
                came_from[t - start, s] = 0
            if t > start:
                for r in range(n_states):
                    for s in range(n_states):
                        through = best[r] + log_transitions[r + 1, s]
                        if through > extended[s]:
                            extended[s] = through
                            came_from[t - start, s] = r
            for s in range(n_states):
                best[s] = extended[s] + log_likelihood[at, s]
        if stop == start:
            out[i] = 0.0
            continue
        last = np.int64(0)
        for s in range(1, n_states):
            if best[s] > best[last]:
                last = np.int64(s)
        out[i] = best[last] + scale
        if out[i] > -inf:
            for t in range(stop - 1, start - 1, -1):
                states[t] = last
                last = came_from[t - start, last]
    return states, out
