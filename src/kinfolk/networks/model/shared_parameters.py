"""Tables of related tasks under a hierarchical Dirichlet prior: a task's kin count as some rows of its own.

For a variable, configuration u of its parents and task t,

    θ_tu ~ Dir(α + s·m_u),        n_tu ~ Mult(θ_tu),

where m_u is what the tasks have in common, s (one per variable, in rows) how closely they follow it, and α the prior
of a cell that a task on its own would have. m_u is known only through the other tasks' rows; matching moments turns it
into pseudo-counts (i runs over the tasks other than t):

1. n_iu / N_iu has mean m_u and variance m_u(1 − m_u)(N_iu + s) / (N_iu(1 + s)), as much as a plain sample of
   e_iu·N_iu rows, e_iu = (1 + s) / (N_iu + s). The others together are worth M_tu = Σ_i e_iu·N_iu rows of m_u itself.
2. With m_u ~ Dir(M·m̂) and θ ~ Dir(s·m_u), θ has mean m̂ and variance m̂(1 − m̂)(1 + M + s) / ((1 + M)(1 + s)), those
   of a Dirichlet of strength S = M·s / (1 + M + s). Hence θ_tu ~ Dir(α + b_tu) with the borrowed counts

       b_tuk = s / (1 + M_tu + s) · Σ_i e_iu·n_iuk.

   s → 0 borrows nothing: the tables of independent tasks. s → ∞ borrows every row whole: the tables of pooled rows.
   Where the others saw nothing of u, nothing is borrowed, however large s is.
3. s maximises what the other tasks' rows say about each task's, with a broad log-normal prior that keeps it finite,

       Σ_t Σ_u log DM(n_tu | α + b_tu(s)) + log p(s),        DM(n | a) = B(a + n) / B(a).

   No task's rows take part in its own prior, so unrelated tasks earn s no credit for fitting m_u to them.

Structures may differ: the pseudo-counts of task t come from the others' counts of *its* family, whatever parents the
variable has there; any task that has the child and all of these parents can be counted.

In the papers: Niculescu-Mizil and Caruana (2012), section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import lgamma, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.networks.model.parameters import family_cells, table_shape
from kinfolk.networks.model.scores.bdeu import CRITERION as BDEU
from kinfolk.networks.model.scores.criterion import Criterion

# The prior of log s: half of it below ten rows, nearly all between 0.03 and 4,000.
_MEDIAN_STRENGTH = 10.0
_LOG_SPREAD = 3.0
_LOG_STRENGTHS = np.linspace(np.log(1e-3), np.log(1e6), 28)


class SharedTables(NamedTuple):
    """Tables of every task, and how strongly tasks were found to agree.

    Attributes
    ----------
    tables : tuple of tuples of ndarray
        For each task and each variable: one axis for each parent, in the order given, then the variable's own.
    strengths : ndarray of shape (n_variables,)
        s of each variable, in rows; the prior's median where no two tasks can be compared.
    """

    tables: tuple[tuple[NDArray[np.float64], ...], ...]
    strengths: NDArray[np.float64]


class _Family(NamedTuple):
    """The counts of one family in all tasks, where any task saw it, and the tasks that have it in their structure."""

    owners: NDArray[np.int64]
    shape: tuple[int, ...]
    cell_prior: float
    seen: NDArray[np.int64]
    counts: NDArray[np.float64]


def learn_shared_tables(
    codes_per_task: Sequence[NDArray[np.integer[Any]]],
    parents_per_task: Sequence[Sequence[Sequence[int]]],
    cards: NDArray[np.integer[Any]],
    criterion: Criterion = BDEU,
    ess: float = 1.0,
    weights_per_task: Sequence[NDArray[np.float64]] | None = None,
    variables: Sequence[str] | None = None,
) -> SharedTables:
    """Learn the tables of all tasks together, their structures known.

    Parameters
    ----------
    codes_per_task : sequence of int arrays of shape (n_rows, n_variables)
        One array a task, all over the same variables. A row counts for a family if none of the family's cells is
        missing (below zero); a variable that a task lacks is missing in all of its rows.
    parents_per_task : sequence of sequences of sequences of int
        For each task, places of each variable's parents.
    cards : int array of shape (n_variables,)
        Number of states of each variable.
    criterion, ess
        The prior α of a task on its own, as for :func:`~kinfolk.networks.model.parameters.learn_tables`.
    weights_per_task : sequence of ndarray of shape (n_rows,), optional
        How many rows each row stands for.
    variables : sequence of str, optional
        Names for error messages.

    Examples
    --------
    A task of two rows takes what it lacks from one of many rows that agrees with it.

    >>> many = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], [40, 10, 10, 40], axis=0)
    >>> few = np.array([[0, 0], [1, 1]])
    >>> shared = learn_shared_tables([many, few, many], [[[], [0]]] * 3, np.array([2, 2]))
    >>> shared.tables[1][1].round(1).tolist()
    [[0.8, 0.2], [0.2, 0.8]]
    """
    n_tasks = len(codes_per_task)
    codes = np.concatenate([np.asarray(its, dtype=np.int32) for its in codes_per_task]).copy(order="F")
    task = np.repeat(np.arange(n_tasks), [len(its) for its in codes_per_task])
    weights = None if weights_per_task is None else np.concatenate(list(weights_per_task))
    strengths = np.empty(len(cards))
    tables: list[list[NDArray[np.float64]]] = [[] for _ in range(n_tasks)]
    for v in range(len(cards)):
        owners: dict[tuple[int, ...], list[int]] = {}
        for t in range(n_tasks):
            owners.setdefault(tuple(parents_per_task[t][v]), []).append(t)
        families = []
        for parents, its_owners in owners.items():
            shape = table_shape(v, parents, cards, variables)
            seen, counts = _count(codes, task, n_tasks, v, parents, cards, weights)
            alone = criterion.cell_prior(ess, prod(shape))
            families.append(_Family(np.array(its_owners), shape, alone, seen, counts))
        strengths[v] = _learn_strength(families)
        learnt: dict[int, NDArray[np.float64]] = {}
        for family in families:
            learnt.update(zip(family.owners.tolist(), _tables(family, strengths[v]), strict=True))
        for t in range(n_tasks):
            tables[t].append(learnt[t])
    return SharedTables(tuple(map(tuple, tables)), strengths)


@compiled
def borrowed_counts(counts: NDArray[np.float64], owners: NDArray[np.int64], strength: float) -> NDArray[np.float64]:
    """Equation 2 for each owner, from counts laid out as (task, configuration, state). O(counts)."""
    n_tasks, n_configurations, n_states = counts.shape
    borrowed = np.empty((len(owners), n_configurations, n_states))
    rows = np.empty(n_tasks)
    each = np.empty(n_tasks)
    weighted = np.empty(n_states)
    for u in range(n_configurations):
        worth = 0.0
        weighted[:] = 0.0
        for t in range(n_tasks):
            rows[t] = 0.0
            for k in range(n_states):
                rows[t] += counts[t, u, k]
            each[t] = (1.0 + strength) / (rows[t] + strength)
            worth += each[t] * rows[t]
            for k in range(n_states):
                weighted[k] += each[t] * counts[t, u, k]
        for place in range(len(owners)):
            t = owners[place]
            # Sums less the owner's own term may fall short of zero by rounding.
            share = strength / (1.0 + max(worth - each[t] * rows[t], 0.0) + strength)
            for k in range(n_states):
                borrowed[place, u, k] = share * max(weighted[k] - each[t] * counts[t, u, k], 0.0)
    return borrowed


@compiled
def log_marginal(
    counts: NDArray[np.float64], owners: NDArray[np.int64], prior: float, borrowed: NDArray[np.float64]
) -> float:
    """Σ log DM(n | prior + borrowed) over the owners' configurations, rows taken as an ordered sequence."""
    n_states = counts.shape[2]
    total = 0.0
    for place in range(len(owners)):
        own = counts[owners[place]]
        for u in range(counts.shape[1]):
            n_rows = 0.0
            pseudo = 0.0
            for k in range(n_states):
                a = prior + borrowed[place, u, k]
                pseudo += a
                if own[u, k] > 0.0:
                    n_rows += own[u, k]
                    total += lgamma(a + own[u, k]) - lgamma(a)
            if n_rows > 0.0:
                total += lgamma(pseudo) - lgamma(pseudo + n_rows)
    return total


def _count(
    codes: NDArray[np.int32],
    task: NDArray[np.int64],
    n_tasks: int,
    v: int,
    parents: tuple[int, ...],
    cards: NDArray[np.integer[Any]],
    weights: NDArray[np.float64] | None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Configurations that any task saw, and counts of shape (task, those configurations, state)."""
    n_states = int(cards[v])
    place, known = family_cells(codes, v, parents, cards)
    configuration, state = np.divmod(place[known], n_states)
    # Wide families have far more configurations than rows, and counts of all of them would be kept once per task.
    seen, compact = np.unique(configuration, return_inverse=True)
    cell = (task[known] * len(seen) + compact) * n_states + state
    counts = np.bincount(cell, None if weights is None else weights[known], n_tasks * len(seen) * n_states)
    return seen, counts.reshape(n_tasks, len(seen), n_states).astype(np.float64)


def _learn_strength(families: list[_Family]) -> float:
    """Maximise equation 3: a grid over log s first, since it may have two peaks, then between the best one's sides."""
    from scipy.optimize import minimize_scalar

    def loss(log_strength: float) -> float:
        strength = float(np.exp(log_strength))
        fit = sum(
            log_marginal(f.counts, f.owners, f.cell_prior, borrowed_counts(f.counts, f.owners, strength))
            for f in families
        )
        return float(0.5 * ((log_strength - np.log(_MEDIAN_STRENGTH)) / _LOG_SPREAD) ** 2 - fit)

    best = int(np.argmin([loss(log_strength) for log_strength in _LOG_STRENGTHS]))
    sides = _LOG_STRENGTHS[max(best - 1, 0)], _LOG_STRENGTHS[min(best + 1, len(_LOG_STRENGTHS) - 1)]
    return float(np.exp(minimize_scalar(loss, bounds=sides, method="bounded", options={"xatol": 1e-3}).x))


def _tables(family: _Family, strength: float) -> list[NDArray[np.float64]]:
    """Posterior mean of each owner's table: uniform where no task saw the configuration."""
    n_states = family.shape[-1]
    pseudo = family.counts[family.owners] + borrowed_counts(family.counts, family.owners, strength) + family.cell_prior
    tables = []
    for its in pseudo:
        table = np.full((prod(family.shape[:-1]), n_states), 1.0 / n_states)
        table[family.seen] = its / its.sum(axis=1, keepdims=True)
        tables.append(table.reshape(family.shape))
    return tables
