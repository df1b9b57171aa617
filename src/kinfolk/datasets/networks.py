"""Related Bayes nets made from one (Niculescu-Mizil and Caruana, section 4.1), networks to start from, rows of them."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from kinfolk.datasets.real import data_file
from kinfolk.networks.bif import read_bif
from kinfolk.networks.network import Adjacency, Network, make_network, parents_of

Seed = int | np.random.RandomState | None
N_PARTS = 4  # as ALARM is split in section 4.1
# Share of a uniform distribution in every drawn row: few states are too rare to be seen among some hundred rows. With
# two states none is rarer than 0.01, as in ALARM.
UNIFORM = 0.02


def load_network(network: str | os.PathLike[str] | Network) -> Network:
    """Load a Bayes net.

    Parameters
    ----------
    network : str, path-like or Network
        ``"asia"``, which is part of the package [1]_; any other name, such as ``"alarm"`` or ``"insurance"``, for the
        file ``bayesnets/NAME.bif.gz`` in the folder that the environment variable ``KINFOLK_DATA`` names; the path of a
        BIF file; or a network, which is returned as it is.

    Returns
    -------
    Network

    Raises
    ------
    FileNotFoundError
        Where the file is not there.

    References
    ----------
    .. [1] S. L. Lauritzen and D. J. Spiegelhalter, "Local Computations with Probabilities on Graphical Structures and
       Their Application to Expert Systems", Journal of the Royal Statistical Society B 50, 1988.

    Examples
    --------
    >>> asia = load_network("asia")
    >>> asia.variables
    ('asia', 'tub', 'smoke', 'lung', 'bronc', 'either', 'xray', 'dysp')
    >>> asia.n_arcs, asia.n_free_parameters
    (8, 18)
    """
    if isinstance(network, Network):
        return network
    if network == "asia":
        return _asia()
    name = os.fspath(network)
    if isinstance(network, Path) or Path(name).name != name or name.endswith((".bif", ".bif.gz")):
        return read_bif(network)
    return read_bif(data_file("bayesnets", f"{name}.bif.gz"))


def _asia() -> Network:
    """Chest clinic; each table lists "yes" before "no", for the child as for its parents."""
    yes = {
        "asia": 0.01,
        "tub": [0.05, 0.01],
        "smoke": 0.5,
        "lung": [0.1, 0.01],
        "bronc": [0.6, 0.3],
        "either": [[1, 1], [1, 0]],
        "xray": [0.98, 0.05],
        "dysp": [[0.9, 0.8], [0.7, 0.1]],
    }
    arcs = {"tub": ["asia"], "lung": ["smoke"], "bronc": ["smoke"], "either": ["tub", "lung"], "xray": ["either"]}
    arcs["dysp"] = ["bronc", "either"]
    variables = list(yes)
    parents = [[variables.index(parent) for parent in arcs.get(name, [])] for name in variables]
    tables = [np.stack([np.asarray(p, dtype=np.float64), 1 - np.asarray(p)], axis=-1) for p in yes.values()]
    return make_network(variables, [["yes", "no"]] * len(variables), parents, tables)


def make_random_network(
    n_variables: int,
    *,
    n_arcs: int | None = None,
    max_parents: int = 3,
    n_states: int | tuple[int, int] = (2, 4),
    strength: float = 2.0,
    random_state: Seed = None,
) -> Network:
    """Make up a Bayes net.

    Parameters
    ----------
    n_variables : int
        Number of variables.
    n_arcs : int, optional
        Number of arcs; by default five for every four variables, as in ALARM, or as many as there can be.
    max_parents : int, default=3
        The most parents of a variable.
    n_states : int or (int, int), default=(2, 4)
        States of each variable: one number for all, or the fewest and the most.
    strength : float, default=2.0
        How sharp the tables are: each row is drawn from a Dirichlet distribution with parameters 1/`strength`, one for
        each state, so that 1 makes all distributions as likely, and larger values make arcs that matter more. Two per
        cent of a uniform distribution are mixed in, so that no state is all but ruled out.
    random_state : int, RandomState instance or None, default=None
        Seed.

    Returns
    -------
    Network

    Examples
    --------
    >>> network = make_random_network(37, random_state=0)
    >>> network.n_arcs, max(len(parents) for parents in network.parents)
    (46, 3)
    """
    low, high = (n_states, n_states) if isinstance(n_states, int | np.integer) else n_states
    _check_count("n_variables", n_variables, 1)
    _check_count("max_parents", max_parents, 0)
    _check_count("the fewest of n_states", low, 1)
    _check_count("the most of n_states", high, low)
    if not (isinstance(strength, Real) and 0 < strength < np.inf):
        raise ValueError(f"strength is {strength!r}, but must be a number above 0")
    # The variable at place i of the order has room for as many parents as stand before it.
    room = np.minimum(np.arange(n_variables), max_parents)
    n_arcs = min(round(1.25 * n_variables), int(room.sum())) if n_arcs is None else n_arcs
    _check_count("n_arcs", n_arcs, 0)
    if n_arcs > room.sum():
        raise ValueError(
            f"n_arcs is {n_arcs}, but {n_variables} variables with {max_parents} parents have {room.sum()}"
        )
    rng = np.random.default_rng(_seed(random_state))
    order = rng.permutation(n_variables)
    taken = rng.choice(np.repeat(np.arange(n_variables), room), size=n_arcs, replace=False)
    parents: list[tuple[int, ...]] = [()] * n_variables
    for place, count in enumerate(np.bincount(taken, minlength=n_variables)):
        chosen = order[rng.choice(place, size=count, replace=False)] if count else []
        parents[order[place]] = tuple(sorted(int(p) for p in chosen))
    cards = rng.integers(low, high, size=n_variables, endpoint=True)
    tables = [_draw_table(cards[[*its, v]], 1 / strength, rng) for v, its in enumerate(parents)]
    names = [f"X{v}" for v in range(n_variables)]
    return make_network(names, [[f"s{k}" for k in range(card)] for card in cards], parents, tables)


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
    _check_count("n_tasks", n_tasks, 1)
    if not (isinstance(p_delete, Real) and 0 <= p_delete <= 1):
        raise ValueError(f"p_delete is {p_delete!r}, but must be a number from 0 to 1")
    if parameters not in ("correlated", "independent"):
        raise ValueError(f'parameters is {parameters!r}, but must be "correlated" or "independent"')
    if kind not in ("delete", "subgraphs"):
        raise ValueError(f'kind is {kind!r}, but must be "delete" or "subgraphs"')
    # Two generators for each task: its structure hangs neither on its tables nor on the other tasks.
    seeds = np.random.SeedSequence(_seed(random_state)).spawn(n_tasks)
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
    return _draw_table(network.cards[[*parents, v]], min(max(alpha, 0.05), 20.0), rng)


def _draw_table(shape: NDArray[np.int64], alpha: float, rng: np.random.Generator) -> NDArray[np.float64]:
    drawn = rng.dirichlet(np.full(shape[-1], alpha), size=tuple(shape[:-1]))
    mixed = (1 - UNIFORM) * drawn + UNIFORM / shape[-1]
    return np.asarray(mixed / mixed.sum(axis=-1, keepdims=True))


def sample_tasks(
    networks: Sequence[Network] | Mapping[Hashable, Network],
    n_rows: int | Sequence[int] = 1000,
    *,
    form: Literal["dict", "long"] = "dict",
    frame: Literal["polars", "pandas"] = "polars",
    random_state: Seed = None,
) -> Any:
    """Draw rows from the network of each task.

    Parameters
    ----------
    networks : sequence of Network, or mapping from task to Network
        Tasks of a sequence are called 0, 1, …
    n_rows : int or sequence of int, default=1000
        Rows of each task: one number for all, or one for each.
    form : {"dict", "long"}, default="dict"
        Whether to return a mapping from task to frame, or one frame of all rows with a column ``task`` before the
        others, for which all tasks need the same variables and states.
    frame : {"polars", "pandas"}, default="polars"
        The library of the frames, whose columns (``polars.Enum`` for text, ``pandas.Categorical``) know all states of
        their variable, drawn or not.
    random_state : int, RandomState instance or None, default=None
        Seed. A task's rows do not hang on the tasks after it.

    Returns
    -------
    dict or frame

    Examples
    --------
    >>> tables = sample_tasks(make_related_networks("asia", 2, random_state=0), 100, random_state=0)
    >>> {task: table.shape for task, table in tables.items()}
    {0: (100, 8), 1: (100, 8)}
    """
    tasks = dict(networks) if isinstance(networks, Mapping) else dict(enumerate(networks))
    sizes = [n_rows] * len(tasks) if isinstance(n_rows, int | np.integer) else list(n_rows)
    if not tasks:
        raise ValueError("sample_tasks needs the network of at least one task")
    if len(sizes) != len(tasks):
        raise ValueError(f"n_rows gives {len(sizes)} numbers, but there are {len(tasks)} tasks")
    for size in sizes:
        _check_count("n_rows", size, 0)
    if form not in ("dict", "long"):
        raise ValueError(f'form is {form!r}, but must be "dict" or "long"')
    if frame not in ("polars", "pandas"):
        raise ValueError(f'frame is {frame!r}, but must be "polars" or "pandas"')
    seeds = np.random.SeedSequence(_seed(random_state)).spawn(len(tasks))
    codes = [
        network.sample(size, np.random.default_rng(seed))
        for network, size, seed in zip(tasks.values(), sizes, seeds, strict=True)
    ]
    if form == "dict":
        return {
            task: _frame(network.variables, network.states, rows.T, frame)
            for (task, network), rows in zip(tasks.items(), codes, strict=True)
        }
    first = next(iter(tasks.values()))
    for task, network in tasks.items():
        if network[:2] != first[:2]:
            raise ValueError(f'task {task!r} has other variables or states than the first: give form="dict"')
    if "task" in first.variables:
        raise ValueError('a variable is called "task", as the column of tasks would be: give form="dict"')
    of_rows = np.repeat(np.arange(len(tasks)), sizes)
    return _frame(("task", *first.variables), (tuple(tasks), *first.states), [of_rows, *np.concatenate(codes).T], frame)


def _frame(
    names: Sequence[str], values: Sequence[Sequence[Any]], codes: Iterable[NDArray[np.integer[Any]]], library: str
) -> Any:
    if library == "pandas":
        import pandas as pd

        columns = {
            name: pd.Categorical.from_codes(its, categories=list(of_column))
            for name, of_column, its in zip(names, values, codes, strict=True)
        }
        return pd.DataFrame(columns)
    import polars as pl

    series = []
    for name, of_column, its in zip(names, values, codes, strict=True):
        kinds = {type(value) for value in of_column}
        if len(kinds) == 1 and str not in kinds:
            named = pl.Series(name, of_column)
        else:  # polars has no columns of mixed types: such values are shown as text
            texts = [str(value) for value in of_column]
            named = pl.Series(name, texts, dtype=pl.Enum(texts))
        series.append(named.gather(its))
    return pl.DataFrame(series)


def _seed(random_state: Seed) -> int:
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def _check_count(name: str, value: Any, least: int) -> None:
    if not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} is {value!r}, but must be a whole number of at least {least}")
