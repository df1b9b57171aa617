"""Inference by Gibbs sampling ("gibbs"): where chains start, several of them side by side, and what they leave behind.

States alone have modes that are hundreds of nats apart, which no sweep gets across: every chain starts with the states
of variational fits, found with random numbers of its own; tasks are agglomerated, or in clusters that are given.

Of every draw the partition, the log joint, the concentrations and the numbers of states in use are recorded. Whole
draws, with a transition matrix for each task, are kept for prediction: at most five hundred of them over all chains and
at most 256 MiB, evenly spaced where there were more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, Protocol

import numpy as np
from joblib import Parallel
from numpy.typing import NDArray

from kinfolk.checkpoints import Checkpoint, Nowhere, Place
from kinfolk.interrupts import NEVER, Stop, equally_long, left_to_parent, stops_safely
from kinfolk.maths.arrays import Floats
from kinfolk.partition.crp import canonical
from kinfolk.pieces import delayed
from kinfolk.progress import progress_bar, told_by_processes
from kinfolk.sequences.inference.agglomeration import (
    MOST_TASKS_TO_AGGLOMERATE,
    SetFits,
    TaskSet,
    at_most,
    find_clusters,
    given_clusters,
)
from kinfolk.sequences.inference.mean_field import ClusterFit
from kinfolk.sequences.inference.options import Options, Schedule
from kinfolk.sequences.inference.split_merge import SplitMerge
from kinfolk.sequences.inference.stochastic_variational import fit_stochastically
from kinfolk.sequences.inference.sweep import start_state, sweep
from kinfolk.sequences.model.draw import Draw, HyperParameters
from kinfolk.sequences.model.emissions.emission import Emission
from kinfolk.sequences.model.filtering import most_probable_states, scaled
from kinfolk.sequences.model.fitted import (
    HYPER_PARAMETERS,
    MOST_BYTES,
    MOST_DRAWS,
    Fitted,
    Traces,
    judge,
    put_together,
    shares_of_states,
)
from kinfolk.sequences.model.ndp_ihmm import ClusterPrior, Priors, State, kept
from kinfolk.sequences.model.sequences import Sequences

# Splits and merges tried in each sweep at first, when they have most to find, and how many tasks make one of them worth
# its while. Few tasks have few pairs: on 14 made-up sets of 4 to 8 tasks, chains agreed as well with one move a sweep
# (R-hat of the log joint 1.33, of the number of clusters 1.29) as with two or three (1.41 and 1.27).
_MOVES_WHILE_LEARNING, _TASKS_A_MOVE, _FEW_TASKS = 4, 3, 8


def infer(
    sequences: Sequences, emission: Emission, priors: Priors, options: Options, seed: int
) -> tuple[HyperParameters, Fitted]:
    """Hyper-parameters, and all that inference leaves behind, by Gibbs sampling.

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
    """
    schedule, n_states = options.schedule, options.n_states
    if options.n_clusters is None:
        together = np.zeros(1, dtype=np.int64)
        alone = [sequences.between(task, task + 1) for task in range(sequences.n_tasks)]
        samplers = [GibbsSampler(own, emission, priors, 1, n_states, together) for own in alone]
        n_jobs = options.n_jobs
    else:
        # Chains have processes of their own; a lone chain has threads for its tasks.
        inner, n_jobs = (options.n_jobs, 1) if schedule.n_chains == 1 else (1, options.n_jobs)
        shape = (options.n_clusters, n_states)
        samplers = [
            GibbsSampler(sequences, emission, priors, *shape, options.partition, inner, n_learning=schedule.n_burn_in)
        ]
    n_sweeps = len(samplers) * schedule.n_chains * (schedule.n_burn_in + schedule.n_draws * schedule.thin)
    key = (
        "ihmm with sequences left out, fits of sets beside their clusters",
        sequences,
        emission,
        priors,
        options.n_states,
        options.n_clusters,
        options.partition,
        schedule,
        seed,
    )
    bar = progress_bar("Sampling", n_sweeps, True) if options.verbose else nullcontext()
    with bar as advance, stops_safely() as stop:
        parts = run_side_by_side(samplers, schedule, seed, n_jobs, advance, options.checkpoint, key, stop)
    fitted = parts[0] if options.n_clusters is not None else put_together(parts)
    return fitted.mean_hyper(), fitted._replace(interrupted=stop.asked())


class Position(NamedTuple):
    """Where a chain is, its moves that split and merge clusters, and how many sweeps their references still learn."""

    state: State
    moves: SplitMerge | None
    n_learning: int = 0


class GibbsSampler(NamedTuple):
    """The sampler of a model with K clusters and L states; without a partition to start from, it agglomerates.

    The first ``n_learning`` sweeps, which are to be thrown away, improve the references of moves between clusters.
    """

    sequences: Sequences
    emission: Emission
    priors: Priors
    n_clusters: int
    n_states: int
    partition: NDArray[np.int64] | None
    n_jobs: int | None = 1
    n_learning: int = 0

    def start(self, rng: np.random.Generator) -> Position:
        """A partition, and states fitted to its clusters."""
        seed = int(rng.integers(1 << 31))
        data, shape = self[:3], (self.n_clusters, self.n_states)
        begin = fitted_start(*data, *shape, self.partition, seed)
        state = start_state(
            *data, n_clusters=shape[0], n_states=shape[1], rng=rng, cluster=begin.partition, states=begin.states
        )
        if begin.set_fits is None:
            return Position(state, None)
        return Position(state, SplitMerge.of(begin.set_fits, begin.common), self.n_learning)

    def sweep(self, position: Position, rng: np.random.Generator) -> Position:
        """The next position: a split or a merge is tried, then all else is drawn."""
        state, moves, n_learning = position
        if moves is not None:
            n_tasks, n_moves = self.sequences.n_tasks, 1
            if n_learning > 0 and n_tasks > _FEW_TASKS:
                n_moves = min(_MOVES_WHILE_LEARNING, -(-n_tasks // _TASKS_A_MOVE))
            for _ in range(n_moves):
                state, moves = moves.move(state, self.emission, rng, learning=n_learning > 0)
        state = sweep(state, self.sequences, self.emission, self.priors, rng, self.n_jobs)
        return Position(state, moves, n_learning - 1)

    def draw(self, position: Position) -> Draw:
        """What is kept of a position."""
        return kept(position.state, self.sequences, self.emission)


class FittedStart(NamedTuple):
    """Clusters and hidden states to start from, and what moves between clusters build on.

    ``set_fits`` has fits of sets of tasks, and is None where tasks are too many for such moves, or clusters too few;
    ``common`` is the evidence that tasks have in common.
    """

    partition: NDArray[np.int64]
    states: NDArray[np.int64]
    set_fits: SetFits | None
    common: Floats | None = None


def fitted_start(
    sequences: Sequences,
    emission: Emission,
    priors: Priors,
    n_clusters: int,
    n_states: int,
    partition: NDArray[np.int64] | None,
    seed: int,
) -> FittedStart:
    """Where a chain begins; without a partition to start from, tasks are agglomerated."""
    if sequences.n_tasks > MOST_TASKS_TO_AGGLOMERATE:
        if partition is not None:
            return FittedStart(partition, _states_in(sequences, emission, priors, n_states, partition, seed), None)
        mixture = fit_stochastically(sequences, emission, priors, n_clusters=n_clusters, n_states=n_states, seed=seed)
        fits = {}
        for k, fit in enumerate(mixture.fits):
            tasks = np.flatnonzero(mixture.partition == k)
            fits[tuple(tasks.tolist())] = fit._replace(counts=fit.counts[tasks])
        states = _states(sequences, fits, mixture.emission, mixture.hyper)
        return FittedStart(canonical(mixture.partition), states, None)
    # Splits and merges integrate the emissions' parameters out.
    moves = n_clusters > 1 and sequences.n_tasks > 1 and emission.is_conjugate
    if partition is None or moves:
        found = find_clusters(sequences, emission, priors, n_states, seed=seed)
    # Moves between clusters are the same wherever a chain starts.
    set_fits, common = (found.set_fits, found.common) if moves else (None, None)
    if partition is None:
        found = at_most(found, n_clusters)
    else:
        found = given_clusters(sequences, emission, priors, n_states, partition, seed)
    fits = dict(zip(found.clusters, found.fits, strict=True))
    states = _states(sequences, fits, found.set_fits.emission, found.set_fits.hyper)
    return FittedStart(found.partition, states, set_fits, common)


def _states_in(
    sequences: Sequences, emission: Emission, priors: Priors, n_states: int, partition: NDArray[np.int64], seed: int
) -> NDArray[np.int64]:
    """Hidden states of many tasks in given clusters, each cluster fitted by itself."""
    states = np.empty(sequences.n_steps, dtype=np.int64)
    for k in np.unique(partition):
        tasks = np.flatnonzero(partition == k)
        own = sequences.of_tasks(tasks)
        if len(tasks) > MOST_TASKS_TO_AGGLOMERATE:
            mixture = fit_stochastically(own, emission, priors, n_clusters=1, n_states=n_states, seed=seed)
            fit, found_emission, hyper = mixture.fits[0], mixture.emission, mixture.hyper
        else:
            alone = given_clusters(own, emission, priors, n_states, np.zeros(len(tasks), dtype=np.int64), seed)
            fit, found_emission, hyper = alone.fits[0], alone.set_fits.emission, alone.set_fits.hyper
        found = most_probable_states_of(fit, own, found_emission, hyper)
        for place, task in enumerate(tasks.tolist()):
            states[sequences.steps_of(task)] = found[own.steps_of(place)]
    return states


def _states(
    sequences: Sequences, fits: Mapping[TaskSet, ClusterFit], emission: Emission, hyper: ClusterPrior
) -> NDArray[np.int64]:
    states = np.empty(sequences.n_steps, dtype=np.int64)
    for tasks, fit in fits.items():
        own = sequences.of_tasks(tasks)
        found = most_probable_states_of(fit, own, emission, hyper)
        for place, task in enumerate(tasks):
            states[sequences.steps_of(task)] = found[own.steps_of(place)]
    return states


def most_probable_states_of(
    fit: ClusterFit, sequences: Sequences, emission: Emission, hyper: ClusterPrior
) -> NDArray[np.int64]:
    """The most probable hidden states of a cluster's steps, by the expected parameters of its fit."""
    densities = scaled(emission.log_predictive_densities(fit.statistics, sequences.observations))
    rows = np.tile(hyper.alpha * fit.weights / fit.weights.sum(), (len(fit.weights) + 1, 1))
    rows[1:] += hyper.stickiness * np.eye(len(fit.weights))
    states = np.empty(sequences.n_steps, dtype=np.int64)
    for place in range(sequences.n_tasks):
        own, steps = sequences.between(place, place + 1), sequences.steps_of(place)
        expected = rows + fit.counts[place]
        expected /= expected.sum(axis=1, keepdims=True)
        of_task = densities._replace(row=densities.row[steps])
        states[steps] = most_probable_states(of_task, own.bounds, expected)[0]
    return states


class Sampler(Protocol):
    """Something that can start, move on, and show where it is.

    Where it is, is a value: a sweep gives another and leaves the one that it is given. All that is random comes from
    the generator.
    """

    def start(self, rng: np.random.Generator) -> Any:
        """A first state."""

    def sweep(self, state: Any, rng: np.random.Generator) -> Any:
        """The next state."""

    def draw(self, state: Any) -> Draw:
        """What is kept of a state."""


class Chain(NamedTuple):
    """A chain between two sweeps, as a value: where its sampler is, and the random numbers that it will meet.

    Whoever has it can go on from it, as often as wanted, and gets the same draws each time.
    """

    position: Any
    generator: Mapping[str, Any]
    """State of the bit generator, as numpy gives it."""


def start_chain(sampler: Sampler, seed: int | np.random.SeedSequence) -> Chain:
    """A chain before its first sweep."""
    rng = np.random.default_rng(seed)
    return Chain(sampler.start(rng), rng.bit_generator.state)


def go_on(sampler: Sampler, chain: Chain, n_sweeps: int, progress: Callable[[int], None] | None = None) -> Chain:
    """The chain so many sweeps later."""
    rng = np.random.default_rng()
    rng.bit_generator.state = chain.generator
    position = chain.position
    for _ in range(n_sweeps):
        position = sampler.sweep(position, rng)
        if progress is not None:
            progress(1)
    return Chain(position, rng.bit_generator.state)


class _Record(NamedTuple):
    draws: list[Draw]
    partitions: NDArray[np.int32]
    log_joint: Floats
    hyper_parameters: Floats
    n_states: NDArray[np.int64]
    left_out: Floats

    def first(self, n_draws: int, n_whole: int) -> _Record:
        """The first draws, of which so many were kept whole."""
        parts: list[Any] = [part[:n_draws] for part in self[1:]]
        return _Record(self.draws[:n_whole], *parts)


def run_chains(
    sampler: Sampler,
    schedule: Schedule,
    seed: int,
    n_jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Fitted:
    """Run the chains, each with a seed of its own, so that results do not depend on how many run at once."""
    return run_side_by_side([sampler], schedule, seed, n_jobs, progress)[0]


def run_side_by_side(
    samplers: Sequence[Sampler],
    schedule: Schedule,
    seed: int,
    n_jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
    checkpoint: Checkpoint = Checkpoint(),  # noqa: B008 - a value
    key: tuple[Any, ...] = (),
    stop: Stop = NEVER,
) -> list[Fitted]:
    """Run the chains of several samplers that know nothing of each other; their draws share the memory there is.

    If they are asked to stop, there are as many draws as most chains have come to, and fewer chains.
    """
    seeds = [own.spawn(schedule.n_chains) for own in np.random.SeedSequence(seed).spawn(len(samplers))]
    # In processes: variational fits and annealed paths are many short calls, which threads of one process would take
    # turns at. Arrays are copied to them, since code is not compiled for those that cannot be written to.
    with nullcontext() if progress is None else told_by_processes(progress) as tell:
        chains = Parallel(n_jobs=n_jobs, max_nbytes=None)(
            delayed(_run_chain)(sampler, schedule, own, len(samplers), tell, checkpoint.place(*key, s, c), stop)
            for s, (sampler, of_chains) in enumerate(zip(samplers, seeds, strict=True))
            for c, own in enumerate(of_chains)
        )
    each = [chains[first : first + schedule.n_chains] for first in range(0, len(chains), schedule.n_chains)]
    which, n_draws = equally_long([min(len(of[c].log_joint) for of in each) for c in range(schedule.n_chains)])
    n_whole = min(len(of[c].draws) for of in each for c in which)
    return [_join([of[c].first(n_draws, n_whole) for c in which]) for of in each]


def _run_chain(
    sampler: Sampler,
    schedule: Schedule,
    seed: np.random.SeedSequence,
    n_alongside: int,
    progress: Callable[[int], None] | None,
    place: Place | Nowhere,
    stop: Stop = NEVER,
) -> _Record:
    with left_to_parent(stop):
        return _sampled(sampler, schedule, seed, n_alongside, progress, place, stop)


def _sampled(
    sampler: Sampler,
    schedule: Schedule,
    seed: np.random.SeedSequence,
    n_alongside: int,
    progress: Callable[[int], None] | None,
    place: Place | Nowhere,
    stop: Stop,
) -> _Record:
    kept: tuple[list[Any], ...] = [], [], [], [], [], []
    n_sweeps = schedule.n_burn_in + schedule.n_draws * schedule.thin
    chain: Any = None
    # A chain that has not begun when all are to stop does not begin.
    n_done, each = n_sweeps, 1
    if (reached := place.load()) is not None:
        n_done, each, kept, chain = reached
    elif not stop.asked():
        n_done, chain = 0, start_chain(sampler, seed)
    draws, partitions, log_joint, hyper_parameters, n_states, left_out = kept
    for done in range(n_done, n_sweeps):
        stops = stop.asked()
        if stops or place.due():
            place.save((done, each, kept, chain))
        if stops:
            if log_joint and not draws:
                draws.append(sampler.draw(chain.position))
            break
        chain = go_on(sampler, chain, 1, progress)
        drawn, more = divmod(done + 1 - schedule.n_burn_in, schedule.thin)
        if drawn < 1 or more:
            continue
        draw = sampler.draw(chain.position)
        if drawn == 1:
            each = _kept_each(schedule, n_alongside * _size(draw))
        if drawn % each == 0 or (drawn == schedule.n_draws and not draws):
            draws.append(draw)
        partitions.append(draw.cluster)
        log_joint.append(draw.log_joint)
        hyper_parameters.append(draw.hyper[: len(HYPER_PARAMETERS)])
        n_states.append(draw.n_states)
        left_out.append(draw.left_out)
    else:
        if chain is not None:
            place.save((n_sweeps, each, kept, chain))
    return _Record(
        draws,
        np.array(partitions, dtype=np.int32),
        np.array(log_joint),
        np.array(hyper_parameters),
        np.array(n_states, dtype=np.int64),
        np.array(left_out),
    )


def _kept_each(schedule: Schedule, bytes_of_draw: int) -> int:
    """Of how many draws of a chain one is kept whole, given what a draw takes."""
    affordable = min(MOST_DRAWS, MOST_BYTES // max(bytes_of_draw, 1)) // schedule.n_chains
    return -(-schedule.n_draws // max(affordable, 1))


def _size(draw: Draw) -> int:
    """Bytes that a draw takes."""
    return sum(value.nbytes for value in draw if isinstance(value, np.ndarray))


def _join(chains: Sequence[_Record]) -> Fitted:
    """Draws of all chains, one chain after the other, and the diagnostics of what they agree on."""
    partitions = np.array([chain.partitions for chain in chains])
    log_joint = np.array([chain.log_joint for chain in chains])
    hyper_parameters = {
        name: np.array([chain.hyper_parameters[:, place] for chain in chains])
        for place, name in enumerate(HYPER_PARAMETERS)
    }
    draws = tuple(draw for chain in chains for draw in chain.draws)
    n_states = shares_of_states(np.concatenate([chain.n_states for chain in chains]), draws[0].base_weights.shape[1])
    left_out = np.array([chain.left_out for chain in chains])
    traces = Traces(partitions, log_joint, hyper_parameters, n_states, left_out)
    return Fitted(draws, traces, judge(traces))
