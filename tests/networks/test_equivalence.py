"""Equivalence classes against enumeration of all graphs on three and four variables."""

import time
from collections import defaultdict
from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest

from kinfolk.networks.model.equivalence import completed, extension, same_class


def all_dags(n):
    """Every directed acyclic graph on n variables; each pair is unlinked or linked one way or the other."""
    pairs = list(combinations(range(n), 2))
    for choice in product(range(3), repeat=len(pairs)):
        adjacency = np.zeros((n, n), dtype=bool)
        for (i, j), way in zip(pairs, choice, strict=True):
            if way:
                adjacency[(i, j) if way == 1 else (j, i)] = True
        if nx.is_directed_acyclic_graph(nx.from_numpy_array(adjacency, create_using=nx.DiGraph)):
            yield adjacency


def signature(adjacency):
    """Skeleton and v-structures, which define the class (Verma and Pearl 1990)."""
    linked = adjacency | adjacency.T
    colliders = frozenset(
        (i, k, j)
        for k in range(len(adjacency))
        for i, j in combinations(np.flatnonzero(adjacency[:, k]).tolist(), 2)
        if not linked[i, j]
    )
    return linked.tobytes(), colliders


def random_dag(n, n_arcs, rng):
    order = rng.permutation(n)
    upper = np.argwhere(np.triu(np.ones((n, n), dtype=bool), 1))
    adjacency = np.zeros((n, n), dtype=bool)
    for i, j in upper[rng.choice(len(upper), size=n_arcs, replace=False)]:
        adjacency[order[i], order[j]] = True
    return adjacency


# Robinson (1973) counts the graphs; Gillispie and Perlman (2001) the classes.
@pytest.mark.parametrize(("n", "n_dags", "n_classes"), [(2, 3, 2), (3, 25, 11), (4, 543, 185)])
def test_graphs_share_a_completed_graph_exactly_if_they_share_skeleton_and_v_structures(n, n_dags, n_classes):
    classes, completions = defaultdict(list), defaultdict(set)
    for adjacency in all_dags(n):
        classes[signature(adjacency)].append(adjacency)
        completions[signature(adjacency)].add(completed(adjacency).tobytes())
    assert sum(map(len, classes.values())) == n_dags
    assert len(classes) == n_classes
    assert all(len(of_class) == 1 for of_class in completions.values())
    assert len(set().union(*completions.values())) == n_classes


@pytest.mark.parametrize("n", [3, 4])
def test_an_arc_of_the_completed_graph_is_directed_exactly_if_all_members_share_it(n):
    classes = defaultdict(list)
    for adjacency in all_dags(n):
        classes[signature(adjacency)].append(adjacency)
    for members in classes.values():
        # An edge marked in both directions is one that some member has each way.
        assert np.array_equal(completed(members[0]), np.any(members, axis=0))


def test_an_extension_of_a_completed_graph_is_a_member_of_its_class():
    for adjacency in all_dags(4):
        found = extension(completed(adjacency))
        assert signature(found) == signature(adjacency)


@pytest.mark.parametrize(("n", "n_arcs"), [(8, 12), (15, 40), (30, 45), (60, 200)])
def test_larger_graphs_come_back_to_their_class(n, n_arcs):
    rng = np.random.default_rng(n)
    for _ in range(10):
        adjacency = random_dag(n, n_arcs, rng)
        found = extension(completed(adjacency))
        assert nx.is_directed_acyclic_graph(nx.from_numpy_array(found, create_using=nx.DiGraph))
        assert signature(found) == signature(adjacency)
        assert np.array_equal(completed(found), completed(adjacency))
        assert same_class(found, adjacency)


def test_an_extension_exists_exactly_where_enumeration_finds_one():
    """All 4 states of each of the 6 pairs of 4 variables, against the signatures and arcs of all graphs."""
    members = defaultdict(list)
    for adjacency in all_dags(4):
        members[signature(adjacency)].append(adjacency)
    pairs = list(combinations(range(4), 2))
    n_without = 0
    for choice in product(range(4), repeat=len(pairs)):
        pdag = np.zeros((4, 4), dtype=bool)
        for (i, j), state in zip(pairs, choice, strict=True):
            pdag[i, j], pdag[j, i] = state & 1, state & 2
        directed = pdag & ~pdag.T
        skeleton = (pdag | pdag.T).tobytes()
        colliders = frozenset(
            (i, k, j)
            for k in range(4)
            for i, j in combinations(np.flatnonzero(directed[:, k]).tolist(), 2)
            if not (pdag | pdag.T)[i, j]
        )
        consistent = [m for m in members[skeleton, colliders] if (m >= directed).all()]
        found = extension(pdag)
        assert (found is None) == (not consistent)
        assert found is None or any(np.array_equal(found, member) for member in consistent)
        n_without += found is None
    assert 0 < n_without < 4 ** len(pairs)


def test_reversing_a_covered_arc_stays_in_the_class_and_another_leaves_it():
    adjacency = np.zeros((4, 4), dtype=bool)
    adjacency[[0, 0, 1, 2], [1, 2, 2, 3]] = True
    covered = adjacency.copy()
    covered[0, 1], covered[1, 0] = False, True
    assert same_class(adjacency, covered)
    collided = adjacency.copy()
    collided[2, 3], collided[3, 2] = False, True
    assert not same_class(adjacency, collided)


def test_a_cycle_is_named():
    cycle = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=bool)
    with pytest.raises(ValueError, match="the arcs form a cycle: wet → cold → rain → wet"):
        completed(cycle, ["rain", "wet", "cold"])


def test_a_network_of_223_variables_takes_well_under_a_tenth_of_a_second():
    rng = np.random.default_rng(0)
    for n_arcs in (338, 5_000):
        adjacency = random_dag(223, n_arcs, rng)
        start = time.process_time()
        completed(adjacency)
        assert time.process_time() - start < 0.1
