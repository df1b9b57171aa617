"""What draws of the posterior say of new sequences: how probable they are, whose they are, and their hidden states.

Probabilities are averaged over draws, never the draws themselves, whose states and clusters are numbered at will; draws
count as their chains are weighed. Transitions and θ are summed out (`particles`), where a draw says what they were
drawn given; files of earlier versions do not, and there each draw has those that it has. Only numpy is imported here:
sums over hidden states are left to :class:`Filters`, compiled or plain.

Sequences come in groups: group 0 has those of new tasks, group j + 1 those of task j.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.sequences.answers.new_tasks import Empty, Way, joining_weights, pseudo_counts, ways_of_a_new_task
from kinfolk.sequences.answers.particles import Crowd, Start, Steps, particles_of_new_task, particles_of_task
from kinfolk.sequences.model.draw import Draw
from kinfolk.sequences.model.emissions.emission import Emission, Observations
from kinfolk.sequences.model.sequences import Sequences

# Draws over which probabilities of states are averaged, where their states are numbered alike.
_MOST_AVERAGED = 60


class Filters(Protocol):
    """Sums over the hidden states of sequences, given transitions W (states + 1, states): compiled, or plain."""

    def densities(self, parameters: Floats, sequences: Sequences) -> Any:
        """How probable every step is in every state with parameters (states, parameters)."""

    def log_likelihoods(self, densities: Any, sequences: Sequences, transitions: Floats) -> Floats:
        """Log likelihood of each sequence."""

    def smooth(self, densities: Any, sequences: Sequences, transitions: Floats) -> tuple[Floats, Floats]:
        """Log likelihood of each sequence, and the probability of each state of every step, given all of it."""

    def most_probable_paths(self, densities: Any, sequences: Sequences, transitions: Floats) -> NDArray[np.int64]:
        """The states of every step, of the most probable path of each sequence."""

    def advance(self, crowd: Crowd, steps: Steps, uniforms: Floats) -> Crowd:
        """Particles after some steps of a sequence."""

    def each(self, work: Callable[[int], Any], places: Iterable[int]) -> list[Any]:
        """What some work gives for each place, in their order."""


class Kept(NamedTuple):
    """Draws of the posterior and what is needed to predict by them.

    ``empty`` is a cluster without tasks for each draw. ``n_clusters`` is how many clusters the model has room for, or
    None where tasks never share, so that a new one is on its own. Draws of a new task's transitions hang on ``seed``.
    ``weights`` say how much each draw counts, and add up to one; None where all count alike. ``rooms`` have
    ``n_clusters`` for each draw, where draws are of several models. ``central`` is the place of the draw that
    tells hidden states, where those of all draws are numbered alike; None where that is the one with the highest log
    joint, and states of two draws have nothing to do with each other.
    """

    draws: Sequence[Draw]
    empty: Empty
    n_clusters: int | None
    seed: int
    emission: Emission
    filters: Filters
    weights: Floats | None = None
    rooms: Sequence[int | None] | None = None
    central: int | None = None

    @property
    def shares(self) -> Floats:
        """How much each draw counts."""
        return np.full(len(self.draws), 1.0 / len(self.draws)) if self.weights is None else self.weights

    @property
    def best_place(self) -> int:
        """The place of the draw that tells hidden states: with the highest log joint among those that count most."""
        if self.central is not None:
            return self.central
        log_joint = np.array([draw.log_joint for draw in self.draws])
        # Weights of one model's chains differ by rounding alone.
        return int(np.argmax(np.where(self.shares > 0.999 * self.shares.max(), log_joint, -np.inf)))

    @property
    def best(self) -> Draw:
        """The draw that tells hidden states."""
        return self.draws[self.best_place]

    def room(self, place: int) -> int | None:
        """How many clusters the model of a draw has room for; None where tasks never share."""
        return self.n_clusters if self.rooms is None else self.rooms[place]

    @property
    def sums_out(self) -> bool:
        """Whether draws say what their transitions were drawn given, and their shares of codes and the rest of θ."""
        return self.draws[0].row_counts is not None

    def particles(self, group: int) -> tuple[Start, ...]:
        """Particles that go along a sequence of a group, those of each model by themselves.

        Among themselves, particles take each other's places by what a sequence has shown so far. Were models together
        there, one that soon turns out wrong could have driven out the one that is right in the end.
        """
        of_model: dict[int | None, list[int]] = {}
        for place in range(len(self.draws)):
            of_model.setdefault(self.room(place), []).append(place)
        return tuple(
            self._particles_of_model(room, places, group)
            for room, places in of_model.items()
            if self.shares[places].any()
        )

    def _particles_of_model(self, room: int | None, places: list[int], group: int) -> Start:
        """Particles of some draws, whose weights add up to what these draws count."""
        draws, shares = [self.draws[place] for place in places], self.shares[places]
        if group == 0:
            empty = Empty(*(part[places] for part in self.empty))
            start = particles_of_new_task(draws, shares, empty, room, self.emission, self.seed)
        else:
            start = particles_of_task(draws, shares, group - 1, self.emission, self.seed)
        if self.rooms is None:
            return start
        return start._replace(crowd=start.crowd._replace(log_weights=start.crowd.log_weights + np.log(shares.sum())))

    def follow(self, starts: Sequence[Start], observations: Observations) -> Crowd:
        """Particles after a whole sequence, of all models; origins count through the models' θ, one after the other."""
        ends, n_thetas = [], 0
        for start in starts:
            crowd, rng = start.crowd, start.uniforms()
            for steps in start.steps(observations):
                crowd = self.filters.advance(crowd, steps, rng.random((len(steps.codes), len(crowd.row) + 1)))
            ends.append(crowd._replace(origin=crowd.origin + n_thetas))
            n_thetas += len(start.parameters)
        return ends[0] if len(ends) == 1 else Crowd(*(np.concatenate(parts) for parts in zip(*ends, strict=True)))

    def ways(self, place: int) -> list[Way]:
        """Ways in which a new task may be according to the draw at a place."""
        return list(ways_of_a_new_task(self.draws, place, self.empty, self.room(place), self.seed))


def log_sum(terms: Any) -> Floats:
    """Log of the sum of exponentials along the first axis; −inf where all terms are.

    Examples
    --------
    >>> log_sum([[0.0, -np.inf], [0.0, -np.inf]]).round(6).tolist()
    [0.693147, -inf]
    """
    array = np.asarray(terms)
    largest = array.max(axis=0)
    safe = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(array - safe).sum(axis=0)) + safe)


def log_predictive(kept: Kept, sequences: Sequences) -> Floats:
    """Log predictive likelihood of each sequence, states summed out and draws averaged.

    Each sequence of a new task is taken as if it were the only one of its task. O(draws · steps · states), for new
    tasks times the ways in which they may be.
    """
    if kept.sums_out:
        out = np.empty(sequences.n_sequences)
        bounds = sequences.task_bounds
        for group in np.flatnonzero(np.diff(bounds)).tolist():
            out[bounds[group] : bounds[group + 1]] = _of_group(kept, group, sequences.between(group, group + 1))
        return out
    by_draw = kept.filters.each(lambda place: _of_one_draw(kept, place, sequences), range(len(kept.draws)))
    return _averaged(kept, by_draw)


def _averaged(kept: Kept, by_draw: list[Floats]) -> Floats:
    """Logs of likelihoods averaged over draws."""
    weighed = [found + log_share for found, log_share in zip(by_draw, np.log(kept.shares).tolist(), strict=True)]
    return log_sum(weighed)


def _of_group(kept: Kept, group: int, sequences: Sequences, learns: bool = True) -> Floats:
    """Log predictive likelihood of each of some sequences, if they were of a group."""
    starts = [start._replace(learns=learns) for start in kept.particles(group)]
    each = sequences.one_by_one()
    return np.array(
        kept.filters.each(lambda i: kept.follow(starts, each[i].observations).log_likelihood(), range(len(each))),
        dtype=np.float64,
    )


def _of_one_draw(kept: Kept, place: int, sequences: Sequences) -> Floats:
    draw, filters, bounds = kept.draws[place], kept.filters, sequences.task_bounds
    out = np.empty(sequences.n_sequences)
    if bounds[1] > 0:
        some = sequences.between(0, 1)
        densities: dict[int, Any] = {}
        terms = []
        for way in kept.ways(place):
            if way.cluster not in densities:
                densities[way.cluster] = filters.densities(way.parameters, some)
            terms.append(way.log_weight + filters.log_likelihoods(densities[way.cluster], some, way.transitions))
        out[: bounds[1]] = log_sum(terms)
    for group in (np.flatnonzero(np.diff(bounds)[1:]) + 1).tolist():
        some, task = sequences.between(group, group + 1), group - 1
        own = filters.densities(draw.parameters[draw.cluster[task]], some)
        out[bounds[group] : bounds[group + 1]] = filters.log_likelihoods(own, some, draw.transitions[task])
    return out


def log_predictive_of_tasks(kept: Kept, sequences: Sequences) -> Floats:
    """Log predictive likelihood of each sequence if it were of each known task (sequences, tasks), to tell tasks apart.

    Each step's numbers and counts are as probable as training alone makes them. Steps near each other are more alike
    than a model of states says, so that a sequence which tells about itself explains itself nearly as well by spare
    states of any task: of 120 utterances of vowels, with two of each speaker to learn from, 54, 66 and 52 % were named
    rightly by it (nested, shared, single), and 80, 66 and 86 % by what training tells. Symbols, which tell less of
    each other, are counted along a sequence: music was named as well, and with better probabilities.
    """
    n_tasks = len(kept.draws[0].cluster)
    if kept.sums_out:
        return np.column_stack([_of_group(kept, task + 1, sequences, learns=False) for task in range(n_tasks)])

    def of_one_draw(place: int) -> Floats:
        draw, filters = kept.draws[place], kept.filters
        out = np.empty((sequences.n_sequences, n_tasks))
        for cluster in range(len(draw.base_weights)):
            densities = filters.densities(draw.parameters[cluster], sequences)
            for task in np.flatnonzero(draw.cluster == cluster):
                out[:, task] = filters.log_likelihoods(densities, sequences, draw.transitions[task])
        return out

    return _averaged(kept, kept.filters.each(of_one_draw, range(len(kept.draws))))


def groups_of(sequences: Sequences) -> list[int]:
    """Groups that have sequences; where none has, the first task's, whose answer has the right shape."""
    return np.flatnonzero(np.diff(sequences.task_bounds)).tolist() or [1]


def state_probabilities(kept: Kept, sequences: Sequences) -> Floats:
    """Probability of each hidden state of every step (steps, states), in the draw that tells them.

    Where states of all draws are numbered alike, probabilities are averaged over draws, of many over some.
    """

    def smoothed(*given: Any) -> Floats:
        return kept.filters.smooth(*given)[1]

    if kept.central is None:
        return np.asarray(_in_draw(kept, kept.best, sequences, smoothed))
    places = np.unique(np.linspace(0, len(kept.draws) - 1, _MOST_AVERAGED).round().astype(np.int64)).tolist()
    total = _in_draw(kept, kept.draws[places[0]], sequences, smoothed)
    for place in places[1:]:
        total = total + _in_draw(kept, kept.draws[place], sequences, smoothed)
    return np.asarray(total / len(places))


def most_probable_paths(kept: Kept, sequences: Sequences) -> NDArray[np.int64]:
    """The hidden states of every step on the most probable path of its sequence, in the draw that tells them."""
    return np.asarray(_in_draw(kept, kept.best, sequences, kept.filters.most_probable_paths))


def _in_draw(
    kept: Kept, draw: Draw, sequences: Sequences, ask: Callable[[Any, Sequences, Floats], NDArray[Any]]
) -> NDArray[Any]:
    """What is asked of every step, groups laid end to end.

    A sequence of a new task has the states of the cluster that explains it best, with rows as its prior expects them.
    """
    found = []
    for group in groups_of(sequences):
        some, task = sequences.between(group, group + 1), group - 1
        if group == 0:
            found.append(_ask_of_new(kept, draw, some, ask))
        else:
            densities = kept.filters.densities(draw.parameters[draw.cluster[task]], some)
            found.append(ask(densities, some, draw.transitions[task]))
    return np.concatenate(found)


def clusters_in_best_draw(kept: Kept, sequences: Sequences) -> NDArray[np.int64]:
    """The cluster of the draw that tells states whose states each sequence has, as `most_probable_paths` tells them."""
    draw, found = kept.best, []
    for group in groups_of(sequences):
        some = sequences.between(group, group + 1)
        if group == 0:
            found.append(np.argmax([score for _, _, score in _as_of_clusters(kept, draw, some)], axis=0))
        else:
            found.append(np.full(some.n_sequences, draw.cluster[group - 1]))
    return np.concatenate(found)


def _ask_of_new(
    kept: Kept, draw: Draw, sequences: Sequences, ask: Callable[[Any, Sequences, Floats], NDArray[Any]]
) -> NDArray[Any]:
    found, scores = [], []
    for densities, expected, score in _as_of_clusters(kept, draw, sequences):
        found.append(ask(densities, sequences, expected))
        scores.append(score)
    of_step = np.repeat(np.argmax(scores, axis=0), np.diff(sequences.bounds))
    return np.asarray(np.array(found)[of_step, np.arange(sequences.n_steps)])


def _as_of_clusters(kept: Kept, draw: Draw, sequences: Sequences) -> Iterator[tuple[Any, Floats, Floats]]:
    """Sequences of new tasks as those of each cluster: densities, expected transitions, and how probable each is."""
    room = kept.room(kept.best_place)
    joins, _ = joining_weights(draw, room)
    if room is None:
        # States from nowhere would say nothing: those of the known tasks say what they can.
        joins = np.full(len(joins), 1.0 / len(joins))
    for cluster, weight in enumerate(joins.tolist()):
        rows = pseudo_counts(draw.base_weights[cluster], draw.hyper)
        expected = rows / rows.sum(axis=1, keepdims=True)
        densities = kept.filters.densities(draw.parameters[cluster], sequences)
        yield densities, expected, np.log(weight) + kept.filters.log_likelihoods(densities, sequences, expected)
