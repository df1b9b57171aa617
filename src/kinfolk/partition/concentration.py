"""What partitions tell about the concentration of the Chinese restaurant process, under a Gamma prior.

A partition of U tasks into K clusters speaks of the concentration a through K alone:

    p(K | a) ∝ a^K Γ(a) / Γ(a + U),        a ~ Gamma(shape, rate).

Draws of a given K are those of M. D. Escobar and M. West, J. Amer. Statist. Assoc. 90, 1995, section 6.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, gammaln

# A Gamma draw of small shape may be too small for a float, and its logarithm is wanted.
_TINY = 1e-300
# An integral leaves out what is smaller than the integrand's peak by so many nats.
_NEGLIGIBLE = 45.0
_N_POINTS = 2001


class GammaPrior(NamedTuple):
    """Prior of a concentration: a Gamma distribution with mean shape/rate; both are above zero.

    By default the number of clusters is expected to grow by one for each time that the number of tasks grows e-fold.
    """

    shape: float = 1.0
    rate: float = 1.0

    def draw(self, rng: np.random.Generator) -> float:
        """Draw a concentration from the prior."""
        return max(float(rng.gamma(self.shape) / self.rate), _TINY)

    def log_density(self, concentration: float) -> float:
        """Log density of the logarithm of a concentration, which unlike that of the concentration itself always peaks.

        Examples
        --------
        >>> round(GammaPrior(2.0, 1.0).log_density(1.0), 6)
        -1.0
        """
        scaled = self.rate * concentration
        return float(self.shape * np.log(scaled) - scaled - gammaln(self.shape))


def draw_concentration(
    current: float, n_clusters: int, n_tasks: int, prior: GammaPrior, rng: np.random.Generator
) -> float:
    """Draw a concentration given the number of clusters; the step leaves p(a | K, U) as it is. O(1).

    With η ~ Beta(a + 1, U), the next a is from Gamma(shape + K, rate − log η) with probability proportional to
    shape + K − 1, and from Gamma(shape + K − 1, rate − log η) with one proportional to U (rate − log η).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> a, drawn = 1.0, []
    >>> for _ in range(1000):
    ...     a = draw_concentration(a, 30, 1000, GammaPrior(), rng)
    ...     drawn.append(a)
    >>> 4.5 < sum(drawn) / 1000 < 5.5
    True
    """
    # The logarithm of a Beta draw, from Gammas: a draw itself may round to zero or to one.
    won = np.log(max(rng.gamma(current + 1.0), _TINY))
    rate = prior.rate + np.logaddexp(won, np.log(max(rng.gamma(n_tasks), _TINY))) - won
    shape = prior.shape + n_clusters - 1.0
    if rng.random() * (shape + n_tasks * rate) < shape:
        shape += 1.0
    return max(float(rng.gamma(shape) / rate), _TINY)


def most_probable_concentration(expected_clusters: float, n_tasks: int, prior: GammaPrior) -> float:
    """The concentration that maximises E[K] log a + logΓ(a) − logΓ(a + U) + log prior: an M-step. O(1).

    The prior's density is that of log a. That of a itself would put the maximum at zero as soon as all tasks are in
    one cluster, where it would stay for ever; with that of log a the maximum is close to the posterior's mean.

    Examples
    --------
    >>> round(most_probable_concentration(30.0, 1000, GammaPrior()), 3)
    4.806
    """
    clusters = min(max(float(expected_clusters), 1.0), float(n_tasks))
    won = clusters + prior.shape

    def slope(log_a: float) -> float:
        a = np.exp(log_a)
        return float(won - a * (digamma(a + n_tasks) - digamma(a)) - prior.rate * a)

    # a·(ψ(a + U) − ψ(a)) = Σ_{i<U} a/(a + i) is between 0 and 1 + a(1 + log U).
    lowest = np.log((won - 1.0) / (1.0 + np.log(n_tasks) + prior.rate)) - 1.0
    highest = np.log(won / prior.rate)
    return float(np.exp(brentq(slope, lowest, highest, xtol=1e-12)))


@lru_cache(maxsize=1 << 14)
def log_clusters_weight(n_clusters: int, n_tasks: int, prior: GammaPrior) -> float:
    """Log of ∫ p(a) a^K Γ(a)/Γ(a + U) da.

    Times the product of Γ(size) over the clusters it is the prior probability of a partition, whatever the
    concentration. By the trapezoid rule over log a, in which the integrand is log-concave.

    Examples
    --------
    One task is in one cluster for sure.

    >>> round(log_clusters_weight(1, 1, GammaPrior()), 9)
    0.0
    """
    shape = prior.shape

    def log_integrand(log_a: Any) -> Any:
        a = np.exp(log_a)
        # Γ(a) = Γ(a + 1)/a, so that an a too small for a float does no harm.
        rest = gammaln(a + 1.0) - gammaln(a + n_tasks) - prior.rate * a
        return (n_clusters - 1.0 + shape) * log_a + rest

    peak = np.log(most_probable_concentration(n_clusters, n_tasks, prior))
    highest = float(log_integrand(peak))
    below, above = 1.0, 1.0
    while log_integrand(peak - below) > highest - _NEGLIGIBLE:
        below *= 1.5
    while log_integrand(peak + above) > highest - _NEGLIGIBLE:
        above *= 1.5
    log_a, width = np.linspace(peak - below, peak + above, _N_POINTS, retstep=True)
    total = np.log(np.exp(log_integrand(log_a) - highest).sum() * width)
    return float(highest + total + shape * np.log(prior.rate) - gammaln(shape))
