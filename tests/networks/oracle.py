"""Scores and searches of Bayes nets by counting and enumeration, in plain Python, sharing no code with the package."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

# Changes whose gains differ by less are taken as equal: equivalent structures score the same but for rounding.
TIE = 1e-8


def log_family(codes, cards, child, parents, score="bdeu", ess=1.0, weights=None):
    """Score of a variable with its parents, from a dictionary of counts.

    BDeu and K2 are products of Dirichlet-multinomial marginals (Heckerman et al. 1995, eq. 28), where a configuration
    that no row has is a factor of 1. BIC is the maximal log likelihood less half a log n for each free parameter.
    """
    counts = defaultdict(lambda: np.zeros(int(cards[child])))
    weights = np.ones(len(codes)) if weights is None else weights
    for row, weight in zip(np.asarray(codes).tolist(), weights, strict=True):
        counts[tuple(row[p] for p in parents)][row[child]] += weight
    q, r = math.prod(int(cards[p]) for p in parents), int(cards[child])
    table = np.array(list(counts.values())).reshape(-1, r)
    if score == "bic":
        seen = table[table.sum(axis=1) > 0]
        share = seen / seen.sum(axis=1, keepdims=True)
        fit = float((seen * np.log(np.where(seen > 0, share, 1.0))).sum())
        return fit - 0.5 * math.log(sum(weights)) * q * (r - 1)
    cell = ess / (q * r) if score == "bdeu" else 1.0
    rows = gammaln(cell * r) - gammaln(cell * r + table.sum(axis=1))
    return float(rows.sum() + (gammaln(cell + table) - gammaln(cell)).sum())


def is_acyclic(adjacency):
    """Whether taking away variables without parents, again and again, leaves none."""
    left = np.array(adjacency, dtype=bool)
    while len(left):
        free = ~left.any(axis=0)
        if not free.any():
            return False
        left = left[np.ix_(~free, ~free)]
    return True


def all_structures(n):
    """All directed acyclic graphs of n variables: those of which some power is nothing."""
    pairs = list(combinations(range(n), 2))
    states = np.array(list(product(range(3), repeat=len(pairs))))
    adjacency = np.zeros((len(states), n, n), dtype=bool)
    for place, (i, j) in enumerate(pairs):
        adjacency[:, i, j], adjacency[:, j, i] = states[:, place] == 1, states[:, place] == 2
    power = adjacency
    for _ in range(n - 1):
        power = power @ adjacency
    return adjacency[~power.any(axis=(1, 2))]


def scores_of_all(structures, family):
    """Score of each of many structures, from ``family(child, parents)``."""
    n = structures.shape[1]
    total = np.zeros(len(structures))
    for v in range(n):
        sets = structures[:, :, v] @ (1 << np.arange(n))
        known = {own: family(v, tuple(p for p in range(n) if own >> p & 1)) for own in set(sets.tolist())}
        total += [known[own] for own in sets.tolist()]
    return total


class Task(NamedTuple):
    """One task: its rows over all variables, and those that it has."""

    codes: np.ndarray
    here: tuple[int, ...]


class Rules(NamedTuple):
    """What structures may be and what is believed of them; ``arcs`` is the gain of log P(G) by each arc."""

    allowed: np.ndarray
    required: np.ndarray
    most_parents: int
    arcs: np.ndarray


def no_rules(n, most_parents=None):
    return Rules(
        ~np.eye(n, dtype=bool),
        np.zeros((n, n), dtype=bool),
        n if most_parents is None else most_parents,
        np.zeros((n, n)),
    )


class Scorer:
    """Log posteriors of the structures of several tasks, families counted once.

    ``penalty(states, tasks, i, j)`` is what the joint prior takes off for the states (0 no arc, 1 from i to j, 2 from j
    to i) of one pair in the tasks that have it; ``exponent(t, i, j)`` weakens a task's own structure prior.
    """

    def __init__(
        self,
        tasks: list[Task],
        cards: np.ndarray,
        rules: Rules,
        score: str = "bdeu",
        ess: float = 1.0,
        penalty: Callable[..., float] = lambda states, tasks, i, j: 0.0,
        exponent: Callable[..., float] = lambda t, i, j: 1.0,
    ) -> None:
        self.tasks, self.cards, self.rules = tasks, cards, rules
        self.score, self.ess = score, ess
        self.penalty, self.exponent = penalty, exponent
        self.known: dict[tuple[int, int, tuple[int, ...]], float] = {}

    def family(self, t: int, child: int, parents: tuple[int, ...]) -> float:
        key = (t, child, parents)
        if key not in self.known:
            beliefs = sum(self.exponent(t, p, child) * self.rules.arcs[p, child] for p in parents)
            counted = log_family(self.tasks[t].codes, self.cards, child, parents, self.score, self.ess)
            self.known[key] = counted + beliefs
        return self.known[key]

    def own(self, t: int, adjacency: np.ndarray) -> float:
        """A task's own score, its structure prior included."""
        return sum(self.family(t, v, tuple(np.flatnonzero(adjacency[:, v]).tolist())) for v in self.tasks[t].here)

    def pair_penalty(self, structures: np.ndarray, i: int, j: int) -> float:
        who = self.who(i, j)
        return self.penalty([state_of(structures[t], i, j) for t in who], who, i, j) if len(who) > 1 else 0.0

    def who(self, i: int, j: int) -> list[int]:
        """Tasks that have both variables."""
        return [t for t, task in enumerate(self.tasks) if i in task.here and j in task.here]

    def total(self, structures: np.ndarray) -> float:
        """Log posterior of all tasks' structures, from scratch, up to the joint prior's normaliser."""
        own = sum(self.own(t, structure) for t, structure in enumerate(structures))
        return own - sum(self.pair_penalty(structures, i, j) for i, j in combinations(range(len(self.cards)), 2))

    def legal(self, structure: np.ndarray) -> bool:
        rules = self.rules
        return bool(
            not (structure & ~rules.allowed).any()
            and (structure.sum(axis=0) <= rules.most_parents).all()
            and is_acyclic(structure)
        )

    def neighbours(self, structures: np.ndarray) -> Iterator[tuple[float, np.ndarray]]:
        """Gain and result of every change of one pair of variables, in every set of tasks that have it."""
        for i, j in combinations(range(len(self.cards)), 2):
            who = self.who(i, j)
            options = []
            for t in who:
                before = self.own(t, structures[t])
                now = state_of(structures[t], i, j)
                its = []
                for state in range(3):
                    changed = with_state(structures[t], i, j, state)
                    lost = (self.rules.required & structures[t] & ~changed).any()
                    if state == now or (not lost and self.legal(changed)):
                        its.append((state, self.own(t, changed) - before))
                options.append(its)
            current = [state_of(structures[t], i, j) for t in who]
            penalty = self.pair_penalty(structures, i, j)
            for chosen in product(*options):
                states = [state for state, _ in chosen]
                if states == current:
                    continue
                result = structures.copy()
                for t, state in zip(who, states, strict=True):
                    result[t] = with_state(structures[t], i, j, state)
                now_penalty = self.penalty(states, who, i, j) if len(who) > 1 else 0.0
                yield sum(gain for _, gain in chosen) + penalty - now_penalty, result

    def climb(self, structures: np.ndarray) -> np.ndarray:
        """Take the best change until none gains; of equals the first pair's, then the lowest states."""
        while True:
            changes = list(self.neighbours(structures))
            best = max((gain for gain, _ in changes), default=-math.inf)
            if best <= TIE:
                return structures
            structures = next(result for gain, result in changes if gain >= best - TIE)

    def ends(self, structures: np.ndarray) -> list[np.ndarray]:
        """Everywhere that climbs can end which take the best change until none gains, whichever of equals they take."""
        waiting, seen, ends = [structures], {structures.tobytes()}, []
        while waiting:
            here = waiting.pop()
            changes = list(self.neighbours(here))
            best = max((gain for gain, _ in changes), default=-math.inf)
            if best <= TIE:
                ends.append(here)
                continue
            for gain, result in changes:
                if gain >= best - TIE and result.tobytes() not in seen:
                    seen.add(result.tobytes())
                    waiting.append(result)
        return ends


def state_of(structure, i, j):
    return 1 if structure[i, j] else 2 if structure[j, i] else 0


def with_state(structure, i, j, state):
    changed = structure.copy()
    changed[i, j], changed[j, i] = state == 1, state == 2
    return changed


def edit_penalty(strength, add=1.0, remove=1.0, reverse=1.0):
    """Eq. 7: λ for each edit that turns one state into every task's own."""
    cost = [[0.0, add, add], [remove, 0.0, reverse], [remove, reverse, 0.0]]

    def penalty(states, tasks, i, j):
        edits = min(sum(cost[c][state] for state in states) for c in range(3))
        return _strength(strength, i, j) * edits if edits > 0 else 0.0

    return penalty


def paired_penalty(strength, n_tasks, arc=1.0, reverse=2.0, between=None):
    """Eq. 8: λ / (k − 1) for each difference of each two tasks; ``between`` has a λ for each two tasks instead."""
    cost = [[0.0, arc, arc], [arc, 0.0, reverse], [arc, reverse, 0.0]]

    def penalty(states, tasks, i, j):
        total = 0.0
        for a, b in combinations(range(len(tasks)), 2):
            apart = cost[states[a]][states[b]]
            if apart > 0:
                own = _strength(strength, i, j) if between is None else between[tasks[a]][tasks[b]]
                total += own * apart / (n_tasks - 1)
        return total

    return penalty


def _strength(strength, i, j):
    return strength[i, j] if isinstance(strength, np.ndarray) else strength


def random_dag(rng, n, density=0.5):
    """A random acyclic structure."""
    order = rng.permutation(n)
    return np.triu(rng.random((n, n)) < density, 1)[np.ix_(order, order)]


def random_rows(rng, adjacency, cards, n_rows, concentration=0.5):
    """Rows of a network with random tables."""
    codes = np.full((n_rows, len(cards)), -1)
    while (codes < 0).any():
        for v in range(len(cards)):
            parents = np.flatnonzero(adjacency[:, v])
            if (codes[:, v] < 0).all() and (codes[:, parents] >= 0).all():
                tables = rng.dirichlet(np.full(cards[v], concentration), tuple(cards[parents]))
                edges = tables[tuple(codes[:, p] for p in parents)].cumsum(axis=-1)[..., :-1]
                codes[:, v] = (rng.random((n_rows, 1)) > edges).sum(axis=1)
    for v in range(len(cards)):
        codes[:2, v] = np.arange(2)[:n_rows]  # no column is constant
    return codes


def random_cards(rng, n, most=4):
    return rng.integers(2, most + 1, n)


def related_rows(rng, n_tasks, cards, n_rows, p_delete=0.25):
    """Rows of tasks whose structures are one, each less some arcs."""
    common = random_dag(rng, len(cards))
    structures = [common & (rng.random(common.shape) >= p_delete) for _ in range(n_tasks)]
    return [random_rows(rng, structure, cards, n_rows) for structure in structures]


def as_frame(codes, cards, columns=None):
    """Rows as a pandas table of variables a, b, …, whose columns know all their states."""
    import pandas as pd

    columns = range(len(cards)) if columns is None else columns
    return pd.DataFrame(
        {
            "abcdefghij"[v]: pd.Categorical.from_codes(codes[:, v], categories=[f"{v}{x}" for x in range(cards[v])])
            for v in columns
        }
    )


def as_matrix(graph, n):
    """A graph over a, b, … as a matrix of arcs."""
    adjacency = np.zeros((n, n), dtype=bool)
    for parent, child in graph.edges:
        adjacency["abcdefghij".index(parent), "abcdefghij".index(child)] = True
    return adjacency
