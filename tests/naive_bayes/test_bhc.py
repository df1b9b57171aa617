"""Hierarchical clustering sums over the partitions that its tree allows, exactly, and builds the tree greedily."""

from itertools import combinations

import numpy as np
import pytest
from scipy.cluster import hierarchy
from scipy.special import gammaln

from kinfolk import ClusteredNB
from kinfolk.maths.dirichlet import dirichlet_product
from kinfolk.partition.bhc import cluster_hierarchically
from kinfolk.partition.tree import TaskTree
from tests import oracle
from tests.problems import as_arguments, as_rows, priors, random_problems

SHAPES = [
    {"n_tasks": 2, "n_rows": 8},
    {"n_tasks": 3, "n_rows": 10, "n_labels": 3},
    {"n_tasks": 4, "n_rows": 14, "missing": 0.2},
    {"n_tasks": 5, "n_rows": 16, "n_features": 3, "n_values": (2, 3, 4)},
    {"n_tasks": 6, "n_rows": 24, "missing": 0.1},
    {"n_tasks": 4, "n_rows": 80},  # nodes of next to no weight, which predictions leave out
]
PROBLEMS = [problem for i, shape in enumerate(SHAPES) for problem in random_problems(4, seed=100 + i, **shape)]
SMALL = [problem for problem in PROBLEMS if problem.n_tasks <= 5][::2]


def fitted(problem: oracle.Problem, **options: object) -> ClusteredNB:
    given = priors(problem)
    given["feature_prior"] = {f"f{f}": prior for f, prior in enumerate(given["feature_prior"])}
    return ClusteredNB(concentration=problem.concentration, **given, **options).fit(**as_arguments(problem))


def allowed(model: ClusteredNB) -> list[oracle.Partition]:
    return oracle.tree_consistent_partitions(model.tree_.children.tolist(), len(model.tasks_))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_evidence_is_the_sum_over_tree_consistent_partitions_and_never_above_the_truth(problem):
    model = fitted(problem)
    tree_sum = oracle.log_tree_sum(problem, model.tree_.children.tolist())
    assert model.log_evidence_ == pytest.approx(tree_sum, abs=1e-10)
    assert model.log_evidence_ <= oracle.log_evidence(problem) + 1e-10
    assert model.log_evidence_kind_ == ("exact" if problem.n_tasks <= 2 else "lower bound")
    assert model.log_evidence_error_ == 0.0


@pytest.mark.parametrize("problem", PROBLEMS)
def test_similarity_is_that_of_tree_consistent_partitions(problem):
    model = fitted(problem)
    expected = oracle.co_clustering(problem, among=allowed(model))
    np.testing.assert_allclose(model.similarity_, expected, atol=1e-10)
    some = np.array([problem.n_tasks - 1, 0])
    np.testing.assert_allclose(model.similarity(some), expected[np.ix_(some, some)], atol=1e-10)


def test_similarity_of_a_task_asked_twice_is_the_same_twice():
    model = fitted(PROBLEMS[8])
    asked = np.array([1, 1, 0])
    np.testing.assert_allclose(model.similarity(asked), model.similarity_[np.ix_(asked, asked)], atol=1e-12)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_partition_is_the_most_probable_tree_consistent_one(problem):
    model = fitted(problem)
    posterior = oracle.partition_posterior(problem, among=allowed(model))
    assert posterior[tuple(model.partition_)] == pytest.approx(max(posterior.values()), abs=1e-10)


@pytest.mark.parametrize("problem", SMALL)
@pytest.mark.parametrize("predictive", ["full", "averaged"])
def test_predictions_for_known_and_new_tasks_are_those_of_tree_consistent_partitions(problem, predictive):
    model = fitted(problem, predictive=predictive)
    expected_of = oracle.predictive if predictive == "full" else oracle.predictive_paper
    rng = np.random.default_rng(7)
    rows = np.array([[rng.integers(v) for v in problem.n_values] for _ in range(2)])
    rows[0, 0] = -1
    for task in [*range(problem.n_tasks), 99]:
        found = model.predict_proba(as_rows(rows), task=[task] * len(rows))
        known = None if task == 99 else task
        expected = [expected_of(problem, x, known, among=allowed(model)) for x in rows]
        np.testing.assert_allclose(found, expected, atol=1e-10)


def log_marginal(problem: oracle.Problem, tasks: list[int]) -> float:
    """Log p(X | Y) of some tasks as one cluster, by gammaln (thesis eq. A.30, second factor)."""
    mine = np.isin(problem.task, tasks)
    total = 0.0
    for y in range(problem.n_labels):
        for f, prior in enumerate(problem.beta[y]):
            seen = problem.codes[mine & (problem.labels == y), f]
            after = prior + np.bincount(seen[seen >= 0], minlength=len(prior))
            total += gammaln(after).sum() - gammaln(after.sum()) - gammaln(prior).sum() + gammaln(prior.sum())
    return float(total)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_each_merge_joins_the_pair_with_the_highest_log_odds(problem):
    model = fitted(problem)
    # Heller and Ghahramani's own quantities: log d of their eq. 3 and log p(D | T) of their eq. 2, per cluster.
    log_a, n = np.log(problem.concentration), problem.n_tasks
    current = {u: ([u], log_a, log_marginal(problem, [u])) for u in range(n)}

    def joined(i: int, j: int) -> tuple[list[int], float, float, float]:
        (left, log_d_left, log_p_left), (right, log_d_right, log_p_right) = current[i], current[j]
        log_one = log_a + gammaln(len(left) + len(right))
        log_split = log_d_left + log_d_right
        log_d = np.logaddexp(log_one, log_split)
        one = log_one - log_d + log_marginal(problem, left + right)
        split = log_split - log_d + log_p_left + log_p_right
        return left + right, log_d, np.logaddexp(one, split), one - split

    for k, (i, j) in enumerate(model.tree_.children.tolist()):
        odds = {pair: joined(*pair)[3] for pair in combinations(sorted(current), 2)}
        chosen = odds[min(i, j), max(i, j)]
        assert chosen == pytest.approx(max(odds.values()), abs=1e-10)
        assert model.tree_.log_odds[k] == pytest.approx(chosen, abs=1e-10)
        new = joined(i, j)[:3]
        del current[i], current[j]
        current[n + k] = new


def greedy_children(counts: np.ndarray, prior: float, concentration: float) -> tuple[list[list[int]], list[float]]:
    """The greedy tree of tasks under one symmetric group, all pairs scored by gammaln at every merge."""
    values, log_a = counts.shape[1], np.log(concentration)

    def m(n: np.ndarray) -> float:
        after, before = gammaln(prior + n).sum() - gammaln(values * prior + n.sum()), values * gammaln(prior)
        return float(after - before + gammaln(values * prior))

    # By place: a joined cluster takes that of its first part. Node, counts, size and log sum.
    current = {u: (u, counts[u], 1, log_a + m(counts[u])) for u in range(len(counts))}
    scores: dict[tuple[int, int], float] = {}
    children, log_odds = [], []
    while len(current) > 1:
        for i, j in combinations(sorted(current), 2):
            (node1, n1, size1, sum1), (node2, n2, size2, sum2) = current[i], current[j]
            if (node1, node2) not in scores:
                scores[node1, node2] = log_a + gammaln(size1 + size2) + m(n1 + n2) - sum1 - sum2
        odds = {(i, j): scores[current[i][0], current[j][0]] for i, j in combinations(sorted(current), 2)}
        highest = max(odds.values())
        i, j = min(pair for pair, value in odds.items() if value > highest - 1e-9)
        (node1, n1, size1, sum1), (node2, n2, size2, sum2) = current[i], current.pop(j)
        children.append([node1, node2])
        log_odds.append(odds[i, j])
        joined = sum1 + sum2 + np.logaddexp(0, odds[i, j])
        current[i] = (len(counts) + len(children) - 1, n1 + n2, size1 + size2, joined)
    return children, log_odds


@pytest.mark.parametrize("kind", ["whole", "beyond the tables", "fractional"])
@pytest.mark.parametrize("seed", range(3))
def test_a_large_tree_is_greedy_too(seed, kind):
    # Enough tasks that what is remembered of partners goes stale unless every merge refreshes it.
    rng = np.random.default_rng(seed)
    rates = rng.dirichlet(np.full(4, 0.5), size=5)[rng.integers(5, size=50)]
    counts = rng.multinomial(rng.integers(1, 30, size=50), rates).astype(np.int32)
    if kind == "fractional":
        counts = counts * rng.uniform(0.3, 1.5, size=counts.shape)
    largest = {"whole": int(counts.sum()), "beyond the tables": 20, "fractional": 0}[kind]
    tree = cluster_hierarchically(counts, dirichlet_product(np.full(4, 0.5), np.array([0, 4]), largest), 1.5)
    children, log_odds = greedy_children(counts, 0.5, 1.5)
    np.testing.assert_allclose(tree.log_odds, log_odds, atol=1e-8)
    assert tree.children.tolist() == children


def leaves_of(tree: TaskTree) -> list[frozenset[int]]:
    """The tasks under every node, leaves first."""
    under = [frozenset([leaf]) for leaf in range(tree.n_tasks)]
    for left, right in tree.children:
        under.append(under[left] | under[right])
    return under


def test_of_equal_odds_the_pair_that_comes_first_is_joined():
    counts = np.array([[4, 1], [1, 3], [4, 1]], dtype=np.int32)[[0, 1, 1, 2, 0, 1, 2, 0, 1, 0, 2, 1]]
    tree = cluster_hierarchically(counts, dirichlet_product(np.ones(2), np.array([0, 2]), 100), 1.0)
    assert tree.children.tolist() == greedy_children(counts, 1.0, 1.0)[0]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_weights_on_the_path_of_every_task_sum_to_one(problem):
    tree = fitted(problem).tree_
    root = 2 * problem.n_tasks - 2
    for leaf in range(problem.n_tasks):
        path = [node for node, under in enumerate(leaves_of(tree)) if leaf in under]
        assert (path[0], path[-1]) == (leaf, root)
        assert tree.parents[path[:-1]].tolist() == path[1:]
        assert np.exp(tree.log_weights[path]).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_linkage_is_one_that_scipy_can_draw_and_cut(problem):
    tree = fitted(problem).tree_
    linkage = tree.linkage()
    assert hierarchy.is_valid_linkage(linkage)
    assert linkage[-1, 3] == problem.n_tasks
    for left, right, height, _ in linkage:
        below = [linkage[int(part) - problem.n_tasks, 2] for part in (left, right) if part >= problem.n_tasks]
        assert all(height >= lower for lower in below)
    whole = hierarchy.fcluster(linkage, linkage[-1, 2], criterion="distance")
    assert len(set(whole)) == 1


def test_the_linkage_is_the_same_tree_in_the_order_of_heights():
    for problem in random_problems(20, seed=1, n_tasks=12, n_rows=90):
        tree = fitted(problem).tree_
        linkage = tree.linkage()
        assert hierarchy.is_monotonic(linkage)  # cut_tree needs it
        height = {frozenset([u]): 0.0 for u in range(12)}
        under = leaves_of(tree)
        for (left, right), log_odds in zip(tree.children, tree.log_odds, strict=True):
            r = 1 / (1 + np.exp(-log_odds))
            height[under[left] | under[right]] = max(height[under[left]], height[under[right]]) - np.log(r)
        found = [frozenset([u]) for u in range(12)]
        for left, right, distance, size in linkage:
            found.append(found[int(left)] | found[int(right)])
            assert size == len(found[-1])
            assert distance == pytest.approx(height[found[-1]], abs=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_unlabelled_rows_are_left_out_with_a_warning_that_counts_them(seed):
    (problem,) = random_problems(1, seed=seed, n_tasks=4, n_rows=14, unlabelled=0.36)
    with pytest.warns(UserWarning, match="^5 unlabelled rows are left out"):
        model = fitted(problem)
    known = problem.labels >= 0
    # A task whose rows are all unlabelled stays, as one without data.
    labelled = oracle.make_problem(
        problem.codes[known],
        problem.labels[known],
        problem.task[known],
        n_labels=problem.n_labels,
        n_values=problem.n_values,
        n_tasks=problem.n_tasks,
        alpha=problem.alpha,
        beta=problem.beta,
        concentration=problem.concentration,
    )
    among = allowed(model)
    assert model.log_evidence_ == pytest.approx(oracle.log_evidence(labelled, among=among), abs=1e-10)
    np.testing.assert_allclose(model.similarity_, oracle.co_clustering(labelled, among=among), atol=1e-10)
    for i in np.flatnonzero(~known):
        expected = oracle.predictive(labelled, problem.codes[i], problem.task[i], among=among)
        np.testing.assert_allclose(model.label_distributions_[i], expected, atol=1e-10)
    np.testing.assert_array_equal(model.label_distributions_[known], np.eye(problem.n_labels)[problem.labels[known]])


def test_one_task_alone_is_a_tree_of_one_leaf():
    (problem,) = random_problems(1, seed=9, n_tasks=1, n_rows=6)
    model = fitted(problem)
    assert model.log_evidence_ == pytest.approx(oracle.log_evidence(problem), abs=1e-10)
    assert model.tree_.children.shape == (0, 2)
    assert model.tree_.parents.tolist() == [-1]
    assert model.partition_.tolist() == [0]
    np.testing.assert_array_equal(model.similarity_, [[1.0]])


def test_a_prior_per_feature_may_be_a_list_where_features_differ_in_their_number_of_values():
    (problem,) = random_problems(1, seed=3, n_tasks=3, n_rows=10, n_values=(2, 3))
    listed = ClusteredNB(concentration=problem.concentration, **priors(problem)).fit(**as_arguments(problem))
    assert listed.log_evidence_ == pytest.approx(fitted(problem).log_evidence_, abs=1e-12)


def test_odds_far_beyond_the_range_of_probabilities_stay_apart():
    # Ten groups, each with draws all alike: n of them, under a uniform prior of two values, have probability 1/(n + 1).
    first = np.array([[900, 0], [0, 900], [800, 0], [0, 700]], dtype=np.int32)
    product = dirichlet_product(np.ones(20), np.arange(0, 21, 2), 4000)
    tree = cluster_hierarchically(np.tile(first, 10), product, 1.0)
    expected = 10 * np.log([901 * 801 / 1701, 901 * 701 / 1601])
    np.testing.assert_allclose(tree.log_odds[:2], expected, rtol=1e-10)
    assert (1 / (1 + np.exp(-expected)) == 1.0).all()  # where probabilities could no longer choose
    assert tree.children[:2].tolist() == [[0, 2], [1, 3]]
    assert tree.partition().tolist() == [0, 1, 0, 1]
    assert np.isfinite(tree.log_weights).all()
