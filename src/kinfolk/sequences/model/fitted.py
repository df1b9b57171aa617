"""What inference leaves behind: draws of the posterior, traces of all draws, and whether the chains agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.convergence import Convergence, diagnose
from kinfolk.maths.arrays import Floats
from kinfolk.sequences.model.draw import Draw, HyperParameters

# Whole draws that are kept for prediction, over all chains.
MOST_DRAWS = 500
MOST_BYTES = 256 * 2**20
HYPER_PARAMETERS = ("eta", "gamma", "alpha", "strength")


class Traces(NamedTuple):
    """What is recorded of every draw, a row for each chain.

    Attributes
    ----------
    partitions : int32 ndarray of shape (n_chains, n_draws, n_tasks)
        Cluster of each task, in the order in which clusters appear.
    log_joint : ndarray of shape (n_chains, n_draws)
        Log joint of clusters, states, observations and base weights.
    hyper_parameters : dict of ndarrays of shape (n_chains, n_draws)
        The concentrations η ("eta"), γ ("gamma") and α ("alpha"), and the strength h of the emissions' prior.
    n_states : ndarray of shape (n_tasks, most_states + 1)
        Share of draws in which each task used so many states.
    left_out : ndarray of shape (n_chains, n_draws), or None
        Mean log probability of a few training sequences, each left out of what a draw counted; None, or NaN, where it
        is not known.
    """

    partitions: NDArray[np.int32]
    log_joint: Floats
    hyper_parameters: dict[str, Floats]
    n_states: Floats
    left_out: Floats | None = None


class Fitted(NamedTuple):
    """All that inference leaves behind; plain data, nothing hidden.

    ``convergence`` is None where nothing was sampled, and ``bound`` where nothing was approximated. ``chain_weights``
    (n_chains,) say how much each chain counts, and add up to one; None where all count alike. ``rooms`` say how many
    clusters the model of each chain has room for, None where tasks never share; left out where all are of one model.
    ``interrupted`` tells that sampling was ended early, with the draws that there were. ``central`` is the place of the
    draw that tells hidden states; None where that is the one with the highest log joint.
    """

    draws: tuple[Draw, ...]
    traces: Traces
    convergence: Convergence | None
    bound: float | None = None
    chain_weights: Floats | None = None
    rooms: tuple[int | None, ...] | None = None
    interrupted: bool = False
    central: int | None = None

    @property
    def draw_weights(self) -> Floats | None:
        """How much each draw that was kept counts, as many of every chain; None where all count alike."""
        if self.chain_weights is None:
            return None
        n_each = len(self.draws) // len(self.chain_weights)
        return np.repeat(self.chain_weights / n_each, n_each)

    @property
    def draw_rooms(self) -> tuple[int | None, ...] | None:
        """How many clusters the model of each draw that was kept has room for, where draws are of several models."""
        if self.rooms is None:
            return None
        return tuple(room for room in self.rooms for _ in range(len(self.draws) // len(self.rooms)))

    @property
    def trace_weights(self) -> Floats | None:
        """How much each draw of which traces tell counts, chain by chain; None where all count alike."""
        if self.chain_weights is None:
            return None
        n_draws = self.traces.log_joint.shape[1]
        return np.repeat(self.chain_weights / n_draws, n_draws)

    def mean_hyper(self) -> HyperParameters:
        """The means of the hyper-parameters, over all draws of which they are recorded."""
        means = {name: float(drawn.mean()) for name, drawn in self.traces.hyper_parameters.items()}
        return HyperParameters(**means, stickiness=float(np.mean([draw.hyper.stickiness for draw in self.draws])))


def judge(traces: Traces, rooms: Sequence[int | None] | None = None) -> Convergence:
    """Judge chains by what does not depend on how clusters and states are numbered; chains of a model by themselves."""
    quantities: dict[str, NDArray[Any]] = {"log joint": traces.log_joint}
    if traces.partitions.shape[2] > 1:
        quantities["number of clusters"] = traces.partitions.max(axis=2) + 1
    if traces.left_out is not None and np.isfinite(traces.left_out).all():
        quantities["held-out prediction"] = traces.left_out
    if rooms is None:
        return diagnose(quantities)
    judged = Convergence({}, {})
    for room in dict.fromkeys(rooms):
        own = np.array([other == room for other in rooms])
        found = diagnose({f"{name} of {name_of(room)}": drawn[own] for name, drawn in quantities.items()})
        judged = Convergence(judged.r_hat | found.r_hat, judged.ess | found.ess)
    return judged


def name_of(room: int | None) -> str:
    """What a model with room for so many clusters is called."""
    return "single" if room is None else "shared" if room == 1 else "nested"


def shares_of_states(n_states: NDArray[np.int64], most: int) -> Floats:
    """Share of draws (rows) in which each task (columns) used 0, 1, … states."""
    return np.array([np.bincount(used, minlength=most + 1) for used in n_states.T]) / len(n_states)


def fitted_to_draws(draws: Sequence[Draw], bound: float) -> Fitted:
    """What is known where draws come from an approximation of the posterior, independent of each other."""
    partitions = np.array([[draw.cluster for draw in draws]], dtype=np.int32)
    log_joint = np.array([[draw.log_joint for draw in draws]])
    hyper_parameters = {name: np.array([[getattr(draw.hyper, name) for draw in draws]]) for name in HYPER_PARAMETERS}
    n_states = shares_of_states(
        np.array([draw.n_states for draw in draws], dtype=np.int64), draws[0].base_weights.shape[1]
    )
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
            for name in (
                "base_weights",
                "parameters",
                "transitions",
                "n_states",
                "row_counts",
                "code_counts",
                "statistics",
            )
            if getattr(of_tasks[0], name) is not None
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
        _of_all([own.left_out for own in of_each], lambda parts: np.asarray(np.mean(parts, axis=0))),
    )
    bounds = [part.bound for part in parts if part.bound is not None]
    sampled = parts[0].convergence is not None
    return Fitted(tuple(draws), traces, judge(traces) if sampled else None, sum(bounds) if bounds else None)


def _of_all(parts: Sequence[Floats | None], join: Callable[[Any], Floats]) -> Floats | None:
    """What is known of all parts, as one; None where it is not known of one of them."""
    return None if any(part is None for part in parts) else join(parts)


def pooled(parts: Sequence[Fitted], rooms: Sequence[int | None], weights: Sequence[float]) -> Fitted:
    """What several models found of the same tasks, as chains that count as their models are weighed.

    As many draws are kept as of one model. The variational bound is each model's own, and left out.
    """
    n_chains = [part.traces.log_joint.shape[0] for part in parts]
    n_each = max(
        1, min(MOST_DRAWS // sum(n_chains), *(len(p.draws) // n for p, n in zip(parts, n_chains, strict=True)))
    )
    draws: list[Draw] = []
    for part, n in zip(parts, n_chains, strict=True):
        of_chain = len(part.draws) // n
        spaced = np.linspace(0, of_chain - 1, n_each).round().astype(np.int64)
        draws += [part.draws[chain * of_chain + place] for chain in range(n) for place in spaced.tolist()]
    of_each = [part.traces for part in parts]
    traces = Traces(
        np.concatenate([own.partitions for own in of_each]),
        np.concatenate([own.log_joint for own in of_each]),
        {name: np.concatenate([own.hyper_parameters[name] for own in of_each]) for name in HYPER_PARAMETERS},
        np.asarray(sum(weight * own.n_states for weight, own in zip(weights, of_each, strict=True))),
        _of_all([own.left_out for own in of_each], np.concatenate),
    )
    of_chains = tuple(room for room, n in zip(rooms, n_chains, strict=True) for _ in range(n))
    chain_weights = np.repeat(np.array(weights) / n_chains, n_chains)
    sampled = parts[0].convergence is not None
    return Fitted(tuple(draws), traces, judge(traces, of_chains) if sampled else None, None, chain_weights, of_chains)
