"""Search for one task's structure, against a climb that scores every neighbouring structure from scratch."""

import os
import subprocess
import sys
from itertools import combinations, pairwise

import numpy as np
import pytest

from kinfolk import BayesNets
from kinfolk.networks.inference.climb import Effort, search
from kinfolk.networks.model.data import lay_out
from kinfolk.networks.model.family_scores import make_problem
from kinfolk.networks.model.network import Constraints
from kinfolk.networks.model.priors import no_sharing
from kinfolk.networks.model.scores import CRITERIA
from tests.networks.oracle import (
    Rules,
    Scorer,
    Task,
    as_frame,
    as_matrix,
    is_acyclic,
    random_cards,
    random_dag,
    random_rows,
    state_of,
    with_state,
)


def found_by_package(codes, cards, rules, start, score="bdeu", ess=1.0, tabu=0, restarts=0, seed=0):
    problem = make_problem(lay_out([codes], cards), CRITERIA[score], ess, Constraints(*rules[:3]))
    effort = Effort(tabu, restarts, 3)
    prior = no_sharing(1, rules.arcs)
    found = search(problem, prior, np.arange(1), start[None], effort, np.random.default_rng(seed))
    return found.adjacency[0], found.score


def random_problem(seed):
    """Rows, numbers of states, rules that a random order of variables obeys, and a start within them."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 9))
    cards = random_cards(rng, n)
    codes = random_rows(rng, random_dag(rng, n), cards, int(rng.integers(20, 200)))
    most_parents = int(rng.integers(1, 4)) if rng.random() < 0.5 else n
    within = random_dag(rng, n, 1.0)
    required = within & (rng.random((n, n)) < 0.15)
    required &= required.cumsum(axis=0) <= most_parents
    start = required.copy()
    if rng.random() < 0.6:
        more = start | (within & (rng.random((n, n)) < 0.3))
        start = more & (more.sum(axis=0) <= most_parents) | required
    allowed = ~np.eye(n, dtype=bool) & ~required.T
    allowed &= (rng.random((n, n)) >= 0.15) | start
    arcs = rng.normal(0.0, 1.0, (n, n)) if rng.random() < 0.4 else np.zeros((n, n))
    return codes, cards, Rules(allowed, required, most_parents, arcs), start


def ends_in_an_optimum(scorer, structure):
    return max(gain for gain, _ in scorer.neighbours(structure[None])) <= 1e-7


@pytest.mark.parametrize("score", ["bdeu", "k2", "bic"])
def test_every_step_of_a_climb_is_the_best_legal_change_of_one_arc(score):
    for seed in range(20):
        codes, cards, rules, start = random_problem(seed)
        scorer = Scorer([Task(codes, tuple(range(len(cards))))], cards, rules, score, 2.0)
        wanted = scorer.climb(start[None])
        structure, total = found_by_package(codes, cards, rules, start, score, 2.0)
        assert structure.tolist() == wanted[0].tolist()
        assert total == pytest.approx(scorer.total(wanted), abs=1e-8)


@pytest.mark.parametrize("effort", [{"tabu": 0}, {"tabu": 7}, {"tabu": 4, "restarts": 3}])
def test_structures_keep_to_the_rules_and_their_score_is_that_of_their_families(effort):
    for seed in range(100, 130):
        codes, cards, rules, start = random_problem(seed)
        structure, total = found_by_package(codes, cards, rules, start, **effort)
        scorer = Scorer([Task(codes, tuple(range(len(cards))))], cards, rules)
        assert is_acyclic(structure)
        assert not (structure & ~rules.allowed).any()
        assert not (rules.required & ~structure).any()
        assert structure.sum(axis=0).max() <= rules.most_parents
        assert total == pytest.approx(scorer.total(structure[None]), abs=1e-8)


def test_no_change_of_one_arc_improves_where_a_climb_ends():
    for seed in range(200, 215):
        codes, cards, rules, start = random_problem(seed)
        structure, _ = found_by_package(codes, cards, rules, start)
        assert ends_in_an_optimum(Scorer([Task(codes, tuple(range(len(cards))))], cards, rules), structure)


@pytest.mark.parametrize("tabu", [1, 5, 10, 40])
def test_tabu_search_ends_no_lower_than_the_plain_climb_from_the_same_start(tabu):
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(6, 9))
        cards = random_cards(rng, n)
        codes = random_rows(rng, random_dag(rng, n), cards, int(rng.integers(30, 300)))
        rules = Rules(~np.eye(n, dtype=bool), np.zeros((n, n), dtype=bool), n, np.zeros((n, n)))
        start = random_dag(rng, n, 0.3)
        _, plain = found_by_package(codes, cards, rules, start)
        _, tabu_score = found_by_package(codes, cards, rules, start, tabu=tabu)
        assert tabu_score >= plain - 1e-7, seed


def test_tabu_search_goes_past_optima_that_a_climb_stops_at():
    passed = 0
    for seed in range(60):
        codes, cards, rules, start = random_problem(seed)
        scorer = Scorer([Task(codes, tuple(range(len(cards))))], cards, rules)
        stopped, plain = found_by_package(codes, cards, rules, start)
        structure, best = found_by_package(codes, cards, rules, start, tabu=10)
        if best > plain + 1e-6:
            # The climb was at an optimum: nothing but a loss led from there to something better.
            assert ends_in_an_optimum(scorer, stopped)
            assert scorer.total(structure[None]) > scorer.total(stopped[None])
            passed += 1
    assert passed >= 3


@pytest.mark.parametrize("tabu", [0, 5])
def test_restarts_never_end_lower_and_sometimes_higher(tabu):
    higher = 0
    for seed in range(40):
        codes, cards, rules, start = random_problem(seed)
        scores = [
            found_by_package(codes, cards, rules, start, tabu=tabu, restarts=restarts)[1] for restarts in (0, 1, 5, 10)
        ]
        assert all(later >= earlier - 1e-9 for earlier, later in pairwise(scores))
        higher += scores[-1] > scores[0] + 1e-6
    assert higher >= 3


def test_of_two_variables_that_depend_on_each_other_the_first_by_name_or_place_is_the_parent():
    codes = np.repeat([[0, 0], [1, 1], [0, 1]], [20, 20, 3], axis=0)
    for columns in [(0, 1), (1, 0)]:
        frame = as_frame(codes, [2, 2])[["ab"[c] for c in columns]]
        for sharing in ("none", "joint"):
            assert list(BayesNets(sharing=sharing).fit(frame).graphs_[0].edges) == [("a", "b")]
            assert list(BayesNets(sharing=sharing).fit(codes[:, columns]).graphs_[0].edges) == [("0", "1")]


def test_of_equal_changes_that_of_the_first_pair_is_taken_first():
    # Three copies of one coin: all pairs gain the same, and after two arcs the third gains nothing.
    coin = np.arange(64) % 2
    codes = np.stack([coin, coin, coin], axis=1)
    graph = BayesNets(sharing="none", criterion="bic", tabu=0).fit(as_frame(codes, [2, 2, 2])).graphs_[0]
    assert set(graph.edges) == {("a", "b"), ("a", "c")}


def fitted(codes, cards, task=None, **options):
    settings = {"structure_prior": None} | options
    return BayesNets(random_state=3, **settings).fit(as_frame(codes, cards), task=task)


@pytest.mark.parametrize("sharing", ["none", "joint"])
def test_the_order_of_rows_and_the_number_of_threads_change_nothing(sharing):
    rng = np.random.default_rng(1)
    cards = random_cards(rng, 7)
    codes = random_rows(rng, random_dag(rng, 7), cards, 300)
    task = rng.integers(0, 3, 300)
    first = fitted(codes, cards, task, sharing=sharing, restarts=2)
    order = rng.permutation(300)
    for again in (
        fitted(codes[order], cards, task[order], sharing=sharing, restarts=2),
        fitted(codes, cards, task, sharing=sharing, restarts=2, n_jobs=2),
    ):
        assert again.log_score_ == pytest.approx(first.log_score_, abs=1e-8)
        for name, graph in first.graphs_.items():
            assert list(again.graphs_[name].edges) == list(graph.edges)


PROGRAM = """
import numpy as np
from kinfolk import BayesNets
from kinfolk.datasets import make_related_networks, sample_tasks
tables = sample_tasks(make_related_networks("asia", 3, p_delete=0.2, random_state=4), 150, random_state=4)
model = BayesNets(restarts=2, random_state=0, bootstrap=2).fit(tables)
print(repr(model.log_score_), [sorted(graph.edges) for graph in model.graphs_.values()])
print(model.arc_confidence_.rows())
"""


def test_the_hash_seed_changes_nothing():
    answers = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1234")
    }
    assert len(answers) == 1
    assert "-" in answers.pop()


def test_names_of_arcs_reach_the_search():
    rng = np.random.default_rng(12)
    cards = np.array([2, 3, 2, 2, 3])
    codes = random_rows(rng, random_dag(rng, 5, 0.8), cards, 200)
    free = fitted(codes, cards, sharing="none", tabu=0).graphs_[0]
    parent, child = next(iter(free.edges))
    lonely = next((u, v) for u, v in combinations("abcde", 2) if not free.has_edge(u, v) and not free.has_edge(v, u))
    held = fitted(
        codes,
        cards,
        sharing="none",
        tabu=0,
        required=[lonely],
        forbidden=[(parent, child)],
        start=[("e", "d")],
        max_parents=2,
    )
    graph = held.graphs_[0]
    assert graph.has_edge(*lonely)
    assert not graph.has_edge(parent, child)
    n = len(cards)
    rules = Rules(~np.eye(n, dtype=bool), np.zeros((n, n), dtype=bool), 2, np.zeros((n, n)))
    place = "abcde".index
    rules.required[place(lonely[0]), place(lonely[1])] = True
    rules.allowed[place(lonely[1]), place(lonely[0])] = False
    rules.allowed[place(parent), place(child)] = False
    start = with_state(rules.required, place("d"), place("e"), 2)
    assert state_of(start, place("d"), place("e")) == 2
    wanted = Scorer([Task(codes, tuple(range(n)))], cards, rules).climb(start[None])[0]
    assert as_matrix(graph, n).tolist() == wanted.tolist()


def test_arc_probabilities_multiply_the_score():
    rng = np.random.default_rng(13)
    cards = np.array([2, 2, 3, 2])
    codes = random_rows(rng, random_dag(rng, 4, 0.8), cards, 60)
    beliefs = {("a", "b"): 0.01, ("c", "a"): 0.9, ("d", "c"): 0.7}
    model = fitted(codes, cards, sharing="none", tabu=0, structure_prior=beliefs)
    odds = np.zeros((4, 4))
    for (u, v), p in beliefs.items():
        odds["abcd".index(u), "abcd".index(v)] = np.log(p / (1 - p))
    rules = Rules(~np.eye(4, dtype=bool), np.zeros((4, 4), dtype=bool), 4, odds)
    scorer = Scorer([Task(codes, (0, 1, 2, 3))], cards, rules)
    wanted = scorer.climb(np.zeros((1, 4, 4), dtype=bool))
    assert as_matrix(model.graphs_[0], 4).tolist() == wanted[0].tolist()
    # The product of the probabilities of all arcs that are and are not, up to that of the empty graph.
    prior = 0.0
    for (u, v), p in beliefs.items():
        there = model.graphs_[0].has_edge(u, v)
        prior += np.log(p if there else 1 - p) - np.log(1 - p)
    bare = Scorer([Task(codes, (0, 1, 2, 3))], cards, rules._replace(arcs=np.zeros((4, 4))))
    assert model.log_score_ == pytest.approx(bare.total(wanted) + prior, abs=1e-8)


def test_each_difference_from_an_experts_graph_multiplies_the_score_by_the_factor():
    rng = np.random.default_rng(14)
    cards = np.array([2, 2, 3, 2])
    codes = random_rows(rng, random_dag(rng, 4, 0.8), cards, 60)
    expert, factor = [("a", "b"), ("b", "c"), ("a", "d")], 0.3
    model = fitted(codes, cards, sharing="none", structure_prior=(expert, factor))
    learnt = as_matrix(model.graphs_[0], 4)
    believed = np.zeros((4, 4), dtype=bool)
    for u, v in expert:
        believed["abcd".index(u), "abcd".index(v)] = True
    bare = Scorer([Task(codes, (0, 1, 2, 3))], cards, Rules(None, None, 4, np.zeros((4, 4))))
    # A constant apart, which is that of the empty graph's differences.
    prior = (int((learnt != believed).sum()) - len(expert)) * np.log(factor)
    assert model.log_score_ == pytest.approx(bare.total(learnt[None]) + prior, abs=1e-8)
    certain = fitted(codes, cards, sharing="none", structure_prior=(expert, 1e-200))
    assert set(certain.graphs_[0].edges) == set(expert)


def test_kernels_from_the_cache_are_looked_for_once():
    script = (
        "import numpy as np; from kinfolk import BayesNets; from kinfolk.maths.kernel_cache import KernelCache\n"
        "rows = np.random.default_rng(0).integers(0, 2, (60, 4)); task = np.arange(60) % 2\n"
        "BayesNets().fit(rows, task=task)\n"
        "asked = []; KernelCache.load_overload = lambda self, *rest: asked.append(self._name)\n"
        "BayesNets().fit(rows, task=task); print(asked)"
    )
    for _ in range(2):  # the second process has all kernels from the cache
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]"
