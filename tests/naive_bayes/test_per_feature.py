"""A partition per feature against sums over every choice of a partition for each feature."""

import math
from collections.abc import Callable
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from kinfolk.evidence import Evidence
from kinfolk.naive_bayes.inference import bhc, exact, gibbs
from kinfolk.naive_bayes.inference.fitting import LeftOut
from kinfolk.naive_bayes.inference.leave_one_out import fitted_blocks, leave_out
from kinfolk.naive_bayes.inference.options import Options, Schedule
from kinfolk.naive_bayes.inference.per_feature import PerFeature, averaged_counts, feature_cells, one_feature
from kinfolk.naive_bayes.model.values import Fitted, HyperParameters
from kinfolk.partition.agreement import central_partition
from kinfolk.tasks.statistics import Layout, Rows, Statistics, count, no_rows
from tests.naive_bayes.posed import Posed, pose
from tests.oracle import log_crp, partitions

CONCENTRATION = 0.7
LAYOUT = Layout(2, np.array([2, 3]))


def a_problem(n_tasks: int = 3, seed: int = 0) -> Posed:
    """Three tasks with a few rows each, some values missing."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 5, (n_tasks, LAYOUT.n_cells)).astype(np.int32)
    labels = rng.integers(9, 20, (n_tasks, 2)).astype(np.int32)
    statistics = Statistics(LAYOUT, np.arange(n_tasks), counts, labels)
    return pose(statistics, no_rows(LAYOUT), np.array([0.8, 1.3]), rng.uniform(0.3, 2.0, LAYOUT.n_cells))


class Clustering:
    """A model of one feature whose algorithm is given."""

    def __init__(self, algorithm: Callable[..., Any], schedule: Schedule | None = None) -> None:
        self.algorithm, self.schedule, self.seeds = algorithm, schedule or Schedule(1, 2, 5), []

    def infer(self, data: Any, hyper: HyperParameters, options: Options, seed: int) -> Any:
        self.seeds.append(seed)
        return self.algorithm(data, hyper, options._replace(schedule=self.schedule), seed)

    def leave_out(self, data: Any, hyper: Any, fitted: Fitted, rows: Rows, options: Options) -> LeftOut:
        return leave_out(data, hyper, fitted_blocks(fitted), rows, data.statistics.label_counts)


EXACTLY = Clustering(exact.infer)
HIERARCHICALLY = Clustering(bhc.infer)


def joined(
    problem: Posed, inner: Any, n_jobs: int | None = None, concentration: float = CONCENTRATION, seed: int = 3
) -> Fitted:
    label_prior, feature_prior, temper, *_ = problem.hyper
    hyper = HyperParameters(label_prior, feature_prior, temper, concentration)
    return PerFeature(inner).infer(problem.data, hyper, Options(n_jobs=n_jobs), seed)[1]


def log_urn(counts: np.ndarray, prior: np.ndarray) -> float:
    """Log probability of draws, in any order, from Pólya's urn."""
    total, seen = 0.0, 0
    for x, n in enumerate(counts.tolist()):
        for already in range(n):
            total += math.log((prior[x] + already) / (prior.sum() + seen))
            seen += 1
    return total


def cells(y: int, f: int) -> slice:
    first = y * LAYOUT.width + int(LAYOUT.offsets[f])
    return slice(first, first + int(LAYOUT.n_values[f]))


def log_features(problem: Posed, f: int, z: tuple[int, ...]) -> float:
    """Log joint probability of a feature's partition and values."""
    counts = problem.statistics.feature_counts
    total = log_crp(z, CONCENTRATION)
    for cluster, y in product(sorted(set(z)), range(2)):
        pooled = counts[np.array(z) == cluster, cells(y, f)].sum(axis=0)
        total += log_urn(pooled, problem.feature_prior[cells(y, f)])
    return total


def every_pair(problem: Posed) -> tuple[list[tuple[tuple[int, ...], ...]], np.ndarray, float]:
    """Every choice of a partition for each of the two features, their posterior probabilities and the log evidence."""
    pairs = list(product(partitions(len(problem.statistics.tasks)), repeat=2))
    log_joint = np.array([sum(log_features(problem, f, z) for f, z in enumerate(pair)) for pair in pairs])
    labels = sum(log_urn(row, problem.label_prior) for row in problem.statistics.label_counts)
    return pairs, np.exp(log_joint - logsumexp(log_joint)), float(logsumexp(log_joint)) + labels


def row_probability(problem: Posed, pair: tuple[tuple[int, ...], ...], u: int, row: np.ndarray) -> np.ndarray:
    """Joint probability of a row of task u (the number of tasks: a new one) and each label, given both partitions."""
    counts, n = problem.statistics.feature_counts, len(problem.statistics.tasks)
    alpha = problem.label_prior + (problem.statistics.label_counts[u] if u < n else 0)
    out = alpha / alpha.sum()
    for (f, z), y in product(enumerate(pair), range(2)):
        prior, x = problem.feature_prior[cells(y, f)], row[f]
        chances = {z[u]: 1.0} if u < n else {c: z.count(c) / (n + CONCENTRATION) for c in set(z)}
        if u == n:
            chances[-1] = CONCENTRATION / (n + CONCENTRATION)
        rate = 0.0
        for cluster, chance in chances.items():
            after = prior + counts[np.array(z) == cluster, cells(y, f)].sum(axis=0)
            rate += chance * after[x] / after.sum()
        out[y] *= rate
    return out


@pytest.mark.parametrize("seed", [0, 1])
def test_predictions_and_evidence_are_those_of_the_sum_over_every_choice_of_partitions(seed):
    problem = a_problem(seed=seed)
    pairs, weight, log_evidence = every_pair(problem)
    fitted = joined(problem, EXACTLY)
    assert fitted.evidence == Evidence(pytest.approx(log_evidence, rel=1e-12), "exact", 0.0)
    rows = np.array(list(product(range(2), range(3))), dtype=np.int32)
    for u in range(4):
        found = np.exp(fitted.blocks.mixture.log_predictive(rows, np.full(len(rows), u)))
        for row, probability in zip(rows, found, strict=True):
            joint = sum(w * row_probability(problem, pair, u, row) for w, pair in zip(weight, pairs, strict=True))
            np.testing.assert_allclose(probability, joint / joint.sum(), rtol=1e-10)


def test_similarity_is_the_expected_share_of_features_that_two_tasks_share():
    problem = a_problem()
    pairs, weight, _ = every_pair(problem)
    similarity = joined(problem, EXACTLY).similarity()
    np.testing.assert_array_equal(np.diag(similarity), 1.0)
    for i, j in combinations(range(3), 2):
        shared = [sum(z[i] == z[j] for z in pair) / 2 for pair in pairs]
        assert similarity[i, j] == pytest.approx(weight @ shared)


def test_every_feature_has_its_own_most_probable_partition():
    problem = a_problem(5, seed=4)
    statistics = problem.statistics
    # Far apart enough for several clusters, not the same ones in both features.
    statistics = statistics._replace(feature_counts=statistics.feature_counts**2)
    problem = problem.of(statistics._replace(label_counts=statistics.label_counts * 5))
    fitted = joined(problem, EXACTLY)
    for f in range(2):
        best = max(partitions(5), key=lambda z: log_features(problem, f, z))
        np.testing.assert_array_equal(fitted.partitions[0, f], best)
    assert not np.array_equal(*fitted.partitions[0])
    assert fitted.partition.tolist() in fitted.partitions[0].tolist()


def test_one_feature_alone_is_clustered_naive_bayes():
    part = Posed(*one_feature(*a_problem(6), 1))
    (_, together), apart = bhc.infer(*part, Options(), 0), joined(part, HIERARCHICALLY, concentration=1.0)
    rows, task = np.tile(np.arange(-1, 3, dtype=np.int32)[:, None], (7, 1)), np.repeat(np.arange(7), 4)
    for fitted in (together, apart):
        assert fitted.evidence == together.evidence
    np.testing.assert_array_equal(apart.partition, together.partition)
    np.testing.assert_allclose(apart.similarity(), together.similarity())
    expected = together.blocks.mixture.log_predictive(rows, task)
    np.testing.assert_allclose(apart.blocks.mixture.log_predictive(rows, task), expected, rtol=1e-9)


def test_hierarchical_clustering_bounds_the_evidence_and_sampling_leaves_it_open():
    problem = a_problem(5, seed=2)
    exact = joined(problem, EXACTLY)
    bound = joined(problem, HIERARCHICALLY)
    assert bound.evidence.kind == "lower bound"
    assert exact.evidence.value - 2.0 < bound.evidence.value < exact.evidence.value
    drawn = joined(problem, Clustering(gibbs.infer, Schedule(2, 5, 400)))
    assert drawn.evidence is None
    np.testing.assert_allclose(drawn.similarity(), exact.similarity(), atol=0.08)


def test_features_are_sampled_with_seeds_of_their_own_whatever_the_number_of_jobs():
    problem = a_problem()
    inner = Clustering(gibbs.infer)
    one, two = (joined(problem, inner, n_jobs=n) for n in (1, 2))
    seeds = inner.seeds
    assert seeds[0] != seeds[1]
    assert sorted(seeds[:2]) == sorted(seeds[2:])
    np.testing.assert_array_equal(one.blocks.mixture.log_theta, two.blocks.mixture.log_theta)


def test_a_blocks_counts_hold_at_least_the_tasks_own_and_give_its_rates():
    problem = a_problem(5, seed=2)
    blocks = joined(problem, EXACTLY).blocks
    assert (blocks.counts[:5] >= problem.statistics.feature_counts - 1e-9).all()
    assert (blocks.sizes[:5] >= 1).all()
    assert (blocks.sizes <= 5).all()
    for y, f in product(range(2), range(2)):
        after = blocks.counts[:, cells(y, f)] + problem.feature_prior[cells(y, f)]
        of_feature = slice(int(LAYOUT.offsets[f]), int(LAYOUT.offsets[f + 1]))
        expected = np.exp(blocks.mixture.log_theta[:, of_feature, y])
        np.testing.assert_allclose(after / after.sum(axis=1, keepdims=True), expected)


def test_a_row_taken_out_is_predicted_as_by_a_fit_without_it():
    rng = np.random.default_rng(7)
    codes = np.column_stack([rng.integers(-1, 2, 14), rng.integers(0, 3, 14)]).astype(np.int32)
    rows = Rows(codes, rng.integers(0, 2, 14).astype(np.int32), np.arange(14) % 3, None)

    def without(kept: np.ndarray) -> Posed:
        statistics = count(rows.take(kept), LAYOUT, np.arange(3))
        return pose(statistics, no_rows(LAYOUT), np.array([0.8, 1.3]), np.linspace(0.4, 2.0, LAYOUT.n_cells))

    everything = without(np.ones(14, dtype=bool))
    fitted = joined(everything, EXACTLY)
    left_out = PerFeature(EXACTLY).leave_out(*everything, fitted, rows, Options())
    found = left_out.log_predictive(np.ones(2))
    for i in range(14):
        fitted = joined(without(np.arange(14) != i), EXACTLY)
        expected = fitted.blocks.mixture.log_predictive(codes[[i]], rows.task[[i]])[0]
        np.testing.assert_allclose(found[i], expected, rtol=1e-9)


def test_averaged_counts_give_the_average_of_rates_and_of_the_priors_share():
    rng = np.random.default_rng(0)
    counts, weight, prior = rng.integers(0, 30, (6, 5)), rng.dirichlet(np.ones(6)), rng.uniform(0.2, 3.0, 5)
    start = np.array([0, 2, 5])
    found = averaged_counts(counts, weight, prior, start)
    for first, last in ((0, 2), (2, 5)):
        after = counts[:, first:last] + prior[first:last]
        one = found[first:last] + prior[first:last]
        np.testing.assert_allclose(one / one.sum(), weight @ (after / after.sum(axis=1, keepdims=True)))
        assert prior[first:last].sum() / one.sum() == pytest.approx(
            weight @ (prior[first:last].sum() / after.sum(axis=1))
        )


def test_the_central_partition_has_the_least_sum_of_rand_distances():
    rng = np.random.default_rng(1)
    for _ in range(20):
        drawn = rng.integers(0, rng.integers(1, 5), (8, 7))
        together = drawn[:, :, None] == drawn[:, None, :]
        distance = (together[:, None] != together[None]).sum(axis=(2, 3)).sum(axis=1)
        chosen = central_partition(drawn)
        at = [i for i in range(8) if ((chosen[:, None] == chosen[None]) == together[i]).all()]
        assert distance[at[0]] == distance.min()
        assert at[0] == distance.argmin()


def test_cells_of_a_feature_are_its_values_under_every_label():
    assert feature_cells(LAYOUT, 0).tolist() == [0, 1, 5, 6]
    assert feature_cells(LAYOUT, 1).tolist() == [2, 3, 4, 7, 8, 9]
