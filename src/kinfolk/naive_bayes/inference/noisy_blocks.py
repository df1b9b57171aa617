"""The mixture that draws of clusters of noisy copies leave behind (see ``noisy_sampling`` for the model and the votes).

Within a draw, task u of cluster c has the rates

    (n_u + K m_c) / (N_u + K),        m_c = (β + t_c) / (B + T_c),

n_u and N_u being its own counts and their sum, t_c and T_c the votes of the cluster's tasks, β and B the prior's
pseudo-counts. These are the rates of a block with counts n_u (B + T_c) / K + t_c under the same prior. Features are
independent given the partition, so that draws of the same partition share blocks that hold averages. A new task may
join any cluster, and then has its prototype m_c, or start one.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kinfolk.maths.arrays import Floats
from kinfolk.naive_bayes.model.mixture import Mixture
from kinfolk.naive_bayes.model.values import Blocks, HyperParameters, RateSources, TrainingData, log_feature_rates
from kinfolk.partition.crp import joining_weights
from kinfolk.tasks.statistics import Layout

# A product of K and a share of the prototype may be too small for a float; its logarithm is still wanted.
_TINY = 1e-300
# Below this strength the prototype's part in the counts behind a rate cannot be told from none.
_WEAKEST = 1e-9


class NoisyDraw(NamedTuple):
    """One draw: canonical seats (tasks,), strengths (groups,), votes (tasks, cells) and the concentration."""

    seat: NDArray[np.int64]
    strength: Floats
    votes: NDArray[Any]
    concentration: float


class _Part(NamedTuple):
    """Blocks side by side, tasks' first, then those that a new task may join, and the new task's weights."""

    rates: Floats
    counts: Floats
    sources: RateSources
    sizes: NDArray[np.int64]
    joins: Floats


def blocks_of_partitions(
    data: TrainingData, hyper: HyperParameters, draws: list[NoisyDraw]
) -> tuple[Blocks, RateSources]:
    """Blocks for every partition drawn, and what these are made of; strengths are averaged as averages of rates ask.

    O(draws · tasks · cells).
    """
    layout = data.statistics.layout
    n_tasks = len(data.statistics.tasks)
    by_partition: dict[bytes, list[NoisyDraw]] = {}
    for draw in draws:
        by_partition.setdefault(draw.seat.tobytes(), []).append(draw)
    shares = [len(same) / len(draws) for same in by_partition.values()]
    parts = [_average(data, hyper, same) for same in by_partition.values()]
    pseudo = _totals(layout, hyper.feature_prior)
    alone = np.mean([joining_weights(np.zeros(0), n_tasks, draw.concentration)[1] for draw in draws])
    prior_rates = hyper.feature_prior / _spread(pseudo, layout)
    empty = np.zeros((1, layout.n_cells))
    rates = np.concatenate([*(part.rates for part in parts), prior_rates[None]])
    counts = np.concatenate([*(part.counts for part in parts), empty])
    nobodys = RateSources(*(np.array([row]) for row in (np.zeros_like(pseudo), np.full_like(pseudo, np.inf), pseudo)))
    sources = RateSources(*map(np.concatenate, zip(*(part.sources for part in parts), nobodys, strict=True)))
    sizes = np.concatenate([*(part.sizes for part in parts), [0]])

    first = np.concatenate([[0], np.cumsum([len(part.sizes) for part in parts])])
    of_tasks = (first[:-1] + np.arange(n_tasks)[:, None]).ravel()
    of_new = [np.arange(start + n_tasks, end) for start, end in pairwise(first)]
    joins = np.concatenate([share * part.joins for share, part in zip(shares, parts, strict=True)])
    n_entries = [len(parts)] * n_tasks + [len(joins) + 1]
    log_rates = np.repeat(hyper.log_label_rates(data.statistics.label_counts), len(parts), axis=0)
    no_rates = np.tile(hyper.log_label_rates(np.zeros_like(hyper.label_prior)), (n_entries[-1], 1))
    mixture = Mixture(
        layout.offsets,
        log_feature_rates(rates, np.zeros(layout.n_cells), layout.group_start, layout.n_labels),
        np.concatenate([[0], np.cumsum(n_entries)]),
        np.concatenate([of_tasks, *of_new, [first[-1]]]),
        np.log(np.concatenate([np.tile(shares, n_tasks), joins, [alone]])),
        np.concatenate([log_rates, no_rates]),
    )
    return Blocks(counts, sizes, mixture), sources


def _average(data: TrainingData, hyper: HyperParameters, draws: list[NoisyDraw]) -> _Part:
    """Averages over draws of one partition."""
    counts, layout = data.statistics.feature_counts, data.statistics.layout
    n_tasks = len(counts)
    pseudo = _totals(layout, hyper.feature_prior)
    totals = _totals(layout, counts)
    seat = draws[0].seat
    sizes = np.bincount(seat)
    n_owners = n_tasks + len(sizes)
    rates = np.zeros((n_owners, counts.shape[1]))
    weighed, weighed_own = np.zeros_like(rates), np.zeros((n_owners, len(pseudo)))
    weight = np.zeros((n_owners, len(pseudo)))
    lone = np.zeros((n_tasks, len(pseudo)))
    masses = np.zeros((len(sizes), len(pseudo)))
    joins = np.zeros(len(sizes))
    for draw in draws:
        votes = _cluster_votes(draw)
        prototype = _prototypes(hyper, layout, votes)
        strength = np.maximum(draw.strength, _TINY)
        rates[:n_tasks] += (counts + _spread(strength, layout) * prototype[seat]) / _spread(totals + strength, layout)
        rates[n_tasks:] += prototype
        mass = pseudo + _totals(layout, votes)
        scale = mass[seat] / np.maximum(draw.strength, _WEAKEST)
        effective = np.concatenate([counts * _spread(scale, layout) + votes[seat], votes])
        own = np.concatenate([totals * scale + _totals(layout, draw.votes), np.zeros_like(mass)])
        # What averages of rates need of counts: weights that are inverse to the blocks' totals.
        inverse = 1.0 / (_totals(layout, effective) + pseudo)
        weight += inverse
        weighed += _spread(inverse, layout) * effective
        weighed_own += inverse * own
        lone += 1.0 / (totals + np.maximum(draw.strength, _WEAKEST))
        masses += mass / len(draws)
        joins += joining_weights(sizes, n_tasks, draw.concentration)[0]
    return _Part(
        np.maximum(rates / len(draws), _TINY),
        weighed / _spread(weight, layout),
        RateSources(
            weighed_own / weight,
            np.concatenate([np.maximum(len(draws) / lone - totals, _WEAKEST), np.full_like(masses, np.inf)]),
            np.concatenate([masses[seat], masses]),
        ),
        np.concatenate([sizes[seat], sizes]),
        joins / len(draws),
    )


def _cluster_votes(draw: NoisyDraw) -> Floats:
    votes = np.zeros((int(draw.seat.max()) + 1, draw.votes.shape[1]))
    np.add.at(votes, draw.seat, draw.votes)
    return votes


def _prototypes(hyper: HyperParameters, layout: Layout, votes: Floats) -> Floats:
    """Conditional mean of prototypes given the votes of their clusters."""
    mass = votes + hyper.feature_prior
    return np.asarray(mass / _spread(_totals(layout, mass), layout))


def _totals(layout: Layout, cells: NDArray[Any]) -> Floats:
    """Sums over the cells of every group."""
    return np.asarray(np.add.reduceat(cells, layout.group_start[:-1], axis=-1), dtype=np.float64)


def _spread(groups: Floats, layout: Layout) -> Floats:
    """What every group has, for each of its cells."""
    return np.repeat(groups, np.diff(layout.group_start), axis=-1)
