"""Partitions of tasks: the prior, the sum over all of them, the seats of a Gibbs sampler, and their log marginals."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import chi2

from kinfolk.maths import dirichlet
from kinfolk.maths.dirichlet import (
    DirichletProduct,
    dirichlet_product,
    log_marginal_of_sum,
    log_marginals,
)
from kinfolk.partition.crp import canonical, joining_weights, log_prior
from kinfolk.partition.exact import _subset_sums, exact_partitions
from kinfolk.partition.gibbs import Seating
from tests import oracle

BELL_NUMBERS = {4: 15, 7: 877, 10: 115_975}  # Sloane's A000110


def by_gammaln(counts: np.ndarray, prior: np.ndarray, group_start: np.ndarray) -> float:
    """The log marginal as thesis eq. A.30 prints it, group by group."""
    total = 0.0
    for start, end in pairwise(group_start):
        n, a = counts[start:end], prior[start:end]
        total += gammaln(a + n).sum() - gammaln((a + n).sum()) - gammaln(a).sum() + gammaln(a.sum())
    return float(total)


def random_counts(rng: np.random.Generator, n_tasks: int, whole: bool = True) -> tuple[np.ndarray, DirichletProduct]:
    """Counts of tasks under three groups with uneven priors."""
    group_start = np.array([0, 2, 5, 7])
    counts = rng.integers(0, 5, size=(n_tasks, 7)).astype(np.int32)
    if not whole:
        counts = counts * rng.uniform(0.2, 1.7, size=counts.shape)
    return counts, dirichlet_product(rng.uniform(0.3, 2.0, size=7), group_start, int(counts.sum()) if whole else 0)


def test_the_prior_over_all_partitions_sums_to_one():
    for n, a in [(1, 0.4), (4, 2.5), (7, 1.3)]:
        assert sum(math.exp(log_prior(np.array(z), a)) for z in oracle.partitions(n)) == pytest.approx(1, abs=1e-12)


def test_the_prior_is_that_of_seating_tasks_one_after_another():
    for z in oracle.partitions(5):
        assert log_prior(np.array(z), 0.7) == pytest.approx(oracle.log_crp(z, 0.7), abs=1e-12)


def test_a_new_task_joins_with_the_ratio_of_the_priors_with_and_without_it():
    joins, alone = joining_weights(np.array([3, 1]), 4, 0.7)
    seated = (0, 0, 1, 0)
    ratios = [math.exp(oracle.log_crp((*seated, c), 0.7) - oracle.log_crp(seated, 0.7)) for c in range(3)]
    np.testing.assert_allclose([*joins, alone], ratios, atol=1e-12)


@pytest.mark.parametrize("whole", [True, False])
def test_the_exact_sum_equals_that_over_every_partition_of_seven_tasks(whole):
    counts, product = random_counts(np.random.default_rng(3), 7, whole)
    found = exact_partitions(counts, product, 0.8)
    partitions = oracle.partitions(7)
    assert len(partitions) == BELL_NUMBERS[7]
    log_joint = []
    for z in partitions:
        blocks = [counts[np.array(z) == c].sum(axis=0) for c in range(max(z) + 1)]
        log_data = sum(by_gammaln(block, product.prior, product.group_start) for block in blocks)
        log_joint.append(oracle.log_crp(z, 0.8) + log_data)
    assert found.log_evidence == pytest.approx(logsumexp(log_joint), abs=1e-10)
    assert found.log_joint == pytest.approx(max(log_joint), abs=1e-10)
    assert tuple(found.partition) == partitions[int(np.argmax(log_joint))]
    is_block = np.zeros(1 << 7)
    for z, p in zip(partitions, np.exp(np.array(log_joint) - logsumexp(log_joint)), strict=True):
        for c in range(max(z) + 1):
            is_block[sum(1 << u for u in range(7) if z[u] == c)] += p
    np.testing.assert_allclose(np.exp(found.log_probability), is_block, atol=1e-12)


def test_ten_tasks_without_data_leave_the_prior_where_it_was():
    a = 1.7
    product = dirichlet_product(np.ones(2), np.array([0, 2]), 1)
    found = exact_partitions(np.zeros((10, 2), dtype=np.int32), product, a)
    assert found.log_evidence == pytest.approx(0, abs=1e-12)
    for members, log_p in zip(found.members[1:], found.log_probability[1:], strict=True):
        # n tasks as one block: a (n−1)! times Γ(a + 10 − n) / Γ(a), over Γ(a + 10) / Γ(a).
        n = int(members.sum())
        assert log_p == pytest.approx(math.log(a) + gammaln(n) + gammaln(a + 10 - n) - gammaln(a + 10), abs=1e-10)


def test_the_sum_over_ten_tasks_meets_as_many_partitions_as_there_are():
    log_one_each = np.append(-np.inf, np.zeros((1 << 10) - 1))  # the empty set is no block
    log_sums, _, _ = _subset_sums(log_one_each)
    assert log_sums[-1] == pytest.approx(math.log(BELL_NUMBERS[10]), abs=1e-10)


def test_each_of_ten_tasks_is_in_one_block_for_certain():
    counts, product = random_counts(np.random.default_rng(5), 10)
    found = exact_partitions(counts, product, 1.0)
    np.testing.assert_allclose(np.exp(found.log_probability) @ found.members, np.ones(10), atol=1e-10)


def seated(counts: np.ndarray, product: DirichletProduct, a: float, rng: np.random.Generator) -> Seating:
    seating = Seating(counts, product, a)
    seating.draw_from_prior(rng.random(len(counts)))
    return seating


def test_seats_drawn_from_the_prior_have_the_distribution_of_the_restaurant():
    rng = np.random.default_rng(11)
    counts, product = random_counts(rng, 4)
    seating, a, n = Seating(counts, product, 0.8), 0.8, 20_000
    seen: Counter[tuple[int, ...]] = Counter()
    for uniforms in rng.random((n, 4)):
        seating.draw_from_prior(uniforms)
        seen[tuple(canonical(seating.seat).tolist())] += 1
    expected = {z: n * math.exp(oracle.log_crp(z, a)) for z in oracle.partitions(4)}
    assert len(expected) == BELL_NUMBERS[4]
    assert set(seen) == set(expected)
    statistic = sum((seen[z] - e) ** 2 / e for z, e in expected.items())
    assert statistic < chi2.ppf(0.999, df=BELL_NUMBERS[4] - 1)


@pytest.mark.parametrize("whole", [True, False])
def test_what_a_seating_keeps_stays_true_after_many_sweeps(whole):
    rng = np.random.default_rng(13)
    counts, product = random_counts(rng, 8, whole)
    seating = seated(counts, product, 1.2, rng)
    visited = set()
    for uniforms in rng.random((500, 8)):
        seating.sweep(uniforms)
        visited.add(tuple(canonical(seating.seat).tolist()))
    assert len(visited) > 50
    sizes, sums = np.zeros(8, dtype=int), np.zeros((8, 7))
    for u, c in enumerate(seating.seat):
        sizes[c] += 1
        sums[c] += counts[u]
    np.testing.assert_array_equal(seating.cluster_size, sizes)
    np.testing.assert_allclose(seating.cluster_counts, sums, atol=1e-10)
    log_marginal = [by_gammaln(row, product.prior, product.group_start) for row in sums]
    np.testing.assert_allclose(seating.cluster_log_marginal, log_marginal, atol=1e-8)
    assert seating.log_likelihood == pytest.approx(sum(log_marginal), abs=1e-8)
    z = tuple(canonical(seating.seat).tolist())
    assert seating.log_prior == pytest.approx(oracle.log_crp(z, 1.2), abs=1e-10)
    kept = seating.cluster_counts.copy(), seating.cluster_log_marginal.copy()
    seating.refresh()
    np.testing.assert_allclose(seating.cluster_counts, kept[0], atol=1e-10)
    np.testing.assert_allclose(seating.cluster_log_marginal, kept[1], atol=1e-8)


@pytest.mark.parametrize("power", [1.0, 0.4])
def test_a_sweep_leaves_the_tempered_posterior_as_it_is(power):
    # Seats drawn exactly from the posterior still have it after a sweep; chi-square over 15 partitions.
    rng = np.random.default_rng(17)
    counts, product = random_counts(rng, 4)
    seating, n = Seating(counts, product, 0.8), 20_000
    partitions = oracle.partitions(4)
    log_p = np.array([oracle.log_crp(z, 0.8) for z in partitions])
    for i, z in enumerate(partitions):
        blocks = [counts[np.array(z) == c].sum(axis=0) for c in range(max(z) + 1)]
        log_p[i] += power * sum(by_gammaln(block, product.prior, product.group_start) for block in blocks)
    p = np.exp(log_p - logsumexp(log_p))
    place = {z: i for i, z in enumerate(partitions)}
    seen = np.zeros(len(partitions))
    for i, uniforms in zip(rng.choice(len(p), size=n, p=p), rng.random((n, 4)), strict=True):
        seating.place(np.array(partitions[i]))
        seating.sweep(uniforms, power)
        seen[place[tuple(canonical(seating.seat).tolist())]] += 1
    rare = n * p < 5
    observed, expected = np.append(seen[~rare], seen[rare].sum()), np.append(n * p[~rare], n * p[rare].sum())
    kept = expected > 0
    statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    assert statistic < chi2.ppf(0.999, df=int(kept.sum()) - 1)


KINDS = {
    "whole counts within the table": (np.int32, 40),
    "whole counts beyond the table": (np.int32, 2),
    "fractional counts": (np.float64, 0),
}


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize(("dtype", "largest"), KINDS.values(), ids=KINDS.keys())
def test_log_marginals_equal_the_formula(dtype, largest, symmetric):
    rng = np.random.default_rng(19)
    group_start = np.array([0, 1, 3, 6, 9])
    prior = np.full(9, 0.6) if symmetric else rng.uniform(0.05, 5.0, size=9)
    counts = rng.integers(0, 9, size=(6, 9)).astype(dtype)
    counts[0] = 0
    if dtype is np.float64:
        counts *= rng.uniform(0.1, 2.0, size=counts.shape)
    product = dirichlet_product(prior, group_start, largest)
    alone = [by_gammaln(row, prior, group_start) for row in counts]
    together = [by_gammaln(counts[2] + row, prior, group_start) for row in counts]
    np.testing.assert_allclose(log_marginals(counts, product), alone, atol=1e-10)
    np.testing.assert_allclose([log_marginal_of_sum(counts[2], row, product) for row in counts], together, atol=1e-10)


def test_tables_too_large_for_the_caches_are_cut_and_the_rest_computed(monkeypatch):
    monkeypatch.setattr(dirichlet, "_MAX_TABLE", 8)
    prior, group_start = np.array([0.3, 1.4]), np.array([0, 2])
    product = dirichlet_product(prior, group_start, 1000)
    assert product.tables.size <= 8
    counts = np.array([[700, 1], [0, 3]], dtype=np.int32)
    expected = [by_gammaln(row, prior, group_start) for row in counts]
    np.testing.assert_allclose(log_marginals(counts, product), expected, rtol=1e-12)
