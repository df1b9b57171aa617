"""Scores of families and gains of every change to them, against counts in a dictionary and closed forms."""

from itertools import combinations, permutations, product
from math import factorial, log

import numpy as np
import pytest

from kinfolk.networks.model.data import lay_out
from kinfolk.networks.model.equivalence import same_class
from kinfolk.networks.model.families import family_gains, room_to_count
from kinfolk.networks.model.family_scores import make_problem
from kinfolk.networks.model.network import Constraints
from kinfolk.networks.model.scores import CRITERIA
from tests.networks.oracle import all_structures, log_family, random_cards, random_dag, random_rows

SCORES = [("bdeu", 0.1), ("bdeu", 1.0), ("bdeu", 37.5), ("k2", 1.0), ("bic", 1.0)]


def make_score(name, ess, cases):
    return CRITERIA[name].make(ess, cases.total_weight, cases.n_parts)


def scored(score_of_family, cases, child, parents, candidates=None, task=0):
    """The package's score of a family and its gains, all other variables being candidates unless told otherwise."""
    n = len(cases.cards)
    out = np.full(n, np.nan)
    if candidates is None:
        candidates = np.array([v != child and v not in parents for v in range(n)])
    parents = np.array(parents, dtype=np.int64)
    score = family_gains(cases, score_of_family, task, child, parents, candidates, room_to_count(cases), out)
    return score, out


def expected(codes, cards, child, parents, score, ess, weights=None):
    """The oracle's score and gains: of adding every variable that is no parent, of removing every one that is."""

    def family(its):
        return log_family(codes, cards, child, its, score, ess, weights)

    here = family(parents)
    gains = np.full(len(cards), -np.inf)
    for v in range(len(cards)):
        if v in parents:
            gains[v] = family([p for p in parents if p != v]) - here
        elif v != child:
            gains[v] = family(sorted([*parents, v])) - here
    return here, gains


def agree(found, wanted, scale=1.0):
    assert found[0] == pytest.approx(wanted[0], abs=1e-9, rel=1e-12)
    # A gain is the difference of two scores and cannot be nearer than their last digits.
    np.testing.assert_allclose(found[1], wanted[1], rtol=0, atol=1e-9 * scale)


@pytest.mark.parametrize(("score", "ess"), SCORES)
@pytest.mark.parametrize("n_rows", [1, 2, 63, 64, 65, 130, 200])
def test_scores_and_gains_are_the_closed_forms_for_any_number_of_parents(score, ess, n_rows):
    rng = np.random.default_rng(n_rows)
    cards = np.array([2, 3, 2, 5, 2, 4])
    codes = random_rows(rng, random_dag(rng, 6), cards, n_rows)
    cases = lay_out([codes], cards)
    rule = make_score(score, ess, cases)
    for n_parents in range(6):
        for parents in combinations(range(1, 6), n_parents):
            agree(scored(rule, cases, 0, parents), expected(codes, cards, 0, parents, score, ess))


@pytest.mark.parametrize(("score", "ess"), SCORES)
@pytest.mark.parametrize("cards", [(2, 255, 3, 2), (255, 2, 2, 255), (17, 40, 5, 161)])
def test_scores_and_gains_are_the_closed_forms_for_up_to_255_states(score, ess, cards):
    rng = np.random.default_rng(cards[0])
    cards = np.array(cards)
    codes = rng.integers(0, cards, (199, 4))
    codes[0] = cards - 1
    cases = lay_out([codes], cards)
    rule = make_score(score, ess, cases)
    for parents in [(), (1,), (3,), (1, 2), (1, 2, 3)]:
        # BIC with 255³ parameters has 8 digits before the point, and doubles round it at the 8th behind it.
        agree(
            scored(rule, cases, 0, parents),
            expected(codes, cards, 0, parents, score, ess),
            1e4 if score == "bic" else 1,
        )


@pytest.mark.parametrize(("score", "ess"), [(score, ess) for score, ess in SCORES if score != "bic"])
def test_wide_families_whose_configurations_are_nearly_all_empty_are_the_closed_forms(score, ess):
    rng = np.random.default_rng(5)
    cards = np.array([3] + [2, 3] * 12)
    codes = rng.integers(0, cards, (150, 25))
    codes[75:] = codes[:75]
    cases = lay_out([codes], cards)
    rule = make_score(score, ess, cases)
    for n_parents in (7, 12, 20, 24):
        parents = tuple(range(1, n_parents + 1))
        agree(scored(rule, cases, 0, parents), expected(codes, cards, 0, parents, score, ess))


@pytest.mark.parametrize(("score", "ess"), SCORES)
def test_counts_past_any_table_of_small_numbers_are_the_closed_forms(score, ess):
    rng = np.random.default_rng(6)
    cards = np.array([2, 2, 3, 2])
    codes = random_rows(rng, random_dag(rng, 4), cards, 5003)
    cases = lay_out([codes], cards)
    rule = make_score(score, ess, cases)
    for parents in [(), (1,), (1, 2, 3)]:
        agree(scored(rule, cases, 0, parents), expected(codes, cards, 0, parents, score, ess), scale=10)


@pytest.mark.parametrize(("score", "ess"), SCORES)
def test_weighted_rows_count_as_much_as_they_weigh(score, ess):
    rng = np.random.default_rng(7)
    cards = np.array([3, 2, 4, 2, 30])
    codes = rng.integers(0, cards, (97, 5))
    weights = rng.gamma(1.0, 1.0, 97)
    cases = lay_out([codes], cards, weights=[weights])
    rule = make_score(score, ess, cases)
    for n_parents in range(5):
        for parents in combinations(range(1, 5), n_parents):
            wanted = expected(codes, cards, 0, parents, score, ess, weights)
            agree(scored(rule, cases, 0, parents), wanted)


@pytest.mark.parametrize("score", ["bdeu", "k2", "bic"])
def test_rows_of_whole_weight_score_as_so_many_rows_on_every_way_of_counting(score):
    rng = np.random.default_rng(8)
    cards = np.array([3, 2, 4, 2, 200])
    codes = rng.integers(0, cards, (90, 5))
    times = rng.integers(1, 4, 90)
    weighted = lay_out([codes], cards, weights=[times.astype(float)])
    repeated = lay_out([np.repeat(codes, times, axis=0)], cards)
    for parents in [(), (1,), (1, 2), (1, 2, 3), (4,), (1, 4)]:
        agree(
            scored(make_score(score, 1.0, weighted), weighted, 0, parents),
            scored(make_score(score, 1.0, repeated), repeated, 0, parents),
        )


@pytest.mark.parametrize("score", ["bdeu", "bic"])
def test_every_task_is_scored_on_its_own_rows(score):
    rng = np.random.default_rng(9)
    cards = random_cards(rng, 5)
    tables = [random_rows(rng, random_dag(rng, 5), cards, n_rows) for n_rows in (70, 1, 129)]
    cases = lay_out(tables, cards)
    rule = make_score(score, 2.0, cases)
    for task, codes in enumerate(tables):
        for parents in [(), (2,), (1, 4)]:
            agree(scored(rule, cases, 0, parents, task=task), expected(codes, cards, 0, parents, score, 2.0))


@pytest.mark.parametrize(("score", "ess"), SCORES)
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_counted_part_by_part_score_as_if_the_part_were_a_parent(score, ess, weighted):
    rng = np.random.default_rng(11)
    cards = np.array([3, 2, 4, 2, 90, 5])
    codes = rng.integers(0, cards, (170, 6))
    weights = rng.gamma(1.0, 1.0, 170) if weighted else None
    part = codes[:, 5].astype(np.int32)
    cases = lay_out([codes[:, :5]], cards[:5], None, [weights] if weighted else None, [part])
    rule = make_score(score, ess, cases)
    for parents in [(), (1,), (1, 2), (1, 2, 3), (4,), (2, 4)]:
        here, gains = expected(codes, cards, 0, (*parents, 5), score, ess, weights)
        agree(scored(rule, cases, 0, parents), (here, gains[:5]))


def test_only_candidates_and_parents_have_gains():
    codes = np.random.default_rng(0).integers(0, 2, (40, 5))
    cases = lay_out([codes], np.full(5, 2))
    candidates = np.array([False, False, True, False, False])
    _, gains = scored(make_score("bdeu", 1.0, cases), cases, 0, (1,), candidates)
    assert np.isfinite(gains).tolist() == [False, True, True, False, False]


def test_k2_is_the_product_of_factorials_of_cooper_and_herskovits():
    rng = np.random.default_rng(10)
    cards = np.array([3, 2, 2])
    codes = rng.integers(0, cards, (50, 3))
    cases = lay_out([codes], cards)
    numerator = denominator = 1
    for configuration in product(range(2), range(2)):
        counts = [int(((codes[:, 1:] == configuration).all(axis=1) & (codes[:, 0] == x)).sum()) for x in range(3)]
        numerator *= factorial(3 - 1)
        denominator *= factorial(sum(counts) + 3 - 1)
        for count in counts:
            numerator *= factorial(count)
    found, _ = scored(make_score("k2", 1.0, cases), cases, 0, (1, 2))
    assert found == pytest.approx(log(numerator) - log(denominator), abs=1e-10)


def skeleton_and_colliders(adjacency):
    """What decides a structure's equivalence class (Verma and Pearl 1990)."""
    linked = adjacency | adjacency.T
    colliders = {
        (min(a, b), v, max(a, b))
        for v in range(len(adjacency))
        for a, b in permutations(np.flatnonzero(adjacency[:, v]).tolist(), 2)
        if not linked[a, b]
    }
    return linked.tobytes(), frozenset(colliders)


@pytest.mark.parametrize(("n", "n_dags"), [(3, 25), (4, 543), pytest.param(5, 29_281, marks=pytest.mark.slow)])
@pytest.mark.parametrize("score", ["bdeu", "bic"])
def test_structures_that_no_data_can_tell_apart_score_the_same(n, n_dags, score):
    rng = np.random.default_rng(n)
    cards = random_cards(rng, n)
    cases = lay_out([random_rows(rng, random_dag(rng, n), cards, 77)], cards)
    rule = make_score(score, 3.0, cases)
    known = {}

    def family(child, parents):
        if (child, parents) not in known:
            known[child, parents] = scored(rule, cases, child, parents)[0]
        return known[child, parents]

    classes = {}
    dags = all_structures(n)
    assert len(dags) == n_dags
    for adjacency in dags:
        total = sum(family(v, tuple(np.flatnonzero(adjacency[:, v]).tolist())) for v in range(n))
        classes.setdefault(skeleton_and_colliders(adjacency), []).append((total, adjacency))
    assert len(classes) == {3: 11, 4: 185, 5: 8_782}[n]
    for members in classes.values():
        totals = [total for total, _ in members]
        assert max(totals) - min(totals) < 1e-9
        assert all(same_class(members[0][1], other) for _, other in members)


@pytest.mark.parametrize(("n_tasks", "n"), [(1, 5), (1, 724), (40, 200), (100, 724)])
def test_what_is_remembered_of_families_stays_within_its_bound(n_tasks, n):
    cases = lay_out([np.zeros((2, n), dtype=np.int32)] * n_tasks, np.full(n, 2))
    rules = Constraints(~np.eye(n, dtype=bool), np.zeros((n, n), dtype=bool), n)
    scores = make_problem(cases, CRITERIA["bdeu"], 1.0, rules).scores
    assert scores.child.shape[1] >= 1
    assert scores.gains.nbytes <= 256 * 2**20


@pytest.mark.parametrize("n", [1, 2, 8])
def test_no_more_room_is_made_than_a_few_times_the_families_that_there_are(n):
    cases = lay_out([np.zeros((2, n), dtype=np.int32)] * 3, np.full(n, 2))
    rules = Constraints(~np.eye(n, dtype=bool), np.zeros((n, n), dtype=bool), n)
    n_families = n * 2 ** (n - 1)  # each variable with each set of the others
    assert n_families <= make_problem(cases, CRITERIA["bdeu"], 1.0, rules).scores.child.shape[1] <= 8 * n_families
