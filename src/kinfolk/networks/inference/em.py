"""Structures from rows with missing values: structural EM (Friedman 1998), for all tasks at once.

In the papers: Niculescu-Mizil and Caruana (2012), section 5.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from kinfolk.interrupts import asked
from kinfolk.networks.inference.completions import completions
from kinfolk.networks.inference.structures import Hyper, Options, Outcome, learn_structures
from kinfolk.networks.model.data import Data
from kinfolk.networks.model.network import Network, Structures
from kinfolk.networks.model.parameters import learn_networks
from kinfolk.progress import no_progress

MOST_ROUNDS = 50
_STILL = 1e-4
# Fewer complete rows say too little about structure to start from.
_FEWEST_COMPLETE = 10


class Filled(NamedTuple):
    """Each task's rows filled in, with the weights of their completions, and what was learnt from them."""

    data: Data
    outcome: Outcome
    n_rounds: int


def learn_from_incomplete(
    options: Options, hyper: Hyper, data: Data, seed: int, advance: Callable[[int], None] = no_progress
) -> Filled:
    """Fill rows in by the networks so far, learn structures from the weighted rows, and again until they stay.

    The first structures are those of the complete rows, where every task has some, else empty; tables come from the
    values that are there. A structure that came up before ends the search too: where completions are drawn rather than
    listed, the last few may take turns. Tables are then improved alone until they stay. Ctrl-C ends this after a round;
    one whose searches it cut short counts only if it is the first.
    """
    structures = _first_structures(options, hyper, data, seed)
    networks = learn_networks(structures, data, options.criterion, options.ess)
    seen: set[bytes] = set()
    outcome = Outcome(structures, -np.inf, 0.0)
    n_rounds, settled = 0, False
    place = options.kept("structural EM", hyper, data, seed).place()
    if (kept := place.load()) is not None:
        n_rounds, settled, before_now, outcome, learnt = kept
        structures, seen = outcome.structures, {one.tobytes() for one in before_now}
        networks = tuple(
            network._replace(parents=p, tables=t) for network, (p, t) in zip(networks, learnt, strict=True)
        )
    filled: Data | None = None
    while n_rounds < MOST_ROUNDS:
        # The same draws in every round, so that only what was learnt makes a difference.
        rng = np.random.default_rng(seed)
        completed = [_complete(*part, rng) for part in zip(networks, data.codes, data.present, strict=True)]
        rows = data._replace(
            codes=tuple(rows for rows, _ in completed),
            weights=tuple(weights for _, weights in completed),
            complete=True,
        )
        found = outcome
        if not settled:
            # Go on from the last structures unless they are empty; required arcs are in the start that was given.
            starts = structures if structures.any() else options.starts
            found = learn_structures(options._replace(starts=starts), hyper, rows, seed)
        stops = n_rounds > 0 and asked()
        if stops or place.due():
            before_now = [np.frombuffer(one, dtype=bool) for one in sorted(seen)]
            learnt = [(network.parents, network.tables) for network in networks]
            place.save((n_rounds, settled, before_now, outcome, learnt))
        if stops:
            filled = rows if filled is None else filled
            break
        if not settled:
            outcome, structures = found, found.structures
            settled = structures.tobytes() in seen
            seen.add(structures.tobytes())
        filled, before = rows, networks
        n_rounds += 1
        networks = learn_networks(structures, filled, options.criterion, options.ess)
        advance(1)
        if asked() or (settled and _change(before, networks) < _STILL):
            break
    else:
        warnings.warn(
            f"Structural EM was still changing the networks after {MOST_ROUNDS} rounds: the last ones are kept. "
            "Fewer missing values, or a smaller max_parents, make it settle.",
            ConvergenceWarning,
            stacklevel=2,
        )
    assert filled is not None
    return Filled(filled, outcome, n_rounds)


def _change(before: tuple[Network, ...], after: tuple[Network, ...]) -> float:
    """Largest change of a probability; any at all where structures differ."""
    if [network.parents for network in before] != [network.parents for network in after]:
        return np.inf
    return max(
        float(np.abs(old - new).max())
        for one, other in zip(before, after, strict=True)
        for old, new in zip(one.tables, other.tables, strict=True)
    )


def _first_structures(options: Options, hyper: Hyper, data: Data, seed: int) -> Structures:
    complete = [codes[(codes[:, here] >= 0).all(axis=1)] for codes, here in zip(data.codes, data.present, strict=True)]
    if min(map(len, complete)) < _FEWEST_COMPLETE:
        return np.zeros((len(complete), len(data.cards), len(data.cards)), dtype=bool)
    return learn_structures(options, hyper, data._replace(codes=tuple(complete), complete=True), seed).structures


def _complete(
    network: Network, codes: NDArray[np.int32], here: NDArray[np.bool_], rng: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    own = np.flatnonzero(here)
    found = completions(network, codes[:, own], rng)
    whole = np.full((len(found.codes), len(here)), -1, dtype=np.int32, order="F")
    whole[:, own] = found.codes
    return whole, found.weights
