"""Sequences cut into segments: runs of steps in one hidden state, with names and durations; numpy alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats

DECODINGS = ("viterbi", "marginal")


def check_decoding(decoding: Any) -> None:
    """Refuse a way to tell states that there is not."""
    if not isinstance(decoding, str) or decoding not in DECODINGS:
        known = " or ".join(f'"{way}"' for way in DECODINGS)
        raise ValueError(f"decoding={decoding!r}: give {known}")


def cut_into_segments(
    states: NDArray[np.int64],
    probabilities: Floats,
    lengths: NDArray[np.int64],
    clusters: NDArray[np.int64],
    tasks: Sequence[Any],
    names: Mapping[tuple[int, int], str],
    called: Sequence[Any] | None = None,
) -> dict[str, list[Any]]:
    """Runs of one state, sequence by sequence, as columns of a table.

    Parameters
    ----------
    states : ndarray of shape (n_steps,)
        The state of every step, sequences one after the other.
    probabilities : ndarray of shape (n_steps, n_states)
        How probable each state is at every step.
    lengths : ndarray of shape (n_sequences,)
    clusters : ndarray of shape (n_sequences,)
        Whose states each sequence has.
    tasks : sequence
        The task of each sequence.
    names : mapping
        What states are called, by cluster and state.
    called : sequence, optional
        What each sequence is called; by default its number, from 0.

    Returns
    -------
    dict of lists
        A segment takes steps ``start`` to ``stop`` of its sequence, without ``stop``, both counted from 0.

    Examples
    --------
    >>> states, lengths, names = np.array([0, 0, 1, 1]), np.array([3, 1]), {(0, 0): "low", (0, 1): "up"}
    >>> of_two = cut_into_segments(states, np.eye(2)[states], lengths, np.array([0, 0]), ["ann", "bob"], names)
    >>> of_two["task"], of_two["start"], of_two["stop"], of_two["name"]
    (['ann', 'ann', 'bob'], [0, 2, 0], [2, 3, 1], ['low', 'up', 'up'])
    """
    firsts = np.cumsum(lengths) - lengths
    of_step = np.repeat(np.arange(len(lengths)), lengths)
    is_new = np.ones(len(states), dtype=bool)
    is_new[1:] = (states[1:] != states[:-1]) | (of_step[1:] != of_step[:-1])
    begins = np.flatnonzero(is_new)
    durations = np.diff(np.append(begins, len(states)))
    sequence = of_step[begins]
    start = begins - firsts[sequence]
    state, cluster = states[begins], clusters[sequence]
    own = probabilities[np.arange(len(states)), states]
    sure = np.add.reduceat(own, begins) / durations if len(begins) else np.zeros(0)
    return {
        "task": [tasks[i] for i in sequence],
        "sequence": sequence.tolist() if called is None else [called[i] for i in sequence],
        "start": start.tolist(),
        "stop": (start + durations).tolist(),
        "duration": durations.tolist(),
        "cluster": cluster.tolist(),
        "state": state.tolist(),
        "name": [names[which] for which in zip(cluster.tolist(), state.tolist(), strict=True)],
        "probability": sure.tolist(),
    }
