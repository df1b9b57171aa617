"""The value that holds one Bayes net, against sums over every row and draws."""

from itertools import pairwise, product

import networkx as nx
import numpy as np
import pytest

from kinfolk.networks.model.network import adjacency_of, make_network, named_graph, parents_of, topological_order

RAIN = np.array([0.8, 0.2])
SPRINKLER = np.array([[0.6, 0.4], [0.99, 0.01]])
WET = np.array([[[0.9, 0.08, 0.02], [0.2, 0.5, 0.3]], [[0.1, 0.3, 0.6], [0.0, 0.1, 0.9]]])
NO_YES = ["no", "yes"]


@pytest.fixture
def lawn():
    """Rain → sprinkler, and both → wet, which stands first among the variables and names its parents backwards."""
    return make_network(
        ["wet", "rain", "sprinkler"],
        [["dry", "damp", "soaked"], NO_YES, NO_YES],
        [[2, 1], [], [1]],
        [WET.transpose(1, 0, 2), RAIN, SPRINKLER],
    )


def every_row(network):
    return np.array(list(product(*(range(card) for card in network.cards))))


def test_probabilities_are_the_products_of_the_tables(lawn):
    for wet, rain, sprinkler in every_row(lawn):
        expected = RAIN[rain] * SPRINKLER[rain, sprinkler] * WET[rain, sprinkler, wet]
        with np.errstate(divide="ignore"):
            assert lawn.log_probability(np.array([[wet, rain, sprinkler]]))[0] == pytest.approx(np.log(expected))


def test_the_probabilities_of_all_rows_sum_to_one(lawn):
    assert np.exp(lawn.log_probability(every_row(lawn))).sum() == pytest.approx(1, abs=1e-12)


def test_a_state_that_a_table_rules_out_has_log_probability_minus_infinity(lawn):
    assert lawn.log_probability(np.array([[0, 1, 1]]))[0] == -np.inf


def test_parents_are_kept_in_ascending_order_with_the_axes_of_their_table(lawn):
    assert lawn.parents == ((1, 2), (), (1,))
    np.testing.assert_allclose(lawn.tables[0], WET)
    assert lawn.n_arcs == 3
    assert lawn.n_free_parameters == 4 * 2 + 1 + 2
    assert lawn.cards.tolist() == [3, 2, 2]


def test_draws_follow_the_probabilities_of_the_rows(lawn):
    n = 200_000
    drawn = lawn.sample(n, np.random.default_rng(0))
    rows = every_row(lawn)
    expected = np.exp(lawn.log_probability(rows))
    seen = np.array([(drawn == row).all(axis=1).mean() for row in rows])
    assert (abs(seen - expected) <= 4.5 * np.sqrt(expected * (1 - expected) / n)).all()
    assert seen.sum() == pytest.approx(1)


def test_the_same_generator_gives_the_same_draws(lawn):
    first, again = (lawn.sample(50, np.random.default_rng(1)) for _ in range(2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, lawn.sample(50, np.random.default_rng(2)))
    assert lawn.sample(0, np.random.default_rng(0)).shape == (0, 3)


def test_a_row_that_rounding_keeps_from_one_gives_no_draw_beyond_the_last_state():
    tenths = make_network(["x"], [list(range(10))], [[]], [np.full(10, 0.1)])
    short = tenths._replace(tables=(np.full(10, 0.1) - 1e-4,))
    assert short.sample(100_000, np.random.default_rng(0)).max() == 9


def test_rows_are_scaled_to_sum_to_one():
    network = make_network(["x"], [NO_YES], [[]], [np.array([0.3333, 0.6666])])
    assert network.tables[0].sum() == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"variables": ["a", "a"]}, "variable 'a' stands twice in the network"),
        ({"states": [NO_YES]}, "needs states, parents and a table for each variable"),
        ({"parents": [[], [0, 0]]}, r"variable 'b': its parents \[0, 0\] are not distinct other variables"),
        ({"parents": [[], [1]]}, r"variable 'b': its parents \[1\] are not distinct other variables"),
        ({"parents": [[], [2]]}, r"variable 'b': its parents \[2\] are not distinct other variables"),
        ({"parents": [[], []]}, r"variable 'b': its table has shape \(2, 2\), .* ask \(2,\)"),
        ({"tables": [RAIN, np.array([[0.5, 0.5], [0.5, 0.6]])]}, "variable 'b': .* not a probability distribution"),
        ({"tables": [np.array([-0.1, 1.1]), SPRINKLER]}, "variable 'a': .* not a probability distribution"),
        ({"tables": [np.array([np.nan, 1.0]), SPRINKLER]}, "variable 'a': .* not a probability distribution"),
    ],
)
def test_parts_that_do_not_fit_are_named(changes, sentence):
    parts = {"variables": ["a", "b"], "states": [NO_YES] * 2, "parents": [[], [0]], "tables": [RAIN, SPRINKLER]}
    make_network(**parts)
    with pytest.raises(ValueError, match=sentence):
        make_network(**{**parts, **changes})


def test_a_cycle_is_named_and_what_hangs_on_it_is_not():
    names = ["root", "a", "b", "c", "leaf"]
    parents = [[], [0, 3], [1], [2], [3]]
    tables = [np.full((2,) * (len(its) + 1), 0.5) for its in parents]
    with pytest.raises(ValueError, match="the arcs form a cycle: ") as refused:
        make_network(names, [NO_YES] * 5, parents, tables)
    cycle = str(refused.value).removeprefix("the arcs form a cycle: ").split(" → ")
    assert cycle[0] == cycle[-1]
    assert sorted(cycle[1:]) == ["a", "b", "c"]
    assert all(names.index(tail) in parents[names.index(head)] for tail, head in pairwise(cycle))


def test_an_order_puts_parents_first_and_free_variables_in_their_own_order():
    assert topological_order(adjacency_of([[2], [], [], [0, 1]])) == [1, 2, 0, 3]
    rng = np.random.default_rng(0)
    for _ in range(20):
        shuffle = rng.permutation(12)
        adjacency = np.triu(rng.random((12, 12)) < 0.3, 1)[np.ix_(shuffle, shuffle)]
        order = topological_order(adjacency)
        assert sorted(order) == list(range(12))
        assert not np.tril(adjacency[np.ix_(order, order)]).any()


def test_parents_matrices_and_graphs_say_the_same(lawn):
    assert parents_of(lawn.adjacency()) == lawn.parents
    assert np.array_equal(adjacency_of(lawn.parents), lawn.adjacency())
    graph = lawn.graph()
    assert list(graph) == list(lawn.variables)
    assert set(graph.edges) == {("rain", "sprinkler"), ("rain", "wet"), ("sprinkler", "wet")}
    assert np.array_equal(nx.to_numpy_array(graph), lawn.adjacency())
    assert list(named_graph(np.zeros((2, 2), dtype=bool), ["x", "y"])) == ["x", "y"]
