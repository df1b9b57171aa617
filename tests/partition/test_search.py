"""The bound from searching partitions: below the exact evidence, above hierarchical clustering's, and close."""

import math

import numpy as np
import pytest

from kinfolk.maths.dirichlet import DirichletProduct, dirichlet_product
from kinfolk.partition.bhc import cluster_hierarchically
from kinfolk.partition.crp import canonical
from kinfolk.partition.exact import exact_partitions
from kinfolk.partition.search import search_partitions
from tests.oracle import log_crp, partitions

ROUNDING = 1e-9


def tasks(n_tasks: int, n_rows: int, seed: int, n_kinds: int = 3) -> tuple[np.ndarray, DirichletProduct]:
    """Counts of two features of three values, from a few kinds of tasks."""
    rng = np.random.default_rng(seed)
    rates = rng.dirichlet(np.full(3, 0.5), size=(n_kinds, 2))
    kind = rng.integers(n_kinds, size=n_tasks)
    counts = [np.concatenate([rng.multinomial(n_rows, rates[k, f]) for f in range(2)]) for k in kind]
    prior = rng.uniform(0.4, 2.0, size=6)
    return np.array(counts, dtype=np.int32), dirichlet_product(prior, np.array([0, 3, 6]), n_tasks * n_rows)


def log_joint(partition: tuple[int, ...], counts: np.ndarray, product: DirichletProduct, a: float) -> float:
    """Prior times marginal of one partition, by Pólya's urns."""
    total = log_crp(tuple(canonical(np.array(partition)).tolist()), a)
    for block in set(partition):
        together = counts[np.array(partition) == block].sum(axis=0)
        for start in (0, 3):
            urn = product.prior[start : start + 3].tolist()
            for value, times in enumerate(together[start : start + 3].tolist()):
                for _ in range(times):
                    total += math.log(urn[value] / sum(urn))
                    urn[value] += 1.0
    return total


@pytest.mark.parametrize("a", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("n_rows", [0, 1, 5, 30])
@pytest.mark.parametrize("n_tasks", [1, 2, 4, 7, 9])
def test_the_bound_never_exceeds_the_exact_evidence(n_tasks, n_rows, a):
    counts, product = tasks(n_tasks, n_rows, seed=n_tasks)
    exact = exact_partitions(counts, product, a).log_evidence
    tree = cluster_hierarchically(counts, product, a)
    for seed in range(3):
        for given in (None, tree):
            found = search_partitions(counts, product, a, tree=given, n_sweeps=30, seed=seed).evidence
            assert found.kind == "lower bound"
            assert found.error == 0.0
            assert found.value <= exact + ROUNDING


@pytest.mark.parametrize("n_rows", [1, 5, 30])
def test_a_long_search_over_few_partitions_meets_them_all(n_rows):
    counts, product = tasks(4, n_rows, seed=1)
    exact = exact_partitions(counts, product, 1.3)
    found = search_partitions(counts, product, 1.3, n_sweeps=400)
    everything = sorted(log_joint(z, counts, product, 1.3) for z in partitions(4))
    near = [value for value in everything if value > everything[-1] - 15]
    assert found.n_partitions >= len(near)
    assert found.evidence.value == pytest.approx(exact.log_evidence, abs=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_is_close_where_tasks_are_distinct(seed):
    counts, product = tasks(9, 30, seed=seed)
    exact = exact_partitions(counts, product, 1.0)
    found = search_partitions(counts, product, 1.0)
    assert found.evidence.value > exact.log_evidence - 0.05
    assert found.partition.tolist() == exact.partition.tolist()
    best = log_joint(tuple(exact.partition.tolist()), counts, product, 1.0)
    assert found.evidence.value >= best - ROUNDING


@pytest.mark.parametrize("n_rows", [1, 4, 20])
def test_with_a_tree_the_bound_is_above_the_tree_s_own(n_rows):
    counts, product = tasks(9, n_rows, seed=5)
    tree = cluster_hierarchically(counts, product, 1.0)
    found = search_partitions(counts, product, 1.0, tree=tree, n_sweeps=20).evidence
    assert tree.log_tree_sum < found.value <= exact_partitions(counts, product, 1.0).log_evidence + ROUNDING


def test_a_tree_s_partitions_are_not_counted_again():
    counts, product = tasks(2, 3, seed=6)
    tree = cluster_hierarchically(counts, product, 1.0)
    found = search_partitions(counts, product, 1.0, tree=tree)
    # Of two tasks, both partitions are the tree's.
    assert found.n_partitions == 0
    assert found.evidence.value == tree.log_tree_sum


def test_without_a_search_only_the_start_s_neighbourhood_counts():
    counts, product = tasks(3, 4, seed=7)
    start = np.array([0, 1, 1])
    found = search_partitions(counts, product, 1.0, starts=[start], n_sweeps=0)
    assert log_joint((0, 1, 1), counts, product, 1.0) < found.evidence.value


def test_splits_lead_out_of_a_start_that_single_moves_cannot_leave():
    # Twenty tasks of either of two opposed kinds, each with a single row: one that leaves the crowd alone loses.
    counts = np.repeat(np.array([[1, 0, 0, 1, 0, 0], [0, 0, 1, 0, 0, 1]], dtype=np.int32), 20, axis=0)
    product = dirichlet_product(np.full(6, 0.5), np.array([0, 3, 6]), 100)
    found = search_partitions(counts, product, 1e-6, starts=[np.zeros(40, dtype=np.int64)], n_sweeps=20)
    assert found.partition.tolist() == [0] * 20 + [1] * 20


def test_fractional_counts_are_bounded_too():
    counts, _ = tasks(6, 5, seed=8)
    weighted = counts * 0.7
    product = dirichlet_product(np.ones(6), np.array([0, 3, 6]), 0)
    exact = exact_partitions(weighted, product, 1.0).log_evidence
    assert exact - 0.1 < search_partitions(weighted, product, 1.0).evidence.value <= exact + ROUNDING


def test_the_same_seed_gives_the_same_bound():
    counts, product = tasks(9, 2, seed=9)
    one, two, other = (search_partitions(counts, product, 1.0, n_sweeps=10, seed=seed).evidence for seed in (0, 0, 1))
    assert one == two
    assert one != other
