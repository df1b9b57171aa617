"""Variable elimination against enumeration of all joint states, a forward filter and closed forms."""

import itertools
import subprocess
import sys

import numpy as np
import pytest

from kinfolk.networks.model import elimination
from kinfolk.networks.model.elimination import eliminate, find_parts, log_probability, log_tables_of
from kinfolk.networks.model.network import make_network


def random_network(rng, n_variables, max_parents, *, zeros=0.0, most_states=3):
    """A network of random order, structure and tables, in which a share of the cells may be ruled out."""
    cards = rng.integers(1 if n_variables < 8 else 2, most_states + 1, size=n_variables)
    order = rng.permutation(n_variables)
    parents = [[] for _ in order]
    for i, v in enumerate(order):
        before = order[max(0, i - 8) : i]
        size = min(len(before), rng.integers(0, max_parents + 1))
        parents[v] = rng.choice(before, size, replace=False).tolist()
    tables = []
    for v in range(n_variables):
        table = rng.dirichlet(np.full(cards[v], 0.7), size=tuple(cards[p] for p in parents[v]))
        table = np.where(rng.random(table.shape) < zeros, 0.0, table)
        table[table.sum(axis=-1) == 0, 0] = 1.0
        tables.append(table / table.sum(axis=-1, keepdims=True))
    names = [f"x{v}" for v in range(n_variables)]
    return make_network(names, [list(range(c)) for c in cards], parents, tables)


def joint_states(network):
    """Oracle: every joint state with its probability, by multiplying table entries one by one."""
    states = list(itertools.product(*(range(card) for card in network.cards)))
    probabilities = []
    for state in states:
        p = 1.0
        for v, parents in enumerate(network.parents):
            p *= network.tables[v][(*(state[u] for u in parents), state[v])]
        probabilities.append(p)
    return np.array(states), np.array(probabilities)


def consistent(states, row):
    """Which joint states agree with what a row shows."""
    return ((states == row) | (row < 0)).all(axis=1)


def all_patterns(rng, network, rows_of_each=2):
    """Rows with every pattern of missing cells."""
    patterns = np.array(list(itertools.product([False, True], repeat=len(network.variables))))
    patterns = np.tile(patterns, (rows_of_each, 1))
    rows = rng.integers(0, network.cards, size=patterns.shape)
    rows[patterns] = -1
    return rng.permutation(rows)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_every_pattern_of_missing_cells_has_the_probability_that_enumeration_gives(seed, zeros):
    rng = np.random.default_rng(seed)
    network = random_network(rng, 1 + seed % 7, max_parents=3, zeros=zeros)
    states, probabilities = joint_states(network)
    rows = all_patterns(rng, network)
    expected = np.array([probabilities[consistent(states, row)].sum() for row in rows])
    given = log_probability(network, rows)
    assert not np.isnan(given).any()
    np.testing.assert_allclose(np.exp(given), expected, rtol=1e-10, atol=0)
    np.testing.assert_array_equal(given == -np.inf, expected == 0)


def test_hidden_states_of_a_chain_are_summed_out_as_the_forward_filter_does():
    rng = np.random.default_rng(0)
    steps, n_states, n_symbols = 40, 3, 4
    initial = rng.dirichlet(np.ones(n_states))
    transition = rng.dirichlet(np.ones(n_states), size=n_states)
    emission = rng.dirichlet(np.ones(n_symbols), size=n_states)
    parents = [[] if t == 0 else [t - 1] for t in range(steps)] + [[t] for t in range(steps)]
    tables = [initial] + [transition] * (steps - 1) + [emission] * steps
    states = [range(n_states)] * steps + [range(n_symbols)] * steps
    network = make_network([f"x{v}" for v in range(2 * steps)], states, parents, tables)
    rows = network.sample(5, rng)
    rows[:, :steps] = -1
    (part,) = find_parts(network, rows < 0)
    assert part.cells == (steps - 1) * n_states**2 + n_states  # no factor of more than two neighbours
    for row, given in zip(rows, log_probability(network, rows), strict=True):
        forward = initial * emission[:, row[steps]]
        for t in range(1, steps):
            forward = (forward @ transition) * emission[:, row[steps + t]]
        assert given == pytest.approx(np.log(forward.sum()), rel=1e-10)


def test_evidence_far_below_the_smallest_double_does_not_underflow():
    # Every child is all but impossible under one of the two causes, in turn: the plain product is zero for both.
    n_children, tiny = 300, 1e-200
    for_first, for_second = np.array([[tiny, 1 - tiny], [0.5, 0.5]]), np.array([[0.5, 0.5], [tiny, 1 - tiny]])
    tables = [np.array([0.3, 0.7])] + [for_first, for_second] * (n_children // 2)
    names = [f"x{v}" for v in range(n_children + 1)]
    network = make_network(names, [[0, 1]] * (n_children + 1), [[]] + [[0]] * n_children, tables)
    row = np.array([[-1] + [0] * n_children])
    half = n_children // 2
    expected = half * (np.log(tiny) + np.log(0.5)) + np.logaddexp(np.log(0.3), np.log(0.7))
    assert log_probability(network, row)[0] == pytest.approx(expected, rel=1e-12)


def test_rows_are_scored_the_same_together_alone_and_in_small_pieces(monkeypatch):
    rng = np.random.default_rng(3)
    network = random_network(rng, 12, 3)
    rows = network.sample(400, rng)
    rows[rng.random(rows.shape) < 0.4] = -1
    together = log_probability(network, rows)
    alone = np.concatenate([log_probability(network, row[None]) for row in rows])
    np.testing.assert_allclose(together, alone, rtol=1e-12)
    most = max(part.cells for part in find_parts(network, rows < 0))
    monkeypatch.setattr(elimination, "LARGEST_FACTOR", most)
    assert any(len(part.chunks()) > 1 for part in find_parts(network, rows < 0))
    np.testing.assert_allclose(log_probability(network, rows), together, rtol=1e-12)


def test_a_large_network_with_many_missing_cells_obeys_the_law_of_total_probability():
    rng = np.random.default_rng(5)
    network = random_network(rng, 37, 3, most_states=4)
    rows = network.sample(200, rng)
    rows[rng.random(rows.shape) < 0.3] = -1
    rows[:, 7] = -1
    filled = np.repeat(rows, network.cards[7], axis=0)
    filled[:, 7] = np.tile(np.arange(network.cards[7]), len(rows))
    summed = np.exp(log_probability(network, filled)).reshape(len(rows), -1).sum(axis=1)
    np.testing.assert_allclose(np.log(summed), log_probability(network, rows), rtol=1e-10)


def test_a_parts_foreseen_size_is_that_of_the_factors_it_makes():
    rng = np.random.default_rng(6)
    network = random_network(rng, 20, 4)
    rows = network.sample(50, rng)
    rows[rng.random(rows.shape) < 0.6] = -1
    parts = find_parts(network, rows < 0)
    assert max(len(part.order) for part in parts) > 8
    for part in parts:
        steps = eliminate(part, network, log_tables_of(network), rows[part.rows])[1]
        assert sum(step.log_product[0].size for step in steps) == part.cells


def test_variables_with_nothing_observed_below_them_are_in_no_part():
    arcs = [[], [0], [1], [1]]
    network = make_network("abcd", [[0, 1]] * 4, arcs, [np.full((2,) * (len(p) + 1), 0.5) for p in arcs])
    (part,) = find_parts(network, np.array([[True, True, False, True]]))
    assert sorted(part.order) == [0, 1]
    assert part.families == (0, 1, 2)


def test_missing_cells_too_entangled_to_sum_out_are_refused_with_the_row():
    n_causes = 24
    pairs = list(itertools.combinations(range(n_causes), 2))
    parents = [[] for _ in range(n_causes)] + [list(pair) for pair in pairs]
    tables = [np.full((2,) * (len(its) + 1), 0.5) for its in parents]
    network = make_network([f"x{v}" for v in range(len(parents))], [[0, 1]] * len(parents), parents, tables)
    rows = np.zeros((3, len(parents)), dtype=int)
    rows[2, :n_causes] = -1
    with pytest.raises(ValueError, match=r"^row 2: 24 connected cells are missing, and to sum them out .* parents$"):
        log_probability(network, rows)


def test_no_rows_and_complete_rows_are_taken_as_they_are():
    network = random_network(np.random.default_rng(1), 5, 2)
    rows = network.sample(20, np.random.default_rng(2))
    np.testing.assert_array_equal(log_probability(network, rows), network.log_probability(rows))
    assert log_probability(network, rows[:0]).shape == (0,)


def test_scoring_a_row_loads_neither_numba_nor_scipy():
    script = (
        "import sys, kinfolk.networks.inference.completions; print([m for m in ('numba', 'scipy') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout.strip() == "[]"
