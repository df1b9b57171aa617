"""One cluster of tasks by mean field: a lower bound on the log evidence of an infinite hidden Markov model.

For tasks that share base weights β ~ Dir(γ/L) and emissions θ_l ~ H (Ni et al. 2007, eq. 9, in the weak limit of L
states),

    q(s, W, β, θ) = ∏_j q(s_j) ∏_jr q(W_jr) · Dir(β; ω) · ∏_l q(θ_l).

What is computed is a true lower bound of log p(o | α, γ, κ, H), in which states are labelled. States that no step uses
keep ω_l = γ/L and are not stored; A ≤ L states are.

**States and rows.** With q(W_jr) = Dir(x_r + n_jr), the states of task j have the posterior of a hidden Markov model
whose transitions are

    exp E log W_jrl = exp(ψ(x_rl + n_jrl) − ψ(X_r + n_jr·)),        X_r ≥ Σ_l x_rl,

and whose emissions are exp E log p(o | θ_l) (M. J. Beal, Variational algorithms for approximate Bayesian inference,
2003, chapter 3). What X_r has above Σ_l x_rl is the mass of states that no step can be in. Here x_rl = αg_l + κ[r is
state l] and X_r = α + κ[r is a state], with g_l a cluster's weight of state l.

**Base weights** act on the rows of W through E_q f(log β_l), f(u) = log Γ(αe^u + n)/Γ(αe^u), which has no closed form.
f is convex for n ≥ 1, and its curvature is never below −¼, so that

    E_q f(u) ≥ f(E_q u) − Var_q(u)/8,        E_q u = ψ(ω_l) − ψ(Σω),   Var_q u = ψ′(ω_l) − ψ′(Σω).

Hence β acts as the geometric mean g_l = exp E_q log β_l, and the best ω is close to γ/L + m̂, m̂_l being the slope of f
summed over rows: the expected tables of a Chinese restaurant franchise.

**Hyper-parameters** are those that maximise the bound under their Gamma priors, given fits that are held. Each is
maximised on its own, on the scale of its logarithm, with expected transitions, base weights and emission statistics
held; q(W) and q(θ) follow, since they are the posteriors given those. The bound never falls.

In the papers: Ni, Carin and Dunson (2007), section 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import exp, lgamma
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled
from kinfolk.maths.digamma import digamma, trigamma
from kinfolk.partition.concentration import GammaPrior
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.filtering import scaled, smooth
from kinfolk.sequences.model.ndp_ihmm import ClusterPrior, Priors
from kinfolk.sequences.model.sequences import Sequences

# A step towards better base weights that is shorter than this is not tried.
_SHORTEST_STEP = 1e-3
# Expected counts below this are rounding.
NO_COUNT = 1e-12
# A state that is expected to hold less of a step than this is given up.
_FEWEST_VISITS = 1e-2
# Updates of q(β) in an iteration, and of one that is a guess.
UPDATES, _FIRST_UPDATES = 2, 5
# Fits are compared before they have settled: an iteration that adds less than this many nats ends them.
ROUGHLY = 0.5
# One update moves a hyper-parameter by no more than a factor of e to this power, and stops within this of the best.
_FARTHEST = 2.0
_PRECISION = 0.01


@compiled
def _total(weights, prior):  # type: ignore[no-untyped-def]
    """Σω, those of states that are not in use included."""
    total = prior.gamma * (1.0 - len(weights) / prior.n_states)
    for s in range(len(weights)):
        total += weights[s]
    return total


@compiled
def base_of(weights, prior):  # type: ignore[no-untyped-def]
    """Geometric means of β of the states in use.

    Examples
    --------
    >>> base_of(np.array([30.0, 10.0]), ClusterPrior(n_states=10)).round(3)
    array([0.732, 0.236])
    """
    total = _total(weights, prior)
    base = np.empty(len(weights))
    for s in range(len(weights)):
        base[s] = exp(digamma(weights[s]) - digamma(total))
    return base


@compiled
def base_bound(weights, prior, n_tasks):  # type: ignore[no-untyped-def]
    """What q(β) takes from the bound: −KL(Dir(ω) ‖ Dir(γ/L)), and Var(log β_l)/8 for each row of each task."""
    share = prior.gamma / prior.n_states
    total = _total(weights, prior)
    value = lgamma(prior.gamma) - lgamma(total)
    n_rows = n_tasks * (len(weights) + 1)
    at_total, variance_of_total = digamma(total), trigamma(total)
    for s in range(len(weights)):
        value += lgamma(weights[s]) - lgamma(share) - (weights[s] - share) * (digamma(weights[s]) - at_total)
        value -= n_rows * (trigamma(weights[s]) - variance_of_total) / 8.0
    return value


@compiled
def log_rising(counts, task_weights, base, prior):  # type: ignore[no-untyped-def]
    """Log probability of counts with the rows of W integrated out, and its slopes with respect to log g.

    The first is Σ_j ρ_j Σ_r log[B(x_r + n_jr)/B(x_r)] with ρ the tasks' weights; the slopes are the tables m̂ of a
    Chinese restaurant franchise, Σ_j ρ_j Σ_r αg_l[ψ(x_rl + n_jrl) − ψ(x_rl)].
    """
    n_tasks, n_states, alpha, stickiness = len(counts), len(base), prior.alpha, prior.stickiness
    value = 0.0
    tables = np.zeros(n_states)
    at_zero, log_at_zero = np.empty(n_states), np.empty(n_states)
    for s in range(n_states):
        at_zero[s], log_at_zero[s] = digamma(alpha * base[s]), lgamma(alpha * base[s])
    for j in range(n_tasks):
        rho = task_weights[j]
        if rho <= 0.0:
            continue
        for r in range(n_states + 1):
            visits = 0.0
            for s in range(n_states):
                n = counts[j, r, s]
                if n <= NO_COUNT:
                    continue
                visits += n
                x = alpha * base[s]
                digamma_x, log_gamma_x = at_zero[s], log_at_zero[s]
                if r == s + 1 and stickiness > 0.0:
                    x += stickiness
                    digamma_x, log_gamma_x = digamma(x), lgamma(x)
                value += rho * (lgamma(x + n) - log_gamma_x)
                tables[s] += rho * alpha * base[s] * (digamma(x + n) - digamma_x)
            if visits > 0.0:
                total = alpha + (stickiness if r > 0 else 0.0)
                value -= rho * (lgamma(total + visits) - lgamma(total))
    return value, tables


@compiled
def weigh_states(counts, task_weights, weights, prior, n_updates):  # type: ignore[no-untyped-def]
    """Update ω given the expected transitions of the tasks, (J, A + 1, A), and how far each belongs to the cluster.

    A step towards γ/L + m̂ follows the natural gradient; it is halved until the bound has risen, which never falls.
    """
    share, n_tasks, tried = prior.gamma / prior.n_states, 0.0, np.empty(len(weights))
    for j in range(len(task_weights)):
        n_tasks += task_weights[j]
    value, tables = log_rising(counts, task_weights, base_of(weights, prior), prior)
    best = value + base_bound(weights, prior, n_tasks)
    for _ in range(n_updates):
        size, improved = 1.0, False
        while size > _SHORTEST_STEP:
            for s in range(len(weights)):
                tried[s] = weights[s] + size * (share + tables[s] - weights[s])
            value, tried_tables = log_rising(counts, task_weights, base_of(tried, prior), prior)
            value += base_bound(tried, prior, n_tasks)
            if value > best:
                improved = True
                break
            size *= 0.5
        if not improved:
            break
        weights, tried, best, tables = tried, np.empty(len(weights)), value, tried_tables
    return weights


class Expected(NamedTuple):
    """What q(β) and q(W) say: ω, exp E log W (J, A + 1, A), the divergence of each task's q(W), the part of q(β)."""

    weights: Floats
    transitions: Floats
    divergences: Floats
    of_base: float


@compiled
def _expect(counts, weights, prior, n_updates):  # type: ignore[no-untyped-def]
    """Update q(β) so often, given q(W_jr) = Dir(x_r + counts_jr), and say what they expect. O(tasks · states²)."""
    n_tasks, n_states, stickiness = len(counts), len(weights), prior.stickiness
    if n_updates > 0:
        weights = weigh_states(counts, np.ones(n_tasks), weights, prior, n_updates)
    base, out, divergences = base_of(weights, prior), np.empty(counts.shape), np.zeros(n_tasks)
    for j in range(n_tasks):
        for r in range(n_states + 1):
            visits = 0.0
            for s in range(n_states):
                visits += counts[j, r, s]
            total = prior.alpha + (stickiness if r > 0 else 0.0)
            row_digamma = digamma(total + visits)
            divergences[j] += lgamma(total + visits) - lgamma(total)
            for s in range(n_states):
                n = counts[j, r, s]
                x = prior.alpha * base[s] + (stickiness if r == s + 1 else 0.0)
                expected_log = digamma(x + n) - row_digamma
                out[j, r, s] = exp(expected_log)
                if n > 0.0:
                    divergences[j] += n * expected_log - lgamma(x + n) + lgamma(x)
    return Expected(weights, out, divergences, base_bound(weights, prior, float(n_tasks)))


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
    for j, (start, stop) in enumerate(pairwise(sequences.step_bounds.tolist())):
        after = np.arange(start, stop)[follows[start:stop]]
        counts[j, 1:] = posteriors[after - 1].T @ posteriors[after]
        counts[j, 0] = posteriors[firsts[sequences.task_bounds[j] : sequences.task_bounds[j + 1]]].sum(axis=0)
    return Start(counts, emission.expected_statistics(sequences.observations, posteriors))


def first_weights(counts: Floats, prior: ClusterPrior) -> Floats:
    """Base weights for expected transitions that come without any: tables guessed, to be updated."""
    visits = counts.sum(axis=(0, 1))
    guess = np.minimum(visits, 1.0 + prior.alpha * len(counts) * np.log1p(visits))
    return np.asarray(prior.gamma / prior.n_states + guess)


def fit_cluster(
    sequences: Sequences,
    emission: Emission,
    prior: ClusterPrior,
    start: Start | ClusterFit,
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
    prior : ClusterPrior
        Held as it is.
    start : Start, or ClusterFit to go on from
        At most ``prior.n_states`` states.
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
    counts, statistics = np.ascontiguousarray(start.counts), start.statistics
    n_updates = 0
    if weights is None:
        weights, n_updates = first_weights(counts, prior), _FIRST_UPDATES
    before, observations = -np.inf, emission.at_hand(sequences.observations)
    for _ in range(n_iterations):
        weights, transitions, divergences, bound = _expect(counts, weights, prior, n_updates)
        log_densities, divergence = emission.expected(statistics, observations)
        found = smooth(scaled(log_densities), sequences.layout, transitions)
        local = found.of_tasks - divergences
        bound += float(local.sum() - divergence)
        # This bound is that of q before the updates below, which only raise it.
        reached = ClusterFit(weights, statistics, counts, bound, local)
        if bound < before + tolerance or bound > enough:
            break
        before, n_updates = bound, UPDATES
        counts, posteriors = found.counts, found.posteriors
        visits = counts.sum(axis=(0, 1))
        used = (visits > _FEWEST_VISITS) | (visits == visits.max())
        if not used.all():
            counts, weights = without_states(counts, used), weights[used]
            posteriors, statistics = np.ascontiguousarray(posteriors[:, used]), statistics[used]
            before = -np.inf
        statistics = emission.expected_statistics(observations, posteriors, statistics)
    return reached


def without_states(counts: Floats, used: NDArray[np.bool_]) -> Floats:
    """Expected transitions between the states that are used."""
    return np.ascontiguousarray(counts[:, np.concatenate([[True], used])][:, :, used])


class Local(NamedTuple):
    """What each task adds to the bound (J,), its expected transitions (J, A + 1, A), and posteriors of steps (T, A)."""

    bounds: Floats
    counts: Floats
    posteriors: Floats


def fit_locally(
    sequences: Sequences, emission: Emission, prior: ClusterPrior, fit: ClusterFit, *, n_iterations: int = 1
) -> Local:
    """Posteriors of tasks' states under a cluster that is held, from the expected transitions that ``fit`` has."""
    densities = scaled(emission.expected_log_densities(fit.statistics, sequences.observations))
    counts = np.ascontiguousarray(fit.counts)
    for _ in range(n_iterations):
        expected = _expect(counts, fit.weights, prior, 0)
        found = smooth(densities, sequences.layout, expected.transitions)
        counts = found.counts
    # What the variances of log β take from the bound, for the rows of one task.
    of_rows = base_bound(fit.weights, prior, 1.0) - base_bound(fit.weights, prior, 0.0)
    return Local(found.of_tasks - expected.divergences + of_rows, counts, found.posteriors)


def usual_transitions(pooled: Floats, n_steps: NDArray[np.int64]) -> Floats:
    """Expected transitions (tasks, A + 1, A) of tasks with so many steps, if they are like those of a whole cluster."""
    return np.asarray(pooled * (n_steps / max(pooled.sum(), 1.0))[:, None, None])


def most_probable(value: Callable[[float], float], current: float, prior: GammaPrior | float) -> float:
    """The hyper-parameter near ``current`` that maximises value + log prior density of its logarithm."""
    if not isinstance(prior, GammaPrior):
        return float(prior)

    def loss(log_at: float) -> float:
        at = float(np.exp(log_at))
        return prior.rate * at - prior.shape * log_at - value(at)

    centre = float(np.log(current))
    found = minimize_scalar(
        loss, bounds=(centre - _FARTHEST, centre + _FARTHEST), method="bounded", options={"xatol": _PRECISION}
    )
    return float(np.exp(found.x)) if found.fun < loss(centre) else current


def learn_hyper(
    fits: Sequence[ClusterFit],
    emission: Emission,
    hyper: ClusterPrior,
    priors: Priors,
    task_weights: Sequence[Floats] | None = None,
) -> tuple[ClusterPrior, Emission]:
    """Hyper-parameters for fits that are held, one after the other; those with a fixed value keep it.

    ``task_weights`` tells how far each task of a fit belongs to its cluster, wholly by default.

    Examples
    --------
    >>> from kinfolk.sequences.model.emissions.categorical import Categorical
    >>> from kinfolk.sequences.inference.state_merges import fit_from_blocks
    >>> codes = np.tile(np.repeat([0, 1], 10), 6)
    >>> sequences = Sequences((codes,), np.array([0, 120]), np.array([0, 1]))
    >>> fit = fit_from_blocks(sequences, Categorical(2, 1.0), ClusterPrior(), np.random.default_rng(0))
    >>> _, emission = learn_hyper([fit], Categorical(2, 1.0), ClusterPrior(), Priors())
    >>> emission.strength < 0.5
    True
    """
    weights = [np.ones(len(fit.counts)) for fit in fits] if task_weights is None else task_weights

    def of_rows(at: ClusterPrior) -> float:
        total = 0.0
        for fit, rho in zip(fits, weights, strict=True):
            counts = np.ascontiguousarray(fit.counts)
            total += log_rising(counts, rho, base_of(fit.weights, at), at)[0]
            total += base_bound(fit.weights, at, float(rho.sum()))
        return total

    alpha = most_probable(lambda x: of_rows(hyper._replace(alpha=x)), hyper.alpha, priors.alpha)
    hyper = hyper._replace(alpha=alpha)
    gamma = most_probable(lambda x: of_rows(hyper._replace(gamma=x)), hyper.gamma, priors.gamma)
    hyper = hyper._replace(gamma=gamma)
    stickiness = most_probable(lambda x: of_rows(hyper._replace(stickiness=x)), hyper.stickiness, priors.stickiness)
    hyper = hyper._replace(stickiness=stickiness)
    statistics = np.concatenate([fit.statistics for fit in fits])
    strength = most_probable(
        lambda x: float(emission.with_strength(x).log_marginal(statistics).sum()), emission.strength, priors.strength
    )
    return hyper, emission.with_strength(strength)
