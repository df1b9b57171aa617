"""Transitions counted, and drawn: Dirichlet rows, and the tables of Chinese restaurants that share their dishes.

Y. W. Teh, M. I. Jordan, M. J. Beal and D. M. Blei, J. Amer. Statist. Assoc. 101, 2006 (tables, section 5.2);
E. B. Fox, E. B. Sudderth, M. I. Jordan and A. S. Willsky, Ann. Appl. Statist. 5, 2011 (overrides, appendix A).

A task's row r of transition counts n_r is a restaurant with base weights αβ + κe_r. Its probability with the row's
Dirichlet integrated out is a sum over tables m_rl ≤ n_rl, of which one term is

    Γ(α + κ_r)/Γ(α + κ_r + n_r·) ∏_l (αβ_l + κ_r[l = r])^{m_rl} |s(n_rl, m_rl)|,

with unsigned Stirling numbers of the first kind s. Of the tables where a state follows itself, a Binomial share
κ/(κ + αβ_r) is due to κ (*overrides*); the others, like all other tables, are draws from β.
"""

from __future__ import annotations

from math import lgamma, log

import numpy as np

from kinfolk.maths.compiled import compiled
from kinfolk.maths.draws import draw_dirichlet


@compiled
def count_transitions(states, bounds, task_bounds, n_states):  # type: ignore[no-untyped-def]
    """Transitions of each task, (n_tasks, n_states + 1, n_states); row 0 has the starts of sequences. O(n_steps).

    Examples
    --------
    >>> count_transitions(np.array([0, 1, 1, 1]), np.array([0, 3, 4]), np.array([0, 2]), 2)[0].tolist()
    [[1, 1], [0, 1], [0, 1]]
    """
    counts = np.zeros((len(task_bounds) - 1, n_states + 1, n_states), dtype=np.int64)
    for j in range(len(task_bounds) - 1):
        for i in range(task_bounds[j], task_bounds[j + 1]):
            before = 0
            for t in range(bounds[i], bounds[i + 1]):
                counts[j, before, states[t]] += 1
                before = states[t] + 1
    return counts


@compiled
def log_transition_marginals(counts, weights, kappa):  # type: ignore[no-untyped-def]
    """Log probability of each task's transitions with its rows ~ Dir(weights + κe_r) integrated out. O(J L²).

    ``weights`` is αβ of each task's cluster, (n_tasks, n_states).
    """
    n_tasks, n_rows, n_states = counts.shape
    out = np.zeros(n_tasks)
    for j in range(n_tasks):
        weight_of_row = 0.0
        for s in range(n_states):
            weight_of_row += weights[j, s]
        for r in range(n_rows):
            in_row = 0
            for s in range(n_states):
                n = counts[j, r, s]
                if n > 0:
                    weight = weights[j, s] + (kappa if s + 1 == r else 0.0)
                    # Γ(w + n)/Γ(w) = w Γ(w + n)/Γ(w + 1), of which a tiny w takes nothing away.
                    out[j] += log(weight if weight > 1e-300 else 1e-300) + lgamma(weight + n) - lgamma(weight + 1.0)
                    in_row += n
            if in_row > 0:
                whole = weight_of_row + (kappa if r > 0 else 0.0)
                out[j] += lgamma(whole) - lgamma(whole + in_row)
    return out


@compiled
def draw_row(weights, kappa, r, counts, shapes, out, rng):  # type: ignore[no-untyped-def]
    """Draw transition row r ~ Dir(weights + κe_r + counts) into ``out``; ``shapes`` is scratch."""
    for s in range(len(weights)):
        shapes[s] = weights[s] + counts[s]
    if r > 0:
        shapes[r - 1] += kappa
    draw_dirichlet(shapes, out, rng)


@compiled
def draw_rows(weights, kappa, counts, out, rng):  # type: ignore[no-untyped-def]
    """Draw one task's transition rows given their counts into ``out``, (n_states + 1, n_states)."""
    shapes = np.empty(len(weights))
    for r in range(len(weights) + 1):
        draw_row(weights, kappa, r, counts[r], shapes, out[r], rng)


@compiled
def draw_rows_of_tasks(weights, kappa, counts, first, last, out, rng):  # type: ignore[no-untyped-def]
    """Draw the transition rows of tasks ``first:last``, given αβ of each, (J, L), and counts that are floats."""
    for j in range(first, last):
        draw_rows(weights[j], kappa, counts[j], out[j], rng)


@compiled
def draw_tables(counts, cluster, weights, kappa, rng):  # type: ignore[no-untyped-def]
    """Draw tables: those due to β added up for each cluster and state, and those due to κ in all. O(n_steps).

    ``weights`` is αβ of each cluster, (n_clusters, n_states). The i-th customer of a dish of weight w starts a table
    with probability w/(w + i), counted from zero.
    """
    n_tasks, n_rows, n_states = counts.shape
    of_states = np.zeros(weights.shape, dtype=np.int64)
    overrides = 0
    for j in range(n_tasks):
        k = cluster[j]
        for r in range(n_rows):
            for s in range(n_states):
                n = counts[j, r, s]
                if n == 0:
                    continue
                weight = weights[k, s]
                if s + 1 == r:
                    weight += kappa
                tables = 1
                for i in range(1, n):
                    if rng.random() * (weight + i) < weight:
                        tables += 1
                if s + 1 == r and kappa > 0.0:
                    for _ in range(tables):
                        if rng.random() * weight < kappa:
                            overrides += 1
                        else:
                            of_states[k, s] += 1
                else:
                    of_states[k, s] += tables
    return of_states, overrides
