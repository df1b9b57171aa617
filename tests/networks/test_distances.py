"""Distances between networks against counting by hand, search over edits, and sums over every row."""

from itertools import permutations, product

import networkx as nx
import numpy as np
import pytest

from kinfolk.networks.model.distances import edit_distance, kl_divergence, shd
from kinfolk.networks.model.network import Network, make_network


def graph(arcs, nodes="abcd"):
    structure = nx.DiGraph()
    structure.add_nodes_from(nodes)
    structure.add_edges_from(tuple(arc) for arc in arcs.split())
    return structure


def random_network(n, rng, card=3):
    adjacency = np.triu(rng.random((n, n)) < 0.5, 1)
    parents = [np.flatnonzero(column).tolist() for column in adjacency.T]
    tables = [rng.dirichlet(np.ones(card), size=(card,) * len(its)) for its in parents]
    return make_network([f"v{i}" for i in range(n)], [[f"s{k}" for k in range(card)]] * n, parents, tables)


def shuffled(network, rng):
    """The same distribution with the variables and the states in another order."""
    n = len(network.variables)
    order = rng.permutation(n)
    states_order = [rng.permutation(len(states)) for states in network.states]
    place = {int(v): i for i, v in enumerate(order)}
    tables = []
    for v in order:
        family = (*network.parents[v], v)
        tables.append(network.tables[v][np.ix_(*(states_order[u] for u in family))])
    return make_network(
        [network.variables[v] for v in order],
        [[network.states[v][k] for k in states_order[v]] for v in order],
        [[place[p] for p in network.parents[v]] for v in order],
        tables,
    )


def fewest_edits(a, b):
    """Breadth-first search through all directed graphs without two-cycles by single edits."""
    nodes = sorted(a)
    start, goal = frozenset(a.edges), frozenset(b.edges)
    reached, frontier, steps = {start}, {start}, 0
    while goal not in reached:
        following = set()
        for arcs in frontier:
            for arc in permutations(nodes, 2):
                back = arc[::-1]
                if arc in arcs:
                    following |= {arcs - {arc}, arcs - {arc} | {back}}
                elif back not in arcs:
                    following.add(arcs | {arc})
        frontier = following - reached
        reached |= frontier
        steps += 1
    return steps


def test_edit_distance_is_the_fewest_additions_removals_and_reversals():
    rng = np.random.default_rng(0)
    for _ in range(30):
        a, b = (nx.from_numpy_array(np.triu(rng.random((3, 3)) < 0.5, 1), create_using=nx.DiGraph) for _ in range(2))
        b = nx.relabel_nodes(b, dict(enumerate(rng.permutation(3).tolist())))
        assert edit_distance(a, b) == fewest_edits(a, b)


def test_an_addition_a_removal_and_a_reversal_count_one_each():
    assert edit_distance(graph("ab bc cd"), graph("ba cd ad")) == 3
    assert edit_distance(graph("ab"), graph("ba")) == 1
    assert edit_distance(graph("ab bc"), graph("ab bc")) == 0


def test_graphs_networks_and_matrices_are_matched():
    network = random_network(5, np.random.default_rng(1))
    other = shuffled(network, np.random.default_rng(2))
    assert network.variables != other.variables
    assert edit_distance(network, other) == 0
    assert edit_distance(network.graph(), other) == 0
    assert edit_distance(network.adjacency(), network) == 0
    assert edit_distance(network, network.adjacency().T.astype(int)) == network.n_arcs
    assert shd(network, other.graph()) == 0


# The completed graphs, by hand: a path without collider has no arcs; a → c ← b with c → d has three.
@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [
        ("ab bc cd", "dc cb ba", 0),
        ("ab bc", "ab cb", 2),
        ("ac bc cd", "ac bc dc", 1),
        ("ac bc cd", "ac bc", 1),
        ("ac bc cd", "ca cb cd", 3),
        ("ac bc cd", "ab ac bc cd", 4),
        ("ab ac bc", "cb ba ca", 0),
        ("", "ab", 1),
    ],
)
def test_shd_counts_pairs_that_differ_between_completed_graphs(a, b, distance):
    assert shd(graph(a), graph(b)) == distance == shd(graph(b), graph(a))


def test_structures_over_different_variables_are_refused_by_name():
    with pytest.raises(ValueError, match="the second network lacks variable 'd'"):
        edit_distance(graph("ab"), graph("ab", "abc"))
    with pytest.raises(ValueError, match="the first network lacks variable 'd'"):
        shd(graph("ab", "abc"), graph("ab"))
    with pytest.raises(ValueError, match="the structures have 4 and 3 variables"):
        edit_distance(graph("ab"), np.zeros((3, 3), dtype=bool))
    with pytest.raises(ValueError, match=r"must be square, but one has shape \(3, 4\)"):
        edit_distance(np.zeros((3, 4), dtype=bool), graph("ab"))
    with pytest.raises(ValueError, match="the second network lacks variable 'v3'"):
        kl_divergence(random_network(4, np.random.default_rng(0)), random_network(3, np.random.default_rng(0)))


def test_a_cycle_is_named_where_a_class_is_needed():
    with pytest.raises(ValueError, match=r"the arcs form a cycle: .*a → b"):
        shd(graph("ab bc ca"), graph("ab"))


def exact_divergence(true, learnt):
    rows = np.array(list(product(*(range(card) for card in true.cards))))
    log_true = true.log_probability(rows)
    return float((np.exp(log_true) * (log_true - learnt.log_probability(rows))).sum())


def test_divergence_agrees_with_the_sum_over_every_row_within_its_error():
    rng = np.random.default_rng(3)
    scores = []
    for seed in range(60):
        true, learnt = random_network(4, rng), random_network(4, rng)
        estimate, error = kl_divergence(true, learnt, n_samples=2_000, random_state=seed)
        scores.append((estimate - exact_divergence(true, learnt)) / error)
    # Standard scores of a right estimate with a right error have mean 0 and variance 1.
    assert abs(np.mean(scores)) < 3 / np.sqrt(60)
    assert 0.6 < np.var(scores) < 1.6


def test_variables_and_states_are_matched_by_name():
    rng = np.random.default_rng(4)
    true, learnt = random_network(4, rng), random_network(4, rng)
    plain = kl_divergence(true, learnt, random_state=0)
    assert kl_divergence(true, shuffled(learnt, rng), random_state=0) == pytest.approx(plain, rel=1e-12)
    assert kl_divergence(true, shuffled(true, rng), random_state=0) == pytest.approx((0, 0), abs=1e-12)


def coin(p, states=("h", "t")):
    return Network(("coin",), (states,), ((),), (np.array([p, 1 - p]),))


def test_a_row_that_is_ruled_out_makes_the_divergence_infinite():
    assert kl_divergence(coin(0.5), coin(1.0), random_state=0) == (np.inf, np.inf)
    assert kl_divergence(coin(0.5), coin(0.5, ("h", "edge")), random_state=0) == (np.inf, np.inf)
    # Not what the true network never draws.
    assert kl_divergence(coin(1.0), coin(1.0, ("h", "edge")), random_state=0) == (0, 0)


def test_the_same_seed_gives_the_same_estimate_and_too_few_rows_are_refused():
    assert kl_divergence(coin(0.5), coin(0.6), random_state=1) == kl_divergence(coin(0.5), coin(0.6), random_state=1)
    assert kl_divergence(coin(0.5), coin(0.6), random_state=1) != kl_divergence(coin(0.5), coin(0.6), random_state=2)
    with pytest.raises(ValueError, match="n_samples is 1"):
        kl_divergence(coin(0.5), coin(0.6), n_samples=1)
