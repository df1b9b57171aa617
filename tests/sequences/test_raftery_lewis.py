"""The run-length diagnostic: published numbers, closed forms of a two-state chain, and what simulation confirms."""

import numpy as np
import pytest
from scipy.stats import norm

from kinfolk.sequences.inference.raftery_lewis import _second_order_is_better, raftery_lewis, run_length_of


def two_state_chain(leave, come_back, n_draws, seed=0):
    """Draws of 0 and 1 with known rates."""
    uniforms = np.random.default_rng(seed).random(n_draws)
    states = np.empty(n_draws, dtype=int)
    state = 0
    for t, u in enumerate(uniforms):
        state = int(u < leave) if state == 0 else int(u >= come_back)
        states[t] = state
    return states


@pytest.mark.parametrize(
    ("quantile", "within", "probability", "least"),
    [
        (0.025, 0.005, 0.95, 3746),  # the example of Raftery and Lewis (1992)
        (0.5, 0.005, 0.95, 38_415),  # the textbook sample size for a share of one half: 0.25 (1.96 / 0.005)²
        (0.5, 0.05, 0.95, 385),  # the same, for the usual poll
    ],
)
def test_the_least_number_of_draws_is_the_published_one(quantile, within, probability, least):
    assert run_length_of(0.1, 0.1, quantile=quantile, within=within, probability=probability).least == least


def test_independent_draws_need_as_many_as_the_least():
    found = run_length_of(0.025, 0.975)
    assert (found.burn_in, found.n_draws, found.dependence) == (0, 3746, 1.0)


def test_burn_in_is_the_first_power_of_the_transition_matrix_that_is_near_its_limit():
    leave, come_back, precision = 0.03, 0.2, 0.001
    step = np.array([[1 - leave, leave], [come_back, 1 - come_back]])
    limit = np.array([come_back, leave]) / (leave + come_back)
    power, m = np.eye(2), 0
    while np.abs(power - limit).max() > precision:
        power, m = power @ step, m + 1
    assert run_length_of(leave, come_back, precision=precision).burn_in == m


def test_the_share_below_the_quantile_is_known_as_precisely_as_asked_after_so_many_draws():
    leave, come_back = 0.05, 0.15
    wanted = run_length_of(leave, come_back, quantile=0.25, within=0.05, probability=0.9)
    shares = [
        two_state_chain(leave, come_back, wanted.burn_in + wanted.n_draws, seed)[wanted.burn_in :].mean()
        for seed in range(300)
    ]
    inside = np.mean(np.abs(np.array(shares) - leave / (leave + come_back)) <= 0.05)
    assert inside == pytest.approx(0.9, abs=3 * (0.9 * 0.1 / 300) ** 0.5 + 0.01)


def test_a_two_state_markov_chain_is_not_thinned_and_its_rates_are_found():
    chain = two_state_chain(0.02, 0.1, 60_000)
    # Ones are the larger values; below the quantile are the zeros.
    found = raftery_lewis(chain, quantile=0.5)
    truth = run_length_of(0.1, 0.02, quantile=0.5)
    assert found.thinning == 1
    assert found.n_draws == pytest.approx(truth.n_draws, rel=0.1)
    assert found.burn_in == pytest.approx(truth.burn_in, abs=6)
    assert found.least == 38_415


def test_a_second_order_chain_is_thinned():
    """Each value repeats the last but one, mostly: two interleaved chains, of which every other draw is first-order."""
    chain = np.empty(20_000)
    chain[0::2] = two_state_chain(0.1, 0.1, 10_000, seed=1)
    chain[1::2] = two_state_chain(0.1, 0.1, 10_000, seed=2)
    assert raftery_lewis(chain, quantile=0.4, within=0.02).thinning == 2


def test_a_second_order_chain_is_preferred_as_soon_as_bic_prefers_it():
    flags = [0, 0, 1] * 6 + [0, 1] * 4
    triples = list(zip(flags, flags[1:], flags[2:], strict=False))

    def log_likelihood(order):
        pasts = [triple[2 - order : 2] for triple in triples]
        return sum(
            np.log(
                sum(p == past and t[2] == triple[2] for p, t in zip(pasts, triples, strict=True)) / pasts.count(past)
            )
            for past, triple in zip(pasts, triples, strict=True)
        )

    gain = 2.0 * (log_likelihood(2) - log_likelihood(1)) - 2.0 * np.log(len(triples))
    assert 0.0 < gain < 0.5
    assert _second_order_is_better(np.array(flags, dtype=bool))


def test_where_bic_is_equal_the_second_order_chain_is_preferred_as_the_published_programs_prefer_it():
    """Of four triples the two round a 1 are 0 1 1 and 1 1 0: G² = 4 log 2 = 2 log 4; coda goes on while BIC ≥ 0."""
    assert _second_order_is_better(np.array([0, 1, 1, 0, 0, 0], dtype=bool))


def test_dependence_grows_with_autocorrelation():
    rng = np.random.default_rng(3)
    found = []
    for correlation in (0.0, 0.5, 0.9):
        chain, noise = np.empty(20_000), rng.normal(size=20_000)
        chain[0] = noise[0]
        for t in range(1, len(chain)):
            chain[t] = correlation * chain[t - 1] + (1 - correlation**2) ** 0.5 * noise[t]
        found.append(raftery_lewis(chain).dependence)
    assert found[0] == pytest.approx(1.0, abs=0.15)
    assert found[0] < found[1] < found[2]
    assert found[2] > 3


def test_any_increasing_transformation_changes_nothing():
    draws = np.random.default_rng(4).normal(size=5_000)
    assert raftery_lewis(draws) == raftery_lewis(norm.cdf(draws))


@pytest.mark.parametrize(
    ("draws", "options", "sentence"),
    [
        (np.zeros(100), {}, "draws has 100 values, but a pilot run needs at least 3,746"),
        (np.zeros(4_000), {}, "draws are all on one side of their quantile 0.025"),
        (np.r_[np.zeros(4_000), np.nan], {}, "draws holds nan at place 4000"),
        (np.r_[np.zeros(3_000), np.ones(3_000)], {}, "draws cross their quantile at most once"),
        (np.zeros(4_000), {"quantile": 1.5}, "quantile is 1.5, but must be between 0 and 1"),
    ],
)
def test_chains_that_tell_nothing_are_refused(draws, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        raftery_lewis(draws, **options)


def test_draws_are_thinned_to_three_at_the_least():
    """At most their quantile are F F T T F: second-order by BIC, 4 log 2 > 2 log 3; every other draw is F T F."""
    found = raftery_lewis([4, 5, 1, 2, 3], quantile=0.3, within=0.5, probability=0.9)
    assert (found.thinning, found.burn_in, found.n_draws) == (2, 0, 0)


def test_four_draws_that_look_like_a_second_order_chain_are_thinned_until_they_tell_nothing():
    """At most their quantile are F T T F: second-order by BIC, 4 log 2 > 2 log 2; every other draw is F T."""
    with pytest.raises(ValueError, match="draws cross their quantile at most once"):
        raftery_lewis([3, 1, 2, 4], quantile=0.5, within=0.5)


def test_a_chain_that_begins_near_enough_to_its_limit_needs_no_burn_in():
    assert run_length_of(0.1, 0.1, precision=0.9).burn_in == 0
