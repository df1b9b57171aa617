"""Draws from discrete distributions, and of them, compiled; randomness is uniform numbers or a seeded generator."""

from __future__ import annotations

from math import exp, inf, log

import numpy as np

from kinfolk.maths.compiled import compiled


@compiled
def draw_index(log_weights, n, uniform):  # type: ignore[no-untyped-def]
    """One of the first n indices, with probabilities proportional to the exponentials of their log weights.

    Examples
    --------
    >>> draw_index(np.array([0.0, -np.inf, 0.0]), 3, 0.51)
    2
    """
    highest = -np.inf
    for k in range(n):
        highest = max(highest, log_weights[k])
    total = 0.0
    for k in range(n):
        total += np.exp(log_weights[k] - highest)
    left = uniform * total
    chosen = 0
    for k in range(n):
        if log_weights[k] > -np.inf:
            chosen = k
            left -= np.exp(log_weights[k] - highest)
            if left < 0.0:
                break
    return chosen


@compiled
def draw_label(log_p, uniform):  # type: ignore[no-untyped-def]
    """Normalise log probabilities in place to probabilities and draw an index."""
    highest = np.max(log_p)
    total = 0.0
    for y in range(len(log_p)):
        log_p[y] = np.exp(log_p[y] - highest)
        total += log_p[y]
    left = uniform
    chosen = len(log_p) - 1
    for y in range(len(log_p)):
        log_p[y] /= total
        left -= log_p[y]
        if left < 0.0 and chosen == len(log_p) - 1 and log_p[y] > 0.0:
            chosen = y
            left = np.inf
    return chosen


@compiled
def _draw_log_gamma(shape, rng):  # type: ignore[no-untyped-def]
    """Log of a Gamma draw, which itself is too small for a float when its shape is small."""
    if shape >= 1.0:
        return log(rng.standard_gamma(shape))
    if shape <= 0.0:
        return -inf
    return log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential() / shape


@compiled
def draw_dirichlet(shapes, out, rng):  # type: ignore[no-untyped-def]
    """Draw probabilities ~ Dir(shapes) into ``out``, by way of their logarithms; not all shapes are zero."""
    n = len(shapes)
    largest = -inf
    for i in range(n):
        out[i] = _draw_log_gamma(shapes[i], rng)
        if out[i] > largest:
            largest = out[i]
    if largest == -inf:
        # So small that all logarithms are out of range: one outcome has it all, with a probability as its shape.
        most, total = 0.0, 0.0
        for i in range(n):
            if shapes[i] > most:
                most = shapes[i]
        for i in range(n):
            total += shapes[i] / most
        left, chosen = rng.random() * total, np.int64(-1)
        for i in range(n):
            out[i] = 0.0
            if shapes[i] > 0.0 and (chosen < 0 or left >= 0.0):
                chosen = np.int64(i)
                left -= shapes[i] / most
        out[chosen] = 1.0
        return
    total = 0.0
    for i in range(n):
        out[i] = exp(out[i] - largest)
        total += out[i]
    for i in range(n):
        out[i] /= total
