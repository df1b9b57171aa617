"""One sweep of the nDP-iHMM's Gibbs sampler (Ni et al. 2007, section 3.3, made valid), and where a chain starts.

A sweep draws, in this order, each block given all that comes before and all else as the last sweep left it:

1. clusters c_j and transitions W_j with states summed out, then the states s by forward filtering, backward sampling;
2. tables of the transition counts, W integrated out;
3. α and κ given tables; γ given tables with β integrated out, then β;
4. η given c with π integrated out; h given s with θ integrated out, then θ;
5. W given counts and β.

What a step integrates out is drawn again before anything looks at it, so that the posterior is left as it is (D. A. van
Dyk and T. Park, J. Amer. Statist. Assoc. 103, 2008). β and θ of clusters without tasks come from their priors.

The hyper-parameters (step 6 of the paper) are drawn by slice sampling of their logarithms (R. M. Neal, Ann. Statist.
31, 2003, sections 4.1 and 4.2). The weak limit's Dirichlet priors of weight γ/L and η/K make their conditionals finite
products of Gamma functions, so that no auxiliary variables are needed beyond the tables.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import exp, inf, lgamma, log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.partition.concentration import GammaPrior
from kinfolk.sequences.inference.cluster_moves import move_tasks
from kinfolk.sequences.inference.threads import Parallel, one_by_one, pieces, seeds, threads
from kinfolk.sequences.model.dirichlet_draws import draw_dirichlet, draw_transitions
from kinfolk.sequences.model.draw import HyperParameters
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.ndp_ihmm import (
    Priors,
    State,
    counts_of,
    draw_tables,
    statistics_of,
)
from kinfolk.sequences.model.sequences import Sequences

# Width of a slice's first interval, in nats: about a posterior's own, of ten observations or so.
_WIDTH = 1.0
_MOST_STEPS = 60
# The logarithm of what is too large for a float is above this.
_LARGEST = 709.0


def draw_from_slice(
    current: float, log_density: Callable[[float], float], rng: np.random.Generator, width: float = _WIDTH
) -> float:
    """Draw a number such that its unnormalised density stays as it is, with stepping out and shrinkage.

    Examples
    --------
    >>> rng, x, drawn = np.random.default_rng(0), 0.0, []
    >>> for _ in range(4000):
    ...     x = draw_from_slice(x, lambda x: -0.5 * x * x, rng)
    ...     drawn.append(x * x)
    >>> 0.9 < sum(drawn) / 4000 < 1.1
    True
    """
    level = log_density(current) - rng.standard_exponential()
    low = current - width * rng.random()
    high = low + width
    # Steps are bounded at random on either side, which keeps the draw exact.
    down = int(_MOST_STEPS * rng.random())
    up = _MOST_STEPS - 1 - down
    while down > 0 and log_density(low) > level:
        low -= width
        down -= 1
    while up > 0 and log_density(high) > level:
        high += width
        up -= 1
    while True:
        proposed = low + (high - low) * rng.random()
        if log_density(proposed) >= level:
            return float(proposed)
        if proposed == current:
            return current
        if proposed < current:
            low = proposed
        else:
            high = proposed


def draw_positive(
    current: float, prior: GammaPrior | float, log_likelihood: Callable[[float], float], rng: np.random.Generator
) -> float:
    """Draw a positive number given its likelihood; one that is fixed stays."""
    if not isinstance(prior, GammaPrior):
        return float(prior)

    def log_density(log_value: float) -> float:
        value = exp(log_value) if log_value < _LARGEST else inf
        # Out of a float's range the prior's density is zero.
        if not 0.0 < value < inf:
            return -inf
        return prior.shape * log_value - prior.rate * value + log_likelihood(value)

    return exp(draw_from_slice(log(current), log_density, rng))


@compiled
def log_rising(weight, how_many):  # type: ignore[no-untyped-def]
    """Σ log Γ(weight + n)/Γ(weight) over urns, of which ``how_many[n]`` gave n draws. O(len(how_many)).

    Examples
    --------
    >>> round(exp(log_rising(2.0, np.array([5, 0, 1]))), 6)
    6.0
    """
    total, none = 0.0, lgamma(weight)
    for n in range(1, len(how_many)):
        if how_many[n] > 0:
            total += how_many[n] * (lgamma(weight + n) - none)
    return total


def draw_eta(current: float, sizes: NDArray[np.int64], prior: GammaPrior | float, rng: np.random.Generator) -> float:
    """Draw η given the sizes of all K clusters, π integrated out."""
    n_clusters, of_clusters, of_all = len(sizes), np.bincount(sizes), np.bincount([sizes.sum()])

    def log_likelihood(eta: float) -> float:
        return float(log_rising(eta / n_clusters, of_clusters) - log_rising(eta, of_all))

    return draw_positive(current, prior, log_likelihood, rng)


def draw_gamma(current: float, tables: NDArray[np.int64], prior: GammaPrior | float, rng: np.random.Generator) -> float:
    """Draw γ given how many tables serve each state of each cluster, (n_clusters, n_states), β integrated out."""
    n_states = tables.shape[1]
    of_states, of_clusters = np.bincount(tables.ravel()), np.bincount(tables.sum(axis=1))

    def log_likelihood(gamma: float) -> float:
        return float(log_rising(gamma / n_states, of_states) - log_rising(gamma, of_clusters))

    return draw_positive(current, prior, log_likelihood, rng)


class RowTotals(NamedTuple):
    """How many rows of all tasks have n transitions that leave them, for every n: of starts, and of states."""

    starts: NDArray[np.int64]
    leaving: NDArray[np.int64]

    @staticmethod
    def of(counts: NDArray[np.int64]) -> RowTotals:
        """Totals of counts (n_tasks, n_states + 1, n_states)."""
        totals = counts.sum(axis=2)
        return RowTotals(np.bincount(totals[:, 0]), np.bincount(totals[:, 1:].ravel()))

    def log_normalisers(self, alpha: float, kappa: float) -> float:
        """Σ log Γ(α + κ_r)/Γ(α + κ_r + n_r·) over all rows."""
        return -float(log_rising(alpha, self.starts) + log_rising(alpha + kappa, self.leaving))


def draw_alpha(
    current: float,
    kappa: float,
    n_tables: int,
    totals: RowTotals,
    prior: GammaPrior | float,
    rng: np.random.Generator,
) -> float:
    """Draw α given the number of tables due to β, rows integrated out."""
    return draw_positive(
        current, prior, lambda alpha: n_tables * log(alpha) + totals.log_normalisers(alpha, kappa), rng
    )


def draw_kappa(
    current: float,
    alpha: float,
    n_overrides: int,
    totals: RowTotals,
    prior: GammaPrior | float,
    rng: np.random.Generator,
) -> float:
    """Draw κ given the number of tables due to it, rows integrated out."""
    return draw_positive(
        current, prior, lambda kappa: n_overrides * log(kappa) + totals.log_normalisers(alpha, kappa), rng
    )


def draw_strength(
    current: float,
    statistics: NDArray[np.float64],
    emission: Emission,
    prior: GammaPrior | float,
    rng: np.random.Generator,
) -> float:
    """Draw the strength h of H given the statistics (…, S) of states that have steps, θ integrated out."""
    return draw_positive(current, prior, lambda h: float(emission.with_strength(h).log_marginal(statistics).sum()), rng)


# Transition probabilities drawn in one piece: less would be faster drawn than handed to another thread.
_CELLS = 1 << 12


def sweep(
    state: State,
    sequences: Sequences,
    emission: Emission,
    priors: Priors,
    rng: np.random.Generator,
    n_jobs: int | None = 1,
    *,
    n_picks: int = 3,
    n_empty: float = 3.0,
) -> State:
    """Draw the next state of a chain; the result is the same for any number of threads.

    Parameters
    ----------
    state : State
        Where the chain is.
    sequences : Sequences
        The data.
    emission : Emission
        What states emit; the strength of its prior is the state's.
    priors : Priors
        Of the hyper-parameters.
    rng : Generator
        Source of randomness.
    n_jobs : int, default=1
        Threads, as joblib counts them.
    n_picks : int, default=3
        Transition matrices of a task for each cluster it might choose.
    n_empty : float, default=3.0
        About how many empty clusters a task may choose.

    Returns
    -------
    state : State
        The next one.

    Examples
    --------
    >>> from kinfolk.sequences.model.emissions.categorical import Categorical
    >>> rng = np.random.default_rng(0)
    >>> data = Sequences((np.tile([0, 1], 20),), np.array([0, 20, 40]), np.array([0, 1, 2]))
    >>> emission, priors = Categorical(2), Priors()
    >>> state = start_state(data, emission, priors, n_clusters=4, n_states=5, rng=rng)
    >>> for _ in range(20):
    ...     state = sweep(state, data, emission, priors, rng)
    >>> state.transitions.shape
    (2, 6, 5)
    """
    with threads(n_jobs) as parallel:
        moved = move_tasks(state, sequences, emission, rng, parallel, n_picks, n_empty)
        return draw_given_states(moved, sequences, emission, priors, rng, parallel)


def draw_given_states(
    state: State,
    sequences: Sequences,
    emission: Emission,
    priors: Priors,
    rng: np.random.Generator,
    parallel: Parallel = one_by_one,
) -> State:
    """Draw all but clusters and states: steps 2 to 5 of a sweep. O(n_steps + J L²)."""
    n_clusters, n_states = state.base_weights.shape
    counts = counts_of(state, sequences)
    tables, n_overrides = draw_tables(
        counts, state.cluster, state.hyper.alpha * state.base_weights, state.hyper.stickiness, rng
    )
    totals = RowTotals.of(counts)
    alpha = draw_alpha(state.hyper.alpha, state.hyper.stickiness, int(tables.sum()), totals, priors.alpha, rng)
    kappa = draw_kappa(state.hyper.stickiness, alpha, n_overrides, totals, priors.stickiness, rng)
    gamma = draw_gamma(state.hyper.gamma, tables, priors.gamma, rng)
    base_weights = draw_dirichlet(gamma / n_states + tables, rng)
    eta = draw_eta(state.hyper.eta, np.bincount(state.cluster, minlength=n_clusters), priors.eta, rng)

    def draw_emissions(rng: np.random.Generator) -> tuple[float, NDArray[np.float64]]:
        statistics = statistics_of(state, sequences, emission, rng)
        # A state without steps says nothing of the strength of its prior.
        visited = np.zeros((n_clusters, n_states), dtype=bool)
        np.logical_or.at(visited, state.cluster, counts.any(axis=1))
        strength = draw_strength(state.hyper.strength, statistics[visited], emission, priors.strength, rng)
        return strength, emission.with_strength(strength).draw_parameters(statistics, rng)

    weights = alpha * base_weights[state.cluster]
    cells = np.arange(len(counts) + 1) * counts[0].size
    draws: list[Callable[[np.random.Generator], Any]] = [draw_emissions]
    for first, last in pieces(cells, _CELLS, len(counts)):
        draws.append(partial(draw_transitions, weights[first:last], kappa, counts[first:last]))
    # Given states and hyper-parameters, none of them looks at another's outcome.
    (strength, parameters), *rows = parallel(
        lambda draw: draw[0](np.random.default_rng(draw[1])), zip(draws, seeds(rng, len(draws)), strict=True)
    )
    hyper = HyperParameters(eta, gamma, alpha, strength, kappa)
    return State(state.cluster, state.states, base_weights, parameters, np.concatenate(rows), hyper)


def start_state(
    sequences: Sequences,
    emission: Emission,
    priors: Priors,
    *,
    n_clusters: int,
    n_states: int,
    rng: np.random.Generator,
    cluster: NDArray[np.int64] | None = None,
    states: NDArray[np.int64] | None = None,
) -> State:
    """A chain's first state, from a partition and hidden states; hyper-parameters start at their priors' means.

    Parameters
    ----------
    sequences, emission, priors
        As for `sweep`.
    n_clusters, n_states : int
        K and L, the most clusters there can be and the most states of each.
    rng : Generator
        Source of randomness.
    cluster : ndarray of shape (n_tasks,), default=None
        The cluster of each task; None: any, at random.
    states : ndarray of shape (n_steps,), default=None
        The hidden state of each step; None: any, at random.

    Returns
    -------
    state : State
        All else drawn once given these.
    """
    if cluster is None:
        cluster = rng.integers(n_clusters, size=sequences.n_tasks)
    if states is None:
        states = rng.integers(n_states, size=sequences.n_steps)
    begun = State(
        np.asarray(cluster, dtype=np.int64),
        np.asarray(states, dtype=np.int64),
        np.full((n_clusters, n_states), 1.0 / n_states),
        np.full((n_clusters, n_states, emission.n_parameters), np.nan),
        np.empty((sequences.n_tasks, n_states + 1, n_states)),
        priors.means(),
    )
    return draw_given_states(begun, sequences, emission, priors, rng)
