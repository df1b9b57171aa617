"""The strength λ of the joint prior inferred from the data, without rows held out (left open by the paper's section 5).

If acyclicity is left aside, the joint prior factorises over pairs of variables, and so does its normaliser: for one
pair that k tasks have, Z(λ) = Σ_s exp(−λ · cost(s)) over the 3^k ways to give each task a state, whose cost depends
only on how many tasks are in each. Given structures whose differences cost E in total, λ then maximises

    −λ·E − Σ_pairs log Z(λ) − λ,

the last term an exponential prior worth one edit, which keeps λ finite where all structures agree. This is concave in
λ, since log Z, the log of a sum of exponentials, is convex. Structures and λ are improved in turn, and with the uniform
P(G) no turn lowers their joint posterior; the exponent on any other P(G) depends on λ, which is left aside here.

In the papers: Niculescu-Mizil and Caruana (2012), section 5.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, logsumexp

from kinfolk.networks.model.configurations import edits, paired_penalty

_PRIOR_EDITS = 1.0
_STRONGEST = 60.0


class PairSpectrum(NamedTuple):
    """How many ways (as a log) there are to give k tasks states at each cost."""

    cost: NDArray[np.float64]
    log_ways: NDArray[np.float64]

    def log_normaliser(self, strength: float) -> float:
        """Natural log of Z at a given λ."""
        return float(logsumexp(self.log_ways - strength * self.cost))


def pair_spectrum(kind: str, n_tasks: int, costs: NDArray[np.float64], divisor: float) -> PairSpectrum:
    """Costs of all ways to give tasks states; ``divisor`` is the Paired prior's n_tasks − 1.

    Examples
    --------
    >>> from kinfolk.networks.model.configurations import edit_costs
    >>> spectrum = pair_spectrum("edit", 2, edit_costs(), 1)  # three ways to agree, six to differ
    >>> round(float(np.exp(spectrum.log_normaliser(0.0))), 6), round(float(np.exp(spectrum.log_normaliser(40.0))), 6)
    (9.0, 3.0)
    """
    measure = edits if kind == "edit" else paired_penalty
    cost, log_ways = [], []
    for n1 in range(n_tasks + 1):
        for n2 in range(n_tasks + 1 - n1):
            n0 = n_tasks - n1 - n2
            states = np.repeat(np.arange(3), [n0, n1, n2])
            cost.append(measure(states, costs) / divisor)
            log_ways.append(gammaln(n_tasks + 1) - gammaln(n0 + 1) - gammaln(n1 + 1) - gammaln(n2 + 1))
    return PairSpectrum(np.array(cost), np.array(log_ways))


def log_strength_posterior(
    strength: float, total_cost: float, spectra: list[PairSpectrum], n_pairs: list[int]
) -> float:
    """Log posterior of λ given structures, up to a constant; spectra go with the numbers of pairs that have them."""
    normaliser = sum(n * spectrum.log_normaliser(strength) for n, spectrum in zip(n_pairs, spectra, strict=True))
    return -strength * (total_cost + _PRIOR_EDITS) - normaliser


def best_strength(total_cost: float, spectra: list[PairSpectrum], n_pairs: list[int]) -> float:
    """λ that maximises its posterior given structures."""
    found = minimize_scalar(
        lambda strength: -log_strength_posterior(strength, total_cost, spectra, n_pairs),
        bounds=(0.0, _STRONGEST),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(found.x)
