"""The penalty chosen by rows held out, from a logarithmic grid of 1 − δ (section 4).

In the papers: Niculescu-Mizil and Caruana (2012), section 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.networks.inference.structures import Plan, learn_structures
from kinfolk.networks.model.cases import lay_out
from kinfolk.networks.model.parameters import network_of_task

# 1 − δ from 1 to 10⁻¹², then δ = 1: separate structures at one end, identical ones at the other.
GRID = (*(np.log(10) * np.array([0, 0.25, 0.5, 1, 1.5, 2, 3, 4, 6, 8, 12])), np.inf)


class Curve(NamedTuple):
    """Mean log likelihood of held-out rows for each λ, averaged over tasks, and the best λ."""

    strengths: NDArray[np.float64]
    log_likelihood: NDArray[np.float64]

    @property
    def best(self) -> float:
        """The λ that predicts best; the weakest of equals."""
        return float(self.strengths[int(np.argmax(self.log_likelihood))])


def choose_strength(
    plan: Plan,
    codes: list[NDArray[np.int32]],
    cards: NDArray[np.int64],
    present: NDArray[np.bool_],
    share: float,
    seed: int,
    advance: Callable[[int], None] = lambda steps: None,
) -> Curve:
    """Try every λ of the grid on the same split of complete rows."""
    rng = np.random.default_rng(seed)
    kept, held = [], []
    for table in codes:
        order = rng.permutation(len(table))
        n_held = min(max(1, round(share * len(table))), len(table) - 1)
        held.append(table[order[:n_held]])
        kept.append(np.asfortranarray(table[order[n_held:]]))
    cases = lay_out(kept, cards, present)
    strengths = np.array(GRID)
    means = []
    for strength in strengths:
        fixed = plan._replace(strengths=scaled(plan.strengths, strength), learnt=False)
        structures = learn_structures(fixed, cases, seed).structures
        of_tasks = []
        for t, here in enumerate(present):
            network = network_of_task(structures[t], kept[t], cards, here, plan.criterion, plan.ess)
            of_tasks.append(network.log_probability(held[t][:, here]).mean())
        means.append(np.mean(of_tasks))
        advance(1)
    return Curve(strengths, np.array(means))


def scaled(factors: NDArray[np.float64], strength: float) -> NDArray[np.float64]:
    """λ of every pair; a pair with factor 0 is never held together, however strong the others are."""
    return np.where(factors == 0, 0.0, np.where(factors == 0, 1.0, factors) * strength)
