"""Split–merge moves leave the posterior over partitions as it is, and go where single tasks do not."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import gammaln, softmax

from kinfolk.maths.dirichlet import DirichletProduct, dirichlet_product
from kinfolk.partition.crp import canonical
from kinfolk.partition.exact import exact_partitions
from kinfolk.partition.gibbs import Seating
from kinfolk.partition.split_merge import split_and_merge
from tests import oracle

N_TASKS, CONCENTRATION = 5, 0.8
GROUP_START = np.array([0, 2, 5])


def tasks_with(whole: bool = True) -> tuple[np.ndarray, DirichletProduct]:
    """A few counts for each of five tasks, under two groups with uneven priors."""
    rng = np.random.default_rng(2)
    counts = rng.integers(0, 3, size=(N_TASKS, 5)).astype(np.int32)
    if not whole:
        counts = counts * rng.uniform(0.2, 1.7, size=counts.shape)
    return counts, dirichlet_product(rng.uniform(0.3, 2.0, 5), GROUP_START, int(counts.sum()) if whole else 0)


def log_marginal(counts: np.ndarray, prior: np.ndarray) -> float:
    """Thesis eq. A.30, group by group."""
    total = 0.0
    for start, end in pairwise(GROUP_START):
        n, a = counts[start:end], prior[start:end]
        total += gammaln(a + n).sum() - gammaln((a + n).sum()) - gammaln(a).sum() + gammaln(a.sum())
    return float(total)


def posterior(counts: np.ndarray, product: DirichletProduct, temper: float) -> dict[tuple[int, ...], float]:
    partitions = oracle.partitions(N_TASKS)
    log_joint = []
    for z in partitions:
        fit = sum(log_marginal(counts[np.array(z) == c].sum(axis=0), product.prior) for c in range(max(z) + 1))
        log_joint.append(oracle.log_crp(z, CONCENTRATION) + temper * fit)
    return dict(zip(partitions, softmax(log_joint).tolist(), strict=True))


def distances(
    counts: np.ndarray, product: DirichletProduct, temper: float, n_moves: int, with_gibbs: bool
) -> np.ndarray:
    """How far the share of each partition in many chains is from its probability, in standard errors."""
    truth = posterior(counts, product, temper)
    place = {z: i for i, z in enumerate(truth)}
    rng = np.random.default_rng(3)
    n_chains, n_draws = 40, 300
    shares = np.zeros((n_chains, len(truth)))
    for share in shares:
        seating = Seating(counts, product, CONCENTRATION)
        seating.draw_from_prior(rng.random(N_TASKS))
        for draw in range(-30, n_draws):
            split_and_merge(seating, rng, n_moves, temper)
            if with_gibbs:
                seating.sweep(rng.random(N_TASKS), temper)
            if draw >= 0:
                share[place[tuple(canonical(seating.seat).tolist())]] += 1 / n_draws
    error = shares.std(axis=0, ddof=1) / np.sqrt(n_chains)
    return np.abs(shares.mean(axis=0) - list(truth.values())) / np.maximum(error, 3e-4)


@pytest.mark.parametrize("temper", [1.0, 0.4, 0.0])
@pytest.mark.parametrize("n_moves", [2, 30])
def test_alone_they_have_the_distribution_that_enumeration_gives(temper, n_moves):
    # Of thirty moves most are given up for the size of the clusters, of two none.
    far = distances(*tasks_with(), temper, n_moves, with_gibbs=False)
    assert far.max() < 4.5
    assert np.sqrt((far**2).mean()) < 1.6


@pytest.mark.parametrize("whole", [True, False])
def test_beside_single_site_sampling_they_have_the_distribution_that_enumeration_gives(whole):
    far = distances(*tasks_with(whole), 1.0, 3, with_gibbs=True)
    assert far.max() < 4.5
    assert np.sqrt((far**2).mean()) < 1.6


def test_pairs_share_clusters_as_often_as_in_the_exact_sum():
    counts, product = tasks_with()
    exact = exact_partitions(counts, product, CONCENTRATION)
    together = np.einsum("s,su,sv->uv", np.exp(exact.log_probability), exact.members, exact.members)
    rng = np.random.default_rng(5)
    found = np.zeros((40, N_TASKS, N_TASKS))
    for chain in found:
        seating = Seating(counts, product, CONCENTRATION)
        seating.draw_from_prior(rng.random(N_TASKS))
        for _ in range(300):
            split_and_merge(seating, rng)
            chain += (seating.seat[:, None] == seating.seat) / 300
    error = np.maximum(found.std(axis=0, ddof=1) / np.sqrt(len(found)), 1e-4)
    assert np.max(np.abs(found.mean(axis=0) - together) / error) < 4.5


@pytest.mark.parametrize("whole", [True, False])
def test_what_a_seating_keeps_stays_true_after_many_moves(whole):
    counts, product = tasks_with(whole)
    rng = np.random.default_rng(7)
    seating = Seating(counts, product, CONCENTRATION)
    seating.draw_from_prior(rng.random(N_TASKS))
    n_accepted = 0
    for _ in range(300):
        n_accepted += split_and_merge(seating, rng)
        assert seating.n_clusters == len(set(seating.seat.tolist()))
    assert n_accepted > 100
    kept = seating.cluster_counts.copy(), seating.cluster_size.copy(), seating.cluster_log_marginal.copy()
    seating.refresh()
    np.testing.assert_allclose(kept[0], seating.cluster_counts, atol=1e-9)
    np.testing.assert_array_equal(kept[1], seating.cluster_size)
    np.testing.assert_allclose(kept[2], seating.cluster_log_marginal, atol=1e-9)


def two_kinds(n_of_each: int) -> Seating:
    """Tasks of two rows each, of two kinds that never agree, all in one cluster."""
    counts = np.repeat(np.array([[2, 0], [0, 2]], dtype=np.int32), n_of_each, axis=0)
    seating = Seating(counts, dirichlet_product(np.ones(2), np.array([0, 2]), int(counts.sum())), 1e-4)
    seating.place(np.zeros(2 * n_of_each, dtype=np.int64))
    return seating


def test_they_part_two_kinds_of_tasks_that_single_site_sampling_leaves_together():
    n = 50
    rng = np.random.default_rng(11)
    stuck = two_kinds(n)
    for _ in range(200):
        stuck.sweep(rng.random(2 * n))
    assert stuck.cluster_size.max() > 1.8 * n
    moved = two_kinds(n)
    for _ in range(20):
        split_and_merge(moved, rng)
        moved.sweep(rng.random(2 * n))
    np.testing.assert_array_equal(canonical(moved.seat), np.repeat([0, 1], n))
    assert moved.log_likelihood + moved.log_prior > stuck.log_likelihood + stuck.log_prior + 40


def test_they_join_two_clusters_of_one_kind_that_single_site_sampling_leaves_apart():
    n = 200
    counts = np.repeat(np.array([[3, 3]], dtype=np.int32), 2 * n, axis=0)
    apart = np.repeat([0, 1], n)
    rng = np.random.default_rng(13)
    sizes = []
    for with_moves in (False, True):
        seating = Seating(counts, dirichlet_product(np.full(2, 50.0), np.array([0, 2]), int(counts.sum())), 1e-3)
        seating.place(apart)
        for _ in range(5):
            seating.sweep(rng.random(2 * n))
            if with_moves:
                split_and_merge(seating, rng)
        sizes.append(seating.cluster_size.max())
    assert sizes[0] < 2 * n
    assert sizes[1] == 2 * n


def test_one_task_stays_where_it_is():
    seating = Seating(np.ones((1, 2), dtype=np.int32), dirichlet_product(np.ones(2), np.array([0, 2]), 2), 1.0)
    seating.place(np.zeros(1, dtype=np.int64))
    assert split_and_merge(seating, np.random.default_rng(0)) == 0


def test_the_same_seed_gives_the_same_moves():
    seats = []
    for _ in range(2):
        seating = two_kinds(10)
        split_and_merge(seating, np.random.default_rng(4), 50)
        seats.append(seating.seat.copy())
    np.testing.assert_array_equal(*seats)


@pytest.mark.parametrize("whole", [True, False])
def test_a_chain_goes_on_from_what_was_written_down_as_if_it_had_never_stopped(whole):
    rng = np.random.default_rng(5)
    kinds = rng.dirichlet(np.ones(5), size=3)
    counts = np.array([rng.multinomial(6, kinds[task % 3]) for task in range(40)]).astype(np.int32)
    product = dirichlet_product(np.ones(5), GROUP_START, int(counts.sum()) if whole else 0)
    counts = counts if whole else counts * rng.uniform(0.5, 1.5, size=counts.shape)

    def go_on(seating: Seating, rng: np.random.Generator) -> list[list[int]]:
        seats = []
        for _ in range(20):
            seating.sweep(rng.random(len(counts)))
            split_and_merge(seating, rng)
            seating.concentration = rng.gamma(1.0 + seating.n_clusters)
            seats.append(seating.seat.tolist())
        return seats

    seating = Seating(counts, product, CONCENTRATION)
    go_on(seating, rng)
    # What is written down: seats, concentration and the state of the generator.
    written = seating.seat.tolist(), seating.concentration, rng.bit_generator.state
    went_on = go_on(seating, rng)
    again, generator = Seating(counts, product, written[1]), np.random.default_rng()
    again.place(np.array(written[0]))
    generator.bit_generator.state = written[2]
    assert go_on(again, generator) == went_on
    assert len({tuple(seats) for seats in went_on}) > 1
