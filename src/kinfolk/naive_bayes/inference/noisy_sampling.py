"""Relaxed sameness: tasks of a cluster have noisy copies of its rates (the last sentence of Roy and Kaelbling 2007).

Clustered naive Bayes (thesis section 2.5) with the noise model of the prototypes (section 2.4) inside every cluster:

    z ~ CRP(a),    θ̄_{c,y,f} ~ Dir(β),    K_{y,f} ~ Gamma(shape, rate),    θ_{u,y,f} ~ Dir(K_{y,f} θ̄_{z_u,y,f}).

With K to infinity it is clustered naive Bayes, with one cluster the prototype model. Rates θ_u are integrated out: a
task's counts n are Dirichlet-multinomial. Read as an urn, each of its rows either draws its value from the prototype or
repeats an earlier row; with t_{u,x} ≤ n_{u,x} the number of draws from the prototype, its *votes*, and s(n, t)
Stirling's numbers,

    p(n_u, t_u | θ̄, K) = Γ(K) / Γ(K + N_u) ∏_x s(n_{u,x}, t_{u,x}) (K θ̄_x)^{t_{u,x}},

so that given votes the prototypes are integrated out as well, and partitions are drawn as those of clustered naive
Bayes with votes in the place of counts, single tasks and splits and merges alike. A sweep draws

    K given z, θ̄ (votes summed out);    votes given K, z, θ̄;    z given votes;    θ̄ given z and votes.

The first two are one draw of (K, t), the last two one of (z, θ̄). Votes are whole numbers, and so must counts be.

Given z, K and votes, features are independent: a task's next row has ∏_f (n_{u,x} + K m_x) / (N_u + K), m being the
prototypes' conditional mean, and given z alone the product of such rates averaged over draws. So draws of the same
partition share a block with averaged rates, and a task is a mixture over partitions drawn.
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
from kinfolk.maths.compiled import compiled
from kinfolk.maths.dirichlet import dirichlet_product
from kinfolk.maths.gamma_draws import log_gamma_draws
from kinfolk.naive_bayes.inference.gibbs import convergence_of_draws
from kinfolk.naive_bayes.inference.noisy_blocks import NoisyDraw, blocks_of_partitions
from kinfolk.naive_bayes.inference.options import Options, Schedule, kept_draws
from kinfolk.naive_bayes.model.noisy_copies import (
    NoiseModel,
    State,
    noise_model,
    redraw_strengths,
)
from kinfolk.naive_bayes.model.tallies import tally_by_cluster
from kinfolk.naive_bayes.model.values import Fitted, HyperParameters, TrainingData, feature_product
from kinfolk.partition.agreement import central_partition
from kinfolk.partition.concentration import draw_concentration
from kinfolk.partition.crp import canonical
from kinfolk.partition.gibbs import Seating
from kinfolk.partition.split_merge import split_and_merge
from kinfolk.pieces import delayed
from kinfolk.progress import progress_bar


class NoisyState(NamedTuple):
    """Where a chain stands between two sweeps: enough to go on from.

    Seats of the tasks, strengths, prototypes (clusters, cells) with the widths that the sampler looks around itself,
    the concentration, and the state of the generator of random numbers.
    """

    seat: NDArray[np.int64]
    copies: State
    concentration: float
    generator: dict[str, Any]


class NoisyChain:
    """The working memory of one sampler over seats, strengths and prototypes, all rows labelled.

    Annealed, the power acts on the prototypes: pseudo-counts are K θ̄^power, so that votes count by the power.
    """

    def __init__(self, data: TrainingData, hyper: HyperParameters, model: NoiseModel, annealed: bool = False) -> None:
        counts = data.statistics.feature_counts
        if counts.dtype.kind not in "iu":
            raise ValueError("noisy copies need whole weights of rows, and some of those given are fractions")
        self.data, self.hyper, self.model = data, hyper, model
        self.counts = np.ascontiguousarray(counts)
        self.prior = hyper.concentration_prior
        start = hyper.concentration if self.prior is None else self.prior.shape / self.prior.rate
        # Votes that count by a power are fractions, which no table of lgamma reaches.
        product = (
            dirichlet_product(model.prototype_prior, model.group_start, 0) if annealed else feature_product(data, hyper)
        )
        self.seating = Seating(self.counts.astype(np.float64) if annealed else self.counts, product, float(start))
        self.seating.place(np.zeros(len(counts), dtype=np.int64))
        self.votes = self.counts.copy()
        self.cluster = np.full(len(counts), -1)
        widths = np.ones(model.n_groups), np.ones(len(model.prototype_prior))
        self.copies = State(np.zeros(model.n_groups), np.zeros((1, len(model.prototype_prior))), *widths)

    def start(self, rng: np.random.Generator) -> None:
        """Strengths from the prior; tasks seated one by one, each where those before attract it, all rows votes."""
        self.copies.log_strength[:] = log_gamma_draws(np.full(self.model.n_groups, self.model.shape), rng)
        self.copies.log_strength[:] -= np.log(self.model.rate)
        self.draw_concentration_from_prior(rng)
        self.votes[:] = self.counts
        self.count_votes(1.0)
        self.seating.clear()
        self.seating.sweep(rng.random(len(self.counts)))
        self.redraw_prototypes(rng)

    def state(self, rng: np.random.Generator) -> NoisyState:
        """Where the chain stands, as a value."""
        copies = State(*(part.copy() for part in self.copies))
        return NoisyState(self.seating.seat.copy(), copies, self.seating.concentration, dict(rng.bit_generator.state))

    def resume(self, state: NoisyState) -> np.random.Generator:
        """Go on from where a chain stood; returns its generator of random numbers."""
        self.seating.place(state.seat)
        self.seating.concentration = state.concentration
        self.copies = State(*(part.copy() for part in state.copies))
        self.follow_seats()
        rng = np.random.default_rng()
        rng.bit_generator.state = state.generator
        return rng

    def draw_concentration_from_prior(self, rng: np.random.Generator) -> None:
        """Draw the concentration, if it is unknown, without data."""
        if self.prior is not None:
            self.seating.concentration = self.prior.draw(rng)

    def sweep(self, rng: np.random.Generator, power: float = 1.0, adapt: bool = False) -> None:
        """Redraw everything once. O(rows · features + tasks · clusters · cells)."""
        at_power = self.copies._replace(log_prototype=power * self.copies.log_prototype)
        redraw_strengths(self.model, self.tallies, at_power, adapt, rng)
        self.redraw_votes(rng, power)
        self.count_votes(power)
        self.reseat(rng)
        self.redraw_prototypes(rng)

    def redraw_votes(self, rng: np.random.Generator, power: float) -> None:
        """Redraw how many of each task's rows with a value were drawn from its prototype."""
        at_power = self.copies._replace(log_prototype=power * self.copies.log_prototype)
        _draw_votes(self.model, at_power, self.counts, self.cluster, self.votes, rng)

    def count_votes(self, power: float) -> None:
        """Let the clusters have the votes of their tasks."""
        seating = self.seating
        seating.counts[:] = self.votes if power == 1.0 else power * self.votes
        seating.refresh()

    def reseat(self, rng: np.random.Generator) -> None:
        """Redraw the partition given the votes, prototypes integrated out, then the concentration if it is unknown."""
        seating = self.seating
        seating.sweep(rng.random(len(self.votes)))
        split_and_merge(seating, rng)
        if self.prior is not None:
            seating.concentration = draw_concentration(
                seating.concentration, seating.n_clusters, len(self.votes), self.prior, rng
            )

    def redraw_prototypes(self, rng: np.random.Generator) -> None:
        """Redraw the prototypes of all clusters given votes and seats."""
        taken, cluster = np.unique(self.seating.seat, return_inverse=True)
        # Often nobody has moved.
        if not np.array_equal(cluster, self.cluster):
            self.follow_seats()
        drawn = log_gamma_draws(self.seating.cluster_counts[taken] + self.model.prototype_prior, rng)
        starts, widths = self.model.group_start[:-1], np.diff(self.model.group_start)
        log_prototype = drawn - np.repeat(np.logaddexp.reduceat(drawn, starts, axis=1), widths, axis=1)
        self.copies = self.copies._replace(log_prototype=log_prototype)

    def follow_seats(self) -> None:
        """Number the clusters that are taken, and tally their tasks' counts."""
        taken, self.cluster = np.unique(self.seating.seat, return_inverse=True)
        self.tallies = tally_by_cluster(self.counts, self.model.group_start, self.cluster, len(taken))

    @property
    def log_joint(self) -> float:
        """Log probability of seats, labels and features, given strengths and prototypes."""
        fit = self.copies.log_likelihood(self.model, self.tallies)
        labels = self.hyper.log_label_evidence(self.data.statistics.label_counts)
        return float(fit + self.seating.log_prior + labels)


@compiled
def _draw_votes(model, state, counts, cluster, votes, rng):  # type: ignore[no-untyped-def]
    """Draw how many of each task's rows with a value were drawn from the prototype, in place of ``votes``.

    The first was; the (i + 1)-th was with probability a / (a + i), a = K θ̄_x, else it repeats one of those before it.
    """
    for g in range(len(state.log_strength)):
        for u in range(len(counts)):
            for c in range(model.group_start[g], model.group_start[g + 1]):
                n = counts[u, c]
                drawn = min(n, 1)
                if n > 1:
                    a = np.exp(state.log_strength[g] + state.log_prototype[cluster[u], c])
                    for i in range(1, n):
                        if rng.random() * (a + i) < a:
                            drawn += 1
                votes[u, c] = drawn


class NoisyDraws(NamedTuple):
    """What one chain leaves: every draw's seats, strengths, concentration and log joint, and some draws whole."""

    seats: NDArray[np.int64]
    strengths: Floats
    concentrations: Floats
    log_joint: Floats
    whole: list[NoisyDraw]

    def first(self, n_draws: int, n_whole: int) -> NoisyDraws:
        """The first draws, of which so many are whole."""
        parts: list[Any] = [part[:n_draws] for part in self]
        return NoisyDraws(*parts)._replace(whole=self.whole[:n_whole])


def run_chain(
    chain: NoisyChain,
    schedule: Schedule,
    kept: NDArray[np.int64],
    back: NDArray[np.int64],
    begin: np.random.SeedSequence | NoisyState,
    progress: Callable[[int], None] | None = None,
    place: Place | Nowhere = NOWHERE,
    stop: Stop = NEVER,
) -> tuple[NoisyDraws, NoisyState]:
    """Burn in, then draw; seats and votes come back in the order of the tasks that ``back`` gives.

    Begin anew from a seed, or where a chain stood; returns where it stands now too. A chain that is asked to stop has
    as many draws as it has come to.
    """
    n_done, n_sweeps = 0, schedule.n_burn_in + schedule.n_draws
    lists: tuple[list[Any], ...] = [], [], [], [], []
    if (found := place.load()) is not None:
        n_done, begin, lists = found
    seats, strengths, concentrations, log_joint, whole = lists
    if isinstance(begin, NoisyState):
        rng = chain.resume(begin)
    else:
        rng = np.random.default_rng(begin)
        chain.start(rng)
    for sweep in range(n_done, n_sweeps):
        stops = stop.asked()
        if place.due() or (stops and sweep > n_done):
            place.save((sweep, chain.state(rng), lists))
        if stops:
            break
        chain.sweep(rng, adapt=sweep < schedule.n_burn_in)
        if progress is not None:
            progress(1)
        if sweep < schedule.n_burn_in:
            continue
        seats.append(canonical(chain.cluster[back]))
        strengths.append(np.exp(chain.copies.log_strength))
        concentrations.append(chain.seating.concentration)
        log_joint.append(chain.log_joint)
        if sweep - schedule.n_burn_in in kept:
            votes = chain.votes[back].astype(np.int32)
            whole.append(NoisyDraw(seats[-1], strengths[-1], votes, concentrations[-1]))
    else:
        place.save((n_sweeps, chain.state(rng), lists))
    draws = NoisyDraws(np.array(seats), np.array(strengths), np.array(concentrations), np.array(log_joint), whole)
    return draws, chain.state(rng)


def sample(data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> tuple[list[NoisyDraws], bool]:
    """Run the chains side by side; also tell whether they were interrupted, which leaves fewer draws.

    O(sweeps · (rows · features + tasks · clusters · cells)).
    """
    schedule = options.schedule
    order = data.canonical_order
    arranged, _ = data.labelled_only().arranged(order)
    model = noise_model(hyper.feature_prior, data.statistics.layout, options.strength_prior)
    kept = kept_draws(schedule, *data.statistics.feature_counts.shape)
    back = np.argsort(order)
    keep = options.checkpoint
    key = ("noisy", arranged.values, hyper, options.strength_prior, schedule, seed)
    with progress_bar("Sampling", schedule.n_sweeps, options.verbose) as advance, stops_safely() as stop:
        runs = Parallel(n_jobs=options.n_jobs, prefer="threads")(
            delayed(run_chain)(
                NoisyChain(arranged, hyper, model), schedule, kept, back, part, advance, keep.place(*key, i), stop
            )
            for i, part in enumerate(np.random.SeedSequence(seed).spawn(schedule.n_chains))
        )
    which, n_draws = equally_long([len(draws.log_joint) for draws, _ in runs])
    n_whole = int((kept < n_draws).sum())
    return [runs[chain][0].first(n_draws, n_whole) for chain in which], stop.asked()


def infer(data: TrainingData, hyper: HyperParameters, options: Options, seed: int) -> tuple[HyperParameters, Fitted]:
    """Sample, and join the draws of all chains.

    Unlabelled rows are left out. The partition reported is the one, of those drawn, that agrees best with all.
    """
    chains, interrupted = sample(data, hyper, options, seed)
    whole = [draw for draws in chains for draw in draws.whole]
    blocks, sources = blocks_of_partitions(data, hyper, whole)
    seats, log_joint = np.array([draws.seats for draws in chains]), np.array([draws.log_joint for draws in chains])
    concentrations = None
    if hyper.concentration_prior is not None:
        concentrations = np.array([draws.concentrations for draws in chains])
        hyper = hyper._replace(concentration=float(concentrations.mean()))
    fitted = Fitted(
        blocks=blocks,
        partition=central_partition(np.array([draw.seat for draw in whole])),
        partitions=seats,
        log_joint=log_joint,
        concentrations=concentrations,
        convergence=convergence_of_draws(log_joint, seats, concentrations),
        sources=sources,
        interrupted=interrupted,
    )
    return hyper, fitted
