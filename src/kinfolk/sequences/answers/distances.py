"""How far apart fitted models are, by how likely each makes what the other simulates (Ni et al. 2007, eqs. 11 and 12).

K. Ni, L. Carin and D. Dunson, "Multi-Task Learning for Sequential Data via iHMMs and the Nested Dirichlet Process",
ICML 2007, after J.-J. Aucouturier and F. Pachet, "Music similarity measures: what's the use?", ISMIR 2002. It compares
models that were learnt in isolation too, which have no probability of being kin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kinfolk.maths.arrays import Floats

if TYPE_CHECKING:
    from kinfolk.sequences.model.emissions.emission import Emission

__all__ = ["Model", "distances", "model_distances", "similarities", "simulate"]


class Model(NamedTuple):
    """A fitted hidden Markov model."""

    transitions: Floats
    """(L + 1, L); row 0 starts a sequence, row r + 1 leaves state r."""
    parameters: Floats
    """(L, P), of the emission."""


def distances(n_models: int, sample: Callable[[int], Any], score: Callable[[Any, int], Floats]) -> Floats:
    """Distance of any two models, in nats per simulated sequence (eq. 11).

    Parameters
    ----------
    n_models : int
    sample : callable
        ``sample(i)`` gives sequences simulated from model i, in any form.
    score : callable
        ``score(sequences, j)`` gives the log likelihood of each of them under model j.

    Returns
    -------
    ndarray of shape (n_models, n_models)
        Symmetric, zero on the diagonal. It estimates the mean of the two Kullback–Leibler divergences between the
        distributions of a sequence, so that one between close models may come out a little below zero.

    Examples
    --------
    Coins instead of hidden Markov models, whose divergences are known:

    >>> heads = [0.5, 0.9]
    >>> tosses = [np.array([1, 0]), np.array([1] * 9 + [0])]
    >>> found = distances(2, lambda i: tosses[i], lambda x, j: np.log(np.where(x, heads[j], 1 - heads[j])))
    >>> found.round(4).tolist()
    [[0.0, 0.4394], [0.4394, 0.0]]
    """
    means = np.empty((n_models, n_models))
    for i in range(n_models):
        sequences = sample(i)
        for j in range(n_models):
            means[i, j] = np.mean(score(sequences, j))
    loss = np.diag(means)[:, None] - means
    return np.asarray((loss + loss.T) / 2.0)


def model_distances(
    models: Sequence[Model],
    emission: Emission,
    *,
    n_sequences: int = 200,
    length: int = 40,
    random_state: int = 0,
) -> Floats:
    """Distance of any two hidden Markov models with one kind of emission, by simulation (eq. 11).

    Parameters
    ----------
    models : sequence of Model
    emission : Emission
    n_sequences : int, default=200
        Simulated from each model, the K of the paper.
    length : int, default=40
        Steps of each.
    random_state : int, default=0

    Returns
    -------
    ndarray of shape (n_models, n_models)
    """
    from kinfolk.sequences.model.filtering import log_likelihoods, scaled

    bounds = np.arange(0, (n_sequences + 1) * length, length, dtype=np.int64)

    def sample(i: int) -> Any:
        return simulate(models[i], emission, n_sequences, length, np.random.default_rng([random_state, i]))

    def score(observations: Any, j: int) -> Floats:
        density = scaled(emission.log_densities(models[j].parameters, observations))
        return np.asarray(log_likelihoods(density, bounds, models[j].transitions))

    return distances(len(models), sample, score)


def simulate(model: Model, emission: Emission, n_sequences: int, length: int, rng: np.random.Generator) -> Any:
    """Observations of so many sequences of one length, drawn from a model, one sequence after the other."""
    cumulative = np.cumsum(model.transitions, axis=1)
    cumulative /= cumulative[:, -1:]
    n_states = model.transitions.shape[1]
    states = np.empty((n_sequences, length), dtype=np.int64)
    leaving = np.zeros(n_sequences, dtype=np.int64)
    for t in range(length):
        drawn = (rng.random(n_sequences)[:, None] >= cumulative[leaving]).sum(axis=1)
        states[:, t] = np.minimum(drawn, n_states - 1)
        leaving = states[:, t] + 1
    return emission.draw_observations(model.parameters, states, rng)


def similarities(distance: Floats, variance: float | None = None) -> Floats:
    """Similarity from 0 to 1 by distance: exp(−D² / σ²) (eq. 12).

    Parameters
    ----------
    distance : ndarray of shape (n_models, n_models)
    variance : float, optional
        σ², which the paper calls arbitrary. By default the median of the squared distances between different models,
        so that half of the pairs have a similarity above 1/e.

    Returns
    -------
    ndarray of shape (n_models, n_models)

    Examples
    --------
    >>> similarities(np.array([[0.0, 2.0], [2.0, 0.0]]), variance=4.0).round(4).tolist()
    [[1.0, 0.3679], [0.3679, 1.0]]
    """
    squared = np.asarray(distance, dtype=np.float64) ** 2
    if variance is None:
        between = squared[~np.eye(len(squared), dtype=bool)]
        median = float(np.median(between)) if between.size else 1.0
        variance = median if median > 0 else 1.0
    elif not variance > 0:
        raise ValueError(f"variance is {variance!r}, but must be above 0")
    return np.asarray(np.exp(-squared / variance))
