"""Inference by mean field ("variational"); its posterior is given as draws, so that prediction knows draws only."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from kinfolk.checkpoints import Checkpoint
from kinfolk.interrupts import NEVER, Stop, stops_safely
from kinfolk.progress import progress_bar
from kinfolk.sequences.inference.agglomeration import MOST_TASKS_TO_AGGLOMERATE, find_clusters, given_clusters, relearnt
from kinfolk.sequences.inference.mean_field_mixture import Mixture, fit_mixture, start_mixture, to_draws
from kinfolk.sequences.inference.options import Options
from kinfolk.sequences.inference.stochastic_variational import fit_stochastically
from kinfolk.sequences.model.draw import HyperParameters
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.fitted import MOST_BYTES, MOST_DRAWS, Fitted, fitted_to_draws, put_together
from kinfolk.sequences.model.ndp_ihmm import Priors
from kinfolk.sequences.model.sequences import Sequences


def infer(
    sequences: Sequences, emission: Emission, priors: Priors, options: Options, seed: int
) -> tuple[HyperParameters, Fitted]:
    """Hyper-parameters, and all that inference leaves behind, by mean field.

    Parameters
    ----------
    sequences : Sequences
        The data.
    emission : Emission
        What states emit; its strength is where learning starts.
    priors : Priors
        Of the hyper-parameters.
    options : Options
    seed : int

    Returns
    -------
    HyperParameters
        Means over draws.
    Fitted
        Where Ctrl-C was pressed, that of the iterations so far; before the first of the last, KeyboardInterrupt.
    """
    own = options.n_states, options.n_clusters, options.partition
    keep = options.checkpoint.of("ihmm by mean field", sequences, emission, priors, own, seed)
    options = options._replace(checkpoint=keep)
    with progress_bar("Fitting", None, options.verbose), stops_safely() as stop:
        if options.n_clusters is not None:
            fitted = _fitted(sequences, emission, priors, options, options.n_clusters, seed, 1, stop)
        else:
            seeds = np.random.SeedSequence(seed).generate_state(sequences.n_tasks).tolist()
            parts = []
            for task, own_seed in enumerate(seeds):
                if stop.asked():
                    raise KeyboardInterrupt
                alone = options._replace(partition=np.zeros(1, dtype=np.int64), checkpoint=keep.of("task", task))
                part = sequences.between(task, task + 1)
                parts.append(_fitted(part, emission, priors, alone, 1, own_seed, sequences.n_tasks, stop))
            fitted = put_together(parts)
        fitted = fitted._replace(interrupted=stop.asked())
    return fitted.mean_hyper(), fitted


def _fitted(
    sequences: Sequences,
    emission: Emission,
    priors: Priors,
    options: Options,
    n_clusters: int,
    seed: int,
    n_alongside: int,
    stop: Stop,
) -> Fitted:
    shape = (n_clusters, options.n_states)
    mixture = fit_approximately(sequences, emission, priors, *shape, options.partition, seed, options.checkpoint, stop)
    return draws_of(mixture, options.schedule.n_draws, np.random.default_rng([seed, 3]), n_alongside)


def fit_approximately(
    sequences: Sequences,
    emission: Emission,
    priors: Priors,
    n_clusters: int,
    n_states: int,
    partition: NDArray[np.int64] | None,
    seed: int,
    keep: Checkpoint = Checkpoint(),  # noqa: B008 - a value
    stop: Stop = NEVER,
) -> Mixture:
    """The variational posterior, from clusters that are given or found by agglomeration.

    With many tasks, clusters are those of some of them, whatever is given, and a warning says so.
    """
    if sequences.n_tasks > MOST_TASKS_TO_AGGLOMERATE:
        if partition is not None and n_clusters > 1:
            warnings.warn(
                f"start is left aside: with more than {MOST_TASKS_TO_AGGLOMERATE} tasks variational inference starts "
                'from the clusters of some of them; inference="gibbs" starts where it is told',
                stacklevel=2,
            )
        shape = {"n_clusters": n_clusters, "n_states": n_states}
        return fit_stochastically(sequences, emission, priors, **shape, seed=seed, keep=keep, stop=stop)

    def start() -> Mixture:
        if partition is None:
            found = find_clusters(sequences, emission, priors, n_states, seed=seed, keep=keep, stop=stop)
        else:
            found = relearnt(given_clusters(sequences, emission, priors, n_states, partition, seed), priors)
        return start_mixture(found, n_clusters)

    return fit_mixture(sequences, priors, keep.done(start, "start"), place=keep.place("iterations"), stop=stop)


def draws_of(mixture: Mixture, n_draws: int, rng: np.random.Generator, n_alongside: int = 1) -> Fitted:
    """Draws from a variational posterior, as many as fit into the memory that chains have, shared with others."""
    n_tasks, hyper = len(mixture.responsibilities), mixture.hyper
    n_cells = n_tasks * (hyper.n_states + 1) + len(mixture.fits) * mixture.emission.n_parameters
    affordable = min(MOST_DRAWS, MOST_BYTES // (8 * n_cells * hyper.n_states * n_alongside))
    return fitted_to_draws(to_draws(mixture, max(1, min(n_draws, affordable)), rng), mixture.bound)
