"""One sweep of the beta-process HMM's sampler (Fox et al. 2014; Hughes et al. 2012), and where a chain starts.

A sweep draws, in this order, each block given all that comes before and all else as the last sweep left it:

1. features F of each task with states summed out (`feature_choices`), then its states s;
2. F and s again by splits and merges of states (`feature_split_merge`), W and θ integrated out;
3. γ given F, which is Gamma, and c by slice sampling; α and κ given s, W integrated out; h given s, θ integrated out;
4. θ given s and h, and W given s, F, α and κ.

What a step integrates out is drawn again before anything looks at it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from kinfolk.partition.concentration import GammaPrior
from kinfolk.sequences.inference.feature_choices import choose_features
from kinfolk.sequences.inference.feature_split_merge import SplitMerge
from kinfolk.sequences.inference.sweep import draw_positive, draw_strength, log_rising
from kinfolk.sequences.model.bp_hmm import FeatureState, Flags, counts_of, expected_tasks
from kinfolk.sequences.model.dirichlet_draws import draw_transitions
from kinfolk.sequences.model.draw import HyperParameters
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.ndp_ihmm import Priors
from kinfolk.sequences.model.sequences import Sequences


def sweep(
    state: FeatureState,
    sequences: Sequences,
    emission: Emission,
    priors: Priors,
    rng: np.random.Generator,
    *,
    n_births: int = 1,
    n_split_merges: int = 1,
) -> FeatureState:
    """Draw the next state of a chain.

    Parameters
    ----------
    state : FeatureState
        Where the chain is.
    sequences : Sequences
        The data.
    emission : Emission
        What states emit; the strength of its prior is the state's.
    priors : Priors
        Of the hyper-parameters.
    rng : Generator
        Source of randomness.
    n_births : int, default=1
        Births or deaths that each task tries.
    n_split_merges : int, default=1
        Splits or merges that are tried.

    Returns
    -------
    state : FeatureState
        The next one.

    Examples
    --------
    >>> from kinfolk.sequences.model.emissions.categorical import Categorical
    >>> rng = np.random.default_rng(0)
    >>> data = Sequences((np.tile([0, 1], 20),), np.array([0, 20, 40]), np.array([0, 1, 2]))
    >>> emission, priors = Categorical(2), Priors()
    >>> state = start_state(np.tile([0, 1], 20), data, emission, priors, n_states=5, rng=rng)
    >>> for _ in range(20):
    ...     state = sweep(state, data, emission, priors, rng)
    >>> state.transitions.shape, bool(state.features.any(axis=1).all())
    ((2, 6, 5), True)
    """
    here = emission.with_strength(state.hyper.strength)
    state = choose_features(state, sequences, here, rng, n_births)
    features, states = SplitMerge(sequences, here, state.hyper).moves(state.features, state.states, n_split_merges, rng)
    return draw_given_states(state._replace(features=features, states=states), sequences, emission, priors, rng)


def draw_given_states(
    state: FeatureState, sequences: Sequences, emission: Emission, priors: Priors, rng: np.random.Generator
) -> FeatureState:
    """Draw all but features and states: steps 3 and 4 of a sweep. O(n_steps + J L²)."""
    n_states = state.features.shape[1]
    mass, concentration = draw_mass_and_concentration(state.features, state.hyper, priors, rng)
    counts = counts_of(state.states, sequences, n_states)
    totals = TransitionTotals.of(counts, state.features)
    alpha, kappa = draw_alpha_and_kappa(state.hyper, totals, priors, rng)
    statistics = emission.statistics(sequences.observations, state.states, n_states)
    visited = counts.any(axis=(0, 1))
    strength = draw_strength(state.hyper.strength, statistics[visited], emission, priors.strength, rng)
    parameters = emission.with_strength(strength).draw_parameters(statistics, rng)
    # Shares of states that a task has not are zero, and so are rows that leave these.
    leaves = np.concatenate([np.ones((len(counts), 1), dtype=bool), state.features], axis=1)
    transitions = np.zeros(counts.shape)
    for j in range(len(counts)):
        at = np.ix_(leaves[j], state.features[j])
        weights = np.full(int(state.features[j].sum()), alpha)
        transitions[j][at] = draw_transitions(weights, kappa, counts[j][at], rng)
    hyper = HyperParameters(concentration, mass, alpha, strength, kappa)
    return FeatureState(state.features, state.states, parameters, transitions, hyper)


def draw_mass_and_concentration(
    features: Flags, hyper: HyperParameters, priors: Priors, rng: np.random.Generator
) -> tuple[float, float]:
    """Draw γ and then c given F."""
    n_tasks = len(features)
    sizes = features.sum(axis=0)
    sizes = sizes[sizes > 0]
    mass = hyper.gamma
    if isinstance(priors.gamma, GammaPrior):
        mass = GammaPrior(priors.gamma.shape + len(sizes), priors.gamma.rate + expected_tasks(hyper.eta, n_tasks)).draw(
            rng
        )

    def log_likelihood(c: float) -> float:
        shared = betaln(sizes, n_tasks - sizes + c).sum()
        return float(len(sizes) * log(c) - mass * expected_tasks(c, n_tasks) + shared)

    return mass, draw_positive(hyper.eta, priors.eta, log_likelihood, rng)


class TransitionTotals(NamedTuple):
    """What transition counts say of α and κ: how many cells, and rows of tasks with so many features, have n.

    Attributes
    ----------
    moves, stays : ndarrays
        How many cells beside and on the diagonal have n transitions, for every n.
    rows : dict
        From a number of features to how many rows of starts, and of states, have n transitions.
    """

    moves: NDArray[np.int64]
    stays: NDArray[np.int64]
    rows: dict[int, tuple[NDArray[np.int64], NDArray[np.int64]]]

    @classmethod
    def of(cls, counts: NDArray[np.int64], features: Flags) -> TransitionTotals:
        """Totals of counts (J, L + 1, L)."""
        stays = np.diagonal(counts[:, 1:], axis1=1, axis2=2)
        of_moves = np.bincount(counts.ravel())
        of_stays = np.bincount(stays.ravel(), minlength=len(of_moves))
        in_rows, sizes = counts.sum(axis=2), features.sum(axis=1)
        rows = {
            int(size): (np.bincount(in_rows[sizes == size, 0]), np.bincount(in_rows[sizes == size, 1:].ravel()))
            for size in np.unique(sizes)
        }
        return cls(of_moves - of_stays, of_stays, rows)

    def log_likelihood(self, alpha: float, kappa: float) -> float:
        """Log probability of all transitions, rows integrated out."""
        total = log_rising(alpha, self.moves) + log_rising(alpha + kappa, self.stays)
        for size, (starts, leaving) in self.rows.items():
            total -= log_rising(size * alpha, starts) + log_rising(size * alpha + kappa, leaving)
        return float(total)


def draw_alpha_and_kappa(
    hyper: HyperParameters, totals: TransitionTotals, priors: Priors, rng: np.random.Generator
) -> tuple[float, float]:
    """Draw α and then κ given transitions, rows integrated out."""
    kappa = hyper.stickiness

    def of_alpha(alpha: float) -> float:
        return totals.log_likelihood(alpha, kappa)

    alpha = draw_positive(hyper.alpha, priors.alpha, of_alpha, rng)
    of_kappa: Callable[[float], float] = lambda kappa: totals.log_likelihood(alpha, kappa)  # noqa: E731
    return alpha, draw_positive(kappa, priors.stickiness, of_kappa, rng)


def start_state(
    states: NDArray[np.int64],
    sequences: Sequences,
    emission: Emission,
    priors: Priors,
    *,
    n_states: int,
    rng: np.random.Generator,
) -> FeatureState:
    """A chain's first state, from hidden states below ``n_states``: tasks have the features that they are in.

    Hyper-parameters start at their priors' means, and all else is drawn once given these.
    """
    features = counts_of(states, sequences, n_states).sum(axis=1) > 0
    begun = FeatureState(
        features,
        np.asarray(states, dtype=np.int64),
        np.empty((n_states, emission.n_parameters)),
        np.empty((sequences.n_tasks, n_states + 1, n_states)),
        priors.means(),
    )
    return draw_given_states(begun, sequences, emission, priors, rng)
