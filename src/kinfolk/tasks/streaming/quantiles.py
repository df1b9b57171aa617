"""Exact quantiles of numbers that pass by in batches, several times over, and are never all held.

Floats keep their order when their bits are read as whole numbers. Every pass settles 16 more bits of each quantile: it
adds up the weight of the values that begin with the bits known so far, by the bits that follow.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled

N_PASSES = 4
_DIGITS = 1 << 16
# Ties at a quantile stay on the same side whether weights are sums of ones or one number (as in ``schema``).
_SLACK = 1.0 - 1e-12


def quantile_ranks(total: float, n_bins: int) -> NDArray[np.float64]:
    """Weight that is reached at each inner edge of bins of equal weight."""
    return np.asarray(total * np.arange(1, n_bins) / n_bins * _SLACK)


class QuantileSearch:
    """Search for the inner edges of bins of equal weight; NaN is no value.

    Examples
    --------
    >>> search = QuantileSearch(4)
    >>> for _ in range(N_PASSES):
    ...     search.add(np.array([5.0, 1.0]), np.empty(0))
    ...     search.add(np.array([3.0, 2.0]), np.empty(0))
    ...     search.narrow()
    >>> search.edges.tolist()
    [1.0, 2.0, 3.0]
    """

    def __init__(self, n_bins: int) -> None:
        self._n_bins = n_bins
        self._n_known = 0
        self._prefix = np.zeros(n_bins - 1, dtype=np.uint64)  # of every quantile, its bits known so far
        self._below: NDArray[np.float64] | None = None  # weight of what is less than any value with that prefix
        self._highest = -np.inf
        self._new_pass()

    def _new_pass(self) -> None:
        self._prefixes = np.unique(self._prefix)
        self._mass = np.zeros((len(self._prefixes), _DIGITS))

    def add(self, values: NDArray[np.float64], weights: NDArray[np.float64]) -> None:
        """Add a batch of the pass; without weights, every value weighs one."""
        highest = _add_digits(values, weights, self._prefixes, 48 - 16 * self._n_known, self._mass)
        self._highest = max(self._highest, highest)

    def narrow(self) -> None:
        """End a pass: settle the next bits of every quantile."""
        if self._below is None:
            self._wanted = quantile_ranks(self._mass.sum(), self._n_bins)
            self._below = np.zeros(self._n_bins - 1)
        own = np.searchsorted(self._prefixes, self._prefix)
        for k, mass in enumerate(self._mass[own]):
            reached = self._below[k] + np.cumsum(mass)
            # Sums in another order may end a hair short of what is wanted: then the last value there is meant.
            digit = min(int(np.searchsorted(reached, self._wanted[k])), int(np.flatnonzero(mass)[-1]))
            self._below[k] = reached[digit] - mass[digit]
            self._prefix[k] = (self._prefix[k] << np.uint64(16)) | np.uint64(digit)
        self._n_known += 1
        self._new_pass()

    @property
    def edges(self) -> NDArray[np.float64]:
        """The quantiles, each once, without the highest value, above which there is none."""
        top = np.uint64(1 << 63)
        bits = np.where(self._prefix & top, self._prefix ^ top, ~self._prefix)
        edges = np.unique(bits.view(np.float64))
        return np.asarray(edges[edges < self._highest])


@compiled
def _add_digits(values, weights, prefixes, shift, mass):  # type: ignore[no-untyped-def]
    """Add each value's weight to its prefix's row, at its next 16 bits; gives the highest value."""
    alike = len(weights) == 0
    # A zero below zero would differ from the other in its bits.
    bits = (values + 0.0).view(np.uint64)
    top, digit_bits = np.uint64(1 << 63), np.uint64(0xFFFF)
    highest = -np.inf
    for i in range(len(values)):
        if np.isnan(values[i]):
            continue
        weight = 1.0 if alike else weights[i]
        if weight == 0.0:
            continue
        highest = max(highest, values[i])
        key = ~bits[i] if bits[i] & top else bits[i] ^ top
        digits = key >> np.uint64(shift)
        prefix = digits >> np.uint64(16)
        row = np.searchsorted(prefixes, prefix)
        if row < len(prefixes) and prefixes[row] == prefix:
            mass[row, digits & digit_bits] += weight
    return highest
