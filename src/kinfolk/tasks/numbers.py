"""Columns of numbers that need no bins: their family, their units, and the prior that their units imply.

Only numpy is imported here (see ``table``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FAMILIES = ("gaussian", "count")
# A standardised number is cut here, so that sums of squares stay finite whatever a later row holds.
_FARTHEST = 1e100
# Counts above this are not told apart by whole steps in floating point.
_LARGEST_COUNT = 2.0**53
# Pseudo-rows behind the prior of a Gaussian's mean (κ), half those behind its variance (a), and a prior variance b/a in
# standard units; pseudo-events behind the prior of a count's rate.
_MEAN_ROWS = 2.0
_VARIANCE_SHAPE = 2.0
_VARIANCE = 1.0
_RATE_EVENTS = 1.0


class Number(NamedTuple):
    """What a column is as a number: its family, and the centre and scale of its training rows.

    A "gaussian" column is standardised by them; of a "count" column the scale is the mean, and values stay as they are.
    """

    family: str
    centre: float
    scale: float

    def standardised(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """The values in standard units, NaN where missing, text, or nothing that the family can hold."""
        numbers = as_numbers(values).astype(np.float64)
        if self.family == "count":
            return np.where(is_count(numbers), numbers, np.nan)
        half = 0.5 * numbers - 0.5 * self.centre
        with np.errstate(over="ignore"):
            return np.clip(half / self.scale * 2.0, -_FARTHEST, _FARTHEST)

    def raw(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Standardised values in the column's own units."""
        return numbers if self.family == "count" else self.centre + self.scale * numbers

    @property
    def prior(self) -> tuple[float, float, float, float]:
        """The prior of ``maths.conjugate`` in the column's units: weak, and centred where the training rows are."""
        if self.family == "count":
            return _RATE_EVENTS, _RATE_EVENTS / self.scale, 0.0, 0.0
        return _MEAN_ROWS, _VARIANCE_SHAPE, _VARIANCE_SHAPE * _VARIANCE, float(np.log(self.scale))


def as_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """A column as numbers; NaN for text, of which nothing is known where numbers were seen in training."""
    if values.dtype != object:
        return values
    return np.array([_number(value) for value in values], dtype=np.float64)


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return np.nan


def is_count(numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each number is one that a count can be."""
    with np.errstate(invalid="ignore"):
        return np.asarray((numbers >= 0.0) & (numbers == np.floor(numbers)) & (numbers <= _LARGEST_COUNT))


def learn_number(values: NDArray[Any], weights: NDArray[np.float64] | None, family: str, label: str) -> Number:
    """Centre and scale of a column's training rows; an error where the family cannot hold one of them.

    Examples
    --------
    >>> learn_number(np.array([1.0, 3.0, np.nan]), None, "gaussian", "column 'size'")
    Number(family='gaussian', centre=2.0, scale=1.0)
    """
    numbers = as_numbers(values).astype(np.float64)
    present = ~np.isnan(numbers)
    if family == "count" and not is_count(numbers[present]).all():
        row = int(np.flatnonzero(present)[np.argmin(is_count(numbers[present]))])
        raise ValueError(f"{label}, row {row}: {numbers[row]:g} is not a count, which is a whole number from 0 to 2^53")
    kept, mass = numbers[present], np.ones(int(present.sum())) if weights is None else weights[present]
    # In the order of their sizes, so that the order of the rows changes no last bit.
    order = np.lexsort([mass, kept])
    kept, mass = kept[order], mass[order]
    if not len(kept):
        return Number(family, 0.0, 1.0)
    largest = float(np.abs(kept).max()) or 1.0
    share = mass / mass.sum()
    centre = float(share @ (kept / largest))
    if family == "count":
        # Half an event more keeps the prior proper where nothing was ever counted.
        return Number(family, 0.0, (largest * centre * mass.sum() + 0.5) / float(mass.sum()))
    spread = float(np.sqrt(share @ (kept / largest - centre) ** 2))
    # What is left of a constant column after rounding is no spread.
    rounding = 8.0 * np.finfo(np.float64).eps
    if spread <= rounding or largest * spread < np.finfo(np.float64).tiny:
        return Number(family, float(kept[len(kept) // 2]), max(1.0, rounding * largest))
    return Number(family, largest * centre, largest * spread)
