"""Hierarchical clustering of many tasks: the greedy tree in little memory, and the randomised tree of still more."""

import math
import subprocess
import sys

import numpy as np
import pytest
from joblib import Parallel
from scipy.special import gammaln, logsumexp
from sklearn.metrics import adjusted_rand_score

from kinfolk.maths.dirichlet import DirichletProduct, dirichlet_product, log_marginals
from kinfolk.partition import bhc, randomised_bhc
from kinfolk.partition.bhc import cluster_hierarchically, join_greedily, log_marginals_of_sums
from kinfolk.partition.crp import canonical
from kinfolk.partition.randomised_bhc import cluster_in_random_parts
from kinfolk.partition.tree import TaskTree
from tests import oracle


def greedy_by_matrix(
    counts: np.ndarray, product: DirichletProduct, a: float, sums: np.ndarray | None = None
) -> tuple[list[list[int]], list[float]]:
    """Every merge's children and odds, from the matrix of all odds: argmax finds the first of the highest."""
    n = len(counts)
    counts = counts.astype(np.int64 if counts.dtype.kind in "iu" else float)
    sums = log_marginals(counts, product) + np.log(a) if sums is None else sums.copy()
    size, node, left = np.ones(n, dtype=int), np.arange(n), list(range(n))
    odds = np.full((n, n), -np.inf)

    def compare(i: int, others: list[int]) -> None:
        joined = log_marginals(counts[i] + counts[others], product)
        new = joined + (np.log(a) + gammaln(size[i] + size[others])) - (sums[i] + sums[others])
        odds[np.minimum(i, others), np.maximum(i, others)] = new

    for i in range(n - 1):
        compare(i, left[i + 1 :])
    children, log_odds = [], []
    for k in range(n - 1):
        i, j = divmod(int(odds.argmax()), n)
        children.append([int(node[i]), int(node[j])])
        log_odds.append(float(odds[i, j]))
        sums[i] = (sums[i] + sums[j]) + max(odds[i, j], 0) + math.log1p(math.exp(-abs(odds[i, j])))
        counts[i] += counts[j]
        size[i] += size[j]
        node[i] = n + k
        left.remove(j)
        odds[j], odds[:, j] = -np.inf, -np.inf
        if len(left) > 1:
            compare(i, [k for k in left if k != i])
    return children, log_odds


def random_case(rng: np.random.Generator, n: int, whole: bool = True) -> tuple[np.ndarray, DirichletProduct, float]:
    """Small counts, with equal tasks among them, priors even or not, and tables long, short or none."""
    group_start = np.concatenate([[0], np.cumsum(rng.integers(1, 4, size=rng.integers(4)))])
    n_cells = int(group_start[-1])
    counts = rng.integers(0, rng.integers(2, 7), size=(n, n_cells)).astype(np.int32)
    if rng.random() < 0.5:
        counts = counts[rng.integers(max(n // 3, 1), size=n)]
    prior = rng.uniform(0.3, 2.0, size=n_cells) if rng.random() < 0.5 else np.ones(n_cells)
    reach = int(rng.choice([0, 6, counts.sum()]))
    if not whole:
        counts, reach = counts * rng.uniform(0.2, 1.7, size=counts.shape), 0
    return counts, dirichlet_product(prior, group_start, reach), float(rng.choice([0.1, 1.0, 4.0]))


def by_gammaln(counts: np.ndarray, product: DirichletProduct) -> float:
    """The log marginal as thesis eq. A.30 prints it, group by group."""
    total = 0.0
    for start, end in zip(product.group_start[:-1], product.group_start[1:], strict=True):
        n, prior = counts[start:end], product.prior[start:end]
        total += gammaln(prior + n).sum() - gammaln((prior + n).sum()) - gammaln(prior).sum() + gammaln(prior.sum())
    return float(total)


def assert_valid(tree: TaskTree, counts: np.ndarray, product: DirichletProduct, a: float) -> None:
    """Every node has one parent and follows its parts, and odds and sum are those that the counts imply."""
    n = len(counts)
    assert tree.children.shape == (n - 1, 2)
    assert tree.log_odds.shape == (n - 1,)
    assert sorted(tree.children.ravel().tolist()) == list(range(2 * n - 2))
    assert (tree.children < np.arange(n, 2 * n - 1)[:, None]).all()
    nodes = [(row.astype(float), 1, np.log(a) + by_gammaln(row, product)) for row in counts]
    for (left, right), odds in zip(tree.children, tree.log_odds, strict=True):
        (n1, size1, sum1), (n2, size2, sum2) = nodes[left], nodes[right]
        one = np.log(a) + gammaln(size1 + size2) + by_gammaln(n1 + n2, product)
        assert odds == pytest.approx(one - sum1 - sum2, abs=1e-8)
        nodes.append((n1 + n2, size1 + size2, np.logaddexp(one, sum1 + sum2)))
    assert tree.log_tree_sum == pytest.approx(nodes[-1][2] + gammaln(a) - gammaln(n + a), abs=1e-8)


def clustered(
    rng: np.random.Generator, n: int, n_clusters: int, rows: int
) -> tuple[np.ndarray, DirichletProduct, np.ndarray]:
    """Counts of ten features with four values, of tasks in clusters, and the clusters."""
    rates = rng.dirichlet(np.ones(4), size=(n_clusters, 10))
    cluster = rng.integers(n_clusters, size=n)
    counts = rng.multinomial(rows, rates[cluster]).reshape(n, 40).astype(np.int32)
    return counts, dirichlet_product(np.ones(40), np.arange(0, 41, 4), n * rows), cluster


@pytest.mark.parametrize("whole", [True, False])
def test_merges_and_odds_are_those_of_the_matrix_of_all_odds(whole):
    rng = np.random.default_rng(0 if whole else 1)
    for _ in range(2000 if whole else 200):
        counts, product, a = random_case(rng, int(rng.integers(1, 25)), whole)
        tree = cluster_hierarchically(counts, product, a)
        children, log_odds = greedy_by_matrix(counts, product, a)
        assert tree.children.tolist() == children
        np.testing.assert_allclose(tree.log_odds, log_odds, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_clusters", [1, 5, 300])
def test_merges_of_hundreds_of_tasks_are_those_of_the_matrix_of_all_odds(n_clusters):
    counts, product, _ = clustered(np.random.default_rng(2), 300, n_clusters, rows=6)
    tree = cluster_hierarchically(counts, product, 1.0)
    children, log_odds = greedy_by_matrix(counts, product, 1.0)
    assert tree.children.tolist() == children
    np.testing.assert_allclose(tree.log_odds, log_odds, rtol=1e-12, atol=1e-12)


def test_of_equal_odds_the_pair_that_comes_first_wins():
    # Tasks 1, 3 and 4 are alike and so are 0, 2 and 5, mirrored: under an even prior their pairs have equal odds.
    counts = np.array([[3, 0], [0, 3], [3, 0], [0, 3], [0, 3], [3, 0]], dtype=np.int32)
    tree = cluster_hierarchically(counts, dirichlet_product(np.ones(2), np.array([0, 2]), 18), 1.0)
    assert tree.children.tolist() == [[0, 2], [6, 5], [1, 3], [8, 4], [7, 9]]
    # Without data a pair's odds are minus its sums, at first. 3 joins 4 and then 1 joins 2; both come out with a sum
    # of exactly zero, and the pair of 0 with the first of them is the one that was made last.
    nothing, product = np.empty((5, 0), dtype=np.int32), dirichlet_product(np.empty(0), np.array([0]), 0)
    sums = np.array([-10.0, -400, -400, -450, -450])
    merges = join_greedily(nothing, np.ones(5, dtype=np.int64), sums, product, 1.0)
    assert merges.children.tolist() == [[3, 4], [1, 2], [0, 6], [7, 5]]


def test_merges_with_equal_odds_all_over_are_those_of_the_matrix_of_all_odds():
    rng = np.random.default_rng(8)
    product = dirichlet_product(np.empty(0), np.array([0]), 0)
    for _ in range(600):
        n = int(rng.integers(2, 60))
        sums = rng.choice(rng.choice([-10.0, -400, -450, -500, 3], size=3), size=n)
        nothing = np.empty((n, 0), dtype=np.int32)
        merges = join_greedily(nothing, np.ones(n, dtype=np.int64), sums, product, 1.0)
        assert merges.children.tolist() == greedy_by_matrix(nothing, product, 1.0, sums)[0]


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.float64])
def test_a_tree_from_any_type_of_counts_is_valid_and_the_same(dtype):
    counts, product, _ = clustered(np.random.default_rng(3), 30, 3, rows=100)
    for tree in (
        cluster_hierarchically(counts.astype(dtype), product, 1.0),
        cluster_in_random_parts(counts.astype(dtype), product, 1.0, seed=1, part_size=8),
    ):
        assert_valid(tree, counts, product, 1.0)
        assert tree.partition().max() == 2


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
def test_memory_does_not_grow_with_the_square_of_the_number_of_tasks():
    # All odds of 4,000 tasks would be 128 MB.
    program = """
import numpy as np
from kinfolk.maths.dirichlet import dirichlet_product
from kinfolk.partition.bhc import cluster_hierarchically
def peak():
    with open("/proc/self/status") as status:
        return int(next(line for line in status if line.startswith("VmHWM")).split()[1])
counts = np.random.default_rng(0).integers(5, size=(4000, 2)).astype(np.int32)
product = dirichlet_product(np.ones(2), np.array([0, 2]), int(counts.sum()))
cluster_hierarchically(counts[:50], product, 1.0)
before = peak()
cluster_hierarchically(counts, product, 1.0)
print(peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 32 * 1024  # kilobytes


@pytest.mark.parametrize("part_size", [2, 3, 4, 5])
def test_the_randomised_trees_sum_is_that_over_the_partitions_it_allows_and_a_lower_bound(part_size):
    rng = np.random.default_rng(part_size)
    for seed in range(20):
        counts, product, a = random_case(rng, int(rng.integers(1, 7)), whole=bool(seed % 2))
        tree = cluster_in_random_parts(counts, product, a, seed, part_size=part_size)
        assert_valid(tree, counts, product, a)

        def log_joint(z, counts=counts, product=product, a=a):
            blocks = [counts[np.array(z) == c].sum(axis=0) for c in range(max(z) + 1)]
            return oracle.log_crp(z, a) + sum(by_gammaln(block, product) for block in blocks)

        n = len(counts)
        allowed = logsumexp([log_joint(z) for z in oracle.tree_consistent_partitions(tree.children.tolist(), n)])
        assert tree.log_tree_sum == pytest.approx(allowed, abs=1e-10)
        assert tree.log_tree_sum <= logsumexp([log_joint(z) for z in oracle.partitions(n)]) + 1e-10


@pytest.mark.parametrize("n", [1, 2, 3, 19, 20, 21, 22, 60, 200])
@pytest.mark.parametrize("n_clusters", [1, 4, 200])
def test_randomised_trees_of_all_sizes_are_valid_and_reach_every_merge(n, n_clusters):
    counts, product, _ = clustered(np.random.default_rng(n), n, n_clusters, rows=8)
    steps = []
    tree = cluster_in_random_parts(counts, product, 0.5, seed=7, part_size=20, progress=steps.append)
    assert_valid(tree, counts, product, 0.5)
    assert sum(steps) == n - 1


@pytest.mark.parametrize("n", [1, 2, 3, 19, 20])
def test_tasks_that_fit_into_one_part_get_the_greedy_tree(n):
    counts, product, _ = clustered(np.random.default_rng(n), n, 3, rows=8)
    greedy = cluster_hierarchically(counts, product, 0.5)
    found = cluster_in_random_parts(counts, product, 0.5, seed=0, part_size=20)
    np.testing.assert_array_equal(found.children, greedy.children)
    np.testing.assert_array_equal(found.log_odds, greedy.log_odds)
    assert found.log_tree_sum == greedy.log_tree_sum


def test_the_same_seed_gives_the_same_tree_whatever_the_number_of_threads():
    counts, product, _ = clustered(np.random.default_rng(4), 400, 50, rows=3)
    trees = [
        cluster_in_random_parts(counts, product, 1.0, seed, part_size=40, n_jobs=n_jobs)
        for seed, n_jobs in [(3, 1), (3, 1), (3, 2), (4, 1)]
    ]
    for same in trees[1:3]:
        np.testing.assert_array_equal(same.children, trees[0].children)
        np.testing.assert_array_equal(same.log_odds, trees[0].log_odds)
    assert not np.array_equal(trees[3].children, trees[0].children)


@pytest.mark.parametrize("row", [[0, 0, 0], [5, 1, 0]])
def test_tasks_all_alike_are_dealt_out_and_joined(row):
    # With data they are one cluster; without, all trees only tell of the prior.
    product = dirichlet_product(np.ones(3), np.array([0, 3]), 6 * 2000)
    small = np.tile(np.array(row, dtype=np.int32), (50, 1))
    assert_valid(cluster_in_random_parts(small, product, 1.0, seed=0, part_size=10), small, product, 1.0)
    large = np.tile(np.array(row, dtype=np.int32), (2000, 1))
    tree = cluster_in_random_parts(large, product, 1.0, seed=0, part_size=100)
    assert sorted(tree.children.ravel().tolist()) == list(range(2 * 2000 - 2))
    if any(row):
        assert tree.partition().max() == 0
    else:
        assert tree.log_tree_sum <= 1e-9  # a probability: there is nothing to see


@pytest.mark.parametrize("n_clusters", [1, 2, 10, 500])
def test_no_part_is_larger_than_asked(n_clusters, monkeypatch):
    sizes = []

    def spy(counts, *rest):
        sizes.append(len(counts))
        return join_greedily(counts, *rest)

    monkeypatch.setattr(randomised_bhc, "join_greedily", spy)
    counts, product, _ = clustered(np.random.default_rng(9), 500, n_clusters, rows=10)
    cluster_in_random_parts(counts, product, 1.0, seed=0, part_size=30)
    assert max(sizes) == 30


def test_clusters_arrive_at_the_block_that_they_would_most_probably_join():
    rng = np.random.default_rng(10)
    counts, product, _ = clustered(rng, 60, 5, rows=2)
    sizes = rng.integers(1, 4, size=60)
    blocks, block_sizes = counts[:6].copy(), np.array([1, 2, 40, 3, 5, 1])
    clusters = randomised_bhc._Clusters(counts, sizes, np.zeros(60), np.arange(60))
    among = np.arange(6, 60)
    setting = randomised_bhc._Setting(product, 1.0, 10, Parallel(n_jobs=1))
    found = randomised_bhc._filter(clusters, among, blocks, block_sizes, setting)
    for u, arrives in zip(among, found, strict=True):
        log_weight = [
            gammaln(n + sizes[u]) - gammaln(n) + by_gammaln(block + counts[u], product) - by_gammaln(block, product)
            for block, n in zip(blocks, block_sizes, strict=True)
        ]
        assert arrives == np.argmax(log_weight)
    assert len(set(found)) > 3


def test_clusters_that_are_hard_to_tell_apart_are_found_as_by_the_greedy_tree():
    counts, product, _ = clustered(np.random.default_rng(5), 1500, 30, rows=5)
    greedy = cluster_hierarchically(counts, product, 1.0)
    for seed in range(2):
        tree = cluster_in_random_parts(counts, product, 1.0, seed, part_size=150)
        assert tree.log_tree_sum > greedy.log_tree_sum - 2.0


def test_clusters_much_larger_than_a_part_are_found_whole():
    counts, product, cluster = clustered(np.random.default_rng(5), 1500, 6, rows=15)
    tree = cluster_in_random_parts(counts, product, 1.0, seed=0, part_size=60)
    np.testing.assert_array_equal(tree.partition(), canonical(cluster))
    assert tree.log_tree_sum == pytest.approx(cluster_hierarchically(counts, product, 1.0).log_tree_sum, abs=1e-6)


def test_clusters_more_than_a_part_can_hold_are_found_nearly_as_by_the_greedy_tree():
    counts, product, cluster = clustered(np.random.default_rng(6), 800, 160, rows=30)
    tree = cluster_in_random_parts(counts, product, 1.0, seed=0, part_size=80)
    greedy = cluster_hierarchically(counts, product, 1.0)
    assert adjusted_rand_score(cluster, tree.partition()) > adjusted_rand_score(cluster, greedy.partition()) - 0.02


def test_a_part_without_room_for_two_is_refused():
    counts, product, _ = clustered(np.random.default_rng(7), 5, 2, rows=3)
    with pytest.raises(ValueError, match="part_size=1: a part needs room for at least two clusters"):
        cluster_in_random_parts(counts, product, 1.0, seed=0, part_size=1)


@pytest.mark.parametrize("whole", [True, False])
def test_terms_without_counts_are_passed_over_where_terms_are_many(whole, monkeypatch):
    """A category for each of 900 students, of whom a teacher meets twenty: most cells of two tasks are empty."""
    rng = np.random.default_rng(5)
    counts = np.zeros((40, 1800), dtype=np.int32)
    for u in range(40):
        students = rng.choice(300, 20, replace=False) + 300 * (u % 3)
        np.add.at(counts[u], students + 900 * rng.integers(2, size=20), 1)
    counts = counts if whole else counts * 0.5
    # Pseudo-counts that differ, so that no two pairs have the same odds.
    product = dirichlet_product(rng.uniform(0.2, 0.5, 1800), np.array([0, 900, 1800]), 800 if whole else 0)
    together = log_marginals_of_sums(counts[:7], counts, product)
    for i in range(7):
        np.testing.assert_allclose(together[i], log_marginals(counts[i] + counts, product), rtol=1e-11)
    tree = cluster_hierarchically(counts, product, 1.0)
    monkeypatch.setattr(bhc, "_MANY_TERMS", 10**9)
    plain = cluster_hierarchically(counts, product, 1.0)
    np.testing.assert_array_equal(tree.children, plain.children)
    np.testing.assert_allclose(tree.log_odds, plain.log_odds, rtol=1e-9, atol=1e-9)
    assert tree.log_tree_sum == pytest.approx(plain.log_tree_sum, rel=1e-12)
