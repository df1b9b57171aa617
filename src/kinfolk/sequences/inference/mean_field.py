"""One cluster of tasks by mean field: a lower bound on the log evidence of an infinite hidden Markov model.

For tasks that share base weights β ~ Dir(γ/L) and emissions θ_l ~ H (Ni et al. 2007, eq. 9, in the weak limit of L
states),

    q(s, W, β, θ) = ∏_j q(s_j) ∏_jr q(W_jr) · Dir(β; ω) · ∏_l q(θ_l).

What is computed is a true lower bound of log p(o | α, γ, κ, H), in which states are labelled; `base_weights` says how β
comes in. States that no step uses are not stored.

In the papers: Ni, Carin and Dunson (2007), section 5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.sequences.inference.base_weights import base_bound, geometric_means, weigh_states
from kinfolk.sequences.inference.local_posteriors import Local, local_posteriors
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.ndp_ihmm import ClusterPrior
from kinfolk.sequences.model.sequences import Sequences

# A state that is expected to hold less of a step than this is given up.
_FEWEST_VISITS = 1e-2


class ClusterFit(NamedTuple):
    """The variational posterior of one cluster's tasks; A ≤ L states are in use.

    Attributes
    ----------
    weights : array of shape (A,)
        ω of the states in use; the others have γ/L.
    statistics : array of shape (A, n_statistics)
        Expected emission statistics; q(θ) is the posterior given them.
    counts : array of shape (n_tasks, A + 1, A)
        Expected transitions; q(W_jr) = Dir(αg + κe_r + counts_jr).
    bound : float
        Lower bound of log p(o | hyper-parameters).
    local_bounds : array of shape (n_tasks,)
        What each task's states and rows add to the bound.
    """

    weights: Floats
    statistics: Floats
    counts: Floats
    bound: float
    local_bounds: Floats


def base_of(weights: Floats, hyper: ClusterPrior) -> Floats:
    """Geometric means of β of the states in use."""
    return np.asarray(geometric_means(weights, hyper.gamma, hyper.n_states))


def reweighed(
    counts: Floats, weights: Floats, hyper: ClusterPrior, *, task_weights: Floats | None = None, n_updates: int = 2
) -> Floats:
    """Update q(β) given the expected transitions of the tasks; the bound never falls."""
    rho = np.ones(len(counts)) if task_weights is None else task_weights
    shared = (hyper.gamma, hyper.n_states, hyper.alpha, hyper.stickiness)
    return np.asarray(weigh_states(np.ascontiguousarray(counts), rho, weights, *shared, n_updates))


class Start(NamedTuple):
    """Where a fit starts: expected transitions (n_tasks, A + 1, A) and emission statistics (A, n_statistics)."""

    counts: Floats
    statistics: Floats


def start_from_posteriors(sequences: Sequences, emission: Emission, posteriors: Floats) -> Start:
    """A start from posteriors of the steps' states, (n_steps, A), taken as independent of each other."""
    n_states = posteriors.shape[1]
    counts = np.zeros((sequences.n_tasks, n_states + 1, n_states))
    firsts = sequences.bounds[:-1]
    follows = np.ones(sequences.n_steps, dtype=bool)
    follows[firsts] = False
    for j in range(sequences.n_tasks):
        own = sequences.steps_of(j)
        after = np.arange(own.start, own.stop)[follows[own]]
        counts[j, 1:] = posteriors[after - 1].T @ posteriors[after]
        counts[j, 0] = posteriors[firsts[sequences.task_bounds[j] : sequences.task_bounds[j + 1]]].sum(axis=0)
    return Start(counts, emission.expected_statistics(sequences.observations, posteriors))


def start_of(fit: ClusterFit) -> Start:
    """Go on from where a fit ended."""
    return Start(fit.counts, fit.statistics)


def first_weights(counts: Floats, hyper: ClusterPrior) -> Floats:
    """Base weights for expected transitions that come without any: tables guessed, then updated."""
    visits = counts.sum(axis=(0, 1))
    guess = hyper.gamma / hyper.n_states + np.minimum(visits, 1.0 + hyper.alpha * len(counts) * np.log1p(visits))
    return reweighed(counts, guess, hyper, n_updates=5)


def fit_cluster(
    sequences: Sequences,
    emission: Emission,
    hyper: ClusterPrior,
    start: Start,
    *,
    weights: Floats | None = None,
    n_iterations: int = 100,
    tolerance: float = 1e-2,
    enough: float = np.inf,
) -> ClusterFit:
    """Fit tasks that share base weights and emissions, by coordinate ascent from a start.

    Parameters
    ----------
    sequences : Sequences
        Of the cluster's tasks alone.
    emission : Emission
    hyper : ClusterPrior
        Held as they are.
    start : Start
        At most ``hyper.n_states`` states.
    weights : array of shape (A,), optional
        ω to start from; by default found from the start's transitions.
    n_iterations : int
    tolerance : float
        Ends when an iteration adds less than this many nats to the bound.
    enough : float
        Ends as soon as the bound is above this.

    Returns
    -------
    ClusterFit
        Its bound is that of the posterior which it describes.

    Examples
    --------
    Two states, each sure of its own code.

    >>> from kinfolk.sequences.model.emissions.categorical import Categorical
    >>> codes = np.repeat([0, 1, 0, 1], 10)
    >>> sequences = Sequences((codes,), np.array([0, 40]), np.array([0, 1]))
    >>> emission = Categorical(2, strength=1.0)
    >>> start = start_from_posteriors(sequences, emission, np.eye(2)[codes])
    >>> fit_cluster(sequences, emission, ClusterPrior(), start).statistics.round()
    array([[20.,  0.],
           [ 0., 20.]])
    """
    counts, statistics = start
    if weights is None:
        weights = first_weights(counts, hyper)
    before = -np.inf
    for _ in range(n_iterations):
        densities = emission.expected_densities(statistics, sequences.observations)
        local, new_counts, posteriors = local_posteriors(
            densities, sequences, base_of(weights, hyper), hyper, np.ascontiguousarray(counts)
        )
        bound = float(local.sum() - emission.divergence(statistics).sum())
        bound += base_bound(weights, hyper.gamma, hyper.n_states, float(len(counts)))
        # This bound is that of q before the updates below, which only raise it.
        reached = ClusterFit(weights, statistics, counts, bound, local)
        if bound < before + tolerance or bound > enough:
            break
        before = bound
        counts = new_counts
        visits = counts.sum(axis=(0, 1))
        used = (visits > _FEWEST_VISITS) | (visits == visits.max())
        if not used.all():
            counts, weights = without_states(counts, used), weights[used]
            posteriors = np.ascontiguousarray(posteriors[:, used])
            before = -np.inf
        statistics = emission.expected_statistics(sequences.observations, posteriors)
        weights = reweighed(counts, weights, hyper)
    return reached


def without_states(counts: Floats, used: NDArray[np.bool_]) -> Floats:
    """Expected transitions between the states that are used."""
    return np.ascontiguousarray(counts[:, np.concatenate([[True], used])][:, :, used])


def fit_locally(
    sequences: Sequences, emission: Emission, hyper: ClusterPrior, fit: ClusterFit, *, n_iterations: int = 1
) -> Local:
    """Posteriors of tasks' states under a cluster that is held, from the expected transitions that ``fit`` has."""
    densities = emission.expected_densities(fit.statistics, sequences.observations)
    base = base_of(fit.weights, hyper)
    counts = np.ascontiguousarray(fit.counts)
    for _ in range(n_iterations):
        local, counts, posteriors = local_posteriors(densities, sequences, base, hyper, counts)
    # What the variances of log β take from the bound, for the rows of one task.
    of_rows = base_bound(fit.weights, hyper.gamma, hyper.n_states, 1.0)
    of_rows -= base_bound(fit.weights, hyper.gamma, hyper.n_states, 0.0)
    return Local(local + of_rows, counts, posteriors)


def usual_transitions(pooled: Floats, n_steps: NDArray[np.int64]) -> Floats:
    """Expected transitions (tasks, A + 1, A) of tasks with so many steps, if they are like those of a whole cluster."""
    return np.asarray(pooled * (n_steps / max(pooled.sum(), 1.0))[:, None, None])
