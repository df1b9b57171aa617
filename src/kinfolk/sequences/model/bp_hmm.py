"""The beta-process HMM (E. B. Fox, M. C. Hughes, E. B. Sudderth and M. I. Jordan, Ann. Appl. Statist. 8, 2014).

J tasks have hidden states in common, of which each uses some: its *features*, a row of a matrix F of zeros and ones.

    F ~ IBP(γ, c)                    task j takes state k that m others have with probability m/(c + j − 1), and then
                                     Poisson(γc/(c + j − 1)) states that nobody has: γ of them each, if it were alone
    θ_k ~ H(h)                       what a state emits, to all tasks alike; h is H's strength
    η_jrs ~ Gamma(α + κ[r = s])      weights of a task's transitions, of which it uses those between its features:
    W_jrs = F_js η_jrs / Σ F_j· η_jr·   row 0 starts a sequence and never has κ; row r + 1 leaves state r
    s_t ~ W_{j,s_{t−1}},  o_t ~ F(θ_{s_t})

A row of W_j is therefore Dirichlet over the task's features alone, whatever the others have. States are a set: which
column of F has which is of no meaning. Up to a constant, a matrix with K columns that are not empty has

    p(F) ∝ (γc)^K exp(−γ Σ_{j=1}^{J} c/(c + j − 1)) ∏_k B(m_k, J − m_k + c)

with m_k tasks that have state k (T. L. Griffiths and Z. Ghahramani, J. Mach. Learn. Res. 12, 2011, section 5; R.
Thibaux and M. I. Jordan, AISTATS 2007). Two things are given: every task has a feature at least, for else its sequences
have probability zero, and there are at most L states, for which there is room. c small lets tasks share nearly all
states, c large hardly any.
"""

from __future__ import annotations

from math import lgamma
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from kinfolk.maths.compiled import compiled
from kinfolk.sequences.model.draw import Draw, HyperParameters, chances_of_features
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.ndp_ihmm import count_transitions, summed_out, urns
from kinfolk.sequences.model.sequences import Sequences

Flags = NDArray[np.bool_]


class FeatureState(NamedTuple):
    """Where a chain is: all that a sweep reads and writes.

    Attributes
    ----------
    features : bool ndarray of shape (J, L)
        F; a column that is empty is room for a state.
    states : ndarray of shape (n_steps,)
        The hidden state of each step.
    parameters : ndarray of shape (L, P)
        θ, of empty columns as well.
    transitions : ndarray of shape (J, L + 1, L)
        W, zero where a task has no feature.
    hyper : HyperParameters
        c is ``eta``, γ is ``gamma``; ``alpha``, ``strength`` and ``stickiness`` are α, h and κ.
    """

    features: Flags
    states: NDArray[np.int64]
    parameters: NDArray[np.float64]
    transitions: NDArray[np.float64]
    hyper: HyperParameters


def expected_tasks(concentration: float, n_tasks: int) -> float:
    """Σ_j c/(c + j − 1): γ times this many states are expected in all.

    Examples
    --------
    >>> round(expected_tasks(1.0, 3), 6)
    1.833333
    """
    return float((concentration / (concentration + np.arange(n_tasks))).sum())


def log_features(features: Flags, hyper: HyperParameters) -> float:
    """Log p(F | γ, c), columns as a set; up to a constant that hangs on no hyper-parameter.

    Examples
    --------
    One task and one state, of Poisson(2) that it might have:

    >>> round(float(np.exp(log_features(np.array([[True, False]]), HyperParameters(1.0, 2.0, 1.0, 1.0)))), 6)
    0.270671
    """
    n_tasks = len(features)
    sizes = features.sum(axis=0)
    sizes = sizes[sizes > 0]
    new = len(sizes) * np.log(hyper.gamma * hyper.eta) - hyper.gamma * expected_tasks(hyper.eta, n_tasks)
    return float(new + betaln(sizes, n_tasks - sizes + hyper.eta).sum())


@compiled
def log_feature_transitions(counts, features, alpha, kappa):  # type: ignore[no-untyped-def]
    """Log probability of each task's transitions, its rows, Dirichlet over its features, integrated out. O(J L²)."""
    n_tasks, n_rows, n_states = counts.shape
    out = np.zeros(n_tasks)
    none, none_staying = lgamma(alpha), lgamma(alpha + kappa)
    for j in range(n_tasks):
        n_features = 0
        for s in range(n_states):
            n_features += features[j, s]
        for r in range(n_rows):
            in_row = 0
            for s in range(n_states):
                n = counts[j, r, s]
                if n > 0:
                    if s + 1 == r:
                        out[j] += lgamma(alpha + kappa + n) - none_staying
                    else:
                        out[j] += lgamma(alpha + n) - none
                    in_row += n
            if in_row > 0:
                whole = n_features * alpha + (kappa if r > 0 else 0.0)
                out[j] += lgamma(whole) - lgamma(whole + in_row)
    return out


def counts_of(states: NDArray[np.int64], sequences: Sequences, n_states: int) -> NDArray[np.int64]:
    """How often each task went from each state to each, (J, L + 1, L). O(n_steps)."""
    counts: NDArray[np.int64] = count_transitions(states, sequences.bounds, sequences.task_bounds, n_states)
    return counts


def log_joint(
    state: FeatureState, emission: Emission, counts: NDArray[np.int64], statistics: NDArray[np.float64]
) -> float:
    """Log of p(F, s, o | γ, c, α, κ, h) with W and θ integrated out, columns as a set. O(J L²)."""
    moves = log_feature_transitions(counts, state.features, state.hyper.alpha, state.hyper.stickiness)
    emitted = emission.with_strength(state.hyper.strength).log_marginal(statistics)
    return log_features(state.features, state.hyper) + float(moves.sum() + emitted.sum())


def kept(state: FeatureState, sequences: Sequences, emission: Emission) -> Draw:
    """What is kept of a chain's state: all tasks are of one cluster, and rows that no task gets to begin anew."""
    features, hyper, n_states = state.features, state.hyper, state.features.shape[1]
    counts = counts_of(state.states, sequences, n_states)
    statistics = emission.statistics(sequences.observations, state.states, n_states)
    chances = chances_of_features(features, hyper)
    transitions = np.where(state.transitions.any(axis=2, keepdims=True), state.transitions, state.transitions[:, :1])
    return Draw(
        np.zeros(len(features), dtype=np.int64),
        (chances / chances.sum())[None],
        state.parameters[None],
        transitions,
        hyper,
        log_joint(state, emission, counts, statistics),
        (counts.sum(axis=1) > 0).sum(axis=1),
        *urns(features.astype(np.float64), hyper, counts, emission, statistics[None]),
        features=features,
        statistics=summed_out(emission, statistics[None]),
    )
