"""Features split and merge, with θ and all transitions integrated out (Hughes, Fox and Sudderth 2012, section 3).

A split picks a step at random and another of the same state, which are to come apart; a merge picks two states, and a
step of each. Either is the other's way back. A merge has nothing to choose: every step of both is in the one, which the
tasks have that had either. A split has to say which of the two states each step is in, and which tasks have which.

Hughes et al. allocate sequences one after the other, each given those before it. Here two states are fitted to the
steps beforehand, from short windows around the two that were picked, by some iterations of expectation and
maximisation: what these give hangs on the steps and on the two that were picked, and not on which of them are in which
state, so that a split and its way back are drawn, and weighed, by the same two states. Given them,

* runs of the steps are hidden Markov chains of two states, drawn by forward filtering, backward sampling;
* a task has a state that it is in; one that it has had no step of it has with about the odds that all else gives.

The probability q of what is drawn is known, and so are those of the picks, r as a split and r' as a merge. A split is
accepted with probability min(1, p(split) r'/(p(merged) r q)), a merge with that of the inverse. As q is at most one,
most merges that are bad are known to be so before any states are fitted.
"""

from __future__ import annotations

from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, expit, log_expit

from kinfolk.maths.arrays import Floats
from kinfolk.sequences.model.bp_hmm import Flags, counts_of, log_feature_transitions
from kinfolk.sequences.model.draw import HyperParameters
from kinfolk.sequences.model.emissions.emission import Densities, Emission, LogDensities
from kinfolk.sequences.model.filtering import draw_states, log_likelihoods, scaled, smooth
from kinfolk.sequences.model.sequences import Layout, Sequences

# Steps of a window on either side of a step that was picked, and how often the two states are fitted.
_REACH, _ITERATIONS = 12, 4
# The share of tries that are splits, which take longer than merges that are refused.
_SPLITS = 0.1


class Halves(NamedTuple):
    """Two states that the steps of one may be split into, as chains of two states along the steps' runs.

    ``steps`` are those of the one, in order, and ``bounds`` those of their runs. Of the two steps that were picked, the
    first can be in state 0 alone and the second in 1.
    """

    steps: NDArray[np.int64]
    bounds: NDArray[np.int64]
    densities: Densities
    transitions: Floats

    def draw(self, rng: np.random.Generator) -> tuple[NDArray[np.int64], float]:
        """Draw which of the two each step is in, and the log probability of that."""
        path = np.zeros(len(self.steps), dtype=np.int64)
        layout = Layout.of(self.bounds, np.array([0, len(self.bounds) - 1]))
        draw_states(self.densities, layout, self.transitions[None], rng.random(len(path)), path)
        return path, self.log_probability(path)

    def log_probability(self, path: NDArray[np.int64]) -> float:
        """Log probability that such a path is drawn."""
        before = np.concatenate([[0], path[:-1] + 1])
        before[self.bounds[:-1]] = 0
        with np.errstate(divide="ignore"):
            emitted = np.log(self.densities.likelihood[np.arange(len(path)), path])
        joint = emitted + np.log(self.transitions[before, path]) + self.densities.log_scale
        return float(joint.sum() - log_likelihoods(self.densities, self.bounds, self.transitions).sum())


def runs_of(steps: NDArray[np.int64], sequences: Sequences) -> NDArray[np.int64]:
    """Where runs of steps that follow each other in one sequence begin, among these steps, and where the last ends."""
    sequence = np.searchsorted(sequences.bounds, steps, side="right")
    begins = np.flatnonzero((np.diff(steps) != 1) | (np.diff(sequence) != 0)) + 1
    return np.concatenate([[0], begins, [len(steps)]])


def fit_halves(
    steps: NDArray[np.int64],
    picked: tuple[int, ...],
    sequences: Sequences,
    emission: Emission,
    hyper: HyperParameters,
) -> Halves:
    """Fit two states to the steps of one, from windows around two of them. O(n_steps of it)."""
    bounds = runs_of(steps, sequences)
    seen = sequences.observations_at(steps)
    first, second = np.searchsorted(steps, picked).tolist()
    layout = Layout.of(bounds, np.array([0, len(bounds) - 1]))
    rows = np.array(
        [[1.0, 1.0], [1.0 + hyper.stickiness / hyper.alpha, 1.0], [1.0, 1.0 + hyper.stickiness / hyper.alpha]]
    )
    posteriors = np.zeros((len(steps), 2))
    for state, (at, other) in enumerate(((first, second), (second, first))):
        run = np.searchsorted(bounds, at, side="right")
        window = np.arange(max(bounds[run - 1], at - _REACH), min(bounds[run], at + _REACH + 1))
        # Where both are in one run, each has what is nearer to it.
        posteriors[window[np.abs(window - at) < np.abs(window - other)], state] = 1.0
    counts = np.zeros((3, 2))
    for iteration in range(_ITERATIONS + 1):
        expected = emission.expected_statistics(seen, posteriors)
        rows_of_steps, row = emission.log_predictive_densities(expected, seen)
        # A row for each step, for two of them are not like any other.
        densities = scaled(LogDensities(rows_of_steps[row], np.arange(len(steps))))
        densities.likelihood[first, 1] = densities.likelihood[second, 0] = 0.0
        transitions = rows + counts
        transitions /= transitions.sum(axis=1, keepdims=True)
        if iteration < _ITERATIONS:
            found = smooth(densities, layout, transitions[None])
            posteriors, counts = found.posteriors, found.counts[0]
    return Halves(steps, bounds, densities, transitions)


class Having(NamedTuple):
    """How tasks that had a state come to have one of two, or both.

    ``log_odds`` (n, 2) are those of having a state that the task is not in; ``is_in`` (n, 2) says which it is in.
    """

    is_in: Flags
    log_odds: Floats

    def draw(self, rng: np.random.Generator) -> tuple[Flags, float]:
        """Draw which of the two each task has, (n, 2), and the log probability of that."""
        has = self.is_in | (rng.random(self.is_in.shape) < expit(self.log_odds))
        in_neither = np.flatnonzero(~self.is_in.any(axis=1))
        if len(in_neither):
            reached = np.exp(self._log_shares()).cumsum(axis=1)
            which = (rng.random((len(in_neither), 1)) * reached[:, -1:] > reached[:, :-1]).sum(axis=1)
            has[in_neither] = np.array([[True, False], [False, True], [True, True]])[which]
        return has, self.log_probability(has)

    def log_probability(self, has: Flags) -> float:
        """Log probability that these are drawn."""
        in_neither = self.is_in.sum(axis=1) == 0
        free = ~self.is_in & ~in_neither[:, None]
        total = np.where(has, log_expit(self.log_odds), log_expit(-self.log_odds))[free].sum()
        which = np.where(has.all(axis=1), 2, has[:, 1])[in_neither]
        return float(total + self._log_shares()[np.arange(len(which)), which].sum())

    def _log_shares(self) -> Floats:
        """Log probabilities that a task in neither has the first alone, the second alone, and both."""
        odds = self.log_odds[~self.is_in.any(axis=1)]
        shares = np.column_stack([odds, odds.sum(axis=1)])
        return np.asarray(shares - np.logaddexp.reduce(shares, axis=1, keepdims=True))


class Configuration(NamedTuple):
    """Features and states, and what they add up to: transition counts (J, L + 1, L), emission statistics (L, S)."""

    features: Flags
    states: NDArray[np.int64]
    counts: NDArray[np.int64]
    statistics: Floats

    @property
    def visits(self) -> NDArray[np.int64]:
        """How many steps each state has."""
        return np.asarray(self.counts.sum(axis=(0, 1)))


class SplitMerge(NamedTuple):
    """The move, for a chain with these hyper-parameters; the emission has the strength that is among them."""

    sequences: Sequences
    emission: Emission
    hyper: HyperParameters

    def moves(
        self, features: Flags, states: NDArray[np.int64], n_tries: int, rng: np.random.Generator
    ) -> tuple[Flags, NDArray[np.int64]]:
        """Try splits and merges; features and states after them. A merge is O(J L²), a split O(n_steps) as well."""
        now = self._configuration(features, states)
        for _ in range(n_tries):
            now = self._try_split(now, rng) if rng.random() < _SPLITS else self._try_merge(now, rng)
        return now.features, now.states

    def _try_merge(self, now: Configuration, rng: np.random.Generator) -> Configuration:
        visited = np.flatnonzero(now.visits)
        if len(visited) < 2:
            return now
        a, b = rng.choice(visited, size=2, replace=False).tolist()
        merged = merge(now, (a, b))
        threshold = -rng.standard_exponential()
        log_ratio = self._log_part(merged, (a, b)) - self._log_part(now, (a, b)) - self._log_choices(now, (a, b))
        if threshold >= log_ratio:
            return now
        picked = tuple(int(rng.choice(np.flatnonzero(now.states == k))) for k in (a, b))
        return merged if threshold < log_ratio + self.log_split(now, merged, (a, b), picked) else now

    def _try_split(self, now: Configuration, rng: np.random.Generator) -> Configuration:
        empty = np.flatnonzero(~now.features.any(axis=0))
        first = int(rng.integers(len(now.states)))
        a = int(now.states[first])
        second = int(rng.choice(np.flatnonzero(now.states == a)))
        threshold = -rng.standard_exponential()
        if not len(empty) or second == first:
            return now
        pair, picked = (a, int(empty[rng.integers(len(empty))])), (first, second)
        split, log_probability = self.split(now, pair, picked, rng)
        log_ratio = self._log_part(split, pair) - self._log_part(now, pair) + self._log_choices(split, pair)
        return split if threshold < log_ratio - log_probability else now

    def _log_choices(self, split: Configuration, pair: tuple[int, int]) -> float:
        """Log of r'/r: how probable two states and a step of each are to a merge, by what the steps are to a split."""
        visits = split.visits
        n_visited, (n_a, n_b) = int((visits > 0).sum()), visits[list(pair)].tolist()
        merging = log(1.0 - _SPLITS) - log(n_visited * (n_visited - 1)) - log(n_a * n_b)
        return merging - log(_SPLITS) + log(len(split.states) * (n_a + n_b))

    def split(
        self, merged: Configuration, pair: tuple[int, int], picked: tuple[int, ...], rng: np.random.Generator
    ) -> tuple[Configuration, float]:
        """Draw a split of the first of two states, and the log probability that it is drawn."""
        halves = self._halves(merged, pair[0], picked)
        path, log_path = halves.draw(rng)
        states, features = merged.states.copy(), merged.features.copy()
        states[halves.steps] = np.array(pair)[path]
        counts = counts_of(states, self.sequences, features.shape[1])
        users, having = self._having(merged, counts, pair)
        has, log_has = having.draw(rng)
        features[np.ix_(users, np.array(pair))] = has
        statistics = merged.statistics.copy()
        statistics[list(pair)] = self.emission.statistics(self.sequences.observations_at(halves.steps), path, 2)
        return Configuration(features, states, counts, statistics), log_path + log_has

    def log_split(
        self, split: Configuration, merged: Configuration, pair: tuple[int, int], picked: tuple[int, ...]
    ) -> float:
        """Log probability that a split of the merged state is drawn that is this one."""
        halves = self._halves(merged, pair[0], picked)
        path = (split.states[halves.steps] == pair[1]).astype(np.int64)
        users, having = self._having(merged, split.counts, pair)
        return halves.log_probability(path) + having.log_probability(split.features[np.ix_(users, np.array(pair))])

    def _halves(self, merged: Configuration, state: int, picked: tuple[int, ...]) -> Halves:
        return fit_halves(np.flatnonzero(merged.states == state), picked, self.sequences, self.emission, self.hyper)

    def _having(
        self, merged: Configuration, counts: NDArray[np.int64], pair: tuple[int, int]
    ) -> tuple[NDArray[np.int64], Having]:
        """The tasks that have the merged state, and how they come to have either, given counts after a split."""
        users, n_tasks = np.flatnonzero(merged.features[:, pair[0]]), len(merged.features)
        is_in = counts[users].sum(axis=1)[:, pair] > 0
        n_in = is_in.sum(axis=0)
        # A feature without steps makes room in every row: what that costs a task is about the same for either.
        fewer, more = merged.features[users], merged.features[users]
        fewer[:, pair] = is_in
        more[:, pair] = True
        given = self.hyper.alpha, self.hyper.stickiness
        cost = log_feature_transitions(counts[users], more, *given)
        cost -= log_feature_transitions(counts[users], fewer, *given)
        cost /= np.maximum((~is_in).sum(axis=1), 1)
        return users, Having(is_in, np.log(n_in) - np.log(n_tasks - n_in + self.hyper.eta) + cost[:, None])

    def _log_part(self, configuration: Configuration, pair: tuple[int, int]) -> float:
        """What log p(F, s, o) has of two states and of the tasks that have them."""
        features, n_tasks, both = configuration.features, len(configuration.features), list(pair)
        sizes = features[:, both].sum(axis=0)
        sizes = sizes[sizes > 0]
        total = len(sizes) * log(self.hyper.gamma * self.hyper.eta)
        total += betaln(sizes, n_tasks - sizes + self.hyper.eta).sum()
        users = features[:, both].any(axis=1)
        given = self.hyper.alpha, self.hyper.stickiness
        total += log_feature_transitions(configuration.counts[users], features[users], *given).sum()
        return float(total + self.emission.log_marginal(configuration.statistics[both]).sum())

    def _configuration(self, features: Flags, states: NDArray[np.int64]) -> Configuration:
        n_states = features.shape[1]
        statistics = self.emission.statistics(self.sequences.observations, states, n_states)
        return Configuration(features, states, counts_of(states, self.sequences, n_states), statistics)


def merge(now: Configuration, pair: tuple[int, int]) -> Configuration:
    """The first of two states with all that both have; the second is empty."""
    a, b = pair
    features, counts, statistics = now.features.copy(), now.counts.copy(), now.statistics.copy()
    features[:, a] |= features[:, b]
    counts[:, :, a] += counts[:, :, b]
    counts[:, a + 1] += counts[:, b + 1]
    statistics[a] += statistics[b]
    features[:, b], counts[:, :, b], counts[:, b + 1], statistics[b] = False, 0, 0, 0.0
    return Configuration(features, np.where(now.states == b, a, now.states), counts, statistics)
