"""Variational fits of sets of tasks that are functions of the data alone, each computed once.

A task alone is fitted from several random starts; a set of tasks from the states of its parts side by side. Both are
followed by merges of states. Modes of the states lie hundreds of nats apart, and this is what finds good ones: blocks
of steps given to states at random, then merged, found the best bound known on four of four music clips, where random
posteriors of the steps found it on two and took longer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kinfolk.maths.arrays import Floats
from kinfolk.sequences.inference.mean_field import (
    ClusterFit,
    Start,
    fit_cluster,
    fit_locally,
    start_from_posteriors,
    start_of,
    usual_transitions,
)
from kinfolk.sequences.inference.state_merges import merge_states, squeezed, stacked
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.ndp_ihmm import ClusterPrior
from kinfolk.sequences.model.sequences import Sequences

# The longest block of steps of each start in turn, of lengths drawn evenly: states that last are found from long
# blocks, states that alternate from short ones. A step has this much of its probability in its block's state.
_LONGEST_BLOCKS = (8, 1, 4, 2)
_SURE = 0.9
# Starts are compared before they have settled: an iteration that adds less than this many nats ends them.
_ROUGHLY = 0.5
# Of a union of many parts, the states of so many of them are tried for all tasks.
_MOST_EXPLAINERS = 4

TaskSet = tuple[int, ...]


def random_blocks(n_steps: int, n_states: int, longest: int, rng: np.random.Generator) -> Floats:
    """Posteriors (n_steps, n_states) that put blocks of consecutive steps into random states."""
    lengths = rng.integers(1, longest + 1, size=n_steps)
    states = np.repeat(rng.integers(n_states, size=len(lengths)), lengths)[:n_steps]
    posteriors = np.full((n_steps, n_states), (1.0 - _SURE) / n_states)
    posteriors[np.arange(n_steps), states] += _SURE
    return posteriors


def fit_from_blocks(
    sequences: Sequences, emission: Emission, hyper: ClusterPrior, rng: np.random.Generator, n_starts: int = 4
) -> ClusterFit:
    """The best of several fits from random blocks, states merged.

    Examples
    --------
    >>> from kinfolk.sequences.model.emissions.categorical import Categorical
    >>> codes = np.tile(np.repeat([0, 1], 10), 6)
    >>> sequences = Sequences((codes,), np.array([0, 120]), np.array([0, 1]))
    >>> fit = fit_from_blocks(sequences, Categorical(2), ClusterPrior(), np.random.default_rng(0))
    >>> fit.statistics.round().tolist() in ([[60, 0], [0, 60]], [[0, 60], [60, 0]])
    True
    """
    # More states than steps cannot be told apart.
    n_states = min(hyper.n_states, sequences.n_steps)
    fits = []
    for i in range(n_starts):
        blocks = random_blocks(sequences.n_steps, n_states, _LONGEST_BLOCKS[i % len(_LONGEST_BLOCKS)], rng)
        start = start_from_posteriors(sequences, emission, blocks)
        fit = fit_cluster(sequences, emission, hyper, start, tolerance=_ROUGHLY)
        fits.append(merge_states(sequences, emission, hyper, fit, tolerance=_ROUGHLY))
    best = max(fits, key=lambda fit: fit.bound)
    return merge_states(sequences, emission, hyper, best)


class SetFits(NamedTuple):
    """Fits of sets of tasks under hyper-parameters that are held; those asked for once are remembered.

    Attributes
    ----------
    sequences : Sequences
    emission : Emission
    hyper : ClusterPrior
    n_starts : int
        Random starts of each task alone.
    seed : int
        Random numbers of a task hang on this and on its place among the tasks.
    fits : dict
        What is known so far.
    earlier : mapping
        Fits under other hyper-parameters, from which those under these go on. A prior of the emissions that is almost
        without weight has many poor modes, and the way to the good ones leads through a heavier prior.
    """

    sequences: Sequences
    emission: Emission
    hyper: ClusterPrior
    n_starts: int
    seed: int
    fits: dict[TaskSet, ClusterFit]
    earlier: Mapping[TaskSet, ClusterFit]

    @classmethod
    def of_data(
        cls,
        sequences: Sequences,
        emission: Emission,
        hyper: ClusterPrior,
        *,
        n_starts: int = 4,
        seed: int = 0,
        earlier: SetFits | None = None,
    ) -> SetFits:
        """Nothing known yet, but for fits under other hyper-parameters."""
        return cls(sequences, emission, hyper, n_starts, seed, {}, {} if earlier is None else earlier.fits)

    def copy(self) -> SetFits:
        """The same, so far; what is remembered from now on is remembered in one of them."""
        return self._replace(fits=dict(self.fits))

    def alone(self, task: int) -> ClusterFit:
        """The fit of one task; it hangs on the data of that task only."""
        if (task,) not in self.fits:
            own = self.sequences.of_tasks([task])
            rng = np.random.default_rng([self.seed, task])
            fits = [fit_from_blocks(own, self.emission, self.hyper, rng, self.n_starts)]
            if (task,) in self.earlier:
                fits.append(self._from_earlier((task,), own))
            self.fits[(task,)] = max(fits, key=lambda fit: fit.bound)
        return self.fits[(task,)]

    def together(self, parts: Sequence[TaskSet]) -> ClusterFit:
        """The fit of the union of disjoint sets, from the states of the sets' own fits side by side.

        Tasks of a fit are in ascending order.
        """
        union = tuple(sorted(task for part in parts for task in part))
        if union not in self.fits:
            sequences = self.sequences.of_tasks(union)
            roughly = [self._settled(sequences, *start, _ROUGHLY) for start in self.starts_of_union(parts)]
            best = max(roughly, key=lambda fit: fit.bound)
            fits = [merge_states(sequences, self.emission, self.hyper, best)]
            if union in self.earlier:
                fits.append(self._from_earlier(union, sequences))
            self.fits[union] = max(fits, key=lambda fit: fit.bound)
        return self.fits[union]

    def _from_earlier(self, tasks: TaskSet, sequences: Sequences) -> ClusterFit:
        before = self.earlier[tasks]
        fit = fit_cluster(sequences, self.emission, self.hyper, start_of(before), weights=before.weights)
        return merge_states(sequences, self.emission, self.hyper, fit)

    def _settled(self, sequences: Sequences, start: Start, weights: Floats, tolerance: float) -> ClusterFit:
        return fit_cluster(sequences, self.emission, self.hyper, start, weights=weights, tolerance=tolerance)

    def starts_of_union(self, parts: Sequence[TaskSet]) -> list[tuple[Start, Floats]]:
        """Starts of a union: the states of its parts side by side, at most L; and those of each part for all tasks.

        With each start come base weights. Tasks are in ascending order.
        """
        fits = [self.of(part) for part in parts]
        start = stacked(fits)
        order = np.argsort([task for part in parts for task in part])
        weights = np.concatenate([fit.weights for fit in fits])
        start = Start(start.counts[order], start.statistics)
        starts = [squeezed(start, weights, self.emission, self.hyper)]
        union = self.sequences.of_tasks(sorted(task for part in parts for task in part))
        for fit in fits[:_MOST_EXPLAINERS]:
            usual = usual_transitions(fit.counts.sum(axis=0), np.diff(union.step_bounds))
            local = fit_locally(union, self.emission, self.hyper, fit._replace(counts=usual), n_iterations=2)
            statistics = self.emission.expected_statistics(union.observations, local.posteriors)
            starts.append((Start(local.counts, statistics), fit.weights))
        return starts

    def of(self, tasks: Iterable[int]) -> ClusterFit:
        """The fit of a set: one known already, or that of its tasks one by one."""
        key = tuple(sorted(tasks))
        if len(key) == 1:
            return self.alone(key[0])
        return self.fits[key] if key in self.fits else self.together([(task,) for task in key])
