"""Several chains of a sampler side by side, what they keep, and whether they agree.

Of every draw the partition, the log joint, the concentrations and the numbers of states in use are recorded. Whole
draws, with a transition matrix for each task, are kept for prediction: at most a thousand of them over all chains and
at most 256 MiB, evenly spaced where there were more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.partition.crp import canonical
from kinfolk.progress import no_progress, told_by_processes
from kinfolk.sequences.inference.options import Schedule
from kinfolk.sequences.model.draw import Draw
from kinfolk.sequences.model.fitted import HYPER_PARAMETERS, Fitted, Traces, judge

MOST_DRAWS = 1000
MOST_BYTES = 256 * 2**20


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


def go_on(sampler: Sampler, chain: Chain, n_sweeps: int, progress: Callable[[int], None] = no_progress) -> Chain:
    """The chain so many sweeps later."""
    rng = np.random.default_rng()
    rng.bit_generator.state = chain.generator
    position = chain.position
    for _ in range(n_sweeps):
        position = sampler.sweep(position, rng)
        progress(1)
    return Chain(position, rng.bit_generator.state)


class _Record(NamedTuple):
    draws: list[Draw]
    partitions: NDArray[np.int32]
    log_joint: Floats
    hyper_parameters: Floats
    n_states: NDArray[np.int64]


def run_chains(
    sampler: Sampler,
    schedule: Schedule,
    seed: int,
    n_jobs: int | None = None,
    progress: Callable[[int], None] = no_progress,
) -> Fitted:
    """Run the chains, each with a seed of its own, so that results do not depend on how many run at once."""
    return run_side_by_side([sampler], schedule, seed, n_jobs, progress)[0]


def run_side_by_side(
    samplers: Sequence[Sampler],
    schedule: Schedule,
    seed: int,
    n_jobs: int | None = None,
    progress: Callable[[int], None] = no_progress,
) -> list[Fitted]:
    """Run the chains of several samplers that know nothing of each other; their draws share the memory there is."""
    seeds = [own.spawn(schedule.n_chains) for own in np.random.SeedSequence(seed).spawn(len(samplers))]
    # In processes: variational fits and annealed paths are many short calls, which threads of one process would take
    # turns at. Arrays are copied to them, since code is not compiled for those that cannot be written to.
    with told_by_processes(progress) as tell:
        chains = Parallel(n_jobs=n_jobs, max_nbytes=None)(
            delayed(_run_chain)(sampler, schedule, own, len(samplers), tell)
            for sampler, of_chains in zip(samplers, seeds, strict=True)
            for own in of_chains
        )
    return [_join(chains[first : first + schedule.n_chains]) for first in range(0, len(chains), schedule.n_chains)]


def _run_chain(
    sampler: Sampler,
    schedule: Schedule,
    seed: np.random.SeedSequence,
    n_alongside: int,
    progress: Callable[[int], None],
) -> _Record:
    chain = go_on(sampler, start_chain(sampler, seed), schedule.n_burn_in, progress)
    draws: list[Draw] = []
    partitions, log_joint, hyper_parameters, n_states = [], [], [], []
    each = 1
    for place in range(schedule.n_draws):
        chain = go_on(sampler, chain, schedule.thin, progress)
        draw = sampler.draw(chain.position)
        if place == 0:
            each = _kept_each(schedule, n_alongside * _size(draw))
        if place % each == each - 1 or (place == schedule.n_draws - 1 and not draws):
            draws.append(draw)
        partitions.append(canonical(draw.cluster))
        log_joint.append(draw.log_joint)
        hyper_parameters.append(draw.hyper[: len(HYPER_PARAMETERS)])
        n_states.append(draw.n_states)
    return _Record(
        draws,
        np.array(partitions, dtype=np.int32),
        np.array(log_joint),
        np.array(hyper_parameters),
        np.array(n_states, dtype=np.int64),
    )


def _kept_each(schedule: Schedule, bytes_of_draw: int) -> int:
    """Of how many draws of a chain one is kept whole, given what a draw takes."""
    affordable = min(MOST_DRAWS, MOST_BYTES // max(bytes_of_draw, 1)) // schedule.n_chains
    return -(-schedule.n_draws // max(affordable, 1))


def _size(draw: Draw) -> int:
    """Bytes that a draw takes."""
    return draw.transitions.nbytes + draw.parameters.nbytes + draw.base_weights.nbytes + 2 * draw.cluster.nbytes


def _join(chains: Sequence[_Record]) -> Fitted:
    """Draws of all chains, one chain after the other, and the diagnostics of what they agree on."""
    partitions = np.array([chain.partitions for chain in chains])
    log_joint = np.array([chain.log_joint for chain in chains])
    hyper_parameters = {
        name: np.array([chain.hyper_parameters[:, place] for chain in chains])
        for place, name in enumerate(HYPER_PARAMETERS)
    }
    draws = tuple(draw for chain in chains for draw in chain.draws)
    n_states = _shares(np.concatenate([chain.n_states for chain in chains]), draws[0].base_weights.shape[1])
    traces = Traces(partitions, log_joint, hyper_parameters, n_states)
    return Fitted(draws, traces, judge(traces))


def _shares(n_states: NDArray[np.int64], most: int) -> Floats:
    """Share of draws (rows) in which each task (columns) used 0, 1, … states."""
    return np.array([np.bincount(used, minlength=most + 1) for used in n_states.T]) / len(n_states)


def fitted_to_draws(draws: Sequence[Draw], bound: float) -> Fitted:
    """What is known where draws come from an approximation of the posterior, independent of each other."""
    partitions = np.array([[canonical(draw.cluster) for draw in draws]], dtype=np.int32)
    log_joint = np.array([[draw.log_joint for draw in draws]])
    hyper_parameters = {name: np.array([[getattr(draw.hyper, name) for draw in draws]]) for name in HYPER_PARAMETERS}
    n_states = _shares(np.array([draw.n_states for draw in draws], dtype=np.int64), draws[0].base_weights.shape[1])
    return Fitted(tuple(draws), Traces(partitions, log_joint, hyper_parameters, n_states), None, bound)


def put_together(parts: Sequence[Fitted]) -> Fitted:
    """What is known of tasks that were learnt one by one: each in a cluster of its own.

    Draw d has the hyper-parameters of one of the tasks, in turn: those of a task that is not known yet are like them.
    """
    n_tasks = len(parts)
    apart = np.arange(n_tasks)
    draws = []
    for place, of_tasks in enumerate(zip(*(part.draws for part in parts), strict=True)):
        joined = {
            name: np.concatenate([getattr(draw, name) for draw in of_tasks])
            for name in ("base_weights", "parameters", "transitions", "n_states")
        }
        log_joint = float(sum(draw.log_joint for draw in of_tasks))
        draws.append(of_tasks[place % n_tasks]._replace(cluster=apart, log_joint=log_joint, **joined))
    of_each = [part.traces for part in parts]
    log_joint = np.sum([own.log_joint for own in of_each], axis=0)
    traces = Traces(
        np.broadcast_to(apart.astype(np.int32), (*log_joint.shape, n_tasks)),
        log_joint,
        {name: np.mean([own.hyper_parameters[name] for own in of_each], axis=0) for name in HYPER_PARAMETERS},
        np.concatenate([own.n_states for own in of_each]),
    )
    bounds = [part.bound for part in parts if part.bound is not None]
    sampled = parts[0].convergence is not None
    return Fitted(tuple(draws), traces, judge(traces) if sampled else None, sum(bounds) if bounds else None)
