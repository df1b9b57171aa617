"""Related Bayes nets made from one by perturbing it (Niculescu-Mizil and Caruana, section 4.1)."""

from __future__ import annotations

import os
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kinfolk.datasets.networks import UNIFORM, Seed, check_count, draw_table, load_network, seed_of
from kinfolk.networks.model.network import Adjacency, Network, parents_of

N_PARTS = 4  # as ALARM is split in section 4.1


def make_related_networks(
    network: str | os.PathLike[str] | Network = "asia",
    n_tasks: int = 5,
    *,
    p_delete: float = 0.05,
    parameters: Literal["correlated", "independent"] = "correlated",
    kind: Literal["delete", "subgraphs"] = "delete",
    random_state: Seed = None,
) -> list[Network]:
    """Make the Bayes nets of related tasks by perturbing one, as in section 4.1 of the paper [1]_.

    Its problems are ALARM and INSURANCE (``"delete"``, ``"correlated"``), ALARM-IND and INSURANCE-IND (``"delete"``,
    ``"independent"``) and ALARM-COMP (``"subgraphs"``, ``"correlated"``). All keep variables and states.

    Parameters
    ----------
    network : str, path-like or Network, default="asia"
        The network to perturb, as :func:`load_network` takes it.
    n_tasks : int, default=5
        Number of tasks.
    p_delete : float, default=0.05
        Probability with which a task loses an arc, for each arc by itself (``kind="delete"`` alone).
    parameters : {"correlated", "independent"}, default="correlated"
        Whether tables are the original's wherever a task has left a family as it was, or each task draws all its own.
        Drawn rows are as sharp as those of the variable's original table are on average.
    kind : {"delete", "subgraphs"}, default="delete"
        Whether tasks lose arcs, or the variables are split into four parts (:func:`split_variables`), of which each
        task changes none, one or two, with the same chance: all arcs within such a part and the tables of its
        variables are drawn anew. Arcs between parts stay.
    random_state : int, RandomState instance or None, default=None
        Seed. The same one gives the same structures whatever `parameters` is.

    Returns
    -------
    list of Network
        One for each task.

    References
    ----------
    .. [1] A. Niculescu-Mizil and R. Caruana, "Inductive Transfer for Bayesian Network Structure Learning", JMLR
       Workshop and Conference Proceedings 27, 2012.

    Examples
    --------
    >>> tasks = make_related_networks("asia", 3, p_delete=0.3, random_state=0)
    >>> [task.n_arcs for task in tasks]
    [7, 7, 3]
    """
    original = load_network(network)
    check_count("n_tasks", n_tasks, 1)
    if not (isinstance(p_delete, Real) and 0 <= p_delete <= 1):
        raise ValueError(f"p_delete is {p_delete!r}, but must be a number from 0 to 1")
    if parameters not in ("correlated", "independent"):
        raise ValueError(f'parameters is {parameters!r}, but must be "correlated" or "independent"')
    if kind not in ("delete", "subgraphs"):
        raise ValueError(f'kind is {kind!r}, but must be "delete" or "subgraphs"')
    # Two generators for each task: its structure hangs neither on its tables nor on the other tasks.
    seeds = np.random.SeedSequence(seed_of(random_state)).spawn(n_tasks)
    parts = split_variables(original) if kind == "subgraphs" else ()
    # One sample whatever the seed: tasks that lost the same arcs have the same tables, in other calls too.
    rows = original.sample(20_000, np.random.default_rng(0))
    tasks = []
    for seed in seeds:
        of_structure, of_tables = (np.random.default_rng(s) for s in seed.spawn(2))
        if kind == "delete":
            fresh: set[int] = set()
            parents = tuple(tuple(p for p in its if of_structure.random() >= p_delete) for its in original.parents)
        else:
            changed = of_structure.choice(N_PARTS, size=of_structure.integers(3), replace=False)
            fresh = {v for part in changed for v in parts[part]}
            parents = parents_of(_rewire(original, [parts[part] for part in changed], of_structure))
        if parameters == "independent":
            fresh = set(range(len(parents)))
        tables = [
            _draw_like(original, v, its, of_tables) if v in fresh else _average(original, v, its, rows)
            for v, its in enumerate(parents)
        ]
        # The parts are known to be right, and tables of untouched families stay the same to the last bit.
        tasks.append(original._replace(parents=parents, tables=tuple(tables)))
    return tasks


def split_variables(network: Network, n_parts: int = N_PARTS) -> tuple[tuple[int, ...], ...]:
    """Split the variables into connected parts of about the same size; the same network is always split alike.

    The parts grow from variables far from each other, always the smallest that can grow, by the neighbour with the
    most links into it. Where the graph itself is not connected, a part may not be either.

    Examples
    --------
    >>> asia = load_network("asia")
    >>> [[asia.variables[v] for v in part] for part in split_variables(asia)]
    [['asia', 'tub'], ['smoke', 'lung'], ['either', 'xray'], ['bronc', 'dysp']]
    """
    n = len(network.variables)
    if n < 2 * n_parts:
        raise ValueError(f"the network has {n} variables, but a split into {n_parts} parts needs {2 * n_parts}")
    linked = network.adjacency() | network.adjacency().T
    distance = _distances(linked)
    seeds = [int(np.argmax(distance.max(axis=1)))]
    while len(seeds) < n_parts:
        seeds.append(int(np.argmax(distance[seeds].min(axis=0))))
    part_of = np.full(n, -1)
    part_of[seeds] = np.arange(n_parts)
    while (part_of < 0).any():
        links = np.array([linked[part_of == part].sum(axis=0) * (part_of < 0) for part in range(n_parts)])
        sizes = np.bincount(part_of[part_of >= 0], minlength=n_parts)
        part = int(np.argmin(np.where(links.any(axis=1) | ~links.any(), sizes, n + 1)))
        part_of[np.argmax(links[part] if links[part].any() else part_of < 0)] = part
    return tuple(tuple(np.flatnonzero(part_of == part).tolist()) for part in range(n_parts))


def _distances(linked: Adjacency) -> NDArray[np.float64]:
    """Number of links between every two variables; a half where there is no path, so that none seems far for that."""
    reached = np.eye(len(linked), dtype=bool)
    distance = np.where(reached, 0.0, 0.5)
    for step in range(1, len(linked)):
        reached = (reached.astype(np.float32) @ linked > 0) & (distance == 0.5)
        if not reached.any():
            break
        distance[reached] = step
    return distance


def _rewire(network: Network, parts: list[tuple[int, ...]], rng: np.random.Generator) -> Adjacency:
    """Draw all arcs within the parts anew: as many, none that closes a cycle, no larger families than there were."""
    original = network.adjacency()
    cards, most_parents = network.cards, int(original.sum(axis=0).max())
    most_cells = max(table.size for table in network.tables)
    adjacency = original.copy()
    for part in parts:
        inside = np.ix_(part, part)
        n_arcs = int(original[inside].sum())
        for _ in range(100):  # a draw that changes nothing is no change; in a small part there may be no other
            adjacency[inside] = False
            reaches = _reaches(adjacency)
            added = 0
            for tail, head in rng.permutation([(i, j) for i in part for j in part if i != j]):
                if added == n_arcs:
                    break
                family = adjacency[:, head].copy()
                family[[tail, head]] = True
                fits = family.sum() - 1 <= most_parents and np.prod(cards[family], dtype=float) <= most_cells
                if fits and not reaches[head, tail]:
                    adjacency[tail, head] = True
                    reaches[np.ix_(reaches[:, tail], reaches[head])] = True
                    added += 1
            if not np.array_equal(adjacency[inside], original[inside]):
                break
    return adjacency


def _reaches(adjacency: Adjacency) -> Adjacency:
    """Which variable (row) has a path to which (column), every one to itself."""
    reaches = adjacency | np.eye(len(adjacency), dtype=bool)
    while True:
        further = reaches.astype(np.float32) @ reaches > 0
        if np.array_equal(further, reaches):
            return reaches
        reaches = further


def _average(network: Network, v: int, parents: tuple[int, ...], rows: NDArray[np.int32]) -> NDArray[np.float64]:
    """Table of a variable that keeps these of its parents: the original, averaged over the states of those it lost.

    The weights are the lost parents' own probabilities, not those given the kept ones: the arc is cut, not hidden, so
    that kept parents do not take over what the lost ones said. They come from a sample, since exact ones are out of
    reach in large networks, and any weights give a right table.
    """
    table = network.tables[v]
    lost = [axis for axis, parent in enumerate(network.parents[v]) if parent not in parents]
    if not lost:
        return table
    counts = np.zeros([table.shape[axis] for axis in lost])
    np.add.at(counts, tuple(rows[:, network.parents[v][axis]] for axis in lost), 1.0)
    return np.asarray(np.tensordot(counts / len(rows), table, axes=(range(len(lost)), lost)))


def _draw_like(network: Network, v: int, parents: tuple[int, ...], rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw a table for a variable under these parents, with rows as sharp as its own are on average.

    Rows of a symmetric Dirichlet with parameter α over r states have E Σp² − 1/r = (1 − 1/r)/(rα + 1), of which mixing
    with a uniform distribution leaves (1 − UNIFORM)²; α is such that this is the mean over the rows of the original.
    Shuffling the original's rows and states would be as sharp, but leaves a table of two by two only four forms, so
    that many tasks would agree.
    """
    original = network.tables[v]
    n_states = original.shape[-1]
    excess = float((original**2).sum(axis=-1).mean() - 1 / n_states) / (1 - UNIFORM) ** 2
    # Certainties ask α = 0 and fair coins α = ∞: neither is a distribution to draw from.
    alpha = (1 - 1 / n_states - excess) / (n_states * max(excess, 1e-9))
    return draw_table(network.cards[[*parents, v]], min(max(alpha, 0.05), 20.0), rng)
