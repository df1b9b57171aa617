"""How far apart two Bayes nets are: in arcs, in equivalence classes, and in what they say about data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.model.equivalence import completed
from kinfolk.networks.model.network import Adjacency, Network

if TYPE_CHECKING:
    import networkx as nx

Structure: TypeAlias = "nx.DiGraph | Network | NDArray[Any]"


class Divergence(NamedTuple):
    """A Kullback–Leibler divergence in nats, estimated from a sample, with the standard error of the estimate."""

    estimate: float
    error: float


def edit_distance(a: Structure, b: Structure) -> int:
    """Number of arcs to add, remove or reverse to get from one structure to the other, each counted once.

    The measure of Niculescu-Mizil and Caruana, "Inductive Transfer for Bayesian Network Structure Learning"
    (section 4, footnote 6).

    Parameters
    ----------
    a, b : networkx.DiGraph, Network or square matrix
        Two structures over the same variables. Named ones are matched by name; a matrix, with a mark from row to
        column for each arc, has its variables in the order of the other structure.

    Returns
    -------
    int

    Examples
    --------
    >>> import networkx as nx
    >>> edit_distance(nx.DiGraph([("a", "b"), ("b", "c")]), nx.DiGraph([("b", "a"), ("b", "c"), ("a", "c")]))
    2
    """
    _, first, second = _matched(a, b)
    return _pairs_that_differ(first, second)


def shd(a: Structure, b: Structure) -> int:
    """Structural Hamming distance between the equivalence classes of two directed acyclic graphs.

    Counts the pairs of variables that are linked differently (not, by an edge, by an arc one way or the other) in
    their completed graphs, as Tsamardinos, Brown and Aliferis, "The max-min hill-climbing Bayesian network structure
    learning algorithm" (2006), do. Structures that no data can tell apart are at distance zero.

    Parameters
    ----------
    a, b : networkx.DiGraph, Network or square matrix
        As in :func:`edit_distance`.

    Returns
    -------
    int

    Examples
    --------
    >>> import networkx as nx
    >>> chain = nx.DiGraph([("a", "b"), ("b", "c")])
    >>> shd(chain, nx.DiGraph([("b", "a"), ("b", "c")]))
    0
    >>> shd(chain, nx.DiGraph([("a", "b"), ("c", "b")]))
    2
    """
    variables, first, second = _matched(a, b)
    return _pairs_that_differ(completed(first, variables), completed(second, variables))


def kl_divergence(
    true: Network, learnt: Network, n_samples: int = 10_000, random_state: int | np.random.RandomState | None = None
) -> Divergence:
    """Estimate the Kullback–Leibler divergence of a learnt network from the true one by sampling from the true one.

    Both networks give probabilities to the same rows, so that the mean of the differences of their logs has a small
    error. Variables and states are matched by name; what the learnt network has no state for, it rules out.

    Parameters
    ----------
    true : Network
        The network to sample from.
    learnt : Network
        A network over the same variables.
    n_samples : int, default=10000
        Number of rows.
    random_state : int, RandomState instance or None, default=None
        Seed of the sample; with the same one, several learnt networks are compared on the same rows.

    Returns
    -------
    Divergence
        ``estimate`` and its standard ``error``; both infinite where the learnt network rules out a row of the sample.

    Examples
    --------
    >>> from kinfolk.networks.model.network import make_network
    >>> fair, bent = (make_network(["coin"], [["h", "t"]], [[]], [np.array([p, 1 - p])]) for p in (0.5, 0.9))
    >>> estimate, error = kl_divergence(fair, bent, random_state=0)
    >>> bool(abs(estimate - 0.5 * np.log(1 / 0.36)) < 3 * error)
    True
    """
    from sklearn.utils import check_random_state

    if n_samples < 2:
        raise ValueError(f"n_samples is {n_samples}, but an estimate with an error needs at least 2 rows")
    _check_variables(true.variables, learnt.variables)
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    rows = true.sample(n_samples, np.random.default_rng(seed))
    translated = np.empty_like(rows)
    for place, name in enumerate(learnt.variables):
        origin = true.variables.index(name)
        codes = {state: code for code, state in enumerate(learnt.states[place])}
        translated[:, place] = np.array([codes.get(state, -1) for state in true.states[origin]])[rows[:, origin]]
    if (translated < 0).any():
        return Divergence(math.inf, math.inf)
    log_ratio = true.log_probability(rows) - learnt.log_probability(translated)
    if np.isinf(log_ratio).any():
        return Divergence(math.inf, math.inf)
    return Divergence(float(log_ratio.mean()), float(log_ratio.std(ddof=1) / math.sqrt(n_samples)))


def _pairs_that_differ(a: Adjacency, b: Adjacency) -> int:
    different = a != b
    return int(np.triu(different | different.T).sum())


def _matched(a: Structure, b: Structure) -> tuple[list[str] | None, Adjacency, Adjacency]:
    """Names of the variables, if any has them, and both structures as matrices in the same order."""
    (names_a, arcs_a), (names_b, arcs_b) = _matrix(a), _matrix(b)
    if names_a is not None and names_b is not None:
        _check_variables(names_a, names_b)
        place = {name: i for i, name in enumerate(names_b)}
        order = [place[name] for name in names_a]
        arcs_b = arcs_b[np.ix_(order, order)]
    elif arcs_a.shape != arcs_b.shape:
        raise ValueError(f"the structures have {len(arcs_a)} and {len(arcs_b)} variables, but need the same ones")
    names = names_b if names_a is None else names_a
    return None if names is None else [str(name) for name in names], arcs_a, arcs_b


def _matrix(structure: Any) -> tuple[list[Any] | None, Adjacency]:
    if isinstance(structure, Network):
        return list(structure.variables), structure.adjacency()
    if hasattr(structure, "edges"):
        names = list(structure.nodes)
        place = {name: i for i, name in enumerate(names)}
        adjacency = np.zeros((len(names), len(names)), dtype=bool)
        for tail, head in structure.edges:
            adjacency[place[tail], place[head]] = True
        return names, adjacency
    adjacency = np.asarray(structure, dtype=bool)
    if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
        raise ValueError(f"a matrix of arcs must be square, but one has shape {adjacency.shape}")
    return None, adjacency


def _check_variables(a: Any, b: Any) -> None:
    for here, there, which in ((a, b, "second"), (b, a, "first")):
        known = set(there)
        lacking = [name for name in here if name not in known]
        if lacking:
            raise ValueError(f"the {which} network lacks variable {lacking[0]!r}: both need the same variables")
