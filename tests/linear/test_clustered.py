"""Clusters of tasks with the same weights: evidence and partitions against enumeration and integration."""

import numpy as np
import pytest

import kinfolk
from kinfolk import ClusteredClassifier
from kinfolk.linear.inference import clustered, hierarchical
from kinfolk.linear.inference.clustered import Sampling, _averaged, _chain
from kinfolk.linear.model.clusters import Base, log_evidence, posterior_of_clusters, without_intercepts
from kinfolk.linear.model.logistic import average_rate
from kinfolk.linear.model.rows import lay_out_rows
from kinfolk.linear.model.values import Groups
from kinfolk.partition.crp import log_prior
from tests.linear.oracle import sum_over_clusters
from tests.saved_models import ASKED, ASKED_TASK, LABEL, TASK, X

SHORT = {"n_burn_in": 3, "n_draws": 5, "random_state": 0, "new_tasks": "expected"}


def some_sites(n_tasks, n_labels, n_columns, rng, variance=0.3):
    rows = rng.normal(size=(n_tasks, n_labels, 4, n_columns))
    precision = rows.swapaxes(-1, -2) @ rows
    shift = 3.0 * rng.normal(size=(n_tasks, n_labels, n_columns))
    return precision, shift, np.full(n_labels, variance)


def all_partitions(n):
    """Every partition of n tasks, as restricted growth strings."""
    if n == 1:
        return [[0]]
    return [[*rest, k] for rest in all_partitions(n - 1) for k in range(max(rest) + 2)]


def test_evidence_with_own_intercepts_is_that_of_one_large_gaussian():
    rng = np.random.default_rng(0)
    precision, shift, variance = some_sites(3, 1, 2, rng)
    base = Base(rng.normal(size=(1, 2)), np.array([[0.7, 1.4]]))
    sites = without_intercepts(precision, shift, variance)
    found = log_evidence(sites.precision.sum(axis=0), sites.shift.sum(axis=0), base)
    # Unknowns: the cluster's two weights, and three own intercepts.
    prior = np.concatenate([base.scale[0] ** -2.0, np.full(3, 1.0 / variance[0])])
    P, h = np.diag(prior), np.concatenate([base.mean[0] * prior[:2], np.zeros(3)])
    start = 0.5 * (np.log(prior).sum() - (base.mean[0] ** 2 * prior[:2]).sum())
    for t in range(3):
        read = np.zeros((2, 5))
        read[:, :2], read[0, 2 + t] = np.eye(2), 1.0
        P, h = P + read.T @ precision[t, 0] @ read, h + read.T @ shift[t, 0]
    whole = start + 0.5 * (h @ np.linalg.solve(P, h) - np.linalg.slogdet(P)[1])
    # What integrating the intercepts leaves beside the sites does not depend on the partition.
    p = 1.0 / variance[0] + precision[:, 0, 0, 0]
    beside = 0.5 * (shift[:, 0, 0] ** 2 / p - np.log(p * variance[0])).sum()
    assert float(found) + beside == pytest.approx(whole)
    # Means and covariances of the tasks' weights, the own intercept included.
    covariance = np.linalg.inv(P)
    mean = covariance @ h
    one = np.zeros((1, 3), dtype=int), np.array([1.0])
    first, second, *_ = _averaged(sites, base, *one, variance)
    for t in range(3):
        read = np.zeros((2, 5))
        read[:, :2], read[0, 2 + t] = np.eye(2), 1.0
        assert first[t, 0] == pytest.approx(read @ mean)
        assert second[t, 0] == pytest.approx(read @ covariance @ read.T)


def test_partitions_are_drawn_as_enumeration_has_them():
    rng = np.random.default_rng(1)
    precision, shift, variance = some_sites(4, 2, 2, rng)
    sites = without_intercepts(0.5 * precision, 0.5 * shift, variance)
    base, concentration = Base(np.zeros((2, 2)), np.full((2, 2), 0.8)), 0.7
    log_joint, together = [], []
    for partition in map(np.array, all_partitions(4)):
        total = log_prior(partition, concentration)
        for k in range(partition.max() + 1):
            its = partition == k
            total += float(log_evidence(sites.precision[its].sum(axis=0), sites.shift[its].sum(axis=0), base))
        log_joint.append(total)
        together.append(partition[:, None] == partition)
    chance = np.exp(np.array(log_joint) - max(log_joint))
    exact = np.tensordot(chance / chance.sum(), np.array(together, dtype=float), axes=1)
    sampling = Sampling(1, 50, 1_500, concentration)
    seats = _chain(sites, base, sampling, 0).partitions
    found = (seats[:, :, None] == seats[:, None, :]).mean(axis=0)
    assert np.ptp(exact[np.triu_indices(4, 1)]) > 0.2
    assert found == pytest.approx(exact, abs=0.06)


def test_a_new_task_joins_clusters_by_their_sizes():
    rng = np.random.default_rng(2)
    precision, shift, variance = some_sites(3, 1, 2, rng)
    sites = without_intercepts(precision, shift, variance)
    base = Base(np.array([[0.5, -0.5]]), np.ones((1, 2)))
    partition, a = np.array([[0, 0, 1]]), 2.0
    _, _, new_mean, new_covariance, _ = _averaged(sites, base, partition, np.array([a]), variance)
    sums = [(sites.precision[its].sum(axis=0), sites.shift[its].sum(axis=0)) for its in ([0, 1], [2])]
    parts = [posterior_of_clusters(*of_cluster, base) for of_cluster in sums]
    means = [parts[0][0][0], parts[1][0][0], base.mean[0]]
    spreads = [parts[0][1][0], parts[1][1][0], np.eye(2)]
    weights = np.array([2.0, 1.0, a]) / (3.0 + a)
    mean = weights @ np.array(means)
    second = sum(w * (c + np.outer(m, m)) for w, m, c in zip(weights, means, spreads, strict=True))
    assert new_mean[0] == pytest.approx(mean)
    assert new_covariance[0] == pytest.approx(second - np.outer(mean, mean) + np.diag([variance[0], 0.0]))


@pytest.mark.parametrize(("seed", "n_rows"), [(3, 6), (2, 6), (0, 25)])
def test_kin_and_probabilities_are_those_of_sums_over_all_partitions_and_weights(seed, n_rows):
    rng, n_tasks = np.random.default_rng(seed), 5
    x, task = rng.normal(size=(n_tasks * n_rows, 1)), np.repeat(np.arange(n_tasks), n_rows)
    slope = np.array([2.0, 2.0, 2.0, -2.0, -2.0])
    y = (slope[task] * x[:, 0] + rng.logistic(size=len(x)) > 0).astype(float)
    rows = lay_out_rows(x, y, None, task, n_tasks, np.array([0, 1]))
    hyper, fitted = hierarchical.infer(rows)
    base, _ = clustered._base([hyper], [fitted], Groups(np.array([0, 1])), False)
    # A first look, which is short, decides where sites are taken: several runs, so that none of them does.
    sampling = Sampling(1, 50, 300, 1.0, False)
    runs = [clustered.infer([rows], [hyper], [fitted], sampling, own) for own in range(6)]
    asked, every = np.column_stack([np.ones(20), rng.normal(size=20)]), [np.array(p) for p in all_partitions(n_tasks)]
    table, priors = np.column_stack([np.ones(len(x)), x]), [log_prior(p, 1.0) for p in every]
    kin, answers = sum_over_clusters(table, y, task, every, priors, base.mean[0], base.scale[0], asked)
    seats = np.concatenate([found.draws.seats for found in runs])
    assert (seats[:, :, None] == seats[:, None, :]).mean(axis=0) == pytest.approx(kin, abs=0.09)
    for t in range(n_tasks):
        place = np.full(20, t)
        rates = [average_rate(*found.weights[0].linear_predictors(asked, place)) for found in runs]
        rate = np.mean(rates, axis=0)
        assert rate == pytest.approx(answers[t], abs=0.05)


def opposite_tasks(rng, n_tasks=8, n_rows=40):
    x, task = rng.normal(size=(n_tasks * n_rows, 2)), np.repeat(np.arange(n_tasks), n_rows)
    slope = np.where(np.arange(n_tasks) < n_tasks // 2, 2.5, -2.5)
    return x, (slope[task] * x[:, 0] + rng.logistic(size=len(x)) > 0).astype(int), task


def test_kinds_of_tasks_are_found_and_a_task_of_few_rows_is_predicted_by_its_kin():
    rng = np.random.default_rng(0)
    x, y, task = opposite_tasks(rng)
    kept = (task < 7) | (np.arange(len(task)) >= len(task) - 6)  # of the last task, six rows
    model = ClusteredClassifier(n_draws=300, random_state=0).fit(x[kept], y[kept], task=task[kept])
    assert model.partition_.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]
    similarity = model.similarity_
    assert np.diag(similarity).tolist() == [1.0] * 8
    assert similarity == pytest.approx(similarity.T)
    assert similarity[0, 1] > 0.5
    assert similarity[0, 7] < 0.1
    assert model.similarity([7, 0]).tolist() == similarity[np.ix_([7, 0], [7, 0])].tolist()
    assert model.predict_proba([[-1.5, 0.0]], task=[7])[0, 1] > 0.9
    explained = model.explain([[-1.5, 0.0]], task=[7])
    assert explained.kin[0, 0] > explained.own[0, 0]
    shares = explained.own + explained.kin + explained.everybody + explained.prior
    assert shares == pytest.approx(np.ones((1, 2)))


def test_the_same_seed_gives_the_same_and_a_file_keeps_it(tmp_path):
    model = ClusteredClassifier(**SHORT).fit(X, LABEL, task=TASK)
    again = ClusteredClassifier(**SHORT).fit(X, LABEL, task=TASK)
    proba = model.predict_proba(ASKED, task=ASKED_TASK)
    assert np.array_equal(again.predict_proba(ASKED, task=ASKED_TASK), proba)
    kinfolk.save(model, tmp_path / "m.kin")
    assert np.array_equal(kinfolk.load(tmp_path / "m.kin").predict_proba(ASKED, task=ASKED_TASK), proba)
    loaded = kinfolk.load(tmp_path / "m.kin", estimator=True)
    assert np.array_equal(loaded.similarity_, model.similarity_)
    assert loaded.partition_.tolist() == model.partition_.tolist()


def test_more_than_two_labels_have_one_partition():
    three = np.where(np.arange(len(LABEL)) % 3 == 0, "perhaps", LABEL)
    model = ClusteredClassifier(own_intercepts=True, **SHORT).fit(X, three, task=TASK)
    assert model.predict_proba(ASKED, task=ASKED_TASK).sum(axis=1) == pytest.approx(np.ones(len(ASKED)))
    assert model.partition_.shape == (3,)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"concentration": -1.0}, 'concentration=-1.0: a positive number or "learn"'),
        ({"concentration": "much"}, "concentration='much'"),
        ({"n_draws": 0}, "n_draws=0"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        ClusteredClassifier(**parameters).fit(X, LABEL, task=TASK)


def test_a_task_that_nobody_knows_has_no_similarity():
    model = ClusteredClassifier(**SHORT).fit(X, LABEL, task=TASK)
    with pytest.raises(ValueError, match="task 'zoe' is not one that the model was fitted to"):
        model.similarity(["ann", "zoe"])
