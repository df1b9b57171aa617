"""Through this door a user's sequences come in, checked once: a table, the lengths of its sequences, and their tasks.

Only numpy is imported here: a saved model predicts without anything else installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.sequences.model.sequences import Sequences
from kinfolk.tasks.numbers import as_numbers, is_count
from kinfolk.tasks.schema import Column, encode_column, learn_schema
from kinfolk.tasks.table import Table, declared_categories, read_table
from kinfolk.tasks.values import as_column, as_ids, check_finite, distinct, encode, is_missing, plain_column

KINDS = ("categorical", "gaussian", "gaussian-full", "poisson")
# What the task is called where none was named.
ONE_TASK = 0
# So many symbols of a channel fit; more are hardly symbols.
_MAX_SYMBOLS = 65_536


class Arrival(NamedTuple):
    """A user's rows, the lengths of the sequences that they are, and each sequence's task (None where none came)."""

    table: Table
    lengths: NDArray[np.int64]
    task: NDArray[Any] | None
    is_flat: bool


class Channel(NamedTuple):
    """Columns that are emitted together, how, and of symbols which there are."""

    kind: str
    columns: tuple[int, ...]
    symbols: tuple[Any, ...] | None = None


class Layout(NamedTuple):
    """What a model remembers of a table: its columns and the channels that they make.

    ``is_flat`` says that observations came as one column without a table around it, and go back as such.
    """

    names: tuple[str, ...] | None
    n_columns: int
    is_flat: bool
    channels: tuple[Channel, ...]

    def observations(self, table: Table) -> tuple[NDArray[Any], ...]:
        """Every channel's steps: numbers, NaN where missing; or counts or codes, −1 where missing.

        A symbol that is not known has the code past the last.
        """
        if len(table.columns) != self.n_columns:
            width = len(table.columns)
            raise ValueError(f"X has {width} features, but the model is expecting {self.n_columns} features as input")
        for given, fitted in zip(table.names or (), self.names or (), strict=False):
            if given != fitted:
                raise ValueError(f"column {given!r} stands where the model was fitted to column {fitted!r}")
        for index, values in enumerate(table.columns):
            check_finite(values, table.label(index))
        return tuple(_channel_steps(table, channel) for channel in self.channels)

    def values(self, observations: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Coded steps as the user's own: (steps,) where the model was fitted to one flat column, else a table."""
        columns: list[Any] = [None] * self.n_columns
        for channel, steps in zip(self.channels, observations, strict=True):
            if channel.kind == "poisson":
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


def receive(X: Any, lengths: Any, task: Any) -> Arrival:
    """Read a table of steps, the lengths of its sequences, and a task for each of them.

    Examples
    --------
    >>> arrival = receive(["a", "b", "b", "a"], [3, 1], ["ann", "bob"])
    >>> arrival.lengths.tolist(), arrival.task.tolist(), arrival.is_flat
    ([3, 1], ['ann', 'bob'], True)
    """
    is_flat = _is_flat(X)
    table = _flat_table(X) if is_flat else read_table(X)
    if not table.columns:
        raise ValueError(f"Found array with 0 feature(s) (shape=({table.n_rows}, 0)) while a minimum of 1 is required.")
    if table.n_rows == 0:
        raise ValueError(
            f"Found array with 0 sample(s) (shape=(0, {len(table.columns)})) while a minimum of 1 is required."
        )
    steps = check_lengths(lengths, table.n_rows)
    return Arrival(table, steps, _tasks(task, len(steps), table.n_rows), is_flat)


def _is_flat(X: Any) -> bool:
    if isinstance(X, list | tuple):
        return not X or not isinstance(X[0], list | tuple | np.ndarray)
    # Of the type, since a lazy frame would have to find out its columns.
    return not hasattr(type(X), "columns") and not hasattr(X, "toarray") and len(getattr(X, "shape", ())) == 1


def _flat_table(X: Any) -> Table:
    column = plain_column(as_column(X, "X"), "X")
    return Table(None, [column], [0], 1, len(column))


def check_lengths(lengths: Any, n_rows: int) -> NDArray[np.int64]:
    """Lengths of the sequences: whole numbers from 1 that add up to the number of rows; one sequence if not given."""
    if lengths is None:
        return np.array([n_rows], dtype=np.int64)
    given = np.asarray(as_column(lengths, "lengths"))
    numbers = plain_column(given, "lengths") if len(given) else given
    if numbers.dtype.kind not in "iuf" or not np.isfinite(numbers).all() or (numbers != np.floor(numbers)).any():
        raise ValueError(f"lengths={lengths!r}: a whole number for each sequence is needed")
    too_short = numbers < 1
    if too_short.any():
        which = int(np.argmax(too_short))
        raise ValueError(f"sequence {which} has length {int(numbers[which])}: every sequence needs at least one step")
    total = int(numbers.sum())
    if total != n_rows:
        raise ValueError(f"lengths add up to {total} steps, but X has {n_rows} rows: they must be the same")
    return numbers.astype(np.int64)


def _tasks(task: Any, n_sequences: int, n_rows: int) -> NDArray[Any] | None:
    if task is None:
        return None
    tasks = plain_column(as_column(task, "task"), "task")
    if len(tasks) != n_sequences:
        hint = ": give one for each sequence, not for each row" if len(tasks) == n_rows else ""
        raise ValueError(f"task has {len(tasks)} entries for {n_sequences} sequences{hint}")
    missing = is_missing(tasks)
    if missing.any():
        raise ValueError(f"task of sequence {int(np.argmax(missing))} is missing: every sequence needs one")
    check_finite(tasks, "task")
    if tasks.dtype.kind == "f" and (tasks == np.floor(tasks)).all() and (np.abs(tasks) < 2**53).all():
        return tasks.astype(np.int64)  # so that 3.0 and 3 name the same task
    return tasks


def learn_layout(X: Any, arrival: Arrival, emission: Any, symbols: Any = None) -> Layout:
    """Settle which columns are symbols and which are numbers, and which symbols there are.

    Parameters
    ----------
    X, arrival
        The table as the user gave it, and as it was read.
    emission : str or sequence of str
        "auto", one kind for all columns, or a kind for each: "categorical", "gaussian", "gaussian-full", "poisson".
        Gaussian columns of the same kind make one channel, every column of symbols or counts one of its own.
    symbols : sequence, or mapping from columns to sequences, optional
        All symbols that there can be, where training may not have them all.
    """
    table = arrival.table
    kinds = _kinds(X, table, emission)
    declared = {} if arrival.is_flat else declared_categories(X)
    given = _given_symbols(symbols, table, kinds)
    channels = []
    for kind in dict.fromkeys(kinds):
        columns = [index for index, own in enumerate(kinds) if own == kind]
        for index in columns:
            _check_column(table, index, kind)
        if kind == "categorical":
            channels += [
                Channel(kind, (index,), _symbols(table, index, given.get(index), declared.get(index)))
                for index in columns
            ]
        elif kind == "poisson":
            channels += [Channel(kind, (index,)) for index in columns]
        else:
            channels.append(Channel(kind, tuple(columns)))
    names = None if table.names is None else tuple(table.names)
    return Layout(names, len(table.columns), arrival.is_flat, tuple(channels))


def _kinds(X: Any, table: Table, emission: Any) -> list[str]:
    """The kind of every column."""
    n_columns = len(table.columns)
    if isinstance(emission, str) and emission == "auto":
        schema = learn_schema(table, None, "auto", 1, {} if _is_flat(X) else declared_categories(X), "gaussian")
        return ["categorical" if column.number is None else "gaussian" for column in schema.columns]
    known = ", ".join(f'"{kind}"' for kind in KINDS)
    wanted = [emission] * n_columns if isinstance(emission, str) else emission
    if not isinstance(wanted, list | tuple) or not all(isinstance(kind, str) and kind in KINDS for kind in wanted):
        raise ValueError(f'emission={emission!r}: give "auto", one of {known}, or a list of these, one a column')
    if len(wanted) != n_columns:
        raise ValueError(f"emission names {len(wanted)} kinds for {n_columns} columns: one for each is needed")
    return list(wanted)


def _check_column(table: Table, index: int, kind: str) -> None:
    values, label = table.columns[index], table.label(index)
    check_finite(values, label)
    missing = is_missing(values)
    if missing.all():
        raise ValueError(f"{label} has no value at all: leave it out, or give some")
    if kind == "categorical":
        return
    if values.dtype == object:
        row = int(np.argmax(~missing))
        raise ValueError(f"{label}, row {row}: {values[row]!r} is no number, which emission={kind!r} needs")
    if kind == "poisson":
        _check_counts(values.astype(np.float64), label)


def _check_counts(numbers: NDArray[np.float64], label: str) -> None:
    wrong = ~(is_count(numbers) | np.isnan(numbers))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{label}, row {row}: {numbers[row]:g} is not a count, which is a whole number from 0")


def _given_symbols(symbols: Any, table: Table, kinds: list[str]) -> dict[int, tuple[Any, ...]]:
    """Symbols that the user named, by the places of their columns."""
    if symbols is None:
        return {}
    if isinstance(symbols, Mapping):
        named = {table.position(column): tuple(values) for column, values in symbols.items()}
    elif isinstance(symbols, str) or not hasattr(symbols, "__iter__"):
        raise ValueError(f"symbols={symbols!r}: a list of symbols, or a mapping from columns to lists, is needed")
    else:
        named = dict.fromkeys([i for i, kind in enumerate(kinds) if kind == "categorical"], tuple(symbols))
    for index, values in named.items():
        if kinds[index] != "categorical":
            raise ValueError(f"symbols names {table.label(index)}, which holds numbers of kind {kinds[index]!r}")
        if not values or len(set(values)) < len(values):
            raise ValueError(f"symbols of {table.label(index)} must be different from each other, and at least one")
    return named


def _symbols(
    table: Table, index: int, given: tuple[Any, ...] | None, declared: Sequence[Any] | None
) -> tuple[Any, ...]:
    """Symbols of a column: those that the user or its frame names, and beyond them none; or those that it has."""
    values, label, coded = table.columns[index], table.label(index), table.codes_of(index)
    if given is None and declared is None:
        found = distinct(values, label) if coded is None else tuple(sorted(coded.used()))
    else:
        known = given if given is not None else declared
        found = tuple(value.item() if isinstance(value, np.generic) else value for value in known or ())
    if len(found) > _MAX_SYMBOLS:
        raise ValueError(f"{label} has {len(found):,} different symbols: at most {_MAX_SYMBOLS:,} fit")
    if given is not None:
        strange = (encode(values, found) < 0) & ~is_missing(values)
        if strange.any():
            row = int(np.argmax(strange))
            raise ValueError(f"{label}, row {row}: {values[row]!r} is not among the symbols that were named")
    return found


def _channel_steps(table: Table, channel: Channel) -> NDArray[Any]:
    index = channel.columns[0]
    values = table.columns[index]
    if channel.kind == "poisson":
        counts = as_numbers(values).astype(np.float64)
        _check_counts(counts, table.label(index))
        return np.where(np.isnan(counts), -1, counts).astype(np.int64)
    if channel.symbols is None:
        return np.column_stack([as_numbers(table.columns[i]).astype(np.float64) for i in channel.columns])
    codes = encode_column(Column("", channel.symbols, None), values, table.codes_of(index)).astype(np.int64)
    strange = (codes < 0) & ~is_missing(values)
    return np.where(strange, len(channel.symbols), codes)


def arrange(observations: Sequence[NDArray[Any]], lengths: NDArray[np.int64], place: NDArray[np.int64]) -> Arranged:
    """Lay sequences out task by task, those of a task in the order in which they came; ``place`` is each one's task.

    Examples
    --------
    >>> arranged = arrange((np.array([5, 6, 7]),), np.array([2, 1]), np.array([1, 0]))
    >>> arranged.sequences.observations[0].tolist(), arranged.sequences.bounds.tolist(), arranged.steps.tolist()
    ([7, 5, 6], [0, 1, 3], [2, 0, 1])
    """
    origin = np.argsort(place, kind="stable")
    first = np.concatenate([[0], np.cumsum(lengths)])
    bounds = np.concatenate([[0], np.cumsum(lengths[origin])])
    # Where a step was: as far from the first of its sequence there as here.
    steps = np.arange(bounds[-1]) + np.repeat(first[origin] - bounds[:-1], lengths[origin])
    sizes = np.bincount(place, minlength=int(place.max()) + 1)
    task_bounds = np.concatenate([[0], np.cumsum(sizes)])
    laid_out = tuple(np.ascontiguousarray(channel[steps]) for channel in observations)
    return Arranged(Sequences(laid_out, bounds, task_bounds), origin, steps)


def place_tasks(arrival: Arrival) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The distinct tasks of training sequences, sorted, and each sequence's place among them."""
    if arrival.task is None:
        return np.array([ONE_TASK]), np.zeros(len(arrival.lengths), dtype=np.int64)
    tasks = as_ids(list(distinct(arrival.task, "task", limit=1 << 30)))
    return tasks, encode(arrival.task, tasks.tolist()).astype(np.int64)


def known_places(arrival: Arrival, tasks: NDArray[Any]) -> NDArray[np.int64]:
    """Each new sequence's place among the tasks of a model, −1 for a task that it has not met."""
    if arrival.task is not None:
        return encode(arrival.task, tasks.tolist()).astype(np.int64)
    if len(tasks) > 1:
        raise ValueError(f"the model was fitted to {len(tasks)} tasks: say which one each sequence is of, task=...")
    return np.zeros(len(arrival.lengths), dtype=np.int64)
