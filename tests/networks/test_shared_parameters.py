"""Shared tables against numerical integration, simulation of the hierarchy, and tasks whose kinship is known."""

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.stats import dirichlet

from kinfolk.networks.model.network import make_network
from kinfolk.networks.model.parameters import learn_tables
from kinfolk.networks.model.scores import CRITERIA
from kinfolk.networks.model.shared_parameters import borrowed_counts, learn_shared_tables, log_marginal

CARDS = np.array([2, 3, 2, 3, 2, 2, 3, 2])
PARENTS = [[], [0], [0, 1], [1], [2, 3], [], [4, 5], [6]]


def related_networks(rng, n_tasks, strength):
    """Networks of one structure whose rows of tables vary around common ones, as Dir(strength · common)."""
    tables_per_task = [[] for _ in range(n_tasks)]
    for v, parents in enumerate(PARENTS):
        shape = tuple(CARDS[p] for p in parents)
        common = rng.dirichlet(np.full(CARDS[v], 0.8), size=shape).reshape(-1, CARDS[v])
        for tables in tables_per_task:
            if strength == 0:
                rows = rng.dirichlet(np.full(CARDS[v], 0.5), size=len(common))
            elif strength == np.inf:
                rows = common
            else:
                rows = np.stack([rng.dirichlet(strength * mean + 1e-3) for mean in common])
            tables.append(rows.reshape(*shape, CARDS[v]))
    return [network_of(tables) for tables in tables_per_task]


def network_of(tables):
    return make_network([f"x{v}" for v in range(len(CARDS))], [list(range(c)) for c in CARDS], PARENTS, tables)


def compare(strength, n_rows, n_tasks=5, n_repeats=8):
    """Loss on held-out rows, in nats a row, of independent, pooled and shared tables; and the strengths learnt."""
    losses, strengths = [], []
    for seed in range(n_repeats):
        rng = np.random.default_rng(seed)
        networks = related_networks(rng, n_tasks, strength)
        rows = [network.sample(n_rows, rng) for network in networks]
        held_out = [network.sample(2000, rng) for network in networks]
        shared = learn_shared_tables(rows, [PARENTS] * n_tasks, CARDS)
        pooled = learn_tables(np.concatenate(rows), PARENTS, CARDS)
        independent = [learn_tables(its, PARENTS, CARDS) for its in rows]
        loss = [
            np.mean(
                [
                    (network.log_probability(its) - network_of(tables).log_probability(its)).mean()
                    for network, tables, its in zip(networks, candidates, held_out, strict=True)
                ]
            )
            for candidates in (independent, [pooled] * n_tasks, shared.tables)
        ]
        losses.append(loss)
        strengths.append(np.median(shared.strengths))
    return np.array(losses).T, np.array(strengths)


def test_the_marginal_likelihood_is_the_integral_over_the_rows_of_a_table():
    rng = np.random.default_rng(0)
    owners = np.arange(2)
    for _ in range(5):
        counts, prior, borrowed = rng.integers(0, 5, (2, 1, 2)).astype(float), 0.8, 3 * rng.random((2, 1, 2)) + 0.5
        expected = 0.0
        for t in range(2):
            density = dirichlet(prior + borrowed[t, 0])
            n = counts[t, 0]
            expected += np.log(quad(lambda p, d=density, n=n: d.pdf([p, 1 - p]) * p ** n[0] * (1 - p) ** n[1], 0, 1)[0])
        assert log_marginal(counts, owners, prior, borrowed) == pytest.approx(expected, rel=1e-6)


def test_the_marginal_likelihood_of_three_states_is_the_integral_over_the_simplex():
    counts, borrowed = np.array([[[2.0, 0.0, 3.0]]]), np.array([[[1.0, 0.4, 2.0]]])
    density = dirichlet(1.0 + borrowed[0, 0])
    integral = dblquad(lambda q, p: density.pdf([p, q, 1 - p - q]) * p**2 * (1 - p - q) ** 3, 0, 1, 0, lambda p: 1 - p)
    assert log_marginal(counts, np.array([0]), 1.0, borrowed) == pytest.approx(np.log(integral[0]), rel=1e-6)


def test_borrowed_counts_have_the_mean_and_the_spread_that_the_hierarchy_gives_a_task():
    """Kin with many rows show their θ_i; then m ~ Dir(M·m̂) and θ ~ Dir(s·m) can be simulated."""
    rng = np.random.default_rng(1)
    strength = 8.0
    counts = np.zeros((4, 1, 3))
    counts[1:, 0] = [[50, 30, 20], [10, 5, 5], [2, 2, 0]]
    borrowed = borrowed_counts(counts, np.array([0]), strength)[0, 0]
    n = counts[1:, 0].sum(axis=1)
    worth = (n * (1 + strength) / (n + strength)).sum()
    mean = ((1 + strength) / (n + strength)) @ counts[1:, 0] / worth
    common = rng.dirichlet(worth * mean, size=400_000)
    gammas = rng.standard_gamma(strength * common)
    theta = gammas / gammas.sum(axis=1, keepdims=True)
    matched = dirichlet(borrowed)
    np.testing.assert_allclose(matched.mean(), theta.mean(axis=0), atol=0.002)
    np.testing.assert_allclose(matched.var(), theta.var(axis=0), rtol=0.02)


def test_a_kins_rows_are_worth_what_the_spread_of_their_frequencies_says():
    """e·N plain rows have frequencies as spread as N rows of a task that follows the common mean with strength s."""
    rng = np.random.default_rng(2)
    strength, n_rows, mean = 5.0, 40, np.array([0.3, 0.7])
    theta = rng.dirichlet(strength * mean, size=400_000)
    frequency = rng.binomial(n_rows, theta[:, 0]) / n_rows
    counts = np.zeros((2, 1, 2))
    counts[1, 0] = n_rows * mean
    borrowed = borrowed_counts(counts, np.array([0]), strength).sum()
    worth = mean[0] * mean[1] / frequency.var()
    assert borrowed == pytest.approx(worth * strength / (1 + worth + strength), rel=0.01)


def test_strength_runs_from_borrowing_nothing_to_pooling():
    counts = np.random.default_rng(3).integers(0, 9, (4, 6, 3)).astype(float)
    owners = np.array([0, 2])
    np.testing.assert_allclose(borrowed_counts(counts, owners, 1e-12), 0, atol=1e-11)
    everything = counts.sum(axis=0) - counts[owners]
    np.testing.assert_allclose(borrowed_counts(counts, owners, 1e12), everything, rtol=1e-9)


def test_unrelated_tasks_borrow_little_and_lose_nothing():
    (independent, pooled, shared), strengths = compare(strength=0, n_rows=300)
    assert (strengths < 4).all()  # rows, of 300
    assert (shared < independent).all()
    assert (shared < 0.2 * pooled).all()
    rng = np.random.default_rng(0)
    rows = [network.sample(20_000, rng) for network in related_networks(rng, 5, 0)]
    tables = learn_shared_tables(rows, [PARENTS] * 5, CARDS).tables
    for its_rows, its_tables in zip(rows, tables, strict=True):
        for table, alone in zip(its_tables, learn_tables(its_rows, PARENTS, CARDS), strict=True):
            assert np.median(np.abs(table - alone)) < 1e-3


def test_identical_tasks_come_close_to_pooling():
    (independent, pooled, shared), strengths = compare(strength=np.inf, n_rows=200)
    assert (strengths > 100).all()
    left = (shared - pooled) / (independent - pooled)
    assert left.mean() < 0.1
    assert (left < 0.25).all()


@pytest.mark.parametrize(("strength", "n_rows"), [(10, 100), (30, 100), (30, 400)])
def test_tables_of_related_tasks_beat_both_independent_and_pooled_ones_on_held_out_rows(strength, n_rows):
    (independent, pooled, shared), strengths = compare(strength, n_rows)
    assert (shared < independent).all()
    assert (shared < pooled).all()
    assert shared.mean() < 0.8 * min(independent.mean(), pooled.mean())
    assert strength / 2 < np.median(strengths) < strength * 2


def test_a_task_alone_has_its_independent_tables():
    rows = np.random.default_rng(0).integers(0, CARDS, size=(50, len(CARDS)))
    for score in ("bdeu", "k2", "bic"):
        (tables,) = learn_shared_tables([rows], [PARENTS], CARDS, CRITERIA[score], ess=3.0).tables
        for table, alone in zip(tables, learn_tables(rows, PARENTS, CARDS, CRITERIA[score], ess=3.0), strict=True):
            np.testing.assert_allclose(table, alone, rtol=1e-12)


def test_tasks_of_other_structure_are_counted_for_the_familys_own_parents():
    """Kin without an arc still show how the child follows the parent, in rows where neither is missing."""
    rng = np.random.default_rng(4)
    rows = [network.sample(80, rng) for network in related_networks(rng, 4, 50)]
    for its in rows:
        its[rng.random(its.shape) < 0.2] = -1
    empty = [[] for _ in PARENTS]
    same = learn_shared_tables(rows, [PARENTS] * 4, CARDS)
    mixed = learn_shared_tables(rows, [PARENTS, empty, PARENTS, empty], CARDS)
    for v in range(len(CARDS)):
        if not PARENTS[v]:
            np.testing.assert_allclose(mixed.tables[0][v], same.tables[0][v], rtol=1e-9)
        assert mixed.tables[1][v].shape == (CARDS[v],)
    # By hand, for one family and the strength learnt.
    v, (parent,) = 3, PARENTS[3]
    counts = np.zeros((4, 3, 3))
    for t, its in enumerate(rows):
        whole = its[(its[:, parent] >= 0) & (its[:, v] >= 0)]
        np.add.at(counts[t], (whole[:, parent], whole[:, v]), 1)
    s = mixed.strengths[v]
    each = (1 + s) / (counts.sum(axis=2) + s)
    worth = (each * counts.sum(axis=2))[1:].sum(axis=0)
    borrowed = (each[..., None] * counts)[1:].sum(axis=0) * (s / (1 + worth + s))[:, None]
    expected = counts[0] + borrowed + 1 / 9
    np.testing.assert_allclose(mixed.tables[0][v], expected / expected.sum(axis=1, keepdims=True), rtol=1e-9)


def test_a_task_that_lacks_a_parent_is_left_out_of_the_family():
    rng = np.random.default_rng(5)
    rows = [network.sample(80, rng) for network in related_networks(rng, 3, 50)]
    rows[2][:, 1] = -1
    without = [its if v != 1 else [] for v, its in enumerate([[], [], [0], [], [2, 3], [], [4, 5], [6]])]
    three = learn_shared_tables(rows, [PARENTS, PARENTS, without], CARDS)
    two = learn_shared_tables(rows[:2], [PARENTS, PARENTS], CARDS)
    np.testing.assert_allclose(three.tables[0][1], two.tables[0][1], rtol=1e-6)
    # The third task has child 3 but not its parent 1: only its own family, without parents, bears on the strength.
    assert three.tables[0][3].shape == two.tables[0][3].shape
    assert three.tables[2][3].shape == (3,)


def test_the_order_of_tasks_does_not_matter():
    rng = np.random.default_rng(6)
    rows = [network.sample(60, rng) for network in related_networks(rng, 4, 20)]
    forwards = learn_shared_tables(rows, [PARENTS] * 4, CARDS)
    backwards = learn_shared_tables(rows[::-1], [PARENTS] * 4, CARDS)
    np.testing.assert_allclose(forwards.strengths, backwards.strengths, rtol=1e-6)
    for one, other in zip(forwards.tables, backwards.tables[::-1], strict=True):
        for table, same in zip(one, other, strict=True):
            np.testing.assert_allclose(table, same, rtol=1e-6)


def test_a_row_of_weight_two_counts_as_two_rows():
    rng = np.random.default_rng(7)
    rows = [network.sample(40, rng) for network in related_networks(rng, 3, 20)]
    weights = [np.where(np.arange(40) < 15, 2.0, 1.0)] * 3
    weighted = learn_shared_tables(rows, [PARENTS] * 3, CARDS, weights_per_task=weights)
    doubled = learn_shared_tables([np.concatenate([its, its[:15]]) for its in rows], [PARENTS] * 3, CARDS)
    np.testing.assert_allclose(weighted.strengths, doubled.strengths, rtol=1e-6)
    np.testing.assert_allclose(weighted.tables[1][4], doubled.tables[1][4], rtol=1e-6)


def test_a_table_too_large_is_refused_by_the_variables_name():
    cards = np.full(40, 4)
    parents = [[] for _ in range(39)] + [list(range(39))]
    with pytest.raises(ValueError, match=r"^variable 'last': with its 39 parents"):
        learn_shared_tables([np.zeros((3, 40), dtype=int)] * 2, [parents] * 2, cards, variables=["x"] * 39 + ["last"])


def test_tasks_that_say_nothing_of_kinship_leave_the_strength_at_the_median_of_its_prior():
    """One row each of a variable without parents: whatever the strength is, hardly anything changes."""
    rows = [np.zeros((1, 1), dtype=np.int32)] * 2
    assert learn_shared_tables(rows, [[[]]] * 2, np.array([1])).strengths == pytest.approx([10.0], rel=0.01)
