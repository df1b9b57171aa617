"""What searches find, against every directed acyclic graph of four and of five variables."""

from math import log

import numpy as np
import pytest

from kinfolk import BayesNets
from tests.networks.oracle import all_structures, as_frame, log_family, random_dag, random_rows, scores_of_all
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
@pytest.mark.parametrize("prior", ["uniform", 0.05, "arcs", "graph"])
def test_the_best_of_all_structures_is_found_for_every_prior(n, prior):
    for seed in range(3):
        (codes,), cards = draw(10 + seed, n)
        arcs, given = np.full((n, n), 0.0 if isinstance(prior, str) else odds(prior)), prior
        if prior == "arcs":
            given = {("a", "b"): 0.9, ("c", "a"): 0.2}
            arcs[0, 1], arcs[2, 0] = odds(0.9), odds(0.2)
        elif prior == "graph":
            given = ([("a", "c"), ("b", "d")], 0.3)
            arcs[:] = log(0.3)
            arcs[0, 2] = arcs[1, 3] = -log(0.3)
        best = best_of_all(n, lambda v, its, codes=codes, cards=cards: log_family(codes, cards, v, its), arcs)
        model = BayesNets(structure_prior=given, restarts=20, random_state=0).fit(as_frame(codes, cards))
        assert model.log_score_ == pytest.approx(best, abs=1e-7)


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
