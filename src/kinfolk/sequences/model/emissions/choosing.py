"""Which family of emissions suits a channel, with a prior in the data's own units.

The prior of numbers has the mean and the spread of the training data, that of counts their mean. Otherwise the same
temperatures in degrees Celsius and Fahrenheit, or the same lengths in metres and feet, would have other clusters, and
strength would mean something else for every channel. This uses the data twice, but only for where its centre is and how
wide it is, of which many states' data say little that the prior, as weak as a fraction of an observation, could spoil.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.emissions.channels import Channels
from kinfolk.sequences.model.emissions.emission import Emission, Floats, Observations
from kinfolk.sequences.model.emissions.gaussian_diagonal import GaussianDiagonal
from kinfolk.sequences.model.emissions.gaussian_full import GaussianFull
from kinfolk.sequences.model.emissions.poisson import Poisson

KINDS = ("auto", "categorical", "gaussian", "gaussian-full", "poisson")
# As many values an integer column may have in the other models and still be one of categories.
MOST_CODES = 64
# Learnt in any case; much larger makes states of a wide codebook costly, so that too many are shared. Covariances are
# another matter: on frames of speech and of music their evidence is highest between 1 and 3, and at 0.3 far below.
DEFAULT_STRENGTH = 0.3
DEFAULT_STRENGTH_OF_COVARIANCES = 1.0

# Spread relative to the numbers' size, and variance of standardised columns in a direction, that is but rounding.
_ROUNDING = 1e-13
_COLLINEAR = 1e-10


def choose_emission(
    observations: Observations,
    kind: str | Sequence[str] = "auto",
    strength: float | None = None,
    *,
    n_codes: int | Sequence[int | None] | None = None,
) -> Emission:
    """The family of emissions for each channel, with a prior made for its data.

    Parameters
    ----------
    observations : tuple of arrays
        A channel each: int64 (n_steps,), −1 for missing, or float64 (n_steps, width), NaN for missing.
    kind : {"auto", "categorical", "gaussian", "gaussian-full", "poisson"} or a sequence of these, one a channel
        "auto" makes integers categorical if there are at most 64, and floats Gaussian with independent entries. Counts
        are Poisson only if so named.
    strength : float, optional
        The weight of every channel's prior, how many observations it counts for; 0.3 by default, but 1 where all
        channels are "gaussian-full".
    n_codes : int or sequence of int, optional
        The size of a categorical channel's codebook, if that is more than what its data shows.

    Returns
    -------
    Emission

    Examples
    --------
    >>> codes, numbers = np.array([0, 2, 1, 1]), np.array([[0.5], [0.1], [np.nan], [0.9]])
    >>> choose_emission((codes,))
    Categorical(n_codes=3, strength=0.3)
    >>> both = choose_emission((codes, numbers), ["poisson", "gaussian"], strength=1.0)
    >>> [type(emission).__name__ for emission in both.emissions]
    ['Poisson', 'GaussianDiagonal']
    """
    kinds = _one_a_channel(kind, len(observations), "kind")
    sizes = _one_a_channel(n_codes, len(observations), "n_codes")
    if strength is None:
        are_full = all(own == "gaussian-full" for own in kinds)
        strength = DEFAULT_STRENGTH_OF_COVARIANCES if are_full else DEFAULT_STRENGTH
    emissions = [
        _of_channel(array, own_kind, float(strength), size, f"Channel {i}")
        for i, (array, own_kind, size) in enumerate(zip(observations, kinds, sizes, strict=True))
    ]
    return emissions[0] if len(emissions) == 1 else Channels(tuple(emissions))


def _one_a_channel(given: Any, n_channels: int, name: str) -> list[Any]:
    if given is None or isinstance(given, (str, int, np.integer)):
        return [given] * n_channels
    if len(given) != n_channels:
        raise ValueError(f"{name} names {len(given)} channels, but the observations have {n_channels}: give one each.")
    return list(given)


def _of_channel(array: NDArray[np.generic], kind: str, h: float, n_codes: int | None, name: str) -> Emission:
    if kind not in KINDS:
        raise ValueError(f"{name} is to be of kind {kind!r}, but a kind is one of {', '.join(map(repr, KINDS))}.")
    is_whole = np.issubdtype(array.dtype, np.integer)
    if kind == "auto":
        kind = "categorical" if is_whole else "gaussian"
        if is_whole and n_codes is None and len(np.unique(array[array >= 0])) > MOST_CODES:  # type: ignore[operator]
            raise ValueError(
                f"{name} has more than {MOST_CODES} different integers: name its kind, 'categorical' or 'poisson', "
                f"or give floats for 'gaussian'."
            )
    if is_whole != (kind in ("categorical", "poisson")):
        have, need = ("integers", "floats") if is_whole else ("floats", "integers")
        raise ValueError(f"{name} has {have}, but kind {kind!r} needs {need}.")
    if kind == "categorical":
        seen = int(array.max(initial=0)) + 1
        if n_codes is not None and seen > n_codes:
            raise ValueError(f"{name} has the code {seen - 1}, but n_codes={n_codes} allows codes up to {n_codes - 1}.")
        return Categorical(seen if n_codes is None else int(n_codes), h)
    if kind == "poisson":
        counts = array[array >= 0]  # type: ignore[operator]
        # Were they all zero, a mean of zero would leave no room for any other count.
        return Poisson(max(float(counts.sum()), 1.0) / max(len(counts), 1), h)
    numbers = np.asarray(array, dtype=np.float64)
    return _diagonal(numbers, h) if kind == "gaussian" else _full(numbers, h, name)


def _diagonal(numbers: Floats, h: float) -> GaussianDiagonal:
    centre, scale = _centre_and_scale(numbers)
    return GaussianDiagonal(centre, scale, h)


def _full(numbers: Floats, h: float, name: str) -> GaussianFull:
    """Coordinates from the correlations of complete steps; directions without variance are left out."""
    known = ~np.isnan(numbers).all(axis=0)
    complete = numbers[~np.isnan(numbers[:, known]).any(axis=1)]
    if len(complete) == 0:
        raise ValueError(f"{name} has no step without a missing entry, but kind 'gaussian-full' leaves all others out.")
    centre, scale = _centre_and_scale(complete)
    varies = scale > 0.0
    z = (complete[:, varies] - centre[varies]) / scale[varies]
    correlation = z.T @ z / len(z)
    if len(z) <= len(correlation):
        # So few steps cannot tell columns that depend on each other from those that were not seen to differ.
        correlation = 0.5 * (correlation + np.eye(len(correlation)))
    variance, direction = np.linalg.eigh(correlation)
    is_kept = variance > _COLLINEAR
    root, direction = np.sqrt(variance[is_kept]), direction[:, is_kept]
    whiten, colour = np.zeros((len(centre), len(root))), np.zeros((len(root), len(centre)))
    whiten[varies] = direction / root / scale[varies, None]
    colour[:, varies] = direction.T * root[:, None] * scale[varies]
    return GaussianFull(centre, whiten, colour, float(np.log(root).sum() + np.log(scale[varies]).sum()), h)


def _centre_and_scale(numbers: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each column; a column that does not vary has scale 0, an empty one centre NaN."""
    is_there = ~np.isnan(numbers)
    n = is_there.sum(axis=0)
    filled = np.where(is_there, numbers, 0.0)
    # Divided by their size first, so that squares of large numbers do not overflow.
    size = np.abs(filled).max(axis=0, initial=0.0)
    unit = np.where(size > 0.0, size, 1.0)
    mean = (filled / unit).sum(axis=0) / np.maximum(n, 1)
    gaps = np.where(is_there, filled / unit - mean, 0.0)
    scale = np.sqrt((gaps**2).sum(axis=0) / np.maximum(n, 1))
    return np.where(n > 0, mean * unit, np.nan), np.where(scale > _ROUNDING, scale * unit, 0.0)
