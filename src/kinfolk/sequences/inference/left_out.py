"""How well a chain predicts sequences that are left out of what it has counted, by which chains are judged.

What a chain knows of a sequence is in the transitions and the codes that it counted there. Without these, the expected
rows and shares say how probable the sequence is. States of other sequences and hyper-parameters have seen it, and so
has what θ is of numbers and counts: that flatters all chains, and tells which of them predict alike.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kinfolk.sequences.model.draw import Draw
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.filtering import log_likelihoods, scaled
from kinfolk.sequences.model.ndp_ihmm import State, count_transitions
from kinfolk.sequences.model.sequences import Sequences

# Sequences that are left out in each draw: they take a few hundredths of a sweep each.
_MOST_LEFT_OUT = 8
# The least that is left of a pseudo-count, as a part of the prior's.
_LEAST_LEFT = 0.5


def chosen_to_leave_out(sequences: Sequences) -> NDArray[np.int64]:
    """Places of a few sequences, evenly spaced among all."""
    n = min(_MOST_LEFT_OUT, sequences.n_sequences)
    return np.unique(np.linspace(0, sequences.n_sequences - 1, n).round().astype(np.int64))


def log_probability_left_out(state: State, draw: Draw, sequences: Sequences, emission: Emission) -> float:
    """Mean log probability of a few sequences, each by what was counted in the others. O(steps of their tasks)."""
    n_states = state.base_weights.shape[1]
    hyper, total = state.hyper, 0.0
    chosen = chosen_to_leave_out(sequences)
    assert draw.code_counts is not None
    for place in chosen.tolist():
        task = int(np.searchsorted(sequences.task_bounds, place, side="right")) - 1
        steps = slice(int(sequences.bounds[place]), int(sequences.bounds[place + 1]))
        bounds, one = np.array([0, steps.stop - steps.start]), np.array([0, 1])
        own = sequences.steps_of(task)
        first, last = sequences.task_bounds[task : task + 2].tolist()
        of_task = sequences.bounds[first : last + 1] - sequences.bounds[first]
        moves = count_transitions(state.states[own], of_task, np.array([0, last - first]), n_states)[0]
        moves -= count_transitions(state.states[steps], bounds, one, n_states)[0]
        rows = hyper.alpha * np.maximum(state.base_weights[state.cluster[task]], 1e-100) + moves
        rows[1:] += hyper.stickiness * np.eye(n_states)
        cluster = int(draw.cluster[task])
        shown = sequences.observations_at(steps)
        codes = draw.code_counts[cluster] - emission.code_counts(
            emission.statistics(shown, state.states[steps], n_states)
        )
        # Counts are kept in few bits.
        codes = np.maximum(codes, _LEAST_LEFT * hyper.strength)
        theta = emission.with_shares(draw.parameters[cluster], codes)
        densities = scaled(emission.log_densities(theta, shown))
        total += float(log_likelihoods(densities, bounds, rows / rows.sum(axis=1, keepdims=True))[0])
    return total / len(chosen)
