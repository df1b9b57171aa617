"""Annealed importance sampling of one cluster of tasks, from a variational reference to its posterior.

For a set of tasks let x = (β, θ, W_j), s their hidden states, f(x, s) = p(x) p(O, s | x) and Z the sum of f, their
evidence. With the tables m̂, emission statistics n̂ᵉ and transitions n̂ that a variational fit expects, the reference is

    q(x, s) = Dir(β; γ/L + m̂) ∏ Dir(W_jr; αβ + κe_r + n̂_jr) ∏ p(θ_l | n̂ᵉ_l) · p(s | O, W̃, θ̃),

W̃ and θ̃ what the fit expects of one more step: like the mean-field posterior, but W follows β, and no state is ruled
out. On the way, at t from 0 to 1, q^(1−t) f^t is left as it is by draws of s (forward filtering, backward sampling,
transitions W^t W̃^(1−t)), of β given s (Metropolis steps, W integrated out), and of θ and W given both, which stay
conjugate: the counts (1 − t)n̂ + t n(s) take the place of n(s). The weight of a path is the product of the ratios of
successive densities, s summed out; its mean is Z (R. M. Neal, Statist. Comput. 11, 2001). All steps are reversible, so
that a path back from the posterior is drawn by the same steps.

Three tasks of the paper's synthetic data, of 1,000 steps each, are weighed with a standard deviation of 1 nat. All
twelve in one cluster are weighed with one of 4; draws from q alone scatter as much, and fall 16 nats short.
"""

from __future__ import annotations

from itertools import pairwise
from math import exp, lgamma, log
from typing import NamedTuple

import numpy as np

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled
from kinfolk.sequences.inference.mean_field import NO_COUNT, ClusterFit, fit_locally, log_rising
from kinfolk.sequences.model.dirichlet_draws import draw_dirichlet, draw_transitions
from kinfolk.sequences.model.emissions.emission import Codes, Densities, Emission, LogDensities
from kinfolk.sequences.model.filtering import draw_states, reordered, scaled, score_pairs
from kinfolk.sequences.model.ndp_ihmm import ClusterPrior, count_transitions
from kinfolk.sequences.model.sequences import Sequences

# Probabilities that are zero in floats count as this much.
_TINY = 1e-300
# A reference is the farther from the posterior the more data there are: a temperature for so many steps, within bounds;
# from the usual number on, one for twice as many. Paths of a few hundred steps have weights that scatter as little
# with three temperatures as with ten. They lie close together near 1, where a path back from an x that the reference
# hardly knows loses most.
_STEPS_A_TEMPERATURE, _STEPS_OF_MANY, _FEWEST, _USUAL, _MOST, _BEND = 150, 300, 3, 10, 40, 3.0
# Metropolis steps of β at each temperature, for each state: two states share their weight anew, on the scale of logits.
_TRIES_A_STATE = 2


class Particle(NamedTuple):
    """x of a cluster: β (L,), θ (L, P) and W (tasks, L + 1, L)."""

    base_weights: Floats
    parameters: Floats
    transitions: Floats


class Guide(NamedTuple):
    """What kernels read of a reference; ``tables``, ``counts`` and ``row_weights`` are zero for states it does not use.

    Attributes
    ----------
    tables, counts : arrays of shape (L,) and (tasks, L + 1, L)
        m̂ and n̂.
    row_weights : array of shape (rows of the densities, L)
        How far each row is the state's.
    """

    tables: Floats
    counts: Floats
    row_weights: Floats


class Reference(NamedTuple):
    """What q is made of, for all L states, of which the fit uses the first A; a function of the data alone.

    Attributes
    ----------
    sequences : Sequences
        The tasks' own.
    guide : Guide
    n_used : int
        A.
    statistics : array of shape (L, S)
        n̂ᵉ.
    log_rows, row : arrays of shape (rows, L) and (n_steps,)
        Log θ̃ of every row of the densities, and the row of each step.
    log_moves : array of shape (tasks, L + 1, L)
        Log W̃.
    log_guided : float
        Log p(O | W̃, θ̃).
    temperatures : list of float
        The way from the reference, 0, to the posterior, 1.
    """

    sequences: Sequences
    guide: Guide
    n_used: int
    statistics: Floats
    log_rows: Floats
    row: Codes
    log_moves: Floats
    log_guided: float
    temperatures: list[float]


def reference_of(
    fit: ClusterFit, sequences: Sequences, emission: Emission, prior: ClusterPrior, n_states: int
) -> Reference:
    """The reference made of a fit of the sequences' tasks, under hyper-parameters that need not be those of f."""
    posteriors = fit_locally(sequences, emission, prior, fit).posteriors
    n_used = len(fit.weights)
    tables, statistics = np.zeros(n_states), np.zeros((n_states, emission.n_statistics))
    counts = np.zeros((sequences.n_tasks, n_states + 1, n_states))
    tables[:n_used] = np.maximum(fit.weights - prior.gamma / prior.n_states, 0.0)
    statistics[:n_used] = emission.expected_statistics(sequences.observations, posteriors, fit.statistics)
    counts[:, : n_used + 1, :n_used] = fit.counts
    log_rows, row = emission.log_predictive_densities(statistics, sequences.observations)
    row_weights = np.zeros(log_rows.shape)
    np.add.at(row_weights[:, :n_used], row, posteriors)
    moves = counts + prior.alpha * (prior.gamma / n_states + tables) / (prior.gamma + tables.sum())
    moves[:, np.arange(1, n_states + 1), np.arange(n_states)] += prior.stickiness
    moves /= moves.sum(axis=2, keepdims=True)
    guide = Guide(tables, counts, row_weights)
    log_guided = _log_likelihood(scaled(LogDensities(log_rows, row)), sequences, moves)
    n_temperatures = min(
        max(sequences.n_steps // _STEPS_A_TEMPERATURE, _FEWEST), max(sequences.n_steps // _STEPS_OF_MANY, _USUAL), _MOST
    )
    way = (1.0 - np.linspace(1.0, 0.0, n_temperatures + 1) ** _BEND).tolist()
    return Reference(sequences, guide, n_used, statistics, log_rows, row, np.log(moves), log_guided, way)


def draw_from(reference: Reference, emission: Emission, prior: ClusterPrior, rng: np.random.Generator) -> Particle:
    """Draw x from q."""
    tables, counts = reference.guide.tables, reference.guide.counts
    base_weights = draw_dirichlet(prior.gamma / len(tables) + tables, rng)
    transitions = draw_transitions(prior.alpha * base_weights, prior.stickiness, counts, rng)
    return Particle(base_weights, emission.draw_parameters(reference.statistics, rng), transitions)


def annealed(
    particle: Particle,
    reference: Reference,
    emission: Emission,
    prior: ClusterPrior,
    rng: np.random.Generator,
    *,
    back: bool = False,
) -> tuple[Particle, float]:
    """Follow a path from a draw of q to the posterior, or back; the end, and the log weight of the path.

    O(temperatures · steps · L²).

    Examples
    --------
    A code that is as often 0 as 1, once: its evidence is 1/2, and so is the weight of every path.

    >>> from kinfolk.sequences.model.emissions.categorical import Categorical
    >>> from kinfolk.sequences.inference.state_merges import fit_from_blocks
    >>> data = Sequences((np.array([0]),), np.array([0, 1]), np.array([0, 1]))
    >>> emission, rng = Categorical(2, 1.0), np.random.default_rng(0)
    >>> hyper = ClusterPrior(n_states=1)
    >>> fit = fit_from_blocks(data, emission, hyper, rng)
    >>> reference = reference_of(fit, data, emission, hyper, 1)
    >>> start = draw_from(reference, emission, ClusterPrior(n_states=1), rng)
    >>> end, log_weight = annealed(start, reference, emission, ClusterPrior(n_states=1), rng)
    >>> round(float(np.exp(log_weight)), 6)
    0.5
    """
    guide, observations = reference.guide, reference.sequences.observations
    n_states, n_steps = len(guide.tables), reference.sequences.n_steps
    n_tries = _TRIES_A_STATE * n_states if n_states > 1 else 0
    # What the densities of x under the prior and q have that hangs on no x.
    constant = reference.log_guided + float(emission.log_marginal(reference.statistics).sum())
    way = reference.temperatures[::-1] if back else reference.temperatures
    log_weight = 0.0
    for now, following in pairwise(way):
        rows = emission.log_densities(particle.parameters, observations).rows
        log_moves = np.log(np.maximum(particle.transitions, _TINY))
        log_weight -= _log_sum(reference, rows, log_moves, now)
        densities, moves = _tempered(reference, rows, log_moves, following)
        states, uniforms = np.zeros(n_steps, dtype=np.int64), rng.random(n_steps)
        log_weight += float(draw_states(densities, reference.sequences.layout, moves, uniforms, states).sum())
        log_ratio = constant + _log_density_ratio(guide, rows, log_moves, particle.base_weights, prior)
        log_weight += (following - now) * log_ratio
        if following == way[-1]:
            break
        base_weights = particle.base_weights.copy()
        noise = _Noise(rng.random((n_tries, 3)), rng.standard_normal(n_tries))
        visits = count_transitions(states, reference.sequences.bounds, reference.sequences.task_bounds, n_states)
        _move_base_weights(base_weights, prior, guide, visits, following, noise)
        counts = (1.0 - following) * guide.counts + following * visits
        transitions = draw_transitions(prior.alpha * base_weights, prior.stickiness, counts, rng)
        statistics = following * emission.statistics(observations, states, n_states)
        statistics += (1.0 - following) * reference.statistics
        particle = Particle(base_weights, emission.draw_parameters(statistics, rng), transitions)
    return particle, -log_weight if back else log_weight


def _tempered(reference: Reference, rows: Floats, log_moves: Floats, at: float) -> tuple[Densities, Floats]:
    """Densities of steps, and transitions of tasks, at a temperature."""
    log_rows = at * rows + (1.0 - at) * reference.log_rows
    moves = np.exp(at * log_moves + (1.0 - at) * reference.log_moves)
    return scaled(LogDensities(log_rows, reference.row)), moves


def _log_sum(reference: Reference, rows: Floats, log_moves: Floats, at: float) -> float:
    """Log of the sum over states of p(O, s | x)^t p(O, s | W̃, θ̃)^(1−t)."""
    if at == 0.0:
        return reference.log_guided
    densities, moves = _tempered(reference, rows, log_moves, at)
    return _log_likelihood(densities, reference.sequences, moves)


def _log_likelihood(densities: Densities, sequences: Sequences, moves: Floats) -> float:
    """Log likelihood of all sequences, each by the transitions of its task."""
    scores = np.empty((len(moves), 1, 1))
    score_pairs(_of_one_cluster(densities), sequences.layout, (0, len(moves)), moves[:, None, None], scores)
    return float(scores.sum())


def _of_one_cluster(densities: Densities) -> Densities:
    """Densities as kernels read them that tasks of several clusters go through."""
    return Densities(densities.likelihood[None], densities.log_scale[None], densities.row)


class _Noise(NamedTuple):
    """Random numbers of tries at β: uniform (n, 3) and normal (n,) ones."""

    of_tries: Floats
    normal: Floats


@reordered
def _log_density_ratio(guide, rows, log_moves, base_weights, prior):  # type: ignore[no-untyped-def]
    """Log of p(x)/q(x) without what hangs on the reference alone."""
    n_states, share = len(base_weights), prior.gamma / len(base_weights)
    at_least, all_tables = np.empty(n_states), 0.0
    value = lgamma(prior.gamma)
    for s in range(n_states):
        at_least[s] = max(base_weights[s], _TINY)
        all_tables += guide.tables[s]
        value += lgamma(share + guide.tables[s]) - lgamma(share) - guide.tables[s] * log(at_least[s])
    value -= lgamma(prior.gamma + all_tables)
    value += log_rising(guide.counts, np.ones(len(guide.counts)), at_least, prior)[0]
    for j in range(len(guide.counts)):
        for r in range(n_states + 1):
            for s in range(n_states):
                value -= guide.counts[j, r, s] * log_moves[j, r, s]
    for i in range(len(rows)):
        for s in range(n_states):
            # A state that the reference does not use may be impossible here.
            if guide.row_weights[i, s] > 0.0:
                value -= guide.row_weights[i, s] * rows[i, s]
    return value


@compiled
def _log_density_of_weight(weight, state, prior, guide, counts, at):  # type: ignore[no-untyped-def]
    """Log density of β_l at a temperature given the states, W integrated out; what hangs on β_l."""
    share, kappa = prior.gamma / len(guide.tables), prior.stickiness
    value = (share + (1.0 - at) * guide.tables[state] - 1.0) * log(weight)
    log_gamma = lgamma(prior.alpha * weight)
    for j in range(counts.shape[0]):
        for r in range(counts.shape[1]):
            n, expected = counts[j, r, state], guide.counts[j, r, state]
            if n == 0 and expected <= NO_COUNT:
                continue
            x, log_gamma_x = prior.alpha * weight, log_gamma
            if r == state + 1 and kappa > 0.0:
                x += kappa
                log_gamma_x = lgamma(x)
            value += lgamma(x + at * n + (1.0 - at) * expected) - log_gamma_x
            value -= (1.0 - at) * (lgamma(x + expected) - log_gamma_x)
    return value


@compiled
def _move_base_weights(base_weights, prior, guide, counts, at, noise):  # type: ignore[no-untyped-def]
    """Try to share the weight of two states anew, several times, in place."""
    n_states = len(base_weights)
    # Log densities of the weights as they are; NaN where not known yet.
    known = np.full(n_states, np.nan)
    for i in range(len(noise.normal)):
        a, b = int(noise.of_tries[i, 0] * n_states), int(noise.of_tries[i, 1] * (n_states - 1))
        b += b >= a
        old_a, old_b = base_weights[a], base_weights[b]
        if old_a <= _TINY or old_b <= _TINY:
            continue
        logit = log(old_a) - log(old_b) + noise.normal[i]
        new_a, new_b = (old_a + old_b) / (1.0 + exp(-logit)), (old_a + old_b) / (1.0 + exp(logit))
        if new_a <= _TINY or new_b <= _TINY:
            continue
        # The last terms are those of the change of variables from logits.
        log_ratio = log(new_a) + log(new_b) - log(old_a) - log(old_b)
        for state in (a, b):
            if np.isnan(known[state]):
                known[state] = _log_density_of_weight(base_weights[state], state, prior, guide, counts, at)
        of_a = _log_density_of_weight(new_a, a, prior, guide, counts, at)
        of_b = _log_density_of_weight(new_b, b, prior, guide, counts, at)
        log_ratio += (of_a - known[a]) + (of_b - known[b])
        if log(noise.of_tries[i, 2]) < log_ratio:
            base_weights[a], base_weights[b], known[a], known[b] = new_a, new_b, of_a, of_b
