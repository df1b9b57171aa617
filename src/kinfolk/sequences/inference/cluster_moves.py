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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.sequences.inference.threads import Parallel, pieces, tapering
from kinfolk.sequences.model.dirichlet_draws import draw_dirichlet, draw_row, least_of, random_state
from kinfolk.sequences.model.emissions.emission import Densities, Emission, LogDensities
from kinfolk.sequences.model.filtering import draw_states, filter_sequence, reordered, scaled, scratch_rows
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


class Proposed(NamedTuple):
    """What transition matrices of tasks are proposed by: αβ of the clusters that take part, κ, tasks' own clusters."""

    weights: NDArray[np.float64]
    kappa: float
    slots: NDArray[np.int64]


@reordered
def draw_reachable(weights, least, kappa, random, scratch, out):  # type: ignore[no-untyped-def]
    """Draw a transition matrix from its prior, but for the rows that no path gets to, which are zero."""
    n_states = len(weights)
    shapes, bounds, uniforms = scratch[0], scratch[1], scratch[2]
    # Rows in the order in which they are got to; the first starts sequences.
    waiting, is_waiting = np.empty(n_states + 1, dtype=np.int64), np.zeros(n_states + 1, dtype=np.bool_)
    waiting[0], n_waiting, done = 0, 1, 0
    for s in range(n_states):
        shapes[s], bounds[s] = weights[s], least[s]
    while done < n_waiting:
        r = waiting[done]
        if r > 0 and kappa > 0.0:
            shapes[r - 1] += kappa
            bounds[r - 1] = least_of(shapes[r - 1])
        draw_row(shapes, bounds, random, uniforms, out[r])
        if r > 0:
            shapes[r - 1], bounds[r - 1] = weights[r - 1], least[r - 1]
        for s in range(n_states):
            if out[r, s] > 0.0 and not is_waiting[s + 1]:
                is_waiting[s + 1] = True
                waiting[n_waiting] = s + 1
                n_waiting += 1
        done += 1
    for r in range(1, n_states + 1):
        if not is_waiting[r]:
            for s in range(n_states):
                out[r, s] = 0.0


@reordered
def score_pairs(densities, part, proposed, pairs, random, proposals, scores):  # type: ignore[no-untyped-def]
    """Draw transition matrices for pairs of a task and a cluster, and the log likelihood of each.

    Pairs are counted through the clusters of the first task, then of the second. ``proposals`` is (n_tasks, n_clusters,
    R, L + 1, L); what it has at a task's own cluster and pick 0 is its current matrix, which stays.
    """
    n_clusters, n_picks, n_states = proposals.shape[1], proposals.shape[2], proposals.shape[4]
    scratch, nothing = scratch_rows(2, n_states), np.empty((0, n_states))
    least, drawing = np.empty(n_states), scratch_rows(3, n_states)
    for pair in range(pairs[0], pairs[1]):
        j, a = pair // n_clusters, pair % n_clusters
        own = Densities(densities.likelihood[a], densities.log_scale[a], densities.row)
        for s in range(n_states):
            least[s] = least_of(proposed.weights[a, s])
        for r in range(n_picks):
            if a != proposed.slots[j] or r > 0:
                draw_reachable(proposed.weights[a], least, proposed.kappa, random, drawing, proposals[j, a, r])
            total = 0.0
            for i in range(part.task_bounds[j], part.task_bounds[j + 1]):
                total += filter_sequence(own, part.bounds[i], part.bounds[i + 1], proposals[j, a, r], scratch, nothing)
                if total == -inf:
                    break
            scores[j, a, r] = total


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


@reordered
def draw_states_of_tasks(densities, part, slots, transitions, uniforms, states_out, run):  # type: ignore[no-untyped-def]
    """Draw the states of a run of sequences, each by the transitions and the cluster of its task."""
    for j in range(len(slots)):
        start, stop = max(part.task_bounds[j], run[0]), min(part.task_bounds[j + 1], run[1])
        if start < stop:
            a = slots[j]
            own = Densities(densities.likelihood[a], densities.log_scale[a], densities.row)
            draw_states(own, part.bounds[start : stop + 1], transitions[j], uniforms, states_out)


def _score(
    densities: Densities,
    part: Sequences,
    proposed: Proposed,
    proposals: NDArray[np.float64],
    rng: np.random.Generator,
    parallel: Parallel,
) -> NDArray[np.float64]:
    """Draw the proposals of some tasks but the first at their own cluster, which is what they have, and score them."""
    n_tasks, n_clusters, n_picks = proposals.shape[:3]
    scores = np.empty((n_tasks, n_clusters, n_picks))
    reached = np.append(0, np.repeat(np.diff(part.step_bounds), n_clusters).cumsum())
    runs = list(tapering(reached, n_clusters))

    def run(piece: tuple[tuple[int, int], NDArray[np.uint64]]) -> None:
        score_pairs(densities, part.layout, proposed, *piece, proposals, scores)

    parallel(run, [(pairs, random_state(rng)) for pairs in runs])
    return scores


def _picked(
    proposals: NDArray[np.float64], picks: NDArray[np.int64], proposed: Proposed, rng: np.random.Generator
) -> NDArray[np.float64]:
    """The matrices that tasks picked, with the rows that scoring had no need of drawn from their prior."""
    picked = proposals[np.arange(len(picks)), proposed.slots, picks]
    task, row = np.nonzero(~picked.any(axis=2))
    if len(task):
        shapes = proposed.weights[proposed.slots[task]]
        shapes[np.arange(len(row)), row - 1] += proposed.kappa
        picked[task, row] = draw_dirichlet(shapes, rng)
    return picked


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
    share = state.hyper.eta / n_clusters
    weights = state.hyper.alpha * state.base_weights[taking_part]
    step_bounds = sequences.step_bounds
    for first, last in pieces(step_bounds, _MOST_STEPS, _MOST_TASKS):
        part, own = sequences.between(first, last), slots[first:last]
        densities = densities_of(taking_part, state.parameters, part, emission, parallel)
        if n_clusters > 1:
            each = np.arange(last - first)
            proposals = np.empty((len(each), len(taking_part), n_picks, n_states + 1, n_states))
            proposals[each, own, 0] = transitions[first:last]
            proposed = Proposed(weights, state.hyper.stickiness, own)
            scores = _score(densities, part, proposed, proposals, rng, parallel)
            picks = choose(scores, own, sizes, share, share / enters, rng.random(len(each)))
            transitions[first:last] = _picked(proposals, picks, proposed, rng)
        drawn, uniforms = states[step_bounds[first] : step_bounds[last]], rng.random(part.n_steps)
        draw = partial(draw_states_of_tasks, densities, part.layout, own, transitions[first:last], uniforms, drawn)
        parallel(draw, pieces(part.bounds))
    return state._replace(cluster=taking_part[slots], states=states, transitions=transitions)
