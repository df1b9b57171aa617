"""Priors of all tasks' structures together (eq. 7 and 8), and their strength, given or inferred.

A penalty δ is held as λ = −ln(1 − δ), so that one near 1 keeps its digits. λ is inferred without rows held out, which
the paper's section 5 leaves open. If acyclicity is left aside, the joint prior factorises over pairs of variables, and
so does its normaliser: for one pair that k tasks have, Z(λ) = Σ_s exp(−λ · cost(s)) over the 3^k ways to give each task
a state, whose cost depends only on how many tasks are in each. Given structures whose differences cost E in total, λ
then maximises

    −λ·E − Σ_pairs log Z(λ) − λ,

the last term an exponential prior worth one edit, which keeps λ finite where all structures agree. This is concave in
λ, since log Z, the log of a sum of exponentials, is convex. Structures and λ are improved in turn, and with the uniform
P(G) no turn lowers their joint posterior; the exponent on any other P(G) depends on λ, which is left aside here.

In the papers: Niculescu-Mizil and Caruana (2012), eq. (6)–(8), section 5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, logsumexp

_PRIOR_EDITS = 1.0
_STRONGEST = 60.0


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
    """λ = −ln(1 − δ) of a penalty δ from 0 to 1; δ = −expm1(−λ) is the way back."""
    return math.inf if penalty == 1 else -math.log1p(-penalty)


def edit_costs(add: float = 1.0, remove: float = 1.0, reverse: float = 1.0) -> NDArray[np.float64]:
    """Costs of the edits that turn a consensus state (row) into a task's own state (column).

    Parameters
    ----------
    add : float, default=1.0
        Cost of an arc that the consensus lacks.
    remove : float, default=1.0
        Cost of lacking the consensus's arc.
    reverse : float, default=1.0
        Cost of the consensus's arc turned round; 2 counts a reversal as two edits.

    Returns
    -------
    ndarray of shape (3, 3)

    Examples
    --------
    >>> edit_costs(remove=0.5, reverse=2)
    array([[0. , 1. , 1. ],
           [0.5, 0. , 2. ],
           [0.5, 2. , 0. ]])
    """
    return np.array([[0.0, add, add], [remove, 0.0, reverse], [remove, reverse, 0.0]])


def pair_costs(arc: float = 1.0, reverse: float = 2.0) -> NDArray[np.float64]:
    """Differences between the states of two tasks; the defaults are the symmetric difference of their arcs.

    Parameters
    ----------
    arc : float, default=1.0
        Difference between an arc and no arc.
    reverse : float, default=2.0
        Difference between an arc and its reversal.

    Returns
    -------
    ndarray of shape (3, 3), symmetric

    Examples
    --------
    >>> pair_costs()
    array([[0., 1., 1.],
           [1., 0., 2.],
           [1., 2., 0.]])
    """
    return np.array([[0.0, arc, arc], [arc, 0.0, reverse], [arc, reverse, 0.0]])


def differences(kind: str, counts: NDArray[np.int64], costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """What it costs that so many tasks (last axis) are in each state: edits (eq. 7) or differences in pairs (eq. 8).

    Examples
    --------
    >>> counts = np.array([[1, 2, 1], [4, 0, 0]])
    >>> differences("edit", counts, edit_costs()).tolist(), differences("paired", counts, pair_costs()).tolist()
    ([2.0, 0.0], [7.0, 0.0])
    """
    if kind == "edit":
        return np.asarray((counts @ costs.T).min(axis=-1))
    return np.asarray(((counts @ costs) * counts).sum(axis=-1) / 2)


def total_cost(
    kind: str,
    costs: NDArray[np.float64],
    structures: NDArray[np.bool_],
    present: NDArray[np.bool_],
    factors: NDArray[np.float64],
) -> float:
    """What the structures' differences cost, over all pairs of variables, each among the tasks that have the pair."""
    along = np.triu(structures.sum(axis=0), 1)
    against = np.triu(structures.sum(axis=0).T, 1)
    both = np.triu(present.T.astype(np.int64) @ present, 1)
    counts = np.stack([both - along - against, along, against], axis=-1)
    return float((factors * differences(kind, counts, costs)).sum())


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


class PairSpectrum(NamedTuple):
    """How many ways (as a log) there are to give k tasks states at each cost."""

    cost: NDArray[np.float64]
    log_ways: NDArray[np.float64]

    def log_normaliser(self, strength: float) -> float:
        """Natural log of Z at a given λ."""
        return float(logsumexp(self.log_ways - strength * self.cost))


def pair_spectrum(kind: str, n_tasks: int, costs: NDArray[np.float64], divisor: float) -> PairSpectrum:
    """Costs of all ways to give tasks states; ``divisor`` is the Paired prior's n_tasks − 1.

    Examples
    --------
    >>> spectrum = pair_spectrum("edit", 2, edit_costs(), 1)  # three ways to agree, six to differ
    >>> round(float(np.exp(spectrum.log_normaliser(0.0))), 6), round(float(np.exp(spectrum.log_normaliser(40.0))), 6)
    (9.0, 3.0)
    """
    n1, n2 = np.nonzero(np.tri(n_tasks + 1, dtype=bool)[::-1])
    counts = np.stack([n_tasks - n1 - n2, n1, n2], axis=-1)
    log_ways = gammaln(n_tasks + 1) - gammaln(counts + 1).sum(axis=-1)
    return PairSpectrum(differences(kind, counts, costs) / divisor, log_ways)


def log_strength_posterior(
    strength: float, total_cost: float, spectra: list[PairSpectrum], n_pairs: list[int]
) -> float:
    """Log posterior of λ given structures, up to a constant; spectra go with the numbers of pairs that have them."""
    normaliser = sum(n * spectrum.log_normaliser(strength) for n, spectrum in zip(n_pairs, spectra, strict=True))
    return -strength * (total_cost + _PRIOR_EDITS) - normaliser


def best_strength(total_cost: float, spectra: list[PairSpectrum], n_pairs: list[int]) -> float:
    """λ that maximises its posterior given structures."""
    found = minimize_scalar(
        lambda strength: -log_strength_posterior(strength, total_cost, spectra, n_pairs),
        bounds=(0.0, _STRONGEST),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(found.x)
