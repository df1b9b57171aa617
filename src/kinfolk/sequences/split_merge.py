"""Moves that split a cluster of tasks or merge two, hidden states summed out: exact, from variational references.

For a set U of tasks in one cluster, let x = (β, θ, W_j for j in U) and f_U(x) = p(x) p(O_U | x). The reference r_U is
a function of the data and of hyper-parameters, which the move leaves as they are: Dirichlet and conjugate posteriors
given the expected counts of a variational fit (see `references`), and with a small probability the prior, which
keeps weights bounded. With y¹ … yᴺ from r_U and weights w = f_U/r_U, the
mean weight Ẑ_U estimates the evidence of U. A split of U into A and B is accepted with probability

    min(1, [p(c′)/p(c)] · Ẑ_A Ẑ_B / Ẑ_U / [q(A, B | i, j)/n_empty]),

where A and B choose their x among N fresh ones by their weights, and U's own x is one of its N; a merge is the inverse.
On the space of all particles and choices this is a Metropolis–Hastings step for the exact posterior, whatever N is
(C. Andrieu, A. Doucet and R. Holenstein, J. Roy. Statist. Soc. B 72, 2010, section 2.4).

States of x may be numbered in any way, and r_U has one numbering. So x is first aligned: going through the states that
the reference uses, one of x's states that are left is drawn by how well it explains the steps of the reference's state.
With g(y) the probability that y is aligned as it is, and A states in use, w has the factor g(y) L!/(L − A)!.

Which sets are proposed hangs on the data alone: tasks i ≠ j are drawn evenly; if they are in one cluster, i and j go to
A and B, and each other task of it goes with the one of them that it has more evidence in common with, most of the time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln

from kinfolk.sequences.agglomeration import promise_of_joining
from kinfolk.sequences.emissions.emission import Emission
from kinfolk.sequences.filtering import draw_states, log_likelihoods
from kinfolk.sequences.local_posteriors import compiled, log_rising
from kinfolk.sequences.model import State
from kinfolk.sequences.references import References, TaskSet
from kinfolk.sequences.sequences import Sequences
from kinfolk.sequences.tables import draw_dirichlet, draw_rows
from kinfolk.sequences.variational import Floats, fit_locally

# Nats of common evidence that make a task e times as likely to go with one anchor rather than with the other, and the
# least probability with which it goes with either.
_SOFTNESS, _LEAST = 5.0, 0.02
# How often a particle comes from the prior rather than from the variational fit.
_FROM_PRIOR = 0.1
# Probabilities that are zero in floats count as this much.
_TINY = 1e-300


class Particle(NamedTuple):
    """x of a cluster: β (L,), θ (L, P) and W (tasks, L + 1, L)."""

    base_weights: Floats
    parameters: Floats
    transitions: Floats


class Reference(NamedTuple):
    """What r_U is made of, for all L states: tables, statistics and expected transitions, zero where none is used.

    ``row_weights`` (rows of the densities, A) says how far each row is the reference's state's.
    """

    sequences: Sequences
    tables: Floats
    statistics: Floats
    counts: Floats
    row_weights: Floats

    @property
    def n_used(self) -> int:
        """A."""
        return int(self.row_weights.shape[1])


class SplitMerge:
    """Split and merge moves for the tasks of a model.

    Parameters
    ----------
    references : References
        Fits of sets of tasks, under any hyper-parameters, that never hang on a chain.
    n_particles : int
        N.

    Examples
    --------
    >>> from kinfolk.sequences.emissions.categorical import Categorical
    >>> from kinfolk.sequences.gibbs import start_state, sweep
    >>> from kinfolk.sequences.model import Priors
    >>> from kinfolk.sequences.variational import Hyper
    >>> rng, emission = np.random.default_rng(0), Categorical(4)
    >>> codes = np.concatenate([np.tile([0, 1], 20), np.tile([2, 3], 20)])
    >>> data = Sequences((codes,), np.array([0, 40, 80]), np.array([0, 1, 2]))
    >>> moves = SplitMerge(References(data, emission, Hyper(n_states=4)))
    >>> together = np.zeros(2, dtype=np.int64)
    >>> state = start_state(data, emission, Priors(), n_clusters=5, n_states=4, rng=rng, cluster=together)
    >>> for _ in range(5):
    ...     state = sweep(moves.move(state, emission, rng), data, emission, Priors(), rng)
    >>> bool(state.cluster[0] == state.cluster[1])
    False
    """

    def __init__(self, references: References, *, n_particles: int = 20) -> None:
        self._fits = references
        self.n_particles = n_particles
        self._references: dict[TaskSet, Reference] = {}
        n_tasks = references.sequences.n_tasks
        self._common = np.zeros((n_tasks, n_tasks))
        for i in range(n_tasks):
            for j in range(i):
                self._common[i, j] = self._common[j, i] = promise_of_joining(references, (j,), (i,))

    def move(self, state: State, emission: Emission, rng: np.random.Generator) -> State:
        """Try one split or merge."""
        n_tasks = len(state.cluster)
        if n_tasks < 2 or state.n_clusters < 2:
            return state
        first, second = rng.choice(n_tasks, size=2, replace=False).tolist()
        if state.cluster[first] == state.cluster[second]:
            return self._split(state, emission.with_strength(state.strength), first, second, rng)
        return self._merge(state, emission.with_strength(state.strength), first, second, rng)

    def _split(self, state: State, emission: Emission, first: int, second: int, rng: np.random.Generator) -> State:
        empty = np.flatnonzero(np.bincount(state.cluster, minlength=state.n_clusters) == 0)
        if not len(empty):
            return state
        here = int(state.cluster[first])
        union = np.flatnonzero(state.cluster == here)
        beside_first = self._chances(union, first, second)
        stays = rng.random(len(union)) < beside_first
        log_q = float(np.log(np.where(stays, beside_first, 1.0 - beside_first)).sum()) - np.log(len(empty))
        parts = [union[stays], union[~stays]]
        # The part with the first task of all keeps the label, so that a merge knows which one is left.
        parts.sort(key=lambda tasks: int(tasks[0]))
        log_whole = self._log_evidence_of_current(state, emission, union, here, rng)
        drawn = [self._draw(state, emission, part, rng) for part in parts]
        log_ratio = sum(log_evidence for _, log_evidence in drawn) - log_whole
        log_ratio += self._log_seats(state, len(parts[0]), len(parts[1])) - log_q
        if np.log(rng.random()) >= log_ratio:
            return state
        new = int(rng.choice(empty))
        for (particle, _), part, label in zip(drawn, parts, (here, new), strict=True):
            state = _with_cluster(state, self._fits.sequences, emission, part, label, particle, rng)
        return state

    def _merge(self, state: State, emission: Emission, first: int, second: int, rng: np.random.Generator) -> State:
        parts = [np.flatnonzero(state.cluster == state.cluster[task]) for task in (first, second)]
        union = np.sort(np.concatenate(parts))
        beside_first = self._chances(union, first, second)
        stays = state.cluster[union] == state.cluster[first]
        n_empty = state.n_clusters - len(np.unique(state.cluster)) + 1
        log_q = float(np.log(np.where(stays, beside_first, 1.0 - beside_first)).sum()) - np.log(n_empty)
        parts.sort(key=lambda tasks: int(tasks[0]))
        labels = [int(state.cluster[tasks[0]]) for tasks in parts]
        log_parts = sum(
            self._log_evidence_of_current(state, emission, part, label, rng)
            for part, label in zip(parts, labels, strict=True)
        )
        particle, log_whole = self._draw(state, emission, union, rng)
        log_ratio = log_whole - log_parts - self._log_seats(state, len(parts[0]), len(parts[1])) + log_q
        if np.log(rng.random()) >= log_ratio:
            return state
        state = _with_cluster(state, self._fits.sequences, emission, union, labels[0], particle, rng)
        return _with_empty(state, emission, labels[1], rng)

    def _chances(self, union: NDArray[np.int64], first: int, second: int) -> Floats:
        """Probability that each task of a union goes with the first anchor."""
        more = (self._common[union, first] - self._common[union, second]) / _SOFTNESS
        chances = np.clip(expit(more), _LEAST, 1.0 - _LEAST)
        chances[union == first], chances[union == second] = 1.0, 0.0
        return np.asarray(chances)

    def _log_seats(self, state: State, n_first: int, n_second: int) -> float:
        """Log of p(c′)/p(c) for a split, π integrated out."""
        share = state.eta / state.n_clusters
        apart = gammaln(share + n_first) + gammaln(share + n_second) - gammaln(share)
        return float(apart - gammaln(share + n_first + n_second))

    def _log_evidence_of_current(
        self, state: State, emission: Emission, tasks: NDArray[np.int64], label: int, rng: np.random.Generator
    ) -> float:
        """Log Ẑ of a set, the chain's own x among the particles."""
        reference = self._reference(tasks, state.n_states)
        own = Particle(state.base_weights[label], state.parameters[label], state.transitions[tasks])
        aligned = _aligned(own, reference, emission, rng)
        weights = [_log_weight(aligned, reference, emission, state)]
        others = (_drawn(reference, emission, state, rng) for _ in range(self.n_particles - 1))
        weights.extend(_log_weight(particle, reference, emission, state) for particle in others)
        return float(np.logaddexp.reduce(weights) - np.log(self.n_particles))

    def _draw(
        self, state: State, emission: Emission, tasks: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[Particle, float]:
        """An x of a set, chosen by weight among fresh ones, and log Ẑ."""
        reference = self._reference(tasks, state.n_states)
        particles = [_drawn(reference, emission, state, rng) for _ in range(self.n_particles)]
        weights = np.array([_log_weight(particle, reference, emission, state) for particle in particles])
        total = float(np.logaddexp.reduce(weights))
        if total == -np.inf:
            return particles[0], total
        chosen = int(rng.choice(len(particles), p=np.exp(weights - total)))
        # States get back the arbitrary numbers that the alignment took from them.
        order = rng.permutation(state.n_states)
        return _renumbered(particles[chosen], order), float(total - np.log(self.n_particles))

    def _reference(self, tasks: NDArray[np.int64], n_states: int) -> Reference:
        key = tuple(tasks.tolist())
        if key not in self._references:
            fit = self._fits.of(key)
            hyper, emission = self._fits.hyper, self._fits.emission
            sequences = self._fits.sequences.of_tasks(key)
            posteriors = fit_locally(sequences, emission, hyper, fit).posteriors
            rows = emission.expected_log_densities(fit.statistics, sequences.observations)
            row_weights = np.zeros((len(rows.rows), len(fit.weights)))
            np.add.at(row_weights, rows.row, posteriors)
            n_used = len(fit.weights)
            tables, statistics = np.zeros(n_states), np.zeros((n_states, emission.n_statistics))
            counts = np.zeros((len(key), n_states + 1, n_states))
            tables[:n_used] = np.maximum(fit.weights - hyper.gamma / hyper.n_states, 0.0)
            statistics[:n_used] = emission.expected_statistics(sequences.observations, posteriors)
            counts[:, : n_used + 1, :n_used] = fit.counts
            self._references[key] = Reference(sequences, tables, statistics, counts, row_weights)
        return self._references[key]


def _drawn(reference: Reference, emission: Emission, state: State, rng: np.random.Generator) -> Particle:
    """Draw x from the reference."""
    n_states = len(reference.tables)
    known = 0.0 if rng.random() < _FROM_PRIOR else 1.0
    base_weights = np.empty(n_states)
    draw_dirichlet(state.gamma / n_states + known * reference.tables, base_weights, rng)
    transitions = np.empty(reference.counts.shape)
    _draw_all_rows(state.alpha * base_weights, state.kappa, known * reference.counts, transitions, rng)
    return Particle(base_weights, emission.draw_parameters(known * reference.statistics, rng), transitions)


@compiled
def _draw_all_rows(weights, kappa, counts, out, rng):  # type: ignore[no-untyped-def]
    for j in range(len(counts)):
        draw_rows(weights, kappa, counts[j], out[j], rng)


def _scores(particle: Particle, reference: Reference, emission: Emission) -> Floats:
    """How well each state of x (columns) explains the steps of each state that the reference uses (rows)."""
    rows = emission.log_densities(particle.parameters, reference.sequences.observations).rows
    return np.asarray(reference.row_weights.T @ rows)


def _renumbered(particle: Particle, order: NDArray[np.int64]) -> Particle:
    """Put the state order[l] of x at place l."""
    rows = np.concatenate([[0], order + 1])
    moved = particle.transitions[:, rows][:, :, order]
    return Particle(particle.base_weights[order], particle.parameters[order], np.ascontiguousarray(moved))


def _aligned(particle: Particle, reference: Reference, emission: Emission, rng: np.random.Generator) -> Particle:
    """Number the states of x like the reference's, drawn one after the other; the rest in any order."""
    scores = _scores(particle, reference, emission)
    left = list(range(scores.shape[1]))
    order = []
    for of_state in scores:
        chances = np.exp(of_state[left] - of_state[left].max())
        order.append(left.pop(int(rng.choice(len(left), p=chances / chances.sum()))))
    return _renumbered(particle, np.array([*order, *rng.permutation(left).tolist()], dtype=np.int64))


def _log_weight(particle: Particle, reference: Reference, emission: Emission, state: State) -> float:
    """Log of f_U/r_U times the factor of the alignment."""
    n_states, n_used = len(reference.tables), reference.n_used
    base, tables = np.maximum(particle.base_weights[:n_used], _TINY), reference.tables[:n_used]
    share = state.gamma / n_states
    # Log of p(x) over what the variational fit has for it.
    of_fit = gammaln(state.gamma) - gammaln(state.gamma + tables.sum())
    of_fit += (gammaln(share + tables) - gammaln(share) - tables * np.log(base)).sum()
    scores = _scores(particle, reference, emission)
    of_fit += emission.log_marginal(reference.statistics[:n_used]).sum() - np.trace(scores)
    counts = np.ascontiguousarray(reference.counts[:, : n_used + 1, :n_used])
    of_fit += log_rising(counts, np.ones(len(counts)), base, state.alpha, state.kappa)[0]
    moves = np.maximum(particle.transitions[:, : n_used + 1, :n_used], _TINY)
    of_fit -= (counts * np.log(moves)).sum()
    log_weight = -np.logaddexp(np.log(1.0 - _FROM_PRIOR) - of_fit, np.log(_FROM_PRIOR))
    # The chance to be aligned as it is: at state l, those before it are gone.
    for place, of_state in enumerate(scores):
        log_weight += of_state[place] - np.logaddexp.reduce(of_state[place:])
    log_weight += gammaln(n_states + 1) - gammaln(n_states - n_used + 1)
    densities = emission.densities(particle.parameters, reference.sequences.observations)
    log_weight += _log_likelihood(
        *densities, reference.sequences.bounds, reference.sequences.task_bounds, particle.transitions
    )
    return float(log_weight)


@compiled
def _log_likelihood(likelihood, log_scale, row, bounds, task_bounds, transitions):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(len(transitions)):
        own = bounds[task_bounds[j] : task_bounds[j + 1] + 1]
        steps = row[own[0] : own[-1]]
        total += log_likelihoods(likelihood, log_scale, steps, own - own[0], transitions[j]).sum()
    return total


def _with_cluster(
    state: State,
    sequences: Sequences,
    emission: Emission,
    tasks: NDArray[np.int64],
    label: int,
    particle: Particle,
    rng: np.random.Generator,
) -> State:
    """Put tasks into a cluster with the given x, and draw their states."""
    cluster, states = state.cluster.copy(), state.states.copy()
    base_weights, parameters = state.base_weights.copy(), state.parameters.copy()
    transitions = state.transitions.copy()
    cluster[tasks] = label
    base_weights[label], parameters[label], transitions[tasks] = particle
    for j in tasks.tolist():
        own, steps = sequences.between(j, j + 1), sequences.steps_of(j)
        drawn = states[steps].copy()
        densities = emission.densities(particle.parameters, own.observations)
        draw_states(*densities, own.bounds, transitions[j], rng.random(len(drawn)), drawn)
        states[steps] = drawn
    return state._replace(
        cluster=cluster,
        states=states,
        base_weights=base_weights,
        parameters=parameters,
        transitions=transitions,
    )


def _with_empty(state: State, emission: Emission, label: int, rng: np.random.Generator) -> State:
    """Draw what a cluster without tasks is made of from the prior."""
    base_weights, parameters = state.base_weights.copy(), state.parameters.copy()
    draw_dirichlet(np.full(state.n_states, state.gamma / state.n_states), base_weights[label], rng)
    parameters[label] = emission.draw_parameters(np.zeros((state.n_states, emission.n_statistics)), rng)
    return state._replace(base_weights=base_weights, parameters=parameters)
