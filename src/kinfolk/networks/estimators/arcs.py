"""What a user says about arcs, by the names of variables and tasks, as matrices over their places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.model.constraints import Constraints, Structures
from kinfolk.networks.model.network import Adjacency, topological_order
from kinfolk.networks.model.priors import arc_places, strength


def adjacency_from(arcs: Any, variables: Sequence[str], what: str) -> Adjacency:
    """Read a matrix of arcs from a networkx graph, a network of ours, or a list of pairs of names."""
    place = {name: v for v, name in enumerate(variables)}
    adjacency = np.zeros((len(variables), len(variables)), dtype=bool)
    graph = arcs.graph() if hasattr(arcs, "tables") and callable(getattr(arcs, "graph", None)) else arcs
    try:
        listed = list(graph.edges if hasattr(graph, "edges") else graph)
    except TypeError:
        raise ValueError(f"{what}={arcs!r}: a graph or a list of arcs, pairs of variables, is needed") from None
    for arc in listed:
        adjacency[arc_places(arc, place, what)] = True
    return adjacency


def make_constraints(required: Any, forbidden: Any, max_parents: Any, variables: Sequence[str]) -> Constraints:
    """Check that required arcs can all be at once."""
    n = len(variables)
    if max_parents is not None and (
        isinstance(max_parents, bool) or not isinstance(max_parents, int | np.integer) or max_parents < 0
    ):
        raise ValueError(f"max_parents={max_parents!r}: a whole number of at least 0, or None, is needed")
    must = adjacency_from(() if required is None else required, variables, "required")
    never = adjacency_from(() if forbidden is None else forbidden, variables, "forbidden")
    most = n if max_parents is None else min(int(max_parents), n)
    both = np.argwhere(must & never)
    if len(both):
        i, j = both[0]
        raise ValueError(f"the arc {variables[i]!r} → {variables[j]!r} is both required and forbidden")
    try:
        topological_order(must, variables)
    except ValueError as error:
        raise ValueError(f"required arcs contradict each other: {error}") from None
    crowded = np.flatnonzero(must.sum(axis=0) > most)
    if len(crowded):
        raise ValueError(f"variable {variables[crowded[0]]!r} has more required parents than max_parents={most} allows")
    allowed = ~never & ~np.eye(n, dtype=bool) & ~must.T
    return Constraints(allowed, must, most)


def make_starts(
    start: Any, tasks: Sequence[Any], present: NDArray[np.bool_], variables: Sequence[str], constraints: Constraints
) -> Structures:
    """Structures to start from: the given ones, with required arcs, without arcs of variables that a task lacks."""
    structures = np.zeros((len(tasks), len(variables), len(variables)), dtype=bool)
    if isinstance(start, Mapping):
        unknown = [name for name in start if name not in tasks]
        if unknown:
            raise ValueError(f"start: {unknown[0]!r} is not a task; the tasks are {list(tasks)}")
        for t, name in enumerate(tasks):
            if name in start:
                structures[t] = adjacency_from(start[name], variables, "start")
    elif start is not None:
        structures[:] = adjacency_from(start, variables, "start")
    both = present[:, :, None] & present[:, None, :]
    structures = (structures | constraints.required) & both
    for t, structure in enumerate(structures):
        try:
            topological_order(structure, variables)
        except ValueError as error:
            raise ValueError(f"the start graph of task {tasks[t]!r} is not acyclic: {error}") from None
        banned = np.argwhere(structure & ~constraints.allowed)
        if len(banned):
            i, j = banned[0]
            raise ValueError(f"start: the arc {variables[i]!r} → {variables[j]!r} is forbidden")
        crowded = np.flatnonzero(structure.sum(axis=0) > constraints.most_parents)
        if len(crowded):
            raise ValueError(
                f"start: variable {variables[crowded[0]]!r} has more parents than "
                f"max_parents={constraints.most_parents} allows"
            )
    return structures


def _penalty(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value <= 1:
        raise ValueError(f"{what}: {value!r} is not a penalty from 0 to 1")
    return strength(float(value))


def variable_strengths(
    base: float, arc_penalty: Mapping[Any, float] | None, variables: Sequence[str], learnt: bool
) -> NDArray[np.float64]:
    """λ of every pair of variables: ``base``, or what was given for the pair.

    Where the strength is learnt, ``base`` is 1 and what was given are factors on it.
    """
    place = {name: v for v, name in enumerate(variables)}
    strengths = np.full((len(variables), len(variables)), base)
    for arc, value in (arc_penalty or {}).items():
        i, j = arc_places(arc, place, "arc_penalty")
        if learnt:
            if not isinstance(value, int | float | np.number) or not 0 <= value < np.inf:
                raise ValueError(f'arc_penalty, {arc!r}: with penalty="learn" a factor of at least 0 is needed')
            given = float(value)
        else:
            given = _penalty(value, f"arc_penalty, {arc!r}")
        strengths[i, j] = strengths[j, i] = given
    return strengths


def task_strengths(
    base: float, task_penalty: Mapping[Any, float] | None, tasks: Sequence[Any]
) -> NDArray[np.float64] | None:
    """λ of every pair of tasks; None where no pair has one of its own."""
    if not task_penalty:
        return None
    strengths = np.full((len(tasks), len(tasks)), base)
    for pair, value in task_penalty.items():
        try:
            first, second = pair
            s, t = tasks.index(first), tasks.index(second)
        except (TypeError, ValueError):
            raise ValueError(f"task_penalty: {pair!r} is not a pair of tasks; the tasks are {list(tasks)}") from None
        if s == t:
            raise ValueError(f"task_penalty: {pair!r} names one task twice")
        strengths[s, t] = strengths[t, s] = _penalty(value, f"task_penalty, {pair!r}")
    np.fill_diagonal(strengths, 0.0)
    return strengths
