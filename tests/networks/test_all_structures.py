"""What searches find, against every directed acyclic graph of four and of five variables."""

from itertools import combinations, product
from math import expm1, log

import numpy as np
import pytest

from kinfolk import BayesNets
from tests.networks.oracle import (
    all_structures,
    as_frame,
    as_matrix,
    log_family,
    random_dag,
    random_rows,
    scores_of_all,
)
from tests.networks.test_bhd import by_hand

NUMBERS = {4: 543, 5: 29_281}
STRUCTURES = {n: all_structures(n) for n in NUMBERS}


def draw(seed, n, n_tasks=1, n_rows=70):
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, n)
    structure = random_dag(rng, n, 0.5)
    return [random_rows(rng, structure, cards, n_rows, 0.5) for _ in range(n_tasks)], cards


def odds(p):
    return log(p / (1 - p))


def best_of_all(n, family, arcs):
    """The highest log posterior of all structures, ``arcs[i, j]`` being what an arc adds to their prior."""
    return float((scores_of_all(STRUCTURES[n], family) + (STRUCTURES[n] * arcs).sum(axis=(1, 2))).max())


@pytest.mark.parametrize("n", NUMBERS)
def test_there_are_as_many_structures_as_is_known(n):
    assert len(STRUCTURES[n]) == NUMBERS[n]


@pytest.mark.parametrize("n", NUMBERS)
@pytest.mark.parametrize(
    ("criterion", "search"),
    [("bdeu", "orders"), ("bdeu", "classes"), ("bdeu", "climb"), ("k2", "climb"), ("bic", "climb"), ("bic", "classes")],
)
def test_the_best_of_all_structures_is_found_for_every_score(n, search, criterion):
    for seed in range(3):
        (codes,), cards = draw(seed, n)
        best = best_of_all(
            n, lambda v, its, codes=codes, cards=cards: log_family(codes, cards, v, its, criterion), odds(1 / n)
        )
        model = BayesNets(criterion=criterion, search=search, restarts=20, random_state=0).fit(as_frame(codes, cards))
        assert model.log_score_ == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("n", NUMBERS)
@pytest.mark.parametrize(
    ("prior", "search"),
    [("uniform", "auto"), (0.05, "auto"), (0.05, "classes"), ("arcs", "auto"), ("graph", "auto"), ("edges", "classes")],
)
def test_the_best_of_all_structures_is_found_for_every_prior(n, prior, search):
    for seed in range(3):
        (codes,), cards = draw(10 + seed, n)
        arcs, given = np.full((n, n), 0.0 if isinstance(prior, str) else odds(prior)), prior
        if prior == "arcs":
            given = {("a", "b"): 0.9, ("c", "a"): 0.2}
            arcs[0, 1], arcs[2, 0] = odds(0.9), odds(0.2)
        elif prior == "edges":  # whichever way they point
            given = {("a", "b"): 0.01, ("b", "a"): 0.01, ("a", "d"): 0.95, ("d", "a"): 0.95}
            arcs[0, 1] = arcs[1, 0] = odds(0.01)
            arcs[0, 3] = arcs[3, 0] = odds(0.95)
        elif prior == "graph":
            given = ([("a", "c"), ("b", "d")], 0.3)
            arcs[:] = log(0.3)
            arcs[0, 2] = arcs[1, 3] = -log(0.3)
        best = best_of_all(n, lambda v, its, codes=codes, cards=cards: log_family(codes, cards, v, its), arcs)
        model = BayesNets(structure_prior=given, search=search, restarts=20, random_state=0)
        assert model.fit(as_frame(codes, cards)).log_score_ == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("n", NUMBERS)
def test_no_structure_and_probability_of_an_arc_are_together_more_probable_than_those_learnt(n):
    n_pairs = n * (n - 1) // 2
    for seed in range(4):
        (codes,), cards = draw(30 + seed, n, n_rows=150)
        own = scores_of_all(STRUCTURES[n], lambda v, its, codes=codes, cards=cards: log_family(codes, cards, v, its))
        m = STRUCTURES[n].sum(axis=(1, 2))
        # Given m arcs, odds are best at (m + 1) / (2 (n_pairs - m + 1)): one pair more with an arc, one more without.
        o = (m + 1) / (2 * (n_pairs - m + 1))
        together = own + (m + 1) * np.log(o) - (n_pairs + 2) * np.log1p(2 * o)
        model = BayesNets(structure_prior="learn", restarts=20, random_state=0).fit(as_frame(codes, cards))
        learnt = odds(model.arc_probability_)
        arcs = as_matrix(model.graphs_[0], n).sum()
        found = model.log_score_ + learnt - (n_pairs + 2) * np.log1p(2 * np.exp(learnt))
        assert learnt == pytest.approx(log(o[m == arcs][0]))
        assert found == pytest.approx(together.max(), abs=1e-6)


@pytest.mark.parametrize(("n", "k"), [(4, 3), (5, 2)])
@pytest.mark.parametrize("prior", ["edit", "paired"])
@pytest.mark.parametrize("delta", [0.5, 0.95])
def test_the_best_structures_of_all_tasks_together_are_found(n, k, prior, delta):
    every, strength = STRUCTURES[n], -log(1 - delta)
    pairs = list(combinations(range(n), 2))
    states = np.stack([every[:, i, j] + 2 * every[:, j, i] for i, j in pairs], axis=1)
    cost = np.zeros((3,) * k)
    for its in product(range(3), repeat=k):
        if prior == "edit":  # tasks outside the largest group
            cost[its] = k - max(its.count(state) for state in range(3))
        else:  # arcs that one of two tasks has and the other has not
            apart = np.array([[0, 1, 1], [1, 0, 2], [1, 2, 0]])
            cost[its] = sum(apart[a, b] for a, b in combinations(its, 2)) / (k - 1)
    weakened = odds(1 / n) / (1 - (k - 1) * expm1(-strength))
    for seed in range(2):
        tables, cards = draw(40 + seed, n, n_tasks=k)
        own = [
            scores_of_all(every, lambda v, its, codes=codes, cards=cards: log_family(codes, cards, v, its))
            + weakened * every.sum(axis=(1, 2))
            for codes in tables
        ]
        model = BayesNets(prior=prior, penalty=delta, restarts=20, random_state=0)
        found = model.fit({t: as_frame(codes, cards) for t, codes in enumerate(tables)}).log_score_
        # Only structures with which all others at their best, and no penalty, would be as good.
        free = sum(scores.max() for scores in own)
        near = [np.flatnonzero(scores - scores.max() + free >= found - 1e-6) for scores in own]
        best = -np.inf
        for first in near[0]:
            total = own[0][first] + sum(
                own[t][near[t]].reshape([-1 if u == t else 1 for u in range(1, k)]) for t in range(1, k)
            )
            for pair in range(len(pairs)):
                others = (
                    states[near[t], pair].reshape([-1 if u == t else 1 for u in range(1, k)]) for t in range(1, k)
                )
                total = total - strength * cost[(states[first, pair], *others)]
            best = max(best, total.max())
        assert found == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("n", NUMBERS)
@pytest.mark.parametrize(("criterion", "search"), [("bdeu", "orders"), ("bhd", "orders"), ("bhd", "climb")])
def test_the_best_structure_of_all_tasks_is_found(n, search, criterion):
    for seed in range(2):
        tables, cards = draw(20 + seed, n, n_tasks=3)
        rows, part = np.concatenate(tables), np.repeat(np.arange(3, dtype=np.int32), 70)

        def family(v, its, tables=tables, cards=cards, rows=rows, part=part):
            if criterion == "bhd":
                return by_hand(rows, cards, part, 3, v, its)
            return sum(log_family(codes, cards, v, its, criterion) for codes in tables)

        best = best_of_all(n, family, odds(1 / n))
        model = BayesNets(sharing="identical", criterion=criterion, search=search, restarts=20, random_state=0)
        model.fit({t: as_frame(codes, cards) for t, codes in enumerate(tables)})
        assert model.log_score_ == pytest.approx(best, abs=1e-7)
