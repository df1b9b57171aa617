"""Columns of gains, remembered: searches that pass the same families again do not count them again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.model.cases import Cases
from kinfolk.networks.model.families import Rule, family_gains
from kinfolk.networks.model.kernels import inner

# Most cells of a family's table (8 MB): noise in many bins would otherwise ask for tables that no memory holds.
MOST_CELLS = 1 << 20
_MEMORY = 128 * 2**20
_MOST_SLOTS = 1 << 13


class Columns(NamedTuple):
    """Gains of (task, child, parents), each in the one slot that its hash names; a newer column replaces an older.

    Memory is bounded whatever the search does. Tasks have slots of their own, so that threads may search different
    tasks. ``allowed[i, j]`` tells whether an arc i → j may ever be, ``most_parents`` how many parents a variable may
    have.
    """

    child: NDArray[np.int32]
    parents: NDArray[np.uint64]
    score: NDArray[np.float64]
    gains: NDArray[np.float64]
    allowed: NDArray[np.bool_]
    most_parents: int


def no_columns(cases: Cases, allowed: NDArray[np.bool_], most_parents: int) -> Columns:
    """Make room for columns of given cases under given constraints."""
    n_tasks, n = cases.n_tasks, cases.n_variables
    slots = 4 * n
    while slots < _MOST_SLOTS and 2 * slots * n * n_tasks * 8 <= _MEMORY:
        slots *= 2
    n_words = -(-n // 64)
    return Columns(
        child=np.full((n_tasks, slots), -1, dtype=np.int32),
        parents=np.zeros((n_tasks, slots, n_words), dtype=np.uint64),
        score=np.empty((n_tasks, slots)),
        gains=np.empty((n_tasks, slots, n)),
        allowed=allowed,
        most_parents=most_parents,
    )


@inner
def has(bits: NDArray[np.uint64], v: int) -> bool:
    """Tell whether a set of variables has one."""
    return bool((bits[v >> 6] >> np.uint64(v & 63)) & np.uint64(1))


@inner
def put(bits: NDArray[np.uint64], v: int) -> None:
    """Put a variable into a set."""
    bits[v >> 6] |= np.uint64(1) << np.uint64(v & 63)


@inner
def take(bits: NDArray[np.uint64], v: int) -> None:
    """Take a variable out of a set."""
    bits[v >> 6] &= ~(np.uint64(1) << np.uint64(v & 63))


@inner
def column(cases: Cases, rule: Rule, columns: Columns, task: int, child: int, parents: NDArray[np.uint64]) -> int:
    """Find the slot that holds a family's score and gains, counting only if it is not there already."""
    mix = np.uint64(child) * np.uint64(0x9E3779B97F4A7C15)
    for word in parents:
        mix = (mix ^ word) * np.uint64(0xBF58476D1CE4E5B9)
        mix ^= mix >> np.uint64(29)
    slot = int(mix % np.uint64(columns.child.shape[1]))
    if columns.child[task, slot] == child:
        same = True
        for w in range(len(parents)):
            if columns.parents[task, slot, w] != parents[w]:
                same = False
        if same:
            return slot
    n = len(cases.cards)
    places = np.empty(n, dtype=np.int64)
    candidates = np.empty(n, dtype=np.bool_)
    n_parents, n_cells = 0, float(cases.cards[child])
    for v in range(n):
        if has(parents, v):
            places[n_parents] = v
            n_parents += 1
            n_cells *= cases.cards[v]
    for v in range(n):
        fits = n_parents < columns.most_parents and n_cells * cases.cards[v] <= MOST_CELLS
        candidates[v] = fits and columns.allowed[v, child] and cases.present[task, v] and not has(parents, v)
    columns.child[task, slot] = child
    columns.parents[task, slot] = parents
    columns.score[task, slot] = family_gains(
        cases, rule, task, child, places[:n_parents], candidates, columns.gains[task, slot]
    )
    return slot
