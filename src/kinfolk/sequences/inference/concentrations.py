"""Draws of the hyper-parameters η, γ, α, κ and h of the nDP-iHMM (Ni, Carin and Dunson 2007, section 3.3, step 6).

By slice sampling of their logarithms (R. M. Neal, Ann. Statist. 31, 2003, sections 4.1 and 4.2). The weak limit's
Dirichlet priors of weight γ/L and η/K make these conditionals finite products of Gamma functions, so that no auxiliary
variables are needed beyond the tables.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp, inf, lgamma, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.partition.concentration import GammaPrior
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.filtering import reordered

# Width of a slice's first interval, in nats: about a posterior's own, of ten observations or so.
_WIDTH = 1.0
_MOST_STEPS = 60
# The logarithm of what is too large for a float is above this.
_LARGEST = 709.0


def draw_from_slice(
    current: float, log_density: Callable[[float], float], rng: np.random.Generator, width: float = _WIDTH
) -> float:
    """Draw a number such that its unnormalised density stays as it is, with stepping out and shrinkage.

    Examples
    --------
    >>> rng, x, drawn = np.random.default_rng(0), 0.0, []
    >>> for _ in range(4000):
    ...     x = draw_from_slice(x, lambda x: -0.5 * x * x, rng)
    ...     drawn.append(x * x)
    >>> 0.9 < sum(drawn) / 4000 < 1.1
    True
    """
    level = log_density(current) - rng.standard_exponential()
    low = current - width * rng.random()
    high = low + width
    # Steps are bounded at random on either side, which keeps the draw exact.
    down = int(_MOST_STEPS * rng.random())
    up = _MOST_STEPS - 1 - down
    while down > 0 and log_density(low) > level:
        low -= width
        down -= 1
    while up > 0 and log_density(high) > level:
        high += width
        up -= 1
    while True:
        proposed = low + (high - low) * rng.random()
        if log_density(proposed) >= level:
            return float(proposed)
        if proposed == current:
            return current
        if proposed < current:
            low = proposed
        else:
            high = proposed


def _draw(
    current: float, prior: GammaPrior | float, log_likelihood: Callable[[float], float], rng: np.random.Generator
) -> float:
    """Draw a positive number given its likelihood; one that is fixed stays."""
    if not isinstance(prior, GammaPrior):
        return float(prior)

    def log_density(log_value: float) -> float:
        value = exp(log_value) if log_value < _LARGEST else inf
        # Out of a float's range the prior's density is zero.
        if not 0.0 < value < inf:
            return -inf
        return prior.log_density(value) + log_likelihood(value)

    return exp(draw_from_slice(log(current), log_density, rng))


@reordered
def log_rising(weight, how_many):  # type: ignore[no-untyped-def]
    """Σ log Γ(weight + n)/Γ(weight) over urns, of which ``how_many[n]`` gave n draws. O(len(how_many)).

    Examples
    --------
    >>> round(exp(log_rising(2.0, np.array([5, 0, 1]))), 6)
    6.0
    """
    total, none = 0.0, lgamma(weight)
    for n in range(1, len(how_many)):
        if how_many[n] > 0:
            total += how_many[n] * (lgamma(weight + n) - none)
    return total


def draw_eta(current: float, sizes: NDArray[np.int64], prior: GammaPrior | float, rng: np.random.Generator) -> float:
    """Draw η given the sizes of all K clusters, π integrated out."""
    n_clusters, of_clusters, of_all = len(sizes), np.bincount(sizes), np.bincount([sizes.sum()])

    def log_likelihood(eta: float) -> float:
        return float(log_rising(eta / n_clusters, of_clusters) - log_rising(eta, of_all))

    return _draw(current, prior, log_likelihood, rng)


def draw_gamma(current: float, tables: NDArray[np.int64], prior: GammaPrior | float, rng: np.random.Generator) -> float:
    """Draw γ given how many tables serve each state of each cluster, (n_clusters, n_states), β integrated out."""
    n_states = tables.shape[1]
    of_states, of_clusters = np.bincount(tables.ravel()), np.bincount(tables.sum(axis=1))

    def log_likelihood(gamma: float) -> float:
        return float(log_rising(gamma / n_states, of_states) - log_rising(gamma, of_clusters))

    return _draw(current, prior, log_likelihood, rng)


class RowTotals(NamedTuple):
    """How many rows of all tasks have n transitions that leave them, for every n: of starts, and of states."""

    starts: NDArray[np.int64]
    leaving: NDArray[np.int64]

    @staticmethod
    def of(counts: NDArray[np.int64]) -> RowTotals:
        """Totals of counts (n_tasks, n_states + 1, n_states)."""
        totals = counts.sum(axis=2)
        return RowTotals(np.bincount(totals[:, 0]), np.bincount(totals[:, 1:].ravel()))

    def log_normalisers(self, alpha: float, kappa: float) -> float:
        """Σ log Γ(α + κ_r)/Γ(α + κ_r + n_r·) over all rows."""
        return -float(log_rising(alpha, self.starts) + log_rising(alpha + kappa, self.leaving))


def draw_alpha(
    current: float,
    kappa: float,
    n_tables: int,
    totals: RowTotals,
    prior: GammaPrior | float,
    rng: np.random.Generator,
) -> float:
    """Draw α given the number of tables due to β, rows integrated out."""
    return _draw(current, prior, lambda alpha: n_tables * log(alpha) + totals.log_normalisers(alpha, kappa), rng)


def draw_kappa(
    current: float,
    alpha: float,
    n_overrides: int,
    totals: RowTotals,
    prior: GammaPrior | float,
    rng: np.random.Generator,
) -> float:
    """Draw κ given the number of tables due to it, rows integrated out."""
    return _draw(current, prior, lambda kappa: n_overrides * log(kappa) + totals.log_normalisers(alpha, kappa), rng)


def draw_strength(
    current: float,
    statistics: NDArray[np.float64],
    emission: Emission,
    prior: GammaPrior | float,
    rng: np.random.Generator,
) -> float:
    """Draw the strength h of H given the statistics (…, S) of states that have steps, θ integrated out."""
    return _draw(current, prior, lambda h: float(emission.with_strength(h).log_marginal(statistics).sum()), rng)
