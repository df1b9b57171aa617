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

from collections.abc import Iterator
from itertools import pairwise
from math import exp, lgamma, log
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from kinfolk.maths.arrays import Floats
from kinfolk.maths.compiled import compiled
from kinfolk.maths.draws import draw_dirichlet
from kinfolk.sequences.inference.local_posteriors import NO_COUNT, log_rising
from kinfolk.sequences.inference.mean_field import ClusterFit, fit_locally
from kinfolk.sequences.model.emissions.emission import Codes, Densities, Emission, LogDensities
from kinfolk.sequences.model.filtering import draw_states, log_likelihoods
from kinfolk.sequences.model.ndp_ihmm import ClusterPrior
from kinfolk.sequences.model.sequences import Sequences
from kinfolk.sequences.model.transitions import count_transitions, draw_rows_of_tasks

# Probabilities that are zero in floats count as this much.
_TINY = 1e-300
# A reference is the farther from the posterior the more data there are: a temperature for so many steps, within bounds.
# They lie close together near 1, where a path back from an x that the reference hardly knows loses most.
_STEPS_A_TEMPERATURE, _FEWEST, _MOST, _BEND = 300, 10, 40, 3.0
# Metropolis steps of β at each temperature, for each state: two states share their weight anew, on the scale of logits.
_TRIES_A_STATE = 2


class Particle(NamedTuple):
    """x of a cluster: β (L,), θ (L, P) and W (tasks, L + 1, L)."""

    base_weights: Floats
    parameters: Floats
    transitions: Floats


class Reference(NamedTuple):
    """What q is made of, for all L states; a function of the data alone.

    Attributes
    ----------
    sequences : Sequences
        The tasks' own.
    tables, statistics, counts : arrays of shape (L,), (L, S) and (tasks, L + 1, L)
        m̂, n̂ᵉ and n̂, zero for states that the fit does not use.
    row_weights : array of shape (rows of the densities, A)
        How far each row is the state's, for the A states that the fit uses; they come first.
    log_guide, row : arrays of shape (rows, L) and (n_steps,)
        Log θ̃ of every row of the densities, and the row of each step.
    log_guide_moves : array of shape (tasks, L + 1, L)
        Log W̃.
    log_guided : float
        Log p(O | W̃, θ̃).
    """

    sequences: Sequences
    tables: Floats
    statistics: Floats
    counts: Floats
    row_weights: Floats
    log_guide: Floats
    row: Codes
    log_guide_moves: Floats
    log_guided: float

    @property
    def n_used(self) -> int:
        """A."""
        return int(self.row_weights.shape[1])

    @property
    def temperatures(self) -> Floats:
        """The way from the reference, 0, to the posterior, 1."""
        n_steps = self.sequences.n_steps // _STEPS_A_TEMPERATURE
        return np.asarray(1.0 - np.linspace(1.0, 0.0, min(max(n_steps, _FEWEST), _MOST) + 1) ** _BEND)


def reference_of(
    fit: ClusterFit, sequences: Sequences, emission: Emission, hyper: ClusterPrior, n_states: int
) -> Reference:
    """The reference made of a fit of the sequences' tasks, under hyper-parameters that need not be those of f."""
    posteriors = fit_locally(sequences, emission, hyper, fit).posteriors
    n_used = len(fit.weights)
    tables, statistics = np.zeros(n_states), np.zeros((n_states, emission.n_statistics))
    counts = np.zeros((sequences.n_tasks, n_states + 1, n_states))
    tables[:n_used] = np.maximum(fit.weights - hyper.gamma / hyper.n_states, 0.0)
    statistics[:n_used] = emission.expected_statistics(sequences.observations, posteriors)
    counts[:, : n_used + 1, :n_used] = fit.counts
    guide = emission.log_predictive_densities(statistics, sequences.observations)
    row_weights = np.zeros((len(guide.rows), n_used))
    np.add.at(row_weights, guide.row, posteriors)
    moves = counts + hyper.alpha * (hyper.gamma / n_states + tables) / (hyper.gamma + tables.sum())
    moves[:, np.arange(1, n_states + 1), np.arange(n_states)] += hyper.stickiness
    log_moves = np.log(moves / moves.sum(axis=2, keepdims=True))
    log_guided = _log_likelihood(sequences, guide.scaled(), np.exp(log_moves))
    return Reference(sequences, tables, statistics, counts, row_weights, *guide, log_moves, log_guided)


def draw_from(reference: Reference, emission: Emission, prior: ClusterPrior, rng: np.random.Generator) -> Particle:
    """Draw x from q."""
    n_states = len(reference.tables)
    base_weights = np.empty(n_states)
    draw_dirichlet(prior.gamma / n_states + reference.tables, base_weights, rng)
    transitions = np.empty(reference.counts.shape)
    _draw_rows(base_weights, prior, reference.counts, transitions, rng)
    return Particle(base_weights, emission.draw_parameters(reference.statistics, rng), transitions)


def _draw_rows(
    base_weights: Floats, prior: ClusterPrior, counts: Floats, transitions: Floats, rng: np.random.Generator
) -> None:
    weights = np.tile(prior.alpha * base_weights, (len(counts), 1))
    draw_rows_of_tasks(weights, prior.stickiness, counts, 0, len(counts), transitions, rng)


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
    >>> from kinfolk.sequences.inference.task_set_fits import fit_from_blocks
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
    sequences, n_states = reference.sequences, len(reference.tables)
    states = np.zeros(sequences.n_steps, dtype=np.int64)
    share = prior.gamma / n_states
    way = reference.temperatures[::-1] if back else reference.temperatures
    log_weight = 0.0
    for now, following in zip(way[:-1].tolist(), way[1:].tolist(), strict=True):
        rows = emission.log_densities(particle.parameters, sequences.observations).rows
        log_moves = np.log(np.maximum(particle.transitions, _TINY))
        log_weight -= _log_sum(reference, rows, log_moves, now)
        log_weight += _draw_states(reference, rows, log_moves, following, states, rng)
        log_weight += (following - now) * _log_density_ratio(particle, reference, emission, prior, rows)
        if following == way[-1]:
            break
        counts = count_transitions(states, sequences.bounds, sequences.task_bounds, n_states)
        base_weights = particle.base_weights.copy()
        n_tries = _TRIES_A_STATE * n_states if n_states > 1 else 0
        shared = (prior.alpha, prior.stickiness, share, reference.tables, counts, reference.counts, following)
        _move_base_weights(base_weights, *shared, n_tries, rng)
        known = (1.0 - following) * reference.counts + following * counts
        transitions = np.empty(known.shape)
        _draw_rows(base_weights, prior, known, transitions, rng)
        statistics = following * emission.statistics(sequences.observations, states, n_states)
        statistics += (1.0 - following) * reference.statistics
        particle = Particle(base_weights, emission.draw_parameters(statistics, rng), transitions)
    return particle, -log_weight if back else log_weight


def _log_density_ratio(
    particle: Particle, reference: Reference, emission: Emission, prior: ClusterPrior, rows: Floats
) -> float:
    """Log of p(x)/q(x), and of the reference's own sum over states, which q(s) is divided by."""
    n_states, n_used, tables = len(reference.tables), reference.n_used, reference.tables
    base_weights, share = np.maximum(particle.base_weights, _TINY), prior.gamma / n_states
    value = gammaln(prior.gamma) - gammaln(prior.gamma + tables.sum())
    value += (gammaln(share + tables) - gammaln(share) - tables * np.log(base_weights)).sum()
    value += log_rising(reference.counts, np.ones(len(reference.counts)), base_weights, prior.alpha, prior.stickiness)[
        0
    ]
    value -= (reference.counts * np.log(np.maximum(particle.transitions, _TINY))).sum()
    value += emission.log_marginal(reference.statistics).sum() - (reference.row_weights * rows[:, :n_used]).sum()
    return float(value + reference.log_guided)


def _tempered(reference: Reference, rows: Floats, at: float) -> LogDensities:
    return LogDensities(at * rows + (1.0 - at) * reference.log_guide, reference.row)


def _log_sum(reference: Reference, rows: Floats, log_moves: Floats, at: float) -> float:
    """Log of the sum over states of p(O, s | x)^t p(O, s | W̃, θ̃)^(1−t)."""
    if at == 0.0:
        return reference.log_guided
    densities, moves = _tempered(reference, rows, at).scaled(), _mixed(reference, log_moves, at)
    return _log_likelihood(reference.sequences, densities, moves)


def _log_likelihood(sequences: Sequences, densities: Densities, transitions: Floats) -> float:
    """Log likelihood of all sequences, each by the transitions of its task."""
    likelihood, log_scale, row = densities
    total = 0.0
    for j, (bounds, steps) in enumerate(_by_task(sequences)):
        total += float(log_likelihoods(likelihood, log_scale, row[steps], bounds, transitions[j]).sum())
    return total


def _draw_states(
    reference: Reference,
    rows: Floats,
    log_moves: Floats,
    at: float,
    states_out: Codes,
    rng: np.random.Generator,
) -> float:
    """Draw states at a temperature; the log of the sum over them."""
    (likelihood, log_scale, row), moves = _tempered(reference, rows, at).scaled(), _mixed(reference, log_moves, at)
    uniforms = rng.random(len(states_out))
    total = 0.0
    for j, (bounds, steps) in enumerate(_by_task(reference.sequences)):
        given = likelihood, log_scale, row[steps], bounds, moves[j], uniforms[steps], states_out[steps]
        total += float(draw_states(*given).sum())
    return total


def _mixed(reference: Reference, log_moves: Floats, at: float) -> Floats:
    """Transitions of the tasks at a temperature."""
    return np.asarray(np.exp(at * log_moves + (1.0 - at) * reference.log_guide_moves))


def _by_task(sequences: Sequences) -> Iterator[tuple[Codes, slice]]:
    """Where the sequences of each task begin and end among its steps, and where these are."""
    for first, last in pairwise(sequences.task_bounds.tolist()):
        own = sequences.bounds[first : last + 1]
        yield own - own[0], slice(int(own[0]), int(own[-1]))


@compiled
def _log_density_of_weight(weight, state, alpha, kappa, share, tables, counts, counts_of_reference, at):  # type: ignore[no-untyped-def]
    """Log density of β_l at a temperature given the states, W integrated out; what hangs on β_l."""
    value = (share + (1.0 - at) * tables[state] - 1.0) * log(weight)
    log_gamma = lgamma(alpha * weight)
    for j in range(counts.shape[0]):
        for r in range(counts.shape[1]):
            n, expected = counts[j, r, state], counts_of_reference[j, r, state]
            if n == 0 and expected <= NO_COUNT:
                continue
            x, log_gamma_x = alpha * weight, log_gamma
            if r == state + 1 and kappa > 0.0:
                x += kappa
                log_gamma_x = lgamma(x)
            value += lgamma(x + at * n + (1.0 - at) * expected) - log_gamma_x
            value -= (1.0 - at) * (lgamma(x + expected) - log_gamma_x)
    return value


@compiled
def _move_base_weights(  # type: ignore[no-untyped-def]
    base_weights, alpha, kappa, share, tables, counts, counts_of_reference, at, n_tries, rng
):
    """Try to share the weight of two states anew, several times, in place."""
    n_states = len(base_weights)
    for _ in range(n_tries):
        a, b = int(rng.random() * n_states), int(rng.random() * (n_states - 1))
        b += b >= a
        old_a, old_b = base_weights[a], base_weights[b]
        if old_a <= _TINY or old_b <= _TINY:
            continue
        logit = log(old_a) - log(old_b) + rng.standard_normal()
        new_a, new_b = (old_a + old_b) / (1.0 + exp(-logit)), (old_a + old_b) / (1.0 + exp(logit))
        if new_a <= _TINY or new_b <= _TINY:
            continue
        # The last terms are those of the change of variables from logits.
        log_ratio = log(new_a) + log(new_b) - log(old_a) - log(old_b)
        for state, new, old in ((a, new_a, old_a), (b, new_b, old_b)):
            log_ratio += _log_density_of_weight(
                new, state, alpha, kappa, share, tables, counts, counts_of_reference, at
            ) - _log_density_of_weight(old, state, alpha, kappa, share, tables, counts, counts_of_reference, at)
        if log(rng.random()) < log_ratio:
            base_weights[a], base_weights[b] = new_a, new_b
