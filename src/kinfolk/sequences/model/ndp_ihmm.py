"""The nDP-iHMM (K. Ni, L. Carin and D. Dunson, ICML 2007, eq. 9) in its weak limit: its values, counts and draws.

K clusters of tasks, L hidden states in each:

    c_j ~ π,  π ~ Dir(η/K)           the cluster of task j
    β_k ~ Dir(γ/L),  θ_kl ~ H(h)     how common each state of a cluster is, and what it emits; h is H's strength
    W_jr ~ Dir(αβ_{c_j} + κe_r)      a task's own transitions: row 0 starts a sequence, row r + 1 leaves state r
    s_t ~ W_{j,s_{t−1}},  o_t ~ F(θ_{c_j s_t})

κ, the stickiness, is added where a state follows itself, never to row 0. With K = 1 this is the DP-iHMM, with a single
task as well the iHMM.

A task's row r of transition counts n_r is a Chinese restaurant with base weights αβ + κe_r. Its probability with the
row's Dirichlet integrated out is a sum over tables m_rl ≤ n_rl, of which one term is

    Γ(α + κ_r)/Γ(α + κ_r + n_r·) ∏_l (αβ_l + κ_r[l = r])^{m_rl} |s(n_rl, m_rl)|,

with unsigned Stirling numbers of the first kind s (Y. W. Teh, M. I. Jordan, M. J. Beal and D. M. Blei, J. Amer.
Statist. Assoc. 101, 2006, section 5.2). Of the tables where a state follows itself, a Binomial share κ/(κ + αβ_r) is
due to κ (*overrides*: E. B. Fox, E. B. Sudderth, M. I. Jordan and A. S. Willsky, Ann. Appl. Statist. 5, 2011,
appendix A); the others, like all other tables, are draws from β.
"""

from __future__ import annotations

from math import lgamma, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled
from kinfolk.partition.concentration import GammaPrior
from kinfolk.sequences.model.draw import Draw, HyperParameters
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.filtering import log_likelihoods, scaled
from kinfolk.sequences.model.sequences import Sequences

# Sequences that are left out in each draw: they take a few hundredths of a sweep each.
_MOST_LEFT_OUT = 8
# The least that is left of a pseudo-count, as a part of the prior's.
_LEAST_LEFT = 0.5


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
def _seat_customers(counts, cluster, weights, kappa, uniforms):  # type: ignore[no-untyped-def]
    """Tables for as many uniform numbers as there are transitions, and as many more for those due to κ."""
    n_tasks, n_rows, n_states = counts.shape
    of_states = np.zeros(weights.shape, dtype=np.int64)
    overrides = used = 0
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
                    if uniforms[used + i] * (weight + i) < weight:
                        tables += 1
                used += n
                if s + 1 == r and kappa > 0.0:
                    for _ in range(tables):
                        if uniforms[used] * weight < kappa:
                            overrides += 1
                        else:
                            of_states[k, s] += 1
                        used += 1
                else:
                    of_states[k, s] += tables
    return of_states, overrides


def draw_tables(
    counts: NDArray[np.int64], cluster: NDArray[np.int64], weights: Floats, kappa: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], int]:
    """Draw tables: those due to β added up for each cluster and state, and those due to κ in all. O(n_steps).

    ``weights`` is αβ of each cluster, (n_clusters, n_states). The i-th customer of a dish of weight w starts a table
    with probability w/(w + i), counted from zero.
    """
    uniforms = rng.random(int(counts.sum()) * (2 if kappa > 0.0 else 1))
    tables, n_overrides = _seat_customers(counts, cluster, weights, float(kappa), uniforms)
    return tables, int(n_overrides)


class Priors(NamedTuple):
    """What is believed about each hyper-parameter: a Gamma distribution to learn it under, or its value.

    Fields are those of `HyperParameters`.
    """

    eta: GammaPrior | float = GammaPrior()
    gamma: GammaPrior | float = GammaPrior()
    alpha: GammaPrior | float = GammaPrior()
    strength: GammaPrior | float = GammaPrior()
    stickiness: GammaPrior | float = 0.0

    def means(self) -> HyperParameters:
        """Where learning starts: values that are fixed, and the means of priors."""
        return HyperParameters(*map(value_of, self))


class ClusterPrior(NamedTuple):
    """What a cluster's base weights and its tasks' transitions are drawn by: γ, α, κ, and L, the most states it has."""

    gamma: float = 1.0
    alpha: float = 1.0
    stickiness: float = 0.0
    n_states: int = 20

    @classmethod
    def of(cls, hyper: HyperParameters, n_states: int) -> ClusterPrior:
        """The prior of clusters under a model's hyper-parameters."""
        return cls(hyper.gamma, hyper.alpha, hyper.stickiness, n_states)


class State(NamedTuple):
    """Where a chain is: all that a sweep reads and writes; clusters without tasks are there as well.

    ``states`` is the hidden state of each step; the others are as in `Draw`, for all K clusters, occupied or not.
    """

    cluster: NDArray[np.int64]
    states: NDArray[np.int64]
    base_weights: NDArray[np.float64]
    parameters: NDArray[np.float64]
    transitions: NDArray[np.float64]
    hyper: HyperParameters


def value_of(prior: GammaPrior | float) -> float:
    """A fixed hyper-parameter's value, or the mean of its prior."""
    return prior.shape / prior.rate if isinstance(prior, GammaPrior) else float(prior)


def statistics_of(
    state: State, sequences: Sequences, emission: Emission, rng: np.random.Generator | None = None
) -> NDArray[np.float64]:
    """Emission statistics of every cluster's states, (K, L, S). O(n_steps).

    A family that is not conjugate by itself weighs steps by draws given the state, or as it expects them to be.
    """
    n_clusters, n_states = state.base_weights.shape
    cluster = np.repeat(state.cluster, np.diff(sequences.step_bounds))
    together = cluster * n_states + state.states
    parameters = state.parameters.reshape(n_clusters * n_states, -1)
    weighed = emission.weighed(sequences.observations, together, parameters, rng)
    flat = emission.statistics(weighed, together, n_clusters * n_states)
    return flat.reshape(n_clusters, n_states, -1)


def counts_of(state: State, sequences: Sequences) -> NDArray[np.int64]:
    """How often each task went from each state to each, (J, L + 1, L). O(n_steps)."""
    counts: NDArray[np.int64] = count_transitions(
        state.states, sequences.bounds, sequences.task_bounds, state.base_weights.shape[1]
    )
    return counts


def log_joint(
    state: State,
    emission: Emission,
    counts: NDArray[np.int64],
    statistics: NDArray[np.float64],
) -> float:
    """Log of p(c, s, o, β | η, γ, α, κ, h) with π, W and θ integrated out, and the β of states without steps.

    A state that nobody visits has a β that nothing depends on; its density, which is unbounded at zero, would drown
    all else. Labels of clusters and of states count as told apart. O(J L²).
    """
    n_clusters, n_states = state.base_weights.shape
    sizes = np.bincount(state.cluster, minlength=n_clusters)
    share = state.hyper.eta / n_clusters
    total = gammaln(state.hyper.eta) - gammaln(state.hyper.eta + len(state.cluster))
    total += (gammaln(sizes + share) - gammaln(share))[sizes > 0].sum()
    visits = np.zeros((n_clusters, n_states), dtype=np.int64)
    np.add.at(visits, state.cluster, counts.sum(axis=1))
    weight = state.hyper.gamma / n_states
    for k in np.flatnonzero(sizes):
        used = visits[k] > 0
        others = int(n_states - used.sum())
        seen = state.base_weights[k, used]
        total += gammaln(state.hyper.gamma) - used.sum() * gammaln(weight) + (weight - 1.0) * np.log(seen).sum()
        if others:
            rest = max(state.base_weights[k, ~used].sum(), np.finfo(float).tiny)
            total += (others * weight - 1.0) * np.log(rest) - gammaln(others * weight)
    rows = state.base_weights[state.cluster] * state.hyper.alpha
    total += log_transition_marginals(counts, rows, state.hyper.stickiness).sum()
    occupied = emission.with_strength(state.hyper.strength).log_marginal(statistics[sizes > 0])
    return float(total + occupied.sum())


def urns(
    base_weights: Floats, hyper: HyperParameters, counts: NDArray[Any], emission: Emission, statistics: Floats
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Pseudo-counts that tasks' rows and clusters' shares of codes are drawn by, as a draw keeps them.

    ``base_weights`` (J, L) are those of each task's cluster, ``statistics`` (K, L, S) those of clusters. In few bits:
    no answer is so fine.
    """
    n_states = base_weights.shape[1]
    rows = hyper.alpha * base_weights[:, None, :] + counts
    rows[:, 1:] += hyper.stickiness * np.eye(n_states)
    codes = emission.code_counts(statistics) + hyper.strength
    return rows.astype(np.float32), codes.astype(np.float32)


def summed_out(emission: Emission, statistics: Floats) -> Floats | None:
    """Of statistics (K, L, S) what a draw keeps beside its `urns`: those by which answers sum θ out."""
    own = emission.statistics_to_sum_out(statistics)
    return own if own.shape[-1] else None


def kept(state: State, sequences: Sequences, emission: Emission) -> Draw:
    """What is kept of a chain's state: its occupied clusters, in the order of their first tasks. O(n_steps)."""
    first_tasks = np.unique(state.cluster, return_index=True)[1]
    occupied = state.cluster[np.sort(first_tasks)]
    renamed = np.full(len(state.base_weights), -1, dtype=np.int64)
    renamed[occupied] = np.arange(len(occupied))
    counts = counts_of(state, sequences)
    statistics = statistics_of(state, sequences, emission)
    draw = Draw(
        renamed[state.cluster],
        state.base_weights[occupied],
        state.parameters[occupied],
        state.transitions,
        state.hyper,
        log_joint(state, emission, counts, statistics),
        (counts.sum(axis=1) > 0).sum(axis=1),
        *urns(state.base_weights[state.cluster], state.hyper, counts, emission, statistics[occupied]),
        statistics=summed_out(emission, statistics[occupied]),
    )
    return draw._replace(left_out=log_probability_left_out(draw, state.states, counts, sequences, emission))


def chosen_to_leave_out(sequences: Sequences) -> NDArray[np.int64]:
    """Places of a few sequences, evenly spaced among all."""
    n = min(_MOST_LEFT_OUT, sequences.n_sequences)
    return np.unique(np.linspace(0, sequences.n_sequences - 1, n).round().astype(np.int64))


def log_probability_left_out(
    draw: Draw, states: NDArray[np.int64], counts: NDArray[np.int64], sequences: Sequences, emission: Emission
) -> float:
    """Mean log probability of a few sequences, each by what was counted in the others: by it chains are judged.

    What a chain knows of a sequence is in the transitions and the codes that it counted there. Without these, the
    expected rows and shares say how probable the sequence is. States of other sequences and hyper-parameters have seen
    it, and so has what θ is of numbers and counts: that flatters all chains, and tells which of them predict alike.
    """
    n_states, hyper, total = draw.base_weights.shape[1], draw.hyper, 0.0
    chosen = chosen_to_leave_out(sequences)
    assert draw.code_counts is not None
    for place in chosen.tolist():
        task = int(np.searchsorted(sequences.task_bounds, place, side="right")) - 1
        cluster = int(draw.cluster[task])
        steps = slice(int(sequences.bounds[place]), int(sequences.bounds[place + 1]))
        bounds, one = np.array([0, steps.stop - steps.start]), np.array([0, 1])
        moves = counts[task] - count_transitions(states[steps], bounds, one, n_states)[0]
        rows = hyper.alpha * np.maximum(draw.base_weights[cluster], 1e-100) + moves
        rows[1:] += hyper.stickiness * np.eye(n_states)
        shown = sequences.observations_at(steps)
        codes = draw.code_counts[cluster] - emission.code_counts(emission.statistics(shown, states[steps], n_states))
        # Counts are kept in few bits.
        codes = np.maximum(codes, _LEAST_LEFT * hyper.strength)
        theta = emission.with_shares(draw.parameters[cluster], codes)
        densities = scaled(emission.log_densities(theta, shown))
        total += float(log_likelihoods(densities, bounds, rows / rows.sum(axis=1, keepdims=True))[0])
    return total / len(chosen)
