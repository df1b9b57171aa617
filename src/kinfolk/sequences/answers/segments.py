"""Sequences cut into segments: runs of steps in one hidden state, with names and durations; numpy alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats

DECODINGS = ("viterbi", "marginal")


class Decoded(NamedTuple):
    """The hidden states of sequences, one after the other, each in its order.

    Attributes
    ----------
    states : int64 ndarray of shape (n_steps,)
    probabilities : ndarray of shape (n_steps, n_states)
        How probable each state is at every step.
    lengths : int64 ndarray of shape (n_sequences,)
    clusters : int64 ndarray of shape (n_sequences,)
        Whose states each sequence has.
    tasks : list
        The task of each sequence.
    called : list
        What each sequence is called: by a column of the table, or its number.
    names : mapping
        What states are called, by cluster and state.
    rows : int64 ndarray of shape (n_steps,), or None
        Which row of the table each step was; None where they stand as they came.
    """

    states: NDArray[np.int64]
    probabilities: Floats
    lengths: NDArray[np.int64]
    clusters: NDArray[np.int64]
    tasks: list[Any]
    called: list[Any]
    names: Mapping[tuple[int, int], str]
    rows: NDArray[np.int64] | None = None


def check_decoding(decoding: Any) -> None:
    """Refuse a way to tell states that there is not."""
    if not isinstance(decoding, str) or decoding not in DECODINGS:
        known = " or ".join(f'"{way}"' for way in DECODINGS)
        raise ValueError(f"decoding={decoding!r}: give {known}")


def cut_into_segments(decoded: Decoded) -> dict[str, list[Any]]:
    """Runs of one state, sequence by sequence, as columns of a table.

    A segment takes steps ``start`` to ``stop`` of its sequence, without ``stop``, both counted from 0.

    Examples
    --------
    >>> states, names = np.array([0, 0, 1, 1]), {(0, 0): "low", (0, 1): "up"}
    >>> both = Decoded(states, np.eye(2)[states], np.array([3, 1]), np.array([0, 0]), ["ann", "bob"], [0, 1], names)
    >>> found = cut_into_segments(both)
    >>> found["task"], found["start"], found["stop"], found["name"]
    (['ann', 'ann', 'bob'], [0, 2, 0], [2, 3, 1], ['low', 'up', 'up'])
    """
    states, lengths = decoded.states, decoded.lengths
    firsts = np.cumsum(lengths) - lengths
    of_step = np.repeat(np.arange(len(lengths)), lengths)
    is_new = np.ones(len(states), dtype=bool)
    is_new[1:] = (states[1:] != states[:-1]) | (of_step[1:] != of_step[:-1])
    begins = np.flatnonzero(is_new)
    durations = np.diff(np.append(begins, len(states)))
    sequence = of_step[begins]
    start = begins - firsts[sequence]
    state, cluster = states[begins], decoded.clusters[sequence]
    own = decoded.probabilities[np.arange(len(states)), states]
    sure = np.add.reduceat(own, begins) / durations if len(begins) else np.zeros(0)
    return {
        "task": [decoded.tasks[i] for i in sequence],
        "sequence": [decoded.called[i] for i in sequence],
        "start": start.tolist(),
        "stop": (start + durations).tolist(),
        "duration": durations.tolist(),
        "cluster": cluster.tolist(),
        "state": state.tolist(),
        "name": [decoded.names[which] for which in zip(cluster.tolist(), state.tolist(), strict=True)],
        "probability": sure.tolist(),
    }
