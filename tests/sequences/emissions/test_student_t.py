"""Student's t in each state against scipy's, and learning it against sums over a grid of locations and precisions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import gamma, kstest, norm
from scipy.stats import t as student

from kinfolk.sequences.inference.mean_field import fit_cluster, start_from_posteriors
from kinfolk.sequences.inference.sweep import start_state, sweep
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.emissions.channels import Channels
from kinfolk.sequences.model.emissions.emission import Asked
from kinfolk.sequences.model.emissions.gaussian_diagonal import LEAST_SPREAD
from kinfolk.sequences.model.emissions.student_t import FREEDOM, StudentT
from kinfolk.sequences.model.ndp_ihmm import ClusterPrior, Priors
from kinfolk.sequences.model.sequences import Sequences

H = 0.8
EMISSION = StudentT(np.array([10.0, -1.0]), np.array([2.0, 0.5]), H)
X = np.array([[11.0, -0.8], [9.0, np.nan], [30.0, -1.4], [8.5, 2.0], [10.2, -1.1]])
# One column, with a number far away.
ONE = StudentT(np.array([10.0]), np.array([2.0]), H)
NUMBERS = np.array([[11.0], [9.0], [30.0], [8.5], [10.2]])


def rows(log_densities):
    return log_densities.rows[log_densities.row]


def alone(n):
    return np.zeros(n, dtype=np.int64)


class Grid:
    """Locations and precisions of z, wide and fine, and the log prior of each cell."""

    def __init__(self):
        self.location = np.linspace(-15.0, 15.0, 1501)
        self.log_precision = np.linspace(-12.0, 9.0, 701)
        m, u = np.meshgrid(self.location, self.log_precision, indexing="ij")
        shape, rate = 1.0 + 0.5 * H, 0.5 * (H + LEAST_SPREAD)
        self.precision = np.exp(u)
        cell = np.log((self.location[1] - self.location[0]) * (self.log_precision[1] - self.log_precision[0]))
        # The precision's density times the precision, for steps of its logarithm.
        self.log_prior = gamma(shape, scale=1.0 / rate).logpdf(self.precision) + u + cell
        self.log_prior += norm.logpdf(m, 0.0, 1.0 / np.sqrt(H * self.precision))
        self.m = m

    def log_likelihood(self, numbers):
        z = (numbers[:, 0] - 10.0) / 2.0
        each = [student.logpdf(one, FREEDOM, self.m, 1.0 / np.sqrt(self.precision)) - np.log(2.0) for one in z]
        return np.sum(each, axis=0)


@pytest.fixture(scope="module")
def grid():
    return Grid()


def test_densities_are_those_of_students_t_and_gaps_are_left_out():
    parameters = EMISSION.draw_parameters(np.zeros((3, EMISSION.n_statistics)), np.random.default_rng(0))
    location, scale = EMISSION.means(parameters)[0], EMISSION.scale / np.sqrt(parameters[:, 2:])
    found = rows(EMISSION.log_densities(parameters, (X,)))
    for step, state in np.ndindex(5, 3):
        each = student.logpdf(np.nan_to_num(X[step]), FREEDOM, location[state], scale[state])
        assert found[step, state] == pytest.approx(each[~np.isnan(X[step])].sum())
    missing = np.full((4, 2), np.nan)
    np.testing.assert_array_equal(rows(EMISSION.log_densities(parameters, (missing,))), 0.0)
    np.testing.assert_array_equal(EMISSION.statistics((missing,), alone(4), 1), 0.0)


def test_weights_are_drawn_given_the_distance_and_expected_as_they_are_drawn():
    parameters = np.array([[0.5, 1.0, 2.0, 0.3]])
    many = np.tile(X[2], (20_000, 1))
    [drawn] = EMISSION.weighed((many,), alone(20_000), parameters, np.random.default_rng(1))
    [expected] = EMISSION.weighed((many[:1],), alone(1), parameters)
    z = (X[2] - EMISSION.centre) / EMISSION.scale
    for column, precision in enumerate((2.0, 0.3)):
        distance = precision * (z[column] - parameters[0, column]) ** 2
        law = gamma(0.5 * (FREEDOM + 1.0), scale=2.0 / (FREEDOM + distance))
        assert kstest(drawn[:, 2 + column], law.cdf).pvalue > 1e-3
        assert expected[0, 2 + column] == pytest.approx(law.mean())


def test_observations_without_weights_have_the_prior_of_weights():
    """With q(τ) = p(τ), what hangs on no parameter is ½ E log τ."""
    prior = gamma(0.5 * FREEDOM, scale=2.0 / FREEDOM)
    expected, _ = quad(lambda weight: 0.5 * np.log(weight) * prior.pdf(weight), 0.0, np.inf)
    weight, constant = np.split(EMISSION.step_statistics((X,)), [2, 4, 8], axis=1)[1::2]
    np.testing.assert_array_equal(weight, ~np.isnan(X))
    np.testing.assert_allclose(constant, ~np.isnan(X) * expected, rtol=1e-6)


def test_the_evidence_given_weights_is_a_sum_over_the_grid(grid):
    weights = np.array([[1.3], [0.4], [0.02], [2.0], [0.9]])
    statistics = ONE.statistics((np.concatenate([NUMBERS, weights, np.zeros((5, 1))], axis=1),), alone(5), 1)
    z = (NUMBERS[:, 0] - 10.0) / 2.0
    each = [
        norm.logpdf(one, grid.m, 1.0 / np.sqrt(weight * grid.precision)) - np.log(2.0) - 0.5 * np.log(weight)
        for one, weight in zip(z, weights[:, 0], strict=True)
    ]
    expected = logsumexp(grid.log_prior + np.sum(each, axis=0))
    assert ONE.log_marginal(statistics)[0] == pytest.approx(expected, abs=1e-3)


def test_parameters_and_weights_drawn_in_turn_have_the_posterior_of_the_grid(grid):
    log_posterior = grid.log_prior + grid.log_likelihood(NUMBERS)
    share = np.exp(log_posterior - logsumexp(log_posterior))
    wanted = [(share * f).sum() for f in (grid.m, grid.m**2, np.log(grid.precision), grid.m > 0.0)]
    n_chains, rng = 400, np.random.default_rng(2)
    states = np.repeat(np.arange(n_chains), 5)
    observations = (np.tile(NUMBERS, (n_chains, 1)),)
    parameters = np.full((n_chains, 2), np.nan)
    found = np.zeros((n_chains, 4))
    for turn in range(140):
        weighed = ONE.weighed(observations, states, parameters, rng)
        parameters = ONE.draw_parameters(ONE.statistics(weighed, states, n_chains), rng)
        if turn >= 20:
            m, log_precision = parameters[:, 0], np.log(parameters[:, 1])
            found += np.column_stack([m, m**2, log_precision, m > 0.0]) / 120
    error = found.std(axis=0, ddof=1) / np.sqrt(n_chains)
    assert (np.abs(found.mean(axis=0) - wanted) < 4.0 * error).all()
    assert error[0] < 0.02


def test_the_expected_log_density_is_the_best_bound_that_weights_can_give():
    statistics = ONE.statistics((NUMBERS[[0, 1, 3]],), alone(3), 1)
    found = rows(ONE.expected_log_densities(statistics, (NUMBERS,)))[:, 0]
    n, weight, linear, square, last = np.split(ONE.expected_natural_parameters(statistics)[0], 5)
    for z, own in zip((NUMBERS[:, 0] - 10.0) / 2.0, found, strict=True):

        def joint(tau, z=z):
            """The exponential of the expected log density given τ, times τ's own density."""
            exponent = n + 0.5 * np.log(tau) + tau * (weight + linear * z + square * z * z)
            return float(np.exp(exponent[0])) * gamma(0.5 * FREEDOM, scale=2.0 / FREEDOM).pdf(tau)

        assert own == pytest.approx(np.log(quad(joint, 0.0, np.inf, epsabs=0.0)[0]), abs=1e-6)
    np.testing.assert_array_equal(last, 1.0)


def test_a_variational_fit_of_one_state_climbs_to_a_bound_just_below_the_evidence(grid):
    evidence = logsumexp(grid.log_prior + grid.log_likelihood(NUMBERS))
    certain = np.ones((5, 1))
    statistics, bounds = ONE.expected_statistics((NUMBERS,), certain), []
    for _ in range(60):
        densities, divergence = ONE.expected(statistics, (NUMBERS,))
        bounds.append(rows(densities).sum() - divergence)
        statistics = ONE.expected_statistics((NUMBERS,), certain, statistics)
    assert (np.diff(bounds) > -1e-9).all()
    assert bounds[-1] < evidence
    assert bounds[-1] > evidence - 1.0
    assert bounds[-1] > bounds[0] + 0.5
    # Once settled, what is learnt is as probable as the fit says, τ integrated out.
    assert ONE.log_marginal(statistics)[0] == pytest.approx(bounds[-1], abs=1e-6)


def test_weights_as_expected_bound_the_evidence_from_below_whatever_the_parameters(grid):
    evidence = logsumexp(grid.log_prior + grid.log_likelihood(NUMBERS))
    found = []
    for parameters in ([0.1, 1.0], [0.0, 6.0], [3.0, 0.05]):
        weighed = ONE.weighed((NUMBERS,), alone(5), np.array([parameters]))
        found.append(ONE.log_marginal(ONE.statistics(weighed, alone(5), 1))[0])
    assert max(found) < evidence
    assert max(found) > evidence - 1.0


def test_numbers_far_away_move_neither_where_states_are_nor_which_state_a_step_is_in():
    rng = np.random.default_rng(3)
    states = np.repeat(np.tile([0, 1], 10), 15)
    x = rng.normal(np.where(states, 4.0, -4.0), 0.5)[:, None]
    x[[20, 77, 140, 250]] += np.array([[60.0], [-45.0], [90.0], [-70.0]])
    emission = StudentT.made_for(x, 0.3, Asked("x"))
    assert emission.scale[0] < 8.0
    sequences = Sequences((x,), np.array([0, 300]), np.array([0, 1]))
    start = start_from_posteriors(sequences, emission, np.eye(2)[states])
    fit = fit_cluster(sequences, emission, ClusterPrior(), start)
    location = np.sort((emission.centre + emission.scale * emission._posterior(fit.statistics).mean).ravel())
    np.testing.assert_allclose(location, [-4.0, 4.0], atol=0.3)
    state = start_state(sequences, emission, Priors(), n_clusters=1, n_states=4, rng=rng, states=states)
    for _ in range(15):
        state = sweep(state, sequences, emission, Priors(), rng)
    assert (state.states[[20, 77, 140, 250]] == state.states[[21, 78, 141, 251]]).sum() >= 3


def test_drawn_observations_bring_their_parameters_back():
    rng = np.random.default_rng(4)
    parameters = np.array([[0.5, 1.0, 2.0, 0.3], [-2.0, 0.0, 5.0, 1.0]])
    states = rng.integers(2, size=20_000)
    drawn = EMISSION.draw_observations(parameters, states, rng)
    again = EMISSION.draw_parameters(EMISSION.statistics(drawn, states, 2), rng)
    for _ in range(30):
        again = EMISSION.draw_parameters(
            EMISSION.statistics(EMISSION.weighed(drawn, states, again, rng), states, 2), rng
        )
    np.testing.assert_allclose(again, parameters, rtol=0.1, atol=0.06)
    [square] = EMISSION.mean_squares(parameters)
    assert square[1, 1] == pytest.approx((drawn[0][states == 1, 1] ** 2).mean(), rel=0.1)


def test_channels_weigh_each_channel_by_its_own_parameters():
    both = Channels((Categorical(3, H), EMISSION))
    codes = np.array([0, 2, 1, -1, 1])
    parameters = both.draw_parameters(np.zeros((2, both.n_statistics)), np.random.default_rng(5))
    states = np.array([0, 1, 0, 1, 0])
    weighed = both.weighed((codes, X), states, parameters)
    np.testing.assert_array_equal(weighed[1], EMISSION.weighed((X,), states, parameters[:, 4:])[0])
    assert not both.is_conjugate
    given = both.statistics(weighed, states, 2)
    posteriors = np.random.default_rng(6).dirichlet(np.ones(2), size=5)
    found = both.expected_statistics((codes, X), posteriors, given)
    np.testing.assert_array_equal(found[:, 3:], EMISSION.expected_statistics((X,), posteriors, given[:, 3:]))


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_units_and_outliers_do_not_move_the_prior(factor):
    x = factor * np.random.default_rng(7).normal(3.0, 2.0, size=(400, 1))
    clean, dirty = (StudentT.made_for(values, 0.3, Asked("x")) for values in (x, np.where(x == x.max(), 1e9 * x, x)))
    assert dirty.centre == pytest.approx(clean.centre, rel=1e-9)
    assert dirty.scale == pytest.approx(clean.scale, rel=1e-9)
    assert clean.scale[0] == pytest.approx(2.0 * factor, rel=0.15)


def test_a_column_half_of_which_is_one_number_has_a_spread_all_the_same():
    x = np.append(np.zeros(60), np.arange(20.0))[:, None]
    assert StudentT.made_for(x, 0.3, Asked("x")).scale[0] > 1.0
