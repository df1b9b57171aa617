"""The nDP-iHMM (K. Ni, L. Carin and D. Dunson, ICML 2007, eq. 9) in its weak limit, and the states of its chains.

K clusters of tasks, L hidden states in each:

    c_j ~ π,  π ~ Dir(η/K)           the cluster of task j
    β_k ~ Dir(γ/L),  θ_kl ~ H(h)     how common each state of a cluster is, and what it emits; h is H's strength
    W_jr ~ Dir(αβ_{c_j} + κe_r)      a task's own transitions: row 0 starts a sequence, row r + 1 leaves state r
    s_t ~ W_{j,s_{t−1}},  o_t ~ F(θ_{c_j s_t})

κ, the stickiness, is added where a state follows itself, never to row 0. With K = 1 this is the DP-iHMM, with a single
task as well the iHMM.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from kinfolk.partition.concentration import GammaPrior
from kinfolk.sequences.model.draw import Draw, HyperParameters
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.sequences import Sequences
from kinfolk.sequences.model.transitions import count_transitions, log_transition_marginals


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

    ``states`` is the hidden state of each step; the others are as in `Draw`.
    """

    cluster: NDArray[np.int64]
    states: NDArray[np.int64]
    base_weights: NDArray[np.float64]
    parameters: NDArray[np.float64]
    transitions: NDArray[np.float64]
    hyper: HyperParameters

    @property
    def n_clusters(self) -> int:
        """K, occupied or not."""
        return len(self.base_weights)

    @property
    def n_states(self) -> int:
        """L, used or not."""
        return int(self.base_weights.shape[1])


def value_of(prior: GammaPrior | float) -> float:
    """A fixed hyper-parameter's value, or the mean of its prior."""
    return prior.shape / prior.rate if isinstance(prior, GammaPrior) else float(prior)


def statistics_of(state: State, sequences: Sequences, emission: Emission) -> NDArray[np.float64]:
    """Emission statistics of every cluster's states, (K, L, S). O(n_steps)."""
    n_clusters, n_states = state.n_clusters, state.n_states
    cluster = np.repeat(state.cluster, np.diff(sequences.step_bounds))
    together = cluster * n_states + state.states
    flat = emission.statistics(sequences.observations, together, n_clusters * n_states)
    return flat.reshape(n_clusters, n_states, -1)


def counts_of(state: State, sequences: Sequences) -> NDArray[np.int64]:
    """How often each task went from each state to each, (J, L + 1, L). O(n_steps)."""
    counts: NDArray[np.int64] = count_transitions(state.states, sequences.bounds, sequences.task_bounds, state.n_states)
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
    n_clusters, n_states = state.n_clusters, state.n_states
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


def kept(state: State, sequences: Sequences, emission: Emission) -> Draw:
    """What is kept of a chain's state: its occupied clusters, in the order of their first tasks. O(n_steps)."""
    first_tasks = np.unique(state.cluster, return_index=True)[1]
    occupied = state.cluster[np.sort(first_tasks)]
    renamed = np.full(state.n_clusters, -1, dtype=np.int64)
    renamed[occupied] = np.arange(len(occupied))
    counts = counts_of(state, sequences)
    statistics = statistics_of(state, sequences, emission)
    return Draw(
        renamed[state.cluster],
        state.base_weights[occupied],
        state.parameters[occupied],
        state.transitions,
        state.hyper,
        log_joint(state, emission, counts, statistics),
        (counts.sum(axis=1) > 0).sum(axis=1),
    )
