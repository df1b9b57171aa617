"""The search over orders of variables, against the same greedy choice of parents by hand and all orders of four."""

from itertools import permutations, product

import numpy as np
import pytest

from kinfolk import BayesNets
from kinfolk.networks.inference.orders import search_orders
from kinfolk.networks.model.data import lay_out
from kinfolk.networks.model.family_scores import make_problem
from kinfolk.networks.model.network import Constraints
from kinfolk.networks.model.priors import joint_prior, no_sharing
from kinfolk.networks.model.scores import CRITERIA
from tests.networks.oracle import (
    Scorer,
    Task,
    as_frame,
    edit_penalty,
    is_acyclic,
    log_family,
    no_rules,
    paired_penalty,
    random_cards,
    random_dag,
    random_rows,
    related_rows,
)


def search_one(problem, start, odds, n_disturbed):
    found = search_orders(problem, no_sharing(1, odds), np.array([0]), start[None], n_disturbed)
    return found._replace(adjacency=found.adjacency[0])


def greedy(codes, cards, order, odds, required):
    """Parents of every variable from those before it, each time the change that gains most; and the log posterior."""
    n, total = len(cards), 0.0
    adjacency = np.zeros((n, n), dtype=bool)
    for place, v in enumerate(order):
        before = set(order[:place])
        parents = set(np.flatnonzero(required[:, v]).tolist())
        if not parents <= before:
            return None, -np.inf

        def worth(its, v=v):
            return log_family(codes, cards, v, sorted(its)) + sum(odds[p, v] for p in its)

        here = worth(parents)
        while True:
            changes = [parents ^ {p} for p in sorted(before) if not (p in parents and required[p, v])]
            best = max(changes, key=worth, default=parents)
            if worth(best) <= here + 1e-8:
                break
            parents, here = best, worth(best)
        adjacency[sorted(parents), v] = True
        total += here
    return adjacency, total


def make(seed, n, n_rows=60, n_required=0):
    rng = np.random.default_rng(seed)
    cards = random_cards(rng, n, 3)
    codes = random_rows(rng, random_dag(rng, n), cards, n_rows)
    odds = rng.normal(-1.5, 1.0, (n, n))
    required = np.zeros((n, n), dtype=bool)
    for i, j in rng.permutation(np.argwhere(random_dag(rng, n)))[:n_required]:
        required[i, j] = True
    rules = Constraints(~np.eye(n, dtype=bool) & ~required.T, required, n)
    return codes, cards, odds, make_problem(lay_out([codes], cards), CRITERIA["bdeu"], 1.0, rules)


@pytest.mark.parametrize("n_required", [0, 2])
def test_the_end_is_the_greedy_structure_of_an_order_in_which_no_variable_has_a_better_place(n_required):
    for seed in range(4):
        codes, cards, odds, problem = make(seed, 5, n_required=n_required)
        required = problem.constraints.required
        found = search_one(problem, required, odds, 0)
        ends = [
            order
            for order in permutations(range(5))
            if np.array_equal(greedy(codes, cards, order, odds, required)[0], found.adjacency)
        ]
        assert ends
        assert greedy(codes, cards, ends[0], odds, required)[1] == pytest.approx(found.score, abs=1e-8)

        def best_of_moves(order, codes=codes, cards=cards, odds=odds, required=required):
            rest = [[u for u in order if u != v] for v in order]
            moved = [[*others[:i], v, *others[i:]] for v, others in zip(order, rest, strict=True) for i in range(5)]
            return max(greedy(codes, cards, one, odds, required)[1] for one in moved)

        assert min(best_of_moves(list(order)) for order in ends) <= found.score + 1e-7


def test_disturbed_often_enough_it_finds_the_best_of_all_orders_of_four():
    for seed in range(4):
        codes, cards, odds, problem = make(10 + seed, 4)
        none = problem.constraints.required
        best = max(greedy(codes, cards, order, odds, none)[1] for order in permutations(range(4)))
        found = search_one(problem, none, odds, 30)
        assert found.score == pytest.approx(best, abs=1e-8)


def test_forbidden_arcs_limits_and_absent_variables_are_kept_to():
    rng = np.random.default_rng(3)
    cards = np.full(6, 2)
    codes = random_rows(rng, random_dag(rng, 6, 0.8), cards, 300)
    never = np.triu(np.ones((6, 6), dtype=bool))
    present = np.array([[True, True, False, True, True, True]])
    rules = Constraints(~never, np.zeros((6, 6), dtype=bool), 1)
    problem = make_problem(lay_out([codes], cards, present), CRITERIA["k2"], 1.0, rules)
    found = search_one(problem, np.zeros((6, 6), dtype=bool), np.zeros((6, 6)), 5)
    assert found.adjacency.any()
    assert not (found.adjacency & never).any()
    assert not found.adjacency[2].any()
    assert not found.adjacency[:, 2].any()
    assert found.adjacency.sum(axis=0).max() == 1
    assert is_acyclic(found.adjacency)


def test_it_is_what_an_estimator_begins_with_by_default_whatever_the_score_and_the_rules():
    rng = np.random.default_rng(5)
    cards = np.full(7, 2)
    frame = as_frame(random_rows(rng, random_dag(rng, 7), cards, 200, 0.3), cards)
    for options in ({}, {"criterion": "k2"}, {"required": [("a", "b")]}, {"structure_prior": {("a", "b"): 0.9}}):
        plain = BayesNets(search="climb", random_state=0, **options).fit(frame)
        default = BayesNets(random_state=0, **options).fit(frame)
        named = BayesNets(search="orders", random_state=0, **options).fit(frame)
        assert default.log_score_ == named.log_score_ >= plain.log_score_ - 1e-8
    one_climb = BayesNets(tabu=0, random_state=0).fit(frame)
    assert one_climb.log_score_ == BayesNets(tabu=0, search="climb", random_state=0).fit(frame).log_score_


def greedy_together(scorer, order):
    """Structures of all tasks by the same greedy choice, of every variable before and every subset of tasks."""
    k, n = len(scorer.tasks), len(scorer.cards)
    structures = np.zeros((k, n, n), dtype=bool)
    total = scorer.total(structures)
    for place, v in enumerate(order):
        while True:
            changes = []
            for p in order[:place]:
                who = scorer.who(*sorted((p, v)))
                for flips in product([False, True], repeat=len(who)):
                    if any(flips):
                        changed = structures.copy()
                        changed[np.array(who)[list(flips)], p, v] ^= True
                        changes.append((scorer.total(changed), changed))
            best = max(changes, key=lambda change: change[0], default=(-np.inf, None))
            if best[0] <= total + 1e-8:
                break
            total, structures = best
    return structures, total


@pytest.mark.parametrize("prior", ["edit", "paired", "paired by tasks"])
def test_with_a_joint_prior_it_finds_the_best_of_all_orders_that_tasks_can_have_in_common(prior):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        cards, k, strength, odds = random_cards(rng, 4, 3), 3, 1.5, -1.0
        tables = related_rows(rng, k, cards, 50)
        here = [(0, 1, 2, 3), (0, 1, 2, 3), (0, 1, 3)] if seed == 2 else [(0, 1, 2, 3)] * k
        rules = no_rules(4)._replace(arcs=np.full((4, 4), odds))
        between = (
            np.full((k, k), strength) if prior != "paired by tasks" else np.array([[0, 3, 0.5], [3, 0, 1], [0.5, 1, 0]])
        )
        np.fill_diagonal(between, 0)
        penalty = edit_penalty(strength) if prior == "edit" else paired_penalty(None, k, between=between)
        exponent = 1 / (1 + (1 - np.exp(-between)).sum(axis=1))
        tasks = [Task(*own) for own in zip(tables, here, strict=True)]
        scorer = Scorer(tasks, cards, rules, penalty=penalty, exponent=lambda t, i, j, e=exponent: e[t])
        present = np.array([[v in its for v in range(4)] for its in here])
        problem = make_problem(lay_out(tables, cards, present), CRITERIA["bdeu"], 1.0, Constraints(*rules[:3]))
        own = between if prior == "paired by tasks" else None
        believed = joint_prior(prior.split()[0], np.full((4, 4), strength), k, rules.arcs, {}, own)
        found = search_orders(problem, believed, np.arange(k), np.zeros((k, 4, 4), dtype=bool), 30)
        assert scorer.total(found.adjacency) == pytest.approx(found.score, abs=1e-8)
        best = max(greedy_together(scorer, order)[1] for order in permutations(range(4)))
        assert found.score == pytest.approx(best, abs=1e-7)


def test_a_joint_search_through_orders_ends_higher_than_one_without_on_some_tables():
    gains = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        cards = np.full(7, 2)
        frames = dict(enumerate(as_frame(rows, cards) for rows in related_rows(rng, 3, cards, 100)))
        scores = [
            BayesNets(search=search, penalty=0.8, tabu=3, random_state=0).fit(frames).log_score_
            for search in ("climb", "orders")
        ]
        gains.append(scores[1] - scores[0])
    assert max(gains) > 0.1
