"""One sweep of the nDP-iHMM's Gibbs sampler (Ni et al. 2007, section 3.3, made valid), and where a chain starts.

A sweep draws, in this order, each block given all that comes before and all else as the last sweep left it:

1. clusters c_j and transitions W_j with states summed out, then the states s by forward filtering, backward sampling;
2. tables of the transition counts, W integrated out;
3. α and κ given tables; γ given tables with β integrated out, then β;
4. η given c with π integrated out; h given s with θ integrated out, then θ;
5. W given counts and β.

What a step integrates out is drawn again before anything looks at it, so that the posterior is left as it is (D. A. van
Dyk and T. Park, J. Amer. Statist. Assoc. 103, 2008). β and θ of clusters without tasks come from their priors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.draws import draw_dirichlet
from kinfolk.sequences.inference.cluster_moves import move_tasks
from kinfolk.sequences.inference.concentrations import (
    RowTotals,
    draw_alpha,
    draw_eta,
    draw_gamma,
    draw_kappa,
    draw_strength,
)
from kinfolk.sequences.inference.threads import Parallel, one_by_one, pieces, seeds, threads
from kinfolk.sequences.model.draw import HyperParameters
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.filtering import reordered
from kinfolk.sequences.model.ndp_ihmm import Priors, State, counts_of, statistics_of
from kinfolk.sequences.model.sequences import Sequences
from kinfolk.sequences.model.transitions import draw_rows_of_tasks, draw_tables

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
    n_clusters, n_states = state.n_clusters, state.n_states
    counts = counts_of(state, sequences)
    tables, n_overrides = draw_tables(
        counts, state.cluster, state.hyper.alpha * state.base_weights, state.hyper.stickiness, rng
    )
    totals = RowTotals.of(counts)
    alpha = draw_alpha(state.hyper.alpha, state.hyper.stickiness, int(tables.sum()), totals, priors.alpha, rng)
    kappa = draw_kappa(state.hyper.stickiness, alpha, n_overrides, totals, priors.stickiness, rng)
    gamma = draw_gamma(state.hyper.gamma, tables, priors.gamma, rng)
    base_weights = np.empty((n_clusters, n_states))
    draw_dirichlets(gamma / n_states + tables, base_weights, rng)
    eta = draw_eta(state.hyper.eta, np.bincount(state.cluster, minlength=n_clusters), priors.eta, rng)

    def draw_emissions(rng: np.random.Generator) -> tuple[float, NDArray[np.float64]]:
        statistics = statistics_of(state, sequences, emission)
        # A state without steps says nothing of the strength of its prior.
        visited = np.zeros((n_clusters, n_states), dtype=bool)
        np.logical_or.at(visited, state.cluster, counts.any(axis=1))
        strength = draw_strength(state.hyper.strength, statistics[visited], emission, priors.strength, rng)
        return strength, emission.with_strength(strength).draw_parameters(statistics, rng)

    transitions, weights = np.empty(counts.shape), alpha * base_weights[state.cluster]
    known = counts.astype(np.float64)
    cells = np.arange(len(counts) + 1) * counts[0].size
    draws: list[Callable[[np.random.Generator], Any]] = [draw_emissions]
    for first, last in pieces(cells, _CELLS, len(counts)):
        draws.append(partial(draw_rows_of_tasks, weights, kappa, known, first, last, transitions))
    # Given states and hyper-parameters, none of them looks at another's outcome.
    (strength, parameters), *_ = parallel(
        lambda draw: draw[0](np.random.default_rng(draw[1])), zip(draws, seeds(rng, len(draws)), strict=True)
    )
    hyper = HyperParameters(eta, gamma, alpha, strength, kappa)
    return State(state.cluster, state.states, base_weights, parameters, transitions, hyper)


@reordered
def draw_dirichlets(shapes, out, rng):  # type: ignore[no-untyped-def]
    """Draw probabilities for every row of shapes."""
    for i in range(len(shapes)):
        draw_dirichlet(shapes[i], out[i], rng)


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
        np.empty((n_clusters, n_states, emission.n_parameters)),
        np.empty((sequences.n_tasks, n_states + 1, n_states)),
        priors.means(),
    )
    return draw_given_states(begun, sequences, emission, priors, rng)
