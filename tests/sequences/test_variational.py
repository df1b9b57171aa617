"""One cluster by mean field: the bound against exact sums over all paths, and that it never falls."""

import numpy as np
import pytest
from scipy import special
from scipy.stats import dirichlet

from kinfolk.maths.digamma import digamma, trigamma
from kinfolk.sequences.inference.mean_field import (
    base_bound,
    base_of,
    first_weights,
    fit_cluster,
    log_rising,
    start_from_posteriors,
    weigh_states,
)
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.ndp_ihmm import ClusterPrior
from kinfolk.sequences.model.sequences import Sequences
from tests.sequences.oracle import exact_posterior


def two_tasks(first, second):
    bounds = np.array([0, len(first), len(first) + len(second)])
    return Sequences((np.array([*first, *second]),), bounds, np.array([0, 1, 2]))


def random_start(sequences, emission, n_states, seed):
    posteriors = np.random.default_rng(seed).dirichlet(np.ones(n_states), sequences.n_steps)
    return start_from_posteriors(sequences, emission, posteriors)


def bound_by_iteration(sequences, emission, hyper, start, n=25):
    """The bound after 1, 2, … iterations, by running each number of them anew."""
    return [
        fit_cluster(sequences, emission, hyper, start, n_iterations=i, tolerance=-np.inf).bound for i in range(1, n)
    ]


@pytest.mark.parametrize("kappa", [0.0, 0.7])
@pytest.mark.parametrize(("gamma", "alpha", "strength"), [(1.0, 1.0, 0.3), (4.0, 3.0, 1.0), (0.5, 0.4, 0.1)])
@pytest.mark.parametrize("data", [([0, 0, 1, 1], [1, 1, 0]), ([0, 0, 0, 0], [1, 1, 1, 1]), ([0], [1])])
def test_bound_is_below_the_exact_evidence_and_near_it(data, gamma, alpha, strength, kappa):
    exact = exact_posterior(data, 2, 1, eta=1.0, gamma=gamma, alpha=alpha, kappa=kappa, strength=strength)
    sequences, emission = two_tasks(*data), Categorical(2, strength)
    hyper = ClusterPrior(gamma, alpha, kappa, 2)
    fits = [fit_cluster(sequences, emission, hyper, random_start(sequences, emission, 2, s)) for s in range(5)]
    best = max(fit.bound for fit in fits)
    assert all(fit.bound < exact.log_evidence for fit in fits)
    # Two labelled states, of which one mode is seen, and what mean field loses on a handful of steps.
    assert best > exact.log_evidence - 4.0


@pytest.mark.parametrize("kappa", [0.0, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_bound_rises_with_every_iteration(seed, kappa):
    rng = np.random.default_rng(seed)
    codes = rng.integers(4, size=120)
    codes[rng.random(120) < 0.1] = -1
    sequences = Sequences((codes,), np.array([0, 1, 40, 80, 120]), np.array([0, 2, 3, 4]))
    emission = Categorical(4)
    start = random_start(sequences, emission, 6, seed)
    bounds = np.array(bound_by_iteration(sequences, emission, ClusterPrior(2.0, 1.5, kappa, 8), start))
    assert np.isfinite(bounds).all()
    assert (np.diff(bounds) > -1e-9).all()
    assert bounds[-1] > bounds[0] + 1.0


def test_expected_transitions_and_statistics_count_every_step_once():
    rng = np.random.default_rng(0)
    sequences = Sequences((rng.integers(3, size=60),), np.array([0, 25, 40, 60]), np.array([0, 2, 3]))
    emission = Categorical(3)
    fit = fit_cluster(sequences, emission, ClusterPrior(), random_start(sequences, emission, 4, 1), n_iterations=5)
    assert fit.statistics.sum() == pytest.approx(60)
    assert fit.counts.sum(axis=(1, 2)) == pytest.approx([40, 20])
    assert fit.counts[:, 0].sum(axis=1) == pytest.approx([2, 1])


def test_missing_observations_leave_the_bound_of_what_is_left():
    emission, hyper = Categorical(2), ClusterPrior(n_states=2)
    whole = Sequences((np.array([0, 0, 0, 1, 1, 1]),), np.array([0, 6]), np.array([0, 1]))
    longer = Sequences((np.array([0, 0, 0, 1, 1, 1, -1, -1]),), np.array([0, 8]), np.array([0, 1]))
    bounds = []
    for sequences in (whole, longer):
        start = random_start(sequences, emission, 1, 0)
        bounds.append(fit_cluster(sequences, emission, hyper, start).bound)
    # With one state, steps without observations only add transitions from that state to itself.
    assert bounds[0] - 1.0 < bounds[1] < bounds[0]


def test_one_state_has_the_evidence_of_independent_codes_when_nothing_else_is_possible():
    codes = np.array([0, 1, 1, 2, 0, 0])
    sequences, emission = Sequences((codes,), np.array([0, 6]), np.array([0, 1])), Categorical(3, 0.5)
    start = random_start(sequences, emission, 1, 0)
    bound = fit_cluster(sequences, emission, ClusterPrior(n_states=1), start).bound
    assert bound == pytest.approx(float(emission.log_marginal(np.bincount(codes)[None].astype(float))[0]), abs=1e-6)


def test_digamma_and_trigamma_are_those_of_scipy():
    x = np.geomspace(1e-6, 1e5, 60)
    assert np.array([digamma(v) for v in x]) == pytest.approx(special.digamma(x), rel=1e-11)
    assert np.array([trigamma(v) for v in x]) == pytest.approx(special.polygamma(1, x), rel=1e-10)


def test_geometric_means_are_those_of_dirichlet_draws():
    weights, gamma, n_states = np.array([5.0, 2.0]), 1.2, 4
    shapes = np.array([5.0, 2.0, 0.3, 0.3])
    draws = dirichlet(shapes).rvs(200_000, random_state=np.random.default_rng(0))
    found = base_of(weights, ClusterPrior(gamma, n_states=n_states))
    assert found == pytest.approx(np.exp(np.log(draws[:, :2]).mean(axis=0)), rel=5e-3)


def test_base_bound_is_minus_the_divergence_of_dirichlet_distributions():
    weights, gamma, n_states = np.array([5.0, 2.0]), 1.2, 4
    q, p = dirichlet(np.array([5.0, 2.0, 0.3, 0.3])), dirichlet(np.full(4, 0.3))
    draws = q.rvs(100_000, random_state=np.random.default_rng(0))
    # Draws that are zero in floats have no density.
    draws = np.maximum(draws, 1e-300)
    draws /= draws.sum(axis=1, keepdims=True)
    ratio = ((np.array([4.7, 1.7]) * np.log(draws[:, :2])).sum(axis=1)).mean()
    constant = special.gammaln(7.6) - special.gammaln([5.0, 2.0, 0.3, 0.3]).sum()
    constant -= special.gammaln(1.2) - 4 * special.gammaln(0.3)
    assert base_bound(weights, ClusterPrior(gamma, n_states=n_states), 0.0) == pytest.approx(
        -(ratio + constant), abs=0.02
    )
    assert q.alpha.sum() > p.alpha.sum()


@pytest.mark.parametrize("stickiness", [0.0, 0.05, 1.5])
def test_expected_rising_factorials_are_above_what_the_bound_takes_for_them(stickiness):
    """E f(log β) ≥ f(E log β) − Var(log β)/8, by a million draws of β; counts below one are where it could fail."""
    rng = np.random.default_rng(0)
    for shape, rest in ((0.4, 3.0), (2.0, 5.0), (20.0, 30.0)):
        u = np.log(np.maximum(rng.beta(shape, rest, 200_000), 1e-300))
        variance = special.polygamma(1, shape) - special.polygamma(1, shape + rest)
        mean = special.digamma(shape) - special.digamma(shape + rest)
        for n in (1e-6, 1e-3, 0.1, 0.5, 0.9, 1.0, 2.5, 40.0):

            def f(log_beta, n=n):
                x = 1.7 * np.exp(log_beta) + stickiness
                return special.gammaln(x + n) - special.gammaln(x)

            values = f(u)
            assert values.mean() + 4 * values.std() / 400 > f(mean) - variance / 8


def test_slopes_of_log_rising_are_its_derivatives():
    rng = np.random.default_rng(0)
    counts, rho, base = rng.gamma(1.0, size=(2, 4, 3)), np.array([1.0, 0.3]), np.array([0.5, 0.2, 0.1])
    prior = ClusterPrior(1.0, 1.3, 0.4)
    _, slopes = log_rising(counts, rho, base, prior)
    for s in range(3):
        up, down = base.copy(), base.copy()
        up[s] *= np.exp(1e-5)
        down[s] *= np.exp(-1e-5)
        difference = log_rising(counts, rho, up, prior)[0] - log_rising(counts, rho, down, prior)[0]
        assert slopes[s] == pytest.approx(difference / 2e-5, rel=1e-6)


def test_log_rising_is_that_of_gamma_functions_for_parts_of_a_visit_too():
    counts, base, prior = (
        np.random.default_rng(1).uniform(0.05, 0.3, (1, 4, 3)),
        np.array([0.5, 0.2, 0.1]),
        ClusterPrior(1.0, 1.3, 0.4),
    )
    x = prior.alpha * np.tile(base, (4, 1)) + prior.stickiness * np.eye(4, 3, k=-1)
    total = prior.alpha + prior.stickiness * (np.arange(4) > 0)
    rising = np.sum(special.gammaln(x + counts[0]) - special.gammaln(x))
    rising -= np.sum(special.gammaln(total + counts[0].sum(axis=1)) - special.gammaln(total))
    assert log_rising(counts, np.ones(1), base, prior)[0] == pytest.approx(rising, rel=1e-10)


def test_base_weights_settle_at_prior_plus_tables():
    rng = np.random.default_rng(0)
    counts = rng.gamma(5.0, size=(3, 4, 3))
    hyper = ClusterPrior(1.0, 2.0, 0.0, 6)
    weights = first_weights(counts, hyper)
    for _ in range(200):
        weights = weigh_states(counts, np.ones(3), weights, hyper, 1)
    _, tables = log_rising(counts, np.ones(3), base_of(weights, hyper), hyper)
    # The variances of log β pull a little towards larger weights.
    assert weights == pytest.approx(1 / 6 + tables, rel=0.03)


def test_a_fit_goes_on_where_it_ended():
    rng = np.random.default_rng(3)
    sequences = Sequences((rng.integers(3, size=80),), np.array([0, 80]), np.array([0, 1]))
    emission, hyper = Categorical(3), ClusterPrior(n_states=5)
    start = random_start(sequences, emission, 3, 0)
    half = fit_cluster(sequences, emission, hyper, start, n_iterations=6, tolerance=-np.inf)
    resumed = fit_cluster(sequences, emission, hyper, half, weights=half.weights, n_iterations=5, tolerance=-np.inf)
    whole = fit_cluster(sequences, emission, hyper, start, n_iterations=10, tolerance=-np.inf)
    assert resumed.bound == pytest.approx(whole.bound, abs=1e-9)


def test_a_start_counts_firsts_of_all_sequences_and_no_step_from_one_to_the_next():
    # The first task has two sequences, 0 1 and 1 0 0; the second has one, 1 1.
    states = np.array([0, 1, 1, 0, 0, 1, 1])
    sequences = Sequences((states,), np.array([0, 2, 5, 7]), np.array([0, 2, 3]))
    start = start_from_posteriors(sequences, Categorical(2), np.eye(2)[states])
    first = [[1.0, 1.0], [1.0, 1.0], [1.0, 0.0]]
    second = [[0.0, 1.0], [0.0, 0.0], [0.0, 1.0]]
    assert start.counts.tolist() == [first, second]
