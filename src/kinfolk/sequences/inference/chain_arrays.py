"""A chain of the Gibbs sampler as plain arrays, and back, so that it can be put away and gone on from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinfolk.sequences.inference.agglomeration import SetFits, TaskSet
from kinfolk.sequences.inference.gibbs import Chain, GibbsSampler, Position
from kinfolk.sequences.inference.mean_field import ClusterFit
from kinfolk.sequences.inference.split_merge import SplitMerge
from kinfolk.sequences.model.draw import HyperParameters
from kinfolk.sequences.model.ndp_ihmm import ClusterPrior, State

_STATE_ARRAYS = ("cluster", "states", "base_weights", "parameters", "transitions")
_HALF = 1 << 64


def to_arrays(chain: Chain) -> dict[str, NDArray[Any]]:
    """Everything that a chain goes on from; references of its moves are made again from their fits."""
    position: Position = chain.position
    state, moves = position.state, position.moves
    arrays: dict[str, NDArray[Any]] = {f"state.{name}": getattr(state, name) for name in _STATE_ARRAYS}
    arrays["state.hyper"] = np.array(state.hyper)
    arrays["n_learning"] = np.array(position.n_learning)
    arrays["generator"] = _words_of(chain.generator)
    if moves is not None:
        fits = moves.set_fits
        arrays["moves.common"] = moves.common
        arrays["moves.prior"] = np.array(fits.hyper)
        arrays["moves.strength"] = np.array(fits.emission.strength)
        arrays["moves.seeds"] = np.array([fits.n_starts, fits.seed])
        arrays |= _fits_to_arrays("fits", fits.fits) | _fits_to_arrays("earlier", fits.earlier)
    return arrays


def from_arrays(sampler: GibbsSampler, arrays: Mapping[str, NDArray[Any]]) -> Chain:
    """The chain of a sampler that `to_arrays` gave."""
    hyper = HyperParameters(*arrays["state.hyper"].tolist())
    state = State(**{name: np.array(arrays[f"state.{name}"]) for name in _STATE_ARRAYS}, hyper=hyper)
    moves = None
    if "moves.common" in arrays:
        gamma, alpha, stickiness, n_states = arrays["moves.prior"].tolist()
        prior = ClusterPrior(gamma, alpha, stickiness, int(n_states))
        emission = sampler.emission.with_strength(float(arrays["moves.strength"]))
        n_starts, seed = arrays["moves.seeds"].tolist()
        known, earlier = _fits_from_arrays("fits", arrays), _fits_from_arrays("earlier", arrays)
        fits = SetFits(sampler.sequences, emission, prior, n_starts, seed, known, earlier)
        moves = SplitMerge.of(fits, np.array(arrays["moves.common"]))
    return Chain(Position(state, moves, int(arrays["n_learning"])), _generator_from(arrays["generator"]))


def _fits_to_arrays(name: str, fits: Mapping[TaskSet, ClusterFit]) -> dict[str, NDArray[Any]]:
    arrays = {f"{name}.n": np.array(len(fits))}
    for i, (tasks, fit) in enumerate(fits.items()):
        arrays[f"{name}.{i}.tasks"] = np.array(tasks)
        arrays |= {f"{name}.{i}.{field}": np.asarray(value) for field, value in fit._asdict().items()}
    return arrays


def _fits_from_arrays(name: str, arrays: Mapping[str, NDArray[Any]]) -> dict[TaskSet, ClusterFit]:
    fits: dict[TaskSet, ClusterFit] = {}
    for i in range(int(arrays[f"{name}.n"])):
        fields = {field: np.array(arrays[f"{name}.{i}.{field}"]) for field in ClusterFit._fields}
        fit = ClusterFit(**fields)  # type: ignore[arg-type]
        fits[tuple(arrays[f"{name}.{i}.tasks"].tolist())] = fit._replace(bound=float(fit.bound))
    return fits


def _words_of(generator: Mapping[str, Any]) -> NDArray[np.uint64]:
    """The state of numpy's PCG64: two numbers of 128 bits, and half a number that is left over."""
    numbers = generator["state"]["state"], generator["state"]["inc"]
    words = [word for number in numbers for word in divmod(number, _HALF)]
    return np.array([*words, generator["has_uint32"], generator["uinteger"]], dtype=np.uint64)


def _generator_from(words: NDArray[np.uint64]) -> dict[str, Any]:
    high, low, high_step, low_step, has_half, half = words.tolist()
    return {
        "bit_generator": "PCG64",
        "state": {"state": high * _HALF + low, "inc": high_step * _HALF + low_step},
        "has_uint32": has_half,
        "uinteger": half,
    }
