"""How a task may be that was not met in training, according to draws of the posterior (Ni et al. 2007, eq. 5 and 9).

It joins cluster k of a draw with probability (n_k + η/K) / (J + η), or an empty one, and has transition rows of its own
from Dir(αβ_k); several draws of them stand for all. Only numpy is imported here, and what is random belongs to a draw:
it is the same whenever it is asked for, in an estimator and in a file that it was saved to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kinfolk.maths.arrays import Floats
from kinfolk.maths.gamma_draws import log_gamma_draws
from kinfolk.sequences.model.draw import Draw, HyperParameters, chances_of_features

# Transition rows that are drawn for a new task: so many over all draws, and at least so many from each.
_ROWS_OVER_ALL, _FEWEST_ROWS = 200, 4
# A share too small for a float counts as this one, so that logarithms stay finite.
_LEAST_PSEUDO_COUNT = 1e-100


class Empty(NamedTuple):
    """A cluster from the prior for each draw: base weights (draws, states) and θ (draws, states, parameters)."""

    base_weights: Floats
    parameters: Floats


class Way(NamedTuple):
    """One way in which a new task may be: its weight, its cluster in the draw (−1 for an empty one), rows and θ."""

    log_weight: float
    cluster: int
    transitions: Floats
    parameters: Floats


def pseudo_counts(base_weights: Floats, hyper: HyperParameters) -> Floats:
    """Prior of a task's transition rows: αβ in each, and the bias κ where a state stays (states + 1, states).

    Examples
    --------
    >>> hyper = HyperParameters(eta=1.0, gamma=1.0, alpha=2.0, strength=1.0, stickiness=3.0)
    >>> pseudo_counts(np.array([0.5, 0.5]), hyper).tolist()
    [[1.0, 1.0], [4.0, 1.0], [1.0, 4.0]]
    """
    n_states = len(base_weights)
    rows = np.tile(np.maximum(hyper.alpha * base_weights, _LEAST_PSEUDO_COUNT), (n_states + 1, 1))
    rows[1:] += hyper.stickiness * np.eye(n_states)
    return rows


def draw_rows(rows: Floats, rng: np.random.Generator) -> Floats:
    """Draw from a Dirichlet distribution for each row; files rely on which random numbers it takes."""
    weights = log_gamma_draws(rows, rng)
    shares = np.exp(weights - weights.max(axis=-1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=-1, keepdims=True))


def joining_weights(draw: Draw, n_clusters: int | None) -> tuple[Floats, float]:
    """Probabilities with which a new task joins each cluster of a draw, and an empty one; they add up to one.

    With one cluster in the model there is no other to join; None says that tasks never share.
    """
    if n_clusters is None:
        return np.zeros(len(draw.base_weights)), 1.0
    sizes = np.bincount(draw.cluster, minlength=len(draw.base_weights))
    share = draw.hyper.eta / n_clusters
    joins = (sizes + share) / (len(draw.cluster) + draw.hyper.eta)
    n_empty = n_clusters - len(sizes)
    return np.asarray(joins), n_empty * share / (len(draw.cluster) + draw.hyper.eta)


def ways_of_a_new_task(
    draws: Sequence[Draw], place: int, empty: Empty, n_clusters: int | None, seed: int
) -> Iterator[Way]:
    """Ways in which a new task may be according to the draw at a place; their weights add up to one."""
    draw, rng = draws[place], np.random.default_rng([seed, place])
    n_rows = max(_FEWEST_ROWS, -(-_ROWS_OVER_ALL // len(draws)))
    joins, alone = joining_weights(draw, n_clusters)
    clusters = [
        (k, weight, draw.base_weights[k], draw.parameters[k]) for k, weight in enumerate(joins.tolist()) if weight > 0
    ]
    if alone > 0.0:
        clusters.append((-1, alone, empty.base_weights[place], empty.parameters[place]))
    for cluster, weight, base, parameters in clusters:
        for _ in range(n_rows):
            rows = pseudo_counts(base_of_a_new_task(draw, base, rng), draw.hyper)
            yield Way(float(np.log(weight / n_rows)), cluster, draw_rows(rows, rng), parameters)


def base_of_a_new_task(draw: Draw, base: Floats, rng: np.random.Generator) -> Floats:
    """A cluster's base weights as a new task has them: where tasks choose their states, one for each that it chose."""
    if draw.features is None:
        return base
    chances = chances_of_features(draw.features, draw.hyper)
    chosen = rng.random(len(chances)) < chances
    # A task has one at least.
    chosen[rng.choice(len(chances), p=base)] |= not chosen.any()
    return chosen.astype(np.float64)
