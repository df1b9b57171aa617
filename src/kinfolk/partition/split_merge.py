"""Moves that split a cluster of tasks or merge two, beside single-site Gibbs sampling (Dahl 2005).

Two tasks are drawn as anchors. If they sit together, their cluster is split: each anchor gets a part, and the others,
in random order, join one of the two with probabilities proportional to

    n_c · p(D_u | D_c),

n_c and D_c being the number and the data of the tasks that the part has so far. If they sit apart, their clusters are
merged. With q the probability of allocating tasks as the split has them, a merge is accepted with probability

    min(1, q · Γ(n_i + n_j) p(D_i ∪ D_j) / (a Γ(n_i) Γ(n_j) p(D_i) p(D_j))),

and a split with that of the inverse. As q is at most one, most merges are turned down before q is computed.

D. B. Dahl, "Sequentially-allocated merge-split sampler for conjugate and nonconjugate Dirichlet process mixture
models", 2005. Scans of restricted Gibbs sampling before the allocation, as S. Jain and R. M. Neal have them (J. Comput.
Graph. Statist. 13, 2004), were tried and gained nothing for their time.
"""

from __future__ import annotations

from math import lgamma

import numpy as np

from kinfolk.maths.compiled import compiled
from kinfolk.maths.dirichlet import log_marginal_of_sum
from kinfolk.partition.gibbs import Seating

# However few tasks there are, so many moves are tried.
_FEWEST_MOVES = 5


def split_and_merge(seating: Seating, rng: np.random.Generator, n_moves: int | None = None, temper: float = 1.0) -> int:
    """Try splits and merges one after another; returns how many were accepted.

    Every task must have a seat. ``temper`` is the power on the likelihood. By default moves are tried for half as many
    pairs of anchors as there are tasks, and one that concerns s of U tasks is given up, whatever it is, with a
    probability that lets 2(U/s)² of them pass: s is the same before and after, so that nothing is lost but time, and
    splits cost O(tasks · cells) together, however large the clusters are. A merge that is out of the question costs
    O(cells).

    Examples
    --------
    Two kinds of tasks begin as one cluster.

    >>> from kinfolk.maths.dirichlet import dirichlet_product
    >>> counts = np.repeat(np.array([[9, 1], [1, 9]], dtype=np.int32), 10, axis=0)
    >>> seating = Seating(counts, dirichlet_product(np.ones(2), np.array([0, 2]), 200), 1.0)
    >>> seating.place(np.zeros(20, dtype=np.int64))
    >>> split_and_merge(seating, np.random.default_rng(1), n_moves=20) > 0
    True
    >>> bool(seating.seat[0] == seating.seat[19])
    False
    """
    n_tasks = len(seating.seat)
    if n_tasks < 2:
        return 0
    tried = max(_FEWEST_MOVES, n_tasks // 2) if n_moves is None else n_moves
    return int(_move(seating.seats, temper, tried, rng))


@compiled
def _move(seats, temper, n_moves, rng):  # type: ignore[no-untyped-def]
    """Try moves, and count those that were accepted."""
    # By names of their own, because taking an array out of a tuple in a loop counts a reference each time.
    seat, counts, product, log_concentration = seats.seat, seats.counts, seats.product, seats.log_concentration
    cluster_counts, cluster_size = seats.cluster_counts, seats.cluster_size
    cluster_log_marginal = seats.cluster_log_marginal
    n, cells = counts.shape
    nothing = np.zeros(cells, dtype=counts.dtype)
    members = np.empty(n, dtype=np.int64)
    side = np.empty(n, dtype=np.int64)
    part = np.zeros((2, cells), dtype=counts.dtype)
    part_size = np.zeros(2, dtype=np.int64)
    part_log_marginal = np.zeros(2)
    n_accepted = 0
    for _ in range(n_moves):
        first = min(int(rng.random() * n), n - 1)
        second = min(int(rng.random() * (n - 1)), n - 2)
        if second >= first:
            second += 1
        log_threshold = np.log(1.0 - rng.random())
        k, other = seat[first], seat[second]
        splits = k == other
        n_both = cluster_size[k] if splits else cluster_size[k] + cluster_size[other]
        if rng.random() * n_moves * n_both * n_both >= 2.0 * n * n:
            continue
        log_gain, merged_log_marginal = 0.0, 0.0
        if not splits:
            merged_log_marginal = log_marginal_of_sum(cluster_counts[k], cluster_counts[other], product)
            log_gain = temper * (merged_log_marginal - cluster_log_marginal[k] - cluster_log_marginal[other])
            log_gain += lgamma(n_both) - lgamma(cluster_size[k]) - lgamma(cluster_size[other]) - log_concentration
            if log_gain <= log_threshold:
                continue
        n_members = 0
        for u in range(n):
            if (seat[u] == k or seat[u] == other) and u != first and u != second:
                members[n_members] = u
                n_members += 1
        for i in range(n_members - 1, 0, -1):
            j = min(int(rng.random() * (i + 1)), i)
            members[i], members[j] = members[j], members[i]
        for s in range(2):
            anchor = first if s == 0 else second
            part_size[s] = 1
            part_log_marginal[s] = log_marginal_of_sum(counts[anchor], nothing, product)
            for c in range(cells):
                part[s, c] = counts[anchor, c]
        log_q = 0.0
        for i in range(n_members):
            u = members[i]
            joined_0 = log_marginal_of_sum(part[0], counts[u], product)
            joined_1 = log_marginal_of_sum(part[1], counts[u], product)
            log_odds = temper * (joined_0 - part_log_marginal[0] - joined_1 + part_log_marginal[1])
            log_odds += np.log(part_size[0] / part_size[1])
            if splits:
                s = 0 if rng.random() * (1.0 + np.exp(-abs(log_odds))) < np.exp(min(log_odds, 0.0)) else 1
            else:
                s = 0 if seat[u] == k else 1
            log_q += min(log_odds if s == 0 else -log_odds, 0.0) - np.log1p(np.exp(-abs(log_odds)))
            side[i] = s
            part_size[s] += 1
            part_log_marginal[s] = joined_0 if s == 0 else joined_1
            for c in range(cells):
                part[s, c] += counts[u, c]
        if splits:
            log_gain = temper * (part_log_marginal[0] + part_log_marginal[1] - cluster_log_marginal[k])
            log_gain += log_concentration + lgamma(part_size[0]) + lgamma(part_size[1]) - lgamma(n_both)
            if log_gain - log_q <= log_threshold:
                continue
            other = 0
            while cluster_size[other] > 0:
                other += 1
            for s in range(2):
                to = k if s == 0 else other
                for c in range(cells):
                    cluster_counts[to, c] = part[s, c]
                cluster_size[to] = part_size[s]
                cluster_log_marginal[to] = part_log_marginal[s]
            seat[second] = other
            for i in range(n_members):
                seat[members[i]] = k if side[i] == 0 else other
        else:
            if log_gain + log_q <= log_threshold:
                continue
            for c in range(cells):
                cluster_counts[k, c] += cluster_counts[other, c]
                cluster_counts[other, c] = 0
            cluster_size[k] = n_both
            cluster_size[other] = 0
            cluster_log_marginal[k] = merged_log_marginal
            cluster_log_marginal[other] = 0.0
            seat[second] = k
            for i in range(n_members):
                seat[members[i]] = k
        n_accepted += 1
    return n_accepted
