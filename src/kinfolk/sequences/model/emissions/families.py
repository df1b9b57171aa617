"""The families of emissions, and which of them suits a channel, with a prior in the data's own units.

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
from kinfolk.sequences.model.emissions.emission import Emission, Family, Observations
from kinfolk.sequences.model.emissions.gaussian_diagonal import GaussianDiagonal
from kinfolk.sequences.model.emissions.gaussian_full import GaussianFull
from kinfolk.sequences.model.emissions.poisson import Poisson

# A new family is one line here.
FAMILIES: dict[str, type[Family]] = {
    "categorical": Categorical,
    "gaussian": GaussianDiagonal,
    "gaussian-full": GaussianFull,
    "poisson": Poisson,
}
# As many values an integer column may have in the other models and still be one of categories.
MOST_CODES = 64


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
    names = [f"Channel {i}" for i in range(len(observations))]
    chosen = [_family(*given) for given in zip(observations, kinds, sizes, names, strict=True)]
    if strength is None:
        usual = {family.usual_strength for family in chosen}
        strength = usual.pop() if len(usual) == 1 else Family.usual_strength
    channels = zip(chosen, observations, sizes, names, strict=True)
    return side_by_side([family.made_for(steps, float(strength), n, name) for family, steps, n, name in channels])


def side_by_side(families: Sequence[Family]) -> Emission:
    """The emission of all channels together."""
    return families[0] if len(families) == 1 else Channels(tuple(families))


def _one_a_channel(given: Any, n_channels: int, name: str) -> list[Any]:
    if given is None or isinstance(given, (str, int, np.integer)):
        return [given] * n_channels
    if len(given) != n_channels:
        raise ValueError(f"{name} names {len(given)} channels, but the observations have {n_channels}: give one each.")
    return list(given)


def _family(array: NDArray[Any], kind: str, n_codes: int | None, name: str) -> type[Family]:
    if kind != "auto" and kind not in FAMILIES:
        known = ", ".join(map(repr, ("auto", *FAMILIES)))
        raise ValueError(f"{name} is to be of kind {kind!r}, but a kind is one of {known}.")
    is_whole = np.issubdtype(array.dtype, np.integer)
    if kind == "auto":
        kind = "categorical" if is_whole else "gaussian"
        if is_whole and n_codes is None and len(np.unique(array[array >= 0])) > MOST_CODES:
            raise ValueError(
                f"{name} has more than {MOST_CODES} different integers: name its kind, 'categorical' or 'poisson', "
                f"or give floats for 'gaussian'."
            )
    if is_whole != (FAMILIES[kind].reads != "numbers"):
        have, need = ("integers", "floats") if is_whole else ("floats", "integers")
        raise ValueError(f"{name} has {have}, but kind {kind!r} needs {need}.")
    return FAMILIES[kind]
