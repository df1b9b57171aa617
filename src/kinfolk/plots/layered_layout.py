"""Places for the nodes of a directed acyclic graph in layers, after Sugiyama, Tagawa and Toda (1981).

Every arc leads from a layer to a lower one. Arcs that pass layers get a place in each of them, so that they run between
nodes and not behind them; then places are put in an order with few crossings, and moved towards what they are linked
to as far as others leave room.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SWEEPS = 24
RELAXATIONS = 90
GAP = 0.16  # inches between two places of a layer
LANE = 0.06  # half the width of an arc that passes a layer
# Arcs that pass layers should be straight; nodes may give way to them.
STRAIGHT = 6.0
# Each turn pulls everything towards the middle a little, or parts that hardly hang together would drift apart.
TOGETHER = 0.98


class Layout(NamedTuple):
    """Where nodes are, and the points that each arc passes on its way down, in inches from the lower left corner."""

    centre: NDArray[np.float64]
    routes: list[NDArray[np.float64]]
    width: float
    height: float


class _Places(NamedTuple):
    """Nodes, then one place for each layer that an arc passes; ``links`` join places of neighbouring layers."""

    layer: NDArray[np.int64]
    half_width: NDArray[np.float64]
    links: NDArray[np.int64]
    chains: list[list[int]]


def lay_out_in_layers(
    arcs: Sequence[tuple[int, int]], widths: NDArray[np.float64], box_height: float, row_height: float
) -> Layout:
    """Give every node and every arc of an acyclic graph its place.

    Parameters
    ----------
    arcs : sequence of (int, int)
        From the upper node to the lower one; two nodes may be joined by several.
    widths : ndarray of shape (n_nodes,)
        Width of every node's box in inches.
    box_height, row_height : float
        Height of boxes, and distance of layers, in inches.

    Returns
    -------
    Layout

    Examples
    --------
    >>> layout = lay_out_in_layers([(0, 1), (1, 2), (0, 2)], np.ones(3), 0.3, 1.0)
    >>> layout.centre[:, 1].round(2).tolist()
    [2.15, 1.15, 0.15]
    """
    places = _make_places(arcs, widths)
    rows = _order(places)
    x = _move(places, rows)
    x -= (x - places.half_width).min()
    n_layers = len(rows)
    y = box_height / 2 + row_height * (n_layers - 1 - places.layer).astype(np.float64)
    n = len(widths)
    width = float((x + places.half_width).max())
    height = box_height + row_height * (n_layers - 1)
    routes = _route(places, x, y, widths, box_height)
    return Layout(np.column_stack([x[:n], y[:n]]), routes, width, height)


def _layers(arcs: Sequence[tuple[int, int]], n: int) -> NDArray[np.int64]:
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(arcs)
    layer = np.zeros(n, dtype=np.int64)
    for depth, generation in enumerate(nx.topological_generations(graph)):
        layer[list(generation)] = depth
    for v in range(n):
        # A node without parents stands just above its first child, not at the top with long arcs.
        if graph.in_degree(v) == 0 and graph.out_degree(v):
            layer[v] = min(layer[child] for child in graph.successors(v)) - 1
    return layer


def _make_places(arcs: Sequence[tuple[int, int]], widths: NDArray[np.float64]) -> _Places:
    layer = _layers(arcs, len(widths)).tolist()
    half_width = (widths / 2).tolist()
    links, chains = [], []
    for upper, lower in arcs:
        chain = [upper]
        for depth in range(layer[upper] + 1, layer[lower]):
            chain.append(len(layer))
            layer.append(depth)
            half_width.append(LANE)
        chain.append(lower)
        chains.append(chain)
        links += list(pairwise(chain))
    table = np.array(links, dtype=np.int64).reshape(-1, 2)
    return _Places(np.array(layer, dtype=np.int64), np.array(half_width), table, chains)


def _order(places: _Places) -> list[NDArray[np.int64]]:
    """Places of each layer from left to right: the order with the fewest crossings of several sweeps."""
    rows = [np.flatnonzero(places.layer == depth) for depth in range(int(places.layer.max()) + 1)]
    rank = np.zeros(len(places.layer))
    for row in rows:
        rank[row] = np.arange(len(row)) / max(len(row) - 1, 1)
    best, fewest = [row.copy() for row in rows], _crossings(places, rank)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for depth in range(len(rows)) if down else reversed(range(len(rows))):
            wanted = _means(places, rank, rank, from_above=down)
            row = rows[depth]
            rows[depth] = row[np.argsort(wanted[row], kind="stable")]
            rank[rows[depth]] = np.arange(len(row)) / max(len(row) - 1, 1)
        crossings = _crossings(places, rank)
        if crossings < fewest:
            best, fewest = [row.copy() for row in rows], crossings
    return best


def _means(
    places: _Places, value: NDArray[np.float64], otherwise: NDArray[np.float64], *, from_above: bool
) -> NDArray[np.float64]:
    """Mean over the places that each one is linked to in the layer above, or below."""
    source, target = places.links.T if from_above else places.links.T[::-1]
    total, number = np.zeros(len(value)), np.zeros(len(value))
    np.add.at(total, target, value[source])
    np.add.at(number, target, 1.0)
    return np.where(number > 0, total / np.maximum(number, 1.0), otherwise)


def _crossings(places: _Places, rank: NDArray[np.float64]) -> int:
    total = 0
    depth = places.layer[places.links[:, 0]]
    for layer in np.unique(depth):
        upper, lower = rank[places.links[depth == layer]].T
        total += int(((upper[:, None] < upper) & (lower[:, None] > lower)).sum())
    return total


def _move(places: _Places, rows: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    """Move places towards what they are linked to; no two come closer than they may, and none changes its rank."""
    from scipy.optimize import isotonic_regression

    x = np.zeros(len(places.layer))
    room = []
    for row in rows:
        half = places.half_width[row]
        apart = np.concatenate([[0.0], np.cumsum(half[:-1] + half[1:] + GAP)])
        room.append(apart)
        x[row] = apart - apart[-1] / 2
    n_nodes = min((chain[1] for chain in places.chains if len(chain) > 2), default=len(x))
    weight = np.where(np.arange(len(x)) < n_nodes, 1.0, STRAIGHT)
    for turn in range(RELAXATIONS):
        above, below = (_means(places, x, x, from_above=way) for way in (True, False))
        wanted = (above + below) / 2 if turn % 3 == 2 else above if turn % 3 == 0 else below
        for row, apart in zip(rows, room, strict=True):
            # Least squares under x[i + 1] − x[i] ≥ room is isotonic regression once the room is taken off.
            x[row] = isotonic_regression(TOGETHER * wanted[row] - apart, weights=weight[row]).x + apart
    return x


def _route(
    places: _Places, x: NDArray[np.float64], y: NDArray[np.float64], widths: NDArray[np.float64], box_height: float
) -> list[NDArray[np.float64]]:
    """Points of every arc: where it leaves its upper node, its place in each layer that it passes, where it arrives."""
    leaves = _ports([(chain[0], x[chain[1]]) for chain in places.chains], x, widths)
    arrives = _ports([(chain[-1], x[chain[-2]]) for chain in places.chains], x, widths)
    half = box_height / 2
    routes = []
    for chain, start, end in zip(places.chains, leaves, arrives, strict=True):
        passes = [(x[place], y[place]) for place in chain[1:-1]]
        routes.append(np.array([(start, y[chain[0]] - half), *passes, (end, y[chain[-1]] + half)]))
    return routes


def _ports(ends: list[tuple[int, float]], x: NDArray[np.float64], widths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where along its node's edge each arc ends: side by side, in the order of where they lead."""
    node = np.array([end[0] for end in ends], dtype=np.int64)
    towards = np.array([end[1] for end in ends])
    port = np.zeros(len(ends))
    for v in np.unique(node):
        own = np.flatnonzero(node == v)
        own = own[np.argsort(towards[own], kind="stable")]
        step = min(0.14, 0.8 * widths[v] / len(own))
        port[own] = x[v] + step * (np.arange(len(own)) - (len(own) - 1) / 2)
    return port
