"""A lower bound of the evidence by searching for good partitions (thesis section 4.3, eq. 4.11–4.15).

The evidence is a sum over all partitions z of tasks,

    p(D) = Σ_z p(z) p(D | z) ≥ Σ_{z visited} p(z) p(D | z).

The thesis takes the best partition of a stochastic search, and the least prior of any partition in place of its own (in
4.9–4.10, where Γ(α)/Γ(20 + α) should be Γ(1 + α)/Γ(21 + α)). Here every partition counts, with its own prior, that the
search only weighs: a step of Gibbs sampling compares all seats that a task could take, and each is a partition. Each is
counted once; all that a tree of Bayesian hierarchical clustering allows are counted by its own sum, in closed form.

A partition is known by a key: the sum over its blocks of a hash of the tasks in them. Were two partitions to have the
same key one of them would be left out, which leaves the sum a lower bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from kinfolk.evidence import Evidence
from kinfolk.maths.arrays import Floats
from kinfolk.maths.dirichlet import DirichletProduct
from kinfolk.partition.crp import canonical, log_block_weight, log_normaliser
from kinfolk.partition.gibbs import Seating
from kinfolk.partition.neighbours import Keys, Names, Neighbours, weigh_mergers, weigh_seats
from kinfolk.partition.split_merge import split_and_merge
from kinfolk.partition.tree import TaskTree

# Partitions this far below the best one on the log scale are left out: millions of them would not matter.
_NEGLIGIBLE = 40.0
# Candidates held at a time while a sweep goes on.
_MOST_AT_ONCE = 1 << 18
_MOST_GREEDY_SWEEPS = 50


class Found(NamedTuple):
    """What a search leaves: the bound, the best partition that was visited, and how many were summed."""

    evidence: Evidence
    partition: NDArray[np.int64]
    n_partitions: int


def search_partitions(
    counts: NDArray[np.generic],
    product: DirichletProduct,
    concentration: float,
    *,
    tree: TaskTree | None = None,
    starts: Sequence[NDArray[np.int64]] | None = None,
    n_sweeps: int = 100,
    seed: int = 0,
) -> Found:
    """Lower bound of the log evidence of tasks' counts: the sum over the partitions that a search met.

    O(sweeps · tasks · clusters · cells).

    Parameters
    ----------
    counts : array of shape (n_tasks, n_cells)
        Counts of every task.
    product : DirichletProduct
        Prior of the cells.
    concentration : float
        That of the Chinese restaurant process.
    tree : TaskTree, optional
        A tree of hierarchical clustering over the same tasks; its bound is then a part of this one, which is never
        below it.
    starts : sequence of partitions, optional
        Where to start. By default the tree's best partition, if there is a tree, all tasks together, and each alone.
    n_sweeps : int
        Rounds of single-task moves, splits and merges from all starts together, after the greedy ones.
    seed : int
        Seed of the search.

    Returns
    -------
    Found
        The bound, and the best partition that was found.

    Examples
    --------
    >>> from kinfolk.maths.dirichlet import dirichlet_product
    >>> from kinfolk.partition.exact import exact_partitions
    >>> counts = np.array([[9, 1], [1, 9], [8, 2]], dtype=np.int32)
    >>> product = dirichlet_product(np.ones(2), np.array([0, 2]), 30)
    >>> round(search_partitions(counts, product, 1.0).evidence.value, 6)
    -16.204126
    >>> round(exact_partitions(counts, product, 1.0).log_evidence, 6)
    -16.204126
    """
    n_tasks = len(counts)
    rng = np.random.default_rng(seed)
    names = rng.integers(1, np.iinfo(np.uint64).max, size=n_tasks, dtype=np.uint64)
    walk = _Walk(Seating(counts, product, concentration), names, _node_names(tree, names))
    if starts is None:
        starts = [np.zeros(n_tasks, dtype=np.int64), np.arange(n_tasks)]
        starts = starts if tree is None else [tree.partition(), *starts]
    each = -(-n_sweeps // max(len(starts), 1))
    for start in starts:
        walk.begin(canonical(np.asarray(start, dtype=np.int64)))
        for _ in range(_MOST_GREEDY_SWEEPS):
            before = walk.log_joint
            walk.sweep(np.zeros(n_tasks), greedy=True)
            if walk.log_joint <= before + 1e-9:
                break
        for _ in range(each):
            walk.sweep(rng.random(n_tasks), greedy=False)
            split_and_merge(walk.seating, rng, n_moves=n_tasks)
    log_sum = walk.visited.log_sum() + log_normaliser(n_tasks, concentration)
    if tree is not None:
        log_sum = float(np.logaddexp(log_sum, tree.log_tree_sum))
    return Found(Evidence(log_sum, "lower bound"), canonical(walk.best), walk.visited.n_partitions)


class _Visited:
    """Partitions met so far, each once, with the logs of their unnormalised prior times marginal."""

    def __init__(self) -> None:
        self.highest = -np.inf
        self._keys: Keys = np.empty(0, dtype=np.uint64)
        self._log_joint: Floats = np.empty(0)
        self._pending: list[tuple[Keys, Floats]] = []
        self._n_pending = 0

    def add(self, keys: Keys, log_joint: Floats) -> None:
        """Count partitions, unless they were counted before or cannot matter."""
        kept = log_joint > self.highest - _NEGLIGIBLE
        if kept.any():
            self.highest = max(self.highest, float(log_joint.max()))
            self._pending.append((keys[kept], log_joint[kept]))
            self._n_pending += int(kept.sum())
            if self._n_pending > max(len(self._keys), _MOST_AT_ONCE):
                self._settle()

    def _settle(self) -> None:
        keys = np.concatenate([self._keys, *(keys for keys, _ in self._pending)])
        log_joint = np.concatenate([self._log_joint, *(part for _, part in self._pending)])
        near = log_joint > self.highest - _NEGLIGIBLE
        self._keys, first = np.unique(keys[near], return_index=True)
        self._log_joint = log_joint[near][first]
        self._pending, self._n_pending = [], 0

    @property
    def n_partitions(self) -> int:
        """Number of partitions."""
        self._settle()
        return len(self._keys)

    def log_sum(self) -> float:
        """Log of the sum over all of them."""
        self._settle()
        return float(logsumexp(self._log_joint)) if len(self._keys) else -np.inf


class _Walk:
    """A partition on its way, which notes all partitions that it could become.

    ``names`` has a random number for every task; a block is called by the exclusive or of those of its tasks. Blocks
    called as one of ``nodes`` belong to a tree, and partitions of such blocks alone are left to it.
    """

    def __init__(self, seating: Seating, names: Keys, nodes: Keys) -> None:
        self.seating, self.names, self.nodes = seating, names, nodes
        self.visited = _Visited()
        self.best, self.highest = np.zeros(len(names), dtype=np.int64), -np.inf

    @property
    def log_joint(self) -> float:
        """Log of the prior, without its normaliser, times the marginal."""
        sizes = self.seating.cluster_size[self.seating.cluster_size > 0]
        return self.seating.log_likelihood + float(log_block_weight(sizes, self.seating.concentration).sum())

    def begin(self, partition: NDArray[np.int64]) -> None:
        """Go on from a partition."""
        self.seating.clear()
        self.seating.place(partition)

    def sweep(self, uniforms: Floats, greedy: bool) -> None:
        """Weigh every seat of every task in turn, and every merger of two clusters at the end."""
        seating = self.seating
        n_tasks = len(self.names)
        at_once = max(1, _MOST_AT_ONCE // (n_tasks + 1))
        names = Names(self.names, _block_names(seating.seat, self.names), self.nodes)
        for first in range(0, n_tasks, at_once):
            last = min(first + at_once, n_tasks)
            met = _room((last - first) * (n_tasks + 1))
            n = weigh_seats(seating.seats, names, uniforms, greedy, first, last, met)
            self.visited.add(met.keys[:n], met.log_joint[:n])
        if self.log_joint > self.highest:
            self.best, self.highest = seating.seat.copy(), self.log_joint
        in_use = np.flatnonzero(seating.cluster_size)
        met = _room(len(in_use))
        for i in range(1, len(in_use)):
            n = weigh_mergers(seating.seats, names, in_use, i, met)
            self.visited.add(met.keys[:n], met.log_joint[:n])


def _room(n: int) -> Neighbours:
    return Neighbours(np.empty(n, dtype=np.uint64), np.empty(n))


def _node_names(tree: TaskTree | None, names: Keys) -> Keys:
    """What the blocks that are nodes of a tree are called, sorted."""
    if tree is None:
        return names[:0]
    nodes = np.concatenate([names, np.empty(len(names) - 1, dtype=np.uint64)])
    for k, (left, right) in enumerate(tree.children):
        nodes[len(names) + k] = nodes[left] ^ nodes[right]
    return np.sort(nodes)


def _block_names(seat: NDArray[np.int64], names: Keys) -> Keys:
    """What the clusters are called; zero where nobody sits."""
    block_names = np.zeros(len(seat), dtype=np.uint64)
    np.bitwise_xor.at(block_names, seat, names)
    return block_names
