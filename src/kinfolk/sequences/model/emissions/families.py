"""The families of emissions, and which of them suits a channel, with a prior in the data's own units.

The prior of numbers has the mean and the spread of the training data, that of counts their mean. Otherwise the same
temperatures in degrees Celsius and Fahrenheit, or the same lengths in metres and feet, would have other clusters, and
strength would mean something else for every channel. This uses the data twice, but only for where its centre is and how
wide it is, of which many states' data say little that the prior, as weak as a fraction of an observation, could spoil.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.sequences.model.emissions.autoregressive import Autoregressive
from kinfolk.sequences.model.emissions.bernoulli import Bernoulli
from kinfolk.sequences.model.emissions.categorical import Categorical
from kinfolk.sequences.model.emissions.channels import Channels
from kinfolk.sequences.model.emissions.emission import Asked, Emission, Family, Observations, with_past
from kinfolk.sequences.model.emissions.gaussian_diagonal import GaussianDiagonal
from kinfolk.sequences.model.emissions.gaussian_full import GaussianFull
from kinfolk.sequences.model.emissions.poisson import Poisson
from kinfolk.sequences.model.emissions.student_t import StudentT

# A new family is one line here.
FAMILIES: dict[str, type[Family]] = {
    "categorical": Categorical,
    "gaussian": GaussianDiagonal,
    "gaussian-full": GaussianFull,
    "student-t": StudentT,
    "ar": Autoregressive,
    "poisson": Poisson,
    "bernoulli": Bernoulli,
}
# As many values an integer column may have in the other models and still be one of categories.
MOST_CODES = 64


class Kind(NamedTuple):
    """What a name of an emission says: its family, and how many steps that looks back."""

    family: type[Family]
    order: int


def kind_named(name: Any) -> Kind | None:
    """What an emission's name says; None where there is no such emission.

    Examples
    --------
    >>> kind_named("ar"), kind_named("ar-3").order, kind_named("poisson-3")
    (Kind(family=<class 'kinfolk.sequences.model.emissions.autoregressive.Autoregressive'>, order=1), 3, None)
    """
    if not isinstance(name, str):
        return None
    if name in FAMILIES:
        return Kind(FAMILIES[name], int(FAMILIES[name].looks_back))
    stem, _, order = name.rpartition("-")
    if stem in FAMILIES and FAMILIES[stem].looks_back and re.fullmatch("[1-9][0-9]?", order):
        return Kind(FAMILIES[stem], int(order))
    return None


def family_named(name: str) -> type[Family]:
    """The family of an emission's name, which is known."""
    kind = kind_named(name)
    assert kind is not None
    return kind.family


def with_pasts(observations: Observations, kinds: Sequence[str], lengths: NDArray[np.int64]) -> Observations:
    """The channels of sequences end to end, those that look back with the steps before beside each step."""
    known = [kind_named(kind) for kind in kinds]
    return tuple(
        with_past(np.asarray(steps, dtype=np.float64), lengths, kind.order) if kind and kind.order else steps
        for steps, kind in zip(observations, known, strict=True)
    )


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
        A channel each: int64 (n_steps,), −1 for missing, or float64 (n_steps, width), NaN for missing; with the steps
        before beside each step where the kind looks back (`with_pasts`).
    kind : str or a sequence of str, one a channel
        "auto", or a name of ``FAMILIES``. "auto" makes integers categorical if there are at most 64, and floats
        Gaussian with independent entries. Counts are Poisson only if so named.
    strength : float, optional
        The weight of every channel's prior, how many observations it counts for; 0.3 by default, but 1 where all
        channels are "gaussian-full" or "ar".
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
    channels = zip(observations, kinds, sizes, strict=True)
    chosen = [_chosen(*given, f"Channel {i}") for i, given in enumerate(channels)]
    if strength is None:
        usual = {kind.family.usual_strength for kind, _ in chosen}
        strength = usual.pop() if len(usual) == 1 else Family.usual_strength
    families = [
        kind.family.made_for(steps, float(strength), asked)
        for (kind, asked), steps in zip(chosen, observations, strict=True)
    ]
    return side_by_side(families)


def side_by_side(families: Sequence[Family]) -> Emission:
    """The emission of all channels together."""
    return families[0] if len(families) == 1 else Channels(tuple(families))


def _one_a_channel(given: Any, n_channels: int, name: str) -> list[Any]:
    if given is None or isinstance(given, (str, int, np.integer)):
        return [given] * n_channels
    if len(given) != n_channels:
        raise ValueError(f"{name} names {len(given)} channels, but the observations have {n_channels}: give one each.")
    return list(given)


def _chosen(array: NDArray[Any], name: str, n_codes: int | None, channel: str) -> tuple[Kind, Asked]:
    is_whole = np.issubdtype(array.dtype, np.integer)
    if name == "auto":
        name = "categorical" if is_whole else "gaussian"
        if is_whole and n_codes is None and len(np.unique(array[array >= 0])) > MOST_CODES:
            raise ValueError(
                f"{channel} has more than {MOST_CODES} different integers: name its kind, 'categorical' or 'poisson', "
                f"or give floats for 'gaussian'."
            )
    kind = kind_named(name)
    if kind is None:
        known = ", ".join(map(repr, ("auto", *FAMILIES)))
        raise ValueError(f"{channel} is to be of kind {name!r}, but a kind is one of {known}.")
    if is_whole != (kind.family.reads != "numbers"):
        have, need = ("integers", "floats") if is_whole else ("floats", "integers")
        raise ValueError(f"{channel} has {have}, but kind {name!r} needs {need}.")
    return kind, Asked(channel, n_codes, kind.order)
