"""The partitions next to a partition of tasks, each with its key and its prior times marginal, compiled.

Next to it are those in which one task sits elsewhere, and those in which two clusters are one. A cluster has a name,
the exclusive or of random numbers of its tasks, and a partition a key, the sum of hashes of its clusters' names: both
follow a move in constant time. Where there is a tree, partitions made of its nodes alone are passed over.

Log joints are without the normaliser of the Chinese restaurant process: a cluster of n tasks adds log a + logΓ(n) and
its log marginal.
"""

from __future__ import annotations

from math import lgamma
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.compiled import compiled
from kinfolk.maths.dirichlet import log_marginal_of_sum
from kinfolk.maths.draws import draw_index
from kinfolk.partition.gibbs import n_places, sit_down, stand_up

Keys = NDArray[np.uint64]


class Names(NamedTuple):
    """A random number for every task, what each cluster is called by them (zero where nobody sits), and the tree's
    nodes, sorted; there are none where there is no tree.
    """

    task: Keys
    cluster: Keys
    nodes: Keys


class Neighbours(NamedTuple):
    """Room for the partitions that are met: their keys and log joints."""

    keys: Keys
    log_joint: NDArray[np.float64]


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
def _whole(seats, names):  # type: ignore[no-untyped-def]
    """Key, log joint and number of blocks outside the tree of a partition."""
    key, log_joint, n_outside = np.uint64(0), 0.0, 0
    for k in range(len(seats.cluster_size)):
        if seats.cluster_size[k] > 0:
            key += _hash(names.cluster[k])
            log_joint += _term(seats.cluster_size[k], seats.cluster_log_marginal[k], seats.log_concentration)
            n_outside += _outside(names.cluster[k], names.nodes)
    return key, log_joint, n_outside


@compiled
def weigh_seats(seats, names, uniforms, greedy, first, last, met):  # type: ignore[no-untyped-def]
    """Reseat tasks first … last − 1 one after another; note the partitions that each choice was between."""
    # By names of their own, because taking an array out of a tuple in a loop counts a reference each time.
    counts, cluster_counts, product = seats.counts, seats.cluster_counts, seats.product
    cluster_size, cluster_log_marginal = seats.cluster_size, seats.cluster_log_marginal
    block_names, nodes, log_concentration = names.cluster, names.nodes, seats.log_concentration
    n, cells = counts.shape
    nothing = np.zeros(cells, dtype=counts.dtype)
    joined = np.empty(n + 1)
    scores = np.empty(n + 1)
    noted, in_use = 0, n_places(seats)
    key, log_joint, n_outside = _whole(seats, names)
    for u in range(first, last):
        k, name = seats.seat[u], names.task[u]
        key -= _hash(block_names[k])
        log_joint -= _term(cluster_size[k], cluster_log_marginal[k], log_concentration)
        n_outside -= _outside(block_names[k], nodes)
        stand_up(seats, u, nothing)
        block_names[k] ^= name
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
                joined[k] = seats.task_log_marginal[u]
            else:
                continue
            scores[k] = _term(cluster_size[k] + 1, joined[k], log_concentration)
            scores[k] -= _term(cluster_size[k], cluster_log_marginal[k], log_concentration)
            if best < 0 or scores[k] > scores[best]:
                best = k
            outside = n_outside - _outside(block_names[k], nodes) + _outside(block_names[k] ^ name, nodes)
            if outside > 0 or len(nodes) == 0:
                met.keys[noted] = key - _hash(block_names[k]) + _hash(block_names[k] ^ name)
                met.log_joint[noted] = log_joint + scores[k]
                noted += 1
        chosen = best if greedy else draw_index(scores, in_use + 1, uniforms[u])
        key -= _hash(block_names[chosen])
        n_outside -= _outside(block_names[chosen], nodes)
        block_names[chosen] ^= name
        key += _hash(block_names[chosen])
        n_outside += _outside(block_names[chosen], nodes)
        log_joint += scores[chosen]
        in_use = max(in_use, chosen + 1)
        sit_down(seats, u, chosen, joined[chosen])
    return noted


@compiled
def weigh_mergers(seats, names, in_use, i, met):  # type: ignore[no-untyped-def]
    """Note the partitions in which the i-th cluster in use joins one of those before it."""
    cluster_counts, cluster_size, block_names, nodes = (
        seats.cluster_counts,
        seats.cluster_size,
        names.cluster,
        names.nodes,
    )
    key, log_joint, n_outside = _whole(seats, names)
    k, noted = in_use[i], 0
    own = _term(cluster_size[k], seats.cluster_log_marginal[k], seats.log_concentration)
    for j in range(i):
        other = in_use[j]
        name = block_names[k] ^ block_names[other]
        outside = n_outside - _outside(block_names[k], nodes) - _outside(block_names[other], nodes)
        if outside + _outside(name, nodes) > 0 or len(nodes) == 0:
            both = log_marginal_of_sum(cluster_counts[k], cluster_counts[other], seats.product)
            gain = _term(cluster_size[k] + cluster_size[other], both, seats.log_concentration) - own
            gain -= _term(cluster_size[other], seats.cluster_log_marginal[other], seats.log_concentration)
            met.keys[noted] = key - _hash(block_names[k]) - _hash(block_names[other]) + _hash(name)
            met.log_joint[noted] = log_joint + gain
            noted += 1
    return noted
