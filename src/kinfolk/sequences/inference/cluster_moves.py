"""Tasks choose their clusters, their hidden states summed out: the valid form of step 1 of the nDP-iHMM's sampler.

The paper (Ni et al. 2007, section 3.3) scores each cluster with transitions counted in the task's current states, which
depend on its current cluster; that leaves no distribution as it is. Instead, task j has transition matrices W_jk¹ …
W_jkᴿ for *every* cluster k, all drawn from their prior Dir(αβ_k + κe_r), as eq. 9 has it; it picks k by π and one of
the R by a fair die, and its sequences come from that one alone. Under this model

* the matrices not picked are independent of all data: they are drawn afresh from the prior before each move (a
  pseudo-prior equal to the prior: B. P. Carlin and S. Chib, J. Roy. Statist. Soc. B 57, 1995);
* given all matrices, p(c_j = k, pick r) ∝ π_k/R × p(O_j | W_jkʳ, θ_k), with states summed out by filtering.

Whatever R is, c, the picked W, θ, β and s are distributed as in the nDP-iHMM.

π is integrated out: π_k becomes n_k + η/K, with n_k the other tasks in k. Of the clusters without tasks, whose
parameters are draws from the prior, only some take part: before a sweep, each enters with probability ρ. That weighs a
partition with its chance to have let those enter, ρ^(−occupied clusters) up to a constant, so that during the sweep
an empty cluster's weight is η/(Kρ).

Scores depend on θ, β and the fresh matrices but not on other tasks' clusters, so they are computed for many tasks at
once, in threads, and tasks then choose one after the other.
"""

from __future__ import annotations

from functools import partial
from math import exp, inf, log

import numpy as np
from numpy.typing import NDArray

from kinfolk.sequences.inference.threads import Parallel, pieces, seeds, tapering
from kinfolk.sequences.model.dirichlet_draws import draw_dirichlet, draw_transitions
from kinfolk.sequences.model.emissions.emission import Densities, Emission, LogDensities
from kinfolk.sequences.model.filtering import draw_states, reordered, scaled, score_pairs
from kinfolk.sequences.model.ndp_ihmm import State
from kinfolk.sequences.model.sequences import Sequences

# What is in memory at once: so many steps' densities, so many tasks' matrices.
_MOST_STEPS, _MOST_TASKS = 1 << 15, 256


def densities_of(
    clusters: NDArray[np.int64],
    parameters: NDArray[np.float64],
    sequences: Sequences,
    emission: Emission,
    parallel: Parallel,
) -> Densities:
    """How probable every step is in every state of some clusters: clusters are the first axis of rows and scales."""

    def of(some: NDArray[np.int64]) -> Densities:
        states = parameters[some].reshape(-1, parameters.shape[2])
        rows, row = emission.log_densities(states, sequences.observations)
        # Each cluster is scaled by itself: one that is far off would leave the range of floats next to the others.
        by_cluster = rows.reshape(len(rows), len(some), -1).swapaxes(0, 1)
        return scaled(LogDensities(np.ascontiguousarray(by_cluster).reshape(-1, parameters.shape[1]), row))

    first = of(clusters[:1])
    # Where steps share a few rows, as codes do, all others are made at once, faster than handed to another thread.
    n_together = 1 if len(first.likelihood) == sequences.n_steps else max(len(clusters) - 1, 1)
    each = [first, *parallel(of, clusters[1:].reshape(-1, n_together))]
    n_rows, n_states = first.likelihood.shape
    likelihood = np.concatenate([d.likelihood for d in each]).reshape(-1, n_rows, n_states)
    return Densities(likelihood, np.concatenate([d.log_scale for d in each]).reshape(-1, n_rows), first.row)


@reordered
def choose(scores, slots, sizes, share, share_of_empty, uniforms):  # type: ignore[no-untyped-def]
    """Let tasks choose one after the other; ``slots`` and ``sizes`` are brought up to date, picks are returned."""
    n_tasks, n_clusters, n_picks = scores.shape
    picks = np.zeros(n_tasks, dtype=np.int64)
    weights = np.empty((n_clusters, n_picks))
    for j in range(n_tasks):
        sizes[slots[j]] -= 1
        largest = -inf
        for a in range(n_clusters):
            prior = log(sizes[a] + share) if sizes[a] > 0 else log(share_of_empty)
            for r in range(n_picks):
                weights[a, r] = scores[j, a, r] + prior
                if weights[a, r] > largest:
                    largest = weights[a, r]
        # Where floats know no way to give the data, the task stays.
        if largest > -inf:
            total = 0.0
            for a in range(n_clusters):
                for r in range(n_picks):
                    weights[a, r] = exp(weights[a, r] - largest)
                    total += weights[a, r]
            left = uniforms[j] * total
            chosen = False
            for a in range(n_clusters):
                for r in range(n_picks):
                    if weights[a, r] > 0.0 and not chosen:
                        slots[j], picks[j] = a, r
                        left -= weights[a, r]
                        chosen = left < 0.0
        sizes[slots[j]] += 1
    return picks


def _score(
    densities: Densities,
    part: Sequences,
    slots: NDArray[np.int64],
    weights: NDArray[np.float64],
    kappa: float,
    proposals: NDArray[np.float64],
    rng: np.random.Generator,
    parallel: Parallel,
) -> NDArray[np.float64]:
    """Draw the proposals of some tasks but the first at their own cluster, which is what they have, and score them."""
    n_tasks, n_clusters, n_picks, n_rows, n_states = proposals.shape
    scores, of_pairs = np.empty((n_tasks, n_clusters, n_picks)), proposals.reshape(-1, *proposals.shape[2:])
    current = np.arange(n_tasks) * n_clusters + slots
    reached = np.append(0, np.repeat(np.diff(part.step_bounds), n_clusters).cumsum())
    runs = list(tapering(reached, n_clusters))
    none = np.zeros((n_rows, n_states))

    def run(piece: tuple[tuple[int, int], int]) -> None:
        first, last = piece[0]
        kept = current[(current >= first) & (current < last)]
        held = of_pairs[kept, 0]
        shapes = np.repeat(weights[np.arange(first, last) % n_clusters], n_picks, axis=0)
        own = np.random.default_rng(piece[1])
        draw_transitions(shapes, kappa, none, own, reachable=True, out=of_pairs[first:last])
        of_pairs[kept, 0] = held
        score_pairs(densities, part.layout, piece[0], proposals, scores)

    parallel(run, zip(runs, seeds(rng, len(runs)), strict=True))
    return scores


def _with_all_rows(
    transitions: NDArray[np.float64], weights: NDArray[np.float64], kappa: float, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw the rows that scoring had no need of from their prior, given αβ of each task."""
    task, row = np.nonzero(~transitions.any(axis=2))
    if len(task):
        shapes = weights[task]
        shapes[np.arange(len(row)), row - 1] += kappa
        transitions[task, row] = draw_dirichlet(shapes, rng)
    return transitions


def move_tasks(
    state: State,
    sequences: Sequences,
    emission: Emission,
    rng: np.random.Generator,
    parallel: Parallel,
    n_picks: int = 3,
    n_empty: float = 3.0,
) -> State:
    """Draw every task's cluster with its states summed out, then its states. O(n_steps L² × clusters × R).

    Parameters
    ----------
    state : State
        Where the chain is.
    sequences : Sequences
        The data.
    emission : Emission
        What states emit.
    rng : Generator
        Source of randomness.
    parallel : Parallel
        Runs functions in threads.
    n_picks : int, default=3
        R, transition matrices of a task for each cluster.
    n_empty : float, default=3.0
        About how many empty clusters take part.

    Returns
    -------
    state : State
        With new clusters, transitions and states; all else as it was.
    """
    n_clusters, n_states = state.base_weights.shape
    cluster, states, transitions = state.cluster.copy(), state.states.copy(), state.transitions.copy()
    enters = min(1.0, n_empty / n_clusters)
    sizes = np.bincount(cluster, minlength=n_clusters)
    taking_part = np.flatnonzero((sizes > 0) | (rng.random(n_clusters) < enters))
    slot_of = np.full(n_clusters, -1, dtype=np.int64)
    slot_of[taking_part] = np.arange(len(taking_part))
    slots, sizes = slot_of[cluster], sizes[taking_part]
    share, kappa = state.hyper.eta / n_clusters, state.hyper.stickiness
    weights = state.hyper.alpha * state.base_weights[taking_part]
    step_bounds = sequences.step_bounds
    for first, last in pieces(step_bounds, _MOST_STEPS, _MOST_TASKS):
        part, own = sequences.between(first, last), slots[first:last]
        densities = densities_of(taking_part, state.parameters, part, emission, parallel)
        if n_clusters > 1:
            each = np.arange(last - first)
            proposals = np.empty((len(each), len(taking_part), n_picks, n_states + 1, n_states))
            proposals[each, own, 0] = transitions[first:last]
            scores = _score(densities, part, own, weights, kappa, proposals, rng, parallel)
            picks = choose(scores, own, sizes, share, share / enters, rng.random(len(each)))
            transitions[first:last] = _with_all_rows(proposals[each, own, picks], weights[own], kappa, rng)
        drawn, uniforms = states[step_bounds[first] : step_bounds[last]], rng.random(part.n_steps)
        draw = partial(draw_states, densities, part.layout, transitions[first:last], uniforms, drawn, own)
        parallel(draw, pieces(part.bounds))
    return state._replace(cluster=taking_part[slots], states=states, transitions=transitions)
