"""Inference by Gibbs sampling ("gibbs"): where chains start, what a sweep is, and what they leave behind."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.progress import progress_bar
from kinfolk.sequences.inference.chains import put_together, run_side_by_side
from kinfolk.sequences.inference.options import Options
from kinfolk.sequences.inference.split_merge import SplitMerge
from kinfolk.sequences.inference.starts import fitted_start
from kinfolk.sequences.inference.sweep import start_state, sweep
from kinfolk.sequences.model.draw import Draw, HyperParameters
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.fitted import Fitted
from kinfolk.sequences.model.ndp_ihmm import Priors, State, kept
from kinfolk.sequences.model.sequences import Sequences

# Splits and merges tried in each sweep at first, when they have most to find.
_MOVES_WHILE_LEARNING = 4


def infer(
    sequences: Sequences, emission: Emission, priors: Priors, options: Options, seed: int
) -> tuple[HyperParameters, Fitted]:
    """Hyper-parameters, and all that inference leaves behind, by Gibbs sampling.

    Parameters
    ----------
    sequences : Sequences
        The data.
    emission : Emission
        What states emit; its strength is where learning starts.
    priors : Priors
        Of the hyper-parameters.
    options : Options
    seed : int

    Returns
    -------
    HyperParameters
        Means over draws.
    Fitted
    """
    schedule, n_states = options.schedule, options.n_states
    if options.n_clusters is None:
        together = np.zeros(1, dtype=np.int64)
        alone = [sequences.between(task, task + 1) for task in range(sequences.n_tasks)]
        samplers = [GibbsSampler(own, emission, priors, 1, n_states, together) for own in alone]
        n_jobs = options.n_jobs
    else:
        # Chains have processes of their own; a lone chain has threads for its tasks.
        inner, n_jobs = (options.n_jobs, 1) if schedule.n_chains == 1 else (1, options.n_jobs)
        shape = (options.n_clusters, n_states)
        samplers = [
            GibbsSampler(sequences, emission, priors, *shape, options.partition, inner, n_learning=schedule.n_burn_in)
        ]
    n_sweeps = len(samplers) * schedule.n_chains * schedule.n_sweeps
    with progress_bar("Sampling", n_sweeps, options.verbose) as advance:
        parts = run_side_by_side(samplers, schedule, seed, n_jobs, advance)
    fitted = parts[0] if options.n_clusters is not None else put_together(parts)
    return fitted.mean_hyper(), fitted


class Position(NamedTuple):
    """Where a chain is, its moves that split and merge clusters, and how many sweeps their references still learn."""

    state: State
    moves: SplitMerge | None
    n_learning: int = 0


class GibbsSampler(NamedTuple):
    """The sampler of a model with K clusters and L states; without a partition to start from, it agglomerates.

    The first ``n_learning`` sweeps, which are to be thrown away, improve the references of moves between clusters.
    """

    sequences: Sequences
    emission: Emission
    priors: Priors
    n_clusters: int
    n_states: int
    partition: NDArray[np.int64] | None
    n_jobs: int | None = 1
    n_learning: int = 0

    def start(self, rng: np.random.Generator) -> Position:
        """A partition, and states fitted to its clusters."""
        seed = int(rng.integers(1 << 31))
        data, shape = self[:3], (self.n_clusters, self.n_states)
        begin = fitted_start(*data, *shape, self.partition, seed)
        state = start_state(
            *data, n_clusters=shape[0], n_states=shape[1], rng=rng, cluster=begin.partition, states=begin.states
        )
        if begin.set_fits is None:
            return Position(state, None)
        return Position(state, SplitMerge.of(begin.set_fits), self.n_learning)

    def sweep(self, position: Position, rng: np.random.Generator) -> Position:
        """The next position: a split or a merge is tried, then all else is drawn."""
        state, moves, n_learning = position
        if moves is not None:
            for _ in range(_MOVES_WHILE_LEARNING if n_learning > 0 else 1):
                state, moves = moves.move(state, self.emission, rng, learning=n_learning > 0)
        state = sweep(state, self.sequences, self.emission, self.priors, rng, self.n_jobs)
        return Position(state, moves, n_learning - 1)

    def draw(self, position: Position) -> Draw:
        """What is kept of a position."""
        return kept(position.state, self.sequences, self.emission)
