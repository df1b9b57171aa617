"""Sequences of many tasks, end to end in one array for each channel of observations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Layout(NamedTuple):
    """Where sequences and tasks begin and end, as kernels read it.

    Attributes
    ----------
    bounds, task_bounds : int64 ndarrays
        As of `Sequences`.
    longest_first : int64 ndarray of shape (n_sequences,)
        The sequences of each task, the longest first: sequences of about one length lie together.
    most_sequences : int
        Of any task.
    """

    bounds: NDArray[np.int64]
    task_bounds: NDArray[np.int64]
    longest_first: NDArray[np.int64]
    most_sequences: int

    @classmethod
    def of(cls, bounds: NDArray[np.int64], task_bounds: NDArray[np.int64]) -> Layout:
        """The layout of sequences with these bounds. O(n_sequences log n_sequences)."""
        n_sequences = np.diff(task_bounds)
        task = np.repeat(np.arange(len(n_sequences)), n_sequences)
        return cls(bounds, task_bounds, np.lexsort((-np.diff(bounds), task)), int(n_sequences.max(initial=0)))


@dataclass(frozen=True)
class Sequences:
    """Sequences of many tasks; those of a task lie together, in the order of tasks.

    A channel of categories is one whole number a step (−1: missing), a channel of numbers a row of floats a step
    (NaN: missing). Sequence i is steps ``bounds[i]:bounds[i + 1]``; task j has sequences
    ``task_bounds[j]:task_bounds[j + 1]``, and steps ``step_bounds[j]:step_bounds[j + 1]``.

    Examples
    --------
    Two tasks, the first with two sequences:

    >>> codes = np.array([0, 1, 1, 0, 2])
    >>> data = Sequences((codes,), np.array([0, 2, 3, 5]), np.array([0, 2, 3]))
    >>> data.n_tasks, data.n_sequences, data.n_steps, data.steps_of(1)
    (2, 3, 5, slice(3, 5, None))
    >>> data.of_tasks([1]).observations[0].tolist()
    [0, 2]
    """

    observations: tuple[NDArray[Any], ...]
    bounds: NDArray[np.int64]
    task_bounds: NDArray[np.int64]

    n_steps: int = field(init=False)
    n_sequences: int = field(init=False)
    n_tasks: int = field(init=False)
    step_bounds: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        for name, value in (
            ("n_steps", int(self.bounds[-1])),
            ("n_sequences", len(self.bounds) - 1),
            ("n_tasks", len(self.task_bounds) - 1),
            ("step_bounds", self.bounds[self.task_bounds]),
        ):
            object.__setattr__(self, name, value)

    @cached_property
    def layout(self) -> Layout:
        """Where sequences and tasks begin and end, found once."""
        return Layout.of(self.bounds, self.task_bounds)

    @property
    def task_of_step(self) -> NDArray[np.int64]:
        """The task of each step."""
        return np.repeat(np.arange(self.n_tasks), np.diff(self.step_bounds))

    def steps_of(self, task: int) -> slice:
        """The steps of a task."""
        return slice(int(self.step_bounds[task]), int(self.step_bounds[task + 1]))

    def observations_at(self, steps: slice | NDArray[Any]) -> tuple[NDArray[Any], ...]:
        """What every channel has at some steps."""
        return tuple(channel[steps] for channel in self.observations)

    def between(self, first: int, last: int) -> Sequences:
        """Tasks ``first:last``, without copying their observations."""
        if first == 0 and last == self.n_tasks:
            return self
        start, stop = int(self.task_bounds[first]), int(self.task_bounds[last])
        steps = slice(int(self.bounds[start]), int(self.bounds[stop]))
        return Sequences(
            self.observations_at(steps),
            self.bounds[start : stop + 1] - self.bounds[start],
            self.task_bounds[first : last + 1] - self.task_bounds[first],
        )

    def one_by_one(self) -> list[Sequences]:
        """Each sequence by itself, without copying its observations."""
        pairs = zip(self.bounds[:-1].tolist(), self.bounds[1:].tolist(), strict=True)
        one = np.array([0, 1])
        return [Sequences(self.observations_at(slice(a, b)), np.array([0, b - a]), one) for a, b in pairs]

    def of_tasks(self, tasks: Sequence[int] | NDArray[np.int64]) -> Sequences:
        """These tasks, in the order given. O(steps of those)."""
        wanted = np.asarray(tasks, dtype=np.int64)
        sequences = _ranges(self.task_bounds, wanted)
        steps = _ranges(self.bounds, sequences)
        return Sequences(
            self.observations_at(steps),
            _ends(np.diff(self.bounds)[sequences]),
            _ends(np.diff(self.task_bounds)[wanted]),
        )


def _ends(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Zero, and where each of several lengths put end to end ends."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _ranges(bounds: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """All of ``bounds[i]:bounds[i + 1]`` for each wanted i, one after the other."""
    lengths = np.diff(bounds)[wanted]
    shifts = bounds[wanted] - _ends(lengths)[:-1]
    return np.arange(int(lengths.sum()), dtype=np.int64) + np.repeat(shifts, lengths)
