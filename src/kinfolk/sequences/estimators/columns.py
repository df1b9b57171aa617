"""Which columns of a training table are symbols, counts or numbers, and which symbols there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kinfolk.sequences.answers.layout import Channel, Layout
from kinfolk.sequences.model.emissions.emission import Family
from kinfolk.sequences.model.emissions.families import FAMILIES, family_named, kind_named
from kinfolk.tasks.columns import distinct, learn_schema, used_categories
from kinfolk.tasks.schema import as_numbers, encode, is_number
from kinfolk.tasks.table import Coded, Table, is_missing
from kinfolk.tasks.training import Arrival

# So many symbols of a channel fit; more are hardly symbols.
_MAX_SYMBOLS = 65_536


def learn_layout(arrival: Arrival, flat: bool, emission: Any, symbols: Any = None) -> Layout:
    """Settle which columns are symbols and which are numbers, and which symbols there are.

    Parameters
    ----------
    arrival : Arrival
        The training table.
    flat : bool
        Whether its one column came without a table around it.
    emission : str or sequence of str
        "auto", one kind for all columns, or a kind for each, of those in `families`. Columns of numbers of the same
        kind make one channel, every column of symbols or counts one of its own.
    symbols : sequence, or mapping from columns to sequences, optional
        All symbols that there can be, where training may not have them all.
    """
    table, declared = arrival.table, arrival.declared
    kinds = _kinds(table, emission, declared)
    given = _given_symbols(symbols, table, kinds)
    channels = []
    for kind in dict.fromkeys(kinds):
        family, columns = family_named(kind), [index for index, own in enumerate(kinds) if own == kind]
        for index in columns:
            _check_column(table, index, kind, family)
        if family.reads == "symbols":
            channels += [
                Channel(kind, (index,), _symbols(table, index, given.get(index), declared.get(table.places[index])))
                for index in columns
            ]
        elif family.reads == "counts":
            channels += [Channel(kind, (index,)) for index in columns]
        else:
            channels.append(Channel(kind, tuple(columns)))
    names = None if table.names is None else tuple(table.names)
    return Layout(names, len(table.columns), flat, tuple(channels))


def _kinds(table: Table, emission: Any, declared: Mapping[int, Any]) -> list[str]:
    """The kind of every column."""
    n_columns = len(table.columns)
    if isinstance(emission, str) and emission == "auto":
        schema = learn_schema(table, None, "auto", 1, declared, "gaussian")
        return ["categorical" if column.number is None else "gaussian" for column in schema.columns]
    known = ", ".join(f'"{kind}"' for kind in FAMILIES)
    wanted = [emission] * n_columns if isinstance(emission, str) else emission
    if not isinstance(wanted, list | tuple) or any(kind_named(kind) is None for kind in wanted):
        raise ValueError(f'emission={emission!r}: give "auto", one of {known}, or a list of these, one a column')
    if len(wanted) != n_columns:
        raise ValueError(f"emission names {len(wanted)} kinds for {n_columns} columns: one for each is needed")
    return list(wanted)


def _check_column(table: Table, index: int, kind: str, family: type[Family]) -> None:
    values, label = table.values(index), table.labels[index]
    missing = is_missing(values)
    if missing.all():
        raise ValueError(f"{label} has no value at all: leave it out, or give some")
    if family.reads == "symbols":
        return
    if values.dtype == object:
        strange = ~missing
        if family.takes_booleans:
            strange &= np.array([not isinstance(value, bool | np.bool_) for value in values.tolist()])
        if strange.any():
            # Where a file's column has text, its numbers are text, too: what does not read as one is at fault.
            unreadable = strange & np.array([not is_number(value) for value in values.tolist()])
            row = int(np.argmax(unreadable if unreadable.any() else strange))
            raise ValueError(f"{label}, row {row}: {values[row]!r} is no number, which emission={kind!r} needs")
    family.check(as_numbers(values, label), label)


def _given_symbols(symbols: Any, table: Table, kinds: list[str]) -> dict[int, tuple[Any, ...]]:
    """Symbols that the user named, by the places of their columns."""
    if symbols is None:
        return {}
    if isinstance(symbols, Mapping):
        named = {table.position(column): tuple(values) for column, values in symbols.items()}
    elif isinstance(symbols, str) or not hasattr(symbols, "__iter__"):
        raise ValueError(f"symbols={symbols!r}: a list of symbols, or a mapping from columns to lists, is needed")
    else:
        named = dict.fromkeys(
            [i for i, kind in enumerate(kinds) if family_named(kind).reads == "symbols"], tuple(symbols)
        )
    for index, values in named.items():
        if family_named(kinds[index]).reads != "symbols":
            raise ValueError(f"symbols names {table.labels[index]}, which holds numbers of kind {kinds[index]!r}")
        if not values or len(set(values)) < len(values):
            raise ValueError(f"symbols of {table.labels[index]} must be different from each other, and at least one")
    return named


def _symbols(
    table: Table, index: int, given: tuple[Any, ...] | None, declared: Sequence[Any] | None
) -> tuple[Any, ...]:
    """Symbols of a column: those that the user or its frame names, and beyond them none; or those that it has."""
    held, label = table.columns[index], table.labels[index]
    if given is None and declared is None:
        found = used_categories(held) if isinstance(held, Coded) else distinct(held, label)
    else:
        known = given if given is not None else declared
        found = tuple(value.item() if isinstance(value, np.generic) else value for value in known or ())
    if len(found) > _MAX_SYMBOLS:
        raise ValueError(f"{label} has {len(found):,} different symbols: at most {_MAX_SYMBOLS:,} fit")
    if given is not None:
        values = table.values(index)
        strange = (encode(values, found) < 0) & ~is_missing(values)
        if strange.any():
            row = int(np.argmax(strange))
            raise ValueError(f"{label}, row {row}: {values[row]!r} is not among the symbols that were named")
    return found
