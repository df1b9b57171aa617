"""Draws of the hyper-parameters η, γ, α, κ and h of the nDP-iHMM (paper 004, section 3.3, step 6).

By slice sampling of their logarithms (R. M. Neal, Ann. Statist. 31, 2003, sections 4.1 and 4.2). The weak limit's
Dirichlet priors of weight γ/L and η/K make these conditionals finite products of Gamma functions, so that no auxiliary
variables are needed beyond the tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from kinfolk.partition.concentration import GammaPrior
from kinfolk.sequences.emissions.emission import Emission

# Width of a slice's first interval, in nats: about a posterior's own, of ten observations or so.
_WIDTH = 1.0
_MOST_STEPS = 60


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
        value = float(np.exp(log_value))
        # Out of a float's range the prior's density is zero.
        if not 0.0 < value < np.inf:
            return -np.inf
        return prior.log_density(value) + log_likelihood(value)

    return float(np.exp(draw_from_slice(float(np.log(current)), log_density, rng)))


def draw_eta(current: float, sizes: NDArray[np.int64], prior: GammaPrior | float, rng: np.random.Generator) -> float:
    """Draw η given the sizes of all K clusters, π integrated out."""
    n_clusters, n_tasks = len(sizes), int(sizes.sum())
    occupied = sizes[sizes > 0]

    def log_likelihood(eta: float) -> float:
        share = eta / n_clusters
        of_clusters = gammaln(share + occupied).sum() - len(occupied) * gammaln(share)
        return float(of_clusters + gammaln(eta) - gammaln(eta + n_tasks))

    return _draw(current, prior, log_likelihood, rng)


def draw_gamma(current: float, tables: NDArray[np.int64], prior: GammaPrior | float, rng: np.random.Generator) -> float:
    """Draw γ given how many tables serve each state of each cluster, (n_clusters, n_states), β integrated out."""
    n_states = tables.shape[1]
    of_clusters = tables.sum(axis=1)
    of_clusters = of_clusters[of_clusters > 0]
    of_states = tables[tables > 0]

    def log_likelihood(gamma: float) -> float:
        share = gamma / n_states
        served = gammaln(share + of_states).sum() - len(of_states) * gammaln(share)
        return float(served + len(of_clusters) * gammaln(gamma) - gammaln(gamma + of_clusters).sum())

    return _draw(current, prior, log_likelihood, rng)


class RowTotals(NamedTuple):
    """How many transitions leave each row of each task, equal totals together: of starts, and of states."""

    starts: NDArray[np.int64]
    n_starts: NDArray[np.int64]
    leaving: NDArray[np.int64]
    n_leaving: NDArray[np.int64]

    @staticmethod
    def of(counts: NDArray[np.int64]) -> RowTotals:
        """Totals of counts (n_tasks, n_states + 1, n_states)."""
        totals = counts.sum(axis=2)
        return RowTotals(*np.unique(totals[:, 0], return_counts=True), *np.unique(totals[:, 1:], return_counts=True))

    def log_normalisers(self, alpha: float, kappa: float) -> float:
        """Σ log Γ(α + κ_r)/Γ(α + κ_r + n_r·) over all rows."""
        sticky = alpha + kappa
        of_starts = self.n_starts @ (gammaln(alpha) - gammaln(alpha + self.starts))
        return float(of_starts + self.n_leaving @ (gammaln(sticky) - gammaln(sticky + self.leaving)))


def draw_alpha(
    current: float,
    kappa: float,
    n_tables: int,
    totals: RowTotals,
    prior: GammaPrior | float,
    rng: np.random.Generator,
) -> float:
    """Draw α given the number of tables due to β, rows integrated out."""
    return _draw(current, prior, lambda alpha: n_tables * np.log(alpha) + totals.log_normalisers(alpha, kappa), rng)


def draw_kappa(
    current: float,
    alpha: float,
    n_overrides: int,
    totals: RowTotals,
    prior: GammaPrior | float,
    rng: np.random.Generator,
) -> float:
    """Draw κ given the number of tables due to it, rows integrated out."""
    return _draw(current, prior, lambda kappa: n_overrides * np.log(kappa) + totals.log_normalisers(alpha, kappa), rng)


def draw_strength(
    current: float,
    statistics: NDArray[np.float64],
    emission: Emission,
    prior: GammaPrior | float,
    rng: np.random.Generator,
) -> float:
    """Draw the strength h of H given the statistics (…, S) of states that have steps, θ integrated out."""
    return _draw(current, prior, lambda h: float(emission.with_strength(h).log_marginal(statistics).sum()), rng)
