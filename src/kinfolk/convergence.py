"""Whether the chains of a sampler have converged: R-hat and effective sample size (Vehtari et al. 2021).

A. Vehtari, A. Gelman, D. Simpson, B. Carpenter and P.-C. Bürkner, "Rank-normalization, folding, and localization: an
improved R-hat for assessing convergence of MCMC", Bayesian Analysis 16, 2021, 667–718.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from kinfolk.maths.arrays import Floats

# The paper asks for 1.01, of chains of thousands of draws; those of a few hundred are told from the same distribution
# no better than this.
HIGHEST_R_HAT = 1.05
# So many draws know a probability to within 0.05, one standard error, at worst.
LOWEST_ESS = 100.0
# Halves of chains need two draws each to vary at all.
_FEWEST_DRAWS = 4


class Convergence(NamedTuple):
    """R-hat and effective sample size of named quantities, over all chains; NaN where there are fewer than 4 draws.

    Examples
    --------
    >>> draws = np.random.default_rng(0).normal(size=(4, 200))
    >>> diagnose({"log joint": draws}).converged
    True
    >>> apart = draws + 3.0 * np.arange(4)[:, None]
    >>> print(diagnose({"log joint": apart}).advice())
    The chains disagree about the log joint (R-hat 2.68, at most 1.05 is wanted): raise n_burn_in and n_draws tenfold.
    """

    r_hat: dict[str, float]
    ess: dict[str, float]

    @property
    def converged(self) -> bool:
        """Whether chains agree, R-hat being at most 1.05, and know enough, by 100 effective draws in all."""
        return self.agree and all(n >= LOWEST_ESS for n in self.ess.values())

    @property
    def agree(self) -> bool:
        """Whether chains agree, R-hat being at most 1.05, however few their draws."""
        # Written so that NaN says no.
        return all(r <= HIGHEST_R_HAT for r in self.r_hat.values())

    def advice(self) -> str:
        """What to do, in one sentence."""
        if self.converged:
            return "The chains have converged: nothing needs to be done."
        if any(np.isnan(r) for r in self.r_hat.values()):
            return f"Fewer than {_FEWEST_DRAWS} draws of a chain tell nothing about convergence: raise n_draws."
        apart = max(self.r_hat, key=self.r_hat.__getitem__)
        if np.isinf(self.r_hat[apart]):
            return (
                f"The chains disagree about the {apart}, and each stays as it began (R-hat is infinite): "
                "raise n_burn_in tenfold, and if that moves none of them, take another inference."
            )
        if self.r_hat[apart] > HIGHEST_R_HAT:
            found = f"R-hat {self.r_hat[apart]:.2f}, at most {HIGHEST_R_HAT:g} is wanted"
            return f"The chains disagree about the {apart} ({found}): raise n_burn_in and n_draws tenfold."
        few = min(self.ess, key=self.ess.__getitem__)
        found = f"{self.ess[few]:.0f} effective draws, {LOWEST_ESS:g} are wanted"
        factor = int(np.ceil(1.2 * LOWEST_ESS / self.ess[few]))
        return (
            f"The chains are too short to estimate the {few} ({found}): raise n_draws by a factor of {max(factor, 2)}."
        )


def diagnose(quantities: Mapping[str, NDArray[np.generic]]) -> Convergence:
    """Judge chains by quantities that they drew, each an array (chains, draws)."""
    draws = {name: _without_dust(np.asarray(drawn, dtype=np.float64)) for name, drawn in quantities.items()}
    return Convergence(
        {name: r_hat(drawn) for name, drawn in draws.items()}, {name: bulk_ess(drawn) for name, drawn in draws.items()}
    )


def r_hat(draws: Floats) -> float:
    """Rank-normalised split R-hat of draws (chains, draws), the larger of that of their values and of their spread.

    Chains that do not move count as 1 if they agree. If they disagree, R-hat is infinite: the variance within chains
    that it divides by is zero. A single chain is judged by its two halves.

    Examples
    --------
    >>> r_hat(np.zeros((4, 100)))
    1.0
    >>> r_hat(np.repeat([[0.0], [1.0]], 100, axis=1))
    inf
    """
    if draws.shape[1] < _FEWEST_DRAWS:
        return np.nan
    halves = _halves(draws)
    spread = np.abs(halves - np.median(halves))
    return max(_plain_r_hat(_normal_scores(halves)), _plain_r_hat(_normal_scores(spread)))


def bulk_ess(draws: Floats) -> float:
    """Effective sample size of all draws (chains, draws) together, for what is in the bulk of their distribution.

    Chains that do not move and agree count each draw.

    Examples
    --------
    >>> bulk_ess(np.zeros((4, 100)))
    400.0
    """
    if draws.shape[1] < _FEWEST_DRAWS:
        return np.nan
    halves = _halves(draws)
    if np.ptp(halves) == 0.0:
        return float(halves.size)
    return _plain_ess(_normal_scores(halves))


def _without_dust(draws: Floats) -> Floats:
    """Draws in which values that differ by rounding alone are equal, since what follows looks at ranks."""
    order = np.argsort(draws, axis=None)
    values = draws.ravel()[order]
    differs = np.append(True, np.diff(values) > 1e-11 * max(1.0, float(np.abs(values).max())))
    clean = np.empty(draws.size)
    clean[order] = values[differs][np.cumsum(differs) - 1]
    return clean.reshape(draws.shape)


def _halves(draws: Floats) -> Floats:
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _normal_scores(draws: Floats) -> Floats:
    """Draws replaced by the normal quantiles of their ranks, equal ones by that of their mean rank."""
    _, place, times = np.unique(draws, return_inverse=True, return_counts=True)
    rank = np.cumsum(times) - 0.5 * (times - 1.0)
    return np.asarray(ndtri((rank[place.reshape(draws.shape)] - 0.375) / (draws.size + 0.25)))


def _plain_r_hat(chains: Floats) -> float:
    """Square root of the variance of all draws, as chains' means show it, over that within chains."""
    n = chains.shape[1]
    within, between = chains.var(axis=1, ddof=1).mean(), chains.mean(axis=1).var(ddof=1)
    # Equal draws have a variance that rounding alone keeps above zero.
    if within < 1e-20:
        return 1.0 if between < 1e-20 else np.inf
    return float(np.sqrt((n - 1.0) / n + between / within))


def _plain_ess(chains: Floats) -> float:
    """Draws over their autocorrelation time, summed by Geyer's initial monotone sequence."""
    n = chains.shape[1]
    centred = chains - chains.mean(axis=1, keepdims=True)
    spectrum = np.abs(np.fft.rfft(centred, 2 * n, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum, axis=1)[:, :n].mean(axis=0) / n
    within = covariance[0] * n / (n - 1.0)
    overall = covariance[0] + chains.mean(axis=1).var(ddof=1)
    correlation = 1.0 - (within - covariance) / overall
    correlation[0] = 1.0
    n_pairs = max(1, (n - 1) // 2)
    pairs = correlation[0 : 2 * n_pairs : 2] + correlation[1 : 2 * n_pairs : 2]
    ended = np.flatnonzero(pairs <= 0.0)
    last = int(ended[0]) if len(ended) else n_pairs - 1
    time = 2.0 * np.minimum.accumulate(pairs[:last]).sum() + max(float(correlation[2 * last]), 0.0) - 1.0
    # Alternating chains may be better than independent draws, but not without limit.
    return float(chains.size / max(time, 1.0 / np.log10(chains.size)))
