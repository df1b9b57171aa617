"""Hidden paths of sequences side by side, drawn backwards from what a filter has kept of them, compiled.

Each sequence has a lane (`lanes`). Of every step are kept the probabilities of states before its observation was seen
and after, (n_steps, n_states, lanes): a step's numbers lie together. The first are the sums of the weights by which the
states of the step before are drawn, so that one pass over the states draws them.
"""

from __future__ import annotations

from math import inf, log

import numpy as np

from kinfolk.sequences.model.lanes import LANES, SMALL, in_lanes, normalise, order_of_run, side_by_side, times

# Paths are drawn by weights that may add up to anything; above this, those of single states keep their digits.
_LEAST_SUM = 1e-50


@in_lanes
def draw_in_lanes(densities, layout, slots, transitions, uniforms, states_out, run, totals):  # type: ignore[no-untyped-def]
    """Draw the states of the sequences of each task that go side by side; see `filtering.draw_states`."""
    row, bounds, n_tasks, n_states = densities.row, layout.bounds, len(transitions), transitions.shape[2]
    n_even = n_states + n_states % 2
    begin, rows, columns = np.zeros(n_even), np.zeros((n_even, n_even)), np.ones((n_states + 1, n_states))
    for j in range(n_tasks):
        order = order_of_run(layout, j, run)
        first, last = side_by_side(bounds, order, np.int64(0), len(order), n_states)
        if first == last:
            continue
        likelihood, log_scale = densities.likelihood[slots[j]], densities.log_scale[slots[j]]
        for s in range(n_states):
            begin[s] = transitions[j, 0, s]
            for r in range(n_states):
                rows[r, s] = columns[s, r] = transitions[j, r + 1, s]
        n_steps = max(bounds[order[first] + 1] - bounds[order[first]], 1)
        before, after = np.zeros((n_steps, n_even, LANES)), np.zeros((n_steps, n_even, LANES))
        for place in range(first, last, LANES):
            group = order[place : min(place + LANES, last)]
            _filter_group(likelihood, log_scale, row, bounds, begin, rows, group, before, after, totals)
            _draw_group(bounds, columns, group, totals, before, after, uniforms, states_out)


@in_lanes
def _filter_group(likelihood, log_scale, row, bounds, begin, rows, group, before, after, totals):  # type: ignore[no-untyped-def]
    """Filter sequences side by side, longest first.

    Probabilities ``after`` a step add up to no less than `_LEAST_SUM`: few steps then need to be divided by anything.
    """
    n_lanes = len(group)
    at, scales = np.zeros(LANES, dtype=np.int64), np.zeros(LANES)
    sums, scale, product = np.ones(LANES), np.empty(LANES), np.ones(LANES)
    for t in range(bounds[group[0] + 1] - bounds[group[0]]):
        while bounds[group[n_lanes - 1] + 1] - bounds[group[n_lanes - 1]] <= t:
            n_lanes -= 1
            if sums[n_lanes] != 1.0:
                totals[group[n_lanes]] += log(sums[n_lanes])
        for lane in range(n_lanes):
            at[lane] = row[bounds[group[lane]] + t]
            scales[lane] += log_scale[at[lane]]
        come, now = before[t], after[t]
        if t > 0:
            times(rows, after[t - 1], come)
        else:
            for s in range(len(begin)):
                for lane in range(LANES):
                    come[s, lane] = begin[s]
        _weigh(come, likelihood, at, now, sums)
        n_low = 0
        for lane in range(n_lanes):
            n_low += sums[lane] < _LEAST_SUM
        if n_low == 0:
            continue
        normalise(now, n_lanes, sums, scale)
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
        for lane in range(n_lanes):
            sums[lane] = 1.0
    for lane in range(len(group)):
        totals[group[lane]] += scales[lane] + log(product[lane])
    for lane in range(n_lanes):
        totals[group[lane]] += log(sums[lane])


@in_lanes
def _weigh(come, likelihood, at, now, sums):  # type: ignore[no-untyped-def]
    """Set ``now`` to what has come times the likelihoods of the lanes' steps, and ``sums`` to its sums.

    Likelihoods are gathered here, where they are used: written into lanes first, they would have to be loaded again
    before they are in the cache.
    """
    n_states = likelihood.shape[1]
    for lane in range(LANES):
        sums[lane] = 0.0
    for s in range(0, n_states - 1, 2):
        for lane in range(LANES):
            one, other = come[s, lane] * likelihood[at[lane], s], come[s + 1, lane] * likelihood[at[lane], s + 1]
            now[s, lane] = one
            now[s + 1, lane] = other
            sums[lane] += one + other
    for s in range(n_states - n_states % 2, n_states):
        for lane in range(LANES):
            now[s, lane] = come[s, lane] * likelihood[at[lane], s]
            sums[lane] += now[s, lane]


@in_lanes
def _draw_group(bounds, columns, group, totals, before, after, uniforms, states_out):  # type: ignore[no-untyped-def]
    """Draw paths backwards from what `_filter_group` has left; ``columns[s, r]`` is p(s after r), its last row ones."""
    n_states, n_group = columns.shape[1], len(group)
    following, drawn = np.full(LANES, n_states, dtype=np.int64), np.empty(LANES, dtype=np.int64)
    left, n_lanes, in_fours = np.empty(LANES), 0, n_states - n_states % 4
    for t in range(bounds[group[0] + 1] - bounds[group[0]] - 1, -1, -1):
        now, n_going_on = after[t], n_lanes
        while n_lanes < n_group and bounds[group[n_lanes] + 1] - bounds[group[n_lanes]] > t:
            n_lanes += 1
        # A share of the sum of all weights: of the state that was drawn last, or of all states where nothing was yet.
        for lane in range(LANES):
            left[lane] = 0.0
            drawn[lane] = 0
        for lane in range(n_going_on):
            left[lane] = before[t + 1, following[lane], lane]
        for lane in range(n_going_on, n_lanes):
            for s in range(n_states):
                left[lane] += now[s, lane]
        for lane in range(n_lanes):
            left[lane] *= uniforms[bounds[group[lane]] + t]
        # The number of states after which some of it is left is the state that is drawn.
        for s in range(0, in_fours, 4):
            for lane in range(LANES):
                following_it = following[lane]
                w = left[lane] - now[s, lane] * columns[following_it, s]
                x = w - now[s + 1, lane] * columns[following_it, s + 1]
                y = x - now[s + 2, lane] * columns[following_it, s + 2]
                z = y - now[s + 3, lane] * columns[following_it, s + 3]
                left[lane] = z
                drawn[lane] += ((w >= 0.0) + (x >= 0.0)) + ((y >= 0.0) + (z >= 0.0))
        for s in range(in_fours, n_states):
            for lane in range(LANES):
                left[lane] -= now[s, lane] * columns[following[lane], s]
                drawn[lane] += left[lane] >= 0.0
        for lane in range(n_lanes):
            state = min(drawn[lane], n_states - 1)
            # Where rounding leaves something after the last state that can be, it is that one.
            while state > 0 and now[state, lane] * columns[following[lane], state] <= 0.0:
                state -= 1
            following[lane] = state
            if totals[group[lane]] > -inf:
                states_out[bounds[group[lane]] + t] = state
