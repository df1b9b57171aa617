"""The nDP-iHMM (Ni et al. 2007, eq. 9) by mean field: clusters of tasks, each an infinite hidden Markov model.

    q = Dir(π) ∏_k q(β_k) q(θ_k) · ∏_j q(c_j) q(s_j, W_j | c_j)

A task has states and transition rows of its own for every cluster that it might be in. With ℓ_jk what they give to the
bound of cluster k (see `variational`), q(c_j = k) ∝ exp(E log π_k + ℓ_jk), and the bound on the log evidence is

    Σ_j log Σ_k exp(E log π_k + ℓ_jk) − KL(q(π) ‖ Dir(η/K)) − Σ_k KL(q(β_k)) − Σ_k KL(q(θ_k)).

It starts from clusters that were found by agglomeration; all updates raise the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, logsumexp

from kinfolk.checkpoints import NOWHERE, Nowhere, Place
from kinfolk.interrupts import NEVER, Stop
from kinfolk.maths.arrays import Floats
from kinfolk.sequences.inference.agglomeration import Agglomeration, at_most, log_prior
from kinfolk.sequences.inference.mean_field import (
    UPDATES,
    ClusterFit,
    Local,
    base_bound,
    fit_locally,
    learn_hyper,
    most_probable,
    usual_transitions,
    weigh_states,
    without_states,
)
from kinfolk.sequences.model.dirichlet_draws import draw_dirichlet, draw_transitions
from kinfolk.sequences.model.draw import Draw, HyperParameters
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.ndp_ihmm import ClusterPrior, Priors, summed_out, urns
from kinfolk.sequences.model.sequences import Sequences

# A cluster that is expected to have less of a task than this is given up, and so is a state with less of a step.
_FEWEST_TASKS = 1e-3
_FEWEST_VISITS = 1e-2
# A state is one that a task uses if it is expected to hold this much of a step.
_USED = 0.5
# Hyper-parameters are learnt in so many of the first iterations; they settle faster than that.
_LEARNING_ITERATIONS = 30


class Mixture(NamedTuple):
    """The variational posterior of the whole model.

    Attributes
    ----------
    responsibilities : array of shape (n_tasks, T)
        q(c_j = k) for the T ≤ K clusters in use.
    fits : tuple of ClusterFit
        One for each cluster, with expected transitions of *all* tasks in it.
    n_clusters : int
        K.
    eta, hyper, emission
        ClusterPrior-parameters.
    bound : float
        Lower bound of the log evidence, given hyper-parameters.
    trace : array
        The bound at each iteration, with the log prior density of the hyper-parameters; it never falls.
    """

    responsibilities: Floats
    fits: tuple[ClusterFit, ...]
    n_clusters: int
    eta: float
    hyper: ClusterPrior
    emission: Emission
    bound: float
    trace: Floats

    @property
    def partition(self) -> NDArray[np.int64]:
        """The most probable cluster of each task."""
        return np.asarray(self.responsibilities.argmax(axis=1), dtype=np.int64)


def start_mixture(found: Agglomeration, n_clusters: int) -> Mixture:
    """Tasks in the clusters that agglomeration found, with their usual transitions in all others."""
    found = at_most(found, n_clusters)
    set_fits = found.set_fits
    sequences, hyper = set_fits.sequences, set_fits.hyper
    n_steps = np.diff(sequences.step_bounds)
    # Large clusters first.
    order = sorted(range(len(found.clusters)), key=lambda k: -len(found.clusters[k]))
    fits = []
    responsibilities = np.zeros((sequences.n_tasks, len(order)))
    for place, k in enumerate(order):
        tasks, fit = list(found.clusters[k]), found.fits[k]
        counts = usual_transitions(fit.counts.sum(axis=0), n_steps)
        counts[tasks] = fit.counts
        fits.append(fit._replace(counts=counts, local_bounds=np.zeros(sequences.n_tasks)))
        responsibilities[tasks, place] = 1.0
    nothing = np.zeros(0)
    return Mixture(responsibilities, tuple(fits), n_clusters, found.eta, hyper, set_fits.emission, -np.inf, nothing)


def fit_mixture(
    sequences: Sequences,
    priors: Priors,
    start: Mixture,
    *,
    n_iterations: int = 200,
    tolerance: float = 1e-2,
    place: Place | Nowhere = NOWHERE,
    stop: Stop = NEVER,
) -> Mixture:
    """Coordinate ascent from a start; hyper-parameters with a prior are learnt.

    Parameters
    ----------
    sequences : Sequences
    priors : Priors
    start : Mixture
        See `start_mixture`.
    n_iterations : int
    tolerance : float
        Ends when an iteration adds less than this many nats to the bound.
    place : Place or Nowhere
        Where iterations that are done are kept.
    stop : Stop
        Whether to end after the iteration at work.

    Returns
    -------
    Mixture

    Examples
    --------
    >>> from kinfolk.sequences.inference.agglomeration import find_clusters
    >>> from kinfolk.sequences.model.emissions.categorical import Categorical
    >>> slow, fast = np.tile(np.repeat([0, 1], 10), 6), np.tile([1, 2], 60)
    >>> sequences = Sequences((np.concatenate([slow, slow, fast, fast]),), np.arange(0, 481, 120), np.arange(5))
    >>> found = find_clusters(sequences, Categorical(3), Priors(), 5)
    >>> mixture = fit_mixture(sequences, Priors(), start_mixture(found, 20))
    >>> mixture.partition.tolist()
    [0, 0, 1, 1]
    """
    first, mixture, trace = 0, start, start.trace.tolist()
    if (kept := place.load()) is not None:
        first, mixture, trace = kept
    for i in range(first, n_iterations):
        before = i, mixture, trace[:]
        if place.due():
            place.save(before)
        local = [fit_locally(sequences, mixture.emission, mixture.hyper, fit) for fit in mixture.fits]
        mixture = with_responsibilities(mixture, np.array([one.bounds for one in local]).T)
        trace.append(mixture.bound + log_prior(priors, mixture.eta, mixture.hyper, mixture.emission.strength))
        if i > 0 and trace[-1] < trace[-2] + tolerance:
            break
        if stop.asked():
            place.save(before)
            return mixture._replace(trace=np.array(trace))
        mixture = with_clusters(mixture, sequences, local)
        if i < _LEARNING_ITERATIONS:
            mixture = with_hyper(mixture, priors)
    place.end((n_iterations, mixture, trace))
    return mixture._replace(trace=np.array(trace))


def with_responsibilities(mixture: Mixture, local_bounds: Floats) -> Mixture:
    """Update q(c) and q(π) given what tasks add to the bound in each cluster, (J, T); the bound is set, too."""
    share = mixture.eta / mixture.n_clusters
    n_tasks = len(local_bounds)
    sizes = share + mixture.responsibilities.sum(axis=0)
    expected_log = digamma(sizes) - digamma(mixture.eta + n_tasks)
    joint = local_bounds + expected_log
    each = logsumexp(joint, axis=1)
    shared = gammaln(mixture.eta) - gammaln(mixture.eta + n_tasks)
    shared += (gammaln(sizes) - gammaln(share) - (sizes - share) * expected_log).sum()
    for fit in mixture.fits:
        shared += base_bound(fit.weights, mixture.hyper, 0.0)
        shared -= mixture.emission.divergence(fit.statistics).sum()
    return mixture._replace(
        responsibilities=np.exp(joint - each[:, None]),
        fits=tuple(fit._replace(local_bounds=own) for fit, own in zip(mixture.fits, local_bounds.T, strict=True)),
        bound=float(each.sum() + shared),
    )


def with_clusters(mixture: Mixture, sequences: Sequences, local: Sequence[Local]) -> Mixture:
    """Update what clusters are made of, given posteriors of the steps; clusters and states without steps go."""
    kept = mixture.responsibilities.sum(axis=0) > _FEWEST_TASKS
    responsibilities = mixture.responsibilities[:, kept]
    responsibilities = responsibilities / responsibilities.sum(axis=1, keepdims=True)
    of_steps = responsibilities[sequences.task_of_step]
    fits = []
    for place, k in enumerate(np.flatnonzero(kept).tolist()):
        fit, own, rho = mixture.fits[k], local[k], np.ascontiguousarray(responsibilities[:, place])
        visits = rho @ own.counts.sum(axis=1)
        used = (visits > _FEWEST_VISITS) | (visits == visits.max())
        counts = without_states(own.counts, used)
        posteriors = np.ascontiguousarray(own.posteriors[:, used] * of_steps[:, place, None])
        statistics = mixture.emission.expected_statistics(sequences.observations, posteriors, fit.statistics[used])
        weights = weigh_states(counts, rho, fit.weights[used], mixture.hyper, UPDATES)
        fits.append(ClusterFit(weights, statistics, counts, fit.bound, own.bounds))
    return mixture._replace(responsibilities=responsibilities, fits=tuple(fits))


def with_hyper(mixture: Mixture, priors: Priors) -> Mixture:
    """Learn hyper-parameters for clusters that are held."""
    columns = [np.ascontiguousarray(column) for column in mixture.responsibilities.T]
    hyper, emission = learn_hyper(mixture.fits, mixture.emission, mixture.hyper, priors, columns)
    sizes, n_tasks = mixture.responsibilities.sum(axis=0), len(mixture.responsibilities)

    def of_clusters(eta: float) -> float:
        share = eta / mixture.n_clusters
        return float((gammaln(share + sizes) - gammaln(share)).sum() + gammaln(eta) - gammaln(eta + n_tasks))

    eta = most_probable(of_clusters, mixture.eta, priors.eta)
    return mixture._replace(hyper=hyper, emission=emission, eta=eta)


def to_draws(mixture: Mixture, n_draws: int, rng: np.random.Generator) -> list[Draw]:
    """Draws from the variational posterior, as a sampler would keep them; ``log_joint`` is the bound.

    States that are not in use come from the prior.
    """
    return [_draw(mixture, rng) for _ in range(n_draws)]


def _draw(mixture: Mixture, rng: np.random.Generator) -> Draw:
    hyper, emission, n_states = mixture.hyper, mixture.emission, mixture.hyper.n_states
    n_tasks = len(mixture.responsibilities)
    reached = mixture.responsibilities.cumsum(axis=1)
    chosen = (rng.random((n_tasks, 1)) * reached[:, -1:] >= reached).sum(axis=1)
    occupied, first_tasks, cluster = np.unique(chosen, return_index=True, return_inverse=True)
    # Clusters are in the order of their first tasks.
    order = np.argsort(first_tasks)
    cluster = np.argsort(order)[cluster]
    base_weights = np.empty((len(occupied), n_states))
    parameters = np.empty((len(occupied), n_states, emission.n_parameters))
    transitions = np.empty((n_tasks, n_states + 1, n_states))
    used = np.empty(n_tasks, dtype=np.int64)
    expected = np.zeros(transitions.shape)
    statistics = np.zeros((len(occupied), n_states, emission.n_statistics))
    for k, place in enumerate(occupied[order]):
        fit = mixture.fits[place]
        n_used = len(fit.weights)
        weights = np.full(n_states, hyper.gamma / n_states)
        weights[:n_used] = fit.weights
        base_weights[k] = draw_dirichlet(weights, rng)
        statistics[k, :n_used] = fit.statistics
        parameters[k] = emission.draw_parameters(statistics[k], rng)
        members = np.flatnonzero(cluster == k)
        expected[members, : n_used + 1, :n_used] = fit.counts[members]
        transitions[members] = draw_transitions(hyper.alpha * base_weights[k], hyper.stickiness, expected[members], rng)
        used[members] = (fit.counts[members].sum(axis=1) > _USED).sum(axis=1)
    drawn = HyperParameters(mixture.eta, hyper.gamma, hyper.alpha, emission.strength, hyper.stickiness)
    return Draw(
        cluster.astype(np.int64),
        base_weights,
        parameters,
        transitions,
        drawn,
        mixture.bound,
        used,
        *urns(base_weights[cluster], drawn, expected, emission, statistics),
        statistics=summed_out(emission, statistics),
    )
