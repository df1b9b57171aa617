"""What a cluster's expected parameters say of each of its tasks: states and transition rows by mean field, compiled.

With q(W_jr) = Dir(x_r + n_jr), the states of task j have the posterior of a hidden Markov model whose transitions are

    exp E log W_jrl = exp(ψ(x_rl + n_jrl) − ψ(X_r + n_jr·)),        X_r ≥ Σ_l x_rl,

and whose emissions are exp E log p(o | θ_l) (M. J. Beal, Variational algorithms for approximate Bayesian inference,
2003, chapter 3). What X_r has above Σ_l x_rl is the mass of states that no step can be in. Here x_rl = αg_l + κ[r is
state l] and X_r = α + κ[r is a state], with g_l a cluster's weight of state l.
"""

from __future__ import annotations

from math import exp, lgamma
from typing import NamedTuple

import numpy as np

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled
from kinfolk.maths.digamma import digamma
from kinfolk.sequences.model.emissions.emission import Densities
from kinfolk.sequences.model.ndp_ihmm import ClusterPrior
from kinfolk.sequences.model.sequences import Sequences
from kinfolk.sequences.model.smoothing import expected_counts

# Expected counts below this are rounding.
NO_COUNT = 1e-12


@compiled
def _expect_transitions(base, alpha, stickiness, counts, out):  # type: ignore[no-untyped-def]
    """Fill in exp E log W of every task's rows; returns the divergence of each task's q(W) from its prior."""
    n_tasks, n_states = len(counts), len(base)
    divergences = np.zeros(n_tasks)
    for j in range(n_tasks):
        for r in range(n_states + 1):
            visits = 0.0
            for s in range(n_states):
                visits += counts[j, r, s]
            total = alpha + (stickiness if r > 0 else 0.0)
            row_digamma = digamma(total + visits)
            divergences[j] += lgamma(total + visits) - lgamma(total)
            for s in range(n_states):
                n = counts[j, r, s]
                x = alpha * base[s] + (stickiness if r == s + 1 else 0.0)
                expected_log = digamma(x + n) - row_digamma
                out[j, r, s] = exp(expected_log)
                if n > 0.0:
                    divergences[j] += n * expected_log - lgamma(x + n) + lgamma(x)
    return divergences


class Local(NamedTuple):
    """What each task adds to the bound (J,), its expected transitions (J, A + 1, A), and posteriors of steps (T, A)."""

    bounds: Floats
    counts: Floats
    posteriors: Floats


def local_posteriors(
    densities: Densities, sequences: Sequences, base: Floats, prior: ClusterPrior, counts: Floats
) -> Local:
    """Posteriors of the states of every task, given q(W_jr) = Dir(x_r + counts_jr). O(steps · states²)."""
    transitions = np.empty(counts.shape)
    divergences = _expect_transitions(base, prior.alpha, prior.stickiness, counts, transitions)
    found = Local(np.empty(len(counts)), np.empty(counts.shape), np.empty((sequences.n_steps, len(base))))
    likelihood, log_scale, row = densities
    for j in range(len(counts)):
        own = sequences.bounds[sequences.task_bounds[j] : sequences.task_bounds[j + 1] + 1]
        steps = slice(own[0], own[-1])
        of_sequences, found.counts[j], found.posteriors[steps] = expected_counts(
            likelihood, log_scale, row[steps], own - own[0], transitions[j]
        )
        found.bounds[j] = of_sequences.sum() - divergences[j]
    return found


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
