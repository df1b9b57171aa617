"""What a model of sequences remembers of a table, and how sequences lie behind the door: channels, task by task.

Only numpy is imported here: a saved model predicts without anything else installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.sequences.model.emissions.families import family_named, with_pasts
from kinfolk.sequences.model.sequences import Sequences
from kinfolk.tasks.answering import tell_of_unseen
from kinfolk.tasks.columns import as_ids
from kinfolk.tasks.schema import Column, as_numbers
from kinfolk.tasks.table import Table, is_missing


class Channel(NamedTuple):
    """Columns that are emitted together, how, and of symbols which there are."""

    kind: str
    columns: tuple[int, ...]
    symbols: tuple[Any, ...] | None = None

    @property
    def reads(self) -> str:
        """What its columns hold: symbols, counts or numbers."""
        return family_named(self.kind).reads


class Layout(NamedTuple):
    """What a model remembers of a table: its columns and the channels that they make.

    ``is_flat`` says that observations came as one column without a table around it, and go back as such.
    """

    names: tuple[str, ...] | None
    n_columns: int
    is_flat: bool
    channels: tuple[Channel, ...]

    def observations(
        self, table: Table, lengths: NDArray[np.int64], rows: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[Any], ...]:
        """Every channel's steps: numbers, NaN where missing; or counts or codes, −1 where missing.

        A symbol that is not known has the code past the last. Channels that look back have the steps before, of
        sequences of these lengths, beside each step. ``rows`` says which row each step is, where they stand otherwise.
        """
        steps = tuple(_channel_steps(table, channel) for channel in self.channels)
        if rows is not None:
            steps = tuple(shown[rows] for shown in steps)
        return with_pasts(steps, [channel.kind for channel in self.channels], lengths)

    def values(self, observations: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Coded steps as the user's own: (steps,) where the model was fitted to one flat column, else a table."""
        columns: list[Any] = [None] * self.n_columns
        for channel, steps in zip(self.channels, observations, strict=True):
            if channel.reads == "counts":
                columns[channel.columns[0]] = steps
            elif channel.symbols is None:
                for place, column in enumerate(channel.columns):
                    columns[column] = steps[:, place]
            else:
                named = as_ids([*channel.symbols])
                gone = (steps < 0) | (steps >= len(channel.symbols))
                if gone.any():
                    named = np.append(named.astype(object), [None])
                    steps = np.where(gone, len(channel.symbols), steps)
                columns[channel.columns[0]] = named[steps]
        if self.is_flat:
            return np.asarray(columns[0])
        kinds = {column.dtype.kind for column in columns}
        return np.column_stack(columns if len(kinds) == 1 else [column.astype(object) for column in columns])


class Arranged(NamedTuple):
    """Sequences with those of a task side by side, and where they came from.

    Sequence i of ``sequences`` is the user's number ``origin[i]``, and its steps were ``steps`` of the table.
    """

    sequences: Sequences
    origin: NDArray[np.int64]
    steps: NDArray[np.int64]


def _channel_steps(table: Table, channel: Channel) -> NDArray[Any]:
    index = channel.columns[0]
    values = table.values(index)
    if channel.symbols is not None:
        codes = Column("", channel.symbols, None).encode(table.columns[index]).astype(np.int64)
        strange = (codes < 0) & ~is_missing(values)
        tell_of_unseen(values, codes < 0, channel.symbols, table.labels[index])
        return np.where(strange, len(channel.symbols), codes)
    family = family_named(channel.kind)
    numbers = [as_numbers(table.values(i), table.labels[i]) for i in channel.columns]
    for i, column in zip(channel.columns, numbers, strict=True):
        family.check(column, table.labels[i])
    if family.reads == "counts":
        return np.where(np.isnan(numbers[0]), -1, numbers[0]).astype(np.int64)
    return np.column_stack(numbers)


def arrange(
    observations: Sequence[NDArray[Any]], lengths: NDArray[np.int64], place: NDArray[np.int64], n_tasks: int
) -> Arranged:
    """Lay sequences out task by task, those of a task in the order in which they came; ``place`` is each one's task.

    Examples
    --------
    >>> arranged = arrange((np.array([5, 6, 7]),), np.array([2, 1]), np.array([1, 0]), 2)
    >>> arranged.sequences.observations[0].tolist(), arranged.sequences.bounds.tolist(), arranged.steps.tolist()
    ([7, 5, 6], [0, 1, 3], [2, 0, 1])
    """
    origin = np.argsort(place, kind="stable")
    first = np.append(0, np.cumsum(lengths))
    bounds = np.append(0, np.cumsum(lengths[origin]))
    # Where a step was: as far from the first of its sequence there as here.
    steps = np.arange(bounds[-1]) + np.repeat(first[origin] - bounds[:-1], lengths[origin])
    task_bounds = np.append(0, np.cumsum(np.bincount(place, minlength=n_tasks)))
    laid_out = tuple(np.ascontiguousarray(channel[steps]) for channel in observations)
    return Arranged(Sequences(laid_out, bounds, task_bounds), origin, steps)
