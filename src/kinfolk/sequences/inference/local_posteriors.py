"""What a cluster's expected parameters say of each of its tasks: states and transition rows by mean field, compiled.

With q(W_jr) = Dir(x_r + n_jr), the states of task j have the posterior of a hidden Markov model whose transitions are

    exp E log W_jrl = exp(ψ(x_rl + n_jrl) − ψ(X_r + n_jr·)),        X_r ≥ Σ_l x_rl,

and whose emissions are exp E log p(o | θ_l) (M. J. Beal, Variational algorithms for approximate Bayesian inference,
2003, chapter 3). What X_r has above Σ_l x_rl is the mass of states that no step can be in. Here x_rl = αg_l + κ[r is
state l] and X_r = α + κ[r is a state], with g_l a cluster's weight of state l.
"""

from __future__ import annotations

from math import exp, lgamma

import numpy as np

from kinfolk.maths.compiled import compiled
from kinfolk.maths.digamma import digamma
from kinfolk.sequences.model.smoothing import expected_counts

# Expected counts below this are rounding.
NO_COUNT = 1e-12


@compiled
def _expect_transitions(base, alpha, stickiness, counts, out):  # type: ignore[no-untyped-def]
    """Fill in exp E log W of a task's rows; returns the divergence of q(W) from its prior."""
    n_states = len(base)
    divergence = 0.0
    for r in range(n_states + 1):
        visits = 0.0
        for s in range(n_states):
            visits += counts[r, s]
        total = alpha + (stickiness if r > 0 else 0.0)
        row_digamma = digamma(total + visits)
        divergence += lgamma(total + visits) - lgamma(total)
        for s in range(n_states):
            n = counts[r, s]
            x = alpha * base[s] + (stickiness if r == s + 1 else 0.0)
            expected_log = digamma(x + n) - row_digamma
            out[r, s] = exp(expected_log)
            if n > 0.0:
                divergence += n * expected_log - lgamma(x + n) + lgamma(x)
    return divergence


@compiled
def local_posteriors(  # type: ignore[no-untyped-def]
    likelihood, log_scale, row, bounds, task_bounds, base, alpha, stickiness, counts, new_counts, posteriors
):
    """Posteriors of the states of every task, given q(W_jr) = Dir(x_r + counts_jr).

    Fills in ``new_counts`` (tasks, states + 1, states), the expected transitions, and ``posteriors`` (steps, states);
    returns what each task adds to the variational bound. O(steps · states²).
    """
    n_tasks, n_states = len(task_bounds) - 1, len(base)
    transitions = np.empty((n_states + 1, n_states))
    out = np.empty(n_tasks)
    for j in range(n_tasks):
        own = bounds[task_bounds[j] : task_bounds[j + 1] + 1]
        first, end = own[0], own[-1]
        out[j] = -_expect_transitions(base, alpha, stickiness, counts[j], transitions)
        log_likelihood, expected, of_steps = expected_counts(
            likelihood, log_scale, row[first:end], own - first, transitions
        )
        out[j] += log_likelihood.sum()
        new_counts[j] = expected
        posteriors[first:end] = of_steps
    return out


@compiled
def log_rising(counts, task_weights, base, alpha, stickiness):  # type: ignore[no-untyped-def]
    """Log probability of counts with the rows of W integrated out, and its slopes with respect to log g.

    The first is Σ_j ρ_j Σ_r log[B(x_r + n_jr)/B(x_r)] with ρ the tasks' weights; the slopes are the tables m̂ of a
    Chinese restaurant franchise, Σ_j ρ_j Σ_r αg_l[ψ(x_rl + n_jrl) − ψ(x_rl)].
    """
    n_tasks, n_states = len(counts), len(base)
    value = 0.0
    tables = np.zeros(n_states)
    at_zero, log_at_zero = np.empty(n_states), np.empty(n_states)
    for s in range(n_states):
        at_zero[s], log_at_zero[s] = digamma(alpha * base[s]), lgamma(alpha * base[s])
    for j in range(n_tasks):
        rho = task_weights[j]
        if rho <= 0.0:
            continue
        for r in range(n_states + 1):
            visits = 0.0
            for s in range(n_states):
                n = counts[j, r, s]
                if n <= NO_COUNT:
                    continue
                visits += n
                x = alpha * base[s]
                digamma_x, log_gamma_x = at_zero[s], log_at_zero[s]
                if r == s + 1 and stickiness > 0.0:
                    x += stickiness
                    digamma_x, log_gamma_x = digamma(x), lgamma(x)
                value += rho * (lgamma(x + n) - log_gamma_x)
                tables[s] += rho * alpha * base[s] * (digamma(x + n) - digamma_x)
            if visits > 0.0:
                total = alpha + (stickiness if r > 0 else 0.0)
                value -= rho * (lgamma(total + visits) - lgamma(total))
    return value, tables
