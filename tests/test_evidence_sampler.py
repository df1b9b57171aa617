"""Annealed importance sampling on a die whose evidence is known."""

import numpy as np
import pytest
from scipy.special import logsumexp

from kinfolk.evidence import Annealed, adapted_powers, anneal, annealed_evidence

PRIOR = np.array([0.5, 0.3, 0.15, 0.05])
LOG_LIKELIHOOD = np.array([-9.0, -6.0, -2.0, -1.0])
LOG_EVIDENCE = float(logsumexp(LOG_LIKELIHOOD, b=PRIOR))


class Die:
    """A state with four values; its sweep redraws it, or with ``mixing`` below one now and then only."""

    def __init__(self, mixing: float = 1.0) -> None:
        self.mixing = mixing
        self.value = 0

    @property
    def log_likelihood(self) -> float:
        return float(LOG_LIKELIHOOD[self.value])

    def draw_from_prior(self, rng: np.random.Generator) -> None:
        self.value = int(rng.choice(4, p=PRIOR))

    def sweep(self, rng: np.random.Generator, power: float) -> None:
        if rng.random() < self.mixing:
            p = PRIOR * np.exp(power * LOG_LIKELIHOOD)
            self.value = int(rng.choice(4, p=p / p.sum()))


def seeds(n: int, seed: int = 0) -> list[np.random.SeedSequence]:
    return np.random.SeedSequence(seed).spawn(n)


@pytest.mark.parametrize("mixing", [1.0, 0.2, 0.0])
def test_the_weights_are_unbiased_however_badly_the_sweeps_mix(mixing):
    # Without any mixing this is plain importance sampling from the prior.
    powers = np.linspace(0, 1, 6)
    weights = np.exp([anneal(Die(mixing), powers, np.random.default_rng(seed))[0] for seed in seeds(4_000)])
    assert abs(weights.mean() - np.exp(LOG_EVIDENCE)) < 4 * weights.std() / np.sqrt(len(weights))


def test_the_estimate_adds_the_start_and_stays_within_its_error():
    found = annealed_evidence([Die() for _ in range(50)], 7.5, seeds(50), n_powers=50)
    assert found.kind == "estimate"
    assert 0 < found.error < 0.3
    assert abs(found.value - 7.5 - LOG_EVIDENCE) < 4 * found.error


def test_the_error_is_that_of_repeated_estimates():
    states: list[Annealed] = [Die(0.5) for _ in range(24)]
    found = [annealed_evidence(states, 0.0, seeds(24, seed), n_powers=20) for seed in range(60)]
    spread = np.std([estimate.value for estimate in found], ddof=1)
    claimed = np.sqrt(np.mean([estimate.error**2 for estimate in found]))
    assert 0.7 < spread / claimed < 1.4


def test_more_powers_make_the_error_smaller():
    coarse, fine = (annealed_evidence([Die() for _ in range(60)], 0.0, seeds(60), n).error for n in (4, 64))
    assert fine < coarse / 2


def test_one_run_has_no_error_to_tell():
    assert annealed_evidence([Die()], 0.0, seeds(1)).error == np.inf


def test_runs_side_by_side_give_the_same_estimate():
    one, two = (annealed_evidence([Die() for _ in range(6)], 0.0, seeds(6), 20, n_jobs=n) for n in (1, 2))
    assert one == two


class Dice:
    """Several dice that never touch each other."""

    def __init__(self, n: int) -> None:
        self.dice = [Die() for _ in range(n)]

    @property
    def log_likelihood(self) -> np.ndarray:
        return np.array([die.log_likelihood for die in self.dice])

    def draw_from_prior(self, rng: np.random.Generator) -> None:
        for die in self.dice:
            die.draw_from_prior(rng)

    def sweep(self, rng: np.random.Generator, power: float) -> None:
        for die in self.dice:
            die.sweep(rng, power)


class Pool(Dice):
    """The same, taken as one."""

    @property
    def log_likelihood(self) -> float:
        return float(super().log_likelihood.sum())


def test_powers_go_from_zero_to_one_and_never_back():
    powers = adapted_powers([Die() for _ in range(8)], seeds(8))
    assert (powers[0], powers[-1]) == (0.0, 1.0)
    assert (np.diff(powers) > 0).all()


class Step:
    """A state whose log likelihood varies only while the power is between 0.5 and 0.6."""

    def __init__(self) -> None:
        self.log_likelihood = 0.0

    def draw_from_prior(self, rng: np.random.Generator) -> None:
        self.sweep(rng, 0.0)

    def sweep(self, rng: np.random.Generator, power: float) -> None:
        self.log_likelihood = float(rng.normal(scale=30.0)) if 0.5 <= power < 0.6 else 0.0


def test_powers_are_dense_where_the_likelihood_varies():
    powers = adapted_powers([Step() for _ in range(8)], seeds(8), max_powers=200)
    inside = ((powers > 0.45) & (powers < 0.65)).mean()
    assert inside > 0.7


def test_a_smaller_error_is_reached_with_more_powers():
    states: list[Annealed] = [Pool(10) for _ in range(16)]
    rough, fine = (annealed_evidence(states, 0.0, seeds(16), target_error=target) for target in (0.5, 0.12))
    assert fine.error < 0.17 < rough.error
    for found in (rough, fine):
        assert abs(found.value - 10 * LOG_EVIDENCE) < 4 * found.error


def test_no_wish_for_accuracy_goes_beyond_the_budget():
    states: list[Annealed] = [Pool(20) for _ in range(8)]
    assert len(adapted_powers(states, seeds(8), target_error=1e-6, max_powers=70)) == 71
    assert len(adapted_powers(states, seeds(8), target_error=1e-6, max_powers=10)) == 11


@pytest.mark.parametrize("kind", [Dice, Pool])
def test_estimates_with_adapted_powers_have_the_errors_that_they_claim(kind):
    z, values = [], []
    for seed in range(30):
        found = annealed_evidence([kind(3) for _ in range(12)], 0.0, seeds(12, seed), target_error=0.3)
        z.append((found.value - 3 * LOG_EVIDENCE) / found.error)
        values.append(np.exp(found.value - 3 * LOG_EVIDENCE))
    assert 0.6 < np.std(z) < 1.6
    # Pilots choose the powers, other runs are averaged: no bias is left.
    assert abs(np.mean(values) - 1.0) < 4 * np.std(values, ddof=1) / np.sqrt(len(values))


def test_parts_that_never_touch_are_multiplied_after_averaging():
    truth = 30 * LOG_EVIDENCE
    parts, whole = (
        annealed_evidence([kind(30) for _ in range(16)], 0.0, seeds(16), n_powers=8) for kind in (Dice, Pool)
    )
    assert abs(parts.value - truth) < 4 * parts.error
    assert abs(parts.value - truth) < abs(whole.value - truth) / 4


class Wild:
    """A state whose log weights are spread far more than any average of a few could tell."""

    log_likelihood = 0.0

    def draw_from_prior(self, rng: np.random.Generator) -> None:
        self.log_likelihood = float(rng.normal(scale=30.0))

    def sweep(self, rng: np.random.Generator, power: float) -> None:
        pass


def test_an_average_that_rests_on_one_run_has_a_large_error():
    # The standard deviation of weights over their mean is at most the root of their number: an error of one.
    errors = [annealed_evidence([Wild() for _ in range(16)], 0.0, seeds(16, seed)).error for seed in range(10)]
    assert np.median(errors) > 3.0
