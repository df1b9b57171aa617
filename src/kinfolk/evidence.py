"""Evidence as a value, and annealed importance sampling to estimate it (thesis appendix A.2)."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np
from joblib import Parallel, delayed
from scipy.special import logsumexp

if TYPE_CHECKING:
    from numpy.typing import NDArray

Kind = Literal["exact", "estimate", "lower bound"]


class Evidence(NamedTuple):
    """Natural log of p(X, Y) of the training rows as an ordered sequence, and what kind of number it is.

    ``error`` is the standard error of an estimate on the log scale, zero for exact numbers and bounds.
    """

    value: float
    kind: Kind
    error: float = 0.0


class Annealed(Protocol):
    """A state that can be moved while the likelihood is raised from power zero to one."""

    @property
    def log_likelihood(self) -> float:
        """Log likelihood of the current state, the part that the power acts on."""

    def draw_from_prior(self, rng: np.random.Generator) -> None:
        """Draw the state from its distribution at power zero."""

    def sweep(self, rng: np.random.Generator, power: float) -> object:
        """Move the state by a step that leaves its distribution at this power as it is."""


def anneal(state: Annealed, powers: NDArray[np.float64], rng: np.random.Generator) -> float:
    """Log weight of one annealed run; its exponential is an unbiased estimate of Z₁/Z₀ (thesis eq. A.70)."""
    state.draw_from_prior(rng)
    log_weight = 0.0
    for before, after in pairwise(powers):
        log_weight += (after - before) * state.log_likelihood
        state.sweep(rng, float(after))
    return log_weight


def annealed_evidence(
    states: list[Annealed],
    log_start: float,
    seeds: list[np.random.SeedSequence],
    n_powers: int = 200,
    n_jobs: int | None = None,
) -> Evidence:
    """Estimate log Z₁ = log Z₀ + log mean of the weights of independent runs, one per state.

    The powers are the fourth powers of an even grid: most of the change happens where the likelihood is weak. The
    average stands without the 1/N in front of a ratio of sums that eq. A.53 prints.
    """
    powers = np.linspace(0.0, 1.0, n_powers + 1) ** 4
    log_weights = np.array(
        Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(anneal)(state, powers, np.random.default_rng(seed))
            for state, seed in zip(states, seeds, strict=True)
        )
    )
    n = len(log_weights)
    value = float(logsumexp(log_weights) - np.log(n))
    relative = np.exp(log_weights - value)
    return Evidence(log_start + value, "estimate", float(relative.std(ddof=1) / np.sqrt(n)) if n > 1 else np.inf)
