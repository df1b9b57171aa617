"""Annealed importance sampling on a die whose evidence is known."""

import numpy as np
import pytest
from scipy.special import logsumexp

from kinfolk.evidence import Annealed, anneal, annealed_evidence

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
    weights = np.exp([anneal(Die(mixing), powers, np.random.default_rng(seed)) for seed in seeds(4_000)])
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
