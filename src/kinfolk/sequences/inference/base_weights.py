"""The variational posterior of a cluster's base weights, q(β) = Dir(ω), compiled.

States that no step uses keep ω_l = γ/L and are not stored; A ≤ L states are. Base weights act on the rows of W
through E_q f(log β_l), f(u) = log Γ(αe^u + n)/Γ(αe^u), which has no closed form. f is convex for n ≥ 1, and its
curvature is never below −¼, so that

    E_q f(u) ≥ f(E_q u) − Var_q(u)/8,        E_q u = ψ(ω_l) − ψ(Σω),   Var_q u = ψ′(ω_l) − ψ′(Σω).

Hence β acts as the geometric mean g_l = exp E_q log β_l, and the best ω is close to γ/L + m̂, m̂_l being the slope of f
summed over rows: the expected tables of a Chinese restaurant franchise.
"""

from __future__ import annotations

from math import exp, lgamma

import numpy as np

from kinfolk.maths.compiled import compiled
from kinfolk.maths.digamma import digamma, trigamma
from kinfolk.sequences.inference.local_posteriors import log_rising

_SHORTEST_STEP = 1e-3


@compiled
def _total(weights, gamma, n_states):  # type: ignore[no-untyped-def]
    """Σω, those of states that are not in use included."""
    total = gamma * (1.0 - len(weights) / n_states)
    for s in range(len(weights)):
        total += weights[s]
    return total


@compiled
def geometric_means(weights, gamma, n_states):  # type: ignore[no-untyped-def]
    """Geometric means of β of the states in use.

    Examples
    --------
    >>> geometric_means(np.array([30.0, 10.0]), 1.0, 10).round(3)
    array([0.732, 0.236])
    """
    total = _total(weights, gamma, n_states)
    base = np.empty(len(weights))
    for s in range(len(weights)):
        base[s] = exp(digamma(weights[s]) - digamma(total))
    return base


@compiled
def base_bound(weights, gamma, n_states, n_tasks):  # type: ignore[no-untyped-def]
    """What q(β) takes from the bound: −KL(Dir(ω) ‖ Dir(γ/L)), and Var(log β_l)/8 for each row of each task."""
    prior = gamma / n_states
    total = _total(weights, gamma, n_states)
    value = lgamma(gamma) - lgamma(total)
    n_rows = n_tasks * (len(weights) + 1)
    at_total, variance_of_total = digamma(total), trigamma(total)
    for s in range(len(weights)):
        value += lgamma(weights[s]) - lgamma(prior) - (weights[s] - prior) * (digamma(weights[s]) - at_total)
        value -= n_rows * (trigamma(weights[s]) - variance_of_total) / 8.0
    return value


@compiled
def weigh_states(counts, task_weights, weights, gamma, n_states, alpha, stickiness, n_updates):  # type: ignore[no-untyped-def]
    """Update ω given the expected transitions of the tasks, (J, A + 1, A), and how far each belongs to the cluster.

    A step towards γ/L + m̂ follows the natural gradient; it is halved until the bound has risen, which never falls.
    """
    n_tasks, tried = 0.0, np.empty(len(weights))
    for j in range(len(task_weights)):
        n_tasks += task_weights[j]
    value, tables = log_rising(counts, task_weights, geometric_means(weights, gamma, n_states), alpha, stickiness)
    best = value + base_bound(weights, gamma, n_states, n_tasks)
    for _ in range(n_updates):
        size, improved = 1.0, False
        while size > _SHORTEST_STEP:
            for s in range(len(weights)):
                tried[s] = weights[s] + size * (gamma / n_states + tables[s] - weights[s])
            base = geometric_means(tried, gamma, n_states)
            value, tried_tables = log_rising(counts, task_weights, base, alpha, stickiness)
            value += base_bound(tried, gamma, n_states, n_tasks)
            if value > best:
                improved = True
                break
            size *= 0.5
        if not improved:
            break
        weights, tried, best, tables = tried, np.empty(len(weights)), value, tried_tables
    return weights
