"""Page headers of Parquet files, looked at before polars believes them.

A column of a Parquet file is a row of pages, each behind a header that says how many values it holds. A header that
gives a negative number makes polars ask for as much memory as that number is without its sign, and its process ends,
which no Python code can catch. The headers are few and small, so all of them are read here first. They and the footer
that tells where the columns begin are structs in Thrift's compact protocol: fields of rising numbers, each with its
type.

References
----------
Apache Parquet, file format and ``parquet.thrift``; Apache Thrift, compact protocol.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

_MAGIC = b"PAR1"
_TRUE, _FALSE, _BYTE, _LAST_NUMBER, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 6, 7, 8, 9, 10, 12
# No struct of a Parquet file is nested deeper than this.
_DEEPEST = 16
_ROW_GROUPS, _COLUMNS, _ABOUT = 4, 1, 3
_N_VALUES, _N_BYTES, _DATA, _DICTIONARY = 5, 7, 9, 11
_PAGE_BYTES = 3
# The headers of both versions of data pages, and of a dictionary.
_DATA_HEADERS, _DICTIONARY_HEADER = (5, 8), 7


class Damaged(ValueError):
    """Bytes that are not what they should be."""


class _Column(NamedTuple):
    """Where the pages of a column in a group of rows begin and end, and how many values they hold."""

    first: int
    end: int
    n_values: int


def check_pages(path: Path) -> None:
    """Refuse a Parquet file with a page header that cannot be right; what is no Parquet file is left to polars.

    Raises
    ------
    Damaged
        With what is wrong, as the end of a sentence.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        if size < 12:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if data[-4:] != _MAGIC:
                return
            for number, column in enumerate(_columns(data, size)):
                _check_column(data, number, column)


def _columns(data: mmap.mmap, size: int) -> Iterator[_Column]:
    """The columns of all groups of rows, as the footer tells of them."""
    start = size - 8 - struct.unpack("<I", data[-8:-4])[0]
    if start < 0:
        raise Damaged("its footer is longer than the file")
    footer, _ = _read_struct(data[start : size - 8], 0)
    for group in _structs(footer.get(_ROW_GROUPS, ())):
        for chunk in _structs(group.get(_COLUMNS, ())):
            about = chunk.get(_ABOUT)
            if not isinstance(about, dict):
                continue
            n_values, n_bytes, data_page = (about.get(field) for field in (_N_VALUES, _N_BYTES, _DATA))
            if not (isinstance(n_values, int) and isinstance(n_bytes, int) and isinstance(data_page, int)):
                raise Damaged("its footer does not say where a column begins")
            dictionary = about.get(_DICTIONARY)
            # Some writers give 0 where there is no dictionary.
            first = dictionary if isinstance(dictionary, int) and 0 < dictionary < data_page else data_page
            if not 0 <= first <= first + n_bytes <= size:
                raise Damaged("its footer places a column outside the file")
            yield _Column(first, first + n_bytes, n_values)


def _check_column(data: mmap.mmap, number: int, column: _Column) -> None:
    at, n_seen = column.first, 0
    while at < column.end and n_seen < column.n_values:
        header, at = _read_struct(data, at)
        n_bytes = header.get(_PAGE_BYTES)
        if not isinstance(n_bytes, int) or not 0 <= n_bytes <= column.end - at:
            raise Damaged(f"a page of column chunk {number} is longer than its column")
        for field in (*_DATA_HEADERS, _DICTIONARY_HEADER):
            told = header.get(field, {1: 0})
            if not isinstance(told, dict) or any(isinstance(value, int) and value < 0 for value in told.values()):
                raise Damaged(f"a page header of column chunk {number} holds a negative number")
            n_values = told.get(1)
            if not isinstance(n_values, int):
                raise Damaged(f"a page header of column chunk {number} does not say how many values follow")
            n_seen += n_values if field in _DATA_HEADERS else 0
        if n_seen > column.n_values:
            raise Damaged(f"pages of column chunk {number} say that they hold more than its {column.n_values:,} values")
        at += n_bytes


def _structs(values: Any) -> Sequence[dict[int, Any]]:
    if not isinstance(values, list | tuple) or not all(isinstance(value, dict) for value in values):
        raise Damaged("its footer is damaged")
    return values


def _read_number(data: Any, at: int) -> tuple[int, int]:
    """A whole number without a sign, seven bits a byte, and the place behind it."""
    value = shift = 0
    while shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise Damaged("a number in it is too long")


def _read_struct(data: Any, at: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """The fields of a struct by their numbers, and the place behind it."""
    if depth > _DEEPEST:
        raise Damaged("a struct in it is nested too deep")
    fields: dict[int, Any] = {}
    field = 0
    try:
        while head := data[at]:
            at += 1
            if head >> 4:
                field += head >> 4
            else:
                coded, at = _read_number(data, at)
                field = coded >> 1 ^ -(coded & 1)
            kind = head & 15
            if kind in (_TRUE, _FALSE):
                fields[field] = kind == _TRUE
            else:
                fields[field], at = _read_value(data, at, kind, depth)
    except IndexError:
        raise Damaged("a struct in it does not end") from None
    return fields, at + 1


def _read_value(data: Any, at: int, kind: int, depth: int) -> tuple[Any, int]:
    """A number, a list of what is in it, or None for what is of no use here, and the place behind it."""
    if _BYTE < kind <= _LAST_NUMBER:
        coded, at = _read_number(data, at)
        return coded >> 1 ^ -(coded & 1), at
    if kind == _BINARY:
        length, at = _read_number(data, at)
        return None, at + length
    if kind == _STRUCT:
        return _read_struct(data, at, depth + 1)
    if kind in (_LIST, _SET):
        head, at = data[at], at + 1
        length, within = head >> 4, head & 15
        if length == 15:
            length, at = _read_number(data, at)
        if length > len(data) - at:
            raise Damaged("a list in it is longer than the file")
        values = []
        for _ in range(length):
            value, at = _read_value(data, at, within, depth + 1)
            values.append(value)
        return values, at
    if kind in (_TRUE, _FALSE, _BYTE, _DOUBLE):
        return None, at + (8 if kind == _DOUBLE else 1)
    raise Damaged(f"a field in it is of type {kind}, which there is not")
