"""Randomised Bayesian hierarchical clustering (Heller and Ghahramani 2005b).

Roy and Kaelbling (2007) name it at the end of section 3.

A random subset of the tasks is clustered, all others are filtered down its tree, and the parts in which they arrive are
clustered by themselves, in O(U log U) instead of O(U²). Three things differ from that outline:

- Tasks are filtered down all splits of the subset's tree at once, to the blocks of its most probable partition, and so
  one subset serves many splits. A block that is still too large gets a subset of its own. One that its subset calls a
  single cluster, or that holds most of what was divided, is dealt out at random: more filtering would not divide it.
- A part knows only its own tasks, so only the surest merges are performed, a third of all at most and none that is less
  probable than not. The clusters left are divided anew, by another random subset, until they fit into one part: tasks
  whose kin came into other parts wait for them instead of joining strangers.
- When such rounds find little more to join, the clusters left are strangers to each other and all merges are taken.

A merge's odds depend on its two parts alone, so the odds that a part finds are those of the whole tree, whose sum stays
the sum over its partitions and a lower bound of the evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from joblib import Parallel
from numpy.typing import NDArray
from scipy.special import gammaln

from kinfolk.maths.arrays import wide_enough
from kinfolk.maths.compiled import compiled
from kinfolk.maths.dirichlet import DirichletProduct, log_marginals
from kinfolk.partition.bhc import Merges, join_greedily, log_marginals_of_sums
from kinfolk.partition.crp import canonical, log_normaliser
from kinfolk.partition.tree import TaskTree
from kinfolk.pieces import delayed

if TYPE_CHECKING:
    from collections.abc import Callable

# One cluster in three at most is joined to another in a round: with one in two, kinds of tasks that are hard to tell
# apart were mixed up. A round that joins fewer than one in four is a poor one; after three such all merges are taken.
_SURE_SHARE = 3
_POOR_SHARE = 4
_N_POOR_ROUNDS = 3
# Clusters filtered together: as many as one pass over the columns takes.
_N_TOGETHER = 1024


def cluster_in_random_parts(
    counts: NDArray[Any],
    product: DirichletProduct,
    concentration: float,
    seed: int,
    *,
    part_size: int = 1000,
    n_jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> TaskTree:
    """Build a tree over many tasks from greedy trees over parts of at most ``part_size`` clusters.

    O(U log U · part_size · cells) time at most and O(U · cells) memory for U tasks. Up to ``part_size`` tasks it is the
    greedy tree. The same seed gives the same tree, whatever ``n_jobs``, the number of parts clustered side by side.

    Examples
    --------
    >>> from kinfolk.maths.dirichlet import dirichlet_product
    >>> counts = np.array([[9, 1], [1, 9], [8, 2], [2, 8], [9, 0]], dtype=np.int32)
    >>> product = dirichlet_product(np.ones(2), np.array([0, 2]), 50)
    >>> cluster_in_random_parts(counts, product, 1.0, seed=0, part_size=3).partition().tolist()
    [0, 1, 0, 1, 0]
    """
    if part_size < 2:
        raise ValueError(f"part_size={part_size!r}: a part needs room for at least two clusters")
    n = len(counts)
    rng = np.random.default_rng(seed)
    setting = _Setting(product, concentration, part_size, Parallel(n_jobs=n_jobs, prefer="threads"))
    clusters = _Clusters(
        wide_enough(counts),
        np.ones(n, dtype=np.int64),
        log_marginals(counts, product) + np.log(concentration),
        np.arange(n),
    )
    children, log_odds = [np.empty((0, 2), dtype=np.int64)], [np.empty(0)]
    n_poor_rounds = 0
    while len(clusters.node) > 1:
        parts = _divide(clusters, np.arange(len(clusters.node)), setting, rng)
        merges = _join_each(clusters, parts, setting)
        surety = _lowest_below(merges.children, merges.log_odds, len(clusters.node))
        n_sure = len(surety)
        if len(parts) > 1 and n_poor_rounds < _N_POOR_ROUNDS:
            n_sure = min(len(clusters.node) // _SURE_SHARE, int((surety > 0).sum()))
            n_poor_rounds += n_sure * _POOR_SHARE < len(clusters.node)
        kept = np.zeros(len(surety), dtype=bool)
        # No merge is surer than those below it, which stand before it: of equals they come first.
        kept[np.argsort(-surety, kind="stable")[:n_sure]] = True
        names = np.concatenate([clusters.node, 2 * n - len(clusters.node) + np.cumsum(kept) - 1])
        children.append(names[merges.children[kept]])
        log_odds.append(merges.log_odds[kept])
        clusters = _perform(clusters, merges, kept, names)
        if progress is not None:
            progress(n_sure)
    root = float(clusters.log_sum[0]) + log_normaliser(n, concentration)
    return TaskTree(np.concatenate(children), np.concatenate(log_odds), root)


class _Setting(NamedTuple):
    """What stays the same all along."""

    product: DirichletProduct
    concentration: float
    part_size: int
    side_by_side: Parallel


class _Clusters(NamedTuple):
    """The clusters left to join: counts, number of tasks and t of each, and its node in the tree."""

    counts: NDArray[Any]
    size: NDArray[np.int64]
    log_sum: NDArray[np.float64]
    node: NDArray[np.int64]


def _some(clusters: _Clusters, part: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.float64]]:
    """Counts, sizes and sums of some of the clusters."""
    return clusters.counts[part], clusters.size[part], clusters.log_sum[part]


def _join_each(clusters: _Clusters, parts: list[NDArray[np.int64]], setting: _Setting) -> Merges:
    """The greedy trees over all parts, in one numbering: leaves are the clusters, merge k of n makes node n + k."""
    trees = setting.side_by_side(
        delayed(join_greedily)(*_some(clusters, part), setting.product, setting.concentration) for part in parts
    )
    children, made = [], len(clusters.node)
    for part, tree in zip(parts, trees, strict=True):
        names = np.concatenate([part, made + np.arange(len(tree.children))])
        children.append(names[tree.children])
        made += len(tree.children)
    return Merges(
        np.concatenate(children),
        np.concatenate([tree.log_odds for tree in trees]),
        np.concatenate([tree.log_sums for tree in trees]),
    )


def _perform(clusters: _Clusters, merges: Merges, kept: NDArray[np.bool_], names: NDArray[np.int64]) -> _Clusters:
    """The clusters that are left when some merges, and with each those below it, are performed."""
    n = len(clusters.node)
    left, cluster = np.unique(_highest_kept(merges.children, kept, n), return_inverse=True)
    return _Clusters(
        _pooled(clusters.counts, cluster, len(left)),
        np.bincount(cluster, weights=clusters.size).astype(np.int64),
        np.concatenate([clusters.log_sum, merges.log_sums])[left],
        names[left],
    )


def _divide(
    clusters: _Clusters, among: NDArray[np.int64], setting: _Setting, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Divide some of the clusters into parts that are small enough; those alike come into one part or the next."""
    n, room = len(among), setting.part_size
    if n <= room:
        return [among]
    chosen = np.sort(rng.choice(n, room, replace=False))
    subset = among[chosen]
    tree = join_greedily(*_some(clusters, subset), setting.product, setting.concentration)
    block = _blocks_from_left_to_right(tree)
    n_blocks = int(block.max()) + 1
    if n_blocks == 1:
        return _deal(among, room, rng)
    arrives = np.full(n, -1)
    arrives[chosen] = block
    arrives[arrives < 0] = _filter(
        clusters,
        among[arrives < 0],
        _pooled(clusters.counts[subset], block, n_blocks),
        np.bincount(block, clusters.size[subset]).astype(np.int64),
        setting,
    )
    parts: list[NDArray[np.int64]] = []
    for b in range(n_blocks):
        part = among[arrives == b]
        parts += _deal(part, room, rng) if len(part) > max(n // 2, room) else _divide(clusters, part, setting, rng)
    return _pack(parts, room)


def _blocks_from_left_to_right(merges: Merges) -> NDArray[np.int64]:
    """The blocks of the tree's most probable partition, numbered as they stand below the root."""
    tree = TaskTree(merges.children, merges.log_odds, 0.0)
    leaves, waiting = [], [2 * tree.n_tasks - 2]
    while waiting:
        node = waiting.pop()
        if node < tree.n_tasks:
            leaves.append(node)
        else:
            waiting.extend(tree.children[node - tree.n_tasks].tolist())
    block = np.empty(tree.n_tasks, dtype=np.int64)
    block[leaves] = canonical(tree.partition()[leaves])
    return block


def _deal(among: NDArray[np.int64], room: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """Parts of about equal size, at random."""
    return [np.sort(part) for part in np.array_split(rng.permutation(among), -(-len(among) // room))]


def _pack(parts: list[NDArray[np.int64]], room: int) -> list[NDArray[np.int64]]:
    """Put neighbours together as long as there is room."""
    packed = parts[:1]
    for part in parts[1:]:
        if len(packed[-1]) + len(part) <= room:
            packed[-1] = np.concatenate([packed[-1], part])
        else:
            packed.append(part)
    return packed


def _filter(
    clusters: _Clusters,
    among: NDArray[np.int64],
    block_counts: NDArray[Any],
    block_size: NDArray[np.int64],
    setting: _Setting,
) -> NDArray[np.int64]:
    """The block that each cluster would most probably join, were the blocks tables of a Chinese restaurant.

    A cluster of s tasks joins a block of n with weight Γ(n + s)/Γ(n), times its probability given the block's data.
    """
    log_gamma = gammaln(np.arange(clusters.size.sum() + 1).clip(min=1))
    alone = log_marginals(block_counts, setting.product) + log_gamma[block_size]
    groups = (among[start : start + _N_TOGETHER] for start in range(0, len(among), _N_TOGETHER))
    arrives = setting.side_by_side(
        delayed(_most_probable)(
            block_counts,
            log_gamma[block_size[:, None] + clusters.size[group]] - alone[:, None],
            clusters.counts[group],
            setting.product,
        )
        for group in groups
    )
    return np.concatenate(arrives)


def _most_probable(
    block_counts: NDArray[Any], log_weight: NDArray[np.float64], counts: NDArray[Any], product: DirichletProduct
) -> NDArray[np.int64]:
    """The block for which weight (blocks, clusters) times the marginal of both together is highest."""
    return np.asarray((log_marginals_of_sums(block_counts, counts, product) + log_weight).argmax(axis=0))


@compiled
def _lowest_below(children, log_odds, n):  # type: ignore[no-untyped-def]
    """The lowest odds of each merge of n clusters and all merges below it."""
    lowest = log_odds.copy()
    for k in range(len(children)):
        for child in children[k]:
            if child >= n:
                lowest[k] = min(lowest[k], lowest[child - n])
    return lowest


@compiled
def _highest_kept(children, kept, n):  # type: ignore[no-untyped-def]
    """For each of n clusters the highest node that it comes into when some merges are performed."""
    highest = np.arange(n + len(children))
    for k in range(len(children) - 1, -1, -1):
        if kept[k]:
            for child in children[k]:
                highest[child] = highest[n + k]
    return highest[:n]


@compiled
def _pooled(counts, block, n_blocks):  # type: ignore[no-untyped-def]
    """Counts of each block, added up."""
    out = np.zeros((n_blocks, counts.shape[1]), dtype=counts.dtype)
    for u in range(len(counts)):
        for c in range(counts.shape[1]):
            out[block[u], c] += counts[u, c]
    return out
