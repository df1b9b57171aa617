"""Bayes nets in files of the interchange format BIF, read and written to the last bit of their probabilities.

Names are whatever stands between commas, so that states such as ``<5`` or ``Asy/Patch`` survive; lists separated by
blanks, quoted names, comments, properties, ``table`` and ``default`` are read too. State names come back as text.
"""

from __future__ import annotations

import gzip
import io
import math
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.files import whole_file
from kinfolk.networks.model.network import Network, make_network

# A few words of a hostile file can ask for any amount of memory; real networks stay far below these.
MOST_BYTES = 2**28
MOST_CELLS = 10_000_000
MOST_VARIABLES = 10_000
MOST_PARENTS = 30

# Possessive quantifiers throughout: no text, however damaged, makes these patterns try twice.
_COMMENT = re.compile(r'"[^"]*+"|//[^\n]*+|/\*.*?(?:\*/|\Z)', re.DOTALL)
_WORD = re.compile(r'"[^"]*+"|\||[^\s,"|]++')
_BETWEEN_COMMAS = re.compile(r'(?:[^,"]++|"[^"]*+")++')
_END = re.compile(r"\s*+\Z")
_CLOSE = re.compile(r"\s*+\}(?:\s*+;)?")
_PROPERTY = re.compile(r'\s*+property\b(?:[^;"]++|"[^"]*+")*+;')
_NETWORK = re.compile(r'\s*+network\b(?:[^{}"]++|"[^"]*+")*+\{')
_VARIABLE = re.compile(r'\s*+variable\s*+("[^"]*+"|[^\s{}()\[\],;|"]++)\s*+\{')
_TYPE = re.compile(r'\s*+type\s++discrete\s*+\[\s*+([0-9]{1,9})\s*+\]\s*+\{((?:[^{}"]++|"[^"]*+")*+)\}(?:\s*+;)?')
_PROBABILITY = re.compile(r'\s*+probability\s*+\(((?:[^(){}"]++|"[^"]*+")*+)\)\s*+\{')
_ENTRY = re.compile(r'\s*+(?:(table|default)\b|\(((?:[^(){};"]++|"[^"]*+")*+)\))([^(){};"]*+);')
_PLAIN = re.compile(r'(?!.*?(?://|/\*))[^\s{}()\[\],;|"]+')


class _Entry(NamedTuple):
    kind: str  # "table", "default", or "" for the probabilities under one configuration of the parents
    configuration: str
    numbers: str
    place: int


class _Block(NamedTuple):
    child: str
    parents: list[str]
    entries: list[_Entry]
    place: int


class _Cursor:
    """Reads a text from left to right, a pattern at a time, and says where it stopped."""

    def __init__(self, text: str, source: str) -> None:
        self.text, self.source, self.place = text, source, 0

    def meets(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.place)
        if match is not None:
            self.place = match.end()
        return match

    def take(self, pattern: re.Pattern[str], wanted: str) -> re.Match[str]:
        match = self.meets(pattern)
        if match is None:
            found = self.text[self.place :].split(None, 1)[:1]
            raise self.wrong(f"{wanted} is needed, {repr(found[0][:40]) if found else 'the end of the file'} is there")
        return match

    def wrong(self, sentence: str, place: int | None = None) -> ValueError:
        rest = self.text[self.place if place is None else place :].lstrip()
        line = self.text.count("\n", 0, len(self.text) - len(rest)) + 1
        return ValueError(f"{self.source}, line {line}: {sentence}")


def read_bif(path: str | os.PathLike[str]) -> Network:
    """Read a Bayes net from a BIF file, plain or compressed with gzip.

    Parameters
    ----------
    path : str or path-like
        The file, in UTF-8.

    Returns
    -------
    Network
        Its states are text, whatever they looked like where the file was written.

    Raises
    ------
    ValueError
        Where the file is cut, damaged or contradicts itself; the sentence names the file, the line and the variable.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "rain.bif.gz"
    >>> rain = make_network(["rain"], [["<5", "5-12", "12+"]], [[]], [np.array([0.7, 0.2, 0.1])])
    >>> write_bif(rain, path)
    >>> read_bif(path).states
    (('<5', '5-12', '12+'),)
    """
    source = os.fspath(path)
    with Path(path).open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    try:
        if content.startswith(b"\x1f\x8b"):
            with gzip.open(io.BytesIO(content)) as packed:
                content = packed.read(MOST_BYTES + 1)
        text = content.decode("utf-8")
    except (EOFError, OSError, zlib.error) as damage:
        raise ValueError(f"{source} is cut or damaged: it cannot be unpacked ({damage})") from None
    except UnicodeDecodeError as damage:
        raise ValueError(f"{source} is not a BIF file: byte {damage.start} is not UTF-8 text") from None
    if len(content) > MOST_BYTES:
        raise ValueError(f"{source} holds more than {MOST_BYTES // 2**20} MiB, which is too much for a Bayes net")
    return parse_bif(text, source)


def parse_bif(text: str, source: str = "the BIF text") -> Network:
    """Make a Bayes net of the text of a BIF file; `source` is how errors call it.

    Examples
    --------
    >>> parse_bif('''
    ... variable rain { type discrete [2] { no, yes }; }
    ... variable wet { type discrete [2] { no, yes }; }
    ... probability ( rain ) { table 0.8, 0.2; }
    ... probability ( wet | rain ) { (no) 0.9, 0.1; (yes) 0.05, 0.95; }
    ... ''').tables[1].tolist()
    [[0.9, 0.1], [0.05, 0.95]]
    """
    if "//" in text or "/*" in text:
        text = _COMMENT.sub(lambda m: m[0] if m[0].startswith('"') else "\n" * m[0].count("\n") or " ", text)
    cursor = _Cursor(text, source)
    states: dict[str, list[str]] = {}
    blocks: dict[str, _Block] = {}
    while not cursor.meets(_END):
        if cursor.meets(_NETWORK):
            while cursor.meets(_PROPERTY):
                pass
            cursor.take(_CLOSE, "'}' at the end of the network's properties")
        elif declared := cursor.meets(_VARIABLE):
            name = _bare(declared[1])
            if name in states:
                raise cursor.wrong(f"variable {name!r} is declared twice")
            states[name] = _read_states(cursor, name)
        elif header := cursor.meets(_PROBABILITY):
            block = _read_block(cursor, header)
            if block.child in blocks:
                raise cursor.wrong(f"the probabilities of variable {block.child!r} are given twice", block.place)
            blocks[block.child] = block
        else:
            cursor.take(_PROPERTY, "a block 'network', 'variable' or 'probability' that opens with '{'")
    return _put_together(cursor, states, blocks)


def _bare(name: str) -> str:
    return name[1:-1] if name.startswith('"') else name


def _names(text: str, wanted: int) -> list[str]:
    """Split a list of names on commas and blanks; where that gives too many, blanks are part of the names."""
    words = _WORD.findall(text)
    if len(words) == wanted:
        return [_bare(word) for word in words]
    return [_bare(piece.strip()) for piece in _BETWEEN_COMMAS.findall(text)]


def _read_states(cursor: _Cursor, variable: str) -> list[str]:
    while cursor.meets(_PROPERTY):
        pass
    declared = cursor.take(_TYPE, f"variable {variable!r}: 'type discrete [ k ] {{ its k states }};'")
    states = _names(declared[2], int(declared[1]))
    if len(states) != int(declared[1]) or not states:
        raise cursor.wrong(f"variable {variable!r} declares {int(declared[1])} states and lists {len(states)}")
    if twice := _twice(states):
        raise cursor.wrong(f"variable {variable!r} lists its state {twice[0]!r} twice")
    while cursor.meets(_PROPERTY):
        pass
    cursor.take(_CLOSE, f"variable {variable!r}: '}}' at the end of its declaration")
    return states


def _read_block(cursor: _Cursor, header: re.Match[str]) -> _Block:
    child, *rest = [word if word == "|" else _bare(word) for word in _WORD.findall(header[1])] or [""]
    # The oldest files list child and parents without a bar.
    parents = rest[1:] if rest[:1] == ["|"] else rest
    entries = []
    while not cursor.meets(_CLOSE):
        if cursor.meets(_PROPERTY):
            continue
        place = cursor.place
        entry = cursor.take(_ENTRY, f"variable {child!r}: a row of probabilities that ends with ';', or '}}',")
        entries.append(_Entry(entry[1] or "", entry[2] or "", entry[3], place))
    return _Block(child, parents, entries, header.start(1))


def _put_together(cursor: _Cursor, states: dict[str, list[str]], blocks: dict[str, _Block]) -> Network:
    if not states:
        raise cursor.wrong("no variable is declared")
    if len(states) > MOST_VARIABLES:
        raise cursor.wrong(f"{len(states)} variables are declared, and at most {MOST_VARIABLES} can be read")
    if missing := [name for name in states if name not in blocks]:
        raise cursor.wrong(f"the probabilities of variable {missing[0]!r} are missing")
    n_cells = 0
    for block in blocks.values():
        about = f"variable {block.child!r}"
        if unknown := [name for name in (block.child, *block.parents) if name not in states]:
            raise cursor.wrong(f"{about}: no variable {unknown[0]!r} is declared", block.place)
        if twice := _twice([block.child, *block.parents]):
            raise cursor.wrong(f"{about}: {twice[0]!r} stands twice among it and its parents", block.place)
        if len(block.parents) > MOST_PARENTS:
            raise cursor.wrong(
                f"{about} has {len(block.parents)} parents, at most {MOST_PARENTS} are read", block.place
            )
        n_cells += math.prod(len(states[name]) for name in (block.child, *block.parents))
        if n_cells > MOST_CELLS:
            raise cursor.wrong(f"{about} brings the tables to more than {MOST_CELLS} cells", block.place)
    places = {name: v for v, name in enumerate(states)}
    codes = {name: {state: code for code, state in enumerate(its)} for name, its in states.items()}
    parents, tables = [], []
    for name in states:
        its = [places[parent] for parent in blocks[name].parents]
        order = np.argsort(its, kind="stable")
        parents.append([its[i] for i in order])
        tables.append(np.ascontiguousarray(_read_table(cursor, blocks[name], codes).transpose(*order, len(its))))
    try:
        network = make_network(list(states), list(states.values()), parents, tables)
    except ValueError as wrong:
        raise ValueError(f"{cursor.source}: {wrong}") from None
    # Rows that sum to one but for rounding stay as they were written: scaling them again would move the last bit.
    rounded = [np.abs(table.sum(axis=-1, keepdims=True) - 1) <= 1e-12 for table in tables]
    kept = zip(rounded, tables, network.tables, strict=True)
    return network._replace(tables=tuple(np.where(*choice) for choice in kept))


def _read_table(cursor: _Cursor, block: _Block, codes: dict[str, dict[str, int]]) -> NDArray[np.float64]:
    """Probabilities of a block, one axis for each parent in the block's order, then the child's."""
    shape = tuple(len(codes[parent]) for parent in block.parents)
    n_rows, n_states = math.prod(shape), len(codes[block.child])
    # One row more than there are configurations of the parents: the last holds the default.
    table, given = np.zeros((n_rows + 1, n_states)), np.zeros(n_rows + 1, dtype=bool)
    for entry in block.entries:
        about = (
            f"variable {block.child!r}: {f'its {entry.kind}' if entry.kind else f'row {entry.configuration[:80]!r}'}"
        )
        rows = slice(n_rows) if entry.kind == "table" else slice(n_rows, n_rows + 1)
        if not entry.kind:
            names = _names(entry.configuration, len(shape))
            known = [name in codes[parent] for parent, name in zip(block.parents, names, strict=False)]
            if not len(names) == sum(known) == len(shape):
                raise cursor.wrong(f"{about} does not name a state of each of its parents", entry.place)
            at = [codes[parent][name] for parent, name in zip(block.parents, names, strict=True)]
            place = int(np.ravel_multi_index(at, shape)) if shape else 0
            rows = slice(place, place + 1)
        numbers = _read_numbers(entry.numbers)
        if numbers is None:
            raise cursor.wrong(f"{about} holds something that is not a probability", entry.place)
        if len(numbers) != table[rows].size:
            count = f"{len(numbers)} probabilities, and {table[rows].size} are needed"
            raise cursor.wrong(f"{about} holds {count}", entry.place)
        # In a whole table the child's state varies slowest and that of the last parent fastest.
        probabilities = numbers.reshape(n_states, -1).T
        totals = probabilities.sum(axis=1)
        off = totals[np.abs(totals - 1) >= 1e-3]
        if len(off):
            raise cursor.wrong(f"{about} holds probabilities that sum to {off[0]:.6g}, not to one", entry.place)
        if given[rows].any():
            raise cursor.wrong(f"{about} is given twice", entry.place)
        table[rows], given[rows] = probabilities, True
    absent = np.flatnonzero(~given[:-1])
    if len(absent) and not given[-1]:
        at = [int(i) for i in np.unravel_index(absent[0], shape)] if shape else []
        named = ", ".join(list(codes[parent])[code] for parent, code in zip(block.parents, at, strict=True))
        row = f"row {named[:80]!r} is" if shape else "its probabilities are"
        raise cursor.wrong(f"variable {block.child!r}: {row} missing", block.place)
    table[absent] = table[-1]
    return table[:-1].reshape(*shape, n_states)


def _read_numbers(text: str) -> NDArray[np.float64] | None:
    try:
        numbers = np.array([float(word) for word in text.replace(",", " ").split()], dtype=np.float64)
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() and (numbers >= 0).all() else None


def _twice(names: Sequence[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def write_bif(network: Network, path: str | os.PathLike[str], *, quote: bool = False) -> None:
    """Write a Bayes net to a BIF file, whole or not at all; compressed where the name ends in ``.gz``.

    Parameters
    ----------
    network : Network
        What to write. States that are not text are written as ``str`` shows them.
    path : str or path-like
        Where to.
    quote : bool, default=False
        Whether names that the format can hold only in quotes (with blanks, commas or brackets) are written so. Not
        all programs read them (pgmpy takes a quoted name with a blank for two), so they are refused unless asked for.

    Raises
    ------
    ValueError
        Where a name cannot be written, or two names become the same text.
    """
    text = bif_text(network, quote=quote).encode("utf-8")
    # Without a time stamp the same network gives the same bytes.
    with whole_file(path) as file:
        file.write(gzip.compress(text, mtime=0) if os.fspath(path).endswith(".gz") else text)


def bif_text(network: Network, *, quote: bool = False) -> str:
    """Text of a Bayes net in BIF; reading it gives back every bit of the probabilities.

    Examples
    --------
    >>> print(bif_text(make_network(["rain"], [["no", "yes"]], [[]], [np.array([0.8, 0.2])])), end="")
    network unknown {
    }
    variable rain {
      type discrete [ 2 ] { no, yes };
    }
    probability ( rain ) {
      table 0.8, 0.2;
    }
    """
    return "".join(_lines(network, quote))


def _lines(network: Network, quote: bool) -> Iterator[str]:
    variables = _written(network.variables, quote, "the network", "variable")
    states = [
        _written(states, quote, f"variable {name!r}", "state")
        for name, states in zip(network.variables, network.states, strict=True)
    ]
    yield "network unknown {\n}\n"
    for name, its in zip(variables, states, strict=True):
        yield f"variable {name} {{\n  type discrete [ {len(its)} ] {{ {', '.join(its)} }};\n}}\n"
    for v, (parents, table) in enumerate(zip(network.parents, network.tables, strict=True)):
        given = f" | {', '.join(variables[p] for p in parents)}" if parents else ""
        yield f"probability ( {variables[v]}{given} ) {{\n"
        for at in np.ndindex(*table.shape[:-1]):
            configuration = ", ".join(states[p][code] for p, code in zip(parents, at, strict=True))
            start = f"({configuration})" if parents else "table"
            yield f"  {start} {', '.join(map(repr, table[at].tolist()))};\n"
        yield "}\n"


def _written(names: Sequence[object], quote: bool, owner: str, kind: str) -> list[str]:
    """Names as they stand in a file, or one sentence about the first that cannot."""
    texts = [str(name) for name in names]
    if twice := _twice(texts):
        raise ValueError(f"{owner} cannot be written as BIF: two of its {kind}s read {twice[0]!r}")
    for text in texts:
        if not text.isprintable() or '"' in text:
            raise ValueError(
                f"{kind} {text!r} of {owner} cannot be written as BIF: a quote or control character is in it"
            )
        if not quote and not _PLAIN.fullmatch(text):
            raise ValueError(
                f"{kind} {text!r} of {owner} cannot be written as BIF without quotes, which some programs misread: "
                "rename it, or give quote=True"
            )
    return [text if _PLAIN.fullmatch(text) else f'"{text}"' for text in texts]
