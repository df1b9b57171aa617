"""The variational posterior of a model as draws from it, so that prediction knows draws only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kinfolk.sequences.inference.agglomeration import Agglomeration, find_clusters, relearnt
from kinfolk.sequences.inference.chains import MOST_BYTES, MOST_DRAWS, fitted_to_draws
from kinfolk.sequences.inference.mean_field import Hyper
from kinfolk.sequences.inference.mean_field_mixture import Mixture, fit_mixture, start_mixture, to_draws
from kinfolk.sequences.inference.stochastic_variational import fit_stochastically
from kinfolk.sequences.inference.task_set_fits import References
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.fitted import Fitted
from kinfolk.sequences.model.ndp_ihmm import Priors, value_of
from kinfolk.sequences.model.sequences import Sequences

# Agglomeration looks at all pairs of tasks; more of them than this are met in random batches.
MOST_TASKS_TO_AGGLOMERATE = 100


def fit_approximately(
    sequences: Sequences,
    emission: Emission,
    priors: Priors,
    n_clusters: int,
    n_states: int,
    partition: NDArray[np.int64] | None,
    seed: int,
) -> Mixture:
    """The variational posterior, from clusters that are given or found by agglomeration.

    With many tasks, clusters are those of some of them, whatever is given.
    """
    if sequences.n_tasks > MOST_TASKS_TO_AGGLOMERATE:
        return fit_stochastically(sequences, emission, priors, n_clusters=n_clusters, n_states=n_states, seed=seed)
    if partition is None:
        found = find_clusters(sequences, emission, priors, n_states, seed=seed)
    else:
        found = relearnt(given_clusters(sequences, emission, priors, n_states, partition, seed), priors)
    return fit_mixture(sequences, priors, start_mixture(found, n_clusters))


def given_clusters(
    sequences: Sequences,
    emission: Emission,
    priors: Priors,
    n_states: int,
    partition: NDArray[np.int64],
    seed: int,
) -> Agglomeration:
    """Tasks in given clusters, each with a fit, as if they had been agglomerated; at most a hundred tasks."""
    hyper = Hyper(value_of(priors.states), value_of(priors.transitions), value_of(priors.stickiness), n_states)
    references = References(sequences, emission, hyper, seed=seed)
    clusters = tuple(tuple(np.flatnonzero(partition == k).tolist()) for k in np.unique(partition))
    for tasks in clusters:
        references.of(tasks)
    return Agglomeration(clusters, references, value_of(priors.clusters), ())


def draws_of(mixture: Mixture, n_draws: int, rng: np.random.Generator, n_alongside: int = 1) -> Fitted:
    """Draws from a variational posterior, as many as fit into the memory that chains have, shared with others."""
    n_tasks, hyper = len(mixture.responsibilities), mixture.hyper
    n_cells = n_tasks * (hyper.n_states + 1) + len(mixture.fits) * mixture.emission.n_parameters
    affordable = min(MOST_DRAWS, MOST_BYTES // (8 * n_cells * hyper.n_states * n_alongside))
    return fitted_to_draws(to_draws(mixture, max(1, min(n_draws, affordable)), rng), mixture.bound)
