"""The best joint move of one pair of variables, against enumeration of all 3^k configurations."""

from __future__ import annotations

import itertools
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from kinfolk.networks.estimators.arcs import check_costs
from kinfolk.networks.model.configurations import best_edit, best_paired, edits, paired_penalty
from kinfolk.networks.model.priors import edit_costs, pair_costs


class Case(NamedTuple):
    """One choice to make: what each task gains, where it stands, and whether something has to change."""

    gains: np.ndarray
    current: np.ndarray
    must_change: bool


@cache
def all_configurations(k):
    return np.array(list(itertools.product(range(3), repeat=k)), dtype=np.int64)


def values_of_all(case, penalty_of_all):
    """Value of every configuration: own gains less the penalty; −inf where it is not allowed."""
    configurations = all_configurations(len(case.gains))
    values = case.gains[np.arange(len(case.gains)), configurations].sum(axis=1) - penalty_of_all(configurations)
    if case.must_change:
        values[(configurations == case.current).all(axis=1)] = -np.inf
    return values


def scaled(penalty, costs):
    """Penalty times costs, free edits staying free."""
    return np.multiply(
        penalty, costs, out=np.zeros(np.broadcast_shapes(np.shape(penalty), costs.shape)), where=costs > 0
    )


def edit_penalty_of_all(configurations, penalty, costs):
    price = scaled(penalty, costs)
    return np.min([price[c][configurations].sum(axis=1) for c in range(3)], axis=0)


def paired_penalty_of_all(configurations, penalties, costs):
    k = configurations.shape[1]
    total = np.zeros(len(configurations))
    for s, t in itertools.combinations(range(k), 2):
        total += scaled(penalties[s, t], costs)[configurations[:, s], configurations[:, t]]
    return total


def random_case(rng):
    """Gains with many exact ties in half of the cases, a few states forbidden in most; the current state gains 0."""
    k = int(rng.integers(1, 8))
    gains = rng.integers(-3, 4, (k, 3)).astype(float) if rng.random() < 0.5 else rng.normal(0.0, 3.0, (k, 3))
    current = rng.integers(0, 3, k)
    gains[rng.random((k, 3)) < rng.choice([0.0, 0.2, 0.6])] = -np.inf
    gains[np.arange(k), current] = 0.0
    if rng.random() < 0.1:
        gains[rng.integers(k), rng.integers(3)] = -np.inf
    return Case(gains, current, bool(rng.random() < 0.5))


def random_penalty(rng):
    return float(rng.choice([0.0, 0.01, 0.5, 1.0, rng.exponential(2.0), 100.0, np.inf]))


def random_edit_costs(rng):
    return edit_costs(*rng.choice([0.0, 0.5, 1.0, 1.0, 2.0], 3))


def random_pair_costs(rng):
    return pair_costs(*rng.choice([0.0, 0.5, 1.0, 1.0, 2.0], 2))


def assert_is_best(case, values, value, states):
    """The value is the highest of all, and the states reach it, or stay as they are where nothing is allowed."""
    best = values.max()
    assert value == pytest.approx(best, abs=1e-9)
    if best == -np.inf:
        np.testing.assert_array_equal(states, case.current)
    else:
        row = int(states @ 3 ** np.arange(len(states))[::-1])
        np.testing.assert_array_equal(all_configurations(len(states))[row], states)
        assert values[row] == pytest.approx(best, abs=1e-9)


def test_edit_costs_stand_where_their_edit_turns_the_consensus_row_into_the_column():
    costs = edit_costs(add=3.0, remove=5.0, reverse=7.0)
    np.testing.assert_array_equal(costs, [[0, 3, 3], [5, 0, 7], [5, 7, 0]])
    np.testing.assert_array_equal(pair_costs(3.0, 7.0), [[0, 3, 3], [3, 0, 7], [3, 7, 0]])


@pytest.mark.parametrize("cost", [-0.5, np.inf, np.nan])
@pytest.mark.parametrize("kind", ["add", "remove", "reverse", "arc"])
def test_a_negative_or_endless_cost_is_refused_by_its_name(kind, cost):
    with pytest.raises(ValueError, match=f"the cost {cost} of '{kind}' must be a finite number of at least 0"):
        check_costs("paired" if kind == "arc" else "edit", {kind: cost})


@pytest.mark.parametrize("k", [1, 2, 5])
def test_plain_edits_are_the_tasks_outside_the_largest_group(k):
    for states in all_configurations(k):
        assert edits(states, edit_costs()) == k - np.bincount(states).max()


def test_edits_of_unequal_cost_choose_the_cheaper_consensus():
    # From "none", two arcs are added; from "→", two are removed.
    states = np.array([0, 0, 1, 1])
    assert edits(states, edit_costs(add=1.0, remove=0.25)) == 0.5
    assert edits(states, edit_costs(add=0.25, remove=1.0)) == 0.5
    # From "→", one is reversed and one removed; from "none", three are added.
    assert edits(np.array([1, 1, 2, 0]), edit_costs(add=2.0, remove=1.0, reverse=1.5)) == 2.5


@pytest.mark.parametrize("k", [1, 2, 5])
def test_paired_penalty_is_the_symmetric_difference_of_arcs_over_all_pairs_of_tasks(k):
    arcs = [set(), {"→"}, {"←"}]
    for states in all_configurations(k):
        expected = sum(len(arcs[s] ^ arcs[t]) for s, t in itertools.combinations(states, 2))
        assert paired_penalty(states, pair_costs()) == expected


def test_paired_penalty_uses_the_costs_given():
    assert paired_penalty(np.array([0, 1, 1, 2]), pair_costs(arc=10.0, reverse=1.0)) == 10 + 10 + 10 + 1 + 1


def test_best_edit_is_the_best_of_all_configurations():
    rng = np.random.default_rng(1)
    for _ in range(4000):
        case, penalty, costs = random_case(rng), random_penalty(rng), random_edit_costs(rng)
        states = np.full(len(case.gains), -1)
        value = best_edit(case.gains, case.current, penalty, costs, case.must_change, states)
        values = values_of_all(case, lambda c, p=penalty, d=costs: edit_penalty_of_all(c, p, d))
        assert_is_best(case, values, value, states)


def test_best_paired_is_the_best_of_all_configurations():
    rng = np.random.default_rng(2)
    for _ in range(4000):
        case, penalty, costs = random_case(rng), random_penalty(rng), random_pair_costs(rng)
        states = np.full(len(case.gains), -1)
        value = best_paired(case.gains, case.current, penalty, costs, case.must_change, states)
        penalties = np.full((len(states), len(states)), penalty)
        values = values_of_all(case, lambda c, p=penalties, d=costs: paired_penalty_of_all(c, p, d))
        assert_is_best(case, values, value, states)


@pytest.mark.parametrize(("best", "costs"), [(best_edit, edit_costs()), (best_paired, pair_costs())])
def test_an_infinite_penalty_chooses_the_best_common_state(best, costs):
    gains = np.array([[0.0, 4.0, 9.0], [0.0, 3.0, -np.inf], [0.0, -1.0, 9.0]])
    states = np.zeros(3, dtype=np.int64)
    assert best(gains, np.zeros(3, dtype=np.int64), np.inf, costs, False, states) == 6.0
    np.testing.assert_array_equal(states, [1, 1, 1])


@pytest.mark.parametrize(("best", "costs"), [(best_edit, edit_costs()), (best_paired, pair_costs())])
@pytest.mark.parametrize("penalty", [0.0, 0.5, np.inf])
def test_nothing_can_change_where_all_but_the_current_states_are_forbidden(best, costs, penalty):
    gains = np.full((2, 3), -np.inf)
    gains[:, 1] = 0.0
    current, states = np.array([1, 1]), np.array([-1, -1])
    assert best(gains, current, penalty, costs, True, states) == -np.inf
    np.testing.assert_array_equal(states, current)
    assert best(gains, current, penalty, costs, False, states) == 0.0


@pytest.mark.parametrize(("best", "costs"), [(best_edit, edit_costs()), (best_paired, pair_costs())])
def test_no_tasks_are_worth_nothing_and_cannot_change(best, costs):
    nobody = np.zeros(0, dtype=np.int64)
    assert best(np.zeros((0, 3)), nobody, 1.0, costs, False, nobody.copy()) == 0.0
    assert best(np.zeros((0, 3)), nobody, 1.0, costs, True, nobody.copy()) == -np.inf


def test_among_equal_states_a_task_keeps_its_own_and_else_takes_the_lowest():
    states = np.zeros(3, dtype=np.int64)
    gains = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0], [5.0, 5.0 + 1e-10, 0.0]])
    for best, costs in ((best_edit, edit_costs()), (best_paired, pair_costs())):
        best(gains, np.array([1, 2, 2]), 0.0, costs, False, states)
        np.testing.assert_array_equal(states, [1, 2, 0])


def test_among_equal_consensus_states_the_lowest_wins():
    states = np.zeros(2, dtype=np.int64)
    gains = np.array([[0.0, 0.0, 0.0], [1.0, 1.0 + 1e-10, 1.0]])
    best_edit(gains, np.array([2, 2]), 10.0, edit_costs(), False, states)
    np.testing.assert_array_equal(states, [0, 0])


def test_among_equal_counts_the_fewest_backward_then_forward_arcs_win():
    states = np.zeros(2, dtype=np.int64)
    gains = np.array([[-9.0, 0.0, 0.0], [-9.0, 0.0, 1e-10]])
    best_paired(gains, np.array([2, 2]), 10.0, pair_costs(), False, states)
    np.testing.assert_array_equal(states, [1, 1])


def test_a_change_that_is_owed_and_costs_the_same_everywhere_falls_to_the_first_task_and_lowest_state():
    states = np.zeros(3, dtype=np.int64)
    gains = np.array([[-1.0, 0.0, -1.0], [-1.0, 0.0, -1.0], [-1.0, 0.0, -1.0]])
    best_edit(gains, np.array([1, 1, 1]), 0.5, edit_costs(), True, states)
    np.testing.assert_array_equal(states, [0, 1, 1])
