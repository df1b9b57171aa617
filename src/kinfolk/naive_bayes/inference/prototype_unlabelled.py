"""Inference in the prototype model when some rows have no label (thesis section 2.4, and A.1 for the labels).

An unlabelled row ties the groups of its features together. Its label is drawn along with strengths and prototypes,

    p(y | …) ∝ (m_{u,y} + α_y) ∏_f (n_{u,y,f,x} + K_{y,f} θ̄_{y,f,x}) / (N_{u,y,f} + K_{y,f}),

all counts without the row. The product over features that makes a task one block when all is labelled holds within a
draw only, and a task is a mixture of a block per draw.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel
from numpy.typing import NDArray

from kinfolk.checkpoints import NOWHERE, Nowhere, Place
from kinfolk.interrupts import NEVER, Stop, equally_long, stops_safely
from kinfolk.maths.arrays import Floats
from kinfolk.naive_bayes.inference.gibbs import alike
from kinfolk.naive_bayes.inference.label_draws import ClusterRates, TaskCounts, redraw_labels, unlabelled_rows
from kinfolk.naive_bayes.inference.options import Options, Schedule, kept_draws
from kinfolk.naive_bayes.inference.prototype_labelled import (
    blocks_of_draws,
    convergence_of_prototypes,
    expected_rates,
)
from kinfolk.naive_bayes.model.noisy_copies import NoiseModel, State, noise_model
from kinfolk.naive_bayes.model.prototype import TINY
from kinfolk.naive_bayes.model.tallies import tally
from kinfolk.naive_bayes.model.values import Fitted, HyperParameters, PrototypeDraws, TrainingData
from kinfolk.pieces import delayed
from kinfolk.progress import no_progress, progress_bar
from kinfolk.tasks.statistics import count


class PrototypeState(NamedTuple):
    """Where a chain stands between two sweeps: enough to go on from.

    Labels that the unlabelled rows have at the moment, strengths and prototypes with the widths that the sampler looks
    around itself, and the state of the generator of random numbers.
    """

    labels: NDArray[np.int32]
    copies: State
    generator: dict[str, Any]


class PrototypeChain:
    """A sampler over strengths, prototypes and the labels of unlabelled rows.

    Annealed, the power acts on what the unlabelled rows' features say; at power zero there are only labelled rows.
    """

    def __init__(self, data: TrainingData, hyper: HyperParameters, model: NoiseModel) -> None:
        self.data, self.hyper, self.model = data, hyper, model
        self.labelled = tally(data.statistics.feature_counts, model.group_start)
        self.rows = unlabelled_rows(data.unlabelled)

    def forget_labels(self, rng: np.random.Generator) -> None:
        """Begin anew, with the unlabelled rows left out of all counts."""
        statistics = self.data.statistics
        self.rows.labels[:] = -1
        self.counts, self.label_counts = statistics.feature_counts.copy(), statistics.label_counts.copy()
        self.tallies = self.labelled
        self.state = State.around(self.model, statistics.feature_counts.sum(axis=0).astype(np.float64), rng)

    def start(self, rng: np.random.Generator) -> None:
        """Strengths from the prior, prototypes at the labelled rows' rates, labels one after another."""
        self.forget_labels(rng)
        self.redraw_labels(rng, 1.0)

    def stands(self, rng: np.random.Generator) -> PrototypeState:
        """Where the chain stands, as a value."""
        copies = State(*(part.copy() for part in self.state))
        return PrototypeState(self.rows.labels.copy(), copies, dict(rng.bit_generator.state))

    def resume(self, state: PrototypeState) -> np.random.Generator:
        """Go on from where a chain stood; returns its generator of random numbers."""
        statistics = self.data.statistics
        self.rows.labels[:] = state.labels
        labelled = self.data.unlabelled._replace(labels=state.labels)
        drawn = count(labelled, statistics.layout, statistics.tasks)
        self.counts = statistics.feature_counts + drawn.feature_counts.astype(statistics.feature_counts.dtype)
        self.label_counts = statistics.label_counts + drawn.label_counts.astype(statistics.label_counts.dtype)
        self.tallies = tally(self.counts, self.model.group_start)
        self.state = State(*(part.copy() for part in state.copies))
        rng = np.random.default_rng()
        rng.bit_generator.state = state.generator
        return rng

    def draw_from_prior(self, rng: np.random.Generator, n_burn_in: int = 50) -> None:
        """Draw, by sweeps, from the posterior given labelled rows alone, and labels from the urns of their tasks."""
        self.forget_labels(rng)
        for _ in range(n_burn_in):
            self.state.sweep(self.model, self.labelled, rng, adapt=True)
        self.redraw_labels(rng, 0.0)

    def sweep(self, rng: np.random.Generator, power: float = 1.0, adapt: bool = False) -> Floats:
        """Redraw every unknown label, then all strengths and prototypes; returns the labels' probabilities."""
        probability = self.redraw_labels(rng, power)
        tallies = self.tallies if power == 1.0 else self.labelled.blended(self.tallies, power)
        self.state.sweep(self.model, tallies, rng, adapt)
        return probability

    def redraw_labels(self, rng: np.random.Generator, power: float) -> Floats:
        """Redraw every unknown label given strengths and prototypes; returns the probabilities (rows, labels)."""
        layout = self.data.statistics.layout
        strength = np.exp(self.state.log_strength)
        pseudo = np.repeat(strength, np.diff(layout.group_start)) * np.exp(self.state.log_prototype[0])
        # Every task is a cluster of its own.
        tasks = TaskCounts(self.label_counts, self.counts, np.arange(len(self.counts)), self.hyper.label_prior)
        rates = ClusterRates(
            self.counts.copy(),
            np.maximum(pseudo, TINY),
            np.maximum(strength, TINY),
            layout.group_start,
            layout.offsets,
            layout.number_groups,
        )
        probability = redraw_labels(self.rows, tasks, rates, power, rng.random(len(self.rows.labels)))
        self.tallies = tally(self.counts, self.model.group_start)
        return probability

    @property
    def log_likelihood(self) -> float:
        """Log probability of the unlabelled rows' features, given everything else."""
        everything = self.state.log_likelihood(self.model, self.tallies)
        return everything - self.state.log_likelihood(self.model, self.labelled)

    @property
    def log_joint(self) -> float:
        """Log density of strengths, prototypes, labels and features."""
        state, model = self.state, self.model
        total = self.hyper.log_label_evidence(self.label_counts)
        total += state.log_likelihood(model, self.tallies)
        for g in range(model.n_groups):
            total += float(model.log_prior(g, state.log_strength[g], state.log_prototype[0, model.cells(g)]))
        return total


class PrototypeChainDraws(NamedTuple):
    """What one chain leaves: every draw's strengths, prototypes and log joint, and some draws' counts."""

    draws: PrototypeDraws
    log_joint: Floats
    counts: NDArray[Any]
    label_counts: NDArray[Any]
    label_probability: Floats


def run_chain(
    chain: PrototypeChain,
    schedule: Schedule,
    kept: NDArray[np.int64],
    begin: np.random.SeedSequence | PrototypeState,
    progress: Callable[[int], None] = no_progress,
    place: Place | Nowhere = NOWHERE,
    stop: Stop = NEVER,
) -> tuple[PrototypeChainDraws, PrototypeState]:
    """Burn in, then draw; begin anew from a seed, or where a chain stood. Returns where it stands now too.

    A chain that is asked to stop has as many draws as it has come to.
    """
    n_done, n_sweeps = 0, schedule.n_burn_in + schedule.n_draws
    lists: tuple[list[Any], ...] = [], [], [], [], []
    label_probability = np.zeros((len(chain.rows.labels), chain.data.statistics.layout.n_labels))
    if (reached := place.load()) is not None:
        n_done, begin, lists, label_probability = reached
    strengths, prototypes, log_joint, counts, label_counts = lists
    if isinstance(begin, PrototypeState):
        rng = chain.resume(begin)
    else:
        rng = np.random.default_rng(begin)
        chain.start(rng)
    for sweep in range(n_done, n_sweeps):
        stops = stop.asked()
        if place.due() or (stops and sweep > n_done):
            place.save((sweep, chain.stands(rng), lists, label_probability))
        if stops:
            break
        probability = chain.sweep(rng, adapt=sweep < schedule.n_burn_in)
        progress(chain.model.n_groups)
        draw = sweep - schedule.n_burn_in
        if draw < 0:
            continue
        strengths.append(np.exp(chain.state.log_strength))
        prototypes.append(np.exp(chain.state.log_prototype[0]))
        log_joint.append(chain.log_joint)
        label_probability += probability / schedule.n_draws
        if draw in kept:
            counts.append(chain.counts.copy())
            label_counts.append(chain.label_counts.copy())
    else:
        place.save((n_sweeps, chain.stands(rng), lists, label_probability))
    label_probability = label_probability * (schedule.n_draws / max(len(log_joint), 1))
    draws = PrototypeDraws(np.array(strengths), np.array(prototypes))
    found = PrototypeChainDraws(draws, np.array(log_joint), np.array(counts), np.array(label_counts), label_probability)
    return found, chain.stands(rng)


def infer(data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> tuple[HyperParameters, Fitted]:
    """Run the chains side by side and join their draws. O(sweeps · (tasks · cells + rows · features · labels))."""
    statistics, schedule = data.statistics, options.schedule
    model = noise_model(hyper.feature_prior, statistics.layout, options.strength_prior)
    order = data.canonical_order
    arranged, row_order = data.arranged(order)
    n_tasks, n_cells = statistics.feature_counts.shape
    kept = kept_draws(schedule, n_tasks, n_cells)
    seeds = np.random.SeedSequence(seed).spawn(schedule.n_chains)
    keep = options.checkpoint
    key = ("prototype", arranged.values, hyper, options.strength_prior, schedule, seed)
    with (
        progress_bar("Sampling", model.n_groups * schedule.n_sweeps, options.verbose) as advance,
        stops_safely() as stop,
    ):
        runs = Parallel(n_jobs=options.n_jobs, prefer="threads")(
            delayed(run_chain)(
                PrototypeChain(arranged, hyper, model), schedule, kept, part, advance, keep.place(*key, i), stop
            )
            for i, part in enumerate(seeds)
        )
    which, n_draws = equally_long([len(draws.log_joint) for draws, _ in runs])
    kept = kept[kept < n_draws]
    chains = [_first(runs[chain][0], n_draws, len(kept)) for chain in which]
    back = np.argsort(order)
    counts = np.concatenate([chain.counts for chain in chains])[:, back]
    counts = np.concatenate([counts, np.zeros_like(counts[:, :1])], axis=1)
    label_counts = np.concatenate([chain.label_counts for chain in chains])[:, back]
    draws = PrototypeDraws(*(np.array(part) for part in zip(*(chain.draws for chain in chains), strict=True)))
    used = [part[:, kept].reshape(len(counts), 1, 1, -1) for part in draws]
    rates = [expected_rates(own, model, PrototypeDraws(*point)) for own, *point in zip(counts, *used, strict=True)]
    label_probability = np.empty((len(row_order), statistics.layout.n_labels))
    label_probability[row_order] = np.mean([chain.label_probability for chain in chains], axis=0)
    log_joint = np.array([chain.log_joint for chain in chains])
    fitted = Fitted(
        blocks=blocks_of_draws(data, hyper, counts, label_counts, np.array(rates)),
        partition=np.arange(n_tasks),
        log_joint=log_joint,
        label_probability=alike(data.unlabelled, label_probability),
        convergence=convergence_of_prototypes(log_joint, draws.strengths),
        prototypes=draws,
        interrupted=stop.asked(),
    )
    return hyper, fitted


def _first(chain: PrototypeChainDraws, n_draws: int, n_kept: int) -> PrototypeChainDraws:
    """The first draws of a chain, of which some have counts; probabilities of labels are those of all."""
    draws = PrototypeDraws(*(part[:n_draws] for part in chain.draws))
    counts = chain.counts[:n_kept], chain.label_counts[:n_kept]
    return PrototypeChainDraws(draws, chain.log_joint[:n_draws], *counts, chain.label_probability)
