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

from math import exp, inf, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.sequences.inference.threads import Parallel, pieces, seeds, tapering
from kinfolk.sequences.model.emissions import emission as emissions
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.filtering import (
    draw_path,
    filter_sequence,
    longest,
    reordered,
    scratch_rows,
    transpose_into,
)
from kinfolk.sequences.model.ndp_ihmm import State
from kinfolk.sequences.model.sequences import Sequences
from kinfolk.sequences.model.transitions import draw_row

# What is in memory at once: so many steps' densities, so many tasks' matrices.
_MOST_STEPS, _MOST_TASKS = 1 << 15, 256


class Densities(NamedTuple):
    """Densities of steps in several clusters: as those of one, with clusters as the first axis."""

    likelihood: NDArray[np.float64]
    log_scale: NDArray[np.float64]
    row: NDArray[np.int64]


def densities_of(
    clusters: NDArray[np.int64],
    parameters: NDArray[np.float64],
    sequences: Sequences,
    emission: Emission,
    parallel: Parallel,
) -> Densities:
    """How probable every step is in every state of some clusters."""

    def of(some: NDArray[np.int64]) -> emissions.Densities:
        states = parameters[some].reshape(-1, parameters.shape[2])
        rows, row = emission.log_densities(states, sequences.observations)
        # Each cluster is scaled by itself: one that is far off would leave the range of floats next to the others.
        by_cluster = rows.reshape(len(rows), len(some), -1).swapaxes(0, 1)
        return emissions.LogDensities(np.ascontiguousarray(by_cluster).reshape(-1, parameters.shape[1]), row).scaled()

    first = of(clusters[:1])
    # Where steps share a few rows, as codes do, all others are made at once, faster than handed to another thread.
    n_together = 1 if len(first.likelihood) == sequences.n_steps else max(len(clusters) - 1, 1)
    each = [first, *parallel(of, clusters[1:].reshape(-1, n_together))]
    n_rows, n_states = first.likelihood.shape
    likelihood = np.concatenate([d.likelihood for d in each]).reshape(-1, n_rows, n_states)
    return Densities(likelihood, np.concatenate([d.log_scale for d in each]).reshape(-1, n_rows), first.row)


@reordered
def rows_in_use(bounds, task_bounds, task, n_states):  # type: ignore[no-untyped-def]
    """How many transition rows a task's data can speak of: of sequences of one step, just the row that starts them."""
    return n_states + 1 if longest(bounds[task_bounds[task] : task_bounds[task + 1] + 1]) > 1 else 1


@reordered
def draw_rows_not_in_use(bounds, task_bounds, slots, weights, kappa, transitions, rng):  # type: ignore[no-untyped-def]
    """Draw from their prior the rows that scoring has left out."""
    n_states = weights.shape[1]
    no_counts, shapes = np.zeros(n_states), np.empty(n_states)
    for j in range(len(slots)):
        for r in range(rows_in_use(bounds, task_bounds, j, n_states), n_states + 1):
            draw_row(weights[slots[j]], kappa, r, no_counts, shapes, transitions[j, r], rng)


@reordered
def score_pairs(densities, bounds, task_bounds, first, last, slots, weights, kappa, proposals, scores, rng):  # type: ignore[no-untyped-def]
    """Draw transition matrices for pairs ``first:last`` of a task and a cluster, and the log likelihood of each.

    Pairs are counted through the clusters of the first task, then of the second. ``proposals`` is (n_tasks, n_clusters,
    R, L + 1, L); what it has at a task's own cluster (``slots``) and pick 0 is its current matrix, which stays.
    """
    row = densities.row
    n_clusters, n_picks, n_states = proposals.shape[1], proposals.shape[2], proposals.shape[4]
    scratch, nothing = scratch_rows(2, n_states), np.empty((0, n_states))
    no_counts, shapes = np.zeros(n_states), scratch_rows(1, n_states)[0]
    for pair in range(first, last):
        j, a = pair // n_clusters, pair % n_clusters
        n_rows = rows_in_use(bounds, task_bounds, j, n_states)
        likelihood, log_scale = densities.likelihood[a], densities.log_scale[a]
        for r in range(n_picks):
            rows = proposals[j, a, r]
            if a != slots[j] or r > 0:
                for row_drawn in range(n_rows):
                    draw_row(weights[a], kappa, row_drawn, no_counts, shapes, rows[row_drawn], rng)
            total = 0.0
            for i in range(task_bounds[j], task_bounds[j + 1]):
                total += filter_sequence(likelihood, log_scale, row, bounds[i], bounds[i + 1], rows, scratch, nothing)
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
def draw_states_of_tasks(densities, bounds, tasks, slots, transitions, uniforms, first, last, states_out):  # type: ignore[no-untyped-def]
    """Draw the states of sequences ``first:last``, each by the transitions of its task."""
    n_states = transitions.shape[2]
    likelihood, log_scale, row = densities.likelihood, densities.log_scale, densities.row
    filtered = np.empty((longest(bounds[first : last + 1]), n_states))
    scratch, weights = scratch_rows(2, n_states), scratch_rows(1, n_states)[0]
    columns = np.empty((n_states, n_states))
    for i in range(first, last):
        j = tasks[i]
        rows, a, start, stop = transitions[j], slots[j], bounds[i], bounds[i + 1]
        if i == first or j != tasks[i - 1]:
            transpose_into(columns, rows)
        if filter_sequence(likelihood[a], log_scale[a], row, start, stop, rows, scratch, filtered) > -inf:
            draw_path(filtered, columns, start, stop, uniforms, weights, states_out)


def draw_states_of_part(
    densities: Densities,
    part: Sequences,
    slots: NDArray[np.int64],
    transitions: NDArray[np.float64],
    states_out: NDArray[np.int64],
    rng: np.random.Generator,
    parallel: Parallel,
) -> None:
    """Draw all states of some tasks into ``states_out``, given the slots of their clusters among the densities."""
    tasks = np.repeat(np.arange(part.n_tasks), np.diff(part.task_bounds))
    uniforms = rng.random(part.n_steps)

    def run(piece: tuple[int, int]) -> None:
        draw_states_of_tasks(densities, part.bounds, tasks, slots, transitions, uniforms, *piece, states_out)

    parallel(run, pieces(part.bounds))


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
    """Fill the proposals of some tasks, and score them."""
    scores = np.empty(proposals.shape[:3])
    n_clusters = proposals.shape[1]
    reached = np.append(0, np.repeat(np.diff(part.step_bounds), n_clusters).cumsum())
    runs = list(tapering(reached, n_clusters))

    def run(piece: tuple[tuple[int, int], int]) -> None:
        own = np.random.default_rng(piece[1])
        score_pairs(densities, part.bounds, part.task_bounds, *piece[0], slots, weights, kappa, proposals, scores, own)

    parallel(run, zip(runs, seeds(rng, len(runs)), strict=True))
    return scores


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
    n_clusters, n_states = state.n_clusters, state.n_states
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
            scores = _score(densities, part, own, weights, state.hyper.stickiness, proposals, rng, parallel)
            picks = choose(scores, own, sizes, share, share / enters, rng.random(len(each)))
            transitions[first:last] = proposals[each, own, picks]
            draw_rows_not_in_use(
                part.bounds, part.task_bounds, own, weights, state.hyper.stickiness, transitions[first:last], rng
            )
        drawn = states[step_bounds[first] : step_bounds[last]]
        draw_states_of_part(densities, part, own, transitions[first:last], drawn, rng, parallel)
    return state._replace(cluster=taking_part[slots], states=states, transitions=transitions)
