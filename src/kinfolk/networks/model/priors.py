"""Beliefs about structures before any data: of one structure (section 2), and of all tasks' together (eq. 7 and 8).

A penalty δ is held as λ = −ln(1 − δ), so that one near 1 keeps its digits.

In the papers: Niculescu-Mizil and Caruana (2012), eq. (1), (6)–(8).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.model.configurations import edit_costs, pair_costs


class Prior(NamedTuple):
    """How strongly structures are held together, and what is believed of each of them; its type says in which way.

    ``penalty[i, j]`` is λ = −ln(1 − δ) of the pair (i, j), already divided by n_tasks − 1 with the Paired prior;
    ``between`` multiplies it for each pair of tasks, where these have penalties of their own, and is empty elsewhere;
    ``costs`` are of kinds of edits, by state. ``log_odds[i, j]`` is what log P(G) gains by the arc i → j, to be
    multiplied by the task's ``exponent``.
    """

    penalty: NDArray[np.float64]
    between: NDArray[np.float64]
    costs: NDArray[np.float64]
    log_odds: NDArray[np.float64]
    exponent: NDArray[np.float64]


class EditPrior(Prior):
    """Edits that make the arc between two variables the same in all tasks (eq. 7)."""

    __slots__ = ()


class PairedPrior(Prior):
    """Differences between every two tasks (eq. 8)."""

    __slots__ = ()


class PairedByTasksPrior(Prior):
    """Differences between every two tasks, with a penalty for each pair of them."""

    __slots__ = ()


def strength(penalty: float) -> float:
    """λ = −ln(1 − δ) of a penalty δ from 0 to 1."""
    return math.inf if penalty == 1 else -math.log1p(-penalty)


def penalty_of(strength: float) -> float:
    """δ = 1 − exp(−λ), the inverse of :func:`strength`."""
    return -math.expm1(-strength)


def check_costs(kind: str, costs: Mapping[str, Any]) -> None:
    """Refuse costs of kinds of edits that a prior does not know, or that are not numbers."""
    known = ("add", "remove", "reverse") if kind == "edit" else ("arc", "reverse")
    for name, cost in costs.items():
        if name not in known:
            raise ValueError(f"costs: {name!r} is not a kind of edit of the prior {kind!r}; {', '.join(known)} are")
        if isinstance(cost, bool) or not isinstance(cost, int | float | np.number):
            raise ValueError(f"costs: the cost {cost!r} of {name!r} is not a number")


def no_sharing(n_tasks: int, log_odds: NDArray[np.float64]) -> Prior:
    """Structures that have nothing to do with each other."""
    n = len(log_odds)
    nothing = np.zeros((0, 0))
    return EditPrior(np.zeros((n, n)), nothing, edit_costs(), log_odds, np.ones(n_tasks))


def joint_prior(
    kind: str,
    strengths: NDArray[np.float64],
    n_tasks: int,
    log_odds: NDArray[np.float64],
    costs: Mapping[str, float],
    task_strengths: NDArray[np.float64] | None = None,
) -> Prior:
    """Put a prior over all tasks' structures together.

    Parameters
    ----------
    kind : "edit" or "paired"
        Eq. 7 or eq. 8.
    strengths : ndarray of shape (n_variables, n_variables)
        λ of every pair of variables.
    n_tasks : int
    log_odds : ndarray of shape (n_variables, n_variables)
        What log P(G) of one structure gains by each arc.
    costs : mapping
        Costs of kinds of edits: "add", "remove", "reverse" (eq. 7); "arc", "reverse" (eq. 8).
    task_strengths : ndarray of shape (n_tasks, n_tasks), optional
        λ of every pair of tasks, in place of ``strengths`` ("paired" alone).
    """
    n = len(log_odds)
    others = max(n_tasks - 1, 1)
    if task_strengths is not None:
        between = -np.expm1(-task_strengths)
        np.fill_diagonal(between, 0.0)
        # Eq. 8's exponent with one δ for each other task; all equal, it is 1 / (1 + (k − 1) δ) again.
        exponent = 1.0 / (1.0 + between.sum(axis=1))
        return PairedByTasksPrior(np.ones((n, n)), task_strengths / others, pair_costs(**costs), log_odds, exponent)
    # A penalty of its own for each pair of variables gives each pair's arcs an exponent of their own.
    weakened = log_odds / (1.0 + (n_tasks - 1) * -np.expm1(-strengths))
    ones, nothing = np.ones(n_tasks), np.zeros((0, 0))
    if kind == "edit":
        return EditPrior(strengths, nothing, edit_costs(**costs), weakened, ones)
    return PairedPrior(strengths / others, nothing, pair_costs(**costs), weakened, ones)


def structure_log_odds(prior: Any, variables: Sequence[str]) -> NDArray[np.float64]:
    """What log P(G) of one structure gains by each arc i → j.

    Parameters
    ----------
    prior : None, a mapping of arcs to probabilities, or a pair (graph, kappa)
        None is the uniform prior. Arcs with probabilities are present independently (Buntine 1991); arcs that are not
        named are as likely as not. A graph believed to be near the true one makes each arc more, or fewer, than it has
        ``kappa`` times as likely (Heckerman et al. 1995).
    variables : sequence of str
    """
    odds = np.zeros((len(variables), len(variables)))
    place = {name: v for v, name in enumerate(variables)}
    if prior is None:
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
        arcs = list(graph.edges if hasattr(graph, "edges") else graph)
    except (TypeError, ValueError):
        raise ValueError(
            f"structure_prior={prior!r}: None, probabilities by arc, or a graph and a factor are needed"
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
