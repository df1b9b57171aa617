"""Moves that split a cluster of tasks or merge two, hidden states summed out: exact, along annealed paths.

For a set U of tasks in one cluster, let x = (β, θ, W_j for j in U). A path from a reference q_U, which is a function of
the data, to the posterior of x has a weight Ẑ_U whose mean is the evidence of U (see `annealing`). A split of U into A
and B is accepted with probability

    min(1, [p(c′)/p(c)] · Ẑ_A Ẑ_B / Ẑ_U / [q(A, B | i, j)/n_empty]),

where A and B get their x at the ends of paths from q_A and q_B, and U's own x is the end of one drawn backwards; a
merge is the inverse. On the space of all paths this is a Metropolis–Hastings step for the exact posterior, however
short they are. A cluster may also be refreshed: its x makes way for another with probability min(1, Ẑ′_U/Ẑ_U).

States of x may be numbered in any way, and q_U has one numbering. So x is first aligned: going through the states that
the reference uses, one of x's states that are left is drawn by how well it explains the steps of the reference's state.
With g(x) the probability that x is aligned as it is, and A states in use, a weight has the factor g(x) L!/(L − A)!.

Which sets are proposed hangs on the data alone. Tasks i ≠ j are drawn, most often such as are neither surely kin nor
surely not, by the evidence that they have in common; if they are in one cluster, i and j go to A and B, and each other
task of it goes with the one of them that it has more evidence in common with, most of the time.

Most proposals are hopeless, and paths are dear. So a proposal is first accepted or not by what the references' bounds
say of it, with little weight, and only then by its paths, divided by that: an exact step in two stages (J. A. Christen
and C. Fox, J. Comput. Graph. Statist. 14, 2005).

A chain may be in a mode of its states that is far from the reference's, and could then only leave it by chance. So long
as references are still *learning*, while draws are thrown away, the chain's own x is weighed by a reference that is
fitted to it, and where that fit is the better one, it stays. After that, references are fixed, and moves exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln

from kinfolk.maths.arrays import Floats
from kinfolk.sequences.inference.agglomeration import SetFits, TaskSet, evidence_in_common
from kinfolk.sequences.inference.annealing import Particle, Reference, annealed, draw_from, reference_of
from kinfolk.sequences.inference.mean_field import ROUGHLY, ClusterFit, fit_cluster, start_from_posteriors
from kinfolk.sequences.model.dirichlet_draws import draw_dirichlet
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.filtering import draw_states, scaled
from kinfolk.sequences.model.ndp_ihmm import ClusterPrior, State
from kinfolk.sequences.model.sequences import Sequences

# Nats of common evidence that make a task e times as likely to go with one anchor rather than with the other, and the
# least probability with which it goes with either.
_SOFTNESS, _LEAST = 5.0, 0.02
# Nats of common evidence, more or less, at which a pair of tasks is drawn half as often as one that has none, and how
# often any pair may be drawn.
_DOUBTFUL, _ANY_PAIR = 20.0, 0.2
# What a nat of the references' bounds counts at the first stage, and the most that they count in all.
_GLANCE, _MOST_OF_GLANCE = 0.1, 10.0
# References that are kept; others are made again from their fits, which take less room.
_MOST_KEPT = 64
# How often a cluster is refreshed rather than split or merged.
_REFRESH = 0.2


class SplitMerge(NamedTuple):
    """Split and merge moves for the tasks of a model; one that gets to its paths costs tens of sweeps over its tasks.

    A value: a move that learns gives other moves, which know more.

    Attributes
    ----------
    set_fits : SetFits
        Fits of sets of tasks, under any hyper-parameters; those that learn from the chain are replaced.
    common : ndarray of shape (n_tasks, n_tasks)
        Evidence that tasks have in common, in nats.
    reached : ndarray of shape (n_tasks²,)
        Probabilities with which pairs are drawn, added up row by row.
    references : mapping
        References made of some of the fits, which could be made again.

    Examples
    --------
    >>> from kinfolk.sequences.inference.sweep import start_state, sweep
    >>> from kinfolk.sequences.model.emissions.categorical import Categorical
    >>> from kinfolk.sequences.model.ndp_ihmm import Priors
    >>> rng, emission = np.random.default_rng(0), Categorical(4)
    >>> codes = np.concatenate([np.tile([0, 1], 20), np.tile([2, 3], 20)])
    >>> data = Sequences((codes,), np.array([0, 40, 80]), np.array([0, 1, 2]))
    >>> moves = SplitMerge.of(SetFits.of_data(data, emission, ClusterPrior(n_states=4)))
    >>> together = np.zeros(2, dtype=np.int64)
    >>> state = start_state(data, emission, Priors(), n_clusters=5, n_states=4, rng=rng, cluster=together)
    >>> for _ in range(5):
    ...     state, moves = moves.move(state, emission, rng)
    ...     state = sweep(state, data, emission, Priors(), rng)
    >>> bool(state.cluster[0] == state.cluster[1])
    False
    """

    set_fits: SetFits
    common: Floats
    reached: Floats
    references: Mapping[TaskSet, Reference]

    @classmethod
    def of(cls, set_fits: SetFits, common: Floats | None = None) -> SplitMerge:
        """The moves that build on some fits, and on the evidence in common where it is known already."""
        common = evidence_in_common(set_fits) if common is None else common
        return cls(set_fits, common, _chances_of_pairs(common).cumsum(), {})

    def move(
        self, state: State, emission: Emission, rng: np.random.Generator, *, learning: bool = False
    ) -> tuple[State, SplitMerge]:
        """Try one split, merge or refreshment; the state after it, and the moves that are to be made next."""
        n_tasks = len(state.cluster)
        if n_tasks < 2 or len(state.base_weights) < 2:
            return state, self
        at_work = _AtWork(self, emission.with_strength(state.hyper.strength), learning)
        if rng.random() < _REFRESH:
            state = at_work.refresh(state, int(rng.integers(n_tasks)), rng)
        else:
            drawn = int(np.searchsorted(self.reached, rng.random() * self.reached[-1], side="right"))
            first, second = divmod(drawn, n_tasks)
            change = at_work.split if state.cluster[first] == state.cluster[second] else at_work.merge
            state = change(state, first, second, rng)
        return state, self._replace(set_fits=at_work.set_fits, references=at_work.references)


def _chances_of_pairs(common: Floats) -> Floats:
    """How often each pair of tasks is drawn, (n_tasks, n_tasks); the second comes before the first."""
    pairs = np.tril(np.ones(common.shape), -1)
    doubtful = pairs / (1.0 + (common / _DOUBTFUL) ** 2)
    # Of one task there is no pair.
    any_pair, doubtful_pair = _ANY_PAIR / max(pairs.sum(), 1.0), (1.0 - _ANY_PAIR) / (doubtful.sum() or 1.0)
    return np.asarray(any_pair * pairs + doubtful_pair * doubtful)


class _AtWork:
    """One move being made: copies of what is known, to which it adds what it learns."""

    def __init__(self, moves: SplitMerge, emission: Emission, learning: bool) -> None:
        self.set_fits, self.references = moves.set_fits.copy(), dict(moves.references)
        self._common, self._emission, self._learning = moves.common, emission, learning

    def refresh(self, state: State, task: int, rng: np.random.Generator) -> State:
        here = int(state.cluster[task])
        tasks = np.flatnonzero(state.cluster == here)
        log_own = self._log_evidence_of_current(state, tasks, here, rng)
        particle, log_fresh = self._draw(state, tasks, rng)
        if not np.log(rng.random()) < log_fresh - log_own:
            return state
        return _with_cluster(state, self.set_fits.sequences, self._emission, tasks, here, particle, rng)

    def split(self, state: State, first: int, second: int, rng: np.random.Generator) -> State:
        empty = np.flatnonzero(np.bincount(state.cluster, minlength=len(state.base_weights)) == 0)
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
        glance = self._glance(parts)
        if np.log(rng.random()) >= glance:
            return state
        log_whole = self._log_evidence_of_current(state, union, here, rng)
        drawn = [self._draw(state, part, rng) for part in parts]
        log_ratio = sum(log_evidence for _, log_evidence in drawn) - log_whole
        log_ratio += self._log_seats(state, len(parts[0]), len(parts[1])) - log_q - glance
        # Written so that a ratio which floats cannot tell is no reason to move.
        if not np.log(rng.random()) < log_ratio:
            return state
        new = int(rng.choice(empty))
        for (particle, _), part, label in zip(drawn, parts, (here, new), strict=True):
            state = _with_cluster(state, self.set_fits.sequences, self._emission, part, label, particle, rng)
        return state

    def merge(self, state: State, first: int, second: int, rng: np.random.Generator) -> State:
        parts = [np.flatnonzero(state.cluster == state.cluster[task]) for task in (first, second)]
        union = np.sort(np.concatenate(parts))
        beside_first = self._chances(union, first, second)
        stays = state.cluster[union] == state.cluster[first]
        n_empty = len(state.base_weights) - len(np.unique(state.cluster)) + 1
        log_q = float(np.log(np.where(stays, beside_first, 1.0 - beside_first)).sum()) - np.log(n_empty)
        parts.sort(key=lambda tasks: int(tasks[0]))
        labels = [int(state.cluster[tasks[0]]) for tasks in parts]
        glance = -self._glance(parts)
        if np.log(rng.random()) >= glance:
            return state
        log_parts = sum(
            self._log_evidence_of_current(state, part, label, rng) for part, label in zip(parts, labels, strict=True)
        )
        particle, log_whole = self._draw(state, union, rng)
        log_ratio = log_whole - log_parts - self._log_seats(state, len(parts[0]), len(parts[1])) + log_q - glance
        if not np.log(rng.random()) < log_ratio:
            return state
        state = _with_cluster(state, self.set_fits.sequences, self._emission, union, labels[0], particle, rng)
        return _with_empty(state, self._emission, labels[1], rng)

    def _glance(self, parts: list[NDArray[np.int64]]) -> float:
        """What the bounds of two sets have above that of their union, as it counts at the first stage."""
        apart = sum(self.set_fits.of(part.tolist()).bound for part in parts)
        more = apart - self.set_fits.of(np.concatenate(parts).tolist()).bound
        return float(np.clip(_GLANCE * more, -_MOST_OF_GLANCE, _MOST_OF_GLANCE))

    def _chances(self, union: NDArray[np.int64], first: int, second: int) -> Floats:
        """Probability that each task of a union goes with the first anchor."""
        more = (self._common[union, first] - self._common[union, second]) / _SOFTNESS
        chances = np.clip(expit(more), _LEAST, 1.0 - _LEAST)
        chances[union == first], chances[union == second] = 1.0, 0.0
        return np.asarray(chances)

    def _log_seats(self, state: State, n_first: int, n_second: int) -> float:
        """Log of p(c′)/p(c) for a split, π integrated out."""
        share = state.hyper.eta / len(state.base_weights)
        apart = gammaln(share + n_first) + gammaln(share + n_second) - gammaln(share)
        return float(apart - gammaln(share + n_first + n_second))

    def _log_evidence_of_current(
        self, state: State, tasks: NDArray[np.int64], label: int, rng: np.random.Generator
    ) -> float:
        """Log Ẑ of a set along a path back from the chain's own x."""
        n_states = state.base_weights.shape[1]
        reference = self._learnt_reference(tasks, state) if self._learning else self._reference(tasks, n_states)
        own = Particle(state.base_weights[label], state.parameters[label], state.transitions[tasks])
        aligned = _aligned(own, reference, self._emission, rng)
        log_weight = annealed(aligned, reference, self._emission, _prior(state), rng, back=True)[1]
        return log_weight + _log_alignment(aligned, reference, self._emission)

    def _draw(self, state: State, tasks: NDArray[np.int64], rng: np.random.Generator) -> tuple[Particle, float]:
        """An x of a set at the end of a path, and log Ẑ."""
        reference = self._reference(tasks, state.base_weights.shape[1])
        start = draw_from(reference, self._emission, _prior(state), rng)
        particle, log_weight = annealed(start, reference, self._emission, _prior(state), rng)
        log_weight += _log_alignment(particle, reference, self._emission)
        # States get back the arbitrary numbers that the alignment took from them.
        return _renumbered(particle, rng.permutation(state.base_weights.shape[1])), log_weight

    def _reference(self, tasks: NDArray[np.int64], n_states: int) -> Reference:
        key: TaskSet = tuple(tasks.tolist())
        if key not in self.references:
            if len(self.references) == _MOST_KEPT:
                del self.references[next(iter(self.references))]
            self.references[key] = self._made_of(self.set_fits.of(key), self.set_fits.sequences.of_tasks(key), n_states)
        return self.references[key]

    def _learnt_reference(self, tasks: NDArray[np.int64], state: State) -> Reference:
        """A reference fitted to the chain's own states; it is the set's from now on if its bound is higher."""
        key: TaskSet = tuple(tasks.tolist())
        sequences = self.set_fits.sequences.of_tasks(key)
        own = np.concatenate([state.states[self.set_fits.sequences.steps_of(task)] for task in key])
        used, place = np.unique(own, return_inverse=True)
        start = start_from_posteriors(sequences, self.set_fits.emission, np.eye(len(used))[place])
        fit = fit_cluster(sequences, self.set_fits.emission, self.set_fits.hyper, start, tolerance=ROUGHLY)
        reference = self._made_of(fit, sequences, state.base_weights.shape[1])
        if fit.bound > self.set_fits.of(key).bound:
            self.set_fits.fits[key] = fit
            self.references.pop(key, None)
        return reference

    def _made_of(self, fit: ClusterFit, own: Sequences, n_states: int) -> Reference:
        return reference_of(fit, own, self.set_fits.emission, self.set_fits.hyper, n_states)


def _prior(state: State) -> ClusterPrior:
    return ClusterPrior.of(state.hyper, state.base_weights.shape[1])


def _scores(particle: Particle, reference: Reference, emission: Emission) -> Floats:
    """How well each state of x (columns) explains the steps of each state that the reference uses (rows)."""
    rows = emission.log_densities(particle.parameters, reference.sequences.observations).rows
    return np.asarray(reference.guide.row_weights[:, : reference.n_used].T @ rows)


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


def _log_alignment(particle: Particle, reference: Reference, emission: Emission) -> float:
    """Log of g(x) L!/(L − A)!: the chance to be aligned as it is, at state l those before it being gone."""
    n_states, n_used = len(reference.guide.tables), reference.n_used
    scores = _scores(particle, reference, emission)
    value = sum(of_state[place] - np.logaddexp.reduce(of_state[place:]) for place, of_state in enumerate(scores))
    return float(value + gammaln(n_states + 1) - gammaln(n_states - n_used + 1))


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
        densities = scaled(emission.log_densities(particle.parameters, own.observations))
        draw_states(densities, own.layout, transitions[j : j + 1], rng.random(len(drawn)), drawn)
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
    base_weights, parameters, n_states = state.base_weights.copy(), state.parameters.copy(), state.base_weights.shape[1]
    base_weights[label] = draw_dirichlet(np.full(n_states, state.hyper.gamma / n_states), rng)
    parameters[label] = emission.draw_parameters(np.zeros((n_states, emission.n_statistics)), rng)
    return state._replace(base_weights=base_weights, parameters=parameters)
