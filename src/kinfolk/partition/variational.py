"""Variational inference for a Dirichlet process mixture over tasks, from counts alone (after Blei and Jordan 2006).

q(z_u = t) = r_ut, q(θ_t) = ∏ Dir(β + N_t) with N_t = Σ_u r_ut n_u, and q(v_t) = Beta(1 + R_t, a + Σ_{s>t} R_s) for the
sticks of the first T clusters, R_t = Σ_u r_ut. No task sits beyond the T-th cluster, whose stick is a Beta like the
others (Kurihara, Welling and Teh 2007), so that the bound holds for the whole Dirichlet process, not a truncated one:

    log p(D) ≥ Σ_u log Σ_t exp( E[log π_t] + Σ_c n_uc E[log θ_tc] ) − Σ_t KL(q(θ_t)‖p) − Σ_t KL(q(v_t)‖p).

One sweep is two matrix products over the data. The number of clusters is not fixed: it starts from a sample of tasks,
clusters are born from tasks that none explains, and merged where that raises the bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, gammaln

from kinfolk.maths.dirichlet import DirichletProduct, dirichlet_product, log_marginals, log_marginals_joined
from kinfolk.partition.bhc import cluster_hierarchically

Floats = NDArray[np.float64]

SAMPLE = 1_000  # tasks that hierarchical clustering looks at, for a start or for births
START_TASKS = 20_000  # tasks that the start looks at
MAX_SEEDS = 300  # clusters to start with where there are many tasks
SEED_TASKS = 3  # tasks in each of them
MAX_SWEEPS = 100  # between two moves that change the number of clusters
MAX_ROUNDS = 6  # of births and merges
TOLERANCE = 1e-4  # nats per task; a sweep that gains less ends the sweeping
ROUGHLY = 1e-2  # the same, where clusters are about to be merged anyway


class Sweep(NamedTuple):
    """What one pass over all tasks gives: new counts and sizes of the clusters, and the log normalisers' sum."""

    counts: Floats
    sizes: Floats
    log_norm: float


class Data(Protocol):
    """Counts of many tasks, wherever they are held."""

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""

    def sweep(self, log_theta: Floats, log_pi: Floats) -> Sweep:
        """Add every task to the clusters by its responsibilities."""

    def log_norms(self, log_theta: Floats, log_pi: Floats) -> Floats:
        """Log normaliser of each task: how well the clusters explain it."""

    def sample(self, tasks: NDArray[np.int64]) -> NDArray[Any]:
        """Counts of some tasks."""


class CountsInMemory:
    """Counts as a numpy array, of any integer or float type; gone through in blocks, never copied whole."""

    def __init__(self, counts: NDArray[Any], block: int = 8_192) -> None:
        self.counts = counts
        self.block = block
        # Single precision costs about 1e-4 nats a task, which does not matter to a million of them.
        self.dtype = np.float64 if counts.size <= 4_000_000 else np.float32

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.counts)

    def _scores(self, log_theta: Floats, log_pi: Floats) -> Iterator[tuple[slice, NDArray[Any], NDArray[Any]]]:
        weights: NDArray[Any] = np.ascontiguousarray(log_theta.T, dtype=self.dtype)
        offset: NDArray[Any] = log_pi.astype(self.dtype)
        for first in range(0, self.n_tasks, self.block):
            rows = slice(first, first + self.block)
            block: NDArray[Any] = self.counts[rows].astype(self.dtype)
            scores = block @ weights
            scores += offset
            yield rows, block, scores

    def sweep(self, log_theta: Floats, log_pi: Floats) -> Sweep:
        """Add every task to the clusters by its responsibilities. O(tasks · cells · clusters)."""
        counts = np.zeros(log_theta.shape)
        sizes = np.zeros(len(log_pi))
        log_norm = 0.0
        for _, block, scores in self._scores(log_theta, log_pi):
            log_norm += float(_soften(scores).sum(dtype=np.float64))
            counts += scores.T @ block
            sizes += scores.sum(axis=0, dtype=np.float64)
        return Sweep(counts, sizes, log_norm)

    def log_norms(self, log_theta: Floats, log_pi: Floats) -> Floats:
        """Log normaliser of each task."""
        out = np.empty(self.n_tasks)
        for rows, _, scores in self._scores(log_theta, log_pi):
            out[rows] = _soften(scores)
        return out

    def responsibilities(self, log_theta: Floats, log_pi: Floats) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Responsibilities (tasks, clusters), block by block."""
        for rows, _, scores in self._scores(log_theta, log_pi):
            _soften(scores)
            yield rows, scores

    def sample(self, tasks: NDArray[np.int64]) -> NDArray[Any]:
        """Counts of some tasks, of a type that sums of them fit in."""
        chosen = self.counts[tasks]
        return chosen.astype(np.int32 if chosen.dtype.kind in "iu" else np.float64)


def _soften(scores: NDArray[Any]) -> NDArray[Any]:
    """Turn rows of scores into probabilities, in place; returns the rows' log normalisers."""
    highest = scores.max(axis=1, keepdims=True)
    scores -= highest
    np.exp(scores, out=scores)
    total = scores.sum(axis=1, keepdims=True)
    scores /= total
    return np.asarray((highest + np.log(total))[:, 0])


class Clusters(NamedTuple):
    """The variational posterior: expected counts and sizes of the clusters, largest first, and the bound."""

    counts: Floats
    sizes: Floats
    bound: float

    def ordered(self) -> Clusters:
        """Largest cluster first, which is where the stick-breaking prior expects it."""
        order = np.argsort(-self.sizes, kind="stable")
        return self._replace(counts=self.counts[order], sizes=self.sizes[order])


def expectations(clusters: Clusters, product: DirichletProduct, concentration: float) -> tuple[Floats, Floats]:
    """E[log θ] (clusters, cells) and E[log π] (clusters,)."""
    posterior = clusters.counts + product.prior
    totals = np.add.reduceat(posterior, product.group_start[:-1], axis=1)
    log_theta = digamma(posterior) - np.repeat(digamma(totals), np.diff(product.group_start), axis=1)
    won, left = 1.0 + clusters.sizes, concentration + _beyond(clusters.sizes)
    both = digamma(won + left)
    log_pi = digamma(won) - both
    log_pi[1:] += np.cumsum(digamma(left) - both)[:-1]
    return log_theta, log_pi


def _beyond(sizes: Floats) -> Floats:
    """Number of tasks in the clusters after each."""
    return np.asarray(np.concatenate([np.cumsum(sizes[::-1])[::-1][1:], [0.0]]))


def divergence(clusters: Clusters, product: DirichletProduct, concentration: float) -> float:
    """KL divergence of q(θ) and q(v) from their priors."""
    log_theta, _ = expectations(clusters, product, concentration)
    posterior = clusters.counts + product.prior
    starts = product.group_start[:-1]
    totals = np.add.reduceat(posterior, starts, axis=1)
    of_theta = gammaln(totals).sum() - gammaln(posterior).sum() + (clusters.counts * log_theta).sum()
    of_theta += len(posterior) * (gammaln(product.prior).sum() - gammaln(product.group_prior).sum())
    won, left = 1.0 + clusters.sizes, concentration + _beyond(clusters.sizes)
    both = digamma(won + left)
    of_sticks = (clusters.sizes * (digamma(won) - both) + (left - concentration) * (digamma(left) - both)).sum()
    of_sticks += (betaln(1.0, concentration) - betaln(won, left)).sum()
    return float(of_theta + of_sticks)


def converge(
    data: Data,
    clusters: Clusters,
    product: DirichletProduct,
    concentration: float,
    max_sweeps: int = MAX_SWEEPS,
    tolerance: float = TOLERANCE,
    progress: Callable[[int], None] | None = None,
) -> Clusters:
    """Sweep until the bound stands still; every sweep raises it. Clusters that nobody is left in are dropped."""
    clusters = clusters.ordered()
    bound = -np.inf
    for _ in range(max_sweeps):
        log_theta, log_pi = expectations(clusters, product, concentration)
        sweep = data.sweep(log_theta, log_pi)
        before, bound = bound, sweep.log_norm - divergence(clusters, product, concentration)
        kept = sweep.sizes > 1e-6 * data.n_tasks / len(sweep.sizes)
        clusters = Clusters(sweep.counts[kept], sweep.sizes[kept], bound).ordered()
        if progress is not None:
            progress(1)
        if bound - before < tolerance * data.n_tasks:
            break
    return clusters


def merged(clusters: Clusters, product: DirichletProduct, concentration: float) -> Clusters:
    """Join clusters, best pair first, as long as the collapsed evidence of their expected counts says so.

    The gain of a join is log p(N_s + N_t) − log p(N_s) − log p(N_t) + log Γ(R_s + R_t)/(Γ(R_s)Γ(R_t)) − log a.
    """
    counts, sizes = clusters.counts.copy(), clusters.sizes.copy()
    plain = dirichlet_product(product.prior, product.group_start, 0)
    alone = log_marginals(counts, plain) + gammaln(sizes)
    n = len(sizes)
    alive = np.ones(n, dtype=bool)
    gain = np.full((n, n), -np.inf)

    def refresh(i: int) -> None:
        others = np.flatnonzero(alive & (np.arange(n) != i))
        joined = log_marginals_joined(counts, i, others, plain) + gammaln(sizes[i] + sizes[others])
        gain[i, others] = gain[others, i] = joined - alone[i] - alone[others] - np.log(concentration)

    for i in range(n - 1):
        refresh(i)
    while alive.sum() > 1:
        i, j = divmod(int(np.argmax(gain)), n)
        if gain[i, j] <= 0.0:
            break
        counts[i] += counts[j]
        sizes[i] += sizes[j]
        alone[i] = log_marginals(counts[i : i + 1], plain)[0] + gammaln(sizes[i])
        alive[j] = False
        gain[j, :] = gain[:, j] = -np.inf
        refresh(i)
    return Clusters(counts[alive], sizes[alive], -np.inf)


def from_sample(
    data: Data,
    tasks: NDArray[np.int64],
    product: DirichletProduct,
    concentration: float,
) -> Clusters:
    """Clusters of some tasks, found by hierarchical clustering."""
    counts = data.sample(tasks)
    largest = int(counts.sum(axis=1).max(initial=0)) * len(tasks) if counts.dtype.kind == "i" else 0
    tabled = dirichlet_product(product.prior, product.group_start, largest)
    partition = cluster_hierarchically(counts, tabled, concentration).partition()
    summed = np.zeros((int(partition.max()) + 1, counts.shape[1]))
    np.add.at(summed, partition, counts)
    return Clusters(summed, np.bincount(partition).astype(np.float64), -np.inf)


def seeded(data: Data, n_clusters: int, rng: np.random.Generator) -> Clusters:
    """More clusters than will be needed, each of a few tasks drawn at random, to be merged later."""
    seeds = data.sample(rng.integers(data.n_tasks, size=n_clusters * SEED_TASKS))
    counts = seeds.astype(np.float64).reshape(n_clusters, SEED_TASKS, -1).sum(axis=1)
    return Clusters(counts, np.full(n_clusters, float(SEED_TASKS)), -np.inf)


def start(
    data: Data,
    product: DirichletProduct,
    concentration: float,
    rng: np.random.Generator,
    progress: Callable[[int], None] | None = None,
) -> Clusters:
    """Clusters to start from: hierarchical clustering of a sample or, if its bound is higher, many seeds merged.

    Hierarchical clustering needs tasks with enough rows to be told apart one by one; many seeds, refined by sweeps over
    many tasks, find what only the many show. Both look at no more than ``START_TASKS`` tasks.
    """
    n = data.n_tasks
    if n > START_TASKS:
        data = CountsInMemory(data.sample(np.sort(rng.permutation(n)[:START_TASKS])))
    few = np.sort(rng.permutation(data.n_tasks)[:SAMPLE])
    candidates = [from_sample(data, few, product, concentration)]
    if data.n_tasks > SAMPLE:
        many = converge(
            data, seeded(data, MAX_SEEDS, rng), product, concentration, tolerance=ROUGHLY, progress=progress
        )
        candidates.append(merged(many, product, concentration))
    candidates = [converge(data, c, product, concentration, tolerance=ROUGHLY, progress=progress) for c in candidates]
    return max(candidates, key=lambda clusters: clusters.bound)


def fit_clusters(
    data: Data,
    product: DirichletProduct,
    concentration: float,
    rng: np.random.Generator,
    own_log_marginals: Callable[[], Floats],
    progress: Callable[[int], None] | None = None,
) -> Clusters:
    """Find clusters: a start from a sample, sweeps over all tasks, merges, and births from tasks better off alone.

    A round's births and merges are kept only if they raise the bound, so that the bound never falls. Every sweep costs
    O(tasks · cells · clusters); memory beside the data is O(clusters · cells) and a block of tasks.
    """
    n = data.n_tasks
    first = start(data, product, concentration, rng, progress)
    best = converge(data, first, product, concentration, progress=progress)
    alone = None
    for _ in range(MAX_ROUNDS):
        candidate = merged(best, product, concentration)
        if len(candidate.sizes) < len(best.sizes):
            candidate = converge(data, candidate, product, concentration, progress=progress)
            if candidate.bound > best.bound:
                best = candidate
        if alone is None:
            alone = own_log_marginals() + np.log(concentration) - np.log(n + concentration)
        log_norms = data.log_norms(*expectations(best, product, concentration))
        misfits = np.flatnonzero(alone > log_norms)
        if not len(misfits):
            break
        born = from_sample(data, np.sort(rng.permutation(misfits)[:SAMPLE]), product, concentration)
        candidate = Clusters(
            np.concatenate([best.counts, born.counts]), np.concatenate([best.sizes, born.sizes]), -np.inf
        )
        candidate = converge(data, candidate, product, concentration, tolerance=ROUGHLY, progress=progress)
        candidate = converge(data, merged(candidate, product, concentration), product, concentration, progress=progress)
        if candidate.bound <= best.bound + TOLERANCE * n:
            break
        best = candidate
    return best
