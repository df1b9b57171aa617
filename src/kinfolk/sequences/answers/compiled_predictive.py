"""What `kinfolk.sequences.model.emissions.predictive` has of many states, of one state; compiled, for particles."""

from __future__ import annotations

from math import lgamma, log, log1p, sqrt

import numpy as np

from kinfolk.maths.compiled import compiled
from kinfolk.sequences.model.emissions.predictive import COUNT, GAUSSIAN, NUMBERS, TOGETHER

# Products up to this are told by one logarithm.
_LARGE_PRODUCT = 1e250


@compiled
def log_density_of_one(cells, entries, layout):  # type: ignore[no-untyped-def]
    """Log density of a step (entries,) as one more of a state (cells,)."""
    total = 0.0
    for channel in range(len(layout)):
        kind, v, c = layout[channel, 0], layout[channel, 1], layout[channel, 2]
        n_blocks, n_regressors, size = layout[channel, 3], layout[channel, 4], layout[channel, 5]
        if kind == NUMBERS:
            total += _of_numbers(cells, entries, c, v, n_blocks)
        elif kind == GAUSSIAN:
            if entries[v] != 0.0:
                total += _of_gaussian(cells, entries, c, v, n_regressors, size)
        elif kind == COUNT:
            if entries[v] != 0.0:
                shape, rate, x = cells[c], cells[c + 1], entries[v + 1]
                total += lgamma(shape + x) - lgamma(shape) - shape * log1p(1.0 / rate) - x * log1p(rate)
        else:
            for d in range(n_blocks):
                yes, no = entries[v + d], entries[v + n_blocks + d]
                if yes + no > 0.0:
                    shown = cells[c + d] if yes > 0.0 else cells[c + n_blocks + d]
                    total += log(shown) - log(cells[c + d] + cells[c + n_blocks + d])
    return total


@compiled
def _of_numbers(cells, entries, c, v, width):  # type: ignore[no-untyped-def]
    """Where as many steps have shown every number, distances have one power, and products take one logarithm."""
    weight = cells[c]
    wider, power = (weight + 1.0) / weight, 0.5 * (3.0 + weight)
    total, alike, first = 0.0, True, 0
    while alike and first < width:
        last = min(first + TOGETHER, width)
        spreads = squares = 1.0
        for d in range(first, last):
            alike = alike and cells[c + d] == weight and entries[v + d] == 1.0
            gap = entries[v + width + d] - cells[c + width + d]
            spread = cells[c + 2 * width + d] * wider
            spreads *= spread
            squares *= spread + gap * gap
            total += cells[c + 3 * width + d]
        alike = alike and spreads > 1.0 / _LARGE_PRODUCT and squares < _LARGE_PRODUCT
        if alike:
            total += (power - 0.5) * log(spreads) - power * log(squares)
        first = last
    return total if alike else _of_numbers_apart(cells, entries, c, v, width)


@compiled
def _of_numbers_apart(cells, entries, c, v, width):  # type: ignore[no-untyped-def]
    total = 0.0
    for d in range(width):
        if entries[v + d] != 0.0:
            weight = cells[c + d]
            spread = cells[c + 2 * width + d] * (weight + 1.0) / weight
            gap = entries[v + width + d] - cells[c + width + d]
            each = cells[c + 3 * width + d] - 0.5 * log(spread)
            total += each - 0.5 * (3.0 + weight) * log1p(gap * gap / spread)
    return total


@compiled
def _of_gaussian(cells, entries, c, v, n_regressors, size):  # type: ignore[no-untyped-def]
    width, wider, distance, diagonal, at = size - n_regressors, 1.0, 0.0, 0.0, c
    for i in range(size):
        y = 0.0
        for j in range(i + 1):
            y += cells[at + j] * entries[v + j]
        at += i + 1
        if i < n_regressors:
            wider += y * y
        else:
            distance += y * y
            diagonal += log(cells[at - 1])
    half = 0.5 * (2.0 + cells[c] ** -2.0)
    power = half + 0.5 * width
    constant = lgamma(power) - lgamma(half) + diagonal
    return constant - 0.5 * width * log(wider) - power * log1p(distance / wider)


@compiled
def grow(cells, entries, layout):  # type: ignore[no-untyped-def]
    """Add a step (entries,) to what a state knows (cells,)."""
    for channel in range(len(layout)):
        kind, v, c = layout[channel, 0], layout[channel, 1], layout[channel, 2]
        n_blocks, size = layout[channel, 3], layout[channel, 5]
        if kind == NUMBERS:
            _grow_numbers(cells, entries, c, v, n_blocks)
        elif kind == GAUSSIAN:
            if entries[v] != 0.0:
                _grow_gaussian(cells, entries, c, v, size)
        elif kind == COUNT:
            cells[c] += entries[v + 1]
            cells[c + 1] += entries[v]
        else:
            for d in range(2 * n_blocks):
                cells[c + d] += entries[v + d]


@compiled
def _grow_numbers(cells, entries, c, v, width):  # type: ignore[no-untyped-def]
    before, log_half, share = -1.0, 0.0, 0.0
    for d in range(width):
        if entries[v + d] == 0.0:
            continue
        weight = cells[c + d]
        if weight != before:
            before, log_half, share = weight, log(0.5 * (2.0 + weight)), 1.0 / (weight + 1.0)
        gap = entries[v + width + d] - cells[c + width + d]
        cells[c + d] = weight + 1.0
        cells[c + width + d] += gap * share
        cells[c + 2 * width + d] += gap * gap * (weight * share)
        # Γ(a + 1) = aΓ(a) tells the next ratio by the last.
        cells[c + 3 * width + d] = log_half - cells[c + 3 * width + d]


@compiled
def _grow_gaussian(cells, entries, c, v, size):  # type: ignore[no-untyped-def]
    """Divide L⁻¹ by the factor of I + yyᵀ, row by row."""
    so_far, before, at = np.zeros(size), 1.0, c
    for k in range(size):
        y = 0.0
        for j in range(k + 1):
            y += cells[at + j] * entries[v + j]
        after = before + y * y
        root, root_before = sqrt(after), sqrt(before)
        for j in range(k + 1):
            cells[at + j] = root_before / root * (cells[at + j] - y * so_far[j])
            so_far[j] += y / root / root_before * cells[at + j]
        before = after
        at += k + 1
