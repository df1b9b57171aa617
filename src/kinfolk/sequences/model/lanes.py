"""Sequences side by side, compiled: vectors run along the sequences, not along their states; smoothing of such.

A step waits for the step before it, and few states do not fill the processor's vectors. So sequences of about the same
length go side by side, each in a lane of its own. What is held of a step is (n_states, lanes), and what is held of all
steps is (n_states, steps × lanes); lanes of sequences that have ended, or that there are none for, go on with numbers
that are finite and that nobody looks at.
"""

from __future__ import annotations

from functools import partial
from math import inf, log
from typing import Any

import numpy as np

from kinfolk.maths.compiled import compiled

LANES = 32
# So few sequences are faster one at a time, and so are those that need more numbers than a core's own memory holds.
FEW, _MOST_NUMBERS = LANES // 2, 1 << 17
# Sums may be taken in any order, so that they use the processor's vectors; infinities keep their meaning.
ANY_ORDER = {"reassoc", "contract"}
# A product of likelihoods goes into its logarithm when it gets smaller than this: one logarithm for many steps.
SMALL = 1e-150

# A division that first asks whether its divisor is zero is not done in vectors.
in_lanes: Any = partial(compiled, fastmath=ANY_ORDER, error_model="numpy")


@in_lanes
def times(matrix, lanes, out):  # type: ignore[no-untyped-def]
    """Set ``out[s]`` to Σ_r ``matrix[r, s]`` × ``lanes[r]``; four sums and four rows at a time: fewer loads."""
    n = len(matrix)
    in_fours = n - n % 4
    for s in range(n):
        for lane in range(LANES):
            out[s, lane] = 0.0
    for s in range(0, in_fours, 4):
        for r in range(0, in_fours, 4):
            a, b, c, d = matrix[r, s], matrix[r + 1, s], matrix[r + 2, s], matrix[r + 3, s]
            e, f, g, h = matrix[r, s + 1], matrix[r + 1, s + 1], matrix[r + 2, s + 1], matrix[r + 3, s + 1]
            i, j, k, m = matrix[r, s + 2], matrix[r + 1, s + 2], matrix[r + 2, s + 2], matrix[r + 3, s + 2]
            o, p, q, u = matrix[r, s + 3], matrix[r + 1, s + 3], matrix[r + 2, s + 3], matrix[r + 3, s + 3]
            for lane in range(LANES):
                w, x, y, z = lanes[r, lane], lanes[r + 1, lane], lanes[r + 2, lane], lanes[r + 3, lane]
                out[s, lane] += (a * w + b * x) + (c * y + d * z)
                out[s + 1, lane] += (e * w + f * x) + (g * y + h * z)
                out[s + 2, lane] += (i * w + j * x) + (k * y + m * z)
                out[s + 3, lane] += (o * w + p * x) + (q * y + u * z)
        for r in range(in_fours, n):
            a, b, c, d = matrix[r, s], matrix[r, s + 1], matrix[r, s + 2], matrix[r, s + 3]
            for lane in range(LANES):
                w = lanes[r, lane]
                out[s, lane] += a * w
                out[s + 1, lane] += b * w
                out[s + 2, lane] += c * w
                out[s + 3, lane] += d * w
    for s in range(in_fours, n):
        for r in range(n):
            a = matrix[r, s]
            for lane in range(LANES):
                out[s, lane] += a * lanes[r, lane]


@in_lanes
def normalise(weights, n_lanes, sums, scale):  # type: ignore[no-untyped-def]
    """Divide the first lanes by their ``sums``; lanes of zeros stay."""
    n = weights.shape[0]
    for lane in range(LANES):
        sums[lane] = 0.0
    for s in range(n):
        for lane in range(LANES):
            sums[lane] += weights[s, lane]
    n_small = 0
    for lane in range(LANES):
        is_small = sums[lane] <= SMALL
        n_small += is_small
        scale[lane] = 1.0 if is_small else 1.0 / sums[lane]
    if n_small > 0:
        # The reciprocal of a number below the normal range is infinite.
        for lane in range(n_lanes):
            if 0.0 < sums[lane] <= SMALL:
                for s in range(n):
                    weights[s, lane] /= sums[lane]
    for s in range(n):
        for lane in range(LANES):
            weights[s, lane] *= scale[lane]


@in_lanes
def _add_products(filtered, ahead, n_numbers, sums):  # type: ignore[no-untyped-def]
    """Add to ``sums[r, s]`` the products of r's numbers and s's of the step after, two by two: a load a product."""
    for r in range(0, len(sums), 2):
        for s in range(0, len(sums), 2):
            a = b = c = d = 0.0
            for i in range(n_numbers):
                a += filtered[r, i] * ahead[s, i + LANES]
                b += filtered[r, i] * ahead[s + 1, i + LANES]
                c += filtered[r + 1, i] * ahead[s, i + LANES]
                d += filtered[r + 1, i] * ahead[s + 1, i + LANES]
            sums[r, s] += a
            sums[r, s + 1] += b
            sums[r + 1, s] += c
            sums[r + 1, s + 1] += d


@in_lanes
def filter_group(likelihood, log_scale, row, bounds, begin, rows, group, filtered, given, totals):  # type: ignore[no-untyped-def]
    """Filter sequences side by side, longest first; ``given`` gets the likelihoods of their steps."""
    n_states, n_even = likelihood.shape[1], len(rows)
    come, now = np.zeros((n_even, LANES)), np.zeros((n_even, LANES))
    sums, scale, product = np.empty(LANES), np.empty(LANES), np.ones(LANES)
    n_lanes = len(group)
    for t in range(bounds[group[0] + 1] - bounds[group[0]]):
        while bounds[group[n_lanes - 1] + 1] - bounds[group[n_lanes - 1]] <= t:
            n_lanes -= 1
        here = t * LANES
        for lane in range(n_lanes):
            at = row[bounds[group[lane]] + t]
            totals[group[lane]] += log_scale[at]
            for s in range(n_states):
                given[s, here + lane] = likelihood[at, s]
        if t > 0:
            times(rows, now, come)
        else:
            for s in range(n_even):
                for lane in range(LANES):
                    come[s, lane] = begin[s]
        for s in range(n_even):
            for lane in range(LANES):
                now[s, lane] = come[s, lane] * given[s, here + lane]
        normalise(now, n_lanes, sums, scale)
        for s in range(n_even):
            for lane in range(LANES):
                filtered[s, here + lane] = now[s, lane]
        n_small = 0
        for lane in range(n_lanes):
            product[lane] *= sums[lane] if sums[lane] > SMALL else 1.0
            n_small += (sums[lane] <= SMALL) | (product[lane] <= SMALL)
        if n_small > 0:
            for lane in range(n_lanes):
                if sums[lane] <= SMALL:
                    totals[group[lane]] += log(sums[lane]) if sums[lane] > 0.0 else -inf
                if product[lane] <= SMALL:
                    totals[group[lane]] += log(product[lane])
                    product[lane] = 1.0
    for lane in range(len(group)):
        totals[group[lane]] += log(product[lane])


@in_lanes
def smooth_group(bounds, columns, group, totals, filtered, ahead, pairs, posteriors):  # type: ignore[no-untyped-def]
    """Smooth what `filter_group` has left."""
    n_states, n_even, n_group = posteriors.shape[1], len(columns), len(group)
    begins, possible = np.zeros(LANES, dtype=np.int64), np.zeros(LANES)
    for lane in range(n_group):
        begins[lane] = bounds[group[lane]]
        possible[lane] = 1.0 if totals[group[lane]] > -inf else 0.0
    said, later, weights = np.empty((n_even, LANES)), np.ones((n_even, LANES)), np.empty((n_even, LANES))
    sums, scale = np.empty(LANES), np.empty(LANES)
    # Lanes that have a step after this one, and those that have this one.
    n_going_on = n_lanes = 0
    n_steps = bounds[group[0] + 1] - bounds[group[0]]
    for t in range(n_steps - 1, -1, -1):
        here, after = t * LANES, (t + 1) * LANES
        n_going_on = n_lanes
        while n_lanes < n_group and bounds[group[n_lanes] + 1] - bounds[group[n_lanes]] > t:
            n_lanes += 1
        if t + 1 < n_steps:
            for s in range(n_even):
                for lane in range(LANES):
                    said[s, lane] = ahead[s, after + lane] * later[s, lane]
            normalise(said, n_going_on, sums, scale)
            for s in range(n_even):
                for lane in range(LANES):
                    ahead[s, after + lane] = said[s, lane]
            times(columns, said, later)
            for s in range(n_even):
                for lane in range(n_going_on, LANES):
                    later[s, lane] = 1.0
        for lane in range(LANES):
            sums[lane] = 0.0
        for s in range(n_even):
            for lane in range(LANES):
                weights[s, lane] = filtered[s, here + lane] * later[s, lane]
                sums[lane] += weights[s, lane]
        # What is left to a sum this small has no digits; such a step counts for nothing.
        for lane in range(LANES):
            scale[lane] = possible[lane] / sums[lane] if sums[lane] > SMALL else 0.0
        for lane in range(n_lanes):
            for s in range(n_states):
                posteriors[begins[lane] + t, s] = weights[s, lane] * scale[lane]
        for lane in range(n_going_on, LANES):
            scale[lane] = 0.0
        # Σ_rs filtered_r × transition_rs × ahead_s is the sum: a transition's share of it is its expected count.
        for s in range(n_even):
            for lane in range(LANES):
                filtered[s, here + lane] *= scale[lane]
    _add_products(filtered, ahead, (n_steps - 1) * LANES, pairs)


@in_lanes
def side_by_side(bounds, order, begin, last, n_states):  # type: ignore[no-untyped-def]
    """Which sequences of ``order[begin:last]``, longest first, go side by side: from a place to a place."""
    while begin < last:
        i = order[begin]
        if (bounds[i + 1] - bounds[i]) * n_states * LANES <= _MOST_NUMBERS:
            break
        begin += 1
    n_groups = (last - begin - FEW + LANES - 1) // LANES
    return begin, min(begin + max(n_groups, 0) * LANES, last)


@in_lanes
def order_of_run(layout, task, run):  # type: ignore[no-untyped-def]
    """The sequences of a task that are in a run of all sequences, the longest first."""
    order, n = np.empty(layout.task_bounds[task + 1] - layout.task_bounds[task], dtype=np.int64), 0
    for place in range(layout.task_bounds[task], layout.task_bounds[task + 1]):
        i = layout.longest_first[place]
        if run[0] <= i < run[1]:
            order[n] = i
            n += 1
    return order[:n]


@in_lanes
def smooth_in_lanes(densities, layout, transitions, totals, pairs, posteriors):  # type: ignore[no-untyped-def]
    """Smooth the sequences of each task that go side by side; ``pairs`` has an even number of rows and columns."""
    likelihood, log_scale, row, bounds = densities.likelihood, densities.log_scale, densities.row, layout.bounds
    n_tasks, n_states, n_even = len(transitions), transitions.shape[2], pairs.shape[1]
    begin, rows, columns = np.zeros(n_even), np.zeros((n_even, n_even)), np.zeros((n_even, n_even))
    for j in range(n_tasks):
        first, last = side_by_side(
            bounds, layout.longest_first, layout.task_bounds[j], layout.task_bounds[j + 1], n_states
        )
        if first == last:
            continue
        for s in range(n_states):
            begin[s] = transitions[j, 0, s]
            for r in range(n_states):
                rows[r, s] = columns[s, r] = transitions[j, r + 1, s]
        longest = layout.longest_first[first]
        n_numbers = max(bounds[longest + 1] - bounds[longest], 1) * LANES
        filtered, ahead = np.zeros((n_even, n_numbers)), np.zeros((n_even, n_numbers))
        for place in range(first, last, LANES):
            group = layout.longest_first[place : min(place + LANES, last)]
            filter_group(likelihood, log_scale, row, bounds, begin, rows, group, filtered, ahead, totals)
            smooth_group(bounds, columns, group, totals, filtered, ahead, pairs[j], posteriors)
