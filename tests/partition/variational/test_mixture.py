"""Variational inference: a bound that holds, sweeps that raise it, and clusters that are born and merged."""

from functools import partial

import numpy as np
import pytest
from scipy.special import gammaln
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, log_loss

from kinfolk import ClusteredNB, checkpoints
from kinfolk.checkpoints import NOWHERE, Checkpoint, Place
from kinfolk.datasets import make_meetings
from kinfolk.maths.dirichlet import dirichlet_product, log_marginals
from kinfolk.partition.variational import births_and_merges, mixture, task_counts
from kinfolk.partition.variational.births_and_merges import Setting, born, from_seeds, merged, misfits, spread
from kinfolk.partition.variational.few_tasks import cluster_few
from kinfolk.partition.variational.mean_field import Clusters, converge, divergence, expectations
from kinfolk.partition.variational.memoised import Memory, converge_in_batches
from kinfolk.partition.variational.mixture import fit_clusters
from kinfolk.partition.variational.task_counts import CountsInMemory
from tests import oracle
from tests.problems import as_arguments, priors, random_problems

N_VALUES = 4
GROUPS = np.arange(0, 6 * N_VALUES + 1, N_VALUES)
PRODUCT = dirichlet_product(np.full(6 * N_VALUES, 0.8), GROUPS, 100)


def clustered_counts(n_tasks, n_clusters, n_rows, seed=0, rare=0):
    """Counts of tasks in known clusters; the last ``rare`` tasks are of a cluster of their own."""
    rng = np.random.default_rng(seed)
    rates = rng.dirichlet(np.ones(N_VALUES), size=(n_clusters + 1, 6))
    cluster = rng.integers(n_clusters, size=n_tasks)
    if rare:
        cluster[-rare:] = n_clusters
    counts = np.stack([rng.multinomial(n_rows, rates[cluster, g]) for g in range(6)], axis=1)
    return counts.reshape(n_tasks, -1).astype(np.uint8), cluster


def assignment(data, clusters, concentration=1.0):
    out = np.empty(data.n_tasks, dtype=int)
    for rows, responsibility in data.responsibilities(*expectations(clusters, PRODUCT, concentration)):
        out[rows] = responsibility.argmax(axis=1)
    return out


def clusters_of(counts, cluster):
    summed = np.zeros((cluster.max() + 1, counts.shape[1]))
    np.add.at(summed, cluster, counts)
    return Clusters(summed, np.bincount(cluster).astype(float), -np.inf)


def random_start(counts, n_clusters, seed=0):
    rng = np.random.default_rng(seed)
    return clusters_of(counts, rng.integers(n_clusters, size=len(counts)))


@pytest.mark.parametrize("concentration", [0.3, 1.0, 4.0])
def test_bound_of_one_task_is_its_marginal_times_the_expected_first_stick(concentration):
    counts, _ = clustered_counts(1, 1, 9)
    start = Clusters(counts.astype(float), np.ones(1), -np.inf)
    found = converge(CountsInMemory(counts), start, PRODUCT, concentration)
    # The first stick has mean 1 / (1 + a), and one task's posterior is exact.
    expected = log_marginals(counts.astype(np.int32), PRODUCT)[0] - np.log1p(concentration)
    assert found.bound == pytest.approx(expected, abs=1e-10)


def test_every_sweep_raises_the_bound():
    counts, _ = clustered_counts(200, 5, 12)
    data = CountsInMemory(counts)
    clusters, bounds = random_start(counts, 9), []
    for _ in range(40):
        clusters = converge(data, clusters, PRODUCT, 1.0, max_sweeps=1)
        bounds.append(clusters.bound)
    assert np.diff(bounds).min() > -1e-8
    assert bounds[-1] > bounds[0] + 100


@pytest.mark.parametrize("problem", random_problems(12, seed=3, n_tasks=4, n_rows=16, missing=0.1))
def test_the_bound_never_exceeds_the_exact_evidence(problem):
    model = ClusteredNB(inference="variational", concentration=problem.concentration, **priors(problem))
    model.set_params(random_state=0).fit(**as_arguments(problem))
    exact = oracle.log_evidence(problem)
    assert model.log_evidence_kind_ == "lower bound"
    assert model.log_evidence_ <= exact + 1e-10
    # It is a bound worth having: one partition with all the mass would lose more than this.
    assert model.log_evidence_ > exact - 12


def test_blocks_of_tasks_and_types_of_counts_make_no_difference():
    counts, _ = clustered_counts(150, 4, 10)
    start = random_start(counts, 6)
    reference = converge(CountsInMemory(counts), start, PRODUCT, 1.0)
    for data in (CountsInMemory(counts, block=7), CountsInMemory(counts.astype(np.int64))):
        found = converge(data, start, PRODUCT, 1.0)
        assert found.bound == pytest.approx(reference.bound, rel=1e-12)
        np.testing.assert_allclose(found.counts, reference.counts, rtol=1e-9)


def test_counts_of_one_byte_add_up_past_255():
    counts, _ = clustered_counts(400, 1, 60)
    found = converge(CountsInMemory(counts), random_start(counts, 1), PRODUCT, 1.0)
    np.testing.assert_allclose(found.counts[0], counts.sum(axis=0, dtype=np.int64))
    assert found.counts.max() > 255


def test_clusters_that_hold_the_same_tasks_twice_are_merged_and_different_ones_are_not():
    counts, cluster = clustered_counts(300, 3, 20)
    halves = cluster * 2 + np.arange(300) % 2
    found = merged(clusters_of(counts, halves), PRODUCT, 1.0)
    assert sorted(found.sizes) == sorted(np.bincount(cluster))


def test_two_clusters_that_are_alike_become_one():
    counts = np.tile(np.arange(1.0, len(PRODUCT.prior) + 1.0), (2, 1))
    found = merged(Clusters(counts, np.array([3.0, 4.0]), -np.inf), PRODUCT, 1.0)
    assert found.sizes.tolist() == [7.0]
    assert found.counts.tolist() == counts.sum(axis=0, keepdims=True).tolist()


def test_a_cluster_that_the_sample_missed_is_born_later(monkeypatch):
    counts, cluster = clustered_counts(600, 3, 25, rare=8)
    monkeypatch.setattr(births_and_merges, "SAMPLE", 25)
    monkeypatch.setattr(births_and_merges, "SEEDS", 4)
    data = CountsInMemory(counts)
    few = partial(cluster_few, groups=PRODUCT, concentration=1.0)
    found = fit_clusters(data, PRODUCT, 1.0, np.random.default_rng(0), few)
    assert adjusted_rand_score(cluster, assignment(data, found)) == 1.0


def test_every_batch_raises_the_bound_of_all_tasks():
    counts, _ = clustered_counts(230, 5, 12)
    memory = Memory(CountsInMemory(counts), random_start(counts, 9), PRODUCT, 1.0, batch_size=40)
    bounds = [memory.bound()]
    for turn in range(60):
        memory.visit(turn % len(memory.batches))
        bounds.append(memory.bound())
        if turn % len(memory.batches) == 5:
            memory.tidy()
            bounds.append(memory.bound())
    assert np.diff(bounds).min() > -1e-8
    assert bounds[-1] > bounds[0] + 100


@pytest.mark.parametrize("in_batches", [False, True])
def test_a_surplus_cluster_that_nobody_is_left_in_is_dropped(in_batches):
    counts, cluster = clustered_counts(230, 5, 12)
    known, data = clusters_of(counts, cluster), CountsInMemory(counts)
    nobody = known.joined(Clusters(1e3 * np.eye(6 * N_VALUES)[:1], np.full(1, 1e-9), -np.inf))
    if in_batches:
        memory = Memory(data, nobody.ordered(), PRODUCT, 1.0, batch_size=40)
        memory.tidy()
        assert len(memory.clusters.sizes) == memory.counts.shape[1] == memory.sizes.shape[1] == 5
    found = converge_in_batches(data, nobody, PRODUCT, 1.0, 40) if in_batches else converge(data, nobody, PRODUCT, 1.0)
    assert len(found.sizes) == 5
    assert found.bound == pytest.approx(converge(data, known, PRODUCT, 1.0).bound, abs=1e-6)


def test_sweeps_that_end_too_soon_are_told_from_those_that_converged():
    counts, _ = clustered_counts(230, 5, 12)
    data, start = CountsInMemory(counts), random_start(counts, 9)
    for sweeps in (converge, partial(converge_in_batches, batch_size=40)):
        assert not sweeps(data, start, PRODUCT, 1.0, max_sweeps=4).converged
        assert sweeps(data, start, PRODUCT, 1.0).converged
    assert fit_clusters(data, PRODUCT, 1.0, np.random.default_rng(0)).converged


@pytest.mark.parametrize("batch_size", [None, 200])
def test_a_fit_that_ended_after_any_round_on_any_level_goes_on_to_the_same_clusters(batch_size, tmp_path, monkeypatch):
    counts, _ = clustered_counts(900, 12, 15)
    for name, value in (("START_TASKS", 40), ("SEEDS", 2), ("MISFIT_TASKS", 400)):
        monkeypatch.setattr(births_and_merges, name, value)
    monkeypatch.setattr(mixture, "START_TASKS", 40)
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoints, "_SHARE", 1e9)
    monkeypatch.setattr(checkpoints, "WORTH", 0.0)
    save, saved = Place.save, []

    def fit(folder):
        place = NOWHERE if folder is None else Checkpoint(folder).place("clusters")
        given = CountsInMemory(counts), PRODUCT, 1.0, np.random.default_rng(0)
        return fit_clusters(*given, batch_size=batch_size, place=place)

    def save_and_die(place, value):
        save(place, value)
        saved.append(value)
        if len(saved) == dies_after:
            raise InterruptedError

    monkeypatch.setattr(Place, "save", save_and_die)
    expected, dies_after = fit(None), 0
    assert fit(tmp_path / "whole").bound == expected.bound
    places = {(at.level, at.growth and at.growth.turn) for at, _ in saved}
    assert len({level for level, _ in places}) == 3
    assert len(places) > 5
    for n_saved in range(1, len(saved)):
        saved.clear()
        dies_after = n_saved
        with pytest.raises(InterruptedError):
            fit(tmp_path / str(n_saved))
        dies_after = 0
        np.testing.assert_array_equal(fit(tmp_path / str(n_saved)).counts, expected.counts)


def test_the_estimator_warns_of_sweeps_that_did_not_converge(monkeypatch):
    def ended_too_soon(*arguments):
        return fit_clusters(*arguments)._replace(converged=False)

    team = make_meetings(random_state=1)
    monkeypatch.setattr("kinfolk.naive_bayes.inference.variational.fit_clusters", ended_too_soon)
    with pytest.warns(ConvergenceWarning, match="still rising after 100 sweeps"):
        ClusteredNB(inference="variational", random_state=0).fit(team.data, team.target, task=team.task)


def test_what_batches_remember_adds_up_to_the_bound_of_whole_sweeps():
    counts, _ = clustered_counts(230, 5, 12)
    data = CountsInMemory(counts)
    settled = converge(data, random_start(counts, 9), PRODUCT, 1.0, max_sweeps=3_000, tolerance=1e-13)
    memory = Memory(data, settled, PRODUCT, 1.0, batch_size=40)
    assert memory.bound() == pytest.approx(settled.bound, abs=1e-6)
    again = converge_in_batches(data, settled, PRODUCT, 1.0, batch_size=40)
    assert again.bound == pytest.approx(settled.bound, abs=1e-6)


def test_batches_need_fewer_passes_than_whole_sweeps():
    counts, _ = clustered_counts(4_000, 12, 6, seed=1)
    data, begin, n_passes = CountsInMemory(counts), random_start(counts, 20), 12
    whole = converge(data, begin, PRODUCT, 1.0, max_sweeps=n_passes, tolerance=0.0)
    batches = converge_in_batches(data, begin, PRODUCT, 1.0, 200, max_sweeps=n_passes, tolerance=0.0)
    assert batches.bound > whole.bound + 50


@pytest.mark.parametrize("problem", random_problems(6, seed=5, n_tasks=4, n_rows=16, missing=0.1))
def test_the_bound_of_batches_never_exceeds_the_exact_evidence(problem):
    model = ClusteredNB(inference="variational", concentration=problem.concentration, batch_size=2, **priors(problem))
    model.set_params(random_state=0).fit(**as_arguments(problem))
    exact = oracle.log_evidence(problem)
    assert exact - 12 < model.log_evidence_ <= exact + 1e-10


def test_the_merges_gain_is_that_of_the_exact_marginals():
    rng = np.random.default_rng(0)
    counts, sizes = rng.integers(0, 30, size=(5, 6 * N_VALUES)).astype(float), rng.uniform(1, 9, size=5)
    plain = dirichlet_product(PRODUCT.prior, GROUPS, 0)
    by_numpy = task_counts.log_marginals(
        counts, PRODUCT.prior, PRODUCT.group_prior, task_counts.cells_in_groups(PRODUCT), gammaln
    )
    np.testing.assert_allclose(by_numpy, log_marginals(counts, plain), rtol=1e-12)
    best = max(
        log_marginals(counts[[i]] + counts[[j]], plain)[0]
        - log_marginals(counts[[i, j]], plain).sum()
        + gammaln(sizes[i] + sizes[j])
        - gammaln(sizes[[i, j]]).sum()
        for i in range(5)
        for j in range(i)
    )
    # A concentration just above or below e^gain forbids or allows the best join.
    for shift, n_left in ((1e-6, 5), (-1e-6, 4)):
        assert len(merged(Clusters(counts, sizes, -np.inf), PRODUCT, np.exp(best + shift)).sizes) == n_left


def test_seeds_alone_find_overlapping_clusters():
    rng = np.random.default_rng(4)
    rates = rng.dirichlet(np.full(N_VALUES, 4.0), size=(30, 6))
    cluster = rng.integers(30, size=6_000)
    counts = np.stack([rng.multinomial(30, rates[cluster, g]) for g in range(6)], axis=1)
    counts = counts.reshape(6_000, -1).astype(np.uint8)
    data = CountsInMemory(counts)
    true = converge(data, clusters_of(counts, cluster), PRODUCT, 1.0)
    found = converge(data, from_seeds(data, 64, Setting(PRODUCT, 1.0), np.random.default_rng(0)), PRODUCT, 1.0)
    assert len(found.sizes) == 30
    assert found.bound == pytest.approx(true.bound, abs=1.0)


@pytest.mark.parametrize("cluster_few_too", [True, False])
def test_tasks_that_no_cluster_explains_give_birth_to_theirs(cluster_few_too):
    counts, cluster = clustered_counts(4_000, 3, 25, rare=60)
    known = clusters_of(counts[:-60], cluster[:-60])
    few = partial(cluster_few, groups=PRODUCT, concentration=1.0) if cluster_few_too else None
    setting, rng = Setting(PRODUCT, 1.0, few), np.random.default_rng(0)
    newborn = born(known, misfits(CountsInMemory(counts), setting, rng), 0, setting, rng)
    missed = counts[-60:].sum(axis=0, dtype=float)
    assert np.abs(newborn.counts - missed).sum(axis=1).min() < 0.01 * missed.sum()


def test_tasks_spread_out_are_different_and_in_order():
    for n, size in ((10, 10), (10, 3), (1_000_003, 7), (5, 9)):
        tasks = spread(n, size, np.random.default_rng(0))
        assert len(tasks) == min(n, size)
        assert (np.diff(tasks) > 0).all()
        assert tasks.min() >= 0
        assert tasks.max() < n


def test_divergence_is_zero_where_nothing_was_seen():
    nothing = Clusters(np.zeros((2, 6 * N_VALUES)), np.zeros(2), -np.inf)
    assert divergence(nothing, PRODUCT, 1.7) == pytest.approx(0.0, abs=1e-10)


def test_predictions_are_close_to_those_of_hierarchical_clustering():
    team = make_meetings(random_state=1)
    train = np.arange(len(team.target)) % 2 == 0
    losses = []
    for inference in ("bhc", "variational"):
        model = ClusteredNB(inference=inference, random_state=0)
        model.fit(team.data.filter(train), team.target[train], task=team.task[train])
        proba = model.predict_proba(team.data.filter(~train), task=team.task[~train])
        losses.append(log_loss(team.target[~train], proba))
    assert losses[1] == pytest.approx(losses[0], rel=0.005)


def test_the_same_seed_gives_the_same_answer():
    team = make_meetings(random_state=2)
    fits = [
        ClusteredNB(inference="variational", random_state=5).fit(team.data, team.target, task=team.task)
        for _ in range(2)
    ]
    np.testing.assert_array_equal(*(model.predict_proba(team.data, task=team.task) for model in fits))
    np.testing.assert_array_equal(*(model.similarity_ for model in fits))
