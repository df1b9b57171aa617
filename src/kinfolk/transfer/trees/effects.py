"""What rows of one task, or of one category, say of their targets, drawn to what all rows say; with numpy alone to use.

Rates of labels have a Dirichlet prior about the rates of all rows, means of numbers a Gaussian one; how strong it is,
in rows, is what makes the training rows most probable.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats

_MOST_SWEEPS, _SETTLED = 500, 1e-6
_STRENGTHS = 2.0 ** np.arange(-1.0, 11.0)


class Effects(NamedTuple):
    """Linear predictors (places + 1, outputs) of each task or category, and last of one never seen."""

    values: Floats

    @property
    def n_known(self) -> int:
        """How many tasks or categories are known."""
        return len(self.values) - 1

    def of(self, place: NDArray[np.int64]) -> Floats:
        """What the places of some rows say (rows, outputs); a place beyond those known is a new one."""
        return np.asarray(self.values[np.minimum(place, self.n_known)])


def rates_of(
    place: NDArray[np.int64], codes: NDArray[np.int64], weights: Floats, n_known: int, n_labels: int
) -> Floats:
    """How often each place has each label (places, labels)."""
    counts = np.bincount(place * n_labels + codes, weights, minlength=n_known * n_labels)
    return counts.astype(np.float64).reshape(n_known, n_labels)


def label_effects(counts: Floats) -> Effects:
    """Log odds of the second of two labels, or log rates of more, from how often each place has each label."""
    from scipy.special import gammaln

    totals = counts.sum(axis=0)
    overall = (totals + 0.5) / (totals.sum() + 0.5 * len(totals))
    n = counts.sum(axis=1)

    def evidence(strength: float) -> float:
        prior = strength * overall
        inside = (gammaln(prior + counts) - gammaln(prior)).sum()
        return float(inside - (gammaln(strength + n) - gammaln(strength)).sum())

    strength = max(_STRENGTHS, key=evidence)
    rates = (counts + strength * overall) / (n + strength)[:, None]
    log_rates = np.log(np.vstack([rates, overall]))
    return Effects(log_rates[:, 1:] - log_rates[:, :1] if len(overall) == 2 else log_rates)


def number_effects(place: NDArray[np.int64], target: Floats, weights: Floats, n_known: int) -> Effects:
    """Means of numbers by place, drawn to the mean of all by the ratio of the variances within and between."""
    from kinfolk.transfer.trees.crossed import Groups, settle

    found, groups = np.zeros(n_known + 1), Groups.of([(place, n_known)], len(place))
    room = np.empty((2, n_known))
    settle(groups, target, weights, found, np.zeros(2), np.empty(len(place)), room, _MOST_SWEEPS, _SETTLED, False)
    found[:-1] += found[-1]
    return Effects(found[:, None])
