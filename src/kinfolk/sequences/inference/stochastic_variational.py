"""The mean-field nDP-iHMM for many tasks: natural-gradient steps on random batches of them.

M. D. Hoffman, D. M. Blei, C. Wang and J. Paisley, "Stochastic variational inference", J. Mach. Learn. Res. 14, 2013.
After batch i, whatever adds up over tasks (sizes of clusters, emission statistics, tables) moves a step of length
(i + τ)^−κ from where it is towards what all tasks would give if they were like those of the batch. Clusters come from
agglomerating a few tasks drawn at random, and a few passes over all tasks come last.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import digamma, softmax

from kinfolk.checkpoints import Checkpoint
from kinfolk.interrupts import NEVER, Stop
from kinfolk.maths.arrays import Floats
from kinfolk.sequences.inference.agglomeration import find_clusters
from kinfolk.sequences.inference.mean_field import Local, base_of, fit_locally, log_rising, usual_transitions
from kinfolk.sequences.inference.mean_field_mixture import Mixture, fit_mixture, start_mixture
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.ndp_ihmm import Priors
from kinfolk.sequences.model.sequences import Sequences

# Tasks that clusters are found in; steps that a batch has, or else at least so many tasks.
_N_FOUNDERS = 24
_STEPS_OF_BATCH, _FEWEST_OF_BATCH = 20_000, 50
_LOCAL_ITERATIONS = 5
# Passes of plain coordinate ascent over all tasks at the end; hyper-parameters are learnt in them.
_LAST_ITERATIONS = 5
# The length of a step is (batches so far + delay)^−forgetting.
_DELAY, _FORGETTING = 2.0, 0.6


def fit_stochastically(
    sequences: Sequences,
    emission: Emission,
    priors: Priors,
    *,
    n_clusters: int,
    n_states: int,
    n_passes: int = 3,
    seed: int = 0,
    keep: Checkpoint = Checkpoint(),  # noqa: B008 - a value
    stop: Stop = NEVER,
) -> Mixture:
    """Fit many tasks, a batch at a time.

    Parameters
    ----------
    sequences : Sequences
    emission : Emission
    priors : Priors
    n_clusters, n_states : int
        K and L.
    n_passes : int
        How often each task is in a batch.
    seed : int
    keep : Checkpoint
        Where batches that are done are kept.
    stop : Stop
        Whether to end: among the batches by KeyboardInterrupt, in the last passes with what there is.

    Returns
    -------
    Mixture
        Its bound is that of all tasks, and its trace that of the last passes.

    Examples
    --------
    >>> from kinfolk.sequences.model.emissions.categorical import Categorical
    >>> slow, fast = np.tile(np.repeat([0, 1], 10), 3), np.tile([1, 2], 30)
    >>> sequences = Sequences((np.tile(np.concatenate([slow, fast]), 50),), np.arange(0, 6001, 60), np.arange(101))
    >>> mixture = fit_stochastically(sequences, Categorical(3), Priors(), n_clusters=20, n_states=5)
    >>> mixture.partition[:4].tolist() in ([0, 1, 0, 1], [1, 0, 1, 0])
    True
    """
    rng = np.random.default_rng(seed)
    n_tasks = sequences.n_tasks
    founders = np.sort(rng.choice(n_tasks, size=min(_N_FOUNDERS, n_tasks), replace=False))
    size = min(n_tasks, max(_FEWEST_OF_BATCH, _STEPS_OF_BATCH * n_tasks // max(sequences.n_steps, 1)))
    in_pass = -(-n_tasks // size)
    first, order, place = 0, np.arange(n_tasks), keep.place("batches")
    if (kept := place.load()) is not None:
        first, order, globals_, rng.bit_generator.state = kept
    else:
        few = sequences.of_tasks(founders)
        found = find_clusters(few, emission, priors, n_states, seed=seed, keep=keep, stop=stop)
        globals_ = _first_globals(start_mixture(found, n_clusters), n_tasks / len(founders))
    for n in range(first, n_passes * in_pass):
        if stop.asked() or place.due():
            place.save((n, order, globals_, rng.bit_generator.state))
        if stop.asked():
            raise KeyboardInterrupt
        if n % in_pass == 0:
            order = rng.permutation(n_tasks)
        begin = n % in_pass * size
        batch = sequences.of_tasks(np.sort(order[begin : begin + size]))
        globals_ = _step(globals_, batch, n_tasks, (n + _DELAY) ** -_FORGETTING)
    place.end((n_passes * in_pass, order, globals_, rng.bit_generator.state))
    last = keep.place("last passes")
    placed = _placed(globals_, sequences)
    return fit_mixture(sequences, priors, placed, n_iterations=_LAST_ITERATIONS, place=last, stop=stop)


class _Globals(NamedTuple):
    """What clusters are made of, as if all tasks had been seen: expected sizes, and transitions pooled over tasks."""

    mixture: Mixture
    sizes: Floats
    pooled: tuple[Floats, ...]


def _first_globals(start: Mixture, scale: float) -> _Globals:
    """Those of the founders, scaled up."""
    columns = start.responsibilities.T
    pooled = [scale * np.tensordot(rho, fit.counts, 1) for rho, fit in zip(columns, start.fits, strict=True)]
    fits = tuple(fit._replace(statistics=scale * fit.statistics) for fit in start.fits)
    return _Globals(start._replace(fits=fits), scale * columns.sum(axis=1), tuple(pooled))


def _local_fits(globals_: _Globals, sequences: Sequences) -> list[Local]:
    """Tasks in every cluster, from the transitions that are usual there."""
    mixture, n_steps = globals_.mixture, np.diff(sequences.step_bounds)
    local = []
    for fit, pooled in zip(mixture.fits, globals_.pooled, strict=True):
        usual = fit._replace(counts=usual_transitions(pooled, n_steps))
        local.append(fit_locally(sequences, mixture.emission, mixture.hyper, usual, n_iterations=_LOCAL_ITERATIONS))
    return local


def _responsibilities(globals_: _Globals, local: list[Local]) -> Floats:
    share = globals_.mixture.eta / globals_.mixture.n_clusters
    joint = np.array([one.bounds for one in local]).T + digamma(share + globals_.sizes)
    return np.asarray(softmax(joint, axis=1))


def _step(globals_: _Globals, batch: Sequences, n_tasks: int, length: float) -> _Globals:
    mixture, hyper = globals_.mixture, globals_.mixture.hyper
    local = _local_fits(globals_, batch)
    responsibilities = _responsibilities(globals_, local)
    scale = n_tasks / batch.n_tasks
    of_steps = responsibilities[batch.task_of_step]
    fits, pooled = [], []
    for k, (fit, own) in enumerate(zip(mixture.fits, local, strict=True)):
        rho = np.ascontiguousarray(responsibilities[:, k])
        statistics = mixture.emission.expected_statistics(
            batch.observations, own.posteriors * of_steps[:, [k]], fit.statistics
        )
        _, tables = log_rising(own.counts, rho, base_of(fit.weights, hyper), hyper)
        weights = hyper.gamma / hyper.n_states + scale * tables
        fits.append(
            fit._replace(
                weights=(1.0 - length) * fit.weights + length * weights,
                statistics=(1.0 - length) * fit.statistics + length * scale * statistics,
            )
        )
        pooled.append((1.0 - length) * globals_.pooled[k] + length * scale * np.tensordot(rho, own.counts, 1))
    sizes = (1.0 - length) * globals_.sizes + length * scale * responsibilities.sum(axis=0)
    return _Globals(mixture._replace(fits=tuple(fits)), sizes, tuple(pooled))


def _placed(globals_: _Globals, sequences: Sequences) -> Mixture:
    """All tasks placed in clusters that are held."""
    local = _local_fits(globals_, sequences)
    fits = tuple(
        fit._replace(counts=own.counts, local_bounds=own.bounds)
        for fit, own in zip(globals_.mixture.fits, local, strict=True)
    )
    return globals_.mixture._replace(responsibilities=_responsibilities(globals_, local), fits=fits)
