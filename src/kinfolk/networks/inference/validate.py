"""The penalty chosen by rows held out, from a logarithmic grid of 1 − δ (section 4).

In the papers: Niculescu-Mizil and Caruana (2012), section 4.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from kinfolk.interrupts import asked
from kinfolk.networks.inference.structures import Hyper, Options, learn_structures
from kinfolk.networks.model.data import Data
from kinfolk.networks.model.fitted import Curve
from kinfolk.networks.model.parameters import learn_networks
from kinfolk.progress import no_progress

# 1 − δ from 1 to 10⁻¹², then δ = 1: separate structures at one end, identical ones at the other.
GRID = (*(np.log(10) * np.array([0, 0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 12])), np.inf)


def choose_strength(
    options: Options, hyper: Hyper, data: Data, seed: int, advance: Callable[[int], None] = no_progress
) -> Curve:
    """Try every λ of the grid on the same split of complete rows; ``options.validation`` of them are held out.

    Ctrl-C leaves nothing, as long as not all have been tried.
    """
    rng = np.random.default_rng(seed)
    kept, held = [], []
    for codes in data.codes:
        order = rng.permutation(len(codes))
        n_held = min(max(1, round(options.validation * len(codes))), len(codes) - 1)
        held.append(codes[order[:n_held]])
        kept.append(np.asfortranarray(codes[order[n_held:]]))
    rest = data._replace(codes=tuple(kept))

    def predicted(strength: float) -> float:
        structures = learn_structures(options, hyper.fixed(strength), rest, seed).structures
        networks = learn_networks(structures, rest, options.criterion, options.ess)
        of_tasks = zip(networks, held, data.present, strict=True)
        return float(np.mean([network.log_probability(rows[:, here]).mean() for network, rows, here in of_tasks]))

    keep, means = options.kept("validation", hyper, data, seed), []
    for strength in GRID:
        means.append(keep.done(partial(predicted, strength), float(strength)))
        if asked():
            raise KeyboardInterrupt
        advance(1)
    return Curve(np.array(GRID), np.array(means), float(GRID[int(np.argmax(means))]))
