"""One Bayes net over discrete variables, as a value: its variables, their states, their parents and their tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import networkx as nx

Codes = NDArray[np.int32]
# Which variable (row) is a parent of which (column); then the same for each task (first axis).
Adjacency = NDArray[np.bool_]
Structures = NDArray[np.bool_]


class Constraints(NamedTuple):
    """What a structure may never or must always have; ``most_parents`` is the number of variables where any may be."""

    allowed: Adjacency
    required: Adjacency
    most_parents: int


class Network(NamedTuple):
    """A directed acyclic graph with a conditional probability table for every variable.

    Attributes
    ----------
    variables : tuple of str
        Names of the variables.
    states : tuple of tuples
        What the values 0, 1, … of each variable stand for.
    parents : tuple of tuples of int
        Places of each variable's parents among the variables, ascending.
    tables : tuple of ndarray
        For each variable the probabilities of its values: one axis for each parent, in order, then its own.

    Examples
    --------
    >>> rain = np.array([0.8, 0.2])
    >>> wet = np.array([[0.9, 0.1], [0.05, 0.95]])
    >>> network = make_network(["rain", "wet"], [["no", "yes"]] * 2, [[], [0]], [rain, wet])
    >>> np.exp(network.log_probability(np.array([[1, 1]]))).round(3).tolist()
    [0.19]
    """

    variables: tuple[str, ...]
    states: tuple[tuple[Any, ...], ...]
    parents: tuple[tuple[int, ...], ...]
    tables: tuple[NDArray[np.float64], ...]

    def __repr__(self) -> str:
        shown = ", ".join(self.variables[:8]) + (", …" if len(self.variables) > 8 else "")
        return f"<Network of {len(self.variables)} variables, {self.n_arcs} arcs: {shown}>"

    @property
    def cards(self) -> NDArray[np.int64]:
        """Number of states of each variable."""
        return np.array([len(states) for states in self.states], dtype=np.int64)

    @property
    def n_arcs(self) -> int:
        """Number of arcs."""
        return sum(len(parents) for parents in self.parents)

    @property
    def n_free_parameters(self) -> int:
        """Number of probabilities that can be chosen freely."""
        return sum(table.size // table.shape[-1] * (table.shape[-1] - 1) for table in self.tables)

    def adjacency(self) -> Adjacency:
        """Which variable (row) is a parent of which (column)."""
        return adjacency_of(self.parents)

    def graph(self) -> nx.DiGraph:
        """The structure as a networkx graph, with the variables' names."""
        return named_graph(self.adjacency(), self.variables)

    def reordered(self, variables: Sequence[str]) -> Network:
        """The same network with its variables in another order.

        Examples
        --------
        >>> tables = [np.array([0.8, 0.2]), np.array([[0.9, 0.1], [0.05, 0.95]])]
        >>> network = make_network(["rain", "wet"], [["no", "yes"]] * 2, [[], [0]], tables)
        >>> network.reordered(["wet", "rain"]).parents
        ((1,), ())
        """
        old = {name: v for v, name in enumerate(self.variables)}
        new = {old[name]: v for v, name in enumerate(variables)}
        states, parents, tables = [], [], []
        for name in variables:
            v = old[name]
            its, table = [new[p] for p in self.parents[v]], self.tables[v]
            if its != sorted(its):
                axes = sorted(range(len(its)), key=its.__getitem__)
                table = np.ascontiguousarray(table.transpose([*axes, len(its)]))
            states.append(self.states[v])
            parents.append(tuple(sorted(its)))
            tables.append(table)
        return Network(tuple(variables), tuple(states), tuple(parents), tuple(tables))

    def log_probability(self, codes: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Natural log of the probability of complete rows, each a code per variable."""
        total = np.zeros(len(codes))
        with np.errstate(divide="ignore"):  # a table may rule a state out: then the answer is −inf
            for v, (parents, table) in enumerate(zip(self.parents, self.tables, strict=True)):
                total += np.log(table[tuple(codes[:, p] for p in (*parents, v))])
        return total

    def sample(self, n_rows: int, rng: np.random.Generator) -> Codes:
        """Draw complete rows, parents before children."""
        codes = np.zeros((n_rows, len(self.variables)), dtype=np.int32, order="F")
        for v in topological_order(self.adjacency()):
            edges = self.tables[v][tuple(codes[:, p] for p in self.parents[v])].cumsum(axis=-1)
            edges = np.broadcast_to(edges, (n_rows, edges.shape[-1]))
            # The last edge may fall short of one by rounding, and no draw may pass it.
            codes[:, v] = (rng.random((n_rows, 1)) >= edges[:, :-1]).sum(axis=1)
        return codes


def make_network(
    variables: Sequence[str],
    states: Sequence[Sequence[Any]],
    parents: Sequence[Sequence[int]],
    tables: Sequence[NDArray[np.float64]],
) -> Network:
    """Check the parts of a network and put them together; rows of tables are scaled to sum to one.

    Raises
    ------
    ValueError
        Where the graph has a cycle, or a table has the wrong shape or is not a probability.
    """
    n = len(variables)
    if len(set(variables)) < n:
        twice = next(name for name in variables if list(variables).count(name) > 1)
        raise ValueError(f"variable {twice!r} stands twice in the network")
    if not n == len(states) == len(parents) == len(tables):
        raise ValueError("a network needs states, parents and a table for each variable")
    ordered_parents, ordered_tables = [], []
    for v, name in enumerate(variables):
        given = [int(p) for p in parents[v]]
        if len(set(given)) < len(given) or not all(0 <= p < n and p != v for p in given):
            raise ValueError(f"variable {name!r}: its parents {given} are not distinct other variables")
        table = np.asarray(tables[v], dtype=np.float64)
        shape = tuple(len(states[u]) for u in (*given, v))
        if table.shape != shape:
            raise ValueError(
                f"variable {name!r}: its table has shape {table.shape}, its parents and states ask {shape}"
            )
        total = table.sum(axis=-1, keepdims=True)
        if not (np.isfinite(table).all() and (table >= 0).all() and (np.abs(total - 1) < 1e-3).all()):
            raise ValueError(f"variable {name!r}: its table holds a row that is not a probability distribution")
        order = np.argsort(given, kind="stable")
        ordered_parents.append(tuple(given[i] for i in order))
        ordered_tables.append(np.ascontiguousarray((table / total).transpose(*order, len(given))))
    topological_order(adjacency_of(ordered_parents), variables)
    return Network(tuple(variables), tuple(map(tuple, states)), tuple(ordered_parents), tuple(ordered_tables))


def listed_arcs(graph: Any) -> list[Any]:
    """Arcs, as pairs of names, of a network of ours, of a networkx graph, or of a list of arcs."""
    if isinstance(graph, Network):
        names = graph.variables
        return [(names[p], names[v]) for v, parents in enumerate(graph.parents) for p in parents]
    return list(graph.edges if hasattr(graph, "edges") else graph)


def adjacency_of(parents: Sequence[Sequence[int]]) -> Adjacency:
    """Matrix of arcs, from row to column, of given parents."""
    adjacency = np.zeros((len(parents), len(parents)), dtype=bool)
    for v, its in enumerate(parents):
        adjacency[list(its), v] = True
    return adjacency


def parents_of(adjacency: Adjacency) -> tuple[tuple[int, ...], ...]:
    """Places of every variable's parents, ascending."""
    parents: list[list[int]] = [[] for _ in range(len(adjacency))]
    for v, p in np.argwhere(adjacency.T).tolist():
        parents[v].append(p)
    return tuple(map(tuple, parents))


def named_graph(adjacency: Adjacency, variables: Sequence[str]) -> nx.DiGraph:
    """Turn a matrix of arcs into a networkx graph with the variables' names."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(variables)
    graph.add_edges_from((variables[i], variables[j]) for i, j in np.argwhere(adjacency))
    return graph


def topological_order(adjacency: Adjacency, variables: Sequence[str] | None = None) -> list[int]:
    """Order variables with parents before children, the first of the free ones first; an error names a cycle."""
    waiting = adjacency.sum(axis=0)
    order: list[int] = []
    free = np.flatnonzero(waiting == 0).tolist()
    while free:
        v = free.pop(0)
        order.append(v)
        for child in np.flatnonzero(adjacency[v]).tolist():
            waiting[child] -= 1
            if not waiting[child]:
                free.append(child)
    if len(order) < len(adjacency):
        cycle = [str(v if variables is None else variables[v]) for v in _find_cycle(adjacency, waiting > 0)]
        raise ValueError(f"the arcs form a cycle: {' → '.join([*cycle, cycle[0]])}")
    return order


def _find_cycle(adjacency: Adjacency, left: NDArray[np.bool_]) -> list[int]:
    """Walk backwards from a variable that never got free, always to a parent like it, until one comes twice."""
    path = [int(np.argmax(left))]
    while True:
        parent = int(np.argmax(adjacency[:, path[-1]] & left))
        if parent in path:
            return path[path.index(parent) :][::-1]
        path.append(parent)
