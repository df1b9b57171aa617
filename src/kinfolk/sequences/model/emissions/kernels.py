"""Sums over steps for the emissions, compiled; imported where a model learns, never where a loaded one answers."""

from __future__ import annotations

from math import lgamma, log1p

import numpy as np

from kinfolk.maths.compiled import compiled


@compiled
def count_codes(codes, states, n_states, n_codes):  # type: ignore[no-untyped-def]
    """How often each state (rows) shows each code."""
    counts = np.zeros((n_states, n_codes))
    for t in range(len(codes)):
        if 0 <= codes[t] < n_codes:
            counts[states[t], codes[t]] += 1.0
    return counts


@compiled
def expected_codes(codes, posteriors, n_codes):  # type: ignore[no-untyped-def]
    """How often each state is expected to show each code."""
    n_states = posteriors.shape[1]
    # Codes first, so that a step adds to cells that lie together.
    counts = np.zeros((n_codes, n_states))
    for t in range(len(codes)):
        if 0 <= codes[t] < n_codes:
            for state in range(n_states):
                counts[codes[t], state] += posteriors[t, state]
    out = np.empty((n_states, n_codes))
    for state in range(n_states):
        for code in range(n_codes):
            out[state, code] = counts[code, state]
    return out


@compiled
def log_marginals_of_counts(counts, strength):  # type: ignore[no-untyped-def]
    """Log probability of the codes of each row in their order, under a symmetric Dirichlet prior."""
    n_rows, n_codes = counts.shape
    at_prior, of_all = lgamma(strength), lgamma(n_codes * strength)
    out = np.zeros(n_rows)
    for i in range(n_rows):
        total = 0.0
        for c in range(n_codes):
            if counts[i, c] > 0.0:
                out[i] += lgamma(strength + counts[i, c]) - at_prior
                total += counts[i, c]
        if total > 0.0:
            out[i] += of_all - lgamma(n_codes * strength + total)
    return out


@compiled
def add_to_states(step_statistics, states, sums):  # type: ignore[no-untyped-def]
    """Add the statistics of each step to those of its state."""
    for t in range(len(states)):
        for c in range(step_statistics.shape[1]):
            sums[states[t], c] += step_statistics[t, c]


@compiled
def log_student(z, is_there, mean, power, narrowness, grown):  # type: ignore[no-untyped-def]
    """Log densities of Student's t, entries that are there added up, of every step in every state."""
    n_steps, width = z.shape
    n_states = len(mean)
    out = np.zeros((n_steps, n_states))
    for t in range(n_steps):
        for state in range(n_states):
            for d in range(width):
                if is_there[t, d]:
                    gap = z[t, d] - mean[state, d]
                    out[t, state] += grown[state, d] - power[state, d] * log1p(gap * gap * narrowness[state, d])
    return out
