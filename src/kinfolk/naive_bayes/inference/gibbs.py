"""Gibbs sampling of partitions and of unknown labels (thesis appendix A.1), and the mixture over its draws.

With the seats held fixed the same sampler serves no sharing and complete sharing (A.1.1, A.1.2); with seats that move,
clustered naive Bayes (A.1.3), whose concentration may be drawn along. Probabilities are averaged over draws, never the
draws themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel
from numpy.typing import NDArray
from scipy.special import gammaln

from kinfolk.checkpoints import NOWHERE, Nowhere, Place
from kinfolk.convergence import Convergence, diagnose
from kinfolk.evidence import Annealed, Evidence, annealed_evidence
from kinfolk.interrupts import NEVER, Stop, equally_long, stops_safely
from kinfolk.maths.dirichlet import DirichletProduct
from kinfolk.naive_bayes.inference.label_draws import LabelDraws, unlabelled_rows
from kinfolk.naive_bayes.inference.options import Options, Schedule
from kinfolk.naive_bayes.model.values import (
    Blocks,
    Fitted,
    HyperParameters,
    Memberships,
    TrainingData,
    feature_product,
    make_blocks,
)
from kinfolk.partition.concentration import draw_concentration, log_clusters_weight
from kinfolk.partition.crp import canonical, joining_weights
from kinfolk.partition.gibbs import Seating
from kinfolk.partition.split_merge import split_and_merge
from kinfolk.pieces import delayed
from kinfolk.progress import progress_bar
from kinfolk.tasks.statistics import Rows, count


class ChainState(NamedTuple):
    """Where a chain stands between two sweeps: enough to go on from, in this process or in another.

    Seats of the tasks, labels that the unlabelled rows have at the moment, the concentration, and the state of the
    generator of random numbers.
    """

    seat: NDArray[np.int64]
    labels: NDArray[np.int32]
    concentration: float
    generator: dict[str, Any]


class Chain:
    """The working memory of one sampler over the partition (unless ``fixed``), the labels of unlabelled rows and, given
    a prior of it, the concentration.
    """

    def __init__(
        self,
        data: TrainingData,
        hyper: HyperParameters,
        product: DirichletProduct,
        fixed: NDArray[np.int64] | None = None,
    ) -> None:
        self.data, self.hyper, self.fixed = data, hyper, fixed
        self.prior = hyper.concentration_prior if fixed is None else None
        # Held seats ask for no concentration, which may then be zero or infinite; one with a prior is drawn before use.
        given = 1.0 if self.prior is not None or fixed is not None else hyper.concentration
        self.seating = Seating(data.statistics.feature_counts, product, given)
        self.labels = LabelDraws(
            unlabelled_rows(data.unlabelled),
            data.statistics.label_counts.copy(),
            hyper.label_prior,
            data.statistics.layout,
        )

    @property
    def n_unlabelled(self) -> int:
        """Number of rows whose labels are drawn."""
        return len(self.labels.rows.labels)

    def draw_from_prior(self, rng: np.random.Generator) -> None:
        """Draw concentration, labels from the urns of their tasks and seats from the restaurant, blind to features."""
        fresh = self.data.statistics
        self.seating.counts[:] = fresh.feature_counts
        self.labels.label_counts[:] = fresh.label_counts
        self.labels.initialise(self.seating, rng.random(self.n_unlabelled))
        if self.prior is not None:
            self.seating.concentration = self.prior.draw(rng)
        if self.fixed is None:
            self.seating.draw_from_prior(rng.random(len(self.seating.seat)))
        else:
            self.seating.place(self.fixed)

    def start(self, rng: np.random.Generator) -> None:
        """Draw labels from the urns; then seat tasks one by one, each where those seated before attract it."""
        self.draw_from_prior(rng)
        if self.fixed is None:
            self.seating.clear()
            self.seating.sweep(rng.random(len(self.seating.seat)))

    def state(self, rng: np.random.Generator) -> ChainState:
        """Where the chain stands, as a value."""
        labels = self.labels.rows.labels.copy()
        return ChainState(self.seating.seat.copy(), labels, self.seating.concentration, dict(rng.bit_generator.state))

    def resume(self, state: ChainState) -> np.random.Generator:
        """Go on from where a chain stood; returns its generator of random numbers."""
        statistics = self.data.statistics
        self.labels.rows.labels[:] = state.labels
        labelled = self.data.unlabelled._replace(labels=state.labels)
        drawn = count(labelled, statistics.layout, statistics.tasks)
        self.seating.counts[:] = statistics.feature_counts + drawn.feature_counts
        self.labels.label_counts[:] = statistics.label_counts + drawn.label_counts
        self.seating.concentration = state.concentration
        self.seating.place(state.seat)
        rng = np.random.default_rng()
        rng.bit_generator.state = state.generator
        return rng

    def sweep(self, rng: np.random.Generator, power: float = 1.0) -> NDArray[np.float64]:
        """Redraw every unknown label, every seat, clusters by splits and merges, and the concentration.

        Returns the labels' probabilities. O(tasks · clusters · cells + rows · features · labels).
        """
        probability = np.empty((0, self.data.statistics.layout.n_labels))
        if self.n_unlabelled:
            probability = self.labels.sweep(self.seating, rng.random(self.n_unlabelled), power)
        if self.fixed is None:
            self.seating.sweep(rng.random(len(self.seating.seat)), power)
            split_and_merge(self.seating, rng, temper=power)
        if self.prior is not None:
            n_clusters, n_tasks = self.seating.n_clusters, len(self.seating.seat)
            self.seating.concentration = draw_concentration(
                self.seating.concentration, n_clusters, n_tasks, self.prior, rng
            )
        return probability

    @property
    def log_likelihood(self) -> float:
        """Log probability of the features given labels and seats."""
        return self.seating.log_likelihood

    @property
    def log_joint(self) -> float:
        """Log probability of seats, labels and features; a concentration that is drawn is integrated out."""
        labels = self.hyper.log_label_evidence(self.labels.label_counts)
        if self.fixed is not None:
            return self.log_likelihood + labels
        if self.prior is None:
            return self.log_likelihood + labels + self.seating.log_prior
        sizes = self.seating.cluster_size[self.seating.cluster_size > 0]
        seats = float(gammaln(sizes).sum()) + log_clusters_weight(len(sizes), int(sizes.sum()), self.prior)
        return self.log_likelihood + labels + seats


class Draws(NamedTuple):
    """What one chain kept: per draw the seats, label counts, clusters' counts, log joint and concentration."""

    seats: NDArray[np.int64]
    label_counts: NDArray[np.generic]
    cluster_counts: list[NDArray[np.generic]]
    log_joint: NDArray[np.float64]
    concentrations: NDArray[np.float64]
    label_probability: NDArray[np.float64]

    def first(self, n: int) -> Draws:
        """The first draws; probabilities of labels are those of all."""
        parts: list[Any] = [part[:n] for part in self]
        return Draws(*parts)._replace(label_probability=self.label_probability)


def run_chain(
    chain: Chain,
    schedule: Schedule,
    begin: np.random.SeedSequence | ChainState,
    progress: Callable[[int], None] | None = None,
    place: Place | Nowhere = NOWHERE,
    stop: Stop = NEVER,
) -> tuple[Draws, ChainState]:
    """Burn in, then keep every draw; begin anew from a seed, or where a chain stood. Returns where it stands now.

    A chain that is asked to stop has as many draws as it has come to.
    """
    n_done, n_sweeps = 0, schedule.n_burn_in + schedule.n_draws
    kept: tuple[list[Any], ...] = [], [], [], [], []
    label_probability = np.zeros((chain.n_unlabelled, chain.data.statistics.layout.n_labels))
    if (found := place.load()) is not None:
        n_done, begin, kept, label_probability = found
    seats, label_counts, cluster_counts, log_joint, concentrations = kept
    if isinstance(begin, ChainState):
        rng = chain.resume(begin)
    else:
        rng = np.random.default_rng(begin)
        chain.start(rng)
    for sweep in range(n_done, n_sweeps):
        stops = stop.asked()
        if place.due() or (stops and sweep > n_done):
            place.save((sweep, chain.state(rng), kept, label_probability))
        if stops:
            break
        probability = chain.sweep(rng)
        if progress is not None:
            progress(1)
        if sweep < schedule.n_burn_in:
            continue
        seat = canonical(chain.seating.seat)
        _, first = np.unique(seat, return_index=True)
        seats.append(seat)
        label_counts.append(chain.labels.label_counts.copy())
        cluster_counts.append(chain.seating.cluster_counts[chain.seating.seat[first]])
        log_joint.append(chain.log_joint)
        concentrations.append(chain.seating.concentration)
        label_probability += probability / schedule.n_draws
    else:
        place.save((n_sweeps, chain.state(rng), kept, label_probability))
    draws = Draws(
        np.array(seats),
        np.array(label_counts),
        cluster_counts,
        np.array(log_joint),
        np.array(concentrations),
        label_probability * (schedule.n_draws / max(len(seats), 1)),
    )
    return draws, chain.state(rng)


def _begin_chain(
    of: tuple[TrainingData, HyperParameters, DirichletProduct, NDArray[np.int64] | None], *how: Any
) -> tuple[Draws, ChainState]:
    """A chain whose memory is made where it runs: what is handed to another process may be read-only there."""
    return run_chain(Chain(*of), *how)


def infer(
    data: TrainingData,
    hyper: HyperParameters,
    options: Options,
    seed: int,
    fixed: NDArray[np.int64] | None = None,
) -> tuple[HyperParameters, Fitted]:
    """Run the chains side by side and join their draws. O(sweeps · (tasks · clusters · cells + rows · features)).

    Given a prior of the concentration, it is drawn in every sweep, and a new task is met with every draw's own. Seats
    are held where a partition is given as ``fixed``.
    """
    schedule, statistics = options.schedule, data.statistics
    order = data.canonical_order
    arranged, row_order = data.arranged(order)
    held = None if fixed is None else fixed[order]
    product = feature_product(data, hyper)
    seeds = np.random.SeedSequence(seed).spawn(schedule.n_chains)
    keep = options.checkpoint
    key = ("gibbs", arranged.values, hyper, held, schedule, seed)
    with progress_bar("Sampling", schedule.n_sweeps, options.verbose) as advance, stops_safely() as stop:
        runs = Parallel(n_jobs=options.n_jobs, prefer="threads")(
            delayed(_begin_chain)((arranged, hyper, product, held), schedule, part, advance, keep.place(*key, i), stop)
            for i, part in enumerate(seeds)
        )
    which, n_draws = equally_long([len(draws.log_joint) for draws, _ in runs])
    chains = [runs[chain][0].first(n_draws) for chain in which]
    back = np.argsort(order)
    seats = np.concatenate([draws.seats for draws in chains])[:, back]
    label_counts = np.concatenate([draws.label_counts for draws in chains])[:, back]
    cluster_counts = [counts for draws in chains for counts in draws.cluster_counts]
    log_joint = np.array([draws.log_joint for draws in chains])
    label_probability = np.empty((len(row_order), statistics.layout.n_labels))
    averaged = np.mean([draws.label_probability for draws in chains], axis=0)
    label_probability[row_order] = alike(arranged.unlabelled, averaged)
    partitions = np.array([canonical(seat) for seat in seats])
    by_chain = partitions.reshape(len(chains), n_draws, -1)
    drawn = None
    if fixed is None and hyper.concentration_prior is not None:
        drawn = np.array([draws.concentrations for draws in chains])
        hyper = hyper._replace(concentration=float(drawn.mean()))
    concentrations = np.full(len(seats), hyper.concentration) if drawn is None else drawn.ravel()
    fitted = Fitted(
        blocks=_blocks(data, hyper, seats, label_counts, cluster_counts, concentrations),
        partition=partitions[int(np.argmax(log_joint))],
        partitions=by_chain,
        log_joint=log_joint,
        label_probability=label_probability,
        concentrations=drawn,
        convergence=convergence_of_draws(log_joint, by_chain if fixed is None else None, drawn),
        interrupted=stop.asked(),
    )
    return hyper, fitted


def convergence_of_draws(
    log_joint: NDArray[np.float64],
    partitions: NDArray[np.int64] | None = None,
    concentrations: NDArray[np.float64] | None = None,
) -> Convergence:
    """Judge chains by what does not depend on how clusters are numbered; partitions are (chains, draws, tasks)."""
    quantities: dict[str, NDArray[Any]] = {"log joint": log_joint}
    if partitions is not None:
        quantities["number of clusters"] = partitions.max(axis=-1) + 1
    if concentrations is not None:
        quantities["concentration"] = concentrations
    return diagnose(quantities)


def alike(rows: Rows, probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give rows of a task that are alike the same probabilities, their average: they differ by chance alone."""
    if not len(rows.labels):
        return probability
    _, group = np.unique(np.column_stack([rows.task, rows.described()]), axis=0, return_inverse=True)
    sums = np.zeros((int(group.max()) + 1, probability.shape[1]))
    np.add.at(sums, group, probability)
    return np.asarray((sums / np.bincount(group)[:, None])[group])


def evidence(
    data: TrainingData,
    hyper: HyperParameters,
    seed: int,
    n_jobs: int | None = None,
    fixed: NDArray[np.int64] | None = None,
    n_runs: int = 32,
) -> Evidence:
    """Estimate log p(X, Y) by annealing over seats and unknown labels, from p(z, Y) to p(z, Y, X).

    At power zero the known labels' own evidence is the normalising constant; that stays so where the concentration has
    a prior, which the path begins and ends with (thesis eq. A.55–A.61).
    """
    order = data.canonical_order
    arranged, _ = data.arranged(order)
    product = feature_product(data, hyper)
    held = None if fixed is None else fixed[order]
    states: list[Annealed] = [Chain(arranged, hyper, product, held) for _ in range(n_runs)]
    seeds = np.random.SeedSequence([seed, 1]).spawn(n_runs)
    return annealed_evidence(states, hyper.log_label_evidence(data.statistics.label_counts), seeds, n_jobs=n_jobs)


def _blocks(
    data: TrainingData,
    hyper: HyperParameters,
    seats: NDArray[np.int64],
    label_counts: NDArray[Any],
    cluster_counts: list[NDArray[Any]],
    concentrations: NDArray[np.float64],
) -> Blocks:
    """A block per cluster and draw; draws that agree on a block, labels included, share it."""
    n_draws, n_tasks = seats.shape
    no_labels = np.zeros_like(label_counts[0, 0])
    counts: dict[tuple[bytes, bytes], tuple[int, int, NDArray[Any]]] = {}
    # weight of (task, block, label counts), a task's weights adding up to one
    weights: dict[tuple[int, int, bytes], float] = {}

    def add(task: int, block: int, labels: NDArray[Any], weight: float) -> None:
        if weight > 0.0:
            key = (task, block, labels.tobytes())
            weights[key] = weights.get(key, 0.0) + weight

    alone_in_all = 0.0
    for draw in range(n_draws):
        ends = np.cumsum(np.bincount(seats[draw]))
        by_cluster = np.split(np.argsort(seats[draw], kind="stable"), ends[:-1])
        for members, cells in zip(by_cluster, cluster_counts[draw], strict=True):
            block, size, _ = counts.setdefault((members.tobytes(), cells.tobytes()), (len(counts), len(members), cells))
            for task in members.tolist():
                add(task, block, label_counts[draw, task], 1.0 / n_draws)
            joins, alone = joining_weights(np.array([size]), n_tasks, float(concentrations[draw]))
            add(n_tasks, block, no_labels, float(joins[0]) / n_draws)
        alone_in_all += alone / n_draws
    add(n_tasks, len(counts), no_labels, alone_in_all)
    dtype = label_counts.dtype
    memberships = Memberships(
        np.array([task for task, _, _ in weights], dtype=np.int64),
        np.array([block for _, block, _ in weights], dtype=np.int64),
        np.log(list(weights.values())),
        hyper.log_label_rates(np.array([np.frombuffer(labels, dtype=dtype) for _, _, labels in weights])),
    )
    block_counts = [cells for _, _, cells in counts.values()]
    sizes = np.array([size for _, size, _ in counts.values()] + [0], dtype=np.int64)
    return make_blocks(data, hyper, np.array([*block_counts, np.zeros_like(block_counts[0])]), sizes, [memberships])
