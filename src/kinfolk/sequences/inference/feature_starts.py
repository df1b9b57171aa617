"""Where a chain of the beta-process HMM begins: sequences cut into blocks, which are agglomerated into states.

What many behaviours show is told by the steps around one another. Sequences are cut into blocks of about the same
length, at places that are random, each of which is a state that one task has; then the two states are merged, again and
again, whose merging raises p(F, o | s) most, θ integrated out, until none does. O(blocks² + merges × blocks) marginals.

Blocks lie across the ends of behaviours, and what is between two of them makes states that are hard to get rid of. So
merging goes on, and what there is with three quarters and with half as many states are starts as well: a few sweeps put
the ends where they belong, and tell which start is best.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from kinfolk.maths.arrays import Floats
from kinfolk.sequences.model.bp_hmm import Flags
from kinfolk.sequences.model.draw import HyperParameters
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.sequences import Sequences

# Blocks are as short as this, unless there would be too many of them.
_SHORTEST, _MOST_BLOCKS = 12, 240
# Starts have such shares of the states with which merging has nothing more to gain.
_SHARES = (1.0, 0.75, 0.5)


def cut_into_blocks(
    sequences: Sequences, length: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The block of each step, and the task of each block; blocks of a sequence are of one length but for its ends."""
    block = np.empty(sequences.n_steps, dtype=np.int64)
    tasks: list[int] = []
    for task in range(sequences.n_tasks):
        for i in range(int(sequences.task_bounds[task]), int(sequences.task_bounds[task + 1])):
            start, stop = int(sequences.bounds[i]), int(sequences.bounds[i + 1])
            if stop == start:
                continue
            place = ((np.arange(stop - start) + rng.random() * length) / length).astype(np.int64)
            place -= place[0]
            block[start:stop] = len(tasks) + place
            tasks += [task] * int(place[-1] + 1)
    return block, np.array(tasks, dtype=np.int64)


def start_paths(
    sequences: Sequences,
    emission: Emission,
    hyper: HyperParameters,
    n_states: int,
    rng: np.random.Generator,
) -> list[NDArray[np.int64]]:
    """States of all steps to start from, at most ``n_states`` of them, the start with the most states first."""
    length = max(_SHORTEST, sequences.n_steps / _MOST_BLOCKS)
    block, task = cut_into_blocks(sequences, length, rng)
    n_blocks = len(task)
    statistics = emission.statistics(sequences.observations, block, n_blocks)
    features = np.zeros((sequences.n_tasks, n_blocks), dtype=bool)
    features[task, np.arange(n_blocks)] = True
    gains = np.full((n_blocks, n_blocks), -np.inf)
    alone = _log_scores(statistics, features, emission, hyper)
    for i in range(1, n_blocks):
        gains[i, :i] = _gains(i, np.arange(i), statistics, features, alone, emission, hyper)
    state, left = np.arange(n_blocks), n_blocks
    wanted: list[int] = []
    found: list[NDArray[np.int64]] = []
    while True:
        i, j = divmod(int(np.argmax(gains)), n_blocks)
        if not wanted and left <= n_states and gains[i, j] <= 0.0:
            wanted = sorted({max(1, round(share * left)) for share in _SHARES})
        if wanted and left == wanted[-1]:
            found.append(np.unique(state[block], return_inverse=True)[1].astype(np.int64))
            wanted.pop()
            if not wanted:
                return found
        statistics[j] += statistics[i]
        features[:, j] |= features[:, i]
        state[state == i] = j
        gains[i] = gains[:, i] = -np.inf
        alone[j] = _log_scores(statistics[j : j + 1], features[:, j : j + 1], emission, hyper)[0]
        left -= 1
        others = np.setdiff1d(state, j)
        if len(others):
            gains[np.maximum(others, j), np.minimum(others, j)] = _gains(
                j, others, statistics, features, alone, emission, hyper
            )


def _gains(
    one: int,
    others: NDArray[np.int64],
    statistics: Floats,
    features: Flags,
    alone: Floats,
    emission: Emission,
    hyper: HyperParameters,
) -> Floats:
    """How much merging one state with each of the others raises the log score."""
    together = statistics[one] + statistics[others]
    having = features[:, one : one + 1] | features[:, others]
    return np.asarray(_log_scores(together, having, emission, hyper) - alone[one] - alone[others])


def _log_scores(statistics: Floats, features: Flags, emission: Emission, hyper: HyperParameters) -> Floats:
    """Log p(o, F) of each state: its marginal, and its column's part of log p(F)."""
    sizes, n_tasks = features.sum(axis=0), len(features)
    column = np.log(hyper.gamma * hyper.eta) + betaln(sizes, n_tasks - sizes + hyper.eta)
    return np.asarray(emission.log_marginal(statistics) + column)
