"""Exact probability of rows with missing cells: variable elimination, many rows at once (Zhang and Poole, 1994).

The cells that a row shows cut its missing variables into parts that no table connects, and whatever has nothing
observed below it sums to one and is dropped. The probability of the row is the product of one factor per part,

    p(observed) = ∏_{families all observed} p(x_v | x_pa(v)) · ∏_parts Σ_{its variables} ∏_{its families} p(x_v | …),

so that rows are gathered by part rather than by their whole pattern of missing cells: a lone missing variable is summed
out once for every row that misses it among known neighbours. Sums are taken in log space, where nothing underflows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.model.network import Network, topological_order

# Most numbers in one intermediate factor: 64 MB.
LARGEST_FACTOR = 1 << 23

LogTables = tuple[NDArray[np.float64], ...]


class Part(NamedTuple):
    """Missing variables that the observed cells do not separate, and the rows in which they are missing so.

    Attributes
    ----------
    order : tuple of int
        The variables in the order in which they are summed out.
    families : tuple of int
        Variables whose tables mention one of them and count.
    cells : int
        How many numbers all intermediate factors of one row hold together.
    rows : ndarray of shape (n_rows_of_part,)
    """

    order: tuple[int, ...]
    families: tuple[int, ...]
    cells: int
    rows: NDArray[np.int64]

    def chunks(self, copies: int = 1) -> list[NDArray[np.int64]]:
        """The rows, in pieces whose intermediate factors together fit in memory."""
        most = max(1, LARGEST_FACTOR // (self.cells * copies))
        return [self.rows[start : start + most] for start in range(0, len(self.rows), most)]


class Step(NamedTuple):
    """A variable about to be summed out: log of all that mentions it, axes (row, the variable, those summed later)."""

    scope: tuple[int, ...]
    log_product: NDArray[np.float64]


def log_probability(network: Network, codes: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
    """Natural log of the probability of each row's observed cells, the missing ones summed out exactly.

    Parameters
    ----------
    network : Network
    codes : int array of shape (n_rows, n_variables)
        A code per variable; below zero where the cell is missing.

    Returns
    -------
    log_probability : ndarray of shape (n_rows,)
        −inf only for rows that the tables rule out.

    Raises
    ------
    ValueError
        If so many connected cells of one row are missing that their sum does not fit in memory.

    Examples
    --------
    >>> from kinfolk.networks.model.network import make_network
    >>> rain = np.array([0.8, 0.2])
    >>> wet = np.array([[0.9, 0.1], [0.05, 0.95]])
    >>> network = make_network(["rain", "wet"], [["no", "yes"]] * 2, [[], [0]], [rain, wet])
    >>> np.exp(log_probability(network, np.array([[-1, 1], [1, -1], [-1, -1]]))).round(3).tolist()
    [0.27, 0.2, 1.0]
    """
    missing = codes < 0
    if not missing.any():
        return network.log_probability(codes)
    log_tables = log_tables_of(network)
    total = log_probability_of_known_families(network, log_tables, codes)
    for part in find_parts(network, missing):
        for rows in part.chunks():
            total[rows] += eliminate(part, network, log_tables, codes[rows])[0]
    return total


def log_tables_of(network: Network) -> LogTables:
    """Natural logs of a network's tables, −inf where a table rules something out."""
    with np.errstate(divide="ignore"):
        return tuple(np.log(table) for table in network.tables)


def log_probability_of_known_families(
    network: Network, log_tables: LogTables, codes: NDArray[np.integer[Any]]
) -> NDArray[np.float64]:
    """Sum, for each row, the logs of the tables' cells whose variables are all observed."""
    total = np.zeros(len(codes))
    for v, parents in enumerate(network.parents):
        family = [*parents, v]
        known = np.flatnonzero((codes[:, family] >= 0).all(axis=1))
        total[known] += log_tables[v][tuple(codes[known, u] for u in family)]
    return total


def find_parts(
    network: Network, missing: NDArray[np.bool_], row_numbers: NDArray[np.int64] | None = None
) -> list[Part]:
    """Gather rows by the parts into which their observed cells cut the missing ones.

    Missing variables without an observed descendant are in no part: their tables sum to one. An error calls the rows
    by ``row_numbers``, or else 0, 1, ….
    """
    n = len(network.variables)
    # Sets of variables and of families are the bits of one integer: a row's parts are found without touching arrays.
    scopes = [sum(1 << u for u in (*parents, v)) for v, parents in enumerate(network.parents)]
    touching = [sum(1 << f for f in range(n) if scopes[f] >> v & 1) for v in range(n)]
    packed, first, which = np.unique(
        np.packbits(missing, axis=1, bitorder="little"), axis=0, return_index=True, return_inverse=True
    )
    patterns = missing[first]
    counted = patterns & ((~patterns).astype(np.float32) @ _descendants(network).T.astype(np.float32) > 0)
    idle = np.packbits(patterns & ~counted, axis=1, bitorder="little")
    rows_of_pattern = np.split(
        np.argsort(which.reshape(-1), kind="stable"), np.cumsum(np.bincount(which.reshape(-1)))[:-1]
    )
    gathered: dict[tuple[int, int], list[NDArray[np.int64]]] = {}
    for pattern, dropped, rows in zip(packed, idle, rows_of_pattern, strict=True):
        barren = int.from_bytes(dropped.tobytes(), "little")
        left = int.from_bytes(pattern.tobytes(), "little") & ~barren
        while left:
            part, families = _part_around(left, ~barren, scopes, touching)
            gathered.setdefault((part, families), []).append(rows)
            left &= ~part
    cards = network.cards.tolist()
    parts = []
    for (part, families), rows_of_part in gathered.items():
        order, weights = _elimination_order(part, families, scopes, cards)
        if max(weights) > LARGEST_FACTOR:
            row = min(int(rows[0]) for rows in rows_of_part)
            number = row if row_numbers is None else row_numbers[row]
            raise ValueError(
                f"row {number}: {part.bit_count()} connected cells are missing, and to sum them out takes a factor of "
                f"more than {LARGEST_FACTOR} numbers; leave such rows out or limit the number of parents"
            )
        parts.append(Part(order, tuple(_members(families)), sum(weights), np.concatenate(rows_of_part)))
    return parts


def eliminate(
    part: Part, network: Network, log_tables: LogTables, codes: NDArray[np.integer[Any]]
) -> tuple[NDArray[np.float64], list[Step]]:
    """Sum a part's variables out of given rows: the log of the sum for each row, and the steps that led there."""
    place = {v: i for i, v in enumerate(part.order)}
    sizes = [len(network.states[v]) for v in part.order]
    # Axes stand in the order of elimination, so that the next variable to go is always the first and factors line up
    # by inserting axes of length one.
    buckets: list[list[tuple[tuple[int, ...], NDArray[np.float64]]]] = [[] for _ in part.order]
    for f in part.families:
        family = (*network.parents[f], f)
        shown = [axis for axis, u in enumerate(family) if u not in place]
        summed = sorted((axis for axis, u in enumerate(family) if u in place), key=lambda axis: place[family[axis]])
        table = log_tables[f].transpose(*shown, *summed)
        factor = table[tuple(codes[:, family[axis]] for axis in shown)] if shown else table[None]
        scope = tuple(place[family[axis]] for axis in summed)
        buckets[scope[0]].append((scope, factor))
    total = np.zeros(len(codes))
    steps = []
    with np.errstate(divide="ignore", under="ignore"):
        for bucket in buckets:
            scope = tuple(sorted({i for its, _ in bucket for i in its}))
            n_rows = max(len(factor) for _, factor in bucket)
            product = np.zeros((n_rows, *(sizes[i] for i in scope)))
            for its, factor in bucket:
                product += factor.reshape(len(factor), *(sizes[i] if i in its else 1 for i in scope))
            steps.append(Step(tuple(part.order[i] for i in scope), product))
            highest = product.max(axis=1, keepdims=True)
            highest[highest == -np.inf] = 0.0
            message = np.log(np.exp(product - highest).sum(axis=1)) + highest[:, 0]
            if len(scope) > 1:
                buckets[scope[1]].append((scope[1:], message))
            else:
                total += message
    return total, steps


def _descendants(network: Network) -> NDArray[np.bool_]:
    """Which variable (column) lies below which (row)."""
    adjacency = network.adjacency()
    below = adjacency.copy()
    for v in reversed(topological_order(adjacency)):
        below[v] |= below[adjacency[v]].any(axis=0)
    return below


def _members(bits: int) -> list[int]:
    """Places of the bits that are set, ascending."""
    members = []
    while bits:
        members.append((bits & -bits).bit_length() - 1)
        bits &= bits - 1
    return members


def _part_around(left: int, counted: int, scopes: list[int], touching: list[int]) -> tuple[int, int]:
    """Grow the part of the first variable left over the families that count: its variables, its families."""
    part = frontier = left & -left
    families = 0
    while frontier:
        v = frontier.bit_length() - 1
        frontier &= ~(1 << v)
        fresh = touching[v] & counted & ~families
        families |= fresh
        for f in _members(fresh):
            reached = scopes[f] & left & ~part
            part |= reached
            frontier |= reached
    return part, families


def _elimination_order(
    part: int, families: int, scopes: list[int], cards: list[int]
) -> tuple[tuple[int, ...], list[int]]:
    """Sum out first what gives the smallest factor, the first variable among equals; with the sizes of the factors."""
    joined = dict.fromkeys(_members(part), 0)
    for f in _members(families):
        clique = scopes[f] & part
        for v in _members(clique):
            joined[v] |= clique

    def weight(v: int) -> int:
        size = 1
        for u in _members(joined[v]):
            size *= cards[u]
        return size

    weights = {v: weight(v) for v in joined}
    order, sizes = [], []
    while joined:
        v = min(joined, key=lambda u: (weights[u], u))
        order.append(v)
        sizes.append(weights[v])
        clique = joined.pop(v) & ~(1 << v)
        for u in _members(clique):
            joined[u] = (joined[u] | clique) & ~(1 << v)
            weights[u] = weight(u)
    return tuple(order), sizes
