"""Greedy search over equivalence classes, against enumeration of members and of all structures."""

from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from scipy.special import gammaln

from kinfolk.networks.inference import classes as class_search
from kinfolk.networks.inference.classes import search_class
from kinfolk.networks.inference.climb import Effort, search
from kinfolk.networks.model import pdag
from kinfolk.networks.model.data import lay_out
from kinfolk.networks.model.equivalence import completed, same_class
from kinfolk.networks.model.family_scores import make_problem, no_questions
from kinfolk.networks.model.network import Constraints
from kinfolk.networks.model.priors import no_sharing
from kinfolk.networks.model.scores import CRITERIA

ESS = 1.0
CARDS = np.array([2, 3, 2, 2, 3, 2, 2])
PHASES = {"insert": 0, "delete": 1, "turn": 2}


def problem_of(codes, cards, most_parents=None, score="bdeu", present=None):
    n = len(cards)
    anything = Constraints(
        ~np.eye(n, dtype=bool), np.zeros((n, n), dtype=bool), n if most_parents is None else most_parents
    )
    return make_problem(lay_out([codes], cards, present), CRITERIA[score], ESS, anything)


def hill_climb(problem, start):
    n = len(start)
    none = np.zeros((n, n))
    return search(problem, no_sharing(1, none), np.arange(1), start[None], Effort(0, 0, 0), np.random.default_rng(0))


def bdeu_of(codes, cards):
    """BDeu of any structure, from the formula."""

    @cache
    def family(child, parents):
        shape = [cards[p] for p in parents] + [cards[child]]
        counts = np.zeros(shape)
        np.add.at(counts, tuple(codes[:, v] for v in (*parents, child)), 1)
        counts = counts.reshape(-1, cards[child])
        row = ESS / len(counts)
        cell = row / cards[child]
        return float(
            (gammaln(row) - gammaln(row + counts.sum(axis=1))).sum() + (gammaln(cell + counts) - gammaln(cell)).sum()
        )

    def score(adjacency):
        return sum(family(v, tuple(np.flatnonzero(adjacency[:, v]).tolist())) for v in range(len(cards)))

    return score


def random_structure(n, density, rng):
    arcs = np.triu(rng.random((n, n)) < density, 1)
    order = rng.permutation(n)
    return arcs[np.ix_(order, order)]


def random_rows(adjacency, cards, n_rows, concentration, rng):
    n = len(cards)
    codes = np.zeros((n_rows, n), dtype=np.int64)
    done = []
    while len(done) < n:
        v = next(v for v in range(n) if v not in done and set(np.flatnonzero(adjacency[:, v])) <= set(done))
        parents = np.flatnonzero(adjacency[:, v])
        table = rng.dirichlet(np.full(cards[v], concentration), tuple(cards[parents]))
        chances = table[tuple(codes[:, p] for p in parents)].reshape(-1, cards[v])
        codes[:, v] = (rng.random((n_rows, 1)) > chances.cumsum(axis=1)[:, :-1]).sum(axis=1)
        done.append(v)
    return codes


def acyclic(adjacency):
    left = adjacency.copy()
    for _ in range(len(left)):
        left[:, ~left.any(axis=0)] = False
        left[~left.any(axis=0)] = False
    return not left.any()


def members(adjacency):
    """All structures of a class: every direction of its edges without one that leaves the class as it is."""
    graph = completed(adjacency)
    edges = [(i, j) for i, j in np.argwhere(graph & graph.T) if i < j]
    for turned in product([False, True], repeat=len(edges)):
        member = graph & ~graph.T
        for (i, j), back in zip(edges, turned, strict=True):
            member[(j, i) if back else (i, j)] = True
        if acyclic(member) and np.array_equal(completed(member), graph):
            yield member


def changes(member, kind):
    """All structures that one arc X → Y inserted, deleted or turned makes of one, each with its Y."""
    n = len(member)
    for x, y in product(range(n), repeat=2):
        changed = member.copy()
        if kind == "insert" and x != y and not member[x, y] and not member[y, x]:
            changed[x, y] = True
        elif kind == "delete" and member[x, y]:
            changed[x, y] = False
        elif kind == "turn" and member[y, x]:
            changed[y, x], changed[x, y] = False, True
        else:
            continue
        if acyclic(changed):
            yield changed, y


def class_of(adjacency):
    here = pdag.no_pdag(len(adjacency))
    pdag.complete(adjacency, here)
    return here


def best_moves(problem, adjacency, kind, paths):
    """What the best move of a kind at each variable gains, gain or loss; −inf where there is none."""
    here = class_of(adjacency)
    n = len(adjacency)
    questions = no_questions(class_search.MOST_CLIQUES + n, problem.cases)
    around = class_search.room_around(0, questions)
    around.phase[0] = PHASES[kind]
    out = np.full(n, -np.inf)
    for y in range(len(adjacency)):
        around.y[0] = y
        gain, x, _ = class_search._best_at(problem, questions, here, around, -1e9, paths)
        if x >= 0:
            out[y] = gain
    return out


@pytest.mark.parametrize("kind", PHASES)
def test_the_best_move_at_a_variable_is_the_best_over_all_members_of_the_class(kind):
    rng = np.random.default_rng(PHASES[kind])
    n, cards = 6, CARDS[:6]
    undirected_cases = 0
    for density in np.repeat([0.3, 0.5, 0.7], 12):
        adjacency = random_structure(n, density, rng)
        codes = random_rows(random_structure(n, 0.5, rng), cards, 60, 0.7, rng)
        score = bdeu_of(codes, cards)
        expected = np.full(n, -np.inf)
        for member in members(adjacency):
            for changed, y in changes(member, kind):
                if not np.array_equal(completed(changed), completed(adjacency)):
                    expected[y] = max(expected[y], score(changed) - score(adjacency))
        graph = completed(adjacency)
        undirected_cases += (graph & graph.T).any()

        found = best_moves(problem_of(codes, cards), adjacency, kind, True)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)
    assert undirected_cases > 5


def test_after_a_move_no_variable_that_is_not_marked_has_better_moves_than_before():
    rng = np.random.default_rng(11)
    n, cards = 6, CARDS[:6]
    unmarked = np.zeros(3)
    for _ in range(150):
        codes = random_rows(random_structure(n, 0.5, rng), cards, 60, 0.7, rng)
        problem = problem_of(codes, cards)
        start = random_structure(n, 0.5, rng)
        moves = [move for kind in PHASES for move in changes(start, kind)]
        end, y = moves[rng.integers(len(moves))]
        x = next(v for v in range(n) if (start[v, y], start[y, v]) != (end[v, y], end[y, v]))
        stale = np.zeros((3, n), dtype=bool)
        class_search._mark(class_of(start), class_of(end), x, y, stale)
        for kind, phase in PHASES.items():
            kept = ~stale[phase]
            before, after = (best_moves(problem, a, kind, False)[kept] for a in (start, end))
            assert (after <= before + 1e-7).all()
            unmarked[phase] += kept.sum()
    assert (unmarked > 100).all()


@pytest.mark.parametrize("seed", range(20))
def test_the_gains_of_all_moves_add_up_to_the_score_of_what_is_found(seed):
    rng = np.random.default_rng(seed)
    codes = random_rows(random_structure(7, 0.5, rng), CARDS, 150, 0.5, rng)
    start = random_structure(7, 0.4, rng)
    found = search_class(problem_of(codes, CARDS), 0, start)
    assert found.n_steps > 0
    assert acyclic(found.adjacency)
    assert found.score == pytest.approx(bdeu_of(codes, CARDS)(found.adjacency), abs=1e-7)


@cache
def all_structures(n):
    pairs = list(combinations(range(n), 2))
    out = []
    for states in product(range(3), repeat=len(pairs)):
        adjacency = np.zeros((n, n), dtype=bool)
        for (i, j), state in zip(pairs, states, strict=True):
            adjacency[i, j], adjacency[j, i] = state == 1, state == 2
        if acyclic(adjacency):
            out.append(adjacency)
    return out


@pytest.mark.parametrize("seed", range(15))
def test_no_class_one_arc_away_from_any_member_scores_higher(seed):
    rng = np.random.default_rng(seed)
    cards = CARDS[:4]
    codes = random_rows(random_structure(4, 0.7, rng), cards, 80, 0.5, rng)
    score = bdeu_of(codes, cards)
    structures = all_structures(4)
    assert len(structures) == 543
    found = search_class(problem_of(codes, cards), 0)
    inside = [s for s in structures if np.array_equal(completed(s), completed(found.adjacency))]
    for other in structures:
        pairs_apart = [
            sum((a[i, j], a[j, i]) != (other[i, j], other[j, i]) for i, j in combinations(range(4), 2)) for a in inside
        ]
        if min(pairs_apart) == 1:
            assert score(other) <= found.score + 1e-7


def test_with_much_data_the_true_class_is_found_and_no_less_often_than_by_climbing():
    by_classes = by_climbing = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = 5 + seed % 3
        truth = random_structure(n, 0.45, rng)
        codes = random_rows(truth, CARDS[:n], 40_000, 1.0, rng)
        problem = problem_of(codes, CARDS[:n])
        by_classes += same_class(search_class(problem, 0).adjacency, truth)
        by_climbing += same_class(hill_climb(problem, np.zeros((n, n), dtype=bool)).adjacency[0], truth)
    assert by_classes >= 18
    assert by_classes >= by_climbing


@pytest.mark.parametrize("score", ["bdeu", "bic"])
def test_a_climb_from_the_class_found_ends_at_once(score):
    n = 12
    cards = np.resize(CARDS, n)
    moved = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        codes = random_rows(random_structure(n, 0.4, rng), cards, 250, 0.5, rng)
        problem = problem_of(codes, cards, 5, score=score)
        found = search_class(problem, 0, random_structure(n, 0.2, rng))
        moved += found.n_steps
        assert hill_climb(problem, found.adjacency).n_steps == 0
    assert moved > 60 * n


def test_neither_the_order_of_rows_nor_what_was_searched_before_matters():
    rng = np.random.default_rng(3)
    codes = random_rows(random_structure(7, 0.5, rng), CARDS, 300, 0.5, rng)
    problem = problem_of(codes, CARDS)
    first = search_class(problem, 0)
    search_class(problem, 0, random_structure(7, 0.5, rng))
    again = search_class(problem, 0)
    shuffled = search_class(problem_of(rng.permutation(codes), CARDS), 0)
    for other in (again, shuffled):
        np.testing.assert_array_equal(first.adjacency, other.adjacency)
        assert first.n_steps == other.n_steps
        assert first.score == pytest.approx(other.score, abs=1e-7)


def test_from_any_member_of_a_class_the_search_goes_the_same_way():
    rng = np.random.default_rng(5)
    codes = random_rows(random_structure(6, 0.5, rng), CARDS[:6], 100, 0.5, rng)
    start = np.zeros((6, 6), dtype=bool)
    start[[0, 1, 1, 2], [1, 2, 3, 3]] = True
    found = [search_class(problem_of(codes, CARDS[:6]), 0, member).adjacency for member in members(start)]
    assert len(found) > 4
    assert all(np.array_equal(found[0], other) for other in found)


@pytest.mark.parametrize("most", [1, 2])
def test_no_member_of_the_class_found_has_more_parents_than_allowed(most):
    was_limited = False
    for seed in range(8):
        rng = np.random.default_rng(seed)
        codes = random_rows(random_structure(7, 0.7, rng), CARDS, 2000, 0.7, rng)
        found = search_class(problem_of(codes, CARDS, most), 0)
        assert all(member.sum(axis=0).max() <= most for member in members(found.adjacency))
        was_limited |= search_class(problem_of(codes, CARDS), 0).adjacency.sum(axis=0).max() > most
    assert was_limited


def test_variables_that_the_task_lacks_stay_apart_and_add_nothing():
    rng = np.random.default_rng(8)
    codes = random_rows(random_structure(5, 0.7, rng), CARDS[:5], 500, 0.5, rng)
    present = np.array([[True, True, False, True, True]])
    found = search_class(problem_of(codes, CARDS[:5], present=present), 0)
    kept = [0, 1, 3, 4]
    alone = search_class(problem_of(codes[:, kept], CARDS[kept]), 0)
    assert not found.adjacency[2].any()
    assert not found.adjacency[:, 2].any()
    np.testing.assert_array_equal(found.adjacency[np.ix_(kept, kept)], alone.adjacency)
    assert found.score == pytest.approx(alone.score, abs=1e-7)


@pytest.mark.parametrize("n", [6, 70])
def test_completing_and_extending_agree_with_the_plain_implementation(n):
    rng = np.random.default_rng(n)
    for density in np.repeat([0.5, 1.5, 3.0], 10) / n:
        adjacency = random_structure(n, density, rng)
        here = class_of(adjacency)
        onward = np.array([[pdag.among(here.onward, i, j) for j in range(n)] for i in range(n)])
        np.testing.assert_array_equal(onward, completed(adjacency))
        out = np.empty((n, n), dtype=bool)
        pdag.extend(here, np.empty(0, dtype=np.int64), out)
        assert same_class(out, adjacency)
