"""The steps of the sampler for clusters of noisy copies that go through all counts, compiled (see ``noisy``).

All take ``log_share`` (clusters, cells), the log prototypes times a power: one, or less in annealing. Pseudo-counts are
K times the shares, and the total in every denominator is K, whatever the power.
"""

from __future__ import annotations

import numpy as np

from kinfolk.maths.compiled import compiled

_NARROWEST, _WIDEST = 1e-4, 1e3
# A product of factors is turned into a logarithm before it gets this large.
_LARGE = 1e100


@compiled
def _log_rising(a, log_a, n):  # type: ignore[no-untyped-def]
    """Log of a (a + 1) … (a + n − 1); log a is given too, since a itself may be too small for a float."""
    if n == 0:
        return 0.0
    total, factors = log_a, 1.0
    for i in range(1, n):
        factors *= a + i
        if factors > _LARGE:
            total += np.log(factors)
            factors = 1.0
    return total + np.log(factors)


@compiled
def group_log_likelihood(log_strength, first, last, counts, cluster, log_share):  # type: ignore[no-untyped-def]
    """Log probability of one group's counts, cells first to last, of all tasks: Σ_u [Σ_x log (Kθ̄_x)↑n − log K↑N]."""
    strength = np.exp(log_strength)
    total = 0.0
    for u in range(len(counts)):
        n_rows = 0
        for c in range(first, last):
            n = counts[u, c]
            if n > 0:
                log_a = log_strength + log_share[cluster[u], c]
                total += _log_rising(np.exp(log_a), log_a, n)
                n_rows += n
        total -= _log_rising(strength, log_strength, n_rows)
    return total


@compiled
def log_likelihood(log_strength, group_start, counts, cluster, log_share):  # type: ignore[no-untyped-def]
    """Log probability of all counts given clusters, prototypes and strengths."""
    total = 0.0
    for g in range(len(log_strength)):
        first, last = group_start[g], group_start[g + 1]
        total += group_log_likelihood(log_strength[g], first, last, counts, cluster, log_share)
    return total


@compiled
def redraw_strengths(  # type: ignore[no-untyped-def]
    log_strength, width, shape, rate, group_start, counts, cluster, log_share, adapt, rng
):
    """Redraw every log strength in place by slice sampling (R. M. Neal, Ann. Statist. 31, 2003, stepping out)."""
    for g in range(len(log_strength)):
        first, last = group_start[g], group_start[g + 1]
        here = log_strength[g]
        fit = group_log_likelihood(here, first, last, counts, cluster, log_share)
        height = shape * here - rate * np.exp(here) + fit + np.log1p(-rng.random())
        left = here - width[g] * rng.random()
        right = left + width[g]
        for side in range(2):
            end = left if side == 0 else right
            step = -width[g] if side == 0 else width[g]
            while True:
                fit = group_log_likelihood(end, first, last, counts, cluster, log_share)
                if shape * end - rate * np.exp(end) + fit <= height:
                    break
                end += step
            if side == 0:
                left = end
            else:
                right = end
        # Rounding may hide the point itself from a height just below it.
        while right - left > 1e-12 * (1.0 + abs(here)):
            there = left + (right - left) * rng.random()
            fit = group_log_likelihood(there, first, last, counts, cluster, log_share)
            if shape * there - rate * np.exp(there) + fit > height:
                log_strength[g] = there
                break
            if there < here:
                left = there
            else:
                right = there
        if adapt:
            step = abs(log_strength[g] - here)
            width[g] = min(max(0.9 * width[g] + 0.4 * step, _NARROWEST), _WIDEST)


@compiled
def draw_votes(log_strength, group_start, counts, cluster, log_share, votes, rng):  # type: ignore[no-untyped-def]
    """Draw how many of each task's rows with a value were drawn from the prototype, in place of ``votes``.

    The first was; the (i + 1)-th was with probability a / (a + i), a = K θ̄_x, else it repeats one of those before it.
    """
    for g in range(len(log_strength)):
        for u in range(len(counts)):
            for c in range(group_start[g], group_start[g + 1]):
                n = counts[u, c]
                drawn = min(n, 1)
                if n > 1:
                    a = np.exp(log_strength[g] + log_share[cluster[u], c])
                    for i in range(1, n):
                        if rng.random() * (a + i) < a:
                            drawn += 1
                votes[u, c] = drawn
