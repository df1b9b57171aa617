"""Bayes nets to start from, published or made up, and rows drawn from them."""

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
from kinfolk.networks.answers.bif import read_bif
from kinfolk.networks.model.network import Network, make_network

Seed = int | np.random.RandomState | None
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
    check_count("n_variables", n_variables, 1)
    check_count("max_parents", max_parents, 0)
    check_count("the fewest of n_states", low, 1)
    check_count("the most of n_states", high, low)
    if not (isinstance(strength, Real) and 0 < strength < np.inf):
        raise ValueError(f"strength is {strength!r}, but must be a number above 0")
    # The variable at place i of the order has room for as many parents as stand before it.
    room = np.minimum(np.arange(n_variables), max_parents)
    n_arcs = min(round(1.25 * n_variables), int(room.sum())) if n_arcs is None else n_arcs
    check_count("n_arcs", n_arcs, 0)
    if n_arcs > room.sum():
        raise ValueError(
            f"n_arcs is {n_arcs}, but {n_variables} variables with {max_parents} parents have {room.sum()}"
        )
    rng = np.random.default_rng(seed_of(random_state))
    order = rng.permutation(n_variables)
    taken = rng.choice(np.repeat(np.arange(n_variables), room), size=n_arcs, replace=False)
    parents: list[tuple[int, ...]] = [()] * n_variables
    for place, count in enumerate(np.bincount(taken, minlength=n_variables)):
        chosen = order[rng.choice(place, size=count, replace=False)] if count else []
        parents[order[place]] = tuple(sorted(int(p) for p in chosen))
    cards = rng.integers(low, high, size=n_variables, endpoint=True)
    tables = [draw_table(cards[[*its, v]], 1 / strength, rng) for v, its in enumerate(parents)]
    names = [f"X{v}" for v in range(n_variables)]
    return make_network(names, [[f"s{k}" for k in range(card)] for card in cards], parents, tables)


def draw_table(shape: NDArray[np.int64], alpha: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw a table of the given shape, its rows from a symmetric Dirichlet distribution, none all but ruled out."""
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
    >>> from kinfolk.datasets import make_related_networks
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
        check_count("n_rows", size, 0)
    if form not in ("dict", "long"):
        raise ValueError(f'form is {form!r}, but must be "dict" or "long"')
    if frame not in ("polars", "pandas"):
        raise ValueError(f'frame is {frame!r}, but must be "polars" or "pandas"')
    seeds = np.random.SeedSequence(seed_of(random_state)).spawn(len(tasks))
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


def seed_of(random_state: Seed) -> int:
    """Make one whole number of whatever scikit-learn takes as a seed."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def check_count(name: str, value: Any, least: int) -> None:
    """Refuse what is not a whole number of at least so many."""
    if not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} is {value!r}, but must be a whole number of at least {least}")
