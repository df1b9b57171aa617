"""Gibbs sampling of partitions and of unknown labels (thesis appendix A.1), and the mixture over its draws.

With the seats held fixed the same sampler serves no sharing and complete sharing (A.1.1, A.1.2); with seats that move,
clustered naive Bayes (A.1.3), whose concentration may be drawn along. Probabilities are averaged over draws, never the
draws themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import gammaln

from kinfolk.convergence import Convergence, diagnose
from kinfolk.evidence import Annealed, Evidence, annealed_evidence
from kinfolk.maths.dirichlet import DirichletProduct
from kinfolk.naive_bayes.inference.label_draws import LabelDraws
from kinfolk.naive_bayes.model.fitted import Blocks, Entry, Fitted, Problem, log_label_marginals, make_blocks
from kinfolk.partition.concentration import GammaPrior, draw_concentration, log_clusters_weight
from kinfolk.partition.crp import canonical, joining_weights
from kinfolk.partition.gibbs import Seating
from kinfolk.partition.split_merge import split_and_merge
from kinfolk.tasks.statistics import Rows


class Schedule(NamedTuple):
    """How long to sample: chains, sweeps thrown away at the start of each, and draws kept of each."""

    n_chains: int
    n_burn_in: int
    n_draws: int


class Chain:
    """One sampler over the partition (unless ``fixed``), the labels of unlabelled rows and, given a prior of it, the
    concentration.
    """

    def __init__(
        self,
        problem: Problem,
        product: DirichletProduct,
        concentration: float | GammaPrior,
        fixed: NDArray[np.int64] | None = None,
    ) -> None:
        self.problem = problem
        self.fixed = fixed
        self.prior = concentration if isinstance(concentration, GammaPrior) else None
        # Held seats ask for no concentration, which may then be zero or infinite; one with a prior is drawn before use.
        given = 1.0 if isinstance(concentration, GammaPrior) or fixed is not None else concentration
        self.seating = Seating(problem.statistics.feature_counts, product, given)
        rows = problem.unlabelled
        self.labels = LabelDraws(
            rows._replace(labels=rows.labels.copy()),
            problem.statistics.label_counts.copy(),
            problem.label_prior,
            problem.statistics.layout,
        )

    @property
    def n_unlabelled(self) -> int:
        """Number of rows whose labels are drawn."""
        return len(self.labels.rows.labels)

    def draw_from_prior(self, rng: np.random.Generator) -> None:
        """Draw concentration, labels from the urns of their tasks and seats from the restaurant, blind to features."""
        fresh = self.problem.statistics
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

    def sweep(self, rng: np.random.Generator, power: float = 1.0) -> NDArray[np.float64]:
        """Redraw every unknown label, every seat, clusters by splits and merges, and the concentration.

        Returns the labels' probabilities. O(tasks · clusters · cells + rows · features · labels).
        """
        probability = np.empty((0, self.problem.statistics.layout.n_labels))
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
        labels = float(log_label_marginals(self.labels.label_counts, self.problem.label_prior).sum())
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


def run_chain(
    chain: Chain, schedule: Schedule, seed: np.random.SeedSequence, progress: Callable[[int], None] | None
) -> Draws:
    """Burn in, then keep every draw."""
    rng = np.random.default_rng(seed)
    chain.start(rng)
    seats, label_counts, cluster_counts, log_joint, concentrations = [], [], [], [], []
    label_probability = np.zeros((chain.n_unlabelled, chain.problem.statistics.layout.n_labels))
    for sweep in range(schedule.n_burn_in + schedule.n_draws):
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
    return Draws(
        np.array(seats),
        np.array(label_counts),
        cluster_counts,
        np.array(log_joint),
        np.array(concentrations),
        label_probability,
    )


def fit_by_sampling(
    problem: Problem,
    concentration: float | GammaPrior,
    schedule: Schedule,
    seed: int,
    n_jobs: int | None = None,
    fixed: NDArray[np.int64] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Fitted:
    """Run the chains side by side and join their draws. O(sweeps · (tasks · clusters · cells + rows · features)).

    Given a prior of the concentration, it is drawn in every sweep, and a new task is met with every draw's own.
    """
    order = problem.canonical_order()
    arranged, row_order = arrange(problem, order)
    held = None if fixed is None else fixed[order]
    product = problem.product()
    seeds = np.random.SeedSequence(seed).spawn(schedule.n_chains)
    chains = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(run_chain)(Chain(arranged, product, concentration, held), schedule, seeds[i], progress)
        for i in range(schedule.n_chains)
    )
    back = np.argsort(order)
    seats = np.concatenate([draws.seats for draws in chains])[:, back]
    label_counts = np.concatenate([draws.label_counts for draws in chains])[:, back]
    cluster_counts = [counts for draws in chains for counts in draws.cluster_counts]
    log_joint = np.array([draws.log_joint for draws in chains])
    label_probability = np.empty((len(row_order), problem.statistics.layout.n_labels))
    averaged = np.mean([draws.label_probability for draws in chains], axis=0)
    label_probability[row_order] = _alike(arranged.unlabelled, averaged)
    partitions = np.array([canonical(seat) for seat in seats])
    by_chain = partitions.reshape(schedule.n_chains, schedule.n_draws, -1)
    drawn = None
    if isinstance(concentration, GammaPrior):
        drawn = np.array([draws.concentrations for draws in chains])
    given = np.full(len(seats), concentration) if drawn is None else drawn.ravel()

    return Fitted(
        blocks=_blocks(problem, seats, label_counts, cluster_counts, given),
        partition=partitions[int(np.argmax(log_joint))],
        partitions=by_chain,
        log_joint=log_joint,
        label_probability=label_probability,
        concentrations=drawn,
        convergence=convergence_of_draws(log_joint, by_chain if fixed is None else None, drawn),
    )


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


def _alike(rows: Rows, probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give rows of a task that are alike the same probabilities, their average: they differ by chance alone."""
    if not len(rows.labels):
        return probability
    _, group = np.unique(np.column_stack([rows.task, rows.described()]), axis=0, return_inverse=True)
    sums = np.zeros((int(group.max()) + 1, probability.shape[1]))
    np.add.at(sums, group, probability)
    return np.asarray((sums / np.bincount(group)[:, None])[group])


def sampled_evidence(
    problem: Problem,
    concentration: float | GammaPrior,
    seed: int,
    n_jobs: int | None = None,
    fixed: NDArray[np.int64] | None = None,
    n_runs: int = 32,
) -> Evidence:
    """Estimate log p(X, Y) by annealing over seats and unknown labels, from p(z, Y) to p(z, Y, X).

    At power zero the known labels' own evidence is the normalising constant; that stays so where the concentration has
    a prior, which the path begins and ends with.
    """
    order = problem.canonical_order()
    arranged, _ = arrange(problem, order)
    product = problem.product()
    held = None if fixed is None else fixed[order]
    states: list[Annealed] = [Chain(arranged, product, concentration, held) for _ in range(n_runs)]
    seeds = np.random.SeedSequence([seed, 1]).spawn(n_runs)
    return annealed_evidence(states, problem.log_label_evidence(), seeds, n_jobs=n_jobs)


def arrange(problem: Problem, order: NDArray[np.int64]) -> tuple[Problem, NDArray[np.int64]]:
    """The same problem with tasks in the given order and unlabelled rows in one of their own."""
    statistics, rows = problem.statistics, problem.unlabelled
    task = np.argsort(order)[rows.task] if len(rows.task) else rows.task
    row_order = np.lexsort([*rows.described().T[::-1], task])
    arranged_rows = rows._replace(task=task).take(row_order)
    arranged_rows = arranged_rows._replace(codes=np.ascontiguousarray(arranged_rows.codes))
    arranged = statistics._replace(
        tasks=statistics.tasks[order],
        feature_counts=statistics.feature_counts[order],
        label_counts=statistics.label_counts[order],
    )
    return problem._replace(statistics=arranged, unlabelled=arranged_rows), row_order


def _blocks(
    problem: Problem,
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
        for cluster, count in enumerate(cluster_counts[draw]):
            members = np.flatnonzero(seats[draw] == cluster)
            block, size, _ = counts.setdefault((members.tobytes(), count.tobytes()), (len(counts), len(members), count))
            for task in members.tolist():
                add(task, block, label_counts[draw, task], 1.0 / n_draws)
            joins, alone = joining_weights(np.array([size]), n_tasks, float(concentrations[draw]))
            add(n_tasks, block, no_labels, float(joins[0]) / n_draws)
        alone_in_all += alone / n_draws
    add(n_tasks, len(counts), no_labels, alone_in_all)
    dtype = label_counts.dtype
    entry = Entry(
        np.array([task for task, _, _ in weights], dtype=np.int64),
        np.array([block for _, block, _ in weights], dtype=np.int64),
        np.log(list(weights.values())),
        problem.log_rates(np.array([np.frombuffer(labels, dtype=dtype) for _, _, labels in weights])),
    )
    block_counts = [count for _, _, count in counts.values()]
    sizes = np.array([size for _, size, _ in counts.values()] + [0], dtype=np.int64)
    return make_blocks(problem, np.array([*block_counts, np.zeros_like(block_counts[0])]), sizes, [entry])
