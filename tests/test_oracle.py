"""The oracle itself, held to counting arguments, closed forms, sums to one and scikit-learn."""

from dataclasses import replace
from math import exp, lgamma, log

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from sklearn.naive_bayes import CategoricalNB

from tests import oracle
from tests.oracle import make_problem, random_problem

SEEDS = range(6)
FIGURE_2 = [(0, 1), (3, 4), (2, 6), (5, 7)]  # nodes 6, 7, 8 and 9 of the figure, whose leaves count from 1


def problems(**shape):
    return [random_problem(np.random.default_rng(seed), **shape) for seed in SEEDS]


def log_block(problem, tasks, labels):
    """log p(X | Y) of tasks that form one cluster, by counts and the Gamma function."""
    total = 0.0
    for y in range(problem.n_labels):
        for f, size in enumerate(problem.n_values):
            rows = np.isin(problem.task, tasks) & (labels == y) & (problem.codes[:, f] >= 0)
            n = np.bincount(problem.codes[rows, f], weights=problem.weights[rows], minlength=size)
            b = problem.beta[y][f]
            total += np.sum(gammaln(b + n) - gammaln(b)) + gammaln(b.sum()) - gammaln(b.sum() + n.sum())
    return float(total)


def log_own_labels(problem, labels):
    """log p(Y) with one label distribution per task, by counts and the Gamma function."""
    total = 0.0
    for u in range(problem.n_tasks):
        rows = problem.task == u
        m = np.bincount(labels[rows], weights=problem.weights[rows], minlength=problem.n_labels)
        a = problem.alpha
        total += np.sum(gammaln(a + m) - gammaln(a)) + gammaln(a.sum()) - gammaln(a.sum() + m.sum())
    return float(total)


def value_probabilities(problem, x, tasks):
    """p(x | y, data of a cluster) for each y: counts plus prior over their total, feature by feature."""
    result = np.ones(problem.n_labels)
    for y in range(problem.n_labels):
        for f, value in enumerate(x):
            rows = np.isin(problem.task, tasks) & (problem.labels == y)
            column = problem.codes[rows, f]
            seen, present = np.sum(column == value), np.sum(column >= 0)
            if value >= 0:
                result[y] *= (seen + problem.beta[y][f][value]) / (present + problem.beta[y][f].sum())
    return result


def label_probabilities(problem, task):
    m = np.bincount(problem.labels[problem.task == task], minlength=problem.n_labels)
    return (m + problem.alpha) / (m.sum() + problem.alpha.sum())


def test_partitions_are_counted_by_the_bell_numbers():
    for n, bell in enumerate([1, 1, 2, 5, 15, 52, 203]):
        found = oracle.partitions(n)
        assert len(found) == len(set(found)) == bell


def test_partitions_number_clusters_in_order_of_appearance():
    assert oracle.partitions(3) == [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2)]


@pytest.mark.parametrize("a", [0.2, 1.0, 3.7])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_crp_probabilities_sum_to_one(n, a):
    assert logsumexp([oracle.log_crp(z, a) for z in oracle.partitions(n)]) == pytest.approx(0, abs=1e-12)


def test_crp_is_the_exchangeable_partition_probability():
    for z in oracle.partitions(5):
        sizes = np.bincount(z)
        closed = len(sizes) * log(0.7) + sum(lgamma(s) for s in sizes) + lgamma(0.7) - lgamma(5.7)
        assert oracle.log_crp(z, 0.7) == pytest.approx(closed, abs=1e-12)


@pytest.mark.parametrize("model", oracle.MODELS)
@pytest.mark.parametrize(
    ("codes", "labels", "task"),
    [
        pytest.param([[0], [0], [0], [0]], [0, 0, 0, 0], [0, 0, 1, 1], id="labelled"),
        pytest.param([[0, -1], [-1, 0], [0, 0]], [0, 0, 0], [0, 1, 1], id="missing"),
        pytest.param([[0], [0], [0], [0]], [0, -1, 0, -1], [0, 0, 1, 1], id="unlabelled"),
        pytest.param([[0, 0], [0, -1], [0, 0]], [0, -1, -1], [0, 2, 0], id="both, and an empty task"),
    ],
)
def test_evidence_over_all_data_sets_sums_to_one(model, codes, labels, task):
    rng = np.random.default_rng(1)
    n_values = (2, 3)[: len(codes[0])]
    template = make_problem(
        codes,
        labels,
        task,
        n_labels=2,
        n_values=n_values,
        alpha=rng.uniform(0.3, 2, size=2),
        beta=[[rng.uniform(0.3, 2, size=v) for v in n_values] for _ in range(2)],
        concentration=0.8,
    )
    evidences = [oracle.log_evidence(data, model) for data in oracle.all_data_sets(template)]
    present, known = np.argwhere(template.codes >= 0), np.sum(template.labels >= 0)
    assert len(evidences) == np.prod([n_values[f] for _, f in present]) * 2**known
    assert logsumexp(evidences) == pytest.approx(0, abs=1e-10)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_sequential_joint_equals_the_gamma_function_closed_form(missing):
    for problem in problems(n_tasks=4, n_rows=12, n_labels=3, missing=missing):
        for z in oracle.partitions(4):
            blocks = [np.flatnonzero(np.equal(z, c)) for c in set(z)]
            closed = oracle.log_crp(z, problem.concentration) + log_own_labels(problem, problem.labels)
            closed += sum(log_block(problem, block, problem.labels) for block in blocks)
            assert oracle.log_joint(problem, z, problem.labels) == pytest.approx(closed, abs=1e-10)


def test_joint_does_not_depend_on_the_order_of_rows():
    for problem in problems(n_tasks=3, missing=0.2):
        order = np.random.default_rng(0).permutation(len(problem.labels))
        shuffled = replace(problem, codes=problem.codes[order], labels=problem.labels[order], task=problem.task[order])
        expected = oracle.log_joint(problem, (0, 1, 0), problem.labels)
        assert oracle.log_joint(shuffled, (0, 1, 0), shuffled.labels) == pytest.approx(expected, abs=1e-10)


def test_joint_refuses_a_row_without_a_label():
    problem = make_problem([[0], [1]], [0, -1], [0, 0], n_labels=2, n_values=[2])
    with pytest.raises(ValueError, match="Row 1 has no label"):
        oracle.log_joint(problem, (0,), problem.labels)


def test_a_row_of_weight_two_counts_as_two_rows():
    for problem in problems(n_tasks=3, missing=0.2):
        weights = np.where(np.arange(9) < 4, 2.0, 1.0)
        twice = np.repeat(np.arange(9), weights.astype(int))
        repeated = replace(
            problem,
            codes=problem.codes[twice],
            labels=problem.labels[twice],
            task=problem.task[twice],
            weights=np.ones(13),
        )
        for model in oracle.MODELS:
            weighted = oracle.log_evidence(replace(problem, weights=weights), model)
            assert weighted == pytest.approx(oracle.log_evidence(repeated, model), abs=1e-10)


def test_a_row_of_weight_one_half_counts_one_half():
    # One label: phi is certain. One value seen half a time: B(3/2, 1) / B(1, 1) = 2/3.
    problem = make_problem([[0]], [0], [0], n_labels=1, n_values=[2], weights=[0.5])
    assert exp(oracle.log_evidence(problem)) == pytest.approx(2 / 3)


def test_evidence_of_a_tiny_clustered_problem_by_hand():
    # Two tasks, each one row with value 0, one label: apart 1/2 * 1/2, together 1/2 * 2/3, at even chances.
    problem = make_problem([[0], [0]], [0, 0], [0, 1], n_labels=1, n_values=[2])
    assert exp(oracle.log_evidence(problem)) == pytest.approx(7 / 24)
    assert oracle.partition_posterior(problem) == pytest.approx({(0, 0): 4 / 7, (0, 1): 3 / 7})
    assert oracle.map_partition(problem) == (0, 0)


def test_evidence_of_fixed_partitions_by_hand():
    # Labels 0, 0 of two tasks: own frequencies 1/2 * 1/2, pooled 1/2 * 2/3; the value as above.
    problem = make_problem([[0], [0]], [0, 0], [0, 1], n_labels=2, n_values=[2])
    assert exp(oracle.log_evidence_no_sharing(problem)) == pytest.approx(1 / 4 * 1 / 4)
    assert exp(oracle.log_evidence_complete(problem, share_labels=False)) == pytest.approx(1 / 4 * 1 / 3)
    assert exp(oracle.log_evidence_complete(problem, share_labels=True)) == pytest.approx(1 / 3 * 1 / 3)


def test_evidence_with_an_unlabelled_row_adds_up_the_evidences_of_its_labels():
    for problem in problems(n_tasks=3, n_labels=3, unlabelled=1 / 9):
        row = np.flatnonzero(problem.labels < 0)[0]
        total = 0.0
        for y in range(3):
            labels = np.where(np.arange(9) == row, y, problem.labels)
            total += exp(oracle.log_evidence(replace(problem, labels=labels)))
        assert exp(oracle.log_evidence(problem)) == pytest.approx(total, rel=1e-10)


def test_tree_consistent_partitions_are_the_seven_of_figure_2():
    listed = {
        (0, 0, 0, 0, 0),  # [12345]
        (0, 0, 1, 1, 1),  # [12][345]
        (0, 0, 1, 2, 2),  # [12][3][45]
        (0, 0, 1, 2, 3),  # [12][3][4][5]
        (0, 1, 2, 2, 2),  # [1][2][345]
        (0, 1, 2, 3, 3),  # [1][2][3][45]
        (0, 1, 2, 3, 4),  # [1][2][3][4][5]
    }
    found = oracle.tree_consistent_partitions(FIGURE_2, 5)
    assert len(found) == 7
    assert set(found) == listed
    assert (0, 0, 0, 1, 1) not in found  # [123][45]


def test_tree_consistent_partitions_are_canonical_whatever_the_order_of_children():
    crossed = oracle.tree_consistent_partitions([(2, 1), (3, 0)], 3)
    assert crossed == [(0, 0, 0), (0, 1, 1), (0, 1, 2)]


def test_tree_must_hold_every_leaf():
    with pytest.raises(ValueError, match=r"holds the leaves \[0, 1\], and must hold all 3"):
        oracle.tree_consistent_partitions([(0, 1)], 3)


def test_tree_sum_equals_the_recursion_over_nodes_and_bounds_the_evidence():
    # (2) of the IJCAI-07 paper with its prior d_k, times d_root Gamma(a) / Gamma(U + a).
    for problem in problems(n_tasks=5, n_rows=12):
        a = problem.concentration
        nodes = [([u], log(a), log_block(problem, [u], problem.labels)) for u in range(5)]
        for left, right in FIGURE_2:
            (tasks_l, d_l, p_l), (tasks_r, d_r, p_r) = nodes[left], nodes[right]
            tasks = tasks_l + tasks_r
            together, d_apart = log(a) + lgamma(len(tasks)), d_l + d_r
            d = np.logaddexp(together, d_apart)
            merged = together - d + log_block(problem, tasks, problem.labels)
            nodes.append((tasks, d, np.logaddexp(merged, d_apart - d + p_l + p_r)))
        _, d, p = nodes[-1]
        recursion = d + lgamma(a) - lgamma(5 + a) + p + log_own_labels(problem, problem.labels)
        assert oracle.log_tree_sum(problem, FIGURE_2) == pytest.approx(recursion, abs=1e-10)
        assert recursion < oracle.log_evidence(problem)


def test_co_clustering_of_two_tasks_equals_the_closed_form():
    for problem in problems(n_tasks=2, n_rows=8, missing=0.2):
        apart = log_block(problem, [0], problem.labels) + log_block(problem, [1], problem.labels)
        odds = exp(log_block(problem, [0, 1], problem.labels) - apart) / problem.concentration
        p = odds / (1 + odds)
        assert oracle.co_clustering(problem) == pytest.approx(np.array([[1, p], [p, 1]]), abs=1e-10)


def test_co_clustering_of_two_tasks_weighs_every_labelling():
    for problem in problems(n_tasks=2, n_rows=8, unlabelled=0.25):
        together = apart = 0.0
        for labels in oracle.labellings(problem):
            p_labels = log_own_labels(problem, labels)
            alone = log_block(problem, [0], labels) + log_block(problem, [1], labels)
            together += exp(p_labels + log_block(problem, [0, 1], labels))
            apart += problem.concentration * exp(p_labels + alone)
        shared = oracle.co_clustering(problem)[0, 1]
        assert shared == pytest.approx(together / (together + apart), abs=1e-10)


def test_labellings_fill_in_every_combination_of_unknown_labels():
    problem = make_problem([[0]] * 3, [-1, 1, -1], [0, 0, 0], n_labels=2, n_values=[2])
    assert oracle.labellings(problem).tolist() == [[0, 1, 0], [0, 1, 1], [1, 1, 0], [1, 1, 1]]


def test_co_clustering_is_symmetric_with_a_unit_diagonal():
    for problem in problems(n_tasks=4, unlabelled=0.3, missing=0.2):
        shared = oracle.co_clustering(problem)
        assert np.diag(shared) == pytest.approx(np.ones(4))
        assert shared == pytest.approx(shared.T)
        assert np.all((shared > 0) & (shared < 1 + 1e-12))


def test_tasks_without_rows_share_as_the_crp_says():
    problem = make_problem(np.zeros((0, 1)), [], [], n_labels=2, n_values=[2], n_tasks=3, concentration=0.5)
    assert oracle.co_clustering(problem)[0, 2] == pytest.approx(1 / 1.5)
    assert oracle.log_evidence(problem) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("model", oracle.MODELS)
def test_label_marginals_sum_to_one_and_are_certain_where_the_label_is_known(model):
    for problem in problems(n_tasks=3, n_labels=3, unlabelled=0.3, missing=0.2):
        marginals = oracle.label_marginals(problem, model)
        known = problem.labels >= 0
        assert marginals.sum(axis=1) == pytest.approx(np.ones(9))
        assert marginals[known] == pytest.approx(np.eye(3)[problem.labels[known]])
        assert np.all(marginals[~known] < 1)


def test_label_marginal_by_hand():
    # Label 0: 2/3 * 2/3, label 1: 1/3 * 1/2.
    problem = make_problem([[0], [0]], [0, -1], [0, 0], n_labels=2, n_values=[2])
    assert oracle.label_marginals(problem)[1] == pytest.approx([8 / 11, 3 / 11])


@pytest.mark.parametrize("model", oracle.MODELS)
def test_label_marginal_of_a_lone_unlabelled_row_is_its_predictive(model):
    for problem in problems(n_tasks=3, unlabelled=1 / 9, missing=0.2):
        row = int(np.flatnonzero(problem.labels < 0)[0])
        rest = np.arange(9) != row
        known = replace(
            problem,
            codes=problem.codes[rest],
            labels=problem.labels[rest],
            task=problem.task[rest],
            weights=problem.weights[rest],
        )
        expected = oracle.predictive(known, problem.codes[row], int(problem.task[row]), model=model)
        assert oracle.label_marginals(problem, model)[row] == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_both_predictives_of_two_tasks_equal_their_mixtures_of_two_naive_bayes(missing):
    x = [1, 2] if missing == 0 else [1, -1]
    for problem in problems(n_tasks=2, n_labels=3, missing=missing):
        shared = oracle.co_clustering(problem)[0, 1]
        for task in (0, 1):
            prior = label_probabilities(problem, task)
            together = prior * value_probabilities(problem, x, [0, 1])
            alone = prior * value_probabilities(problem, x, [task])
            exact = shared * together + (1 - shared) * alone
            printed = shared * together / together.sum() + (1 - shared) * alone / alone.sum()
            assert oracle.predictive(problem, x, task) == pytest.approx(exact / exact.sum(), abs=1e-10)
            assert oracle.predictive_paper(problem, x, task) == pytest.approx(printed, abs=1e-10)


def test_a_new_task_joins_the_only_task_with_chance_one_over_one_plus_concentration():
    x = [1, 2]
    for problem in problems(n_tasks=1, n_labels=3):
        a = problem.concentration
        prior = problem.alpha / problem.alpha.sum()
        joined = prior * value_probabilities(problem, x, [0])
        empty = prior * value_probabilities(problem, x, [])
        exact = (joined + a * empty) / (1 + a)
        printed = (joined / joined.sum() + a * empty / empty.sum()) / (1 + a)
        for task in (None, 1):
            assert oracle.predictive(problem, x, task) == pytest.approx(exact / exact.sum(), abs=1e-10)
            assert oracle.predictive_paper(problem, x, task) == pytest.approx(printed, abs=1e-10)


def test_a_new_task_under_no_sharing_has_the_prior_alone():
    for problem in problems(n_tasks=2):
        expected = problem.alpha * value_probabilities(problem, [1, 2], [])
        found = oracle.predictive(problem, [1, 2], None, model="none")
        assert found == pytest.approx(expected / expected.sum(), abs=1e-10)


@pytest.mark.parametrize("task", [0, None])
def test_predictives_over_a_tree_of_all_partitions_are_the_exact_ones(task):
    # With two tasks every partition is consistent with the one tree.
    for problem in problems(n_tasks=2, unlabelled=0.2):
        tree = oracle.tree_consistent_partitions([(0, 1)], 2)
        for predict in (oracle.predictive, oracle.predictive_paper):
            assert predict(problem, [0, 1], task, among=tree) == pytest.approx(predict(problem, [0, 1], task))


def test_a_single_partition_leaves_nothing_to_learn_about_it_from_x():
    for problem in problems(n_tasks=3):
        exact = oracle.predictive(problem, [0, 1], 1, among=[(0, 1, 1)])
        pooled = label_probabilities(problem, 1) * value_probabilities(problem, [0, 1], [1, 2])
        assert exact == pytest.approx(pooled / pooled.sum(), abs=1e-10)
        assert oracle.predictive_paper(problem, [0, 1], 1, among=[(0, 1, 1)]) == pytest.approx(exact)


def test_complete_sharing_predicts_as_scikit_learn_on_pooled_rows():
    for problem in problems(n_tasks=3, n_rows=15, symmetric=True):
        m = np.bincount(problem.labels, minlength=2)
        assert np.all(m > 0)  # scikit-learn knows only labels it has seen
        peer = CategoricalNB(
            alpha=problem.beta[0][0][0],
            class_prior=(m + problem.alpha) / (15 + problem.alpha.sum()),
            min_categories=list(problem.n_values),
        ).fit(problem.codes, problem.labels)
        for x in ([0, 2], [1, 1], [2, 0]):
            for task in (0, 2, None):
                found = oracle.predictive(problem, x, task, model="complete")
                assert found == pytest.approx(peer.predict_proba([x])[0], abs=1e-10)


def test_random_problems_have_the_shape_asked_for():
    problem = random_problem(
        np.random.default_rng(0),
        n_tasks=5,
        n_rows=40,
        n_labels=3,
        n_values=[2, 4, 3],
        unlabelled=0.1,
        missing=0.5,
        concentration=2.5,
    )
    assert problem.codes.shape == (40, 3)
    assert np.sum(problem.labels < 0) == 4
    assert 0.3 < np.mean(problem.codes < 0) < 0.7
    assert problem.n_values == (2, 4, 3)
    assert (problem.n_tasks, problem.concentration) == (5, 2.5)


def test_some_random_problems_have_kin_and_some_have_strangers():
    draws = [random_problem(np.random.default_rng(s), n_tasks=2, n_rows=60) for s in range(20)]
    shared = [oracle.co_clustering(problem)[0, 1] for problem in draws]
    assert max(shared) > 0.9
    assert min(shared) < 0.01


@pytest.mark.parametrize(
    "wrong",
    [
        {"codes": [[2]]},
        {"codes": [[-2]]},
        {"labels": [2]},
        {"task": [3]},
        {"beta": [[np.ones(2)], [np.ones(3)]]},
        {"weights": [1.0, 1.0]},
    ],
)
def test_a_problem_that_does_not_fit_its_shape_is_refused(wrong):
    right = {"codes": [[0]], "labels": [0], "task": [0], "n_labels": 2, "n_values": [2], "n_tasks": 2}
    with pytest.raises(ValueError, match="must fit n_labels"):
        make_problem(**{**right, **wrong})


def test_an_unlabelled_row_takes_no_weight():
    with pytest.raises(ValueError, match="must have weight 1"):
        make_problem([[0]], [-1], [0], n_labels=2, n_values=[2], weights=[2.0])


def test_a_model_that_is_not_known_or_has_no_partitions_to_choose_is_refused():
    problem = make_problem([[0]], [0], [0], n_labels=2, n_values=[2])
    with pytest.raises(ValueError, match="The model is 'pooled'"):
        oracle.log_evidence(problem, "pooled")
    with pytest.raises(ValueError, match="Only the clustered model"):
        oracle.log_evidence(problem, "none", among=[(0,)])
