"""How long a chain must run to know a quantile: the diagnostic of Raftery and Lewis (1992), which Ni et al. (2007) use.

A. E. Raftery and S. M. Lewis, "How many iterations in the Gibbs sampler?", Bayesian Statistics 4, 1992, 763–773.

In the papers: Ni, Carin and Dunson (2007), section 4.2.
"""

from __future__ import annotations

from math import ceil, log
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, xlogy

__all__ = ["RunLength", "raftery_lewis", "run_length_of"]

Flags = NDArray[np.bool_]

# Above this the dependence between draws is a worry, by the rule of thumb of the paper.
STRONG_DEPENDENCE = 5.0


class RunLength(NamedTuple):
    """How long to run a chain."""

    burn_in: int
    """M, draws to throw away."""
    n_draws: int
    """N, draws to make after these, before thinning."""
    thinning: int
    """k, of which every one in so many is needed to be a Markov chain."""
    least: int
    """N_min, draws that would do if they were independent."""

    @property
    def dependence(self) -> float:
        """I = (M + N) / N_min: how much longer dependent draws take; above 5 is a worry."""
        return (self.burn_in + self.n_draws) / self.least


def raftery_lewis(
    draws: ArrayLike,
    *,
    quantile: float = 0.025,
    within: float = 0.005,
    probability: float = 0.95,
    precision: float = 0.001,
) -> RunLength:
    """Find from a pilot run how long a chain must run, for a quantile to be known well enough.

    Draws are made binary, at most the quantile or not. They are thinned until a first-order Markov chain explains them
    better than a second-order one by BIC; that two-state chain has closed forms for what is asked.

    Parameters
    ----------
    draws : array-like of shape (n_draws,)
        A pilot run of one chain, not thinned.
    quantile : float, default=0.025
        The quantile q of interest.
    within : float, default=0.005
        The probability of being below the quantile is wanted to within this, r.
    probability : float, default=0.95
        With this probability, s.
    precision : float, default=0.001
        How near the chain's distribution must be to its limit after the burn-in, ε.

    Returns
    -------
    RunLength

    Raises
    ------
    ValueError
        Where the pilot run is shorter than N_min, holds a value that is not finite, or never leaves one side of the
        quantile.

    Examples
    --------
    >>> independent = np.random.default_rng(0).normal(size=4_000)
    >>> found = raftery_lewis(independent)
    >>> found.least, found.thinning, 0.8 < found.dependence < 1.3
    (3746, 1, True)
    """
    chain = np.asarray(draws, dtype=np.float64).ravel()
    least = _least(quantile, within, probability)
    if len(chain) < least:
        raise ValueError(
            f"draws has {len(chain):,} values, but a pilot run needs at least {least:,} for this precision"
        )
    if not np.isfinite(chain).all():
        raise ValueError(f"draws holds {chain[~np.isfinite(chain)][0]} at place {int(np.argmin(np.isfinite(chain)))}")
    below = chain <= np.quantile(chain, quantile)
    if below.all() or not below.any():
        raise ValueError(f"draws are all on one side of their quantile {quantile:g}: they need to vary")
    thinning = 1
    while _second_order_is_better(below[::thinning]):
        thinning += 1
    leave, come_back = _rates(below[::thinning])
    return run_length_of(
        leave,
        come_back,
        thinning=thinning,
        quantile=quantile,
        within=within,
        probability=probability,
        precision=precision,
    )


def run_length_of(
    leave: float,
    come_back: float,
    *,
    thinning: int = 1,
    quantile: float = 0.025,
    within: float = 0.005,
    probability: float = 0.95,
    precision: float = 0.001,
) -> RunLength:
    """How long a two-state chain must run that goes from 0 to 1 with one probability and back with another.

    Parameters
    ----------
    leave, come_back : float
        α = p(1 | 0) and β = p(0 | 1), above 0.
    thinning : int, default=1
        Steps of the original chain that are one of this.
    quantile, within, probability, precision : float
        As of `raftery_lewis`.

    Returns
    -------
    RunLength

    Examples
    --------
    >>> run_length_of(0.025, 0.975).dependence < 1.01
    True
    """
    both = leave + come_back
    # What is left of the start after one step; independent draws forget it at once.
    remembered = abs(1.0 - both)
    steps = log(precision * both / max(leave, come_back)) / log(remembered) if 0.0 < remembered < 1.0 else 0.0
    z = float(ndtri((1.0 + probability) / 2.0))
    needed = (2.0 - both) * leave * come_back * z**2 / (both**3 * within**2)
    return RunLength(
        max(ceil(steps), 0) * thinning,
        ceil(needed) * thinning,
        thinning,
        _least(quantile, within, probability),
    )


def _least(quantile: float, within: float, probability: float) -> int:
    for name, value in (("quantile", quantile), ("within", within), ("probability", probability)):
        if not 0.0 < value < 1.0:
            raise ValueError(f"{name} is {value!r}, but must be between 0 and 1")
    z = float(ndtri((1.0 + probability) / 2.0))
    return ceil(quantile * (1.0 - quantile) * (z / within) ** 2)


def _second_order_is_better(chain: Flags) -> bool:
    """Whether BIC prefers a second-order chain: G² − 2 log n, two being the parameters that it has more."""
    if len(chain) < 4:
        return False
    coded = 4 * chain[:-2] + 2 * chain[1:-1] + chain[2:]
    triples = np.bincount(coded, minlength=8).reshape(2, 2, 2).astype(np.float64)
    middle = triples.sum(axis=(0, 2), keepdims=True)
    first_order = triples.sum(axis=2, keepdims=True) * triples.sum(axis=0, keepdims=True) / np.maximum(middle, 1.0)
    seen = triples > 0
    g2 = 2.0 * float(xlogy(triples[seen], triples[seen] / first_order[seen]).sum())
    return g2 - 2.0 * log(len(coded)) >= 0.0


def _rates(chain: Flags) -> tuple[float, float]:
    """Shares of steps that leave False, and that leave True."""
    before, after = chain[:-1], chain[1:]
    leave = float((after & ~before).sum() / max((~before).sum(), 1))
    come_back = float((~after & before).sum() / max(before.sum(), 1))
    if leave == 0.0 or come_back == 0.0:
        raise ValueError("draws cross their quantile at most once: the pilot run is far too short")
    return leave, come_back
