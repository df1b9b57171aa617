"""What a user says about arcs, by the names of variables and tasks, as matrices over their places.

In the papers: Niculescu-Mizil and Caruana (2012), eq. (1).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.model.network import Adjacency, Constraints, Structures, listed_arcs, topological_order
from kinfolk.networks.model.priors import strength


def adjacency_from(arcs: Any, variables: Sequence[str], what: str) -> Adjacency:
    """Read a matrix of arcs from a networkx graph, a network of ours, or a list of pairs of names."""
    place = {name: v for v, name in enumerate(variables)}
    adjacency = np.zeros((len(variables), len(variables)), dtype=bool)
    try:
        listed = listed_arcs(arcs)
    except TypeError:
        raise ValueError(f"{what}={arcs!r}: a graph or a list of arcs, pairs of variables, is needed") from None
    for arc in listed:
        adjacency[arc_places(arc, place, what)] = True
    return adjacency


def make_constraints(
    required: Any,
    forbidden: Any,
    tiers: Any,
    max_parents: Any,
    variables: Sequence[str],
    constant: NDArray[np.bool_] | None = None,
) -> Constraints:
    """Check that required arcs can all be at once; variables that are ``constant`` have no others."""
    n = len(variables)
    none = np.zeros((n, n), dtype=bool)
    must = none if required is None else adjacency_from(required, variables, "required")
    never = none if forbidden is None else adjacency_from(forbidden, variables, "forbidden")
    against = none if tiers is None else _backwards(tiers, variables)
    both = np.argwhere(must & against)
    if len(both):
        i, j = both[0]
        raise ValueError(f"the arc {variables[i]!r} → {variables[j]!r} is required, but leads to an earlier tier")
    never = never | against
    most = n if max_parents is None else min(int(max_parents), n)
    both = np.argwhere(must & never)
    if len(both):
        i, j = both[0]
        raise ValueError(f"the arc {variables[i]!r} → {variables[j]!r} is both required and forbidden")
    if must.any():
        try:
            topological_order(must, variables)
        except ValueError as error:
            raise ValueError(f"required arcs contradict each other: {error}") from None
    crowded = np.flatnonzero(must.sum(axis=0) > most)
    if len(crowded):
        raise ValueError(f"variable {variables[crowded[0]]!r} has more required parents than max_parents={most} allows")
    allowed = ~never & ~np.eye(n, dtype=bool) & ~must.T
    if constant is not None and constant.any():
        allowed &= must | ~(constant | constant[:, None])
    return Constraints(allowed, must, most)


def _backwards(tiers: Any, variables: Sequence[str]) -> Adjacency:
    """Arcs from a later tier to an earlier one; variables that no tier names may have any."""
    tier_of: dict[str, int] = {}
    for number, tier in enumerate(_listed_tiers(tiers)):
        for name in tier:
            if name not in variables:
                raise ValueError(f"tiers: {name!r} is not a variable; the variables are {_listed(variables)}")
            if name in tier_of:
                raise ValueError(f"tiers: {name!r} stands in two of them, or twice in one")
            tier_of[name] = number
    when = np.array([tier_of.get(name, np.nan) for name in variables])
    return np.asarray(when[:, None] > when[None, :])


def _listed_tiers(tiers: Any) -> list[list[str]]:
    try:
        listed = [None if isinstance(tier, str) else list(tier) for tier in tiers]
    except TypeError:
        listed = [None]
    if isinstance(tiers, str | Mapping) or None in listed:
        raise ValueError(f"tiers={tiers!r}: a list of lists of variables is needed, the earliest first")
    return [tier for tier in listed if tier is not None]


def make_starts(
    start: Any, tasks: Sequence[Any], present: NDArray[np.bool_], variables: Sequence[str], constraints: Constraints
) -> Structures:
    """Structures to start from: the given ones, with required arcs, without arcs of variables that a task lacks."""
    structures = np.zeros((len(tasks), len(variables), len(variables)), dtype=bool)
    if start is None and not constraints.required.any():
        return structures
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


def check_costs(kind: str, costs: Mapping[str, Any]) -> None:
    """Refuse costs of kinds of edits that a prior does not know, or that are not numbers."""
    known = ("add", "remove", "reverse") if kind == "edit" else ("arc", "reverse")
    for name, cost in costs.items():
        if name not in known:
            raise ValueError(f"costs: {name!r} is not a kind of edit of the prior {kind!r}; {', '.join(known)} are")
        if isinstance(cost, bool) or not isinstance(cost, int | float | np.number):
            raise ValueError(f"costs: the cost {cost!r} of {name!r} is not a number")
        if not 0 <= cost < np.inf:
            raise ValueError(f"costs: the cost {cost!r} of {name!r} must be a finite number of at least 0")


# Priors of structures that have a name. The last two begin with 1 / n_variables: about one arc a variable is expected.
UNIFORM, SPARSE, LEARN = "uniform", "sparse", "learn"


def is_for_all_arcs(prior: Any) -> bool:
    """Whether a prior of one structure is the same for all arcs."""
    return prior is None or isinstance(prior, str | int | float | np.number)


def knows_no_direction(prior: Any) -> bool:
    """Whether a prior of one structure gives both directions of every arc the same probability.

    Examples
    --------
    >>> knows_no_direction({("a", "b"): 0.1, ("b", "a"): 0.1}), knows_no_direction({("a", "b"): 0.1})
    (True, False)
    """
    if is_for_all_arcs(prior):
        return True
    return isinstance(prior, Mapping) and all(
        isinstance(arc, tuple) and prior.get(arc[::-1]) == probability for arc, probability in prior.items()
    )


def arc_log_odds(prior: Any, n_variables: int) -> float:
    """What log P(G) of one structure gains by any arc: nothing where the prior is uniform or by arc."""
    if not is_for_all_arcs(prior) or prior is None:
        return 0.0
    if isinstance(prior, str):
        if prior not in (UNIFORM, SPARSE, LEARN):
            raise ValueError(
                f'structure_prior={prior!r}: a probability between 0 and 1, "sparse", "learn" or "uniform" is needed'
            )
        prior = 1 / 2 if prior == UNIFORM else 1 / max(n_variables, 2)
    if isinstance(prior, bool) or not 0 < prior < 1:
        raise ValueError(f"structure_prior={prior!r}: a probability between 0 and 1 is needed")
    return math.log(prior) - math.log1p(-prior)


def structure_log_odds(prior: Any, variables: Sequence[str]) -> NDArray[np.float64]:
    """What log P(G) of one structure gains by each arc i → j.

    Parameters
    ----------
    prior : None, a word, a number, a mapping of arcs to probabilities, or a pair (graph, kappa)
        None is the uniform prior; words and numbers are for all arcs alike, which :func:`arc_log_odds` reads. Arcs
        with probabilities are present independently (Buntine 1991); arcs that are not named are as likely as not. A
        graph believed to be near the true one makes each arc more, or fewer, than it has ``kappa`` times as likely
        (Heckerman et al. 1995).
    variables : sequence of str
    """
    odds = np.zeros((len(variables), len(variables)))
    place = {name: v for v, name in enumerate(variables)}
    if is_for_all_arcs(prior):
        return odds
    if isinstance(prior, Mapping):
        for arc, probability in prior.items():
            i, j = arc_places(arc, place, "structure_prior")
            if not (isinstance(probability, int | float | np.number) and 0 < probability < 1):
                raise ValueError(
                    f"structure_prior, arc {arc!r}: {probability!r} is not a probability between 0 and 1; "
                    "to rule an arc in or out, use required= or forbidden="
                )
            odds[i, j] = math.log(probability) - math.log1p(-probability)
        return odds
    try:
        graph, kappa = prior
        arcs = listed_arcs(graph)
    except (TypeError, ValueError):
        raise ValueError(
            f'structure_prior={prior!r}: a probability, "sparse", "learn" or "uniform", probabilities by arc, or a '
            "graph and a factor are needed"
        ) from None
    if not (isinstance(kappa, int | float | np.number) and 0 < kappa <= 1):
        raise ValueError(f"structure_prior: the factor {kappa!r} for each difference must be over 0 and at most 1")
    odds[:] = math.log(kappa)
    for arc in arcs:
        i, j = arc_places(arc, place, "structure_prior")
        odds[i, j] = -math.log(kappa)
    return odds


def arc_places(arc: Any, place: Mapping[str, int], what: str) -> tuple[int, int]:
    """Places of an arc's two variables, given by name."""
    try:
        if isinstance(arc, str):  # two letters would pass for two names
            raise TypeError
        first, second = arc
    except (TypeError, ValueError):
        raise ValueError(f"{what}: {arc!r} is not an arc, a pair of variables is") from None
    for name in (first, second):
        if name not in place:
            raise ValueError(f"{what}: {name!r} is not a variable; the variables are {_listed(place)}")
    if first == second:
        raise ValueError(f"{what}: the arc {arc!r} leads from a variable to itself")
    return place[first], place[second]


def _listed(names: Iterable[str], most: int = 10) -> str:
    listed = list(names)
    return ", ".join(listed[:most]) + (", …" if len(listed) > most else "")
