"""An emission of every family with a prior of its own, and observations that some of its steps miss."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kinfolk.sequences.model.emissions.autoregressive import Autoregressive
from kinfolk.sequences.model.emissions.bernoulli import Bernoulli
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.emissions.channels import Channels
from kinfolk.sequences.model.emissions.emission import Emission, Observations, with_past
from kinfolk.sequences.model.emissions.gaussian_diagonal import GaussianDiagonal
from kinfolk.sequences.model.emissions.gaussian_full import GaussianFull
from kinfolk.sequences.model.emissions.poisson import Poisson

NAMES = ("categorical", "diagonal", "full", "poisson", "ar", "bernoulli", "channels")


class Example(NamedTuple):
    emission: Emission
    observations: Observations


def example(name: str, n_steps: int = 14, seed: int = 0) -> Example:
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, 4, size=n_steps)
    numbers = rng.normal(12.0, 3.0, size=(n_steps, 2)) @ np.array([[1.0, 0.4], [0.0, 1.0]])
    numbers[3, 1] = np.nan
    numbers[5] = np.nan
    counts = rng.poisson(3.0, size=n_steps)
    counts[2] = -1
    diagonal = GaussianDiagonal(np.array([11.0, 14.0]), np.array([2.0, 5.0]), 0.7)
    mixing = np.array([[0.5, 0.1], [-0.2, 0.3]])
    volume = -float(np.log(np.linalg.det(mixing)))
    ar = Autoregressive(
        np.array([11.0, 14.0]),
        np.array([10.0, 15.0]),
        np.array([[0.4, 0.0], [0.1, 0.2]]),
        np.array([[0.6, 0.2], [0.0, -0.5]]),
        mixing,
        np.linalg.inv(mixing),
        volume,
        0.7,
    )
    answers = np.where(np.isnan(numbers), np.nan, numbers > np.array([13.0, 16.0]))
    return {
        "bernoulli": Example(Bernoulli(2, 0.4), (answers,)),
        "ar": Example(ar, (with_past(numbers, np.array([n_steps]), 1),)),
        "categorical": Example(Categorical(4, 0.4), (codes,)),
        "diagonal": Example(diagonal, (numbers,)),
        "full": Example(GaussianFull(np.array([11.0, 14.0]), mixing, np.linalg.inv(mixing), volume, 0.7), (numbers,)),
        "poisson": Example(Poisson(2.5, 0.8), (counts,)),
        "channels": Example(
            Channels((Categorical(4, 0.7), diagonal, Poisson(2.5, 0.7))),
            (codes, numbers, counts),
        ),
    }[name]


def taken(observations: Observations, steps: slice | list[int]) -> Observations:
    return tuple(array[steps] for array in observations)


def of_one_state(emission: Emission, observations: Observations) -> np.ndarray:
    return emission.statistics(observations, np.zeros(len(observations[0]), dtype=np.int64), 1)
