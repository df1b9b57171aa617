"""Branch and bound of eq. 9 and 10: against enumeration, and its counts against a plain recursion and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from kinfolk.networks.inference.branch_and_bound import bound_edit, bound_paired, n_partial_configurations
from kinfolk.networks.model.configurations import best_edit, best_paired
from kinfolk.networks.model.priors import edit_costs, pair_costs
from tests.networks.test_configurations import (
    assert_is_best,
    edit_penalty_of_all,
    paired_penalty_of_all,
    random_case,
    random_edit_costs,
    random_pair_costs,
    random_penalty,
    values_of_all,
)


def random_penalties(rng, k):
    """A different penalty for each pair of tasks, some of them 0, some infinite."""
    penalties = np.array([[random_penalty(rng) for _ in range(k)] for _ in range(k)])
    return np.triu(penalties, 1) + np.triu(penalties, 1).T


def one_penalty(k, penalty):
    return np.full((k, k), penalty)


def count_by_recursion(case, penalty_of_first, look_ahead=False):
    """Value and number of partial configurations evaluated, written down from the paper: nested lists, no stacks.

    Children come best first, the current state first among equals, then 0, 1, 2.
    """
    k = len(case.gains)

    def value_of(states):
        value = sum(case.gains[t, s] for t, s in enumerate(states)) - penalty_of_first(states)
        for q in range(len(states), k):
            lost = [penalty_of_first([*states, s]) - penalty_of_first(states) if look_ahead else 0.0 for s in range(3)]
            value += max(case.gains[q] - lost)
        return value

    incumbent = -np.inf if case.must_change else value_of(list(case.current))
    evaluated = 0

    def explore(states):
        nonlocal incumbent, evaluated
        if len(states) == k:
            incumbent = max(incumbent, value_of(states))
            return
        t = len(states)
        children = []
        for s in sorted(range(3), key=lambda s: (s != case.current[t], s)):
            unchanged = t == k - 1 and [*states, s] == list(case.current)
            if case.gains[t, s] > -np.inf and not (case.must_change and unchanged):
                evaluated += 1
                children.append((value_of([*states, s]), s))
        for bound, s in sorted(children, key=lambda child: -round(child[0], 6)):
            if bound > incumbent + 1e-9:
                explore([*states, s])

    if value_of([]) > incumbent + 1e-9:
        explore([])
    return incumbent, evaluated


def test_bound_edit_is_the_best_of_all_configurations():
    rng = np.random.default_rng(3)
    for _ in range(3000):
        case, penalty, costs = random_case(rng), random_penalty(rng), random_edit_costs(rng)
        states = np.full(len(case.gains), -1)
        value, n_evaluated = bound_edit(case.gains, case.current, penalty, costs, case.must_change, states)
        values = values_of_all(case, lambda c, p=penalty, d=costs: edit_penalty_of_all(c, p, d))
        assert_is_best(case, values, value, states)
        assert 0 <= n_evaluated <= n_partial_configurations(len(states))


@pytest.mark.parametrize("look_ahead", [True, False])
def test_bound_paired_is_the_best_of_all_configurations_with_a_penalty_for_each_pair_of_tasks(look_ahead):
    rng = np.random.default_rng(4)
    for _ in range(2500):
        case, costs = random_case(rng), random_pair_costs(rng)
        penalties = random_penalties(rng, len(case.gains))
        states = np.full(len(case.gains), -1)
        value, n_evaluated = bound_paired(
            case.gains, case.current, penalties, costs, case.must_change, states, -np.inf, look_ahead
        )
        values = values_of_all(case, lambda c, p=penalties, d=costs: paired_penalty_of_all(c, p, d))
        assert_is_best(case, values, value, states)
        assert 0 <= n_evaluated <= n_partial_configurations(len(states))


def test_branch_and_bound_agrees_with_the_direct_methods_beyond_enumeration():
    rng = np.random.default_rng(5)
    k = 12
    for _ in range(200):
        gains = rng.normal(rng.normal(0.0, 3.0, 3), 3.0, (k, 3))
        gains[:, 0] = 0.0
        current, states = np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64)
        penalty, must_change = rng.exponential(3.0), bool(rng.random() < 0.5)
        direct = best_edit(gains, current, penalty, edit_costs(), must_change, states)
        assert bound_edit(gains, current, penalty, edit_costs(), must_change, states)[0] == pytest.approx(
            direct, abs=1e-9
        )
        direct = best_paired(gains, current, penalty / (k - 1), pair_costs(), must_change, states)
        penalties = one_penalty(k, penalty / (k - 1))
        bounded, _ = bound_paired(gains, current, penalties, pair_costs(), must_change, states)
        assert bounded == pytest.approx(direct, abs=1e-9)


def test_evaluated_counts_are_those_of_a_plain_recursion():
    rng = np.random.default_rng(6)
    for _ in range(300):
        case, penalty, costs = random_case(rng), float(rng.choice([0.0, 0.5, 1.0, 4.0])), random_edit_costs(rng)
        states = np.zeros(len(case.gains), dtype=np.int64)
        counted = bound_edit(case.gains, case.current, penalty, costs, case.must_change, states)
        expected = count_by_recursion(
            case, lambda s, p=penalty, d=costs: p * min(sum(d[c, x] for x in s) for c in range(3))
        )
        assert counted == (pytest.approx(expected[0], abs=1e-9), expected[1])

        penalties, costs = one_penalty(len(states), penalty), pair_costs(costs[0, 1], costs[1, 2])
        for ahead in (False, True):
            counted = bound_paired(case.gains, case.current, penalties, costs, case.must_change, states, -np.inf, ahead)
            expected = count_by_recursion(
                case, lambda s, p=penalty, d=costs: p * sum(d[x, y] for i, x in enumerate(s) for y in s[i + 1 :]), ahead
            )
            assert counted == (pytest.approx(expected[0], abs=1e-9), expected[1])


def test_counts_by_hand_of_two_tasks():
    current, states = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
    gains = np.array([[0.0, 1.0, -5.0], [0.0, 1.0, -5.0]])
    # Three of order 1, and the three that begin with →; the best is 2, which the bounds 1 and -4 do not exceed.
    assert bound_edit(gains, current, 0.0, edit_costs(), False, states) == (2.0, 6)
    # A forbidden state is no partial configuration.
    gains[0, 2] = -np.inf
    assert bound_edit(gains, current, 0.0, edit_costs(), False, states) == (2.0, 5)
    # Where every task is best as it is, nothing needs to be evaluated.
    gains[:, 1] = -1.0
    assert bound_edit(gains, current, 0.0, edit_costs(), False, states) == (0.0, 0)
    # Something must change: two of order 1 (0, -1), then after "none" all but "none" (-1, -5); -1 beats the rest.
    assert bound_edit(gains, current, 0.0, edit_costs(), True, states) == (-1.0, 4)
    np.testing.assert_array_equal(states, [0, 1])


@pytest.mark.parametrize(("k", "n"), [(0, 0), (1, 3), (2, 12), (5, 363)])
def test_a_search_that_leaves_nothing_out_evaluates_every_partial_configuration(k, n):
    assert n_partial_configurations(k) == n


def test_looking_ahead_evaluates_fewer_partial_configurations_than_eq_10():
    rng = np.random.default_rng(7)
    k = 9
    with_it = without = 0
    for _ in range(50):
        gains = rng.normal(0.0, 2.0, (k, 3))
        current, states = np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64)
        penalties = one_penalty(k, 3.0 / (k - 1))
        with_it += bound_paired(gains, current, penalties, pair_costs(), False, states, -np.inf, True)[1]
        without += bound_paired(gains, current, penalties, pair_costs(), False, states, -np.inf, False)[1]
    assert with_it < without / 2


@pytest.mark.parametrize("must_change", [True, False])
def test_only_what_exceeds_the_floor_is_found_and_the_floor_saves_evaluations(must_change):
    rng = np.random.default_rng(8)
    saved = 0
    for _ in range(300):
        case = random_case(rng)._replace(must_change=must_change)
        k = len(case.gains)
        for search, penalty, costs in (
            (bound_edit, 1.0, edit_costs()),
            (bound_paired, one_penalty(k, 0.3), pair_costs()),
        ):
            states = np.zeros(k, dtype=np.int64)
            value, n_free = search(case.gains, case.current, penalty, costs, must_change, states)
            if value == -np.inf:
                continue
            above, n_above = search(case.gains, case.current, penalty, costs, must_change, states, value - 0.01)
            assert above == pytest.approx(value, abs=1e-9)
            below, n_below = search(case.gains, case.current, penalty, costs, must_change, states, value)
            assert below == -np.inf
            np.testing.assert_array_equal(states, case.current)
            assert n_below <= n_above <= n_free
            saved += n_free - n_below
    assert saved > 0


def test_no_tasks_are_worth_nothing_and_cannot_change():
    nobody, no_gains = np.zeros(0, dtype=np.int64), np.zeros((0, 3))
    for search, penalty, costs in ((bound_edit, 1.0, edit_costs()), (bound_paired, np.zeros((0, 0)), pair_costs())):
        assert search(no_gains, nobody, penalty, costs, False, nobody.copy()) == (0.0, 0)
        assert search(no_gains, nobody, penalty, costs, True, nobody.copy()) == (-np.inf, 0)
