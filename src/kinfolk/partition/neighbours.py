"""The partitions next to a partition of tasks, each with its key and its prior times marginal, compiled.

Next to it are those in which one task sits elsewhere, and those in which two clusters are one. A cluster has a name,
the exclusive or of random numbers of its tasks, and a partition a key, the sum of hashes of its clusters' names: both
follow a move in constant time. Where names of the nodes of a tree are given (``has_tree``, ``nodes`` being sorted),
partitions made of nodes alone are passed over.

Log joints are without the normaliser of the Chinese restaurant process: a cluster of n tasks adds log a + logΓ(n) and
its log marginal.
"""

from __future__ import annotations

from math import lgamma

import numpy as np

from kinfolk.maths.compiled import compiled
from kinfolk.maths.dirichlet import log_marginal_of_sum


@compiled
def _hash(name):  # type: ignore[no-untyped-def]
    """A number that looks random, zero for the empty block (the finaliser of SplitMix64)."""
    mixed = (name ^ (name >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@compiled
def _outside(name, nodes):  # type: ignore[no-untyped-def]
    """1 if a block is no node of the tree; the empty block is never outside."""
    if name == np.uint64(0):
        return 0
    place = np.searchsorted(nodes, name)
    return 0 if place < len(nodes) and nodes[place] == name else 1


@compiled
def _term(size, log_marginal, log_concentration):  # type: ignore[no-untyped-def]
    """What a block adds to the log joint."""
    return log_concentration + lgamma(size) + log_marginal if size > 0 else 0.0


@compiled
def _whole(size, log_marginal, log_concentration, block_names, nodes):  # type: ignore[no-untyped-def]
    """Key, log joint and number of blocks outside the tree of a partition."""
    key, log_joint, n_outside = np.uint64(0), 0.0, 0
    for k in range(len(size)):
        if size[k] > 0:
            key += _hash(block_names[k])
            log_joint += _term(size[k], log_marginal[k], log_concentration)
            n_outside += _outside(block_names[k], nodes)
    return key, log_joint, n_outside


@compiled
def weigh_seats(  # type: ignore[no-untyped-def]
    seat,
    cluster_counts,
    cluster_size,
    cluster_log_marginal,
    counts,
    task_log_marginal,
    product,
    log_concentration,
    names,
    block_names,
    nodes,
    has_tree,
    uniforms,
    greedy,
    first,
    last,
    keys,
    log_joints,
):
    """Reseat tasks first … last − 1 one after another; note the partitions that each choice was between."""
    n, cells = counts.shape
    nothing = np.zeros(cells, dtype=counts.dtype)
    joined = np.empty(n + 1)
    scores = np.empty(n + 1)
    noted, in_use = 0, 0
    for k in range(n):
        if cluster_size[k] > 0:
            in_use = k + 1
    key, log_joint, n_outside = _whole(cluster_size, cluster_log_marginal, log_concentration, block_names, nodes)
    for u in range(first, last):
        k = seat[u]
        key -= _hash(block_names[k])
        log_joint -= _term(cluster_size[k], cluster_log_marginal[k], log_concentration)
        n_outside -= _outside(block_names[k], nodes)
        cluster_size[k] -= 1
        block_names[k] ^= names[u]
        for c in range(cells):
            cluster_counts[k, c] -= counts[u, c]
        if cluster_size[k] > 0:
            cluster_log_marginal[k] = log_marginal_of_sum(cluster_counts[k], nothing, product)
        else:
            # Fractional weights may leave rounding dust in an empty cluster.
            cluster_counts[k, :] = 0
            cluster_log_marginal[k] = 0.0
        key += _hash(block_names[k])
        log_joint += _term(cluster_size[k], cluster_log_marginal[k], log_concentration)
        n_outside += _outside(block_names[k], nodes)
        free, best = -1, -1
        for k in range(in_use + 1):
            scores[k] = -np.inf
            if k < in_use and cluster_size[k] > 0:
                joined[k] = log_marginal_of_sum(cluster_counts[k], counts[u], product)
            elif free < 0:
                free = k
                joined[k] = task_log_marginal[u]
            else:
                continue
            scores[k] = _term(cluster_size[k] + 1, joined[k], log_concentration)
            scores[k] -= _term(cluster_size[k], cluster_log_marginal[k], log_concentration)
            if best < 0 or scores[k] > scores[best]:
                best = k
            outside = n_outside - _outside(block_names[k], nodes) + _outside(block_names[k] ^ names[u], nodes)
            if outside > 0 or not has_tree:
                keys[noted] = key - _hash(block_names[k]) + _hash(block_names[k] ^ names[u])
                log_joints[noted] = log_joint + scores[k]
                noted += 1
        chosen = best
        if not greedy:
            total = 0.0
            for k in range(in_use + 1):
                total += np.exp(scores[k] - scores[best])
            left = uniforms[u] * total
            for k in range(in_use + 1):
                if scores[k] > -np.inf:
                    chosen = k
                    left -= np.exp(scores[k] - scores[best])
                    if left < 0.0:
                        break
        key -= _hash(block_names[chosen])
        n_outside -= _outside(block_names[chosen], nodes)
        block_names[chosen] ^= names[u]
        key += _hash(block_names[chosen])
        n_outside += _outside(block_names[chosen], nodes)
        log_joint += scores[chosen]
        seat[u] = chosen
        in_use = max(in_use, chosen + 1)
        cluster_size[chosen] += 1
        for c in range(cells):
            cluster_counts[chosen, c] += counts[u, c]
        cluster_log_marginal[chosen] = joined[chosen]
    return noted


@compiled
def weigh_mergers(  # type: ignore[no-untyped-def]
    in_use,
    i,
    cluster_counts,
    cluster_size,
    cluster_log_marginal,
    product,
    log_concentration,
    block_names,
    nodes,
    has_tree,
    log_joint,
    keys,
    log_joints,
):
    """Note the partitions in which the i-th cluster in use joins one of those before it."""
    key, _, n_outside = _whole(cluster_size, cluster_log_marginal, log_concentration, block_names, nodes)
    k, noted = in_use[i], 0
    own = _term(cluster_size[k], cluster_log_marginal[k], log_concentration)
    for j in range(i):
        other = in_use[j]
        name = block_names[k] ^ block_names[other]
        outside = n_outside - _outside(block_names[k], nodes) - _outside(block_names[other], nodes)
        if outside + _outside(name, nodes) > 0 or not has_tree:
            both = log_marginal_of_sum(cluster_counts[k], cluster_counts[other], product)
            gain = _term(cluster_size[k] + cluster_size[other], both, log_concentration) - own
            gain -= _term(cluster_size[other], cluster_log_marginal[other], log_concentration)
            keys[noted] = key - _hash(block_names[k]) - _hash(block_names[other]) + _hash(name)
            log_joints[noted] = log_joint + gain
            noted += 1
    return noted
