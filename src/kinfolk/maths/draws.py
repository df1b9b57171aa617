"""Draws from discrete distributions, compiled; randomness comes in as uniform numbers."""

from __future__ import annotations

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
