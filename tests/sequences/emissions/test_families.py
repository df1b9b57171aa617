"""Which family a channel gets, and that its prior has the data's units."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_t

from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.emissions.channels import Channels
from kinfolk.sequences.model.emissions.families import choose_emission
from kinfolk.sequences.model.emissions.gaussian_diagonal import LEAST_SPREAD, GaussianDiagonal
from kinfolk.sequences.model.emissions.gaussian_full import GaussianFull
from kinfolk.sequences.model.emissions.poisson import Poisson

RNG = np.random.default_rng(0)
STATES = RNG.integers(3, size=60)
NUMBERS = RNG.normal(size=(60, 3)) + STATES[:, None] * np.array([2.0, 0.0, -1.0])
NUMBERS[4, 1] = np.nan
COUNTS = RNG.poisson(4.0, size=60)


def evidence_of_states(x: np.ndarray, kind: str) -> float:
    """How much the data speaks for the states, against one state."""
    emission = choose_emission((x,), kind)
    apart = emission.log_marginal(emission.statistics((x,), STATES, 3)).sum()
    return float(apart - emission.log_marginal(emission.statistics((x,), np.zeros_like(STATES), 1)).sum())


def test_few_integers_are_categorical_and_floats_gaussian():
    assert choose_emission((np.array([0, 2, -1]),)) == Categorical(3, 0.3)
    assert isinstance(choose_emission((NUMBERS,)), GaussianDiagonal)
    both = choose_emission((np.array([0, 1]), np.array([[0.5], [0.7]])))
    assert isinstance(both, Channels)
    assert [type(emission) for emission in both.emissions] == [Categorical, GaussianDiagonal]


def test_kinds_are_taken_a_channel_each():
    emission = choose_emission((COUNTS, NUMBERS), ["poisson", "gaussian-full"], strength=2.0)
    assert isinstance(emission, Channels)
    assert [type(own) for own in emission.emissions] == [Poisson, GaussianFull]
    assert emission.strength == 2.0
    assert emission.emissions[0].mean == pytest.approx(COUNTS.mean())


def test_covariances_alone_have_a_stronger_prior():
    assert choose_emission((NUMBERS,), "gaussian-full").strength == 1.0
    assert choose_emission((NUMBERS,), "gaussian").strength == 0.3
    assert choose_emission((NUMBERS, COUNTS), ["gaussian-full", "poisson"]).strength == 0.3


def test_a_codebook_may_be_larger_than_what_is_seen():
    assert choose_emission((np.array([0, 2]),), n_codes=32) == Categorical(32, 0.3)
    emission = choose_emission((np.array([0, 2]), NUMBERS[:2]), n_codes=[8, None])
    assert emission.emissions[0].n_codes == 8
    assert choose_emission((np.arange(100),), n_codes=100) == Categorical(100, 0.3)


@pytest.mark.parametrize("kind", ["gaussian", "gaussian-full"])
def test_units_do_not_matter(kind):
    fahrenheit = NUMBERS * np.array([1.8, 1e-6, 1e6]) + np.array([32.0, 0.0, 1e9])
    assert evidence_of_states(fahrenheit, kind) == pytest.approx(evidence_of_states(NUMBERS, kind), rel=1e-6)


@pytest.mark.parametrize("kind", ["gaussian", "gaussian-full"])
def test_the_log_density_of_numbers_in_other_units_differs_by_the_units_alone(kind):
    complete = NUMBERS[5:]
    states = STATES[5:]
    marginals = []
    for x in (complete, 100.0 * complete):
        emission = choose_emission((x,), kind)
        marginals.append(emission.log_marginal(emission.statistics((x,), states, 3)).sum())
    assert marginals[0] - marginals[1] == pytest.approx(complete.size * np.log(100.0), rel=1e-9)


def test_a_state_without_data_expects_the_mean_and_covariance_of_all():
    x = NUMBERS[5:] @ np.array([[2.0, 1.0, 0.0], [0.0, 0.3, 0.1], [0.0, 0.0, 5.0]])
    emission = choose_emission((x,), "gaussian-full", strength=0.8)
    covariance = np.cov(x.T, bias=True) * (0.8 + LEAST_SPREAD) * (1.0 + 1.0 / 0.8) / 2.8
    expected = multivariate_t(x.mean(axis=0), covariance, 2.8).logpdf(x)
    predictive = emission.log_predictive_densities(np.zeros((1, emission.n_statistics)), (x,))
    np.testing.assert_allclose(predictive.rows[predictive.row][:, 0], expected)


def test_neither_do_mixtures_of_columns_matter_to_the_full_gaussian():
    mixed = NUMBERS @ RNG.normal(size=(3, 3))
    assert evidence_of_states(mixed, "gaussian-full") == pytest.approx(evidence_of_states(NUMBERS, "gaussian-full"))


@pytest.mark.parametrize("kind", ["gaussian", "gaussian-full"])
@pytest.mark.parametrize("value", [0.0, 0.1, -1e12])
def test_a_constant_column_changes_nothing(kind, value):
    with_constant = np.column_stack([NUMBERS, np.full(60, value)])
    assert evidence_of_states(with_constant, kind) == pytest.approx(evidence_of_states(NUMBERS, kind), rel=1e-9)
    emission = choose_emission((with_constant,), kind)
    parameters = emission.draw_parameters(emission.statistics((with_constant,), STATES, 3), np.random.default_rng(1))
    [drawn] = emission.draw_observations(parameters, STATES, np.random.default_rng(2))
    np.testing.assert_allclose(drawn[:, 3], value)
    assert drawn[:, 0].std() > 0.1


@pytest.mark.parametrize("kind", ["gaussian", "gaussian-full"])
def test_a_column_that_varies_by_rounding_alone_is_constant(kind):
    rounded = np.column_stack([NUMBERS, np.where(STATES == 1, 0.3, 0.1 + 0.2)])
    assert evidence_of_states(rounded, kind) == pytest.approx(evidence_of_states(NUMBERS, kind), rel=1e-9)


@pytest.mark.parametrize("kind", ["gaussian", "gaussian-full"])
def test_a_column_that_is_always_missing_changes_nothing_and_stays_missing(kind):
    with_empty = np.column_stack([NUMBERS, np.full(60, np.nan)])
    assert evidence_of_states(with_empty, kind) == pytest.approx(evidence_of_states(NUMBERS, kind), rel=1e-9)
    emission = choose_emission((with_empty,), kind)
    parameters = emission.draw_parameters(np.zeros((3, emission.n_statistics)), np.random.default_rng(3))
    [drawn] = emission.draw_observations(parameters, STATES, np.random.default_rng(4))
    assert np.isnan(drawn[:, 3]).all()
    assert np.isfinite(drawn[:, :3]).all()


def test_a_column_that_repeats_another_changes_nothing_for_the_full_gaussian():
    twice = np.column_stack([NUMBERS, 3.0 * NUMBERS[:, 0] - NUMBERS[:, 2]])
    assert evidence_of_states(twice, "gaussian-full") == pytest.approx(
        evidence_of_states(NUMBERS, "gaussian-full"), rel=1e-6
    )


def test_fewer_steps_than_columns_leave_no_direction_out():
    few = NUMBERS[:3][:, [0, 2, 1]]
    emission = choose_emission((few,), "gaussian-full")
    assert isinstance(emission, GaussianFull)
    assert emission.n_coordinates == 3
    np.testing.assert_allclose(emission.whiten @ emission.colour, np.eye(3), atol=1e-9)


def test_counts_that_are_all_zero_leave_room_for_others():
    emission = choose_emission((np.zeros(20, dtype=np.int64),), "poisson")
    assert emission.mean == pytest.approx(1 / 20)


def test_numbers_too_large_to_square_have_a_scale():
    emission = choose_emission((1e200 * NUMBERS,))
    np.testing.assert_allclose(emission.scale, 1e200 * choose_emission((NUMBERS,)).scale)


@pytest.mark.parametrize(
    ("observations", "kind", "options", "message"),
    [
        ((COUNTS,), "gausian", {}, "Channel 0 is to be of kind 'gausian', but a kind is one of 'auto'"),
        ((COUNTS, COUNTS), ["poisson"], {}, "kind names 1 channels, but the observations have 2"),
        ((COUNTS, NUMBERS), ["poisson", "poisson"], {}, "Channel 1 has floats, but kind 'poisson' needs integers"),
        ((COUNTS,), "gaussian", {}, "Channel 0 has integers, but kind 'gaussian' needs floats"),
        ((np.arange(65),), "auto", {}, "Channel 0 has more than 64 different integers: name its kind"),
        ((np.array([0, 9]),), "auto", {"n_codes": 9}, "Channel 0 has the code 9, but n_codes=9 allows codes up to 8"),
        ((np.full((4, 2), np.nan) * 1.0,), "gaussian-full", {"strength": 0.0}, "strength=0.0 was given"),
        ((np.array([[1.0, np.nan], [np.nan, 2.0]]),), "gaussian-full", {}, "Channel 0 has no step without a missing"),
    ],
)
def test_what_cannot_be_modelled_is_refused_in_one_sentence(observations, kind, options, message):
    with pytest.raises(ValueError, match=message) as caught:
        choose_emission(observations, kind, **options)
    assert str(caught.value).count(". ") == 0


def test_channels_of_different_strength_are_refused():
    with pytest.raises(ValueError, match="one strength together"):
        Channels((Categorical(2, 0.3), Poisson(1.0, 0.5)))
