"""Sums and draws over the hidden paths of many sequences, compiled: forward filtering, backward sampling and smoothing.

L. R. Rabiner, Proc. IEEE 77, 1989 (filtering, smoothing, the most probable path); S. L. Scott, J. Amer. Statist. Assoc.
97, 2002, section 2.3 (forward filtering, backward sampling). Everywhere

* ``densities.likelihood[row[t], l]`` × exp(``log_scale[row[t]]``) is how probable step t's observation is in state l,
* sequence i is steps ``bounds[i]:bounds[i + 1]``,
* ``transitions[0]`` starts a sequence and ``transitions[r + 1]`` leaves state r; rows need not add up to one.

A sequence that no path can give has log likelihood −inf, and nothing is NaN. Time is O(n_steps × n_states²). Sequences
are smoothed and sampled side by side (`lanes`) where there are several of a length that lets them, and else one by one.
"""

from __future__ import annotations

from functools import partial
from math import inf, log
from typing import Any, NamedTuple

import numpy as np

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled
from kinfolk.sequences.model.emissions.emission import Codes, Densities, LogDensities
from kinfolk.sequences.model.lane_draws import draw_in_lanes
from kinfolk.sequences.model.lanes import ANY_ORDER, FEW, SMALL, order_of_run, side_by_side, smooth_in_lanes
from kinfolk.sequences.model.sequences import Layout

reordered: Any = partial(compiled, fastmath=ANY_ORDER)
# A density this much below that of the likeliest state is raised to it: were it zero, a step that only a state without
# way in explains would end the filter with 0/0. Two of them multiplied are still a float.
_LEAST_LIKELIHOOD = 1e-150


def scaled(log_densities: LogDensities) -> Densities:
    """Densities in the form that filters want, each row divided by its largest."""
    likelihood = np.empty_like(log_densities.rows)
    log_scale = _largest_of_rows(log_densities.rows, likelihood)
    np.exp(likelihood, out=likelihood)
    return Densities(np.maximum(likelihood, _LEAST_LIKELIHOOD, out=likelihood), log_scale, log_densities.row)


@compiled
def _largest_of_rows(rows, out):  # type: ignore[no-untyped-def]
    """The largest entry of each row; ``out`` gets the rows less these."""
    largest = np.empty(len(rows))
    for i in range(len(rows)):
        most = rows[i, 0]
        for state in range(rows.shape[1]):
            if rows[i, state] > most:
                most = rows[i, state]
        for state in range(rows.shape[1]):
            out[i, state] = rows[i, state] - most
        largest[i] = most
    return largest


@reordered
def scratch_rows(n_states):  # type: ignore[no-untyped-def]
    """Three rows that are written at every step, 128 bytes from anything else on either side.

    Threads that write to the same line of the cache take it from each other: filters were slowed down by half where
    the scratch of two threads came to lie side by side.
    """
    margin = 1 + 16 // n_states
    return np.empty((3 + 2 * margin, n_states))[margin : margin + 3]


@reordered
def filter_sequence(densities, start, stop, transitions, scratch, kept):  # type: ignore[no-untyped-def]
    """Log likelihood of steps ``start:stop``; ``kept``, unless it has no rows, gets p(state | observations so far)."""
    likelihood, log_scale, row = densities.likelihood, densities.log_scale, densities.row
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
def log_likelihoods(densities, bounds, transitions):  # type: ignore[no-untyped-def]
    """Log likelihood of each sequence, states summed out.

    Examples
    --------
    Two states that never change, each sure of its own code; the second sequence changes.

    >>> transitions = np.array([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]])
    >>> row, bounds = np.array([0, 0, 1, 1, 0]), np.array([0, 2, 5])
    >>> log_likelihoods(Densities(np.eye(2), np.zeros(2), row), bounds, transitions).round(6)
    array([-0.693147,      -inf])
    """
    out = np.empty(len(bounds) - 1)
    n_states = transitions.shape[1]
    scratch, nothing = scratch_rows(n_states), np.empty((0, n_states))
    for i in range(len(bounds) - 1):
        out[i] = filter_sequence(densities, bounds[i], bounds[i + 1], transitions, scratch, nothing)
    return out


@reordered
def score_pairs(densities, layout, pairs, proposals, scores):  # type: ignore[no-untyped-def]
    """Log likelihoods of tasks by the transition matrices that are drawn for pairs of a task and a cluster.

    Pairs are counted through the clusters of the first task, then of the second. ``proposals`` is (n_tasks, n_clusters,
    R, L + 1, L).
    """
    n_clusters, n_picks, n_states = proposals.shape[1], proposals.shape[2], proposals.shape[4]
    scratch, nothing = scratch_rows(n_states), np.empty((0, n_states))
    for pair in range(pairs[0], pairs[1]):
        j, a = pair // n_clusters, pair % n_clusters
        own = Densities(densities.likelihood[a], densities.log_scale[a], densities.row)
        for r in range(n_picks):
            total = 0.0
            for i in range(layout.task_bounds[j], layout.task_bounds[j + 1]):
                start, stop = layout.bounds[i], layout.bounds[i + 1]
                total += filter_sequence(own, start, stop, proposals[j, a, r], scratch, nothing)
                if total == -inf:
                    break
            scores[j, a, r] = total


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


def draw_states(
    densities: Densities,
    layout: Layout,
    transitions: Floats,
    uniforms: Floats,
    states_out: Codes,
    slots: Codes | None = None,
    run: tuple[int, int] | None = None,
) -> Floats:
    """Draw the states of sequences given their observations, each by the transitions of its task, (J, L + 1, L).

    There is a uniform number for each step. States go to ``states_out``; those of a sequence of probability zero stay
    as they were. Returned are log likelihoods of sequences; zero of those not in the ``run``, from the first to before
    the second, which is all by default. With ``slots``, the cluster of each task, clusters are the first axis of the
    densities' rows and scales.
    """
    if slots is None:
        densities = Densities(densities.likelihood[None], densities.log_scale[None], densities.row)
        slots = np.zeros(len(transitions), dtype=np.int64)
    totals = np.zeros(len(layout.longest_first))
    run = (0, len(totals)) if run is None else run
    if layout.most_sequences > FEW:
        draw_in_lanes(densities, layout, slots, transitions, uniforms, states_out, run, totals)
    _draw_others(densities, layout, slots, transitions, uniforms, states_out, run, totals)
    return totals


@reordered
def _draw_others(densities, layout, slots, transitions, uniforms, states_out, run, totals):  # type: ignore[no-untyped-def]
    """Draw the states of the sequences that go by themselves, vectors along the states."""
    n_states, bounds = transitions.shape[2], layout.bounds
    filtered, scratch = np.empty((longest(bounds), n_states)), scratch_rows(n_states)
    columns, weights = np.empty((n_states, n_states)), scratch[2]
    for j in range(len(transitions)):
        order = order_of_run(layout, j, run)
        first, last = side_by_side(bounds, order, np.int64(0), len(order), n_states)
        if last - first == len(order):
            continue
        own = Densities(densities.likelihood[slots[j]], densities.log_scale[slots[j]], densities.row)
        transpose_into(columns, transitions[j])
        for place in range(len(order)):
            if first <= place < last:
                continue
            i = order[place]
            start, stop = bounds[i], bounds[i + 1]
            totals[i] = filter_sequence(own, start, stop, transitions[j], scratch, filtered)
            if totals[i] > -inf:
                draw_path(filtered, columns, start, stop, uniforms, weights, states_out)


@reordered
def most_probable_states(densities, bounds, transitions):  # type: ignore[no-untyped-def]
    """The most probable states of each sequence given its observations, and their log joint probability with them.

    Zeros where every path has probability zero. By A. J. Viterbi, IEEE Trans. Inform. Theory 13, 1967.
    """
    likelihood, log_scale, row = densities.likelihood, densities.log_scale, densities.row
    n_states = transitions.shape[1]
    out = np.empty(len(bounds) - 1)
    states = np.zeros(bounds[-1], dtype=np.int64)
    best, extended = scratch_rows(n_states)[0], scratch_rows(n_states)[0]
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


class Smoothed(NamedTuple):
    """Log likelihoods of sequences and of tasks, tasks' expected transitions (J, L + 1, L), p(state | all) of steps.

    A sequence of probability zero adds no transitions, and has zeros for its steps.
    """

    log_likelihoods: Floats
    of_tasks: Floats
    counts: Floats
    posteriors: Floats


def smooth(densities: Densities, layout: Layout, transitions: Floats) -> Smoothed:
    """Smooth the sequences of tasks, each by the transitions of its task, (J, L + 1, L).

    Examples
    --------
    Two states that never change, each sure of its own code; one task.

    >>> transitions = np.array([[[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]])
    >>> densities = Densities(np.eye(2), np.zeros(2), np.array([0, 0, 1]))
    >>> smooth(densities, Layout.of(np.array([0, 2, 3]), np.array([0, 2])), transitions).counts[0]
    array([[1., 1.],
           [1., 0.],
           [0., 0.]])
    """
    n_tasks, n_states = len(transitions), transitions.shape[2]
    posteriors = np.zeros((len(densities.row), n_states))
    counts, n_sequences = np.zeros(transitions.shape), len(layout.longest_first)
    found = Smoothed(np.zeros(n_sequences), np.zeros(n_tasks), counts, posteriors)
    # States in pairs, as lanes have them; one that is not there has zeros.
    n_even = n_states + n_states % 2
    pairs = np.zeros((n_tasks, n_even, n_even))
    if layout.most_sequences > FEW:
        smooth_in_lanes(densities, layout, transitions, found.log_likelihoods, pairs, posteriors)
    _smooth_others(densities, layout, transitions, pairs, found)
    return found


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
def _smooth_others(densities, layout, transitions, pairs, found):  # type: ignore[no-untyped-def]
    """Smooth the sequences that go by themselves, vectors along the states, and add up what each task has."""
    likelihood, row, posteriors, bounds = densities.likelihood, densities.row, found.posteriors, layout.bounds
    n_states, n_rows = transitions.shape[2], longest(bounds)
    filtered, scratch = np.empty((n_rows, n_states)), scratch_rows(n_states)
    # ahead[t]: what the observations after step t say about the state after it; later: about its own.
    ahead, later = np.empty((n_rows, n_states)), scratch[2]
    columns = np.empty((n_states, n_states))
    for j in range(len(transitions)):
        first, last = layout.task_bounds[j], layout.task_bounds[j + 1]
        begin, end = side_by_side(bounds, layout.longest_first, first, last, n_states)
        transpose_into(columns, transitions[j])
        for place in range(first, last):
            if begin <= place < end:
                continue
            i = layout.longest_first[place]
            start, stop = bounds[i], bounds[i + 1]
            found.log_likelihoods[i] = filter_sequence(densities, start, stop, transitions[j], scratch, filtered)
            if not found.log_likelihoods[i] > -inf or stop == start:
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
                # Σ_rs filtered_r × transition_rs × ahead_s is the total: a transition's share of it is its expected
                # count.
                for s in range(n_states):
                    posteriors[t, s] *= scale
                    filtered[now, s] *= scale
            _add_products(filtered, ahead, stop - 1 - start, pairs[j])
        for i in range(first, last):
            found.of_tasks[j] += found.log_likelihoods[i]
            if bounds[i + 1] > bounds[i]:
                for s in range(n_states):
                    found.counts[j, 0, s] += posteriors[bounds[i], s]
        for r in range(n_states):
            for s in range(n_states):
                found.counts[j, r + 1, s] = pairs[j, r, s] * transitions[j, r + 1, s]
